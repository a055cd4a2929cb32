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
//! Pixels come in bands of rows, and each band keeps its own list of the points it touches: small
//! enough to stay in cache. A point is the sum of its *members*, one per band that touches it.
//! Every sum runs in an order fixed by the image, whichever thread computes it. That is why
//! results do not depend on the number of threads.

mod band;
mod build;
mod key;
mod neighbours;
mod order;
mod simplex;

use rayon::prelude::*;

pub(crate) use simplex::{BATCH, Features};

/// Outputs that one task computes; fixed, so that it never depends on the number of threads.
const TASK: usize = 4096;

/// A sparse lattice holding the simplex of every pixel.
pub(crate) struct Lattice<const V: usize> {
    /// Pixels per band, except perhaps in the last.
    band: usize,
    /// Per band: where its members start; one more than there are bands.
    band_starts: Vec<usize>,
    /// Per pixel and corner: the member, counted from its band's first.
    corners: Vec<u32>,
    /// Per pixel and corner: the share of the pixel that is the corner's.
    shares: Vec<f32>,
    /// Per member: its point.
    points: Vec<u32>,
    /// Members by point, bands ascending.
    members: Vec<u32>,
    /// Per point: where its members end.
    ends: Vec<u32>,
    /// Per axis and point: the neighbours before and after, or the point count for none.
    neighbours: [Vec<[u32; 2]>; V],
    /// Factor on everything filtered.
    scale: f32,
}

/// Values of members, and of points for the current and the next axis, reused from call to call.
#[derive(Default)]
pub(crate) struct Scratch<const C: usize> {
    members: Vec<[f32; C]>,
    front: Vec<[f32; C]>,
    back: Vec<[f32; C]>,
}

impl<const V: usize> Lattice<V> {
    /// Scale of the filter so that a single blurred point keeps its value.
    const GAIN: f32 = 1.0 / (1.0 + 1.0 / (1 << (V - 1)) as f32);

    /// Bytes per pixel at most, when no two pixels share a lattice point: while building, and
    /// while filtering `channels` at a time.
    pub(crate) fn bytes_per_pixel(channels: usize) -> usize {
        // share, corner; a band's key, in a list that grows by doubling; key and member in one
        // integer; the image's key, end and member; and 4 to spare
        let building = V * (4 + 4 + 2 * 8 + 16 + (8 + 4 + 4) + 4);
        // share, corner, point, member, end, neighbours, three buffers
        let filtering = V * (4 + 4 + 4 + 4 + 4 + 8 * V + 3 * 4 * channels);
        building.max(filtering)
    }

    /// Adds the filtered `input` to `output`, `C` channels per pixel at once.
    pub(crate) fn filter<const C: usize>(
        &self,
        input: &[[f32; C]],
        scratch: &mut Scratch<C>,
        output: &mut [[f32; C]],
    ) {
        let Scratch { members, front, back } = scratch;
        let points = self.ends.len();
        members.resize(self.members.len(), [0.0; C]);
        for buffer in [&mut *front, &mut *back] {
            // The extra zero is the neighbour of points that have none.
            buffer.resize(points + 1, [0.0; C]);
            buffer[points] = [0.0; C];
        }
        self.splat(input, members);
        self.sum_members(members, front);
        for axis in &self.neighbours {
            blur(axis, front, back);
            std::mem::swap(front, back);
        }
        self.slice(front, members, output);
    }

    /// Multiplies the roots of `D` into the shares, so that filtering afterwards costs no more.
    fn normalize(&mut self, weight: f32) {
        let pixels = self.corners.len() / V;
        let mut sums = vec![[0.0]; pixels];
        self.filter(&vec![[1.0]; pixels], &mut Scratch::default(), &mut sums);
        let shares = self.shares.par_chunks_mut(TASK * V);
        shares.zip(sums.par_chunks(TASK)).for_each(|(shares, sums)| {
            for ([sum], shares) in sums.iter().zip(shares.as_chunks_mut::<V>().0) {
                // The addend is the original implementation's.
                let norm = 1.0 / (sum + 1e-20).sqrt();
                shares.iter_mut().for_each(|share| *share *= norm);
            }
        });
        self.scale *= weight;
    }

    /// Shares every pixel's value among the members at its corners.
    fn splat<const C: usize>(&self, input: &[[f32; C]], members: &mut [[f32; C]]) {
        let pixels = self.simplices().zip(input.par_chunks(self.band));
        pixels.zip(self.split_bands(members)).for_each(|(((corners, shares), input), members)| {
            members.fill([0.0; C]);
            for ((corners, shares), value) in corners.iter().zip(shares).zip(input) {
                for (&corner, &share) in corners.iter().zip(shares) {
                    add(&mut members[corner as usize], share, value);
                }
            }
        });
    }

    /// Sums the members of each point.
    fn sum_members<const C: usize>(&self, members: &[[f32; C]], points: &mut [[f32; C]]) {
        let tasks = points[..self.ends.len()].par_chunks_mut(TASK).zip(self.ends.par_chunks(TASK));
        tasks.enumerate().for_each(|(task, (points, ends))| {
            let mut start = if task == 0 { 0 } else { self.ends[task * TASK - 1] };
            for (point, &end) in points.iter_mut().zip(ends) {
                *point = [0.0; C];
                for &member in &self.members[start as usize..end as usize] {
                    add(point, 1.0, &members[member as usize]);
                }
                start = end;
            }
        });
    }

    /// Adds to every pixel its corners' values, by the same shares.
    fn slice<const C: usize>(
        &self,
        points: &[[f32; C]],
        members: &mut [[f32; C]],
        output: &mut [[f32; C]],
    ) {
        let pixels = self.simplices().zip(output.par_chunks_mut(self.band));
        let bands = self.split_bands(members).zip(&self.band_starts);
        pixels.zip(bands).for_each(|(((corners, shares), output), (members, &start))| {
            for (member, &point) in members.iter_mut().zip(&self.points[start..]) {
                *member = points[point as usize];
            }
            for ((corners, shares), pixel) in corners.iter().zip(shares).zip(output) {
                let mut sum = [0.0; C];
                for (&corner, &share) in corners.iter().zip(shares) {
                    add(&mut sum, share, &members[corner as usize]);
                }
                add(pixel, self.scale, &sum);
            }
        });
    }

    /// Corners and shares of each band's pixels.
    fn simplices(&self) -> impl IndexedParallelIterator<Item = (&[[u32; V]], &[[f32; V]])> {
        let corners = self.corners.as_chunks().0.par_chunks(self.band);
        corners.zip(self.shares.as_chunks().0.par_chunks(self.band))
    }

    /// Cuts a list of members into those of each band.
    fn split_bands<'a, T: Send>(
        &self,
        mut members: &'a mut [T],
    ) -> impl IndexedParallelIterator<Item = &'a mut [T]> + use<'a, T, V> {
        let mut bands = Vec::with_capacity(self.band_starts.len() - 1);
        for range in self.band_starts.windows(2) {
            let (band, rest) = members.split_at_mut(range[1] - range[0]);
            bands.push(band);
            members = rest;
        }
        bands.into_par_iter()
    }
}

#[inline(always)]
fn add<const C: usize>(sum: &mut [f32; C], factor: f32, value: &[f32; C]) {
    for channel in 0..C {
        sum[channel] += factor * value[channel];
    }
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
