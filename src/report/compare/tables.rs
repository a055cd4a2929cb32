//! The tables of the paper.

use std::collections::BTreeSet;

use super::{Role, Setup, setup::spread};
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
    let tables = [
        classification(setups),
        localization(setups),
        with_crf(setups),
        erasing(setups),
        curves(setups),
        diagnosis(setups),
        time(setups),
    ];
    tables.into_iter().filter_map(Table::finished).collect()
}

const fn percent(key: &'static str, heading: &'static str, better: Better) -> Column {
    Column::number(key, heading, 2, Some(better))
}

const ERROR: Measure =
    (percent("classification_error", "Classification error (%)", Better::Lower), |scores| {
        scores.classification_error
    });
const F1_FOREGROUND: Measure =
    (percent("f1_foreground", "F1⁺ (%)", Better::Higher), |scores| scores.mean.f1_foreground);
const F1_BACKGROUND: Measure =
    (percent("f1_background", "F1⁻ (%)", Better::Higher), |scores| scores.mean.f1_background);

const LOCALIZER_ERROR: Measure = (
    percent("localizer_classification_error", "Localizer's class error (%)", Better::Lower),
    |scores| scores.localizer_classification_error,
);

fn classification(setups: &[Setup]) -> Table {
    let two_heads = setups.iter().any(|setup| setup.score(LOCALIZER_ERROR.1).is_some());
    let measures: &[Measure] = if two_heads { &[ERROR, LOCALIZER_ERROR] } else { &[ERROR] };
    measured("classification", "Image level: classification error", "", setups, measures)
}

fn localization(setups: &[Setup]) -> Table {
    let measures = [F1_FOREGROUND, F1_BACKGROUND];
    measured("localization", "Pixel level: pointwise localization", "", setups, &measures)
}

/// Scores after the CRF, marked where it changed them.
fn with_crf(setups: &[Setup]) -> Table {
    let measures = [F1_FOREGROUND, F1_BACKGROUND];
    let row = |setup: &Setup| {
        let cell = |(column, score): &Measure| {
            let pair = setup.paired(*score);
            let change = pair.and_then(|(before, after)| Change::of(before, after, column));
            Cell { change, ..spread(&setup.refined, *score).into() }
        };
        row(setup, measures.iter().map(cell).collect())
    };
    Table {
        key: "crf",
        title: "Pixel level, with CRF".to_owned(),
        note: "⁺ marks an improvement by the CRF, ⁻ a degradation".to_owned(),
        rows_are: "Method",
        columns: measures.iter().map(|(column, _)| column.clone()).collect(),
        rows: setups.iter().map(row).collect(),
    }
}

/// Ours with and without erasing.
fn erasing(setups: &[Setup]) -> Table {
    let mut ours: Vec<Setup> =
        setups.iter().filter(|setup| setup.rounds.is_some()).cloned().collect();
    ours.sort_by_key(|setup| setup.rounds);
    if ours.first().map(|setup| setup.rounds) == ours.last().map(|setup| setup.rounds) {
        ours.clear();
    }
    let measures = [ERROR, F1_FOREGROUND, F1_BACKGROUND];
    measured("erasing", "Recursive erasing: rounds u", "", &ours, &measures)
}

/// Scores that need no threshold.
fn curves(setups: &[Setup]) -> Table {
    let measures: [Measure; 4] = [
        (percent("pr_auc_foreground", "PR area, foreground (%)", Better::Higher), |scores| {
            scores.pr_auc_foreground
        }),
        (percent("pr_auc_background", "PR area, background (%)", Better::Higher), |scores| {
            scores.pr_auc_background
        }),
        (percent("roc_auc", "ROC area (%)", Better::Higher), |scores| scores.roc_auc),
        (percent("pxap", "PxAP (%)", Better::Higher), |scores| scores.pxap),
    ];
    let ranked: Vec<Setup> = setups.iter().filter(|setup| setup.ranks_pixels()).cloned().collect();
    let note = if ranked.len() < setups.len() { "All-ones ranks no pixels" } else { "" };
    measured("curves", "Pixel level, at any threshold", note, &ranked, &measures)
}

/// Why masks are as they are: which way round, how large, and whether they tell the class.
fn diagnosis(setups: &[Setup]) -> Table {
    let covered = percent("covered_area", "Covered area (%)", Better::Higher);
    let mut measures: Vec<Measure> = vec![
        (percent("inverted", "Inverted maps (%)", Better::Lower), |scores| scores.inverted),
        (Column { better: None, ..covered }, |scores| scores.covered_area),
    ];
    if told_alike(setups) {
        let column = percent("decidability", "Decidability (nats)", Better::Higher);
        measures.push((column, |scores| scores.decidability.map(|found| found.difference)));
    }
    let area = setups.iter().find_map(|setup| setup.score(|scores| scores.true_area));
    let note = area.map_or_else(String::new, |area| format!("the true area is {:.2} %", area.mean));
    let ranked: Vec<Setup> = setups.iter().filter(|setup| setup.ranks_pixels()).cloned().collect();
    measured("diagnosis", "Diagnosis of the maps", &note, &ranked, &measures)
}

/// Whether decidability was measured, and from the same features wherever it was.
fn told_alike(setups: &[Setup]) -> bool {
    let entries = setups.iter().flat_map(|setup| &setup.plain);
    let features: BTreeSet<&str> =
        entries.filter_map(|entry| entry.report.conditions.features.as_deref()).collect();
    features.len() == 1
}

/// What training took; of ours also how many times the time without erasing.
fn time(setups: &[Setup]) -> Table {
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
        let ratio = minutes.zip(without).filter(|_| setup.role == Role::Ours);
        let ratio = ratio
            .and_then(|(minutes, without)| Spread::of([Some(60.0 * minutes.mean / without.mean)]));
        row(setup, [minutes, epochs, per_epoch, ratio].map(Cell::from).to_vec())
    };
    let column = |key, heading, decimals| Column::number(key, heading, decimals, None);
    let mut columns = vec![
        column("minutes", "Training (min)", 2),
        column("epochs", "Epochs", 0),
        column("seconds_per_epoch", "Per epoch (s)", 2),
        column("times_without_erasing", "× u = 0", 2),
    ];
    let mut rows: Vec<Row> = setups.iter().map(row).collect();
    if without.is_none() {
        columns.pop();
        rows.iter_mut().for_each(|row| row.cells.truncate(columns.len()));
    }
    let (title, note) = ("Training time".to_owned(), time_note(setups));
    Table { key: "time", title, note, rows_are: "Method", columns, rows }
}

fn time_note(setups: &[Setup]) -> String {
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
    setups: &[Setup],
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
