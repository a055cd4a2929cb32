//! One numbering for the points of all bands: duplicates merged, sorted by key.
//!
//! The high bits of a key name its bucket. Buckets hold a few hundred points each and are sorted
//! independently; put end to end, they are the sorted whole.

use std::ops::Range;

use rayon::prelude::*;

use super::{band::Table, build::prefix_sums};

/// Points per bucket, on average.
const BUCKET: usize = 512;
/// Points per group of buckets, at least: what one task sorts.
const GROUP: usize = 1 << 14;

/// The lattice points of the image, or of a run of buckets, sorted by key.
#[derive(Default)]
pub(super) struct Points {
    pub(super) keys: Vec<u64>,
    /// Where each point's members end.
    pub(super) ends: Vec<u32>,
    /// Which points of bands each point is: positions in the bands' lists laid end to end.
    pub(super) members: Vec<u32>,
}

/// Merges the points of all bands; `key_bits` bounds the keys.
pub(super) fn merge_bands(bands: &[Vec<u64>], key_bits: u32) -> Points {
    let starts = prefix_sums(bands.iter().map(Vec::len));
    let count = starts[bands.len()];
    let shift = key_bits.saturating_sub((count / BUCKET).max(1).ilog2() + 1);
    let sorted: Vec<Buckets> = bands
        .par_iter()
        .zip(&starts[..bands.len()])
        .map(|(band, &first)| Buckets::sort(band, first as u32, shift))
        .collect();
    let groups: Vec<Points> = group_buckets(&sorted)
        .into_par_iter()
        .map_init(Merging::default, |merging, buckets| merging.group(&sorted, buckets))
        .collect();
    concatenate(groups)
}

fn concatenate(groups: Vec<Points>) -> Points {
    let mut all = Points::default();
    all.keys.reserve_exact(groups.iter().map(|group| group.keys.len()).sum());
    all.ends.reserve_exact(all.keys.capacity());
    all.members.reserve_exact(groups.iter().map(|group| group.members.len()).sum());
    for group in groups {
        let base = all.members.len() as u32;
        all.keys.extend(group.keys);
        all.ends.extend(group.ends.iter().map(|end| base + end));
        all.members.extend(group.members);
    }
    all
}

/// Points of one band, ordered by bucket.
struct Buckets {
    first: usize,
    /// Where each bucket starts, from `first` on, and the end of the last.
    starts: Vec<u32>,
    keys: Vec<u64>,
    members: Vec<u32>,
}

impl Buckets {
    fn sort(band: &[u64], first_member: u32, shift: u32) -> Self {
        let bucket = |key: u64| (key >> shift) as usize;
        let first = band.iter().copied().min().map_or(0, bucket);
        let last = band.iter().copied().max().map_or(0, bucket);
        let mut next = vec![0_u32; last - first + 2];
        for &key in band {
            next[bucket(key) - first + 1] += 1;
        }
        for i in 1..next.len() {
            next[i] += next[i - 1];
        }
        let starts = next.clone();
        let mut keys = vec![0; band.len()];
        let mut members = vec![0; band.len()];
        for (member, &key) in (first_member..).zip(band) {
            let place = &mut next[bucket(key) - first];
            keys[*place as usize] = key;
            members[*place as usize] = member;
            *place += 1;
        }
        Self { first, starts, keys, members }
    }

    fn end(&self) -> usize {
        self.first + self.starts.len() - 1
    }

    fn bucket(&self, bucket: usize) -> Range<usize> {
        if !(self.first..self.end()).contains(&bucket) {
            return 0..0;
        }
        let local = bucket - self.first;
        self.starts[local] as usize..self.starts[local + 1] as usize
    }
}

/// Cuts the buckets into runs of about [`GROUP`] points.
fn group_buckets(bands: &[Buckets]) -> Vec<Range<usize>> {
    let first = bands.iter().map(|band| band.first).min().unwrap_or(0);
    let end = bands.iter().map(Buckets::end).max().unwrap_or(0);
    let mut sizes = vec![0; end - first];
    for band in bands {
        let pairs = band.starts.windows(2);
        for (size, pair) in sizes[band.first - first..].iter_mut().zip(pairs) {
            *size += (pair[1] - pair[0]) as usize;
        }
    }
    let mut groups = Vec::new();
    let (mut start, mut points) = (first, 0);
    for (bucket, size) in (first..).zip(sizes) {
        points += size;
        if points >= GROUP || bucket + 1 == end {
            groups.push(start..bucket + 1);
            (start, points) = (bucket + 1, 0);
        }
    }
    groups
}

/// Working memory for merging one bucket after another.
#[derive(Default)]
struct Merging {
    table: Table,
    keys: Vec<u64>,
    /// Each member with the number of its key, members ascending.
    members: Vec<(u32, u32)>,
    /// Distinct keys with their numbers.
    sorted: Vec<(u64, u32)>,
    /// Per number: members counted, then the next free place.
    places: Vec<u32>,
}

impl Merging {
    fn group(&mut self, bands: &[Buckets], buckets: Range<usize>) -> Points {
        let mut points = Points::default();
        for bucket in buckets {
            self.collect(bands, bucket);
            self.append_to(&mut points);
        }
        points
    }

    fn collect(&mut self, bands: &[Buckets], bucket: usize) {
        let Self { table, keys, members, places, .. } = self;
        table.clear();
        keys.clear();
        members.clear();
        places.clear();
        for band in bands {
            let range = band.bucket(bucket);
            for (&key, &member) in band.keys[range.clone()].iter().zip(&band.members[range]) {
                let number = table.number(key, keys);
                places.resize(keys.len(), 0);
                places[number as usize] += 1;
                members.push((member, number));
            }
        }
    }

    fn append_to(&mut self, points: &mut Points) {
        let Self { keys, members, sorted, places, .. } = self;
        sorted.clear();
        sorted.extend(keys.iter().copied().zip(0..));
        sorted.sort_unstable();
        let mut end = points.members.len() as u32;
        points.members.resize(points.members.len() + members.len(), 0);
        for &(key, number) in &*sorted {
            let count = std::mem::replace(&mut places[number as usize], end);
            end += count;
            points.keys.push(key);
            points.ends.push(end);
        }
        for &(member, number) in &*members {
            let place = &mut places[number as usize];
            points.members[*place as usize] = member;
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_two_bands_are_merged_in_key_order() {
        let points = merge_bands(&[vec![50, 10, 30], vec![30, 20]], 6);
        assert_eq!(points.keys, [10, 20, 30, 50]);
        assert_eq!(points.ends, [1, 2, 4, 5]);
        assert_eq!(points.members, [1, 4, 2, 3, 0]);
    }
}
