//! The confusion matrix as a picture: which class was taken for which.

use super::{
    canvas::{Area, Direction, INK, LINE_HEIGHT, WHITE, blend, fit_text, rgb, text_width},
    chart::scene::{Anchor, Label, Scene, Shape},
};
use crate::metrics::Confusion;

/// Space around everything, in pixels.
const GAP: u32 = 16;
/// Names are cut to this length.
const LONGEST_NAME: u32 = 180;
/// Cells from here on have room for a number.
const ROOMY_CELL: u32 = 40;
/// Matrices are about this large, whatever the number of classes.
const SIDE: u32 = 560;

/// The matrix, ready to be drawn; a row per true class, a column per predicted one.
///
/// Cells are shaded by their share of their row. Names and numbers are left out where there are
/// too many classes to read them.
#[derive(Debug, Clone, Copy)]
pub struct ConfusionChart<'a> {
    /// What was taken for what.
    pub confusion: &'a Confusion,
    /// The classes' names.
    pub classes: &'a [&'a str],
}

impl ConfusionChart<'_> {
    /// The matrix as the bytes of a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        self.scene().to_canvas().to_png()
    }

    /// The matrix as an SVG document.
    pub fn to_svg(&self) -> String {
        self.scene().to_svg()
    }

    fn scene(&self) -> Scene {
        let count = self.classes.len().max(1) as u32;
        let cell = (SIDE / count).clamp(2, 120);
        let named = cell >= LINE_HEIGHT;
        let longest = self.classes.iter().map(|name| text_width(name)).max().unwrap_or(0);
        let names = if named { longest.min(LONGEST_NAME) + GAP } else { 0 };
        let left = GAP + LINE_HEIGHT + GAP + names;
        let top = GAP + 2 * LINE_HEIGHT + GAP;
        let side = count * cell;
        let (width, height) = (left + side + GAP, top + side + names + LINE_HEIGHT + 2 * GAP);

        let middle = |start: u32, length: u32| (start as f32) + length as f32 / 2.0;
        let title = Label {
            bold: true,
            ..label((GAP as f32, middle(GAP, LINE_HEIGHT)), "Confusion matrix", Anchor::Start)
        };
        let below =
            label((middle(left, side), (height - GAP) as f32), "predicted class", Anchor::Middle);
        let beside =
            label((middle(GAP, LINE_HEIGHT), middle(top, side)), "true class", Anchor::Middle);
        let beside = Label { direction: Direction::Upward, ..beside };
        let mut shapes: Vec<Shape> = [title, below, beside].map(Shape::Label).into();
        for (row, counts) in self.confusion.counts().iter().enumerate() {
            let total = counts.iter().sum::<u64>().max(1);
            let y = top + row as u32 * cell;
            for (column, &times) in counts.iter().enumerate() {
                let x = left + column as u32 * cell;
                let share = times as f32 / total as f32;
                shapes.extend(drawn_cell((x, y), cell, times, share));
            }
            if named {
                let name = fit_text(self.classes[row], LONGEST_NAME);
                let at = ((left - GAP / 2) as f32, middle(y, cell));
                shapes.push(Shape::Label(label(at, &name, Anchor::End)));
                let at = (middle(left + row as u32 * cell, cell), (top + side + GAP / 2) as f32);
                let below = label(at, &name, Anchor::End);
                shapes.push(Shape::Label(Label { direction: Direction::Upward, ..below }));
            }
        }
        Scene { width: width.max(220), height, shapes }
    }
}

fn drawn_cell((x, y): (u32, u32), side: u32, times: u64, share: f32) -> Vec<Shape> {
    // A gap between cells large enough to spare a pixel.
    let inner = if side > 8 { side - 1 } else { side };
    let area = Area { x: x.into(), y: y.into(), width: inner, height: inner };
    let empty = rgb(0xf2_f2_f2);
    let colour = if times == 0 { empty } else { blend(rgb(0xd6_e6_f4), rgb(0x08_45_8c), share) };
    let mut shapes = vec![Shape::Block { area, colour }];
    if side >= ROOMY_CELL {
        let at = (x as f32 + side as f32 / 2.0, y as f32 + side as f32 / 2.0);
        let colour = if times > 0 && share > 0.5 { WHITE } else { INK };
        let number = label(at, &times.to_string(), Anchor::Middle);
        shapes.push(Shape::Label(Label { colour, ..number }));
    }
    shapes
}

fn label(at: (f32, f32), text: &str, anchor: Anchor) -> Label {
    let direction = Direction::Rightward;
    Label { at, text: text.to_owned(), colour: INK, anchor, direction, bold: false }
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
        let confusion = confusion(2);
        let svg = ConfusionChart { confusion: &confusion, classes: &["a<b", "c"] }.to_svg();
        assert_eq!(svg.matches("a&lt;b").count(), 2);
        assert!(!svg.contains("a<b"));
        assert_eq!(svg.matches("<rect x=").count(), 4);
        assert_eq!(svg.matches(">1</text>").count(), 3);
    }

    #[test]
    fn hundreds_of_classes_are_a_picture_without_words() {
        let names: Vec<String> = (0..200).map(|class| format!("class {class}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let confusion = confusion(200);
        let chart = ConfusionChart { confusion: &confusion, classes: &names };
        assert!(!chart.to_svg().contains("class 7"));
        let picture = image::load_from_memory(&chart.to_png()).unwrap();
        assert!(picture.width() < 700 && picture.height() < 700);
    }
}
