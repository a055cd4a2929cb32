//! `pinpoint completions` and `pinpoint man`: the command described to shells and to `man`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man as Page;

use crate::ui::Ui;

/// Print a shell's completions of verbs and flags
///
/// For bash: pinpoint completions bash > ~/.local/share/bash-completion/completions/pinpoint
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write one for each verb
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write `pinpoint.1` and one page for each verb into this folder instead
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Completions {
    pub(crate) fn run(self, command: &mut Command, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "pinpoint", &mut script);
        ui.print_bytes(&script);
        Ok(ExitCode::SUCCESS)
    }
}

impl Man {
    pub(crate) fn run(self, command: Command, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Some(folder) = self.out else {
            let mut page = Vec::new();
            Page::new(command).render(&mut page).context("cannot make the page")?;
            ui.print_bytes(&page);
            return Ok(ExitCode::SUCCESS);
        };
        let failed = || format!("cannot write manual pages to `{}`", folder.display());
        fs::create_dir_all(&folder).with_context(failed)?;
        clap_mangen::generate_to(command, &folder).with_context(failed)?;
        ui.note(&format!("`man {}` shows it", folder.join("pinpoint.1").display()));
        Ok(ExitCode::SUCCESS)
    }
}
