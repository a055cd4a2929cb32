//! Images that cannot be scored, listed together rather than one per attempt.

use crate::error::{Error, Result};

/// Most problems that are listed: more are likely to have one cause.
const MOST: usize = 20;

/// The first problems of a split, in order.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Error>);

impl Problems {
    /// Notes a problem, if it is among the first.
    pub(super) fn note(&mut self, error: Error) {
        if !self.are_enough() {
            self.0.push(error);
        }
    }

    /// Whether there are as many as are listed at most.
    pub(super) fn are_enough(&self) -> bool {
        self.0.len() >= MOST
    }

    /// An error with all problems, unless there are none.
    pub(super) fn into_result(mut self) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0)),
            _ => Err(Error::Images(lines(&self.0))),
        }
    }
}

/// The first line of every problem, then every remedy once.
fn lines(problems: &[Error]) -> Vec<String> {
    let texts: Vec<String> = problems.iter().map(with_cause).collect();
    let mut lines: Vec<String> =
        texts.iter().filter_map(|text| text.lines().next()).map(str::to_owned).collect();
    if problems.len() == MOST {
        lines.push("and there may be more".to_owned());
    }
    for hint in texts.iter().flat_map(|text| text.lines().skip(1)) {
        if !lines.iter().any(|line| line == hint) {
            lines.push(hint.to_owned());
        }
    }
    lines
}

fn with_cause(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(name: &str) -> Error {
        Error::Image {
            path: name.into(),
            problem: "broken".to_owned(),
            remedy: "mend it".to_owned(),
        }
    }

    #[test]
    fn one_problem_is_told_as_it_is() {
        let mut problems = Problems::default();
        problems.note(broken("a.png"));
        let message = problems.into_result().unwrap_err().to_string();
        assert_eq!(message, "broken: `a.png`\nhint: mend it");
        assert!(Problems::default().into_result().is_ok());
    }

    #[test]
    fn several_are_listed_in_order_with_each_remedy_once() {
        let mut problems = Problems::default();
        problems.note(broken("a.png"));
        problems.note(broken("b.png"));
        let message = problems.into_result().unwrap_err().to_string();
        assert_eq!(
            message,
            "cannot score every image\n  broken: `a.png`\n  broken: `b.png`\n  hint: mend it"
        );
    }

    #[test]
    fn no_more_than_twenty_are_listed() {
        let mut problems = Problems::default();
        (0..30).for_each(|i| problems.note(broken(&i.to_string())));
        let message = problems.into_result().unwrap_err().to_string();
        assert!(message.contains("`19`") && !message.contains("`20`"), "{message}");
        assert!(message.contains("there may be more"), "{message}");
    }
}
