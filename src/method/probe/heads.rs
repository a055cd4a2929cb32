//! The heads that make masks: teachers and then students are trained, and the students' mean logit
//! is mixed with the discriminant of the image.

use rayon::prelude::*;

use super::{
    cells::{ImageCells, LabelledCells},
    discriminant::{CellFeatures, standardized},
    features::StageMap,
    held_out, mask_head,
    mlp::Mlp,
    pooled::{LinearMask, MaskTraining, Pooled},
    student::{self, StudentTraining},
    vector::{add_scaled, sigmoid},
};
use crate::{
    config::{ProbeConfig, Teachers},
    stats::{CutRule, Decidability, cut, explained, skewness},
};

const MASK_HEAD: MaskTraining = MaskTraining {
    steps: 250,
    images: 32,
    cells: 400,
    learning_rate: 5e-3,
    weight_decay: 1e-2,
    size_weight: 0.2,
    expected_area: 0.2,
};

/// In each step, each half of the images is held out once.
pub(super) const HELD_OUT: MaskTraining = MaskTraining {
    steps: 150,
    images: 256,
    cells: 400,
    learning_rate: 1e-2,
    weight_decay: 1e-3,
    size_weight: 0.2,
    expected_area: 0.2,
};

const STUDENT: StudentTraining = StudentTraining {
    steps: 300,
    images: 16,
    cells: 96,
    learning_rate: 2e-3,
    weight_decay: 1e-2,
    width: 64,
    dropout: [0.1, 0.3],
};

/// Ridge of the regressions of held-out heads.
const RIDGE: f32 = 10.0;
/// Mean skewness of maps whose foreground is not small, measured on objects of many sizes.
const USUAL_SKEWNESS: f64 = 0.5;
/// Shares η of a map's variance that its cut explains. At `OVERLAPPING` and below, each side of the
/// cut has a spread of its own (α = 1 − β); at `DISTINCT` and above, both have the same (α = 0).
/// They lie evenly around ¾, the share for evenly spread values.
const OVERLAPPING: f64 = 0.7;
const DISTINCT: f64 = 0.8;
/// Most images that heads are tested on, the first in random order, so that it takes seconds only.
pub(super) const TESTED_IMAGES: usize = 600;
/// The cut of an image lies at log-odds between minus and plus this.
pub(crate) const MAX_CUT: f32 = 1.0;

/// What masks are made by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MaskHeads {
    /// Networks that give the logit of foreground for each cell.
    pub(crate) students: Vec<Mlp>,
    /// How the scores of an image are cut, found from the maps of the training images.
    pub(crate) cut_rule: CutRule,
}

/// The scores of the cells of an image, and where they are cut.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScoredCells {
    pub(super) grid: [usize; 2],
    /// Log-odds of foreground.
    pub(super) scores: Vec<f32>,
    pub(super) cut: f32,
}

impl MaskHeads {
    /// Trains all heads from labels alone.
    ///
    /// `goes_on` is told how many of all parts are done, and ends the training by `false`.
    /// Heads of a kind are trained in parallel, each on one thread, so that the number of
    /// threads changes nothing.
    pub(crate) fn train(
        cells: &LabelledCells,
        config: &ProbeConfig,
        seed: u64,
        mut goes_on: impl FnMut(usize, usize) -> bool,
    ) -> Option<Self> {
        let parts = 1 + config.generations;
        let mut begin = |part: usize| goes_on(part, parts).then_some(());
        begin(0)?;
        let teachers = TrainedTeachers::train(cells, config, seed);
        begin(1)?;
        let (mut sides, cut_rule) = teachers.teach(cells, config);
        let students = train_students(cells, &sides, config, seed, 0);
        let mut heads = Self { students, cut_rule };
        for generation in 1..config.generations {
            begin(1 + generation)?;
            // The masks of these students are the targets of the next ones.
            sides = (0..cells.images.len())
                .into_par_iter()
                .map(|image| {
                    let scores = heads.scores(&features(cells, image, config), config);
                    scores.iter().map(|&score| score >= 0.0).collect()
                })
                .collect();
            heads.students = train_students(cells, &sides, config, seed, generation as u64);
        }
        Some(heads)
    }

    /// The soft mask of a training image, on the grid of its kept cells.
    pub(crate) fn mask(
        &self,
        cells: &LabelledCells,
        image: usize,
        config: &ProbeConfig,
    ) -> StageMap {
        self.score(&features(cells, image, config), config).mask()
    }

    /// Scores cells and finds their cut, which is at most [`MAX_CUT`] away from even odds.
    pub(super) fn score(&self, features: &CellFeatures, config: &ProbeConfig) -> ScoredCells {
        let scores = self.scores(features, config);
        let cut = cut(&scores, self.cut_rule).map_or(0.0, |cut| cut.clamp(-MAX_CUT, MAX_CUT));
        ScoredCells { grid: features.grid, scores, cut }
    }

    fn scores(&self, features: &CellFeatures, config: &ProbeConfig) -> Vec<f32> {
        let logits =
            mean(self.students.iter().map(|student| student.apply(&features.cells).data.into()));
        features.mix_with_discriminant(&features.smooth(&logits), config.own_image as f32)
    }
}

impl ScoredCells {
    /// The probability of foreground, one half at the cut, as a map of one channel.
    pub(super) fn mask(&self) -> StageMap {
        let values = self.scores.iter().map(|score| sigmoid(score - self.cut)).collect();
        StageMap { grid: self.grid, channels: 1, values }
    }
}

/// Linear masks by kind; kinds have equal weight, however many heads there are of each.
struct TrainedTeachers(Vec<Vec<LinearMask>>);

impl TrainedTeachers {
    fn train(cells: &LabelledCells, config: &ProbeConfig, seed: u64) -> Self {
        let kinds: &[TrainTeacher] = match config.teachers {
            Teachers::Both => &[mask_head, held_out],
            Teachers::MaskHeads => &[mask_head],
            Teachers::HeldOut => &[held_out],
        };
        // One of each kind in turn, so that no thread is left with the slower kind.
        let train = |turn: usize| {
            let (index, kind) = (turn / kinds.len(), turn % kinds.len());
            kinds[kind](cells, seed, index as u64)
        };
        let heads = (0..config.heads * kinds.len()).into_par_iter().with_max_len(1);
        let heads: Vec<LinearMask> = heads.map(train).collect();
        let of_kind = |kind: usize| heads.iter().skip(kind).step_by(kinds.len()).cloned().collect();
        Self((0..kinds.len()).map(of_kind).collect())
    }

    /// Which cells of each training image are foreground, and the rule by which maps are cut.
    fn teach(&self, cells: &LabelledCells, config: &ProbeConfig) -> (Vec<Vec<bool>>, CutRule) {
        let images = 0..cells.images.len();
        let maps: Vec<Vec<f32>> = images
            .clone()
            .into_par_iter()
            .map(|image| self.map(&features(cells, image, config)))
            .collect();
        let skewness = mean_of(maps.par_iter().map(|map| Some(skewness(map))));
        let equal_spreads = cut_rule(skewness, 1.0);
        let maps: Vec<Vec<f32>> = images
            .into_par_iter()
            .zip(maps)
            .map(|(image, map)| {
                features(cells, image, config).sharpen(&map, equal_spreads, config.sharpening)
            })
            .collect();
        let explained =
            mean_of(maps.par_iter().map(|map| Some(explained(map, cut(map, equal_spreads)?))));
        let rule = cut_rule(skewness, explained);
        let sides = maps.par_iter().map(|map| {
            // A constant map is all background.
            let cut = cut(map, rule).unwrap_or(f32::INFINITY);
            map.iter().map(|&value| value >= cut).collect()
        });
        (sides.collect(), rule)
    }

    fn map(&self, features: &CellFeatures) -> Vec<f32> {
        let mut map = vec![0.0; features.grid[0] * features.grid[1]];
        for group in &self.0 {
            let scores = group.iter().map(|head| standardized(&head.scores(&features.cells)));
            add_scaled(&mut map, 1.0, &standardized(&mean(scores)));
        }
        features.smooth(&map)
    }
}

/// Trains one teacher, given a seed and the index of the teacher among those of its kind.
type TrainTeacher = fn(&LabelledCells, u64, u64) -> LinearMask;

/// A mask head, inverted if the class is better predicted from its background.
fn mask_head(cells: &LabelledCells, seed: u64, index: u64) -> LinearMask {
    let head = mask_head::train(cells, &MASK_HEAD, seed, index);
    if prefers_background(&head, cells, seed) { head.inverted() } else { head }
}

/// Whether the classes of held-out images are better predicted from the background of a mask than
/// from its foreground.
fn prefers_background(head: &LinearMask, cells: &LabelledCells, seed: u64) -> bool {
    let tested = cells.images.len().min(TESTED_IMAGES);
    let sides = |image| {
        let Pooled { foreground, background, .. } = head.pool(&cells.read(image));
        (foreground, background)
    };
    let (foreground, background): (Vec<_>, Vec<_>) = (0..tested).map(sides).unzip();
    let found = Decidability::of(&foreground, &background, &cells.labels[..tested], seed);
    found.is_some_and(|found| found.difference < 0.0)
}

fn held_out(cells: &LabelledCells, seed: u64, index: u64) -> LinearMask {
    held_out::train(cells, &HELD_OUT, RIDGE, seed, index)
}

/// The features of a training image, whose kept cells may lie several cells apart.
fn features(cells: &LabelledCells, image: usize, config: &ProbeConfig) -> CellFeatures {
    let ImageCells { map, spacing } = &cells.images[image];
    CellFeatures {
        cells: cells.read(image),
        grid: map.grid,
        sigma: config.smoothing / *spacing as f64,
    }
}

fn train_students(
    cells: &LabelledCells,
    sides: &[Vec<bool>],
    config: &ProbeConfig,
    seed: u64,
    generation: u64,
) -> Vec<Mlp> {
    let count = config.students as u64;
    let train = |index| student::train(cells, sides, &STUDENT, seed, generation * count + index);
    (0..count).into_par_iter().map(train).collect()
}

/// The rule for maps of this mean skewness, of whose variance the cut explains this mean share η.
///
/// Skewed maps have a small foreground, which a large β favours. Where the sides of the cut overlap
/// (low η), heads know only part of the foreground, and the scores of the rest reach into those of
/// the background; a spread of its own (α > 0) keeps it. Where the sides are distinct (high η), the
/// scores between them are the border of objects, which would be taken for spread.
fn cut_rule(skewness: f64, explained: f64) -> CutRule {
    let beta = (skewness - USUAL_SKEWNESS).clamp(0.0, 1.0);
    let overlap = ((DISTINCT - explained) / (DISTINCT - OVERLAPPING)).clamp(0.0, 1.0);
    CutRule { beta, alpha: (1.0 - beta) * overlap }
}

/// The mean of the known values; 0 if there are none.
fn mean_of(values: impl IndexedParallelIterator<Item = Option<f64>>) -> f64 {
    let known: Vec<f64> = values.collect::<Vec<_>>().into_iter().flatten().collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}

/// The mean of vectors of one length.
fn mean(vectors: impl Iterator<Item = Vec<f32>>) -> Vec<f32> {
    let mut count = 0.0_f32;
    let sum = vectors.inspect(|_| count += 1.0).reduce(|mut sum, vector| {
        add_scaled(&mut sum, 1.0, &vector);
        sum
    });
    let mut sum = sum.unwrap_or_default();
    sum.iter_mut().for_each(|value| *value /= count);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::probe::cells::tests::half_and_half;

    #[test]
    fn the_side_that_tells_the_class_is_the_foreground() {
        let data = half_and_half(3, 10, 6);
        // The last dimension is positive where the class can be told.
        let right = LinearMask { weights: vec![0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0] };
        assert!(!prefers_background(&right, &data, 1));
        assert!(prefers_background(&right.inverted(), &data, 1));
    }

    #[test]
    fn small_sides_and_distinct_ones_have_one_spread() {
        let close = |rule: CutRule, beta: f64, alpha: f64| {
            (rule.beta - beta).abs() < 1e-12 && (rule.alpha - alpha).abs() < 1e-12
        };
        assert!(close(cut_rule(0.0, 0.7), 0.0, 1.0));
        assert!(close(cut_rule(0.7, 0.75), 0.2, 0.8 * 0.5));
        assert!(close(cut_rule(1.5, 0.6), 1.0, 0.0));
        assert!(close(cut_rule(-2.0, 0.9), 0.0, 0.0));
    }

    #[test]
    fn what_is_not_known_of_an_image_does_not_count() {
        assert_eq!(mean_of([Some(1.0), None, Some(3.0)].into_par_iter()), 2.0);
        assert_eq!(mean_of([None].into_par_iter()), 0.0);
    }

    #[test]
    fn the_mean_of_vectors_is_taken_number_by_number() {
        assert_eq!(mean([vec![1.0, 2.0], vec![3.0, 6.0]].into_iter()), [2.0, 4.0]);
    }
}
