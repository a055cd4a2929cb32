//! Synchronized batch norm: over all ranks that share a batch.
//!
//! It needs mean and variance of the whole batch in the forward pass, and two sums of gradients in
//! the backward pass; only those are exchanged.

use conv_kernels::batch_norm::{Moments, Sums};

use crate::collective::Share;

/// Mean and variance over all ranks, from those of each.
///
/// With `n`, `m` and `v` of each rank, `M = Σ n m / Σ n` and `V = Σ n (v + (m − M)²) / Σ n`.
pub(super) fn moments(share: &Share, mine: Moments) -> Moments {
    if share.ranks.is_alone() {
        return mine;
    }
    let all = exchange(share, mine.count, [&mine.mean, &mine.variance]);
    let total: f64 = all.iter().map(|[count, _, _]| count[0]).sum();
    let channel = |c: usize| {
        let mean = all.iter().map(|[n, mean, _]| n[0] * mean[c]).sum::<f64>() / total;
        let squares = |[n, m, v]: &[Vec<f64>; 3]| n[0] * (v[c] + (m[c] - mean).powi(2));
        (mean as f32, (all.iter().map(squares).sum::<f64>() / total) as f32)
    };
    let (mean, variance) = (0..mine.mean.len()).map(channel).unzip();
    Moments { mean, variance, count: total as usize }
}

/// The sums of gradients over all ranks.
pub(super) fn sums(share: &Share, mine: &Sums) -> Sums {
    if share.ranks.is_alone() {
        return mine.clone();
    }
    let all = exchange(share, mine.pixels, [&mine.gamma, &mine.beta]);
    let sum = |part: usize, at: usize| all.iter().map(|rank| rank[part][at]).sum::<f64>();
    let channels = |part: usize| (0..mine.gamma.len()).map(|c| sum(part, c) as f32).collect();
    Sums { gamma: channels(1), beta: channels(2), pixels: sum(0, 0) as usize }
}

/// A count and two numbers per channel from each rank; zeros from ranks whose images do not count.
fn exchange(share: &Share, count: usize, [a, b]: [&[f32]; 2]) -> Vec<[Vec<f64>; 3]> {
    let counts = share.counts();
    let number = |value: f64| if counts { value } else { 0.0 };
    let numbers = a.iter().chain(b).map(|&value| number(f64::from(value)));
    let mine: Vec<f64> = std::iter::once(number(count as f64)).chain(numbers).collect();
    let all = share.ranks.all_gather(&mine);
    let parts = |rank: &[f64]| {
        let (count, numbers) = rank.split_at(1);
        let (a, b) = numbers.split_at(a.len());
        [count.to_vec(), a.to_vec(), b.to_vec()]
    };
    all.chunks_exact(mine.len()).map(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::threads::on_ranks;

    fn share(ranks: crate::collective::Ranks, mine: usize) -> Share {
        Share::of(ranks, mine)
    }

    #[test]
    fn moments_of_all_ranks_by_hand() {
        // Values 1, 3 on one rank, 8 on another, nothing on the third: mean 4, squares 9 + 1 + 16.
        let found = on_ranks(3, |ranks| {
            let mine = match ranks.rank() {
                0 => Moments { mean: vec![2.0], variance: vec![1.0], count: 2 },
                1 => Moments { mean: vec![8.0], variance: vec![0.0], count: 1 },
                _ => Moments { mean: vec![-7.0], variance: vec![5.0], count: 4 },
            };
            moments(&share(ranks, [2, 1, 0][ranks.rank()]), mine)
        });
        for whole in found {
            assert_eq!((whole.mean[0], whole.count), (4.0, 3));
            assert!((whole.variance[0] - 26.0 / 3.0).abs() < 1e-6, "{whole:?}");
        }
    }

    #[test]
    fn sums_leave_out_what_does_not_count() {
        let found = on_ranks(2, |ranks| {
            let mine = Sums { gamma: vec![1.5, 2.0], beta: vec![-1.0, 4.0], pixels: 6 };
            sums(&share(ranks, [3, 0][ranks.rank()]), &mine)
        });
        for whole in found {
            assert_eq!(whole, Sums { gamma: vec![1.5, 2.0], beta: vec![-1.0, 4.0], pixels: 6 });
        }
    }
}
