//! Processes that `mpirun` or `srun` has started.

use ::mpi::{
    Threading,
    environment::{Universe, initialize_with_threading},
    topology::SimpleCommunicator,
    traits::{Communicator as _, CommunicatorCollectives as _, Root as _},
};

use super::{Collective, Ranks};

/// Up to this many values, every rank computes all sums itself; above, each rank computes a part.
const SHORT: usize = 4096;

/// All processes of a job.
#[derive(Debug)]
struct World {
    rank: usize,
    size: usize,
}

/// MPI, which is finalized when this is dropped.
#[expect(missing_debug_implementations, reason = "the library's handle has none")]
pub struct Mpi {
    ranks: Ranks,
    _universe: Universe,
}

/// Initializes MPI; `None` if this process has done so before.
pub fn start() -> Option<Mpi> {
    // MPI is called by one thread at a time, but not always the same one.
    let (universe, _) = initialize_with_threading(Threading::Serialized)?;
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    // Batch norm refers to it from every recorded pass, until the process ends.
    let ranks = Ranks::new(Box::leak(Box::new(World { rank, size })));
    Some(Mpi { ranks, _universe: universe })
}

impl Mpi {
    /// The processes of the job.
    pub fn ranks(&self) -> Ranks {
        self.ranks
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // Finalizing waits for the other processes, which may be waiting for this one.
        if std::thread::panicking() {
            SimpleCommunicator::world().abort(101);
        }
    }
}

impl Collective for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, mine: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; mine.len() * self.size];
        SimpleCommunicator::world().all_gather_into(mine, &mut all[..]);
        all
    }

    /// MPI's own reduction may add in any order; this one adds in the order of ranks, and sends no
    /// more.
    ///
    /// Every rank sends part *r* of its values to rank *r*, which adds the parts and sends the sums
    /// back.
    fn all_reduce(&self, values: &mut [f32]) {
        let world = SimpleCommunicator::world();
        if values.len() <= SHORT {
            let mut all = vec![0.0; values.len() * self.size];
            world.all_gather_into(&*values, &mut all[..]);
            return sum_in_order(&all, values);
        }
        let part = values.len().div_ceil(self.size);
        let mut padded = values.to_vec();
        padded.resize(part * self.size, 0.0);
        let mut received = vec![0.0; part * self.size];
        world.all_to_all_into(&padded[..], &mut received[..]);
        let mut sums = vec![0.0; part];
        sum_in_order(&received, &mut sums);
        world.all_gather_into(&sums[..], &mut padded[..]);
        values.copy_from_slice(&padded[..values.len()]);
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        let world = SimpleCommunicator::world();
        let root = world.process_at_rank(root as i32);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        bytes.resize(length as usize, 0);
        root.broadcast_into(&mut bytes[..]);
    }
}

/// Adds up the values of the ranks, `[ranks, sums]`, in their order.
fn sum_in_order(all: &[f32], sums: &mut [f32]) {
    let ranks = all.chunks_exact(sums.len());
    let mut wide = vec![0.0_f64; sums.len()];
    for rank in ranks {
        wide.iter_mut().zip(rank).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sums.iter_mut().zip(wide).for_each(|(sum, wide)| *sum = wide as f32);
}
