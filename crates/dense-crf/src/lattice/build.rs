//! From pixels to lattice: find every simplex, number the lattice points, list who touches whom.
//!
//! 1. Bands of rows are embedded independently; each sorts its corners into buckets of keys.
//! 2. Groups of buckets are numbered independently: duplicates merged, points sorted by key.
//! 3. A prefix sum makes the numbers global; corners and splats are filled in.
//!
//! Bands and groups depend only on the image, never on the number of threads.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rayon::prelude::*;

use super::{
    Lattice, Splat,
    neighbours::find_neighbours,
    simplex::{BATCH, Embedding, Features},
};

/// Pixels per band, roughly.
const BAND: usize = 1 << 14;
/// Corners per bucket, on average; small enough for a bucket's hash table to stay in cache.
const BUCKET: usize = 512;
/// Corners per group of buckets, at least.
const GROUP: usize = 1 << 15;

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

/// Corners of a band of rows, sorted by bucket.
struct Band {
    first_bucket: usize,
    /// Where each bucket starts, from `first_bucket` on, and the end of the last.
    starts: Vec<u32>,
    keys: Vec<u64>,
    /// Position of the corner among all corners of the image.
    slots: Vec<u32>,
}

/// Lattice points of consecutive buckets, sorted by key.
struct Group {
    keys: Vec<u64>,
    /// Where each point's splats end, counted within the group.
    ends: Vec<u32>,
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

        let slots = width * height * V;
        let bucket_bits = (slots / BUCKET).max(1).ilog2() + 1;
        let shift = embedding.map.bits.saturating_sub(bucket_bits);

        let rows = (BAND / width).max(1);
        let mut shares = vec![0.0; slots];
        let bands: Vec<Band> = shares
            .par_chunks_mut(rows * width * V)
            .enumerate()
            .map_init(Vec::new, |keys, (band, shares)| {
                embed_rows(source, &embedding, band * rows, keys, shares);
                Band::sort(keys, band * rows * width * V, shift)
            })
            .collect();

        let mut splats = vec![Splat::default(); slots];
        let groups = number_points(&bands, &mut splats);
        drop(bands);
        Some(Self::assemble(groups, shares, splats, &embedding.map.step))
    }

    fn assemble(
        groups: Vec<Group>,
        shares: Vec<f32>,
        mut splats: Vec<Splat>,
        steps: &[i64; V],
    ) -> Self {
        let points = groups.iter().map(|group| group.keys.len()).sum();
        let mut keys = Vec::with_capacity(points);
        let mut starts = Vec::with_capacity(points + 1);
        starts.push(0);
        for group in groups {
            let base = *starts.last().expect("starts with a zero");
            starts.extend(group.ends.iter().map(|end| base + end));
            keys.extend(group.keys);
        }
        let neighbours = find_neighbours(&keys, steps);
        drop(keys);

        let corners: Vec<_> = (0..shares.len()).map(|_| AtomicU32::new(0)).collect();
        fill_splats::<V>(&starts, &shares, &corners, &mut splats);
        Self { corners, shares, starts, splats, neighbours }
    }
}

/// Embeds the rows from `top` on, as many as `shares` has room for.
fn embed_rows<const V: usize>(
    source: &impl Source<V>,
    embedding: &Embedding<V>,
    top: usize,
    keys: &mut Vec<u64>,
    shares: &mut [f32],
) {
    let row = source.size().0 * V;
    keys.resize(shares.len(), 0);
    let rows = keys.chunks_exact_mut(row).zip(shares.chunks_exact_mut(row));
    for (y, (keys, shares)) in (top..).zip(rows) {
        let batches = keys.chunks_mut(BATCH * V).zip(shares.chunks_mut(BATCH * V));
        for (batch, (keys, shares)) in batches.enumerate() {
            let simplices = embedding.embed(&source.features(batch * BATCH, y));
            keys.copy_from_slice(&simplices.keys.as_flattened()[..keys.len()]);
            shares.copy_from_slice(&simplices.weights.as_flattened()[..shares.len()]);
        }
    }
}

impl Band {
    /// Sorts corners by bucket, keeping their order within each.
    fn sort(keys: &[u64], first_slot: usize, shift: u32) -> Self {
        let bucket = |key: &u64| (key >> shift) as usize;
        let (least, most) =
            keys.iter().fold((u64::MAX, 0), |(least, most), &key| (least.min(key), most.max(key)));
        let first_bucket = bucket(&least);
        let mut next = vec![0_u32; bucket(&most) - first_bucket + 2];
        for key in keys {
            next[bucket(key) - first_bucket + 1] += 1;
        }
        for i in 1..next.len() {
            next[i] += next[i - 1];
        }
        let starts = next.clone();
        let mut sorted = vec![0; keys.len()];
        let mut slots = vec![0; keys.len()];
        for (slot, key) in (first_slot as u32..).zip(keys) {
            let place = &mut next[bucket(key) - first_bucket];
            sorted[*place as usize] = *key;
            slots[*place as usize] = slot;
            *place += 1;
        }
        Self { first_bucket, starts, keys: sorted, slots }
    }

    fn bucket(&self, bucket: usize) -> Range<usize> {
        let Some(local) = bucket.checked_sub(self.first_bucket) else { return 0..0 };
        match (self.starts.get(local), self.starts.get(local + 1)) {
            (Some(&start), Some(&end)) => start as usize..end as usize,
            _ => 0..0,
        }
    }
}

/// Numbers the lattice points and orders `splats` by point, then slot.
///
/// Until [`fill_splats`], a splat's `pixel` is the slot of its corner.
fn number_points(bands: &[Band], splats: &mut [Splat]) -> Vec<Group> {
    let mut rest = splats;
    let mut tasks = Vec::new();
    for (buckets, corners) in group_buckets(bands) {
        let (splats, tail) = rest.split_at_mut(corners);
        tasks.push((buckets, splats));
        rest = tail;
    }
    tasks
        .into_par_iter()
        .map_init(Numbering::default, |numbering, (buckets, splats)| {
            numbering.group(bands, buckets, splats)
        })
        .collect()
}

/// Cuts the buckets into runs of about [`GROUP`] corners, with the exact number of each.
fn group_buckets(bands: &[Band]) -> Vec<(Range<usize>, usize)> {
    let first = bands.iter().map(|band| band.first_bucket).min().unwrap_or(0);
    let end = bands.iter().map(|band| band.first_bucket + band.starts.len() - 1).max().unwrap_or(0);
    let mut sizes = vec![0; end - first];
    for band in bands {
        for (size, pair) in
            sizes[band.first_bucket - first..].iter_mut().zip(band.starts.windows(2))
        {
            *size += (pair[1] - pair[0]) as usize;
        }
    }
    let mut groups = Vec::new();
    let (mut start, mut corners) = (first, 0);
    for (bucket, size) in (first..).zip(sizes) {
        corners += size;
        if corners >= GROUP || bucket + 1 == end {
            groups.push((start..bucket + 1, corners));
            (start, corners) = (bucket + 1, 0);
        }
    }
    groups
}

/// Working memory for numbering the points of one bucket after another.
#[derive(Default)]
struct Numbering {
    /// Corners of the bucket, band by band: slots ascend.
    slots: Vec<u32>,
    /// Point of each corner, in order of first touch.
    touched: Vec<u32>,
    /// Distinct keys with their number of first touch.
    found: Vec<(u64, u32)>,
    /// Open-addressing hash table of numbers into `found`, plus one; zero is empty.
    table: Vec<u32>,
    /// Per number of first touch: corners counted, then the next free place.
    places: Vec<u32>,
}

impl Numbering {
    fn group(&mut self, bands: &[Band], buckets: Range<usize>, mut out: &mut [Splat]) -> Group {
        let mut group = Group { keys: Vec::new(), ends: Vec::new() };
        for bucket in buckets {
            self.merge_duplicates(bands, bucket);
            let (splats, rest) = out.split_at_mut(self.slots.len());
            self.sort_points(&mut group, splats);
            out = rest;
        }
        group
    }

    fn merge_duplicates(&mut self, bands: &[Band], bucket: usize) {
        self.slots.clear();
        self.touched.clear();
        self.found.clear();
        self.places.clear();
        let corners: usize = bands.iter().map(|band| band.bucket(bucket).len()).sum();
        let bits = (corners * 2).max(2).ilog2() + 1;
        self.table.clear();
        self.table.resize(1 << bits, 0);
        for band in bands {
            let range = band.bucket(bucket);
            self.slots.extend_from_slice(&band.slots[range.clone()]);
            for &key in &band.keys[range] {
                let number = self.number(key, bits);
                self.touched.push(number);
                self.places[number as usize] += 1;
            }
        }
    }

    /// The number of `key`, a new one if it has not been seen in this bucket.
    #[inline(always)]
    fn number(&mut self, key: u64, bits: u32) -> u32 {
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize;
        loop {
            match self.table[at] {
                0 => {
                    let number = self.found.len() as u32;
                    self.found.push((key, number));
                    self.places.push(0);
                    self.table[at] = number + 1;
                    return number;
                }
                entry if self.found[entry as usize - 1].0 == key => return entry - 1,
                _ => at = (at + 1) & (self.table.len() - 1),
            }
        }
    }

    /// Appends the bucket's points to `group` in key order and writes their corners to `out`.
    fn sort_points(&mut self, group: &mut Group, out: &mut [Splat]) {
        self.found.sort_unstable();
        let base = group.ends.last().copied().unwrap_or(0);
        let mut end = 0;
        for &(key, number) in &self.found {
            let count = std::mem::replace(&mut self.places[number as usize], end);
            end += count;
            group.keys.push(key);
            group.ends.push(base + end);
        }
        for (slot, number) in self.slots.iter().zip(&self.touched) {
            let place = &mut self.places[*number as usize];
            out[*place as usize].pixel = *slot;
            *place += 1;
        }
    }
}

/// Tells every corner its point, and every point its pixels.
fn fill_splats<const V: usize>(
    starts: &[u32],
    shares: &[f32],
    corners: &[AtomicU32],
    splats: &mut [Splat],
) {
    splats.par_chunks_mut(GROUP).enumerate().for_each(|(task, splats)| {
        let first = (task * GROUP) as u32;
        // The last point that starts at or before the first splat of this task.
        let mut point = starts.partition_point(|&start| start <= first) - 1;
        for (position, splat) in (first..).zip(splats) {
            while starts[point + 1] <= position {
                point += 1;
            }
            let slot = splat.pixel;
            // Each slot occurs once: no two tasks write the same corner.
            corners[slot as usize].store(point as u32, Relaxed);
            *splat = Splat { pixel: slot / V as u32, share: shares[slot as usize] };
        }
    });
}
