//! The student: a small network that is trained on the cut maps of the teachers.
//!
//! The maps of the teachers are cut, image by image, and every cell is labelled by its side of the
//! cut. Errors in single images do not agree with each other, so the student is better than its
//! teachers; and since cells are drawn as they occur, a logit of 0 means even odds.

use super::{
    adamw::AdamW,
    cells::LabelledCells,
    mlp::{Mlp, drop_out},
    vector::sigmoid,
};
use crate::rng::{Purpose, Stream};

/// How students are trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct StudentTraining {
    pub(super) steps: usize,
    /// Images per step.
    pub(super) images: usize,
    /// Cells of each image per step.
    pub(super) cells: usize,
    pub(super) learning_rate: f32,
    pub(super) weight_decay: f32,
    /// Hidden units.
    pub(super) width: usize,
    /// Probability that a feature, and that a hidden unit, is dropped.
    pub(super) dropout: [f64; 2],
}

/// Trains one student on cells whose side is known, `sides[image][cell]`.
pub(super) fn train(
    data: &LabelledCells,
    sides: &[Vec<bool>],
    training: &StudentTraining,
    seed: u64,
    index: u64,
) -> Mlp {
    let mut stream = Stream::new(seed, Purpose::Init, 3, index);
    let mut student = Mlp::random([data.dimensions, training.width, 1], &mut stream);
    let mut weights = student.weights();
    let mut optimizer = AdamW::new(weights.len(), training.learning_rate, training.weight_decay);
    let mut order: Vec<usize> = (0..data.images.len()).collect();
    let batch = training.images.min(order.len());
    for _ in 0..training.steps {
        stream.shuffle(&mut order);
        let (mut cells, mut targets) = (Vec::new(), Vec::new());
        for &image in &order[..batch] {
            let all = sides[image].len();
            for _ in 0..training.cells {
                let cell = stream.below(all);
                data.read_cell(image, cell, &mut cells);
                targets.push(sides[image][cell]);
            }
        }
        drop_out(&mut cells, training.dropout[0], &mut stream);
        let mut kept = vec![1.0; targets.len() * training.width];
        drop_out(&mut kept, training.dropout[1], &mut stream);
        let (_, gradient) = loss(&student, &cells, &kept, &targets);
        optimizer.update(&mut weights, &gradient);
        student.set_weights(&weights);
    }
    student
}

/// The mean cross-entropy of the sides of cells, and its gradient by all weights; `kept` is the
/// factor of dropout for each hidden unit.
pub(super) fn loss(
    student: &Mlp,
    cells: &[f32],
    kept: &[f32],
    targets: &[bool],
) -> (f32, Vec<f32>) {
    let mut hidden = student.hidden_units(cells);
    hidden.as_mut_slice().iter_mut().zip(kept).for_each(|(hidden, kept)| *hidden *= kept);
    let mut logits = student.outputs(&hidden);
    let (mut loss, share) = (0.0, 1.0 / targets.len() as f32);
    for (logit, &target) in logits.iter_mut().zip(targets) {
        let target = f32::from(u8::from(target));
        // ln(1 + e^l) − t l, without overflow.
        loss += share * (logit.max(0.0) + (-logit.abs()).exp().ln_1p() - target * *logit);
        // From here on the gradient by the logit.
        *logit = share * (sigmoid(*logit) - target);
    }
    (loss, student.gradient(cells, &hidden, kept, &logits).weights())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::probe::cells::tests::half_and_half;

    fn training() -> StudentTraining {
        StudentTraining {
            steps: 150,
            images: 8,
            cells: 24,
            learning_rate: 5e-3,
            weight_decay: 1e-2,
            width: 16,
            dropout: [0.1, 0.3],
        }
    }

    #[test]
    fn a_student_is_right_where_its_teachers_were_wrong_now_and_then() {
        let data = half_and_half(2, 12, 5);
        let mut stream = Stream::new(3, Purpose::Synthetic, 0, 0);
        let sides: Vec<Vec<bool>> = (0..24)
            .map(|_| (0..40).map(|cell| (cell < 20) != stream.chance(0.2)).collect())
            .collect();
        let student = train(&data, &sides, &training(), 1, 0);
        let logits = student.apply(&data.read(0));
        let right = logits
            .iter()
            .enumerate()
            .filter(|(cell, logit)| (**logit > 0.0) == (*cell < 20))
            .count();
        assert!(right >= 36, "{right} of 40");
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let mut stream = Stream::new(6, Purpose::Init, 0, 0);
        let student = Mlp::random([3, 4, 1], &mut stream);
        let cells: Vec<f32> = (0..5 * 3).map(|_| stream.normal() as f32).collect();
        let mut kept = vec![1.0; 5 * 4];
        drop_out(&mut kept, 0.3, &mut stream);
        let targets = [true, false, false, true, true];
        let loss = |weights: &[f32]| {
            let mut student = student.clone();
            student.set_weights(weights);
            super::loss(&student, &cells, &kept, &targets)
        };
        let weights = student.weights();
        let step = 3e-3;
        for (index, found) in loss(&weights).1.iter().enumerate() {
            let moved = |by: f32| {
                let mut weights = weights.clone();
                weights[index] += by;
                loss(&weights).0
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((found - expected).abs() < 2e-3, "{index}: {found} {expected}");
        }
    }
}
