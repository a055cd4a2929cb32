//! The only place that prints: data to stdout, everything else to stderr.
//!
//! Colour and moving progress bars are for people at a terminal; `NO_COLOR`
//! switches colour off. A reader that has seen enough (`| head`) is no error.

use std::{
    env, fmt,
    io::{self, ErrorKind, IsTerminal, Write},
    process,
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use unicode_width::UnicodeWidthStr as _;

/// Time between two lines of progress where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// The terminal, or whatever stands in for it.
pub(crate) struct Ui {
    /// Whether messages may be coloured.
    colour: bool,
    /// Whether the reader of stdout has gone.
    closed: bool,
    /// Whether messages are left to another process of the job.
    silent: bool,
}

/// How far a piece of work has come; may be advanced from any thread, and is cleared when dropped.
pub(crate) struct Progress {
    /// Where there is no terminal, it is hidden and counts all the same.
    bar: ProgressBar,
    /// When the last line was printed instead.
    last_line: Mutex<Instant>,
}

impl Ui {
    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        let forbidden = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: terminal && !forbidden, closed: false, silent: false }
    }

    /// Prints no messages from now on, since another process of the job does.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    /// Prints a line of output, to stdout.
    pub(crate) fn print(&mut self, line: &str) {
        self.print_bytes(format!("{}\n", visible(line)).as_bytes());
    }

    /// Writes a part of the output as it is, to stdout: it is for a program.
    pub(crate) fn print_bytes(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        match io::stdout().write_all(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                self.say("error", RED, &format!("cannot write the output: {error}"));
                process::exit(2);
            }
        }
    }

    /// Tells the user something worth knowing.
    pub(crate) fn note(&mut self, text: &str) {
        self.say("note", CYAN, text);
    }

    /// Tells the user about a problem that did not stop the work.
    pub(crate) fn warn(&mut self, text: &str) {
        self.say("warning", YELLOW, text);
    }

    /// Tells the user why nothing was done.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.say("error", RED, &format!("{error:#}"));
    }

    /// Starts to show how far `total` pieces of work have come.
    pub(crate) fn progress(&self, total: u64, what: &str) -> Progress {
        let colour = if self.colour { "{bar:30.cyan}" } else { "{bar:30}" };
        let template = format!("{{msg}} {colour} {{pos}}/{{len}}{{left}}");
        let style = ProgressStyle::with_template(&template).expect("it is well-formed");
        let left = |state: &ProgressState, w: &mut dyn fmt::Write| {
            // Before anything is done, nobody knows.
            if state.pos() > 0 {
                let _ = write!(w, " ({:#} left)", HumanDuration(state.eta()));
            }
        };
        let bar = ProgressBar::new(total).with_message(what.to_owned());
        let bar = bar.with_style(style.with_key("left", left));
        Progress { bar, last_line: Mutex::new(Instant::now()) }
    }

    fn say(&self, prefix: &str, colour: &str, text: &str) {
        if self.silent {
            return;
        }
        let prefix =
            if self.colour { format!("{colour}{prefix}:{RESET}") } else { format!("{prefix}:") };
        // Where stderr cannot be written to, nothing can be reported.
        let _ = writeln!(io::stderr(), "{prefix} {}", visible(text));
    }
}

/// Text in which nothing steers the terminal: names of files and classes are not ours.
fn visible(text: &str) -> String {
    // Bidirectional marks would show a name backwards.
    let steers = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match steers(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// The text, filled up with spaces to `width` columns of the terminal; letters of East Asian
/// scripts take two.
pub(crate) fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// The same, with the spaces before the text.
pub(crate) fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[1;36m";
const RESET: &str = "\x1b[0m";

impl Progress {
    /// Counts `pieces` of work as done.
    pub(crate) fn inc(&self, pieces: u64) {
        self.bar.inc(pieces);
        // Whoever finds the lock taken leaves the line to the other thread.
        if self.bar.is_hidden()
            && let Ok(mut last) = self.last_line.try_lock()
            && last.elapsed() >= PLAIN_INTERVAL
        {
            *last = Instant::now();
            let (what, done) = (self.bar.message(), self.bar.position());
            let (total, left) = (done + self.pieces_left(), HumanDuration(self.bar.eta()));
            self.say(&format!("{what}: {done} of {total} ({left} left)"));
        }
    }

    /// What is still to be done.
    pub(crate) fn pieces_left(&self) -> u64 {
        self.bar.length().unwrap_or_default().saturating_sub(self.bar.position())
    }

    /// Says something while the bar is out of the way.
    pub(crate) fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// Says what the work is at.
    pub(crate) fn describe(&self, text: &str) {
        self.bar.set_message(visible(text));
    }

    /// Counts pieces that were done before, so that they do not make the rest look fast.
    pub(crate) fn skip(&self, pieces: u64) {
        self.bar.inc(pieces);
        self.bar.reset_eta();
    }

    /// Leaves a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.aside(|| {
            let _ = writeln!(io::stderr(), "{}", visible(line));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_script() {
        assert_eq!(pad_right("ab", 5), "ab   ");
        assert_eq!(pad_right("病变", 5), "病变 ");
        assert_eq!(
            (pad_left("é", 3), pad_left("longer", 3)),
            ("  é".to_owned(), "longer".to_owned())
        );
    }

    #[test]
    fn nothing_in_a_name_steers_the_terminal() {
        assert_eq!(visible("plain\n\tname é"), "plain\n\tname é");
        assert_eq!(visible("a\x1b[2J\u{9b}\r\u{202E}b"), "a\\u{1b}[2J\\u{9b}\\u{d}\\u{202e}b");
    }
}
