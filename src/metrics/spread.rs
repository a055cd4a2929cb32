//! One score of several runs that differ in their seed alone.

/// Mean and spread of a score over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Over the runs that have the score.
    pub mean: f64,
    /// Sample standard deviation, `n − 1` below; none for a single run.
    pub deviation: Option<f64>,
    /// How many runs have the score.
    pub runs: usize,
}

impl Spread {
    /// Sums up the runs that have a score; none if no run has.
    pub fn of(scores: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let scores: Vec<f64> = scores.into_iter().flatten().collect();
        let runs = scores.len();
        if runs == 0 {
            return None;
        }
        let mean = scores.iter().sum::<f64>() / runs as f64;
        let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
        let deviation = (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt());
        Some(Self { mean, deviation, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_sample_deviation_are_those_of_the_runs_that_have_the_score() {
        let spread = Spread::of([Some(2.0), Some(4.0), None, Some(9.0)]).unwrap();
        assert_eq!((spread.mean, spread.runs), (5.0, 3));
        // Squares 9 + 1 + 16 over 2.
        assert!((spread.deviation.unwrap() - 13.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_run_has_no_deviation_and_none_has_no_mean() {
        let one = Spread { mean: 7.0, deviation: None, runs: 1 };
        assert_eq!(Spread::of([Some(7.0)]), Some(one));
        assert_eq!(Spread::of([None, None]), None);
    }
}
