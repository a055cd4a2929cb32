//! From pixels to lattice: find every simplex, number the lattice points, list their members.
//!
//! 1. Bands of rows are embedded independently; each numbers the points it touches.
//! 2. The points of all bands are merged into one list, sorted by key.
//! 3. Each point learns its members, its points of bands, and its neighbours.
//!
//! Bands depend only on the image, never on the number of threads.

use rayon::prelude::*;

use super::{
    Lattice,
    band::{Table, embed_rows},
    neighbours::find_neighbours,
    order::{Points, merge_bands},
    simplex::Embedding,
};
use crate::{
    error::{Error, Result},
    kernel::Pixels,
    tile::Window,
};

/// Pixels per band, roughly.
const BAND: usize = 1 << 14;

impl<const V: usize> Lattice<V> {
    /// Whether slots and keys of `pixels` fit their integers.
    pub(crate) fn fits(pixels: &Pixels<'_>) -> bool {
        let Window { width, height, .. } = *pixels.window;
        let slots = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(V));
        let (low, high) = pixels.bounds::<V>();
        slots.is_some_and(|slots| u32::try_from(slots).is_ok())
            && Embedding::new(&low, &high).is_some()
    }

    /// Embeds every pixel, and turns the plain filter `K` into `weight · D^−½ K D^−½` with
    /// `D = diag(K1)`; refuses keys that do not fit into 63 bits.
    pub(crate) fn build(pixels: &Pixels<'_>, weight: f32) -> Result<Self> {
        let Window { width, height, .. } = *pixels.window;
        let (low, high) = pixels.bounds();
        let embedding = Embedding::new(&low, &high).ok_or(Error::TooNarrow)?;

        let rows = (BAND / width).max(1);
        let band = rows * width;
        let mut shares = vec![0.0; width * height * V];
        let mut corners = vec![0; shares.len()];
        let chunks = shares.par_chunks_mut(band * V).zip(corners.par_chunks_mut(band * V));
        let bands: Vec<Vec<u64>> = chunks
            .enumerate()
            .map_init(Table::default, |table, (band, slots)| {
                embed_rows(pixels, &embedding, band * rows, table, slots)
            })
            .collect();

        let Points { keys, ends, members } = merge_bands(&bands);
        let mut band_starts = vec![0];
        band_starts.extend(bands.iter().scan(0, |end, keys| {
            *end += keys.len();
            Some(*end)
        }));
        drop(bands);
        let points = points_of_members(&ends, &members);
        let neighbours = find_neighbours(&keys, &embedding.map.step);
        let scale = Self::GAIN;
        let mut lattice =
            Self { band, band_starts, corners, shares, points, members, ends, neighbours, scale };
        lattice.normalize(weight);
        Ok(lattice)
    }
}

/// The point that each member belongs to.
fn points_of_members(ends: &[u32], members: &[u32]) -> Vec<u32> {
    let mut points = vec![0; members.len()];
    let mut start = 0;
    for (point, &end) in (0..).zip(ends) {
        for &member in &members[start..end as usize] {
            points[member as usize] = point;
        }
        start = end as usize;
    }
    points
}
