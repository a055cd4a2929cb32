//! `pinpoint doctor`: what this build finds on this machine.

use std::{env::consts, fs, process::ExitCode, thread};

use serde::Serialize;

use crate::{machine::kib_of, ui::Ui};

/// Show version, devices, threads, memory and CPU features
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Findings {
    version: &'static str,
    target: String,
    profile: &'static str,
    threads: usize,
    memory_mib: Option<Memory>,
    cpu_features: Vec<&'static str>,
    devices: Vec<&'static str>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Memory {
    total: u64,
    available: u64,
}

impl Doctor {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let findings = Findings::gather();
        if self.json {
            ui.print(&serde_json::to_string(&findings)?);
        } else {
            findings.print(ui);
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Findings {
    fn gather() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            target: format!("{}-{}", consts::ARCH, consts::OS),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            threads: thread::available_parallelism().map_or(1, usize::from),
            memory_mib: Memory::of_this_machine(),
            cpu_features: cpu_features(),
            devices: vec!["cpu"],
        }
    }

    fn print(&self, ui: &mut Ui) {
        let Self { version, target, profile, threads, memory_mib, cpu_features, devices } = self;
        let memory = match memory_mib {
            Some(Memory { total, available }) => format!("{total} MiB, {available} MiB available"),
            None => "unknown".to_owned(),
        };
        let or_none =
            |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ui.print(&format!("version       {version} ({target}, {profile} build)"));
        ui.print(&format!("threads       {threads}"));
        ui.print(&format!("memory        {memory}"));
        ui.print(&format!("CPU features  {}", or_none(cpu_features)));
        ui.print(&format!("devices       {}", or_none(devices)));
        if *profile == "debug" {
            ui.warn("this is a debug build, many times slower; build with `--release`");
        }
    }
}

impl Memory {
    fn of_this_machine() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    /// Reads the text of Linux's `/proc/meminfo`.
    fn parse(text: &str) -> Option<Self> {
        let mib = |key| Some(kib_of(text, key)? / 1024);
        Some(Self { total: mib("MemTotal:")?, available: mib("MemAvailable:")? })
    }
}

/// The vector instructions that the kernels make use of where there are any.
fn cpu_features() -> Vec<&'static str> {
    let detected: &[(&str, bool)] = &[
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        ("avx2", is_x86_feature_detected!("avx2")),
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        ("fma", is_x86_feature_detected!("fma")),
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        ("avx512f", is_x86_feature_detected!("avx512f")),
        #[cfg(target_arch = "aarch64")]
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
    ];
    detected.iter().filter(|(_, present)| *present).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_mib_and_unknown_if_the_text_is_odd() {
        let text = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(Memory::parse(text), Some(Memory { total: 2, available: 1 }));
        assert_eq!(Memory::parse("MemTotal: many"), None);
    }
}
