//! Gaussian filtering in many dimensions by the permutohedral lattice.
//!
//! ```text
//! pixels ─ splat ─▶ lattice points ─ blur along V axes ─▶ lattice points ─ slice ─▶ pixels
//! ```
//!
//! Every pixel is a point in feature space (position, colour) and lies in one simplex of the
//! lattice. Splatting shares its value among the `V = d + 1` corners, blurring spreads it
//! with weights ½, 1, ½ along each axis, slicing reads it back with the sharing weights.
//! See Adams, Baek, Davis, *Fast High-Dimensional Filtering Using the Permutohedral Lattice*.
//!
//! All three steps *gather*: each output is the sum of its inputs in a fixed order, whichever
//! thread computes it. That is why results do not depend on the number of threads.

mod band;
mod build;
mod key;
mod neighbours;
mod order;
mod simplex;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

pub(crate) use build::Source;
pub(crate) use simplex::{BATCH, Features};

/// Outputs that one task computes; fixed, so that it never depends on the number of threads.
const TASK: usize = 4096;

/// A sparse lattice holding the simplex of every pixel.
pub(crate) struct Lattice<const V: usize> {
    /// Per pixel and corner: the lattice point.
    corners: Vec<u32>,
    /// Per pixel and corner: the share sliced from that point.
    shares: Vec<f32>,
    /// Per lattice point: where its splats start; one more than there are points.
    starts: Vec<u32>,
    /// What lattice points receive, point by point, pixels ascending: packed [`Splat`]s, atomic
    /// only because building fills them from several threads.
    splats: Vec<AtomicU64>,
    /// Per axis and lattice point: the neighbours before and after, or the point count for none.
    neighbours: [Vec<[u32; 2]>; V],
}

/// A pixel's share of one lattice point.
#[derive(Debug, Clone, Copy)]
struct Splat {
    pixel: u32,
    share: f32,
}

impl Splat {
    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.pixel) << 32 | u64::from(self.share.to_bits())
    }

    #[inline(always)]
    fn unpack(bits: u64) -> Self {
        Self { pixel: (bits >> 32) as u32, share: f32::from_bits(bits as u32) }
    }

    #[inline(always)]
    fn add_to<const C: usize>(&self, sum: &mut [f32; C], input: &[[f32; C]]) {
        let value = &input[self.pixel as usize];
        for channel in 0..C {
            sum[channel] += self.share * value[channel];
        }
    }
}

/// Lattice values of the current and the next axis, reused from call to call.
#[derive(Default)]
pub(crate) struct Scratch<const C: usize> {
    front: Vec<[f32; C]>,
    back: Vec<[f32; C]>,
}

impl<const V: usize> Lattice<V> {
    /// Scale of the filter so that a single blurred point keeps its value.
    const GAIN: f32 = 1.0 / (1.0 + 1.0 / (1 << (V - 1)) as f32);

    /// Bytes per pixel at most, when no two pixels share a lattice point: while building, and
    /// while filtering `channels` at a time.
    pub(crate) const fn bytes_per_pixel(channels: usize) -> usize {
        // share, corner; key and count of a band's point, its key and number sorted; the
        // image's points, twice while they are put together; places and splats come after
        let building = V * (4 + 4 + (8 + 4) + (8 + 4) + 2 * (8 + 4 + 4));
        // share, corner, splat, start, neighbours, two buffers
        let filtering = V * (4 + 4 + 8 + 4 + 8 * V + 2 * 4 * channels);
        if building > filtering { building } else { filtering }
    }

    /// Lattice points touched by at least one pixel.
    pub(crate) fn points(&self) -> usize {
        self.starts.len() - 1
    }

    /// Adds the filtered `input` to `output`, `C` channels per pixel at once.
    pub(crate) fn filter<const C: usize>(
        &self,
        input: &[[f32; C]],
        scratch: &mut Scratch<C>,
        output: &mut [[f32; C]],
    ) {
        let Scratch { front, back } = scratch;
        for buffer in [&mut *front, &mut *back] {
            // The extra zero is the neighbour of points that have none.
            buffer.resize(self.points() + 1, [0.0; C]);
            buffer[self.points()] = [0.0; C];
        }
        self.splat(input, front);
        for axis in &self.neighbours {
            blur(axis, front, back);
            std::mem::swap(front, back);
        }
        self.slice(front, output);
    }

    /// Turns the plain filter `K` into `weight · D^−½ K D^−½` with `D = diag(K1)`.
    ///
    /// The factors go into the shares, so that filtering afterwards costs nothing extra.
    pub(crate) fn normalize(&mut self, weight: f32) {
        let pixels = self.corners.len() / V;
        let mut sums = vec![[0.0]; pixels];
        self.filter(&vec![[1.0]; pixels], &mut Scratch::default(), &mut sums);
        sums.par_chunks_mut(TASK).flatten_iter().for_each(|[sum]| {
            *sum = 1.0 / (*sum * Self::GAIN + 1e-20).sqrt();
        });
        let norms = sums;
        self.splats.par_chunks_mut(TASK).flatten_iter().for_each(|splat| {
            let Splat { pixel, share } = Splat::unpack(*splat.get_mut());
            *splat.get_mut() = Splat { pixel, share: share * norms[pixel as usize][0] }.pack();
        });
        self.shares.par_chunks_mut(TASK * V).enumerate().for_each(|(task, shares)| {
            for ([norm], shares) in norms[task * TASK..].iter().zip(shares.chunks_exact_mut(V)) {
                let factor = norm * Self::GAIN * weight;
                shares.iter_mut().for_each(|share| *share *= factor);
            }
        });
    }

    fn splat<const C: usize>(&self, input: &[[f32; C]], points: &mut [[f32; C]]) {
        let points = &mut points[..self.points()];
        points.par_chunks_mut(TASK).zip(self.starts.par_chunks(TASK)).enumerate().for_each(
            |(task, (points, starts))| {
                let end = self.starts[(task * TASK + points.len()).min(self.points())];
                let ends = starts[1..].iter().chain([&end]);
                for ((point, &start), &end) in points.iter_mut().zip(starts).zip(ends) {
                    *point = gather(&self.splats[start as usize..end as usize], input);
                }
            },
        );
    }

    fn slice<const C: usize>(&self, points: &[[f32; C]], output: &mut [[f32; C]]) {
        let corners = self.corners.par_chunks(TASK * V);
        let shares = self.shares.par_chunks(TASK * V);
        output.par_chunks_mut(TASK).zip(corners.zip(shares)).for_each(
            |(output, (corners, shares))| {
                let simplices = corners.chunks_exact(V).zip(shares.chunks_exact(V));
                for (pixel, (corners, shares)) in output.iter_mut().zip(simplices) {
                    let mut sum = [0.0; C];
                    for (corner, share) in corners.iter().zip(shares) {
                        let point = &points[*corner as usize];
                        for channel in 0..C {
                            sum[channel] += share * point[channel];
                        }
                    }
                    for channel in 0..C {
                        pixel[channel] += sum[channel];
                    }
                }
            },
        );
    }
}

/// What one lattice point receives.
///
/// Four sums run side by side, because a single one would wait for each addition to finish.
#[inline(always)]
fn gather<const C: usize>(splats: &[AtomicU64], input: &[[f32; C]]) -> [f32; C] {
    let mut sums = [[0.0; C]; 4];
    let (fours, rest) = splats.as_chunks::<4>();
    for splats in fours {
        for (sum, splat) in sums.iter_mut().zip(splats) {
            Splat::unpack(splat.load(Relaxed)).add_to(sum, input);
        }
    }
    for splat in rest {
        Splat::unpack(splat.load(Relaxed)).add_to(&mut sums[0], input);
    }
    let [a, b, c, d] = sums;
    std::array::from_fn(|channel| (a[channel] + b[channel]) + (c[channel] + d[channel]))
}

/// One axis of the blur: half of each neighbour on top of the point itself.
fn blur<const C: usize>(axis: &[[u32; 2]], from: &[[f32; C]], to: &mut [[f32; C]]) {
    let to = to[..axis.len()].par_chunks_mut(TASK);
    let from_chunks = from[..axis.len()].par_chunks(TASK);
    to.zip(from_chunks).zip(axis.par_chunks(TASK)).for_each(|((to, own), neighbours)| {
        for ((to, own), &[before, after]) in to.iter_mut().zip(own).zip(neighbours) {
            let (before, after) = (&from[before as usize], &from[after as usize]);
            for channel in 0..C {
                to[channel] = own[channel] + 0.5 * (before[channel] + after[channel]);
            }
        }
    });
}
