//! Class probabilities and mask of an image of any size, window by window.

use burn::tensor::{Device, activation::softmax};
use rayon::prelude::*;

use crate::{
    bilinear::{Tap, aligned},
    config::{Config, Evidence},
    data::preprocess::{InputView, Size, Window},
    method::{
        ModelOutput,
        tiles::{ClassMaps, LargeImage, SoftMask, Tiling, assemble},
    },
    model::{
        Branch, Model, Pass, Rules,
        layers::{tensor, values},
        resnet::Resnet,
        wildcat::pool,
    },
};

/// The output of [`Minmax`](super::Minmax) for an image whose input is too large to be held, with
/// scores at the size of the image.
pub(super) fn localize_tiled(
    model: &Model,
    config: &Config,
    image: LargeImage<'_>,
    tiling: Tiling,
    device: &Device,
) -> ModelOutput {
    let input = &image.input;
    let rules = Rules::new(config);
    let tiling = tiling.for_reach(Resnet::reach(&config.model));
    let Size { width, height } = input.size();
    let (size, stride) = ([height as usize, width as usize], config.model.output_stride);
    let pixels = |pixels: Vec<f32>, window: Window| {
        tensor(pixels, [1, 3, window.height, window.width], device)
    };

    let maps = assemble(size, stride, model.classes(), tiling, |window| {
        let images = pixels(input.read(window), window);
        values(model.localize(images, Pass::Evaluate(Branch::Whole), &rules, None).maps)
    });
    let localizer = probabilities(&maps, &rules, device);
    let evidence = evidence(&maps, &localizer, config.evidence());
    let mask = SoftMask::new(evidence, maps.grid, size, &rules.mask());

    let classifier_size = rules.classifier_size(size);
    let classified = assemble(classifier_size, stride, model.classes(), tiling, |window| {
        let images = pixels(foreground(input, &mask, classifier_size, window), window);
        values(model.classifier_maps(images, Pass::Evaluate(Branch::Foreground)))
    });
    let classifier = Some(probabilities(&classified, &rules, device));
    ModelOutput { classifier, localizer: Some(localizer), scores: image.restore(&mask) }
}

/// The probability of each class, by pooling its map.
fn probabilities(maps: &ClassMaps, rules: &Rules<'_>, device: &Device) -> Vec<f32> {
    let [rows, columns] = maps.grid;
    // One class at a time, as pooling needs several copies of what it pools.
    let score = |map: &[f32]| {
        let map = tensor(map.to_vec(), [1, 1, rows, columns], device);
        values(pool(map, &rules.pooling(), None))[0]
    };
    let scores: Vec<f32> = maps.classes().map(score).collect();
    let classes = scores.len();
    values(softmax(tensor(scores, [1, classes], device), 1))
}

/// The evidence T of each cell, as [`mask::evidence`](crate::model::mask::evidence), but with one
/// map in memory at a time.
fn evidence(maps: &ClassMaps, belief: &[f32], kind: Evidence) -> Vec<f32> {
    let classes = belief.len();
    let kind = kind.of(classes);
    let none = || vec![0.0; maps.grid[0] * maps.grid[1]];
    let weighted = |weight: &dyn Fn(f32) -> f32| {
        let mut sum: Vec<f32> = none();
        for (map, weight) in maps.classes().zip(belief.iter().map(|&belief| weight(belief))) {
            sum.iter_mut().zip(map).for_each(|(sum, cell)| *sum += cell * weight);
        }
        sum
    };
    if kind != Evidence::Spread {
        let common = kind.common(classes);
        return weighted(&|belief| belief - common);
    }
    let mean = weighted(&|_| 1.0 / classes as f32);
    let mut spread = none();
    for map in maps.classes() {
        for ((sum, cell), mean) in spread.iter_mut().zip(map).zip(&mean) {
            *sum += (cell - mean).powi(2) / classes as f32;
        }
    }
    spread.iter_mut().for_each(|square| *square = square.sqrt());
    spread
}

/// A window of the foreground, which is the input times the mask, resized to `size`.
///
/// Shapes: `[3, height, width]` of the window.
fn foreground(
    input: &InputView<'_>,
    mask: &SoftMask,
    size: [usize; 2],
    window: Window,
) -> Vec<f32> {
    let [height, width] = mask.size();
    let rows = &aligned(size[0], height)[window.top..][..window.height];
    let columns = &aligned(size[1], width)[window.left..][..window.width];
    let left = columns.first().map_or(0, |first| first.near);
    let across = columns.last().map_or(0, |last| last.far + 1) - left;

    let masked = |row: usize| {
        let mut line = input.read(Window { left, top: row, width: across, height: 1 });
        let mut shown = vec![0.0; across];
        mask.fill(row, left, &mut shown);
        for channel in line.chunks_exact_mut(across) {
            channel.iter_mut().zip(&shown).for_each(|(pixel, shown)| *pixel *= shown);
        }
        line
    };
    let resized: Vec<Vec<f32>> = rows
        .par_iter()
        .map(|row| {
            let pairs = masked(row.near).into_iter().zip(masked(row.far));
            let line: Vec<f32> = pairs.map(|(near, far)| row.mix(near, far)).collect();
            let channels = line.chunks_exact(across);
            let pixel = |channel: &[f32], column: &Tap| {
                column.mix(channel[column.near - left], channel[column.far - left])
            };
            channels
                .flat_map(|line| columns.iter().map(move |column| pixel(line, column)))
                .collect()
        })
        .collect();
    let channel = |index: usize| {
        resized.iter().flat_map(move |row| &row[index * window.width..][..window.width])
    };
    (0..3).flat_map(channel).copied().collect()
}

#[cfg(test)]
mod tests {
    use burn::module::Module as _;
    use image::{Rgb, RgbImage};

    use super::*;
    use crate::{
        config::{Backbone, Normalization, PreprocessConfig},
        data::preprocess::{EvalGeometry, Normalizer},
        device,
        method::{Learner as _, minmax::Minmax},
        rng::{Purpose, Stream},
    };

    fn config(classifier_scale: f64, evidence: Evidence) -> Config {
        let mut config = Config::default();
        config.mask.evidence = evidence;
        config.model.backbone = Backbone::Tiny;
        config.model.output_stride = 8;
        config.model.classifier_scale = classifier_scale;
        config
    }

    /// Blobs of colour, so that maps are not noise.
    fn picture(width: u32, height: u32) -> RgbImage {
        let mut stream = Stream::new(3, Purpose::Synthetic, 0, 0);
        let waves: Vec<[f64; 4]> = (0..9)
            .map(|_| [stream.uniform(), stream.uniform(), stream.uniform(), stream.uniform()])
            .collect();
        RgbImage::from_fn(width, height, |x, y| {
            let wave = |k: usize| {
                let [a, b, c, _] = waves[k];
                (f64::from(x) * a * 0.3 + f64::from(y) * b * 0.3 + c * 6.0).sin()
            };
            Rgb([0, 1, 2].map(|c| (128.0 + 40.0 * (wave(c) + wave(c + 3) + wave(c + 6))) as u8))
        })
    }

    /// Largest difference between tiled and untiled output: mask, probabilities.
    fn difference(size: (u32, u32), config: &Config, tiling: Tiling) -> [f32; 2] {
        let device = device::cpu();
        let model = Model::new(config, 3, &device).valid();
        let image = picture(size.0, size.1);
        let preprocess =
            PreprocessConfig { upscale_short_side: 0, eval_multiple: 1, ..Default::default() };
        let geometry = EvalGeometry::new(Size::of(&image), &preprocess);
        let normalizer = Normalizer::new(Normalization::Half);
        let large = LargeImage::new(&image, geometry, &normalizer);
        let shape = [1, 3, size.1 as usize, size.0 as usize];
        let whole = tensor(large.input.whole(), shape, &device);
        let expected = Minmax.localize(&model, whole, None, config);
        let found = localize_tiled(&model, config, large, tiling, &device);

        let farthest = |a: &[f32], b: &[f32]| -> f32 {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        let classifier = farthest(&found.classifier.unwrap(), &expected.classifier.unwrap());
        let localizer = farthest(&found.localizer.unwrap(), &expected.localizer.unwrap());
        [farthest(&found.scores, &expected.scores), classifier.max(localizer)]
    }

    #[test]
    fn with_a_full_halo_the_output_is_that_of_the_whole_image() {
        for (size, scale, evidence) in [
            ((211, 150), 1.0, Evidence::Weighted),
            ((300, 97), 0.5, Evidence::Weighted),
            ((96, 96), 0.5, Evidence::Weighted),
            ((211, 150), 0.5, Evidence::Spread),
            ((211, 150), 0.5, Evidence::Centred),
        ] {
            let config = config(scale, evidence);
            let tiling = Tiling { tile: 180, halo: None };
            let [mask, probabilities] = difference(size, &config, tiling);
            // An undecided network's centred evidence is small beside its maps' rounding.
            let close = if evidence == Evidence::Centred { 1e-3 } else { 2e-5 };
            assert!(mask < close && probabilities < 2e-6, "{size:?}: {mask} {probabilities}");
        }
    }

    #[test]
    fn without_a_halo_the_seams_show() {
        let config = config(1.0, Evidence::Weighted);
        let [mask, _] = difference((211, 150), &config, Tiling { tile: 48, halo: Some(0) });
        assert!(mask > 1e-3, "{mask}: the test above would pass whatever the halo");
    }
}
