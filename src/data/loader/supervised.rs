//! Batches with masks, for full supervision and nothing else.
//!
//! All random choices for a sample are a pure function of *(seed, epoch, sample)*, so that a mask
//! can be cropped apart from its image and still match it pixel by pixel.

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use rayon::prelude::*;

use super::{Batch, Epoch, Supervision, TrainLoader, training::Source};
use crate::{
    collective::Part,
    config::Config,
    data::{
        Dataset, MaskRule, Sample, Truth,
        augment::Variation,
        image::read_size,
        mask::{self, Mask},
        preprocess::{Size, rescale, working_size},
    },
    error::{Error, Result},
};

/// Images of one training step with the ground truth of each pixel.
#[derive(Debug, Clone, PartialEq)]
pub struct SupervisedBatch {
    /// The images, as every method sees them.
    pub images: Batch,
    /// 1 where the object is, `[B, height, width]`.
    pub foreground: Vec<f32>,
    /// 0 where the truth is undecided, else 1, `[B, height, width]`.
    pub scored: Vec<f32>,
}

impl AsRef<Batch> for SupervisedBatch {
    fn as_ref(&self) -> &Batch {
        &self.images
    }
}

/// Loads the training split with its masks, epoch by epoch.
#[derive(Debug)]
pub struct SupervisedLoader {
    images: TrainLoader,
    rule: MaskRule,
    /// Number of training images that are left out, as they have no mask.
    without: usize,
}

impl Supervision for SupervisedLoader {
    type Batch = SupervisedBatch;
    type Truth = Mask;

    /// Learns from the images that have a mask.
    fn open(dataset: &Dataset, config: &Config, workers: usize, part: Part) -> Result<Self> {
        let with_mask = dataset.train.iter().filter(|sample| sample.truth.has_mask());
        let samples: Vec<Sample> = with_mask.cloned().collect();
        if samples.is_empty() {
            let problem = "no training image has a mask, which full supervision learns from";
            return Err(Error::data(
                &dataset.root,
                problem,
                "add masks, or train another `--method`",
            ));
        }
        let without = dataset.train.len() - samples.len();
        let images = TrainLoader::new(samples, config, workers, part);
        let rule = config.data.mask_rule.unwrap_or(dataset.mask_rule);
        Ok(Self { images, rule, without })
    }

    fn masks_of(sample: &Sample) -> Vec<&Path> {
        let Truth { masks, outlines, ignore, .. } = &sample.truth;
        let lists = outlines.iter().map(|outlines| &*outlines.list);
        masks.iter().chain(ignore).map(PathBuf::as_path).chain(lists).collect()
    }

    fn note(&self) -> Option<String> {
        let Self { images, without, .. } = self;
        let with = images.source.samples.len();
        (*without > 0).then(|| format!("learning from {with} images; {without} more have no mask"))
    }

    fn batches(&self) -> usize {
        self.images.batches()
    }

    fn epoch(&self, epoch: u64, first_batch: usize) -> Epoch<SupervisedBatch> {
        let rule = self.rule;
        self.images.epoch_of(epoch, first_batch, move |source, images| {
            source.with_masks(images, rule, epoch)
        })
    }

    fn truth(&self, sample: &Sample, size: Size) -> Result<Option<Mask>> {
        self.images.source.mask(sample, size, self.rule)
    }
}

impl Source {
    /// Puts the masks of a batch beside its images.
    fn with_masks(&self, images: Batch, rule: MaskRule, epoch: u64) -> Result<SupervisedBatch> {
        let cut = |&sample: &usize| self.cut_mask(sample, rule, epoch);
        let masks: Vec<[Vec<f32>; 2]> =
            images.samples.par_iter().map(cut).collect::<Result<_>>()?;
        let all = |part: usize| masks.iter().flat_map(|mask| &mask[part]).copied().collect();
        Ok(SupervisedBatch { foreground: all(0), scored: all(1), images })
    }

    /// What is foreground and what is scored of one sample, cut and turned as its image.
    fn cut_mask(&self, index: usize, rule: MaskRule, epoch: u64) -> Result<[Vec<f32>; 2]> {
        let Self { samples, config, .. } = self;
        let sample = &samples[index];
        let (width, height) = read_size(&sample.image, config.data.max_megapixels)?;
        let mask = self.mask(sample, Size { width, height }, rule)?;
        let mask = mask.expect("only samples with masks are learned from");
        let picture = picture(&mask);
        let wanted = working_size(Size { width, height }, &config.preprocess);
        let picture = rescale(&picture, wanted).unwrap_or(picture);

        // The same draws as the image's; colours are not for masks.
        let drawn = self.variation(index, epoch, wanted);
        let planes = Variation { colours: Vec::new(), ..drawn }.apply(&picture);
        let [foreground, ignored, _] = planes.channels();
        let marked = |&byte: &u8| f32::from(u8::from(byte >= 128));
        Ok([
            foreground.iter().map(marked).collect(),
            ignored.iter().map(|byte| 1.0 - marked(byte)).collect(),
        ])
    }

    fn mask(&self, sample: &Sample, size: Size, rule: MaskRule) -> Result<Option<Mask>> {
        let limit = self.config.data.max_megapixels;
        mask::read(&sample.truth, rule, (size.width, size.height), limit)
    }
}

/// A mask as a picture, to be resized and cropped as one: foreground in red, ignored pixels in
/// green.
fn picture(mask: &Mask) -> RgbImage {
    RgbImage::from_fn(mask.width, mask.height, |x, y| {
        let pixel = y as usize * mask.width as usize + x as usize;
        let byte = |flag: bool| if flag { 255 } else { 0 };
        let ignored = mask.is_ignored(pixel);
        Rgb([byte(mask.foreground[pixel]), byte(ignored), 0])
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::OpenOptions;

    /// A dataset whose images *are* their masks: white where the object is.
    fn dataset(folder: &std::path::Path) -> Dataset {
        for class in ["a", "b"] {
            for part in ["images", "masks"] {
                fs::create_dir_all(folder.join(part).join("train").join(class)).unwrap();
            }
            for index in 0..3_u32 {
                let shape = RgbImage::from_fn(40, 52, |x, y| {
                    let inside = x > 7 + index && x < 25 && y > 9 && y < 30 + 3 * index;
                    Rgb(if inside { [255; 3] } else { [0; 3] })
                });
                let name = format!("{index}.png");
                shape.save(folder.join("images/train").join(class).join(&name)).unwrap();
                shape.save(folder.join("masks/train").join(class).join(&name)).unwrap();
            }
        }
        let mut dataset = Dataset::open(&folder.join("images"), &OpenOptions::default()).unwrap();
        for sample in &mut dataset.train {
            let mask = sample.image.to_string_lossy().replace("/images/", "/masks/");
            sample.truth.masks = vec![mask.into()];
        }
        dataset
    }

    fn config() -> Config {
        let mut config = Config::default();
        config.preprocess.crop = 32;
        config.preprocess.upscale_short_side = 48;
        config.preprocess.train_padding = 0.5;
        config.augment.vertical_flip = 0.5;
        config.augment.quarter_turns = true;
        config.train.batch_size = 4;
        config
    }

    #[test]
    fn a_mask_is_cut_flipped_and_turned_exactly_as_its_image() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let supervision = SupervisedLoader::open(&dataset, &config(), 2, Part::WHOLE).unwrap();
        let mut seen = 0;
        for epoch in 0..4 {
            for batch in supervision.epoch(epoch, 0) {
                let SupervisedBatch { images, foreground, scored } = batch.unwrap();
                let pixels = images.height * images.width;
                assert!(scored.iter().all(|&scored| scored == 1.0));
                for (image, mask) in
                    images.images.chunks_exact(3 * pixels).zip(foreground.chunks_exact(pixels))
                {
                    // Normalized to ±1, and what lies between comes from enlarging.
                    let red = image[..pixels].iter().map(|&value| f32::from(u8::from(value > 0.0)));
                    assert!(red.eq(mask.iter().copied()), "epoch {epoch}");
                    seen += usize::from(mask.contains(&1.0));
                }
            }
        }
        assert!(seen > 12, "objects must be in most crops, or nothing is tested: {seen}");
    }

    #[test]
    fn images_without_mask_are_left_out_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut dataset = dataset(folder.path());
        dataset.train[2].truth.masks.clear();
        let supervision = SupervisedLoader::open(&dataset, &config(), 1, Part::WHOLE).unwrap();
        assert_eq!(supervision.note().unwrap(), "learning from 5 images; 1 more have no mask");
        let seen: usize =
            supervision.epoch(0, 0).map(|batch| batch.unwrap().images.labels.len()).sum();
        assert_eq!(seen, 5);

        dataset.train.iter_mut().for_each(|sample| sample.truth.masks.clear());
        let message =
            SupervisedLoader::open(&dataset, &config(), 1, Part::WHOLE).unwrap_err().to_string();
        assert!(message.contains("no training image has a mask"), "{message}");
    }
}
