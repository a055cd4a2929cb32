//! Whole training steps: every localizer pass, both losses of the classifier, every gradient.

use burn::tensor::Tensor;
use pinpoint::{
    collective::Share,
    config::{
        Backbone, Config, Evidence, Kernels, LossConfig, MaskConfig, MaskGradient, ModelConfig,
        PoolConfig, Semantics, Stem,
    },
    device,
    method::{
        dropout::Dropout,
        losses::{SamplePrediction, sample_predictions},
        minmax::{Outcome, Step, size::Barrier, trust::Trust},
    },
    model::{Branch, Model, Pass, Rules},
};

use super::{
    BOTH,
    fixture::{Fixture, statistics, values},
    formula::{fill_in, keep, pictures},
    strays,
};

const CLASSES: usize = 3;
const BATCH: usize = 4;
/// Small, so that few units sit so near zero that rounding decides whether they are on.
const SIZE: [usize; 2] = [40, 56];

/// Of losses, confidences and trust, absolute for values around 1.
const LOSSES: f32 = 2e-5;
/// Of masks in `[0, 1]`, absolute: the sigmoid doubles the error of the normalized map.
const MASKS: f32 = 2e-5;
/// Of running statistics, absolute for values around 1: up to seven passes move them.
const STATISTICS: f32 = 1e-5;
/// Of gradients, relative: sums of up to seven backward passes, see [`super::backbone`].
const GRADIENTS: f64 = 1e-3;

#[test]
fn a_step_without_erasing_agrees() {
    for name in ["plain-0", "dropout-0", "reference-0"] {
        Case::named(name).check();
    }
}

#[test]
fn a_step_with_four_rounds_of_erasing_agrees() {
    for name in ["plain-4", "dropout-4", "evidence-4"] {
        Case::named(name).check();
    }
}

#[test]
fn a_step_as_the_published_code_makes_it_agrees() {
    for name in ["reference-4", "reference-dropout-4"] {
        Case::named(name).check();
    }
}

#[test]
fn a_step_with_gradients_through_the_mask_agrees() {
    for name in ["through-0", "through-2", "through-dropout-4", "through-reference-4"] {
        Case::named(name).check();
    }
}

#[test]
fn the_mask_agrees_after_each_round() {
    for (name, semantics) in [("plain-4", "pinpoint"), ("reference-4", "reference")] {
        let case = Case::named(name);
        for rounds in 1..4 {
            let outcome = case.run(&case.model(), rounds);
            case.assert_mask(&format!("step/{semantics}/mask-{rounds}"), outcome.mask);
        }
    }
}

#[test]
fn what_the_localizer_says_of_intact_images_agrees() {
    for name in ["plain-4", "dropout-4", "evidence-4", "reference-4"] {
        let case = Case::named(name);
        let rules = Rules::new(&case.config);
        let keep = case.dropout.localizer.as_deref();
        let images = case.images().autodiff();
        let response = case.model().localize(
            images,
            Pass::Train(Branch::Whole, Share::whole(BATCH)),
            &rules,
            keep,
        );
        let found: Vec<f32> = sample_predictions(response.scores, &case.labels)
            .iter()
            .flat_map(|said| [f32::from(said.correct), said.confidence, said.loss])
            .collect();
        let all = case.fixture.get(&format!("step/{name}/verdicts"));
        for (found, expected) in found.iter().zip(&all[..found.len()]) {
            assert!((found - expected).abs() <= LOSSES, "{name}: {found}, PyTorch {expected}");
        }
    }
}

#[test]
fn trust_agrees_in_each_round() {
    for name in ["plain-4", "dropout-4", "reference-4", "reference-dropout-4"] {
        let case = Case::named(name);
        let sample_predictions = case.fixture.get(&format!("step/{name}/verdicts"));
        let mut trust = case.trust();
        let mut found = Vec::new();
        for round in sample_predictions.chunks_exact(3 * BATCH) {
            let said = |i: usize| SamplePrediction {
                correct: round[3 * i] == 1.0,
                confidence: round[3 * i + 1],
                loss: round[3 * i + 2],
            };
            let active = trust.active();
            let sample_predictions: Vec<SamplePrediction> =
                active.iter().map(|&i| said(i)).collect();
            let mut row = [0.0; BATCH];
            for (i, weight) in active.iter().zip(trust.coefficients(&active, &sample_predictions)) {
                row[*i] = weight;
            }
            found.extend(row);
        }
        case.fixture.assert_close(&format!("step/{name}/trust"), &found, 1e-6);
    }
}

#[test]
fn the_classifier_s_losses_reach_the_localizer_s_head_only_through_the_mask() {
    for (name, reaches) in
        [("plain-0", false), ("plain-4", false), ("through-0", true), ("through-2", true)]
    {
        let mut case = Case::named(name);
        let whole = case.run(&case.model(), case.rounds).gradients;
        case.config.loss = LossConfig { foreground: 0.0, background: 0.0, ..LossConfig::default() };
        let alone = case.run(&case.model(), case.rounds).gradients;
        for weight in ["localizer.weight", "localizer.bias"] {
            assert_eq!(whole[weight] != alone[weight], reaches, "{name}, {weight}");
        }
        assert_ne!(whole["conv1.weight"], alone["conv1.weight"], "the backbone is shared");
    }
}

/// A step whose name says its settings; the last part is the number of rounds.
pub(super) struct Case {
    name: &'static str,
    pub(super) fixture: Fixture,
    pub(super) config: Config,
    pub(super) rounds: usize,
    seed: u64,
    labels: Vec<usize>,
    dropout: Dropout,
}

impl Case {
    pub(super) fn named(name: &'static str) -> Self {
        let fixture = Fixture::load();
        let has = |part: &str| name.split('-').any(|own| own == part);
        let semantics = if has("reference") { Semantics::Reference } else { Semantics::Pinpoint };
        let origin = if has("reference") { "step/reference" } else { "step/pinpoint" };
        let gradient = if has("through") { MaskGradient::Through } else { MaskGradient::Detached };
        let bottom_weight = if has("evidence") { 0.3 } else { 0.0 };
        let config = Config {
            semantics,
            model: ModelConfig {
                backbone: Backbone::Tiny,
                stem: Stem::Deep,
                output_stride: 8,
                ..ModelConfig::default()
            },
            pool: PoolConfig { maps_per_class: 2, bottom_weight, ..PoolConfig::default() },
            mask: MaskConfig { gradient, evidence: Evidence::Weighted, ..MaskConfig::default() },
            ..Config::default()
        };
        let keep = |name, cells| has("dropout").then(|| keep(name, BATCH * CLASSES * cells));
        Self {
            name,
            rounds: name.rsplit('-').next().unwrap().parse().unwrap(),
            seed: fixture.counts(&format!("{origin}/seed"))[0] as u64,
            labels: fixture.counts(&format!("{origin}/labels")),
            dropout: Dropout {
                localizer: keep("5/keep.localizer", 5 * 7),
                classifier: keep("5/keep.classifier", 3 * 4),
            },
            config,
            fixture,
        }
    }

    pub(super) fn model(&self) -> Model {
        fill_in(Model::new(&self.config, CLASSES, &device::cpu().autodiff()), self.seed)
    }

    pub(super) fn run(&self, model: &Model, rounds: usize) -> Outcome {
        let step = Step {
            config: &self.config,
            model,
            images: self.images(),
            labels: &self.labels,
            dropout: &self.dropout,
            rounds,
            trust: self.trust(),
            mean_colour: [0.0; 3],
            size: Barrier::at(&self.config.loss.size, 0),
            frozen: false,
            share: Share::whole(BATCH),
        };
        step.run()
    }

    fn images(&self) -> Tensor<4> {
        pictures(self.seed, BATCH, SIZE, &device::cpu())
    }

    fn trust(&self) -> Trust {
        Trust::new(BATCH, self.config.erase.sigma, self.config.semantics)
    }

    fn check(self) {
        BOTH.into_iter().fold(self, |mut case, kernels| {
            case.config.model.kernels = kernels;
            case.check_kernels(kernels);
            case
        });
    }

    fn check_kernels(&self, kernels: Kernels) {
        let (sums, slopes) = strays(kernels);
        let model = self.model();
        let outcome = self.run(&model, self.rounds);
        let part = |kind: &str| format!("step/{}/{kind}", self.name);
        assert_eq!(outcome.localizer_passes, self.fixture.counts(&part("looks")), "{}", self.name);
        assert_eq!(vec![outcome.mistakes], self.fixture.counts(&part("mistakes")));
        let losses = outcome.losses;
        let losses = [Some(losses.localizer), losses.foreground, losses.background];
        let losses = losses.map(|loss| loss.unwrap() as f32);
        self.fixture.assert_close(&part("losses"), &losses, sums * LOSSES);
        self.assert_mask(&part("mask"), outcome.mask);
        let moved: Vec<f32> = statistics(&model).into_values().flatten().collect();
        self.fixture.assert_close(&part("statistics"), &moved, sums * STATISTICS);
        let gradients = outcome.gradients;
        self.fixture.assert_rows(&part("gradients"), &gradients, slopes * GRADIENTS, |_| 0.0);
    }

    /// Compares every eighth row and column in full, and the whole by projections.
    fn assert_mask(&self, name: &str, mask: Tensor<4>) {
        let mask = values(mask);
        let [height, width] = SIZE;
        let sampled = mask.iter().enumerate().filter(|(index, _)| {
            let (x, y) = (index % width, index / width % height);
            x % 8 == 3 && y % 8 == 3
        });
        let sampled: Vec<f32> = sampled.map(|(_, &value)| value).collect();
        self.fixture.assert_close(name, &sampled, MASKS);
        self.fixture.assert_row(&format!("{name}.rows"), "mask", &mask, f64::from(MASKS));
    }
}
