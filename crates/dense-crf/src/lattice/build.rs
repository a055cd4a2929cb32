//! From pixels to lattice: find every simplex, number the lattice points, list who touches whom.
//!
//! 1. Bands of rows are embedded independently; each numbers the points it touches.
//! 2. The points of all bands are merged into one list, sorted by key.
//! 3. Corners get their final numbers, points the list of their pixels.
//!
//! Bands depend only on the image, never on the number of threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use super::{
    Features, Lattice, Splat,
    band::{Band, Table},
    neighbours::find_neighbours,
    order::{Points, merge_bands},
    simplex::Embedding,
};

/// Pixels per band, roughly.
const BAND: usize = 1 << 14;

/// The points to filter: a grid of pixels with `V − 1` features each.
pub(crate) trait Source<const V: usize>: Sync {
    /// Columns and rows; both positive, their product times `V` below 2³².
    fn size(&self) -> (usize, usize);

    /// Least and greatest value of each feature over the whole grid.
    fn bounds(&self) -> ([f32; V], [f32; V]);

    /// Features of pixels `x..x + BATCH` in row `y`; columns past the last may hold anything
    /// within the bounds.
    fn features(&self, x: usize, y: usize) -> Features<V>;
}

impl<const V: usize> Lattice<V> {
    /// Whether slots and keys of `source` fit their integers.
    pub(crate) fn fits(source: &impl Source<V>) -> bool {
        let (width, height) = source.size();
        let slots = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(V));
        let (low, high) = source.bounds();
        slots.is_some_and(|slots| u32::try_from(slots).is_ok())
            && Embedding::new(&low, &high).is_some()
    }

    /// Embeds every pixel of `source`; `None` if its keys do not fit into 63 bits.
    pub(crate) fn build(source: &impl Source<V>) -> Option<Self> {
        let (width, height) = source.size();
        let (low, high) = source.bounds();
        let embedding = Embedding::new(&low, &high)?;

        let rows = (BAND / width).max(1);
        let chunk = rows * width * V;
        let mut shares = vec![0.0; width * height * V];
        let mut corners = vec![0; shares.len()];
        let chunks = shares.par_chunks_mut(chunk).zip(corners.par_chunks_mut(chunk));
        let bands: Vec<Band> = chunks
            .enumerate()
            .map_init(Table::default, |table, (band, slots)| {
                Band::embed(source, &embedding, band * rows, table, slots)
            })
            .collect();

        let points = merge_bands(&bands, embedding.map.bits);
        let (starts, mut places) = lay_out(&points, &bands);
        let Points { keys, .. } = points;
        let splats = fill_splats::<V>(&bands, chunk, &mut places, &mut corners, &shares);
        drop((bands, places));
        let neighbours = find_neighbours(&keys, &embedding.map.step);
        Some(Self { corners, shares, starts, splats, neighbours })
    }
}

/// Where a band's corners of one point go.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Next free splat.
    splat: u32,
    point: u32,
}

/// Gives every point a run of splats, within it every band its part, in order.
///
/// Returns where the runs start, and a place per member: per point of a band.
fn lay_out(points: &Points, bands: &[Band]) -> (Vec<u32>, Vec<Place>) {
    let counts: Vec<u32> = bands.iter().flat_map(|band| &band.counts).copied().collect();
    let mut places = vec![Place::default(); counts.len()];
    let mut starts = Vec::with_capacity(points.keys.len() + 1);
    let (mut splat, mut first) = (0, 0);
    for (point, &end) in (0..).zip(&points.ends) {
        starts.push(splat);
        for &member in &points.members[first..end as usize] {
            places[member as usize] = Place { splat, point };
            splat += counts[member as usize];
        }
        first = end as usize;
    }
    starts.push(splat);
    (starts, places)
}

/// Tells every corner its point, and every point its pixels.
fn fill_splats<const V: usize>(
    bands: &[Band],
    chunk: usize,
    mut places: &mut [Place],
    corners: &mut [u32],
    shares: &[f32],
) -> Vec<AtomicU64> {
    // Bands fill disjoint splats, but interleaved ones: stores that no one else reads or writes.
    let splats: Vec<_> = (0..corners.len()).map(|_| AtomicU64::new(0)).collect();
    let mut places_of_bands = Vec::with_capacity(bands.len());
    for band in bands {
        let (own, rest) = places.split_at_mut(band.keys.len());
        places_of_bands.push(own);
        places = rest;
    }
    let chunks = corners.par_chunks_mut(chunk).zip(shares.par_chunks(chunk));
    chunks.zip(places_of_bands).enumerate().for_each(|(band, ((corners, shares), places))| {
        for (slot, (corner, &share)) in (band * chunk..).zip(corners.iter_mut().zip(shares)) {
            let place = &mut places[*corner as usize];
            let splat = Splat { pixel: (slot / V) as u32, share };
            splats[place.splat as usize].store(splat.pack(), Relaxed);
            place.splat += 1;
            *corner = place.point;
        }
    });
    splats
}
