//! Work that needs more memory than there is, refused before it starts.

use std::fs;

use crate::{
    config::Config,
    device,
    error::{Error, Result},
    model::footprint,
    train::TrainingTask,
};

/// Refuses work that needs more memory than this machine has; unknown outside Linux.
pub fn require_memory(bytes: f64, work: &str, remedy: &str) -> Result<()> {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let Some(available) = memory_bytes().filter(|memory| bytes > *memory) else { return Ok(()) };
    Err(Error::Memory {
        problem: format!(
            "{work} needs about {:.1} GiB of memory, and this machine has {:.1} GiB",
            bytes / GIB,
            available / GIB
        ),
        remedy: remedy.to_owned(),
    })
}

/// Refuses training that could only end for want of memory; that of other devices is not known.
pub(super) fn require_memory_of(task: &TrainingTask<'_>) -> Result<()> {
    let TrainingTask { config, dataset, device, ranks, .. } = task;
    if !device::is_cpu(device) {
        return Ok(());
    }
    let remedy = match config.method.as_str() {
        "probe" => "lower `probe.memory_mib`, `probe.cells` or `preprocess.shrink_short_side`",
        "unet" => "lower `train.batch_size`, `preprocess.crop` or `unet.width`",
        _ => "lower `train.batch_size`, `preprocess.crop` or `pool.maps_per_class`",
    };
    // Of a process's share of each batch.
    let mut share = Config::clone(config);
    share.train.batch_size = config.train.batch_size.div_ceil(ranks.size());
    let bytes = footprint::of_training(&share, dataset.classes.len(), dataset.train.len());
    require_memory(bytes, "training", remedy)
}

/// Memory and swap of the machine, or what its container may use of them.
fn memory_bytes() -> Option<f64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let machine =
        1024.0 * (kib_of(&text, "MemTotal:")? + kib_of(&text, "SwapTotal:").unwrap_or(0.0));
    // The text is `max` where there is no limit.
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    Some(container.map_or(machine, |limit: f64| limit.min(machine)))
}

/// A number of Linux's tables, in KiB.
fn kib_of(table: &str, key: &str) -> Option<f64> {
    let line = table.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_in_kib_and_nothing_is_known_of_an_odd_one() {
        assert_eq!(kib_of("MemFree: 1 kB\nMemTotal:  2048 kB\n", "MemTotal:"), Some(2048.0));
        assert_eq!(kib_of("MemTotal: much", "MemTotal:"), None);
    }

    #[test]
    fn more_than_any_machine_has_is_refused_where_it_is_known() {
        let outcome = require_memory(1e18, "this", "do less");
        assert_eq!(outcome.is_err(), memory_bytes().is_some());
        assert!(require_memory(1.0, "this", "do less").is_ok());
    }
}
