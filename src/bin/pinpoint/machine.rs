//! What the operating system tells about this process.

use std::fs;

/// The most memory this process ever had in use, in MiB; unknown outside Linux.
pub(crate) fn peak_mib() -> Option<f64> {
    peak_in(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the text of Linux's `/proc/self/status`.
fn peak_in(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
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
