//! The interface of the CRF: checks its input, then infers tile by tile.

use crate::{
    error::{Error, Result},
    kernel::Kernels,
    meanfield,
    params::Params,
    tile::{Tile, Window},
};

/// How far a pixel's probabilities may be from summing to one and still be renormalized.
const SUM_TOLERANCE: f32 = 1e-3;
/// Sums this close to one are rounding error and left alone.
const SUM_ROUNDING: f32 = 1e-6;

/// A fully connected CRF over the pixels of one image.
///
/// Making one is cheap: lattices are built by [`infer`](Self::infer), tile by tile, and dropped.
#[derive(Debug, Clone, Copy)]
pub struct DenseCrf<'a> {
    width: usize,
    height: usize,
    rgb: &'a [u8],
    params: Params,
}

impl<'a> DenseCrf<'a> {
    /// Takes an image as rows of interleaved red, green and blue: `rgb [height × width × 3]`.
    pub fn new(width: usize, height: usize, rgb: &'a [u8], params: Params) -> Result<Self> {
        params.check()?;
        if width == 0 || height == 0 {
            return Err(Error::Empty { width, height, labels: 1 });
        }
        check_length("rgb", rgb.len(), size(width, height, 3)?, "height × width × 3")?;
        Ok(Self { width, height, rgb, params })
    }

    /// Refines `probabilities [labels × height × width]`; the result has the same layout.
    ///
    /// Each pixel's probabilities must be in `[0, 1]` and sum to one; sums off by up to 0.001
    /// are renormalized, anything else is an error. If no kernel is active or `iterations` is
    /// zero, the input comes back bit for bit (where it did sum to one).
    pub fn infer(&self, probabilities: &[f32], labels: usize) -> Result<Vec<f32>> {
        // Enter the thread pool once: from outside, each of some hundred short parallel loops
        // would put this thread to sleep and wake it again, which is slow on a busy machine.
        rayon::scope(|_| self.infer_in_pool(probabilities, labels))
    }

    fn infer_in_pool(&self, probabilities: &[f32], labels: usize) -> Result<Vec<f32>> {
        self.check_probabilities(probabilities, labels)?;
        let Self { width, height, .. } = *self;
        let whole = Window { x: 0, y: 0, width, height };
        if self.params.is_identity() || labels == 1 {
            return Ok(self.read(probabilities, labels, &whole));
        }
        let tiles = self.params.tiles(width, height, labels)?;
        if tiles.len() == 1 {
            return self.infer_window(probabilities, labels, &whole);
        }
        let mut refined = vec![0.0; probabilities.len()];
        for tile in tiles {
            let result = self.infer_window(probabilities, labels, &tile.window)?;
            self.keep_core(&result, &tile, &mut refined);
        }
        Ok(refined)
    }

    fn infer_window(&self, planes: &[f32], labels: usize, window: &Window) -> Result<Vec<f32>> {
        let kernels = Kernels::build(self.rgb, self.width, window, &self.params)?;
        let planes = self.read(planes, labels, window);
        Ok(meanfield::infer(&kernels, self.params.iterations, &planes, labels))
    }

    /// Copies a window of every plane, renormalizing where sums are off.
    fn read(&self, planes: &[f32], labels: usize, window: &Window) -> Vec<f32> {
        let mut copy = Vec::with_capacity(labels * window.width * window.height);
        for plane in planes.chunks_exact(self.width * self.height) {
            let rows = plane.chunks_exact(self.width).skip(window.y).take(window.height);
            rows.for_each(|row| copy.extend_from_slice(&row[window.x..][..window.width]));
        }
        let sums = sum_planes(&copy, window.width * window.height);
        for plane in copy.chunks_exact_mut(sums.len()) {
            for (p, sum) in plane.iter_mut().zip(&sums) {
                if (sum - 1.0).abs() > SUM_ROUNDING {
                    *p /= sum;
                }
            }
        }
        copy
    }

    /// Writes the core of a tile's result into the planes of the image.
    fn keep_core(&self, result: &[f32], Tile { core, window }: &Tile, refined: &mut [f32]) {
        let from = result.chunks_exact(window.width * window.height);
        for (from, to) in from.zip(refined.chunks_exact_mut(self.width * self.height)) {
            let from_rows = from.chunks_exact(window.width).skip(core.y - window.y);
            let to_rows = to.chunks_exact_mut(self.width).skip(core.y).take(core.height);
            for (from, to) in from_rows.zip(to_rows) {
                let from = &from[core.x - window.x..][..core.width];
                to[core.x..][..core.width].copy_from_slice(from);
            }
        }
    }

    fn check_probabilities(&self, probabilities: &[f32], labels: usize) -> Result<()> {
        let Self { width, height, .. } = *self;
        if labels == 0 {
            return Err(Error::Empty { width, height, labels });
        }
        let (found, expected) = (probabilities.len(), size(width, height, labels)?);
        check_length("probabilities", found, expected, "labels × height × width")?;
        let pixels = width * height;
        if let Some(at) = probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
            let (label, pixel, value) = (at / pixels, at % pixels, probabilities[at]);
            return Err(Error::Probability { label, pixel, value });
        }
        let sums = sum_planes(probabilities, pixels);
        match sums.iter().position(|sum| (sum - 1.0).abs() > SUM_TOLERANCE) {
            Some(pixel) => Err(Error::Sum { pixel, sum: sums[pixel] }),
            None => Ok(()),
        }
    }
}

/// Refines the foreground probability of each pixel, `foreground [height × width]` in `[0, 1]`.
///
/// The two-label case of [`DenseCrf::infer`], with the background as the rest.
pub fn refine_mask(
    rgb: &[u8],
    width: usize,
    height: usize,
    foreground: &[f32],
    params: &Params,
) -> Result<Vec<f32>> {
    let crf = DenseCrf::new(width, height, rgb, *params)?;
    check_length("foreground", foreground.len(), width * height, "height × width")?;
    let background = foreground.iter().map(|p| 1.0 - p);
    let planes: Vec<f32> = background.chain(foreground.iter().copied()).collect();
    let mut refined = crf.infer(&planes, 2)?;
    Ok(refined.split_off(foreground.len()))
}

fn check_length(
    name: &'static str,
    found: usize,
    expected: usize,
    shape: &'static str,
) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Length { name, found, expected, shape }) }
}

fn sum_planes(planes: &[f32], pixels: usize) -> Vec<f32> {
    let mut sums = vec![0.0; pixels];
    for plane in planes.chunks_exact(pixels) {
        sums.iter_mut().zip(plane).for_each(|(sum, p)| *sum += p);
    }
    sums
}

fn size(width: usize, height: usize, depth: usize) -> Result<usize> {
    let too_large = Error::TooLarge { width, height, labels: depth };
    width.checked_mul(height).and_then(|pixels| pixels.checked_mul(depth)).ok_or(too_large)
}
