//! A labelled dataset with exact masks, drawn in code.
//!
//! The classes differ in the object alone, its outline and texture. Size,
//! number, place, orientation, colours and contrast of the objects, the
//! background, and the plain things lying around vary in the same way for all
//! of them, so a network can only learn the label by looking at the object.
//!
//! ```text
//! (seed, split, index) ─▶ scene ─▶ canvas ─▶ image, mask ─▶ write, sheet
//!                           ▲
//!      label = index mod classes ─▶ class
//! ```

mod canvas;
mod class;
mod scene;
mod sheet;
mod write;

pub use sheet::contact_sheet;
pub use write::write;

use image::RgbImage;

use super::{manifest::Split, mask::Mask};
use crate::{
    error::{Error, Result},
    rng::{Purpose, Stream},
};
use class::{CLASSES, ObjectClass};

/// Which pictures to draw; equal specifications give equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticSpec {
    /// Number of classes, from 2 to 8.
    pub classes: usize,
    /// Number of training images.
    pub train: usize,
    /// Number of validation images.
    pub valid: usize,
    /// Number of test images.
    pub test: usize,
    /// Side of the square images, in pixels.
    pub side: u32,
    /// Root of every random draw.
    pub seed: u64,
}

/// One drawn picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticSample {
    /// The picture.
    pub image: RgbImage,
    /// Where its objects are, as far as they can be seen.
    pub mask: Mask,
    /// Index into [`SyntheticSpec::class_names`].
    pub label: usize,
}

impl SyntheticSpec {
    /// Enough for a small network to learn from within a minute.
    pub fn small() -> Self {
        Self { classes: 4, train: 256, valid: 64, test: 128, side: 64, seed: 0 }
    }

    /// As large as a small real dataset.
    pub fn large() -> Self {
        Self { classes: 8, train: 2000, valid: 400, test: 800, side: 256, seed: 0 }
    }

    /// Rejects what cannot be drawn; lists all problems.
    pub fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        if !(2..=CLASSES.len()).contains(&self.classes) {
            problems.push(format!("the number of classes must be in 2..={}", CLASSES.len()));
        }
        if !(32..=4096).contains(&self.side) {
            problems.push("the size must be in 32..=4096 pixels".to_owned());
        }
        if self.train < self.classes {
            problems.push("there must be a training image of each class".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Setting(problems)) }
    }

    /// The classes' names, by label: in the order in which folders of these names are read.
    pub fn class_names(&self) -> Vec<&'static str> {
        self.object_classes().iter().map(|class| class.name).collect()
    }

    fn object_classes(&self) -> Vec<&'static ObjectClass> {
        let mut chosen: Vec<_> = CLASSES[..self.classes].iter().collect();
        chosen.sort_by_key(|class| class.name);
        chosen
    }

    /// Number of images of a split.
    pub fn count(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train,
            Split::Valid => self.valid,
            Split::Test => self.test,
        }
    }

    /// Draws one image, whatever the number of others.
    pub fn draw(&self, split: Split, index: usize) -> SyntheticSample {
        let stream = &mut Stream::new(self.seed, Purpose::Synthetic, split as u64, index as u64);
        // Classes take turns, so their sizes differ by at most one.
        let label = index % self.classes;
        let canvas = scene::paint(self.side, self.object_classes()[label], stream);
        let grain = stream.between(0.0, 0.05);
        let (image, mask) = canvas.render(grain, stream);
        SyntheticSample { image, mask, label }
    }
}
