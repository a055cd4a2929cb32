//! The reports that are compared, and where they were found.

use std::path::{Path, PathBuf};

use crate::{
    error::{Error, Result},
    regular,
    report::Report,
    run::RunDir,
};

/// One report and the name of what it is about.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Folder of the report.
    pub(super) folder: PathBuf,
    /// The run's name without its seed, or the method's.
    pub(super) name: String,
    /// What was measured.
    pub(super) report: Report,
}

const GIVE_REPORTS: &str = "give runs that were evaluated, or their reports";

/// Reads what a path stands for: a `report.json`, its folder, a run with `report*` folders, or
/// a folder of runs.
pub fn open(path: &Path) -> Result<Vec<Entry>> {
    if path.is_file() || path.join("report.json").is_file() {
        return Ok(vec![Entry::read(path, None)?]);
    }
    let unusable = |problem: &str, remedy: &str| {
        let (problem, remedy) = (problem.to_owned(), remedy.to_owned());
        Err(Error::Run { path: path.to_owned(), problem, remedy })
    };
    if !path.is_dir() {
        return unusable("there is no such run or report", GIVE_REPORTS);
    }
    let reports = of_run(path)?;
    if !reports.is_empty() {
        return Ok(reports);
    }
    if RunDir::exists(path) {
        let remedy = format!("`pinpoint evaluate {} --data DATA` writes one", path.display());
        return unusable("the run has no report", &remedy);
    }
    if path.join("comparison.md").is_file() {
        // What an earlier comparison left beside the runs.
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    for folder in folders(path)? {
        entries.extend(of_run(&folder)?);
    }
    if entries.is_empty() {
        return unusable("there is no report here", GIVE_REPORTS);
    }
    Ok(entries)
}

impl Entry {
    /// Reads a report; of a run that has been renamed, the new name holds.
    fn read(path: &Path, run: Option<&Path>) -> Result<Self> {
        let report = Report::read(path)?;
        let folder = if path.is_dir() { Some(path) } else { path.parent() };
        let recorded = report.conditions.run.as_deref().map(Path::new);
        // A method without training has no run, and goes by its own name.
        let run = run.filter(|_| recorded.is_some()).or(recorded).and_then(Path::file_name);
        let name = run.map_or(report.method.clone(), |run| run.to_string_lossy().into_owned());
        let name = without_seed(&name, report.conditions.seed).to_owned();
        Ok(Self { folder: folder.unwrap_or(path).to_owned(), name, report })
    }
}

/// The reports of a run: in `report`, `report-crf-glas` and the like.
fn of_run(run: &Path) -> Result<Vec<Entry>> {
    let named = |folder: &PathBuf| {
        let name =
            folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("report"));
        name && folder.join("report.json").is_file()
    };
    let reports = folders(run)?.into_iter().filter(named);
    reports.map(|folder| Entry::read(&folder, Some(run))).collect()
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = regular::entries(path).map_err(Error::file("read", path))?;
    found.retain(|entry| entry.is_dir());
    Ok(found)
}

/// `cam-avg` of `cam-avg-s3`, `cam-avg-3` or `cam-avg_seed3`, if 3 is the seed.
fn without_seed(name: &str, seed: Option<u64>) -> &str {
    let Some(seed) = seed else { return name };
    let stem = name.strip_suffix(&seed.to_string());
    let stem =
        stem.map(|stem| stem.strip_suffix("seed").or(stem.strip_suffix('s')).unwrap_or(stem));
    let bare = stem.and_then(|stem| stem.strip_suffix(['-', '_', '.']));
    bare.filter(|bare| !bare.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_own_seed_and_nothing_else() {
        for name in ["cam-avg-s3", "cam-avg-3", "cam-avg_seed3", "cam-avg.s3"] {
            assert_eq!(without_seed(name, Some(3)), "cam-avg", "{name}");
        }
        assert_eq!(without_seed("cam-avg-s3", Some(4)), "cam-avg-s3");
        assert_eq!(without_seed("u3", Some(3)), "u3");
        assert_eq!(without_seed("-s3", Some(3)), "-s3");
        assert_eq!(without_seed("cam-s3", None), "cam-s3");
    }
}
