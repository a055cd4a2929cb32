//! What the operating system tells about this process.

use std::fs;

use anyhow::bail;

/// The most memory this process ever had in use, in MiB; unknown outside Linux.
pub(crate) fn peak_mib() -> Option<f64> {
    peak_in(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Refuses work that needs more memory than this machine has; unknown outside Linux.
pub(crate) fn require_memory(bytes: f64, work: &str, remedy: &str) -> anyhow::Result<()> {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let Some(memory) = memory_bytes().filter(|memory| bytes > *memory) else { return Ok(()) };
    bail!(
        "{work} needs about {:.1} GiB of memory, and this machine has {:.1} GiB\nhint: {remedy}",
        bytes / GIB,
        memory / GIB
    )
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

/// Reads the text of Linux's `/proc/self/status`.
fn peak_in(status: &str) -> Option<f64> {
    Some(kib_of(status, "VmHWM:")? / 1024.0)
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
    fn the_peak_is_read_in_mib_and_unknown_if_the_text_is_odd() {
        assert_eq!(peak_in("Name:\tx\nVmHWM:\t    2048 kB\nThreads:\t1\n"), Some(2.0));
        assert_eq!(peak_in("VmHWM: many"), None);
    }
}
