use super::*;
use crate::{
    config::{Backbone, Evidence, Fill},
    device,
    model::params,
    rng::{Purpose, Stream},
};

const SIDE: usize = 32;
const LABELS: [usize; 2] = [0, 1];

fn config(rounds: usize) -> Config {
    let mut config = Config::default();
    config.model.backbone = Backbone::Tiny;
    config.model.output_stride = 8;
    config.erase.rounds = rounds;
    config
}

/// A step on two noisy images, every localizer pass trusted.
fn outcome(config: &Config) -> Outcome {
    let model = Model::new(config, 2, &device::cpu().autodiff());
    step(config, &model, config.erase.rounds).run()
}

fn step<'a>(config: &'a Config, model: &'a Model, rounds: usize) -> Step<'a> {
    static NOTHING_DROPPED: Dropout = Dropout { localizer: None, classifier: None };
    let mut stream = Stream::new(5, Purpose::Synthetic, 0, 0);
    let shape = [2, 3, SIDE, SIDE];
    let noise = (0..shape.iter().product()).map(|_| stream.between(-1.0, 1.0) as f32);
    Step {
        config,
        model,
        images: tensor(noise.collect(), shape, &device::cpu()),
        labels: &LABELS,
        dropout: &NOTHING_DROPPED,
        rounds,
        trust: Trust::unconditional(2, config.erase.sigma),
        mean_colour: [0.25; 3],
        size: Barrier::at(&config.loss.size, 0),
        frozen: false,
        share: Share::whole(2),
    }
}

#[test]
fn the_mask_never_shrinks_from_round_to_round() {
    let masks = [1, 2, 4].map(|rounds| values(outcome(&config(rounds)).mask));
    for pair in masks.windows(2) {
        assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| before <= after));
    }
    assert!(masks[0] != masks[2], "later passes must find something");
}

#[test]
fn without_erasing_the_mask_is_the_localizer_s_own_whatever_it_is_trusted() {
    let config = config(0);
    let model = Model::new(&config, 2, &device::cpu().autodiff());
    let mut unsure = step(&config, &model, 0);
    // The first class cannot be correct for both labels: Ψ would be zero for at least one.
    unsure.trust = Trust::new(2, config.erase.sigma, config.semantics);
    let mask = values(unsure.run().mask);
    let largest = mask.iter().copied().fold(0.0, f32::max);
    assert!((largest - 0.982_013_8).abs() < 1e-5, "{largest}");
}

#[test]
fn each_way_of_erasing_shows_the_localizer_something_else() {
    let mut found = Vec::new();
    for fill in [Fill::Zero, Fill::Mean, Fill::Blur] {
        for from_intact in [false, true] {
            let mut config = config(2);
            (config.erase.fill, config.erase.from_intact) = (fill, from_intact);
            found.push(outcome(&config).losses.localizer);
        }
    }
    for (i, a) in found.iter().enumerate() {
        assert!(found[i + 1..].iter().all(|b| a != b), "{found:?}");
    }
}

#[test]
fn weights_of_the_terms_scale_their_gradients() {
    let gradient = |localizer: f64, foreground: f64, background: f64| {
        let mut config = config(1);
        config.loss.localizer = localizer;
        config.loss.foreground = foreground;
        config.loss.background = background;
        let mut gradients = outcome(&config).gradients;
        let of = |name: &str, all: &mut GradientSum| all.remove(name).unwrap()[0];
        (of("localizer.bias", &mut gradients), of("classifier.bias", &mut gradients))
    };
    let (localizer, classifier) = gradient(1.0, 1.0, 1.0);
    let (doubled, same) = gradient(2.0, 1.0, 1.0);
    assert!((doubled - 2.0 * localizer).abs() < 1e-6 && same == classifier);
    let (_, foreground) = gradient(1.0, 1.0, 0.0);
    let (_, background) = gradient(1.0, 0.0, 1.0);
    assert!((foreground + background - classifier).abs() < 1e-6);
}

/// Without erasing the loss is smooth in the localizer's weights, so a step of known
/// length along their gradient must change it by the gradient's length.
#[test]
fn the_gradient_through_the_mask_is_that_of_finite_differences() {
    for evidence in [Evidence::Weighted, Evidence::Centred, Evidence::Spread] {
        let mut config = config(0);
        config.mask.evidence = evidence;
        config.mask.gradient = MaskGradient::Through;
        config.loss.area = 3.0;
        config.loss.size.weight = 2.0;
        let (slope, length) = slope_along_the_gradient(&config);
        let off = (slope / length - 1.0).abs();
        assert!(off < 0.03, "{evidence:?}: slope {slope}, gradient {length}");
    }
}

/// How steep the loss is along the gradient of the localizer's weights: by differences, and
/// by the gradient's length.
fn slope_along_the_gradient(config: &Config) -> (f64, f64) {
    let model = Model::new(config, 2, &device::cpu().autodiff());
    let gradients = step(config, &model, 0).run().gradients;
    let gradient = gradients["localizer.weight"].clone();
    let length = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();

    // Short, because every unit that switches on or off on the way bends the loss: the slope
    // is 45 % off at 1e-2, 4 % at 1e-4 and 2 % at 3e-5.
    const REACH: f64 = 1e-5;
    let loss_at = |reach: f64| {
        let moved = params::map(model.clone(), |name, _, weights| match name {
            "localizer.weight" => {
                let along = tensor(gradient.clone(), [gradient.len()], &weights.device());
                weights + along * (reach / length)
            }
            _ => weights,
        });
        let Outcome { losses, mask, .. } = step(config, &moved, 0).run();
        let shares = values(mask);
        let shares = shares
            .chunks_exact(SIDE * SIDE)
            .map(|mask| mask.iter().copied().map(f64::from).sum::<f64>() / (SIDE * SIDE) as f64);
        let (barrier, LossConfig { area, size, .. }) =
            (Barrier::at(&config.loss.size, 0), &config.loss);
        let of_sizes = shares.map(|share| area * share + size.weight * barrier.of_share(share));
        losses.total() + of_sizes.sum::<f64>() / LABELS.len() as f64
    };
    ((loss_at(REACH) - loss_at(-REACH)) / (2.0 * REACH), length)
}

#[test]
fn a_frozen_step_moves_no_statistics_and_gives_the_backbone_no_gradient() {
    for statistics in [Statistics::All, Statistics::Localizer, Statistics::Separate] {
        let mut config = config(1);
        config.model.statistics = statistics;
        config.mask.gradient = MaskGradient::Through;
        let model = Model::new(&config, 2, &device::cpu().autodiff());
        let model = params::let_backbone_learn(model, false);
        let before = params::collect(&model);
        let mut frozen = step(&config, &model, 1);
        frozen.frozen = true;
        let gradients = frozen.run().gradients;
        assert_eq!(params::collect(&model), before);
        let names: Vec<&str> = gradients.keys().map(String::as_str).collect();
        let heads = ["classifier.bias", "classifier.weight", "localizer.bias", "localizer.weight"];
        assert_eq!(names, heads);
    }
}

#[test]
fn statistics_of_the_localizer_only_ignore_the_masked_images() {
    let moved = |statistics: Statistics, rounds: usize| {
        let mut config = config(rounds);
        config.model.statistics = statistics;
        let model = Model::new(&config, 2, &device::cpu().autodiff());
        step(&config, &model, rounds).run();
        params::collect(&model)["bn1.running_mean"].values.clone()
    };
    assert_eq!(moved(Statistics::Localizer, 1), moved(Statistics::Localizer, 3));
    assert_ne!(moved(Statistics::Localizer, 1), moved(Statistics::All, 1));
}
