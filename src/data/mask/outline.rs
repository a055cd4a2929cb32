//! Masks given in a list as polygons or run lengths, as in COCO.
//!
//! They are drawn here and not by a crate, since the work that a hostile list can cause must be
//! bounded.

use std::{path::Path, sync::Arc};

use crate::error::{Error, Result};

/// The objects of an image, as given in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlines {
    /// The list that says so.
    pub list: Arc<Path>,
    /// The name of the image in the list.
    pub image: String,
    /// Width and height of the image, if the list has them.
    pub size: Option<(u32, u32)>,
    /// One per object.
    pub objects: Vec<Outline>,
}

/// Where one object is.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The pixels it covers.
    pub shape: Shape,
    /// Whether it is an area with many objects, which is not scored.
    pub is_crowd: bool,
}

/// Pixels of an image.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Those whose centres are in one of the polygons.
    ///
    /// A polygon is `x, y, x, y, …` in pixels from the upper left corner of the image; where it
    /// crosses itself, what is enclosed twice is outside.
    Polygons(Vec<Vec<f32>>),
    /// Those in every second run, down the columns of an image of this width and height.
    Runs((u32, u32), Vec<u32>),
}

/// Pixels that may be drawn for an image, plus a multiple of its own number of pixels: far more
/// than annotators draw.
const WORK: u64 = 1 << 26;
const TIMES_COVERED: u64 = 256;
/// A crossing of a line with a row is remembered and sorted, and costs as many pixels.
const CROSSING: u64 = 256;

impl Outlines {
    /// Marks the objects in `foreground`, and areas that are not scored in `undecided`.
    pub(super) fn draw(
        &self,
        size: (u32, u32),
        foreground: &mut [bool],
        undecided: &mut [bool],
    ) -> Result<()> {
        let runs = self.objects.iter().filter_map(|object| match object.shape {
            Shape::Runs(size, _) => Some(size),
            Shape::Polygons(_) => None,
        });
        for (width, height) in runs.chain(self.size) {
            if (width, height) != size {
                let problem = format!(
                    "outlines of `{}` are of {width}×{height} pixels, its image has {}×{}",
                    self.image, size.0, size.1
                );
                return Err(Error::image(
                    &self.list,
                    problem,
                    "correct the list or replace the image",
                ));
            }
        }
        let mut canvas = Canvas { size, work: WORK + TIMES_COVERED * foreground.len() as u64 };
        for Outline { shape, is_crowd } in &self.objects {
            let marks = if *is_crowd { &mut *undecided } else { &mut *foreground };
            let drawn = match shape {
                Shape::Polygons(polygons) => {
                    polygons.iter().try_for_each(|polygon| canvas.fill(polygon, marks))
                }
                Shape::Runs(_, counts) => canvas.fill_runs(counts, marks),
            };
            if drawn.is_none() {
                let problem = format!("outlines of `{}` are too many to be drawn", self.image);
                return Err(Error::image(&self.list, problem, "leave the image out of the list"));
            }
        }
        Ok(())
    }
}

/// What is drawn on, and how much may still be drawn.
struct Canvas {
    size: (u32, u32),
    work: u64,
}

impl Canvas {
    /// Marks the pixels whose centres are in a polygon; nothing if that is too much work.
    fn fill(&mut self, polygon: &[f32], marks: &mut [bool]) -> Option<()> {
        let (width, height) = (f64::from(self.size.0), f64::from(self.size.1));
        let points: Vec<[f64; 2]> =
            polygon.chunks_exact(2).map(|point| [point[0].into(), point[1].into()]).collect();
        // The first pixel whose centre is not before a place, within the image.
        let pixel = |place: f64, end: f64| (place - 0.5).ceil().clamp(0.0, end) as u32;
        let mut crossings: Vec<(u32, u32)> = Vec::new();
        for (index, &[x0, y0]) in points.iter().enumerate() {
            let [x1, y1] = points[(index + 1) % points.len()];
            let rows = pixel(y0.min(y1), height)..pixel(y0.max(y1), height);
            self.spend(rows.len() as u64 * CROSSING)?;
            crossings.extend(rows.map(|row| {
                let down = (f64::from(row) + 0.5 - y0) / (y1 - y0);
                (row, pixel(x0 + down * (x1 - x0), width))
            }));
        }
        crossings.sort_unstable();
        // A closed line crosses each row an even number of times.
        for pair in crossings.chunks_exact(2) {
            let [(row, from), (_, to)] = [pair[0], pair[1]];
            self.spend(u64::from(to - from))?;
            let start = row as usize * self.size.0 as usize;
            marks[start + from as usize..start + to as usize].fill(true);
        }
        Some(())
    }

    /// Marks every second run down the columns.
    fn fill_runs(&mut self, counts: &[u32], marks: &mut [bool]) -> Option<()> {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        let mut place = 0;
        for (index, &count) in counts.iter().enumerate() {
            let end = place + count as usize;
            if index % 2 == 1 {
                self.spend(count.into())?;
                for at in place..end {
                    marks[at % height * width + at / height] = true;
                }
            }
            place = end;
        }
        Some(())
    }

    fn spend(&mut self, work: u64) -> Option<()> {
        self.work = self.work.checked_sub(work)?;
        Some(())
    }
}

impl Shape {
    /// Polygons as a list has them; the problem if they are none.
    pub fn polygons(polygons: Vec<Vec<f32>>) -> Result<Self, &'static str> {
        if polygons.iter().any(|polygon| polygon.len() % 2 != 0) {
            return Err("a polygon has an odd number of coordinates");
        }
        if polygons.iter().flatten().any(|coordinate| !coordinate.is_finite()) {
            return Err("a polygon has a coordinate that is no number");
        }
        Ok(Self::Polygons(polygons))
    }

    /// Run lengths as a list has them; the problem if they do not fill the image.
    pub fn runs(size: (u32, u32), counts: &[u64]) -> Result<Self, &'static str> {
        const OTHER: &str = "the run lengths do not add up to the pixels of the image";
        let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if sum != Some(u64::from(size.0) * u64::from(size.1)) {
            return Err(OTHER);
        }
        let counts: Result<_, _> = counts.iter().map(|&count| u32::try_from(count)).collect();
        Ok(Self::Runs(size, counts.map_err(|_| OTHER)?))
    }

    /// Run lengths in COCO's compressed form: differences to the count before the last, in groups
    /// of five bits with the lowest first, each group a letter from `0` on.
    pub fn compressed_runs(size: (u32, u32), text: &str) -> Result<Self, &'static str> {
        const DAMAGED: &str = "the compressed run lengths are damaged";
        // More bits than any count of pixels needs.
        const BITS: u32 = 50;
        let mut counts: Vec<u64> = Vec::new();
        let (mut value, mut shift) = (0_i64, 0);
        for letter in text.bytes() {
            let group = letter.checked_sub(48).filter(|group| *group < 64).ok_or(DAMAGED)?;
            value |= i64::from(group & 0x1f) << shift;
            shift += 5;
            if group & 0x20 != 0 {
                if shift > BITS {
                    return Err(DAMAGED);
                }
                continue;
            }
            // The highest bit of the last group is the sign.
            if group & 0x10 != 0 {
                value |= -1 << shift;
            }
            let before = if counts.len() > 2 { counts[counts.len() - 2] } else { 0 };
            counts.push(before.checked_add_signed(value).ok_or(DAMAGED)?);
            (value, shift) = (0, 0);
        }
        if shift > 0 {
            return Err(DAMAGED);
        }
        Self::runs(size, &counts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(size: (u32, u32), objects: Vec<Outline>) -> Result<[Vec<bool>; 2]> {
        let mut marks = [(); 2].map(|()| vec![false; (size.0 * size.1) as usize]);
        let [foreground, undecided] = &mut marks;
        let (list, image) = (Arc::from(Path::new("list.json")), "a.jpg".to_owned());
        Outlines { list, image, size: None, objects }.draw(size, foreground, undecided)?;
        Ok(marks)
    }

    fn object(shape: Shape) -> Outline {
        Outline { shape, is_crowd: false }
    }

    /// Rows of `#` and `.`.
    fn picture(width: u32, marks: &[bool]) -> Vec<String> {
        let row = |row: &[bool]| row.iter().map(|mark| if *mark { '#' } else { '.' }).collect();
        marks.chunks(width as usize).map(row).collect()
    }

    fn polygons(size: (u32, u32), polygons: &[&[f32]]) -> Vec<String> {
        let polygons = polygons.iter().map(|polygon| polygon.to_vec()).collect();
        let objects = vec![object(Shape::polygons(polygons).unwrap())];
        picture(size.0, &drawn(size, objects).unwrap()[0])
    }

    #[test]
    fn a_polygon_covers_the_pixels_whose_centres_it_encloses() {
        let square = [1.0, 1.0, 3.0, 1.0, 3.0, 2.0, 1.0, 2.0];
        assert_eq!(polygons((4, 3), &[&square]), ["....", ".##.", "...."]);
        // Centres of row y are at y + ½, where the hypotenuse is at x = 4 − y − ½.
        let triangle = [0.0, 0.0, 4.0, 0.0, 0.0, 4.0];
        assert_eq!(polygons((4, 4), &[&triangle]), ["###.", "##..", "#...", "...."]);
        let around = [-9.0, -9.0, 99.0, -9.0, 99.0, 99.0, -9.0, 99.0];
        assert_eq!(polygons((2, 2), &[&around]), ["##", "##"]);
        let slim = [0.6, 0.0, 1.4, 0.0, 1.4, 2.0, 0.6, 2.0];
        assert_eq!(polygons((2, 2), &[&slim]), ["..", ".."], "no centre is in it");
        assert_eq!(polygons((2, 1), &[&[0.0, 0.0, 2.0, 1.0], &[], &[1.0, 1.0]]), [".."]);
    }

    #[test]
    fn polygons_are_united_and_neighbours_share_no_pixel() {
        let left = [0.0, 0.0, 1.5, 0.0, 1.5, 1.0, 0.0, 1.0];
        let right = [1.5, 0.0, 3.0, 0.0, 3.0, 1.0, 1.5, 1.0];
        assert_eq!(polygons((3, 1), &[&left]), ["#.."]);
        assert_eq!(polygons((3, 1), &[&right]), [".##"]);
        assert_eq!(polygons((3, 1), &[&left, &right, &left]), ["###"]);
        // A line that crosses itself as an hourglass does.
        let hourglass = [0.0, 0.0, 4.0, 0.0, 0.0, 4.0, 4.0, 4.0];
        assert_eq!(polygons((4, 4), &[&hourglass]), ["###.", ".#..", ".#..", "###."]);
    }

    #[test]
    fn runs_go_down_the_columns_and_crowds_are_undecided() {
        // Down: .## #.. , as pycocotools writes `size` [3, 2].
        let runs = Shape::runs((2, 3), &[1, 3, 2]).unwrap();
        let crowd = Outline { shape: Shape::runs((2, 3), &[0, 1, 5]).unwrap(), is_crowd: true };
        let [foreground, undecided] = drawn((2, 3), vec![object(runs.clone()), crowd]).unwrap();
        assert_eq!(picture(2, &foreground), [".#", "#.", "#."]);
        assert_eq!(picture(2, &undecided), ["#.", "..", ".."]);
        assert_eq!(Shape::compressed_runs((2, 3), "132").unwrap(), runs);
        let message = drawn((3, 2), vec![object(runs)]).unwrap_err().to_string();
        assert!(message.contains("`a.jpg` are of 2×3 pixels, its image has 3×2"), "{message}");
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert!(Shape::polygons(vec![vec![1.0, 2.0, 3.0]]).is_err());
        assert!(Shape::polygons(vec![vec![1.0, f32::INFINITY]]).is_err());
        assert!(Shape::runs((2, 3), &[1, 3]).is_err());
        assert!(Shape::runs((2, 3), &[u64::MAX, 7]).is_err());
        for text in ["132132", "o", "~", "13\u{e9}", "oooooooooooooooooooooooooooo0", "O"] {
            assert!(Shape::compressed_runs((2, 3), text).is_err(), "{text}");
        }
        let zigzag = (0..4_000).flat_map(|at| [0.0, (at % 2 * 8_000) as f32]).collect();
        let endless = object(Shape::polygons(vec![zigzag]).unwrap());
        let message = drawn((1, 8_000), vec![endless]).unwrap_err().to_string();
        assert!(message.contains("`a.jpg` are too many to be drawn"), "{message}");
    }

    #[test]
    fn every_mask_of_pycocotools_is_read_as_it_was() {
        let vectors = include_str!("../../../tests/it/fixtures/formats/coco_rle.json");
        let vectors: Vec<serde_json::Value> = serde_json::from_str(vectors).unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let rows: Vec<String> = serde_json::from_value(vector["mask"].clone()).unwrap();
            let size = (rows[0].len() as u32, rows.len() as u32);
            let text = vector["counts"].as_str().unwrap();
            let runs = Shape::compressed_runs(size, text).unwrap();
            assert_eq!(picture(size.0, &drawn(size, vec![object(runs)]).unwrap()[0]), rows);
        }
    }

    proptest! {
        #[test]
        fn any_text_and_any_polygon_are_drawn_or_refused(
            text in ".{0,40}", coordinates in prop::collection::vec(any::<f32>(), 0..40),
        ) {
            let shapes = [Shape::compressed_runs((5, 7), &text), Shape::polygons(vec![coordinates])];
            for shape in shapes.into_iter().flatten() {
                drawn((5, 7), vec![object(shape)]).unwrap();
            }
        }
    }
}
