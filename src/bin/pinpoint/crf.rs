//! `pinpoint crf`: the dense CRF alone, on any image and mask.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use dense_crf::Params;
use pinpoint::{
    data::{
        image::read_rgb,
        npy::{self, Map},
        probability::read_map,
    },
    refine::{Preset, refine_with},
    report::picture::encode_grey_png,
    run::write_atomically,
};

use crate::{
    choice::{PRESETS, named},
    machine::use_threads,
    overrides::overlay,
    ui::Ui,
};

/// Snap a mask to the edges of its image, by a fully connected CRF
///
/// There are two labels, foreground and background. Pixels that are near each other, and more so if
/// they are alike in colour, tend to the same label.
#[derive(Debug, clap::Args)]
pub(crate) struct Crf {
    /// The image
    image: PathBuf,

    /// Its mask: a grey picture, black is 0 and white is 1, or a `.npy` array in [0, 1]
    mask: PathBuf,

    /// File to write: `.png` for the mask, `.npy` for probabilities
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,

    /// Parameters to start from: `glas` for stained tissue, `natural` for photographs
    #[arg(long, value_parser = named::<Preset>(PRESETS), default_value = "natural")]
    preset: Preset,

    /// Write probabilities as grey instead of a mask in black and white
    #[arg(long)]
    soft: bool,

    #[command(flatten)]
    parameters: Parameters,

    /// Images above this many megapixels are refused
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_megapixels: u32,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Parameters that replace those of the preset.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Parameters (override the preset)")]
struct Parameters {
    /// Weight of the smoothness kernel, which gives near pixels the same label; 0 switches it off
    #[arg(long, value_name = "W")]
    smoothness_weight: Option<f32>,

    /// θγ, the reach of the smoothness kernel in pixels
    #[arg(long, value_name = "PIXELS")]
    theta_gamma: Option<f32>,

    /// Weight of the appearance kernel, which gives near pixels of like colour the same label; 0
    /// switches it off
    #[arg(long, value_name = "W")]
    appearance_weight: Option<f32>,

    /// θα, the reach of the appearance kernel in pixels
    #[arg(long, value_name = "PIXELS")]
    theta_alpha: Option<f32>,

    /// θβ, the reach of the appearance kernel in colour, in grey levels
    #[arg(long, value_name = "LEVELS")]
    theta_beta: Option<f32>,

    /// Mean-field updates; 0 returns the mask
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Working memory, 1024 by default; images that need more are done in overlapping tiles
    #[arg(long, value_name = "MIB")]
    max_memory: Option<usize>,

    /// Overlap of tiles, as a multiple of the larger of θγ and θα, 4 by default
    #[arg(long, value_name = "X")]
    halo_thetas: Option<f32>,
}

impl Parameters {
    /// The parameters of a preset, replaced where flags were given.
    fn over(self, preset: Preset) -> Params {
        let mut params = preset.params();
        if let Some(kernel) = &mut params.smoothness {
            overlay(&mut kernel.weight, self.smoothness_weight);
            overlay(&mut kernel.theta_gamma, self.theta_gamma);
        }
        if let Some(kernel) = &mut params.appearance {
            overlay(&mut kernel.weight, self.appearance_weight);
            overlay(&mut kernel.theta_alpha, self.theta_alpha);
            overlay(&mut kernel.theta_beta, self.theta_beta);
        }
        overlay(&mut params.iterations, self.iterations);
        overlay(&mut params.max_bytes, self.max_memory.map(|mib| mib.saturating_mul(1 << 20)));
        overlay(&mut params.halo_thetas, self.halo_thetas);
        params
    }
}

impl Crf {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { image, mask, out, preset, soft, parameters, max_megapixels, threads } = self;
        let encode = encoder(&out, soft)?;
        for input in [&image, &mask] {
            // Names may differ; what does not exist yet is no input.
            if out.canonicalize().is_ok_and(|out| input.canonicalize().is_ok_and(|it| it == out)) {
                bail!(
                    "`{}` is what the mask is made from and is not replaced\nhint: give another \
                     `--out`",
                    out.display()
                );
            }
        }
        use_threads(threads)?;
        let pixels = read_rgb(&image, max_megapixels)?;
        let map = read_map(&mask, max_megapixels)?;
        let (width, height) = (pixels.width() as usize, pixels.height() as usize);
        if (map.width, map.height) != (width, height) {
            bail!(
                "the mask is {}×{} pixels and its image {width}×{height}: `{}`\n\
                 hint: give the mask of this very image",
                map.width,
                map.height,
                mask.display()
            );
        }
        if is_of_labels(&map) {
            ui.warn("the mask is black but for values of 1 of 255; white (255) is foreground");
        }
        let refined = refine_with(&pixels, &map.values, &parameters.over(preset))?;
        write_atomically(&out, &encode(width, &refined))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a mask numbers labels, 0 and 1, where brightness is meant.
fn is_of_labels(map: &Map) -> bool {
    let highest = map.values.iter().copied().fold(0.0, f32::max);
    highest > 0.0 && highest <= 1.0 / 255.0
}

/// Makes the bytes of a file of a map, in rows of that width.
type Encoder = fn(usize, &[f32]) -> Vec<u8>;

/// The encoder of files with that ending.
fn encoder(out: &Path, soft: bool) -> anyhow::Result<Encoder> {
    let ending = out.extension().map(|ending| ending.to_ascii_lowercase());
    match (ending.as_deref().and_then(|ending| ending.to_str()), soft) {
        (Some("png"), false) => {
            Ok(|width, map| png(width, map, |p| if p >= 0.5 { 255 } else { 0 }))
        }
        (Some("png"), true) => Ok(|width, map| png(width, map, |p| (255.0 * p).round() as u8)),
        (Some("npy"), _) => Ok(npy::encode),
        _ => bail!("`--out` must end in `.png` or `.npy`: `{}`", out.display()),
    }
}

fn png(width: usize, map: &[f32], shade: fn(f32) -> u8) -> Vec<u8> {
    let pixels: Vec<u8> = map.iter().map(|&p| shade(p)).collect();
    encode_grey_png(width as u32, &pixels)
}
