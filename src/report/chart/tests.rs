//! Charts as a whole: both outputs, and data nobody hopes for.

use image::RgbImage;
use proptest::prelude::*;

use super::*;

fn sample() -> Chart {
    let mut chart = Chart::new("Loss <&> \"more\"", "epoch", "loss");
    chart.add("train & co", (1..=9).map(|x| (f64::from(x), 1.0 / f64::from(x))).collect());
    chart.add("valid", vec![(1.0, 0.5), (2.0, f64::NAN), (3.0, 0.4), (4.0, 0.3)]);
    chart.mark("best epoch 4", 4.0);
    chart
}

fn pixels(png: &[u8]) -> RgbImage {
    image::load_from_memory(png).unwrap().to_rgb8()
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
    assert_eq!(sample().to_png(640, 400), sample().to_png(640, 400));
    assert_eq!(sample().to_svg(640, 400), sample().to_svg(640, 400));
}

#[test]
fn svg_is_well_formed_and_names_are_escaped() {
    let svg = sample().to_svg(640, 400);
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
            vec![Series { name: String::new(), style: Style::nth(0), points: points.into() }];
        let svg = chart.to_svg(640, 400);
        (count(&svg, "stroke=\"#0072b2\""), count(&svg, "<circle"))
    };
    assert_eq!(lines(&points, &mut chart), (2, 0), "the curve and its sample in the legend");
    points[10].1 = f64::NAN;
    assert_eq!(lines(&points, &mut chart), (3, 0));
    points[12].1 = f64::INFINITY;
    assert_eq!(lines(&points, &mut chart), (3, 1));
}

#[test]
fn curves_have_their_colour_where_their_data_are() {
    let mut chart =
        Chart { x_range: Some((0.0, 1.0)), y_range: Some((0.0, 1.0)), ..Chart::default() };
    chart.add("low", vec![(0.0, 0.25), (1.0, 0.25)]);
    let image = pixels(&chart.to_png(600, 400));
    let rows = |colour| {
        let column = (0..400).filter(|y| image[(300, *y)] == colour).collect::<Vec<_>>();
        column.iter().sum::<u32>() as f32 / column.len() as f32
    };
    let frame = rows(rgb(0x80_80_80)); // mean of top and bottom: the middle of the axis
    assert!(rows(PALETTE[0]) > frame, "a quarter is below a half");
    assert_eq!(image[(0, 0)], Rgb([255; 3]));
}

#[test]
fn data_stay_between_the_axes_of_a_range_asked_for() {
    let mut chart = Chart { y_range: Some((0.0, 1.0)), ..Chart::default() };
    chart.add("", vec![(0.0, -1e9), (1.0, 0.5), (2.0, 1e9)]);
    let image = pixels(&chart.to_png(600, 400));
    let blue = image.enumerate_pixels().filter(|(.., pixel)| **pixel == PALETTE[0]);
    let rows = blue.map(|(_, y, _)| y).filter(|y| *y > 40).collect::<Vec<_>>();
    assert!(rows.iter().all(|y| (10..=370).contains(y)) && rows.len() > 100);
}

#[test]
fn charts_in_a_grid_share_their_margins() {
    let mut wide = sample();
    wide.series[0].points[0].1 = 123_456.0;
    let grid = Grid { columns: 1, charts: vec![sample(), wide] };
    let svg = grid.to_svg(640, 600);
    assert_well_formed(&svg);
    let frames = svg.lines().filter(|line| line.contains("#808080"));
    let left = |line: &str| line.split(['"', ',']).nth(1).unwrap().to_owned();
    let lefts = frames.map(left).collect::<Vec<_>>();
    assert_eq!(lefts.len(), 2);
    assert_eq!(lefts[0], lefts[1]);
}

#[test]
fn the_first_28_styles_differ() {
    let styles = (0..28).map(Style::nth).collect::<Vec<_>>();
    assert!((0..28).all(|i| !styles[..i].contains(&styles[i])));
}

#[test]
fn more_names_than_fit_are_counted() {
    let mut chart = Chart::default();
    (0..40).for_each(|i| chart.add(format!("curve {i}"), vec![]));
    let svg = chart.to_svg(640, 300);
    assert!(svg.contains("more<") && !svg.contains(">curve 39<"));
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
        for (width, height) in [(640, 400), (30, 20), (0, 0)] {
            assert!(!chart.to_png(width, height).is_empty());
            assert_well_formed(&chart.to_svg(width, height));
        }
    }
    assert!(!Grid { columns: 0, charts: vec![] }.to_png(10, 10).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_data_and_any_text_make_a_well_formed_chart(
        name in ".{0,30}", points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)
    ) {
        let mut chart = Chart::new(name.clone(), name.clone(), name.clone());
        chart.add(name, points);
        assert_well_formed(&chart.to_svg(500, 300));
        prop_assert!(!chart.to_png(300, 200).is_empty());
    }
}
