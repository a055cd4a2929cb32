//! Weights and running statistics after one and after five updates.

use pinpoint::{
    config::{Kernels, OptimizerConfig, Rule},
    train::optimizer::Optimizer,
};

use super::{
    fixture::{learned, statistics},
    step::Case,
};

const LEARNING_RATE: f64 = 1e-3;
/// Large enough that leaving it out would show.
const WEIGHT_DECAY: f64 = 0.01;

/// Of a tensor's change, relative to the change: each step builds on the errors before it.
const CHANGE: f64 = 1e-3;
/// Of a tensor's change, relative to the weights, which each step rounds to single precision.
const ROUNDING: f64 = 3e-7;
/// Of the losses, absolute for values around 1.
const LOSSES: f32 = 5e-5;
/// Of running statistics, absolute for values around 1: up to 35 passes move them.
const STATISTICS: f32 = 2e-5;

#[test]
fn sgd_agrees_without_erasing() {
    check("sgd-0", "plain-0", Rule::Sgd);
}

#[test]
fn sgd_agrees_with_four_rounds() {
    check("sgd-4", "plain-4", Rule::Sgd);
}

#[test]
fn sgd_agrees_with_four_rounds_and_dropout() {
    check("sgd-dropout-4", "dropout-4", Rule::Sgd);
}

#[test]
fn adam_agrees_with_four_rounds() {
    check("adam-4", "plain-4", Rule::Adam);
}

fn check(name: &str, case: &'static str, rule: Rule) {
    let mut case = Case::named(case);
    // Five steps with a unit on the other side in the first are five steps of another network.
    case.config.model.kernels = Kernels::Composed;
    let settings =
        OptimizerConfig { rule, weight_decay: WEIGHT_DECAY, ..OptimizerConfig::default() };
    let mut optimizer = Optimizer::new(settings);
    let mut model = case.model();
    let start = learned(&model);
    let (mut losses, mut looks) = (Vec::new(), Vec::new());
    for count in 1..=5 {
        let outcome = case.run(&model, case.rounds);
        let terms = outcome.losses;
        let terms = [Some(terms.localizer), terms.foreground, terms.background];
        losses.extend(terms.map(|loss| loss.unwrap() as f32));
        looks.push(outcome.localizer_passes.iter().sum::<usize>());
        model = optimizer.update(model, outcome.gradients, LEARNING_RATE);
        if count == 1 || count == 5 {
            let mut change = learned(&model);
            for (name, values) in &mut change {
                values.iter_mut().zip(&start[name]).for_each(|(now, before)| *now -= before);
            }
            let norm = |name: &str| start[name].iter().map(|w| w * w).sum::<f32>().sqrt();
            case.fixture.assert_rows(
                &format!("update/{name}/change-{count}"),
                &change,
                CHANGE,
                |name| ROUNDING * f64::from(norm(name)),
            );
            let moved: Vec<f32> = statistics(&model).into_values().flatten().collect();
            let name = format!("update/{name}/statistics-{count}");
            case.fixture.assert_close(&name, &moved, STATISTICS);
        }
    }
    assert_eq!(looks, case.fixture.counts(&format!("update/{name}/looks")));
    case.fixture.assert_close(&format!("update/{name}/losses"), &losses, LOSSES);
}
