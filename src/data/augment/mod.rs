//! Seeded random variation of training images.
//!
//! All random choices for a sample are drawn first, as a [`Variation`], which is then applied
//! deterministically. Each choice is drawn whether or not it is
//! switched on, so that switching one variation on or off leaves the others as
//! they were.

mod affine;
mod colour;

use std::path::Path;

use image::RgbImage;

pub use affine::Affine;
pub use colour::ColourStep;

use super::preprocess::{Planes, Size, reflected_run};
use crate::{
    config::{AugmentConfig, PreprocessConfig},
    error::{Error, Result},
    rng::Stream,
};

/// All random choices for one sample in one epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Variation {
    /// The part of the reflect-padded image that is cropped.
    pub window: Window,
    /// Whether left and right are exchanged.
    pub mirrored: bool,
    /// Whether top and bottom are exchanged.
    pub upside_down: bool,
    /// Anticlockwise turns by 90°, 0 to 3.
    pub quarter_turns: usize,
    /// Rotation, shear and scaling.
    pub affine: Option<Affine>,
    /// Changes of colour, each kind at most once, in the order they are made.
    pub colours: Vec<ColourStep>,
}

/// A square part of the reflect-padded image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First row, relative to the image: negative in the padding above it.
    pub top: i64,
    /// First column, relative to the image: negative in the padding left of it.
    pub left: i64,
    /// Width and height.
    pub side: usize,
}

impl Variation {
    /// Draws the variation of an image of `size`, which must [fit the crop](check_crop).
    pub fn draw(
        size: Size,
        preprocess: &PreprocessConfig,
        augment: &AugmentConfig,
        stream: &mut Stream,
    ) -> Self {
        let window = Window::draw(size, preprocess, stream);
        let mirrored = stream.chance(augment.horizontal_flip);
        let upside_down = stream.chance(augment.vertical_flip);
        let turns = stream.below(4);
        let affine = Affine::draw(augment.affine.as_ref(), stream);
        let colours = ColourStep::draw_all(augment, stream);
        let quarter_turns = if augment.quarter_turns { turns } else { 0 };
        Self { window, mirrored, upside_down, quarter_turns, affine, colours }
    }

    /// Cuts the window out of `image` and varies it.
    pub fn apply(&self, image: &RgbImage) -> Planes {
        let mut planes = self.place(image);
        if let Some(affine) = &self.affine {
            planes = affine.apply(&planes);
        }
        self.colours.iter().for_each(|step| step.apply(&mut planes));
        planes
    }

    /// Padding, crop, flips and turns: one copy of the pixels, two for odd turns.
    fn place(&self, image: &RgbImage) -> Planes {
        let Window { top, left, side } = self.window;
        let mut rows = reflected_run(top, side, image.height() as usize);
        let mut columns = reflected_run(left, side, image.width() as usize);
        if self.mirrored {
            columns.reverse();
        }
        if self.upside_down {
            rows.reverse();
        }
        // A turn anticlockwise is a mirroring followed by a transposition:
        // the right column, read downwards, becomes the top row.
        let odd_turn = self.quarter_turns % 2 == 1;
        if matches!(self.quarter_turns, 1 | 2) {
            columns.reverse();
        }
        if matches!(self.quarter_turns, 2 | 3) {
            rows.reverse();
        }
        let planes = Planes::gather(image, &rows, &columns);
        if odd_turn { planes.transposed() } else { planes }
    }
}

impl Window {
    fn draw(size: Size, preprocess: &PreprocessConfig, stream: &mut Stream) -> Self {
        let side = preprocess.crop as usize;
        let mut start = |length: u32| {
            let padding = padding(length, preprocess.train_padding);
            let positions = length as usize + 2 * padding + 1 - side;
            stream.below(positions) as i64 - padding as i64
        };
        let top = start(size.height);
        let left = start(size.width);
        Self { top, left, side }
    }
}

/// Reflected pixels added at each end of a side, always fewer than the side has.
fn padding(length: u32, fraction: f64) -> usize {
    (f64::from(length) * fraction) as usize
}

/// Refuses an image that is smaller than the training crop even after padding.
pub fn check_crop(path: &Path, size: Size, preprocess: &PreprocessConfig) -> Result<()> {
    let padded = |length: u32| length as usize + 2 * padding(length, preprocess.train_padding);
    let (width, height) = (padded(size.width), padded(size.height));
    let crop = preprocess.crop;
    if width.min(height) >= crop as usize {
        return Ok(());
    }
    let problem = format!(
        "image is {}×{} pixels, {width}×{height} with padding, too small for a crop of \
         {crop}×{crop}",
        size.width, size.height
    );
    let remedy = "raise `preprocess.upscale_short_side` or `preprocess.train_padding`, or lower \
                  `preprocess.crop`";
    Err(Error::image(path, problem, remedy))
}

#[cfg(test)]
mod tests {
    use image::Rgb;
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Purpose;

    const STILL: Variation = Variation {
        window: Window { top: 0, left: 0, side: 2 },
        mirrored: false,
        upside_down: false,
        quarter_turns: 0,
        affine: None,
        colours: Vec::new(),
    };

    /// Red channel of `variation` applied to the square `0 1 / 2 3`.
    fn placed(variation: Variation) -> Vec<u8> {
        let image = RgbImage::from_fn(2, 2, |x, y| Rgb([(2 * y + x) as u8, 0, 0]));
        variation.apply(&image).channels()[0].to_vec()
    }

    #[test]
    fn flips_exchange_sides() {
        assert_eq!(placed(STILL), [0, 1, 2, 3]);
        assert_eq!(placed(Variation { mirrored: true, ..STILL }), [1, 0, 3, 2]);
        assert_eq!(placed(Variation { upside_down: true, ..STILL }), [2, 3, 0, 1]);
    }

    #[test]
    fn quarter_turns_go_anticlockwise() {
        assert_eq!(placed(Variation { quarter_turns: 1, ..STILL }), [1, 3, 0, 2]);
        assert_eq!(placed(Variation { quarter_turns: 2, ..STILL }), [3, 2, 1, 0]);
        assert_eq!(placed(Variation { quarter_turns: 3, ..STILL }), [2, 0, 3, 1]);
    }

    #[test]
    fn flips_come_before_turns() {
        let both = Variation { mirrored: true, quarter_turns: 1, ..STILL };
        assert_eq!(placed(both), [0, 2, 1, 3]);
    }

    #[test]
    fn half_of_a_glas_image_is_added_on_each_side() {
        let preprocess = PreprocessConfig { train_padding: 0.5, crop: 480, ..Default::default() };
        let size = Size { width: 775, height: 522 };
        let mut stream = Stream::new(0, Purpose::Augment, 0, 0);
        let windows: Vec<Window> =
            (0..40_000).map(|_| Window::draw(size, &preprocess, &mut stream)).collect();
        let range =
            |values: Vec<i64>| (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        // Padded 1549×1044: 1070 columns and 565 rows to start from.
        assert_eq!(range(windows.iter().map(|w| w.top).collect()), (-261, 303));
        assert_eq!(range(windows.iter().map(|w| w.left).collect()), (-387, 682));
    }

    #[test]
    fn a_crop_that_does_not_fit_is_refused_with_sizes_and_remedy() {
        let preprocess = PreprocessConfig { train_padding: 0.1, crop: 480, ..Default::default() };
        let size = Size { width: 600, height: 300 };
        let message =
            check_crop(Path::new("a/small.png"), size, &preprocess).unwrap_err().to_string();
        for part in ["a/small.png", "600×300", "720×360", "480×480", "`preprocess.crop`"] {
            assert!(message.contains(part), "{part} is missing: {message}");
        }
    }

    #[test]
    fn switching_one_variation_off_leaves_the_others_as_they_were() {
        let preprocess = PreprocessConfig { crop: 32, ..Default::default() };
        let size = Size { width: 99, height: 77 };
        let draw = |augment: &AugmentConfig| {
            Variation::draw(size, &preprocess, augment, &mut Stream::new(5, Purpose::Augment, 1, 2))
        };
        let all =
            AugmentConfig { brightness: 0.5, hue: 0.1, quarter_turns: true, ..Default::default() };
        let turned = draw(&all);
        let unturned = draw(&AugmentConfig { quarter_turns: false, ..all });
        assert_eq!(Variation { quarter_turns: 0, ..turned }, unturned);
    }

    proptest! {
        #[test]
        fn a_crop_of_the_padded_image_is_what_numpy_would_cut_out(
            (width, height) in (3_u32..40, 3_u32..40), seed: u64,
        ) {
            let preprocess = PreprocessConfig { train_padding: 0.9, crop: 3, ..Default::default() };
            let size = Size { width, height };
            let mut stream = Stream::new(seed, Purpose::Augment, 0, 0);
            let window = Window::draw(size, &preprocess, &mut stream);
            let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 0]));
            let crop = Variation { window, ..STILL }.apply(&image);

            let mirror = |position: i64, length: u32| {
                let last = i64::from(length) - 1;
                (last - (last - position.abs()).abs()) as u8
            };
            for (i, (&r, &g)) in crop.channels()[0].iter().zip(crop.channels()[1]).enumerate() {
                let (x, y) = (window.left + i as i64 % 3, window.top + i as i64 / 3);
                prop_assert_eq!((r, g), (mirror(x, width), mirror(y, height)));
            }
        }
    }
}
