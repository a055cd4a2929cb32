//! Datasets and their samples.
//!
//! Every layout is read into a [`Dataset`]. It has file names and labels but no pixels, which are
//! read by [`image`](crate::data::image)
//! and [`mask`](crate::data::mask).

use std::{collections::BTreeSet, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    layout::Layout,
    mask::{MaskRule, Outlines},
    problem::{self, Problem, quoted},
};
use crate::error::{Error, Result};

/// A split of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Learned from.
    Train,
    /// Chooses the epoch to keep.
    Valid,
    /// Scored, once.
    Test,
}

/// One labelled image.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Name within the dataset, unique; the image's path relative to the root, with `/`.
    pub id: String,
    /// The image file.
    pub image: PathBuf,
    /// Index into [`Dataset::classes`].
    pub label: usize,
    /// The ground truth of localization; training by labels never has access to it.
    pub truth: Truth,
}

/// The ground truth of localization.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// Mask files whose union is the foreground; none if the sample has no mask file.
    pub masks: Vec<PathBuf>,
    /// Polygons or run lengths of the objects, if a list has them instead of mask files.
    pub outlines: Option<Outlines>,
    /// Pixels set in this mask file are not scored, unless a mask marks them.
    pub ignore: Option<PathBuf>,
    /// Object boxes, if the dataset lists them.
    pub boxes: Vec<PixelBox>,
}

/// A box in pixels: `x0 ≤ x < x1`, `y0 ≤ y < y1`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the type's line says what the fields are")]
pub struct PixelBox {
    pub x0: f32,
    pub y0: f32,
    pub x1: f32,
    pub y1: f32,
}

/// A dataset as it was found on disk.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// How it was read.
    pub layout: Layout,
    /// Where it was found.
    pub root: PathBuf,
    /// Class names; a label is an index into them.
    pub classes: Vec<String>,
    /// What counts as foreground in its mask files.
    pub mask_rule: MaskRule,
    /// Samples to learn from.
    pub train: Vec<Sample>,
    /// Samples that choose the epoch to keep; empty if the dataset has no such split.
    pub valid: Vec<Sample>,
    /// Samples to score.
    pub test: Vec<Sample>,
    /// What the user should know about how the dataset was read.
    pub notes: Vec<String>,
    /// All problems found while reading it; the files or rows concerned are left out.
    pub problems: Vec<Problem>,
}

impl PixelBox {
    /// The box of `x, y, width, height`; none of anything else.
    pub(super) fn of_corner_and_size(numbers: &[f32]) -> Option<Self> {
        match *numbers {
            [x, y, width, height] if numbers.iter().all(|number| number.is_finite()) => {
                Some(Self { x0: x, y0: y, x1: x + width, y1: y + height })
            }
            _ => None,
        }
    }
}

impl Truth {
    /// Whether there is ground truth for every pixel.
    pub fn has_mask(&self) -> bool {
        !self.masks.is_empty() || self.outlines.is_some()
    }
}

impl Split {
    /// All splits, in the order they are used.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Dataset {
    /// Refuses, before training, a dataset with problems that training cannot work around.
    pub fn require_usable(&self) -> Result<()> {
        let fatal = self.problems.iter().filter(|problem| problem.kind.is_fatal());
        let mut problems: Vec<_> = problem::group(fatal).iter().map(ToString::to_string).collect();
        if self.train.is_empty() {
            problems.push("there are no training images".to_owned());
        }
        if problems.is_empty() {
            return Ok(());
        }
        problems.push("hint: `pinpoint data check --all` lists every one".to_owned());
        Err(Error::Dataset { path: self.root.clone(), problems })
    }

    /// Renumbers the classes by their place in `classes`, some of which the dataset may lack.
    ///
    /// A run can be scored on any dataset whose classes it was trained on. A class that is not in
    /// `classes` is refused by name.
    pub fn number_classes_as(&mut self, classes: &[String]) -> Result<()> {
        let number = |name: &String| classes.iter().position(|known| known == name);
        let numbers: Vec<Option<usize>> = self.classes.iter().map(number).collect();
        let labels: BTreeSet<usize> = self.samples().map(|(_, sample)| sample.label).collect();
        // Classes without images do not matter.
        let unknown = labels.iter().filter(|label| numbers[**label].is_none());
        let unknown = quoted(unknown.map(|label| &self.classes[*label]));
        if !unknown.is_empty() {
            let known = quoted(classes);
            let problem = format!(
                "the dataset has classes that the run was not trained on: {unknown}; it knows \
                 {known}"
            );
            let remedy = "leave these images out, or call their classes as the run does";
            return Err(Error::data(&self.root, problem, remedy));
        }
        for sample in self.train.iter_mut().chain(self.valid.iter_mut()).chain(self.test.iter_mut())
        {
            sample.label = numbers[sample.label].expect("unknown classes were refused");
        }
        self.classes = classes.to_vec();
        Ok(())
    }

    /// All samples with their splits, in the order of [`Split::ALL`].
    pub fn samples(&self) -> impl Iterator<Item = (Split, &Sample)> {
        Split::ALL.into_iter().flat_map(|split| self.split(split).iter().map(move |s| (split, s)))
    }

    /// How many samples of each class a split has, by label.
    pub fn class_counts(&self, split: Split) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        for sample in self.split(split) {
            counts[sample.label] += 1;
        }
        counts
    }

    /// The samples of one split.
    pub fn split(&self, split: Split) -> &[Sample] {
        match split {
            Split::Train => &self.train,
            Split::Valid => &self.valid,
            Split::Test => &self.test,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::data::layout::tree::Tree;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn some_of_the_classes_of_a_run_get_its_numbers() {
        let tree = Tree::new().png("cat/1.png", 4, 4).png("dog/2.png", 4, 4);
        let mut dataset = tree.open().unwrap();
        dataset.number_classes_as(&names(&["ant", "dog", "cat"])).unwrap();
        assert_eq!(dataset.classes, ["ant", "dog", "cat"]);
        assert_eq!(dataset.train.iter().map(|s| s.label).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_class_that_a_run_does_not_know_is_refused_by_name_unless_it_is_empty() {
        let tree = Tree::new().png("cat/1.png", 4, 4).png("dog/2.png", 4, 4).folder("emu");
        let mut dataset = tree.open().unwrap();
        dataset.number_classes_as(&names(&["cat", "dog"])).unwrap();
        let mut dataset = tree.open().unwrap();
        let message = dataset.number_classes_as(&names(&["cat", "ant"])).unwrap_err().to_string();
        assert!(message.contains("not trained on: `dog`"), "{message}");
        assert_eq!(dataset.classes, ["cat", "dog", "emu"], "left as it was");
    }
}
