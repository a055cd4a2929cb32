//! Processes that train one network together, each on its part of every batch.
//!
//! Every process combines what all of them send in the order of ranks: the same number of processes
//! gives the same bytes, and all of them hold the same weights without ever sending any.

#[cfg(feature = "mpi")]
mod mpi;
#[cfg(test)]
pub(crate) mod threads;

use std::{
    fmt,
    ops::{Deref, Range},
};

#[cfg(feature = "mpi")]
pub use self::mpi::{Mpi, start};
use crate::error::{Error, Result};

/// Collective operations; all processes must make the same calls, or none returns.
pub trait Collective: fmt::Debug + Send + Sync {
    /// The rank of this process, counted from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// The values of all ranks, in the order of ranks; each rank gives equally many.
    fn all_gather(&self, mine: &[f64]) -> Vec<f64>;

    /// Replaces each value by its sum over the ranks, added in the order of ranks.
    fn all_reduce(&self, values: &mut [f32]);

    /// Replaces the bytes of every rank by those of `root`.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>);
}

/// One process, without others.
#[derive(Debug, Clone, Copy)]
struct Single;

impl Collective for Single {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_gather(&self, mine: &[f64]) -> Vec<f64> {
        mine.to_vec()
    }

    fn all_reduce(&self, _: &mut [f32]) {}

    fn broadcast(&self, _: usize, _: &mut Vec<u8>) {}
}

/// The processes of a training, as one of them refers to them.
#[derive(Debug, Clone, Copy)]
pub struct Ranks(&'static dyn Collective);

impl Deref for Ranks {
    type Target = dyn Collective;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Ranks {
    fn eq(&self, other: &Self) -> bool {
        (self.rank(), self.size()) == (other.rank(), other.size())
    }
}

impl Eq for Ranks {}

impl Ranks {
    /// One process, without others.
    pub const fn alone() -> Self {
        Self(&Single)
    }

    /// The processes of a collective that lives as long as the program.
    pub fn new(collective: &'static dyn Collective) -> Self {
        Self(collective)
    }

    /// Whether there is only one process.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Whether this is the process that writes the run and reports to the user.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The part of each batch that this rank has.
    pub fn part(&self) -> Part {
        Part { index: self.rank(), of: self.size() }
    }

    /// The sum over the ranks of each of a few numbers, added in the order of ranks.
    pub fn sums<const N: usize>(&self, mine: [f64; N]) -> [f64; N] {
        let all = self.all_gather(&mine);
        std::array::from_fn(|at| all.chunks_exact(N).map(|one| one[at]).sum())
    }

    /// Whether `mine` is true on any rank.
    pub fn any(&self, mine: bool) -> bool {
        self.first_that(mine).is_some()
    }

    /// Makes all ranks fail if one does, each with the message of the first rank that failed.
    ///
    /// A rank that failed alone would leave the others waiting for it.
    pub fn agree<T>(&self, outcome: Result<T>) -> Result<T> {
        let Some(rank) = self.first_that(outcome.is_err()) else { return outcome };
        let mut message = outcome.as_ref().err().map(chain).unwrap_or_default().into_bytes();
        self.broadcast(rank, &mut message);
        if rank == self.rank() {
            return outcome;
        }
        Err(Error::Rank { rank, message: String::from_utf8_lossy(&message).into_owned() })
    }

    /// Does work on the first rank only, and makes all ranks fail if that fails.
    pub fn on_first(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.agree(if self.is_first() { work() } else { Ok(()) })
    }

    /// Whether all ranks have the same number.
    pub fn all_equal(&self, number: u32) -> bool {
        let all = self.all_gather(&[f64::from(number)]);
        all.iter().all(|&one| one == all[0])
    }

    fn first_that(&self, mine: bool) -> Option<usize> {
        let all = self.all_gather(&[f64::from(u8::from(mine))]);
        all.iter().position(|&flag| flag != 0.0)
    }
}

/// An error and its causes, separated by colons.
fn chain(error: &Error) -> String {
    let error: &dyn std::error::Error = error;
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// One of several parts of nearly equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Counted from 0.
    pub index: usize,
    /// Number of parts.
    pub of: usize,
}

impl Part {
    /// The only part.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The range of `len` items that is in this part; it may be empty if there are fewer items than
    /// parts.
    pub fn range(self, len: usize) -> Range<usize> {
        let start = |part: usize| part * len / self.of;
        start(self.index)..start(self.index + 1)
    }
}

/// The share of a batch that one rank learns from.
///
/// A rank without images (or whose images have all stopped) computes a blank one that does not
/// count, since batch norm needs every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The ranks that share the batch.
    pub ranks: Ranks,
    /// Number of images of this rank that count.
    pub mine: usize,
    /// Number of images of all ranks.
    pub all: usize,
}

impl Share {
    /// A whole batch, on one rank.
    pub const fn whole(images: usize) -> Self {
        Self { ranks: Ranks::alone(), mine: images, all: images }
    }

    /// The share of a rank with so many images; the ranks tell each other their numbers.
    pub fn of(ranks: Ranks, mine: usize) -> Self {
        let [all] = ranks.sums([mine as f64]);
        Self { ranks, mine, all: all as usize }
    }

    /// Whether what this rank computes counts.
    pub fn counts(&self) -> bool {
        self.mine > 0
    }

    /// The weight of this rank's mean in the mean of all.
    pub fn weight(&self) -> f64 {
        self.mine as f64 / self.all as f64
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::{threads::on_ranks, *};

    #[test]
    fn sums_are_over_all_ranks_in_rank_order() {
        for size in [1, 2, 3] {
            let found = on_ranks(size, |ranks| {
                let rank = ranks.rank() as f32;
                // In another order, the sum over 3 ranks would be 1.
                let mut values = [rank, [1e17, 1.0, -1e17][ranks.rank()]];
                ranks.all_reduce(&mut values);
                (values, ranks.sums([f64::from(rank), 1.0]))
            });
            let rank_sum = (size * (size - 1) / 2) as f32;
            for (values, sums) in &found {
                assert_eq!(values[0], rank_sum);
                assert_eq!(*sums, [f64::from(rank_sum), size as f64]);
                assert_eq!(values[1], [1e17, 1e17, 0.0][size - 1]);
            }
        }
    }

    #[test]
    fn all_ranks_fail_with_the_message_of_the_first_that_did() {
        let messages = on_ranks(3, |ranks| {
            let outcome = match ranks.rank() {
                0 => Ok(()),
                rank => Err(Error::Run {
                    path: PathBuf::from("run"),
                    problem: format!("trouble {rank}"),
                    remedy: "none".to_owned(),
                }),
            };
            ranks.agree(outcome).unwrap_err().to_string()
        });
        assert!(messages.iter().all(|message| message.contains("trouble 1")), "{messages:?}");
        assert!(messages[0].contains("rank 1") && !messages[1].contains("rank 1"), "{messages:?}");
        assert!(
            on_ranks(2, |ranks| ranks.agree(Ok(ranks.rank()))).into_iter().all(|one| one.is_ok())
        );
    }

    #[test]
    fn what_differs_is_noticed_by_everybody() {
        assert_eq!(on_ranks(2, |ranks| ranks.all_equal(7)), [true, true]);
        assert_eq!(on_ranks(2, |ranks| ranks.all_equal(ranks.rank() as u32)), [false, false]);
        assert_eq!(on_ranks(2, |ranks| ranks.any(ranks.rank() == 1)), [true, true]);
    }

    proptest! {
        #[test]
        fn parts_are_in_order_and_leave_nothing_out(len in 0_usize..40, of in 1_usize..9) {
            let parts = (0..of).map(|index| Part { index, of }.range(len));
            prop_assert!(parts.clone().flatten().eq(0..len));
            let lengths: Vec<usize> = parts.map(|part| part.len()).collect();
            prop_assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
        }
    }
}
