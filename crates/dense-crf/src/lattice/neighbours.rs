//! Which lattice points are next to each other, found without a search per point.

use rayon::prelude::*;

use super::TASK;

/// Per axis and point: the points one step before and after it, or `keys.len()` for none.
///
/// A step adds a constant to the key, so in sorted order the steps of successive points ascend
/// together with the points they may hit: one merge of the list with itself finds them all.
pub(super) fn find_neighbours<const V: usize>(
    keys: &[u64],
    steps: &[i64; V],
) -> [Vec<[u32; 2]>; V] {
    steps.map(|step| {
        let mut axis = vec![[0; 2]; keys.len()];
        axis.par_chunks_mut(TASK).zip(keys.par_chunks(TASK)).for_each(|(axis, points)| {
            merge(keys, points, -step, axis, 0);
            merge(keys, points, step, axis, 1);
        });
        axis
    })
}

/// Finds `points + step` in `keys`, both sorted.
fn merge(keys: &[u64], points: &[u64], step: i64, axis: &mut [[u32; 2]], side: usize) {
    let target = |point: u64| point.wrapping_add_signed(step);
    let mut at = keys.partition_point(|&key| key < target(points[0]));
    for (neighbours, &point) in axis.iter_mut().zip(points) {
        let target = target(point);
        while at < keys.len() && keys[at] < target {
            at += 1;
        }
        let hit = at < keys.len() && keys[at] == target;
        neighbours[side] = if hit { at } else { keys.len() } as u32;
    }
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
