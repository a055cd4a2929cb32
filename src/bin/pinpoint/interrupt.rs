//! What a signal does, for all verbs alike.
//!
//! The first Ctrl-C or SIGTERM asks the work to stop: what is under way is finished or saved, the
//! user is told how to go on, and the command exits with [`EXIT_CODE`]. A second one ends the
//! process at once, with the same code. Files are replaced whole, so that neither loses what was
//! saved. Verbs that take seconds do not listen, and end with the first signal.

use std::{
    ops::ControlFlow,
    process::{self, ExitCode},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::Context;

use crate::ui::Ui;

/// 128 + 2, as shells report a process that was ended by Ctrl-C.
const EXIT_CODE: u8 = 130;

/// Whether someone has asked the work to stop; signals are the whole process's.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Listens from now on.
pub(crate) fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            process::exit(EXIT_CODE.into());
        }
    })
    .context("cannot listen for Ctrl-C")
}

pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Whether work goes on.
pub(crate) fn go_on() -> ControlFlow<()> {
    if requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Says how to go on, and gives the exit code.
pub(crate) fn interrupted(ui: &mut Ui, how_to_go_on: &str) -> ExitCode {
    ui.note(&format!("interrupted; {how_to_go_on}"));
    ExitCode::from(EXIT_CODE)
}
