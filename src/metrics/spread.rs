//! Scores and curves of several runs that differ in their seed alone.

use super::{Curve, Curves};

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
    /// The spread over the runs that have a score; `None` if no run has.
    pub fn of(scores: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let scores: Vec<f64> = scores.into_iter().flatten().collect();
        let runs = scores.len();
        let mean = scores.iter().sum::<f64>() / runs as f64;
        let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
        let deviation = (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt());
        (runs > 0).then_some(Self { mean, deviation, runs })
    }
}

/// The mean of the runs' curves; `None` where a run has none, or one on another grid.
pub fn mean_curves(runs: &[&Curves]) -> Curves {
    let mean = |of: fn(&Curves) -> Option<&Curve>| {
        let curves: Option<Vec<&Curve>> = runs.iter().map(|run| of(run)).collect();
        mean_curve(&curves?)
    };
    Curves {
        precision_recall_foreground: mean(|run| run.precision_recall_foreground.as_ref()),
        precision_recall_background: mean(|run| run.precision_recall_background.as_ref()),
        roc: mean(|run| run.roc.as_ref()),
    }
}

/// The area under the mean curve is the mean of the areas.
fn mean_curve(curves: &[&Curve]) -> Option<Curve> {
    let first = curves.first()?;
    let alike = |curve: &&Curve| curve.x == first.x && curve.y.len() == first.x.len();
    let mean = |value: &dyn Fn(&Curve) -> f64| {
        curves.iter().map(|curve| value(curve)).sum::<f64>() / curves.len() as f64
    };
    curves.iter().all(alike).then(|| Curve {
        images: curves.iter().map(|curve| curve.images).sum(),
        auc: mean(&|curve| curve.auc),
        x: first.x.clone(),
        y: (0..first.x.len()).map(|at| mean(&|curve| curve.y[at])).collect(),
    })
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

    #[test]
    fn curves_are_averaged_point_by_point_where_every_run_has_one() {
        let curve = |y: [f64; 2], auc| Curve { images: 3, auc, x: vec![0.0, 1.0], y: y.to_vec() };
        let of = |foreground: Option<Curve>, roc: Option<Curve>| Curves {
            precision_recall_foreground: foreground,
            precision_recall_background: None,
            roc,
        };
        let one = of(Some(curve([1.0, 0.5], 75.0)), Some(curve([0.0, 1.0], 50.0)));
        let two = of(Some(curve([0.5, 0.0], 25.0)), None);
        let mean = mean_curves(&[&one, &two]);
        let expected = Curve { images: 6, auc: 50.0, x: vec![0.0, 1.0], y: vec![0.75, 0.25] };
        assert_eq!(mean.precision_recall_foreground, Some(expected));
        assert_eq!((mean.precision_recall_background, mean.roc), (None, None));

        let other = of(Some(Curve { y: vec![1.0], ..curve([0.0; 2], 1.0) }), None);
        assert_eq!(mean_curves(&[&one, &other]).precision_recall_foreground, None);
        assert_eq!(mean_curves(&[]).roc, None);
    }
}
