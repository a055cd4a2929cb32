//! Validation splits and folds, by the published algorithm.
//!
//! ```text
//! samples by class ─▶ shuffle each class ─▶ cut into chunks ─▶ fold i: valid = chunk i
//!                     (once per split)                         train = the chunks after it
//! ```
//!
//! The same seed gives the lists that came with the paper, in their order,
//! because the random numbers are Python's.

mod files;
mod mersenne;

pub use files::write_folds;

use std::mem;

use mersenne::Mersenne;

use super::{
    layout::Layout,
    manifest::{Dataset, Sample},
};
use crate::error::{Error, Result};

/// How often the published code shuffles a list to be sure that it is shuffled.
const SHUFFLES: usize = 1000;

/// How folds are drawn; the default is the published choice.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldPlan {
    /// Independent shuffles of the dataset.
    pub splits: usize,
    /// Folds per split.
    pub folds: usize,
    /// Share of each class that validates, in `(0, 1)`; rounded up to whole samples.
    pub fraction: f64,
    /// Root of every random draw.
    pub seed: u64,
    /// In which order classes are shuffled and joined.
    pub procedure: Procedure,
}

/// In which order classes are shuffled and joined: the paper has one per dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Procedure {
    /// All classes take turns, one shuffle each; the last class comes first in a list.
    Glas,
    /// One class after the other, two thousand shuffles each; lists follow the classes' order.
    Cub,
}

/// One way to divide samples, as indices in the order they are to be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the two splits")]
pub struct Fold {
    pub train: Vec<usize>,
    pub valid: Vec<usize>,
}

/// Divides samples into folds: `result[split][fold]`.
///
/// `classes` holds the indices of each class's samples, in file order.
pub fn folds(classes: &[Vec<usize>], plan: &FoldPlan) -> Vec<Vec<Fold>> {
    let random = &mut Mersenne::from_python_seed(plan.seed);
    // Later splits shuffle what earlier ones left, and all of that before any fold is cut:
    // the published lists depend on it.
    let mut classes = classes.to_vec();
    let shuffled: Vec<_> = (0..plan.splits)
        .map(|_| {
            plan.procedure.shuffle(&mut classes, random);
            classes.clone()
        })
        .collect();
    let cut = |classes: &Vec<Vec<usize>>| {
        (0..plan.folds).map(|fold| plan.cut(classes, fold, random)).collect()
    };
    shuffled.iter().map(cut).collect()
}

/// The classes that the paper would keep of `count`, in its order.
///
/// Of the 200 birds, seed 0 keeps the five of its CUB5.
pub fn choose_classes(count: usize, keep: usize, seed: u32) -> Vec<usize> {
    Mersenne::from_word(seed).choice(count, keep)
}

/// Gives `dataset` the validation split it lacks, taken from its training samples.
///
/// The samples are those of the first published fold for the same seed; what is
/// left of the training samples keeps its order. Each class keeps at least one
/// of them. A dataset that has a validation split is left alone, and so is any with a
/// `fraction` of 0, as methods ask for that choose nothing by validation.
pub fn cut_validation(dataset: &mut Dataset, fraction: f64, seed: u64) {
    if !dataset.valid.is_empty() || dataset.train.is_empty() || fraction == 0.0 {
        return;
    }
    let classes = by_class(&dataset.train, dataset.classes.len());
    let procedure = Procedure::of(dataset.layout);
    let plan = FoldPlan { splits: 1, folds: 1, fraction, seed, procedure };
    // The first split's shuffles come first, so one split is enough to know them.
    let valid = folds(&classes, &plan).swap_remove(0).swap_remove(0).valid;

    dataset.notes.push(format!(
        "no validation split found: {} of {} training samples ({} % of each class, seed {seed}) became one",
        valid.len(),
        dataset.train.len(),
        100.0 * fraction,
    ));
    for (name, samples) in dataset.classes.iter().zip(&classes) {
        if samples.len() == 1 {
            dataset.notes.push(format!("class `{name}` has one sample, kept for training"));
        }
    }
    let mut train: Vec<Option<Sample>> =
        mem::take(&mut dataset.train).into_iter().map(Some).collect();
    dataset.valid = valid.iter().filter_map(|&index| train[index].take()).collect();
    dataset.train = train.into_iter().flatten().collect();
}

/// Keeps the classes with these labels, which are numbered anew in the order given.
pub fn keep_classes(dataset: &mut Dataset, labels: &[usize]) {
    for samples in [&mut dataset.train, &mut dataset.valid, &mut dataset.test] {
        samples.retain_mut(|sample| {
            let label = labels.iter().position(|&label| label == sample.label);
            sample.label = label.unwrap_or(sample.label);
            label.is_some()
        });
    }
    dataset.classes = labels.iter().map(|&label| dataset.classes[label].clone()).collect();
}

/// Indices of each class's samples, in the order of `samples`.
pub fn by_class<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
    classes: usize,
) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); classes];
    for (index, sample) in samples.into_iter().enumerate() {
        groups[sample.label].push(index);
    }
    groups
}

impl FoldPlan {
    /// Rejects plans that could not be carried out; lists all problems.
    pub fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        if self.splits == 0 {
            problems.push("the number of splits must be at least 1".to_owned());
        }
        let in_range = self.fraction > 0.0 && self.fraction < 1.0;
        if !in_range {
            problems.push("the validation share must be in (0, 1)".to_owned());
        }
        let most = (1.0 / self.fraction - ROUNDING).ceil() as usize;
        if self.folds == 0 || (in_range && self.folds > most) {
            problems.push(format!(
                "the number of folds must be in 1..={most} for a validation share of {}",
                self.fraction
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Setting(problems)) }
    }

    /// How many of `count` samples of a class validate: rounded up, but one remains to learn from.
    pub fn valid_count(&self, count: usize) -> usize {
        let share = (self.fraction * count as f64 - ROUNDING).ceil() as usize;
        share.min(count.saturating_sub(1))
    }

    /// Into how many chunks a class of `count` samples is cut.
    ///
    /// With fewer chunks than folds, the later folds start over with the first chunk.
    pub fn chunk_count(&self, count: usize) -> usize {
        match self.valid_count(count) {
            0 => 1,
            size => count.div_ceil(size),
        }
    }

    fn cut(&self, classes: &[Vec<usize>], fold: usize, random: &mut Mersenne) -> Fold {
        let mut parts: Vec<_> = classes.iter().map(|class| self.cut_class(class, fold)).collect();
        if self.procedure == Procedure::Glas {
            parts.reverse();
        }
        let mut train: Vec<usize> = parts.iter().flat_map(|part| &part.train).copied().collect();
        let valid = parts.iter().flat_map(|part| &part.valid).copied().collect();
        for _ in 0..SHUFFLES {
            random.shuffle(&mut train);
        }
        Fold { train, valid }
    }

    /// Validates chunk `fold` and learns from the chunks after it, then those before it.
    fn cut_class(&self, samples: &[usize], fold: usize) -> Fold {
        let size = self.valid_count(samples.len());
        let start = size * (fold % self.chunk_count(samples.len()));
        let end = samples.len().min(start + size);
        let train = [&samples[end..], &samples[..start]].concat();
        Fold { train, valid: samples[start..end].to_vec() }
    }
}

/// Keeps `0.2 · 35`, a hair above 7 in floating point, from being rounded up to 8.
const ROUNDING: f64 = 1e-9;

impl Procedure {
    /// The procedure that the paper used for a layout, or would have.
    pub fn of(layout: Layout) -> Self {
        if layout == Layout::Glas { Self::Glas } else { Self::Cub }
    }

    fn shuffle(self, classes: &mut [Vec<usize>], random: &mut Mersenne) {
        match self {
            Self::Glas => {
                for _ in 0..SHUFFLES {
                    classes.iter_mut().for_each(|class| random.shuffle(class));
                }
            }
            Self::Cub => {
                for class in classes {
                    (0..2 * SHUFFLES).for_each(|_| random.shuffle(class));
                }
            }
        }
    }
}

impl Default for FoldPlan {
    fn default() -> Self {
        Self { splits: 2, folds: 5, fraction: 0.2, seed: 0, procedure: Procedure::Cub }
    }
}
