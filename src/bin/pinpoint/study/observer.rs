//! One run of a study, as the terminal shows it.

use pinpoint::train::{Event, Observer};

use crate::{
    interrupt::requested,
    ui::Progress,
    watch::{describe, epoch_line},
};

/// Counts what a run learns towards the whole.
pub(super) struct RunObserver<'a> {
    pub(super) name: &'a str,
    pub(super) progress: &'a Progress,
    /// What an image counts for.
    pub(super) weight: u64,
    /// What the run was planned to come to, less what has been counted.
    pub(super) left: u64,
}

impl RunObserver<'_> {
    fn begin(&mut self, epochs: usize, steps: usize, (epoch, step): (usize, usize)) {
        let (done, total) = (epoch * steps + step, (epochs * steps).max(1));
        let done = self.left * done as u64 / total as u64;
        if done > 0 {
            self.progress.skip(done);
            self.left -= done;
            self.say(&format!("going on from epoch {epoch}, step {step}"));
        }
    }

    fn step(&mut self, images: usize, text: String) {
        let done = (images as u64 * self.weight).min(self.left);
        self.left -= done;
        self.progress.describe(&text);
        self.progress.inc(done);
    }

    fn say(&self, text: &str) {
        self.progress.say(&format!("{}: {text}", self.name));
    }

    /// Counts what was planned and not done, as where patience ran out.
    pub(super) fn close(self) {
        self.progress.skip(self.left);
    }
}

impl Observer for RunObserver<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(text) | Event::Warning(text) => self.say(text),
            Event::Started { epochs, steps, from } => self.begin(*epochs, *steps, *from),
            Event::Step { epoch, terms, images, .. } => {
                let text = format!("{}, epoch {epoch}: {}", self.name, describe(terms));
                self.step(*images, text);
            }
            Event::Working { what, done, total } => {
                self.step(1, format!("{}, {what}: {done} of {total}", self.name));
            }
            Event::Epoch(record) => self.say(&epoch_line(record)),
            _ => {}
        }
    }

    fn wants_to_stop(&self) -> bool {
        requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::Ui;

    #[test]
    fn an_image_whose_features_are_computed_counts_towards_the_whole() {
        let progress = Ui::new().progress(4, "study");
        let mut observer =
            RunObserver { name: "probe-s0", progress: &progress, weight: 1, left: 4 };
        let computing = |done| Event::Working { what: "computing features", done, total: 2 };
        (0..2).for_each(|done| observer.observe(&computing(done)));
        assert_eq!(observer.left, 2);
    }
}
