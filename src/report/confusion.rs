//! The drawing of the confusion matrix.

use super::svg::{Anchor, FONT_SIZE, LINE_HEIGHT, Paint, Svg, TextStyle, fit_text, text_width};
use crate::metrics::Confusion;

/// Space around everything and between parts, in pixels.
const GAP: f32 = 8.0;
/// Names are cut to this length.
const LONGEST_NAME: f32 = 150.0;
/// Width of the whole drawing, whatever the number of classes.
const WIDTH: f32 = 440.0;
/// Cells of few classes grow no larger than this.
const LARGEST_CELL: f32 = 72.0;

/// The matrix drawn; a row per true class, a column per predicted one.
///
/// Cells are shaded by their share of their row. Names and numbers are left out where there are
/// too many classes to read them.
pub(super) fn confusion_matrix(confusion: &Confusion, classes: &[&str]) -> Svg {
    let count = classes.len().max(1) as f32;
    let longest = classes.iter().map(|name| text_width(name)).fold(0.0, f32::max);
    let names = longest.min(LONGEST_NAME) + GAP;
    let fitting = |left: f32| ((WIDTH - left - GAP) / count).min(LARGEST_CELL);
    let named = fitting(LINE_HEIGHT + GAP + names) >= FONT_SIZE;
    let left = LINE_HEIGHT + GAP + if named { names } else { 0.0 };
    let cell = fitting(left);
    let side = cell * count;
    // Short names of wide columns are read without turning the head.
    let upright = longest + GAP <= cell;
    let top = GAP + LINE_HEIGHT + GAP;
    let below = match (named, upright) {
        (false, _) => 0.0,
        (true, true) => LINE_HEIGHT,
        (true, false) => names,
    };
    let mut svg = Svg::new(WIDTH, top + side + GAP + below + LINE_HEIGHT + GAP);
    let centred = TextStyle { anchor: Anchor::Middle, ..TextStyle::default() };
    let axis = TextStyle { paint: Paint::Soft, ..centred };
    let title = TextStyle { bold: true, ..TextStyle::default() };
    svg.text((GAP, GAP + LINE_HEIGHT / 2.0), "Confusion matrix", title);
    let (across, down) = (left + side / 2.0, top + side / 2.0);
    let foot = svg.height - GAP - LINE_HEIGHT / 2.0;
    // The words of the axis need more room than the cells of two short classes.
    let half = text_width("predicted class") / 2.0;
    svg.text((across.max(half), foot), "predicted class", axis);
    svg.text((LINE_HEIGHT / 2.0, down), "true class", TextStyle { upward: true, ..axis });
    for (row, counts) in confusion.counts().iter().enumerate() {
        let total = counts.iter().sum::<u64>().max(1);
        let y = top + row as f32 * cell;
        for (column, &times) in counts.iter().enumerate() {
            let share = times as f32 / total as f32;
            draw_cell(&mut svg, (left + column as f32 * cell, y), cell, times, share);
        }
        if named {
            let name = fit_text(classes[row], LONGEST_NAME);
            let style = TextStyle { anchor: Anchor::End, ..TextStyle::default() };
            svg.text((left - GAP, y + cell / 2.0), &name, style);
            let middle = left + (row as f32 + 0.5) * cell;
            let below_cells = top + side + GAP / 2.0;
            let (y, style) = match upright {
                true => (below_cells + LINE_HEIGHT / 2.0, centred),
                false => (below_cells, TextStyle { upward: true, ..style }),
            };
            svg.text((middle, y), &name, style);
        }
    }
    svg
}

fn draw_cell(svg: &mut Svg, (x, y): (f32, f32), side: f32, times: u64, share: f32) {
    // A gap between cells large enough to spare a pixel.
    let inner = if side > 8.0 { side - 1.5 } else { side };
    match times {
        0 => svg.rect((x, y), (inner, inner), Paint::Line, 0.35),
        _ => svg.rect((x, y), (inner, inner), Paint::Curve(0), 0.15 + 0.85 * share),
    }
    let number = times.to_string();
    if times > 0 && text_width(&number) + 2.0 <= side {
        let paint = if share > 0.5 { Paint::Card } else { Paint::Ink };
        let style = TextStyle { paint, anchor: Anchor::Middle, ..TextStyle::default() };
        svg.text((x + inner / 2.0, y + inner / 2.0), &number, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confusion(classes: usize) -> Confusion {
        let mut confusion = Confusion::new(classes);
        (0..classes).for_each(|class| confusion.accumulate(class, class));
        confusion.accumulate(0, classes - 1);
        confusion
    }

    #[test]
    fn few_classes_are_named_and_counted_and_their_names_escaped() {
        let svg = confusion_matrix(&confusion(2), &["a<b", "c"]).inline();
        assert_eq!(svg.matches("a&lt;b").count(), 2);
        assert!(!svg.contains("a<b"));
        assert_eq!(svg.matches("<rect ").count(), 4);
        assert_eq!(svg.matches(">1</text>").count(), 3);
    }

    #[test]
    fn hundreds_of_classes_are_a_picture_without_words() {
        let names: Vec<String> = (0..200).map(|class| format!("class {class}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let svg = confusion_matrix(&confusion(200), &names);
        assert!(!svg.inline().contains("class 7"));
        assert!(svg.width == WIDTH && svg.height < 500.0, "{} {}", svg.width, svg.height);
    }

    #[test]
    fn long_names_and_many_classes_stay_inside() {
        for count in [1, 2, 5, 20, 40] {
            let names: Vec<String> =
                (0..count).map(|i| format!("a very long class name {i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut found = Confusion::new(count);
            found.accumulate(0, 0);
            let svg = confusion_matrix(&found, &names).inline();
            let rights = svg.lines().filter_map(|line| {
                let number =
                    |name: &str| line.split(name).nth(1)?.split('"').next()?.parse::<f32>().ok();
                line.starts_with("<rect").then(|| Some(number(" x=\"")? + number(" width=\"")?))?
            });
            assert!(rights.clone().count() == count * count);
            assert!(rights.fold(0.0, f32::max) <= WIDTH, "{count}");
        }
    }
}
