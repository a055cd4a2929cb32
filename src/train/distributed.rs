//! Training on several ranks: which settings allow it, the check that all of them start alike, and
//! the sum of what each has learned.

use burn::module::Module;

use super::{Event, Observer, TrainingTask, optimizer::Optimizer};
use crate::{
    collective::Ranks,
    config::{Config, Kernels, Semantics},
    device,
    digest::Digest,
    error::{Error, Result},
    method::{Learned, Terms},
    model::params,
    run::Position,
};

/// Refuses settings under which several ranks would not compute the same as one process.
pub(super) fn require_shareable(task: &TrainingTask<'_>) -> Result<()> {
    let TrainingTask { config, ranks, .. } = task;
    if ranks.is_alone() {
        return Ok(());
    }
    let refused = [
        (
            config.method == "probe",
            "`method = \"probe\"` trains its heads on all images at once; train it in one process",
        ),
        (
            config.semantics == Semantics::Reference,
            "`semantics = \"reference\"` brings masks to a common scale over the batch",
        ),
        (
            config.model.kernels != Kernels::Fused || task.device != device::cpu(),
            "batch norm is measured over all processes by `model.kernels = \"fused\"` on the \
             processor only; this is another way to compute",
        ),
    ];
    let problems = refused.into_iter().filter(|(applies, _)| *applies);
    let problems: Vec<String> = problems
        .map(|(_, problem)| format!("{problem}, which several processes cannot share"))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::Setting(problems)) }
}

/// Refuses to train on ranks that start from different weights, settings or data.
pub(super) fn require_same_start(
    ranks: &Ranks,
    model: &impl Module,
    optimizer: &Optimizer,
    position: &Position,
    config: &Config,
) -> Result<()> {
    if ranks.is_alone() {
        return Ok(());
    }
    let mut digest = Digest::default();
    let settings = toml::to_string(config).expect("settings are plain data");
    let Position { samples, epoch, step, updates, .. } = position;
    digest.add(format!("{settings}\n{samples:?} {epoch} {step} {updates}\n").as_bytes());
    for (name, array) in params::collect(model).into_iter().chain(optimizer.state().1) {
        digest.add(name.as_bytes());
        array.values.iter().for_each(|value| digest.add(&value.to_le_bytes()));
    }
    let start = u32::from_str_radix(&digest.hex()[..8], 16).expect("hexadecimal digits");
    if ranks.all_equal(start) {
        return Ok(());
    }
    Err(Error::Setting(vec![
        "the processes were given different settings, data, weights or checkpoints; each must \
         see the same files, on a file system that all machines share"
            .to_owned(),
    ]))
}

/// An observer that is told of events on the first rank only, and may stop the training on any.
pub(super) struct FirstRank<'a> {
    pub(super) observer: &'a mut dyn Observer,
    /// Whether this is the first rank.
    pub(super) is_first: bool,
}

impl Observer for FirstRank<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        if self.is_first {
            self.observer.observe(event);
        }
    }

    fn wants_to_stop(&self) -> bool {
        self.observer.wants_to_stop()
    }
}

/// The result of a step over all ranks, from that of this rank.
pub(super) fn summed(mut learned: Learned, ranks: &Ranks) -> Learned {
    if ranks.is_alone() {
        return learned;
    }
    let Learned { terms, gradients, mistakes, localizer_passes } = &mut learned;
    let mut flat: Vec<f32> = gradients.values().flatten().copied().collect();
    ranks.all_reduce(&mut flat);
    let mut rest = &flat[..];
    for gradient in gradients.values_mut() {
        let (sums, behind) = rest.split_at(gradient.len());
        gradient.copy_from_slice(sums);
        rest = behind;
    }
    // A term is absent where no rank has it.
    let [foreground, background] = [terms.foreground, terms.background].map(|term| {
        let [sum, ranks] = ranks.sums([term.unwrap_or(0.0), f64::from(u8::from(term.is_some()))]);
        (ranks > 0.0).then_some(sum)
    });
    let [localizer, wrong, passes] =
        ranks.sums([terms.localizer, *mistakes, *localizer_passes as f64]);
    *terms = Terms { localizer, foreground, background };
    (*mistakes, *localizer_passes) = (wrong, passes as usize);
    learned
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ops::Range;

    use super::*;
    use crate::{
        collective::{Share, threads::on_ranks},
        config::{Backbone, MaskGradient},
        data::loader::Batch,
        method::{
            Learner, StepContext, cam::Cam, deep_mil::DeepMil, learner::BatchOf, minmax::Minmax,
        },
        model::weights::Arrays,
        rng::{Purpose, Stream},
    };

    const SIDE: usize = 32;
    const LABELS: [usize; 5] = [0, 1, 1, 0, 1];

    pub(crate) fn config() -> Config {
        let mut config = Config::default();
        config.model.backbone = Backbone::Tiny;
        config.model.output_stride = 8;
        config.deep_mil.width = 8;
        config.erase.rounds = 2;
        config
    }

    /// Noisy images of the batch; a blank one if there are none of them.
    pub(crate) fn batch(of: Range<usize>) -> Batch {
        let noise = |sample: usize| {
            let mut stream = Stream::new(5, Purpose::Synthetic, 0, sample as u64);
            (0..3 * SIDE * SIDE).map(move |_| stream.between(-1.0, 1.0) as f32)
        };
        let blank = of.is_empty();
        let samples: Vec<usize> = if blank { vec![0] } else { of.collect() };
        Batch {
            images: samples.iter().flat_map(|&sample| noise(sample)).collect(),
            labels: samples.iter().map(|&sample| LABELS[sample]).collect(),
            samples,
            height: SIDE,
            width: SIDE,
            blank,
        }
    }

    /// The result of one step on a batch, the network after it, and the localizer passes of this
    /// rank.
    fn step<L: Learner>(
        learner: &L,
        config: &Config,
        batch: &BatchOf<L>,
        ranks: &Ranks,
    ) -> (Learned, Arrays, usize) {
        let device = device::cpu();
        let network = learner.network(config, 2, &device.clone().autodiff());
        let share = Share::of(*ranks, batch.as_ref().count());
        let (epoch, mean_colour) = (config.erase.first_epoch, [0.25; 3]);
        let context = StepContext { config, epoch, device: &device, mean_colour, share };
        let learned = learner.learn(&network, batch, &context);
        let passes = learned.localizer_passes;
        (summed(learned, ranks), params::collect(&network), passes)
    }

    /// Compares a step of several ranks with one of a single process; gives each rank's passes.
    pub(crate) fn assert_shared<L: Learner + Sync>(
        learner: &L,
        config: &Config,
        images: usize,
        ranks: usize,
        batch: impl Fn(Range<usize>) -> BatchOf<L> + Sync,
    ) -> Vec<usize> {
        let (expected, network, _) = step(learner, config, &batch(0..images), &Ranks::alone());
        let found = on_ranks(ranks, |ranks| {
            step(learner, config, &batch(ranks.part().range(images)), &ranks)
        });
        let passes = found.iter().map(|(_, _, passes)| *passes).collect();
        for (learned, after, _) in &found {
            assert_eq!(learned.localizer_passes, expected.localizer_passes);
            assert!((learned.mistakes - expected.mistakes).abs() < 1e-6);
            let off = (learned.terms.total() - expected.terms.total()).abs();
            assert!(off < 1e-5, "{:?} {:?}", learned.terms, expected.terms);
            for (name, gradient) in &expected.gradients {
                assert_near(name, &learned.gradients[name], gradient, 2e-3);
            }
            for (name, array) in &network {
                assert_near(name, &after[name].values, &array.values, 1e-5);
            }
            // All ranks are to hold the same weights without ever sending any.
            assert_eq!((&learned.gradients, after), (&found[0].0.gradients, &found[0].1));
        }
        passes
    }

    fn assert_near(name: &str, found: &[f32], expected: &[f32], tolerance: f64) {
        let length = |values: &mut dyn Iterator<Item = f32>| {
            values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
        };
        assert_eq!(found.len(), expected.len(), "{name}");
        let off = length(&mut found.iter().zip(expected).map(|(a, b)| a - b));
        let size = length(&mut expected.iter().copied());
        assert!(off <= tolerance * size + 1e-6, "{name}: off by {off} of {size}");
    }

    #[test]
    fn a_step_of_several_ranks_is_that_of_one_process() {
        for (images, ranks) in [(5, 2), (5, 3), (2, 3)] {
            assert_shared(&Cam::Average, &config(), images, ranks, batch);
        }
        assert_shared(&DeepMil, &config(), 4, 2, batch);
    }

    #[test]
    fn erasing_on_several_ranks_is_that_of_one_process_also_where_one_has_nothing_left() {
        for gradient in [MaskGradient::Detached, MaskGradient::Through] {
            let mut config = config();
            config.mask.gradient = gradient;
            for (images, ranks) in [(5, 2), (5, 3), (2, 3)] {
                let passes = assert_shared(&Minmax, &config, images, ranks, batch);
                if (images, ranks) == (5, 3) {
                    let shares = [1, 2, 2].into_iter().zip(passes);
                    let again: Vec<usize> = shares.map(|(share, passes)| passes - share).collect();
                    assert!(again.contains(&0), "a rank must run out of images: {again:?}");
                    assert!(again.iter().any(|&more| more > 0), "another must not: {again:?}");
                }
            }
        }
    }

    #[test]
    fn a_step_of_all_ranks_is_the_sum_of_theirs() {
        let found = on_ranks(2, |ranks| {
            let one = (ranks.rank() + 1) as f64;
            let gradients = [("a", vec![one as f32, 2.0]), ("b", vec![-1.0])];
            let learned = Learned {
                terms: Terms {
                    localizer: one,
                    foreground: ranks.is_first().then_some(0.5),
                    background: None,
                },
                gradients: gradients.map(|(name, values)| (name.to_owned(), values)).into(),
                mistakes: one,
                localizer_passes: 3,
            };
            summed(learned, &ranks)
        });
        for whole in found {
            let gradients: Vec<&Vec<f32>> = whole.gradients.values().collect();
            assert_eq!(gradients, [&vec![3.0, 4.0], &vec![-2.0]]);
            let terms = Terms { localizer: 3.0, foreground: Some(0.5), background: None };
            assert_eq!((whole.terms, whole.mistakes, whole.localizer_passes), (terms, 3.0, 6));
        }
    }
}
