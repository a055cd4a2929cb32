//! Charts as a whole, and data nobody hopes for.

use proptest::prelude::*;

use super::*;

fn sample() -> Chart {
    let mut chart = Chart::new("Loss <&> \"more\"", "epoch", "loss");
    chart.add("train & co", (1..=9).map(|x| (f64::from(x), 1.0 / f64::from(x))).collect());
    chart.add("valid", vec![(1.0, 0.5), (2.0, f64::NAN), (3.0, 0.4), (4.0, 0.3)]);
    chart.mark("best epoch 4", 4.0);
    chart
}

fn drawn(chart: &Chart) -> String {
    chart.draw((440.0, 270.0)).inline()
}

fn count(svg: &str, text: &str) -> usize {
    svg.matches(text).count()
}

/// Every tag is closed in order, every `&` begins an entity.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "stray bracket in {text:?}");
        assert_eq!(count(tag, "\"") % 2, 0, "unbalanced quotes in {tag:?}");
        let name = tag.split_whitespace().next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    let entities = ["&amp;", "&lt;", "&gt;", "&quot;"].map(|entity| count(svg, entity));
    assert_eq!(count(svg, "&"), entities.iter().sum::<usize>());
}

#[test]
fn equal_charts_give_equal_bytes() {
    assert_eq!(drawn(&sample()), drawn(&sample()));
}

#[test]
fn svg_is_well_formed_and_names_are_escaped() {
    let svg = sample().draw((440.0, 270.0)).document();
    assert_well_formed(&svg);
    assert!(svg.contains(">Loss &lt;&amp;&gt; &quot;more&quot;<"), "{svg}");
    assert!(svg.contains(">train &amp; co<"));
    assert!(svg.contains(">best epoch 4<"));
}

#[test]
fn a_missing_point_leaves_a_gap_and_a_lone_point_is_a_dot() {
    let mut chart = Chart::default();
    let mut points = (0..40).map(|x| (f64::from(x), 1.0)).collect::<Vec<_>>();
    let lines = |points: &[(f64, f64)], chart: &mut Chart| {
        chart.series =
            vec![Series { name: "a".to_owned(), style: Style::nth(0), points: points.into() }];
        let svg = drawn(chart);
        (count(&svg, "stroke=\"#0072b2\""), count(&svg, "<circle"))
    };
    assert_eq!(lines(&points, &mut chart), (2, 0), "the curve and its sample in the legend");
    points[10].1 = f64::NAN;
    assert_eq!(lines(&points, &mut chart), (3, 0));
    points[12].1 = f64::INFINITY;
    assert_eq!(lines(&points, &mut chart), (3, 1));
}

/// The points of the lines of a class, one list per line.
fn lines(svg: &str, class: &str) -> Vec<Vec<(f32, f32)>> {
    let of_class = svg.lines().filter(|line| line.contains(&format!("class=\"{class}\"")));
    let points =
        of_class.filter_map(|line| line.strip_prefix("<polyline points=\"")?.split('"').next());
    let point = |text: &str| {
        let (x, y) = text.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    points.map(|points| points.split(' ').map(point).collect()).collect()
}

#[test]
fn curves_are_where_their_data_are() {
    let mut chart =
        Chart { x_range: Some((0.0, 1.0)), y_range: Some((0.0, 1.0)), ..Chart::default() };
    chart.add("", vec![(0.0, 0.25), (1.0, 0.25)]);
    let svg = drawn(&chart);
    let (axes, curve) = (&lines(&svg, "soft")[0], &lines(&svg, "c0")[0]);
    let ((left, top), (right, bottom)) = (axes[0], axes[2]);
    assert_eq!((curve[0].0, curve[1].0), (left, right));
    assert!((curve[0].1 - (bottom - 0.25 * (bottom - top))).abs() < 0.11, "{curve:?} {axes:?}");
}

#[test]
fn data_stay_between_the_axes_of_a_range_asked_for() {
    let mut chart = Chart { y_range: Some((0.0, 1.0)), ..Chart::default() };
    chart.add("", vec![(0.0, -1e9), (1.0, 0.5), (2.0, 1e9)]);
    let svg = drawn(&chart);
    let axes = &lines(&svg, "soft")[0];
    let curve = lines(&svg, "c0").concat();
    assert!(curve.len() >= 3);
    assert!(curve.iter().all(|(_, y)| (axes[0].1..=axes[1].1).contains(y)), "{curve:?}");
}

#[test]
fn charts_in_a_grid_share_their_margins() {
    let mut wide = sample();
    wide.series[0].points[0].1 = 123_456.0;
    let svg = grid(1, &[sample(), wide], (440.0, 200.0)).inline();
    assert_well_formed(&svg);
    let axes: Vec<_> = lines(&svg, "soft").into_iter().filter(|line| line.len() == 3).collect();
    assert_eq!(axes.len(), 2);
    assert_eq!(axes[0][0].0, axes[1][0].0);
}

#[test]
fn the_first_28_styles_differ() {
    let styles = (0..28).map(Style::nth).collect::<Vec<_>>();
    assert!((0..28).all(|i| !styles[..i].contains(&styles[i])));
}

#[test]
fn the_legend_takes_as_many_lines_as_its_names_need() {
    let named = |count: usize| {
        let mut chart = Chart::default();
        (0..count).for_each(|i| chart.add(format!("a curve, number {i}"), vec![]));
        chart.draw((440.0, 200.0))
    };
    let (few, many) = (named(2), named(40));
    assert!(many.height > few.height + 200.0);
    assert!(many.inline().contains(">a curve, number 39<"));
}

#[test]
fn extreme_data_are_drawn_without_a_panic() {
    let zigzag = (0..10_000).map(|i| (f64::from(i * 7919 % 10_007), f64::from(i * 31 % 97)));
    let extremes: Vec<Vec<(f64, f64)>> = vec![
        vec![],
        vec![(0.0, 0.0)],
        vec![(1.0, 5.0); 20],
        vec![(f64::NAN, 1.0), (f64::INFINITY, f64::NEG_INFINITY)],
        vec![(f64::MIN, f64::MAX), (f64::MAX, f64::MIN), (1.0, f64::MIN_POSITIVE)],
        vec![(1e299, -1e299), (-1e299, 1e299)],
        vec![(1.0, 1e16), (2.0, 1e16 + 2.0)],
        zigzag.collect(),
    ];
    for points in extremes {
        let mut chart = sample();
        chart.add("extreme", points);
        chart.mark("nowhere", f64::NAN);
        for (width, height) in [(640.0, 400.0), (30.0, 20.0), (0.0, 0.0)] {
            assert_well_formed(&chart.draw((width, height)).inline());
        }
    }
    assert_well_formed(&grid(0, &[], (10.0, 10.0)).inline());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_data_and_any_text_make_a_well_formed_chart(
        name in ".{0,30}", points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)
    ) {
        let mut chart = Chart::new(&name, &name, &name);
        chart.add(name, points);
        assert_well_formed(&chart.draw((500.0, 300.0)).inline());
    }
}
