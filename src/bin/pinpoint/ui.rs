//! The only place that prints: data to stdout, everything else to stderr.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where printing happens")]

/// The terminal, or whatever stands in for it.
pub(crate) struct Ui {}

impl Ui {
    pub(crate) fn new() -> Self {
        Self {}
    }

    /// Prints a line of the answer, to stdout.
    pub(crate) fn answer(&mut self, line: &str) {
        println!("{line}");
    }

    /// Tells the user something worth knowing.
    pub(crate) fn note(&mut self, text: &str) {
        eprintln!("note: {text}");
    }

    /// Tells the user about a problem that did not stop the work.
    pub(crate) fn warn(&mut self, text: &str) {
        eprintln!("warning: {text}");
    }

    /// A bar that counts to `total`; invisible where stderr is not a terminal.
    pub(crate) fn progress(&self, total: usize) -> indicatif::ProgressBar {
        indicatif::ProgressBar::new(total as u64)
    }

    /// Tells the user why nothing was done.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        eprintln!("error: {error:#}");
    }
}
