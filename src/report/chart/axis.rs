//! Axes: which stretch of numbers is shown, and where its ticks are.

/// The numbers along one side of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
}

/// One labelled number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// What decides an axis apart from the data.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisOptions {
    /// The range asked for; one that cannot be drawn is ignored.
    pub(super) range: Option<(f64, f64)>,
    /// At most this many intervals between ticks, at least four.
    pub(super) intervals: u32,
    /// Ends the axis on ticks rather than on the data.
    pub(super) rounded: bool,
    /// Data that are counts (epochs) get no ticks between whole numbers.
    pub(super) whole: bool,
}

/// Whether a number has a place on an axis; differences of such numbers stay finite.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() < 1e300
}

impl Axis {
    /// The axis for `values`, of which those that cannot be drawn are left out.
    pub(super) fn over(values: impl Iterator<Item = f64>, options: AxisOptions) -> Self {
        let asked = options.range.filter(|&(low, high)| {
            drawable(low) && drawable(high) && low < high && (low, high) == widened(low, high)
        });
        let (low, high) = asked.unwrap_or_else(|| extent(values));
        let mut step = Step::covering(high - low, options.intervals);
        if options.whole && step.exponent < 0 {
            step = Step { mantissa: 1, exponent: 0 };
        }
        let (mut first, mut last) = step.multiples_within(low, high);
        let (mut low, mut high) = (low, high);
        if options.rounded && asked.is_none() {
            (first, last) = step.multiples_around(low, high);
            (low, high) = (low.min(step.times(first)), high.max(step.times(last)));
        }
        let tick = |i: u32| {
            let value = step.times(first + f64::from(i));
            Tick { value, label: step.label(value, low.abs().max(high.abs())) }
        };
        let ticks = (0..=(last - first).max(-1.0) as u32).filter(|_| first <= last).map(tick);
        Self { low, high, ticks: ticks.collect() }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end.
    pub(super) fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

/// From the least to the greatest value, never empty.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| drawable(*value))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { (0.0, 1.0) } else { widened(low, high) }
}

/// The range itself, or a wider one if doubles cannot tell enough numbers inside it apart.
fn widened(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if high - low > (size * 1e-9).max(1e-290) {
        return (low, high);
    }
    let margin = if size < 1e-280 { 0.5 } else { size * 0.1 };
    (low - margin, high + margin)
}

/// A distance between ticks that is easy to read: 1, 2 or 5 times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    mantissa: u8,
    exponent: i32,
}

impl Step {
    /// The smallest step that needs at most `intervals` of it to cover `span`.
    fn covering(span: f64, intervals: u32) -> Self {
        let least = span / f64::from(intervals.max(1)) * (1.0 - 1e-9);
        let exponent = least.log10().floor() as i32;
        (exponent..=exponent + 1)
            .flat_map(|exponent| [1, 2, 5].map(|mantissa| Self { mantissa, exponent }))
            .find(|step| step.times(1.0) >= least)
            .expect("ten times the power of ten below a number is above it")
    }

    /// `k` steps, as the double nearest to the decimal number.
    fn times(self, k: f64) -> f64 {
        let count = k * f64::from(self.mantissa);
        let power = 10_f64.powi(self.exponent.abs());
        if self.exponent < 0 { count / power } else { count * power }
    }

    fn multiples_within(self, low: f64, high: f64) -> (f64, f64) {
        let step = self.times(1.0);
        ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor())
    }

    fn multiples_around(self, low: f64, high: f64) -> (f64, f64) {
        let step = self.times(1.0);
        ((low / step + 1e-6).floor(), (high / step - 1e-6).ceil())
    }

    /// As many decimals as the step has; powers of ten for the very large and very small.
    fn label(self, value: f64, largest: f64) -> String {
        if value == 0.0 {
            return "0".to_owned();
        }
        if largest < 1e6 && self.exponent >= -5 {
            let decimals = self.exponent.min(0).unsigned_abs() as usize;
            return format!("{value:.decimals$}");
        }
        let digits = (value.abs().log10() + 1e-9).floor() as i32 - self.exponent;
        format!("{value:.*e}", digits.max(0) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPTIONS: AxisOptions =
        AxisOptions { range: None, intervals: 5, rounded: false, whole: false };

    #[test]
    fn ticks_are_multiples_of_one_two_or_five() {
        assert_eq!(labels(&[0.0, 1.0], OPTIONS), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[0.0, 10.0], OPTIONS), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&[3.0, 47.0], OPTIONS), ["10", "20", "30", "40"]);
        assert_eq!(labels(&[-0.07, 0.11], OPTIONS), ["-0.05", "0", "0.05", "0.10"]);
    }

    #[test]
    fn very_large_and_very_small_numbers_are_written_with_powers_of_ten() {
        let large = labels(&[0.0, 2.4e6], OPTIONS);
        assert_eq!(large, ["0", "5e5", "1.0e6", "1.5e6", "2.0e6"]);
        assert_eq!(labels(&[1e-7, 4e-7], OPTIONS), ["1e-7", "2e-7", "3e-7", "4e-7"]);
    }

    #[test]
    fn a_rounded_axis_ends_on_ticks() {
        let axis = Axis::over([0.13, 0.87].into_iter(), AxisOptions { rounded: true, ..OPTIONS });
        assert_eq!((axis.low, axis.high), (0.0, 1.0));
        assert_eq!(axis.ticks.len(), 6);
    }

    #[test]
    fn counts_get_no_ticks_between_whole_numbers() {
        assert_eq!(labels(&[1.0, 3.0], AxisOptions { whole: true, ..OPTIONS }), ["1", "2", "3"]);
        assert_eq!(labels(&[7.0], AxisOptions { whole: true, ..OPTIONS }), ["7"]);
    }

    #[test]
    fn a_range_asked_for_is_kept_if_it_can_be_drawn() {
        let asked = |range| {
            Axis::over([2.0, 4.0].into_iter(), AxisOptions { range: Some(range), ..OPTIONS })
        };
        assert_eq!(asked((0.0, 1.0)).low, 0.0);
        for impossible in [(1.0, 0.0), (1.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert_eq!(asked(impossible).low, 2.0, "{impossible:?}");
        }
    }

    #[test]
    fn constant_and_missing_data_have_an_axis_too() {
        assert_eq!(extent([0.0, 0.0].into_iter()), (-0.5, 0.5));
        assert_eq!(extent([10.0].into_iter()), (9.0, 11.0));
        assert_eq!(extent([f64::NAN, f64::INFINITY].into_iter()), (0.0, 1.0));
    }

    proptest! {
        #[test]
        fn ticks_cover_any_range_evenly(
            a in prop::num::f64::ANY, b in prop::num::f64::ANY, intervals in 4_u32..12, rounded: bool
        ) {
            let axis = Axis::over([a, b].into_iter(), AxisOptions { intervals, rounded, ..OPTIONS });
            prop_assert!(axis.low.is_finite() && axis.high.is_finite() && axis.low < axis.high);
            prop_assert!((1..=intervals as usize + 3).contains(&axis.ticks.len()));
            for pair in axis.ticks.windows(2) {
                prop_assert!(pair[1].value > pair[0].value);
                prop_assert_ne!(&pair[1].label, &pair[0].label);
            }
            let shares = axis.ticks.iter().map(|tick| axis.share(tick.value)).collect::<Vec<_>>();
            let (first, last) = (shares[0], shares[shares.len() - 1]);
            let uncovered = if rounded { 1e-3 } else { 0.626 }; // 2.5 / 4 intervals
            prop_assert!((-1e-3..=uncovered).contains(&first), "first tick at {first}");
            prop_assert!((-1e-3..=uncovered).contains(&(1.0 - last)), "last tick at {last}");
        }
    }

    fn labels(values: &[f64], options: AxisOptions) -> Vec<String> {
        let axis = Axis::over(values.iter().copied(), options);
        axis.ticks.into_iter().map(|tick| tick.label).collect()
    }
}
