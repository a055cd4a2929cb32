//! How long a training will take, said once its first pieces are done.

use std::time::{Duration, Instant};

use indicatif::HumanDuration;

/// Pieces after the first by which the rest is estimated.
const SAMPLE: u64 = 4;

/// Watches the first pieces of some work.
#[derive(Debug, Default)]
pub(crate) struct ExpectedTime {
    done: u64,
    /// When the first piece was done, which is slower than others: memory is fresh.
    first: Option<Instant>,
}

impl ExpectedTime {
    /// Counts a piece as done at `now`; the time that `left` more will take, when it can be told
    /// for the first time.
    pub(crate) fn piece(&mut self, now: Instant, left: u64) -> Option<Duration> {
        let first = *self.first.get_or_insert(now);
        self.done += 1;
        let known = self.done == SAMPLE + 1 && left > 0;
        known.then(|| (now - first).mul_f64(left as f64 / SAMPLE as f64))
    }
}

/// A time as people say it, such as `3 minutes`.
pub(crate) fn about(time: Duration) -> String {
    match time {
        short if short < Duration::from_secs(1) => "less than a second".to_owned(),
        time => format!("about {}", HumanDuration(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_estimated_once_from_the_pieces_after_the_first() {
        let start = Instant::now();
        let mut expected = ExpectedTime::default();
        // The first took a minute to get ready, the others 2 s each.
        let at = |piece: u64| start + Duration::from_secs(60 + 2 * piece);
        let told: Vec<_> = (0..7).map(|piece| expected.piece(at(piece), 100 - piece)).collect();
        let expected = Some(Duration::from_secs(2 * 96));
        assert_eq!(told, [None, None, None, None, expected, None, None]);
        assert_eq!(about(Duration::from_secs(192)), "about 3 minutes");
    }

    #[test]
    fn nothing_is_expected_of_work_that_is_over() {
        let mut expected = ExpectedTime::default();
        let now = Instant::now();
        assert!((0..5).all(|piece| expected.piece(now, 4 - piece).is_none()));
        assert_eq!(about(Duration::from_millis(300)), "less than a second");
    }
}
