//! Set-ups: the rows of a comparison, each with the runs that differ in their seed only.

use super::Entry;
use crate::{
    config::Config,
    error::{Error, Result},
    metrics::{Scores, Spread},
    predict::UNTRAINED,
    report::Report,
};

/// The kind of method of a row, by which rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A rule that ignores the image.
    Trivial,
    /// Learns from labels.
    Baseline,
    /// Learns from labels by a method of ours.
    Ours,
    /// Learns from masks.
    UpperBound,
}

/// The runs of one set-up.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// Its title in tables.
    pub(super) title: String,
    /// The name of its runs.
    pub(super) name: String,
    pub(super) role: Role,
    /// Rounds of erasing, if the method is `minmax`.
    pub(super) rounds: Option<usize>,
    /// Reports on its maps, one per seed.
    pub(super) plain: Vec<Entry>,
    /// Reports on its maps after the CRF, one per seed.
    pub(super) refined: Vec<Entry>,
}

/// Groups reports into set-ups, in the order of their roles, ours by rounds, and then as given.
pub(super) fn group(entries: Vec<Entry>) -> Result<Vec<Setup>> {
    let mut setups: Vec<Setup> = Vec::new();
    for entry in entries {
        let same = |setup: &Setup| {
            setup.name == entry.name
                && setup.method() == entry.report.method
                && without_seed(&setup.first().report) == without_seed(&entry.report)
        };
        let at = setups.iter().position(same).unwrap_or(setups.len());
        if at == setups.len() {
            setups.push(Setup::new(&entry));
        }
        setups[at].push(entry)?;
    }
    setups.sort_by_key(|setup| (setup.role, setup.rounds));
    tell_apart(&mut setups, |setup| setup.name.clone());
    tell_apart(&mut setups, |setup| setup.first().folder.display().to_string());
    Ok(setups)
}

/// Makes titles that several set-ups share unique, by adding what these differ in.
fn tell_apart(setups: &mut [Setup], more: impl Fn(&Setup) -> String) {
    let titles: Vec<String> = setups.iter().map(|setup| setup.title.clone()).collect();
    for setup in setups {
        let name = more(setup);
        let times = titles.iter().filter(|title| **title == setup.title).count();
        if times > 1 && !setup.title.ends_with(&name) {
            setup.title = format!("{}, {name}", setup.title);
        }
    }
}

fn without_seed(report: &Report) -> Option<Config> {
    report.settings.as_deref().map(|settings| Config { seed: 0, ..settings.clone() })
}

impl Setup {
    fn new(entry: &Entry) -> Self {
        let method = entry.report.method.as_str();
        let rounds = entry.report.settings.as_deref().map(|settings| settings.erase.rounds);
        let rounds = rounds.filter(|_| method == "minmax");
        let (role, title) = known(method);
        Self {
            title: rounds.map_or_else(|| title.to_owned(), |u| format!("{title} (u = {u})")),
            name: entry.name.clone(),
            role,
            rounds,
            plain: Vec::new(),
            refined: Vec::new(),
        }
    }

    fn push(&mut self, entry: Entry) -> Result<()> {
        let refined = entry.report.conditions.crf.is_some();
        let list = if refined { &mut self.refined } else { &mut self.plain };
        let seed = entry.report.conditions.seed;
        if let Some(twin) = list.iter().find(|known| known.report.conditions.seed == seed) {
            return Err(Error::Mismatch(vec![format!(
                "`{}` and `{}` are reports on the same set-up and seed; give one of them",
                twin.folder.display(),
                entry.folder.display()
            )]));
        }
        list.push(entry);
        Ok(())
    }

    fn method(&self) -> &str {
        &self.first().report.method
    }

    /// A report on the set-up: of the first seed, without the CRF if there is one.
    pub(super) fn first(&self) -> &Entry {
        let mut entries = self.plain.iter().chain(&self.refined);
        entries.next().expect("a set-up has at least the report it was made for")
    }

    /// The title without what it says about the role, for pictures.
    pub(super) fn short_title(&self) -> &str {
        let end =
            [" (trivial)", " (full supervision)"].iter().find_map(|mark| self.title.find(mark));
        &self.title[..end.unwrap_or(self.title.len())]
    }

    /// Whether its scores tell pixels apart, so that its curves mean something.
    pub(super) fn ranks_pixels(&self) -> bool {
        self.method() != "all-ones"
    }

    /// A score over the seeds.
    pub(super) fn score(&self, score: fn(&Scores) -> Option<f64>) -> Option<Spread> {
        spread(&self.plain, score)
    }

    /// A score without and with the CRF, over the seeds that have both.
    pub(super) fn paired(&self, score: fn(&Scores) -> Option<f64>) -> Option<(f64, f64)> {
        let of = |entry: &Entry| score(&entry.report.evaluation.scores);
        let pair = |refined: &Entry| {
            let seed = refined.report.conditions.seed;
            let plain = self.plain.iter().find(|entry| entry.report.conditions.seed == seed)?;
            Some((Some(of(plain)?), Some(of(refined)?)))
        };
        let (plain, refined): (Vec<_>, Vec<_>) = self.refined.iter().filter_map(pair).unzip();
        Some((Spread::of(plain)?.mean, Spread::of(refined)?.mean))
    }
}

/// A score over reports.
pub(super) fn spread(entries: &[Entry], score: fn(&Scores) -> Option<f64>) -> Option<Spread> {
    Spread::of(entries.iter().map(|entry| score(&entry.report.evaluation.scores)))
}

impl Role {
    /// Whether it can be the best: what learns from labels can.
    pub(super) fn competes(self) -> bool {
        matches!(self, Self::Baseline | Self::Ours)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Trivial => "trivial",
            Self::Baseline => "baseline",
            Self::Ours => "ours",
            Self::UpperBound => "upper bound",
        }
    }
}

/// The kind of a method, and its name in the paper.
fn known(method: &str) -> (Role, &str) {
    match method {
        "minmax" => (Role::Ours, "Ours"),
        "probe" => (Role::Ours, "Ours (probe)"),
        "unet" => (Role::UpperBound, "U-Net (full supervision)"),
        "all-ones" => (Role::Trivial, "All-ones (trivial)"),
        "centre-gaussian" => (Role::Trivial, "Centre Gaussian (trivial)"),
        _ if UNTRAINED.contains(&method) => (Role::Trivial, method),
        "cam-avg" => (Role::Baseline, "CAM-Avg"),
        "cam-max" => (Role::Baseline, "CAM-Max"),
        "cam-lse" => (Role::Baseline, "CAM-LSE"),
        "wildcat" => (Role::Baseline, "Wildcat"),
        "deep-mil" => (Role::Baseline, "Deep MIL"),
        "grad-cam" => (Role::Baseline, "Grad-CAM"),
        "grad-cam++" => (Role::Baseline, "Grad-CAM++"),
        "layer-cam" => (Role::Baseline, "LayerCAM"),
        other => (Role::Baseline, other),
    }
}
