//! Which lattice points are next to each other, found without a search per point.

use rayon::prelude::*;

/// Per axis and point: the points one step before and after it, or `keys.len()` for none.
pub(super) fn find_neighbours<const V: usize>(
    keys: &[u64],
    steps: &[i64; V],
) -> [Vec<[u32; 2]>; V] {
    let mut neighbours = [const { Vec::new() }; V];
    neighbours.par_iter_mut().zip(steps).for_each(|(axis, &step)| *axis = merge(keys, step));
    neighbours
}

/// Neighbours along one axis.
///
/// A step adds a constant to the key, so in sorted order the targets of successive points ascend
/// together with the points they may hit: one merge of the list with itself finds them all.
fn merge(keys: &[u64], step: i64) -> Vec<[u32; 2]> {
    let mut axis = vec![[keys.len() as u32; 2]; keys.len()];
    let mut at = 0;
    for (point, key) in keys.iter().enumerate() {
        let target = key.wrapping_add_signed(step);
        while at < keys.len() && keys[at] < target {
            at += 1;
        }
        if keys.get(at) == Some(&target) {
            axis[point][1] = at as u32;
            axis[at][0] = point as u32;
        }
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_step_away_or_absent() {
        let [axis] = find_neighbours(&[10, 13, 16, 30], &[3]);
        assert_eq!(axis, [[4, 1], [0, 2], [1, 4], [4, 4]]);
        let [axis] = find_neighbours(&[10, 13, 16, 30], &[-6]);
        assert_eq!(axis, [[2, 4], [4, 4], [4, 0], [4, 4]]);
    }
}
