//! The tables of the paper.

use std::collections::BTreeSet;

use super::setup::{Role, Setup, spread};
use crate::{
    metrics::{Scores, Spread},
    report::{
        Training,
        table::{Better, Cell, Change, Column, Row, Table},
    },
};

/// A score with the column that shows it.
type Measure = (Column, fn(&Scores) -> Option<f64>);

/// Every table that there are numbers for.
pub(super) fn tables(setups: &[Setup]) -> Vec<Table> {
    let setups: Vec<&Setup> = setups.iter().collect();
    let tables = [
        classification(&setups),
        measured("localization", "Pixel level: pointwise localization", "", &setups, &F1),
        with_crf(&setups),
        erasing(&setups),
        curves(&setups),
        diagnosis(&setups),
        time(&setups),
    ];
    tables.into_iter().filter_map(Table::finished).collect()
}

const fn score(
    key: &'static str,
    heading: &'static str,
    better: Option<Better>,
    of: fn(&Scores) -> Option<f64>,
) -> Measure {
    (Column::number(key, heading, 2, better), of)
}

const LOWER: Option<Better> = Some(Better::Lower);
const HIGHER: Option<Better> = Some(Better::Higher);

const ERROR: Measure =
    score("classification_error", "Classification error (%)", LOWER, |s| s.classification_error);
const LOCALIZER_ERROR: Measure =
    score("localizer_classification_error", "Localizer's class error (%)", LOWER, |s| {
        s.localizer_classification_error
    });
const F1: [Measure; 2] = [
    score("f1_foreground", "F1⁺ (%)", HIGHER, |s| s.mean.f1_foreground),
    score("f1_background", "F1⁻ (%)", HIGHER, |s| s.mean.f1_background),
];

fn classification(setups: &[&Setup]) -> Table {
    let two_heads = setups.iter().any(|setup| setup.score(LOCALIZER_ERROR.1).is_some());
    let measures: &[Measure] = if two_heads { &[ERROR, LOCALIZER_ERROR] } else { &[ERROR] };
    measured("classification", "Image level: classification error", "", setups, measures)
}

/// Scores after the CRF, marked where it changed them.
fn with_crf(setups: &[&Setup]) -> Table {
    let row = |setup: &Setup| {
        let cell = |(column, score): &Measure| {
            let pair = setup.paired(*score);
            let change = pair.and_then(|(before, after)| Change::of(before, after, column));
            Cell { change, ..spread(&setup.refined, *score).into() }
        };
        row(setup, F1.iter().map(cell).collect())
    };
    let note = "⁺ marks an improvement by the CRF, ⁻ a degradation";
    let table = measured("crf", "Pixel level, with CRF", note, &[], &F1);
    Table { rows: setups.iter().copied().map(row).collect(), ..table }
}

/// Ours with and without erasing; set-ups are in the order of their rounds.
fn erasing(setups: &[&Setup]) -> Table {
    let mut ours: Vec<&Setup> =
        setups.iter().copied().filter(|setup| setup.rounds.is_some()).collect();
    if ours.first().map(|setup| setup.rounds) == ours.last().map(|setup| setup.rounds) {
        ours.clear();
    }
    let [foreground, background] = F1;
    let measures = [ERROR, foreground, background];
    measured("erasing", "Recursive erasing: rounds u", "", &ours, &measures)
}

/// Scores that need no threshold.
fn curves(setups: &[&Setup]) -> Table {
    let measures = [
        score("pr_auc_foreground", "PR area, foreground (%)", HIGHER, |s| s.pr_auc_foreground),
        score("pr_auc_background", "PR area, background (%)", HIGHER, |s| s.pr_auc_background),
        score("roc_auc", "ROC area (%)", HIGHER, |s| s.roc_auc),
        score("pxap", "PxAP (%)", HIGHER, |s| s.pxap),
    ];
    let ranked = ranked(setups);
    let note = if ranked.len() < setups.len() { "All-ones ranks no pixels" } else { "" };
    measured("curves", "Pixel level, at any threshold", note, &ranked, &measures)
}

/// Why masks are as they are: which way round, how large, and whether they tell the class.
fn diagnosis(setups: &[&Setup]) -> Table {
    let mut measures = vec![
        score("inverted", "Inverted maps (%)", LOWER, |s| s.inverted),
        score("covered_area", "Covered area (%)", None, |s| s.covered_area),
    ];
    if same_features(setups) {
        measures.push(score("decidability", "Decidability (nats)", HIGHER, |s| {
            s.decidability.map(|found| found.difference)
        }));
    }
    let area = setups.iter().find_map(|setup| setup.score(|scores| scores.true_area));
    let note = area.map_or_else(String::new, |area| format!("the true area is {:.2} %", area.mean));
    measured("diagnosis", "Diagnosis of the maps", &note, &ranked(setups), &measures)
}

fn ranked<'a>(setups: &[&'a Setup]) -> Vec<&'a Setup> {
    setups.iter().copied().filter(|setup| setup.ranks_pixels()).collect()
}

/// Whether decidability was measured, and from the same features wherever it was.
fn same_features(setups: &[&Setup]) -> bool {
    let entries = setups.iter().flat_map(|setup| &setup.plain);
    let features: BTreeSet<&str> =
        entries.filter_map(|entry| entry.report.conditions.features.as_deref()).collect();
    features.len() == 1
}

/// What training took; of ours also how many times the time without erasing.
fn time(setups: &[&Setup]) -> Table {
    let trained = |setup: &Setup, of: fn(&Training) -> f64| {
        let entries = if setup.plain.is_empty() { &setup.refined } else { &setup.plain };
        let own = entries.iter().filter(|entry| entry.report.conditions.trained_in.is_none());
        Spread::of(own.map(|entry| entry.report.training.as_ref().map(of)))
    };
    let without = setups.iter().find(|setup| setup.rounds == Some(0));
    let without = without.and_then(|setup| trained(setup, |training| training.seconds));
    let row = |setup: &Setup| {
        let minutes = trained(setup, |training| training.seconds / 60.0);
        let per_epoch = trained(setup, |training| training.seconds / training.epochs.max(1) as f64);
        let epochs = trained(setup, |training| training.epochs as f64);
        let epochs =
            epochs.map(|all| Spread { deviation: all.deviation.filter(|d| *d > 0.0), ..all });
        let mut cells = [minutes, epochs, per_epoch].map(Cell::from).to_vec();
        cells.extend(without.map(|without| {
            let minutes = minutes.filter(|_| setup.role == Role::Ours);
            minutes.map(|minutes| 60.0 * minutes.mean / without.mean).into()
        }));
        row(setup, cells)
    };
    let column = |key, heading, decimals| Column::number(key, heading, decimals, None);
    let mut columns = vec![
        column("minutes", "Training (min)", 2),
        column("epochs", "Epochs", 0),
        column("seconds_per_epoch", "Per epoch (s)", 2),
    ];
    columns.extend(without.map(|_| column("times_without_erasing", "× u = 0", 2)));
    let rows = setups.iter().copied().map(row).collect();
    let (title, note) = ("Training time".to_owned(), time_note(setups));
    Table { key: "time", title, note, rows_are: "Method", columns, rows }
}

fn time_note(setups: &[&Setup]) -> String {
    let mut note = "validation included, as measured on the machine of each run".to_owned();
    for setup in setups {
        if let Some(run) = &setup.first().report.conditions.trained_in {
            note.push_str(&format!("; {} has the training of {run}", setup.title));
        }
    }
    note
}

fn measured(
    key: &'static str,
    title: &str,
    note: &str,
    setups: &[&Setup],
    measures: &[Measure],
) -> Table {
    let cells =
        |setup: &Setup| measures.iter().map(|(_, score)| setup.score(*score).into()).collect();
    Table {
        key,
        title: title.to_owned(),
        note: note.to_owned(),
        rows_are: "Method",
        columns: measures.iter().map(|(column, _)| column.clone()).collect(),
        rows: setups.iter().map(|setup| row(setup, cells(setup))).collect(),
    }
}

fn row(setup: &Setup, cells: Vec<Cell>) -> Row {
    let Setup { title, role, .. } = setup;
    Row { label: title.clone(), group: role.name(), competes: role.competes(), cells }
}
