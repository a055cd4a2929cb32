//! One numbering for the points of all bands: duplicates merged, sorted by key.

use rayon::prelude::*;

/// The lattice points of the image, sorted by key.
pub(super) struct Points {
    pub(super) keys: Vec<u64>,
    /// Where each point's members end.
    pub(super) ends: Vec<u32>,
    /// Members of each point: positions in the bands' lists laid end to end.
    pub(super) members: Vec<u32>,
}

/// Merges the points of all bands.
pub(super) fn merge_bands(bands: &[Vec<u64>]) -> Points {
    // Key and member in one integer, which is compared faster than a pair.
    let pair = |(&key, member): (&u64, u32)| u128::from(key) << 32 | u128::from(member);
    let mut sorted: Vec<u128> = bands.iter().flatten().zip(0..).map(pair).collect();
    sorted.par_sort_unstable();
    let (mut keys, mut ends) = (Vec::with_capacity(sorted.len()), Vec::with_capacity(sorted.len()));
    let mut end = 0;
    for point in sorted.chunk_by(|a, b| a >> 32 == b >> 32) {
        end += point.len() as u32;
        keys.push((point[0] >> 32) as u64);
        ends.push(end);
    }
    Points { keys, ends, members: sorted.iter().map(|&pair| pair as u32).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_two_bands_are_merged_in_key_order() {
        let points = merge_bands(&[vec![50, 10, 30], vec![30, 20]]);
        assert_eq!(points.keys, [10, 20, 30, 50]);
        assert_eq!(points.ends, [1, 2, 4, 5]);
        assert_eq!(points.members, [1, 4, 2, 3, 0]);
    }
}
