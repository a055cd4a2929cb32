//! The other processes of a job that `mpirun` or `srun` has started, if this is one of several.

use std::env;

use pinpoint::collective::Ranks;

/// Where starters of processes say how many they have started.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// The processes of the job, for as long as this value lives.
pub(crate) struct Processes {
    pub(crate) ranks: Ranks,
    #[cfg(feature = "mpi")]
    _mpi: Option<pinpoint::collective::Mpi>,
}

/// How many processes were started together; one, if nobody says so.
fn started() -> usize {
    let number = |name: &str| env::var(name).ok()?.parse::<usize>().ok();
    // Slurm tells PMIx processes their rank, and everybody the number of tasks.
    let by_slurm = || env::var_os("PMIX_RANK").and_then(|_| number("SLURM_STEP_NUM_TASKS"));
    SIZES.iter().find_map(|name| number(name)).or_else(by_slurm).unwrap_or(1)
}

impl Processes {
    /// Joins the others; a process that was started by itself is alone.
    #[cfg(feature = "mpi")]
    pub(crate) fn join() -> anyhow::Result<Self> {
        let mpi = if started() > 1 { pinpoint::collective::start() } else { None };
        let ranks = mpi.as_ref().map_or(Ranks::alone(), |mpi| mpi.ranks());
        Ok(Self { ranks, _mpi: mpi })
    }

    /// Refuses to be one of several processes that know nothing of each other.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn join() -> anyhow::Result<Self> {
        let started = started();
        anyhow::ensure!(
            started == 1,
            "{started} processes were started together, but this `pinpoint` was built without MPI\n\
             hint: build it with `--features mpi` (`docs/scale.md`), or start one process"
        );
        Ok(Self { ranks: Ranks::alone() })
    }
}

/// Lets all processes fail if one does.
pub(crate) fn agree<T>(ranks: &Ranks, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
    let told = ranks.agree(match &outcome {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(pinpoint::Error::Rank { rank: ranks.rank(), message: format!("{error:#}") })
        }
    });
    let value = outcome?;
    told?;
    Ok(value)
}
