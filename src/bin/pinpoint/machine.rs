//! Threads and memory of this process.

use std::fs;

use anyhow::{Context, bail};

/// Threads that may be asked for on any machine; each costs memory for its stack and its image.
const MOST_THREADS: usize = 256;

/// Makes the whole process use as many threads as asked for.
pub(crate) fn use_threads(asked: Option<usize>) -> anyhow::Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_THREADS.max(2 * cores);
    let threads = match asked {
        Some(0) => bail!("`--threads` must be at least 1"),
        Some(threads) if threads > most => bail!(
            "`--threads {threads}` is more than any processor has use for\n\
             hint: this one has {cores} cores; at most {most} threads are allowed"
        ),
        Some(threads) => threads,
        None => cores,
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("threads")?;
    Ok(threads)
}

/// The most memory this process ever had in use, in MiB; unknown outside Linux.
pub(crate) fn peak_mib() -> Option<f64> {
    peak_in(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the text of Linux's `/proc/self/status`.
fn peak_in(status: &str) -> Option<f64> {
    Some(kib_of(status, "VmHWM:")? as f64 / 1024.0)
}

/// A number of one of Linux's tables, in KiB.
pub(crate) fn kib_of(table: &str, key: &str) -> Option<u64> {
    let value = table.lines().find_map(|line| line.strip_prefix(key))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_mib_and_unknown_if_the_text_is_odd() {
        assert_eq!(peak_in("Name:\tx\nVmHWM:\t    2048 kB\nThreads:\t1\n"), Some(2.0));
        assert_eq!(peak_in("VmHWM: many"), None);
    }
}
