//! What a signal does, for all verbs alike.
//!
//! The first Ctrl-C or SIGTERM asks the work to stop: what is under way is finished or saved, the
//! user is told how to go on, and the command exits with [`EXIT_CODE`]. A second one ends the
//! process at once, with the same code. Files are replaced whole, so that neither loses what was
//! saved. Verbs that take seconds do not listen, and end with the first signal.

use std::{
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context;

use crate::ui::Ui;

/// 128 + 2, as shells report a process that was ended by Ctrl-C.
const EXIT_CODE: u8 = 130;

/// Whether someone has asked the work to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let first = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            if first.swap(true, Ordering::Relaxed) {
                process::exit(EXIT_CODE.into());
            }
        })
        .context("cannot listen for Ctrl-C")?;
        Ok(interrupt)
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says how to go on, and gives the exit code.
pub(crate) fn interrupted(ui: &mut Ui, how_to_go_on: &str) -> ExitCode {
    ui.note(&format!("interrupted; {how_to_go_on}"));
    ExitCode::from(EXIT_CODE)
}
