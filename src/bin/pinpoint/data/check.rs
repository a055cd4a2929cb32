//! `pinpoint data check`: what a dataset holds, and everything wrong with it.

use std::{path::PathBuf, process::ExitCode};

use anyhow::ensure;
use pinpoint::{
    config::DataConfig,
    data::{
        Dataset, Split,
        check::{Inspection, SplitSummary, Summary, inspect},
    },
};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    data_args::{LayoutArgs, MaskArgs},
    ui::{Ui, pad_right},
};

/// Classes shown in the table unless all are asked for.
const SHOWN_CLASSES: usize = 20;

/// List what a dataset holds and everything wrong with it
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Dataset: a folder, or a CSV file with a header
    #[arg(value_name = "PATH")]
    data: PathBuf,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    masks: MaskArgs,

    /// Refuse images above this size
    #[arg(long, value_name = "N", default_value_t = DataConfig::default().max_megapixels)]
    max_megapixels: u32,

    /// List every problem and class, not one example of each kind
    #[arg(long)]
    all: bool,

    /// Print one JSON document
    #[arg(long, conflicts_with = "all")]
    json: bool,
}

impl Check {
    /// Exits with 0 if all is well, 1 if there are problems.
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { data, layout, masks, max_megapixels, all, json } = self;
        let mut settings = DataConfig { max_megapixels, ..DataConfig::default() };
        masks.apply(&mut settings);
        let dataset = layout.of(&data).open(&settings)?;
        let progress = ui.progress(dataset.samples().count() as u64, "checking");
        let inspection = inspect(&dataset, max_megapixels, || progress.inc(1));
        drop(progress);
        let summary = inspection.summarize(&dataset);
        if json {
            ui.print(&serde_json::to_string(&summary)?);
        } else {
            print(&dataset, &inspection, &summary, all, ui);
        }
        ensure!(
            !inspection.sizes.is_empty(),
            "none of the images of `{}` can be read",
            data.display()
        );
        let count = inspection.problems.len();
        if count > 0 {
            ui.warn(&format!("problems found: {count}"));
        }
        Ok(ExitCode::from(u8::from(count > 0)))
    }
}

/// The output for people.
fn print(dataset: &Dataset, found: &Inspection, summary: &Summary, all: bool, ui: &mut Ui) {
    ui.print(&format!("{} dataset in {}", dataset.layout, dataset.root.display()));
    ui.print("");
    print_splits(summary, &dataset.classes, all, ui);
    ui.print("");
    print_pixels(found, ui);
    ui.print("");
    if summary.problems.is_empty() {
        ui.print("no problems");
    } else if all {
        for problem in &found.problems {
            ui.print(&format!("{}: {problem}", problem.kind));
        }
    } else {
        for group in &summary.problems {
            ui.print(&format!("{}: {}", group.kind, group.count));
            ui.print(&format!("  {}", group.example));
        }
    }
    for note in &summary.notes {
        ui.print(&format!("note: {note}"));
    }
}

/// One column per split, one row for images, masks, and each class.
fn print_splits(summary: &Summary, classes: &[String], all: bool, ui: &mut Ui) {
    let splits = &summary.splits;
    let shown = if all { classes.len() } else { classes.len().min(SHOWN_CLASSES) };
    let width = classes[..shown].iter().map(|name| name.width()).max().unwrap_or(0).max(6);
    let mut row = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>8}")).collect();
        ui.print(&format!("{}{cells}", pad_right(name, width)));
    };
    let count = |value: &dyn Fn(&SplitSummary) -> usize| -> Vec<String> {
        splits.values().map(|split| value(split).to_string()).collect()
    };
    row("", splits.keys().map(Split::to_string).collect());
    row("images", count(&|split| split.images));
    row("masks", count(&|split| split.masks));
    for name in &classes[..shown] {
        row(name, count(&|split| split.classes[name]));
    }
    if shown < classes.len() {
        ui.print(&format!("… and {} more classes (`--all` lists them)", classes.len() - shown));
    }
}

fn print_pixels(found: &Inspection, ui: &mut Ui) {
    let mut sizes = found.sizes.clone();
    sizes.sort_by_key(|&(width, height)| (u64::from(width) * u64::from(height), width));
    if let Some([low, middle, high]) = spread(&sizes) {
        let text = |(width, height): (u32, u32)| format!("{width}×{height}");
        let [low, middle, high] = [low, middle, high].map(text);
        ui.print(&format!("image size  {low} to {high}, median {middle}"));
    }
    let mut foreground = found.foreground.clone();
    foreground.sort_by(f64::total_cmp);
    if let Some(fractions) = spread(&foreground) {
        let [low, middle, high] = fractions.map(|fraction| fraction * 100.0);
        ui.print(&format!(
            "foreground  {low:.1} % to {high:.1} % of an image, median {middle:.1} %"
        ));
    }
}

/// Smallest, middle and largest of sorted values.
fn spread<T: Copy>(sorted: &[T]) -> Option<[T; 3]> {
    Some([*sorted.first()?, sorted[sorted.len() / 2], *sorted.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_values_is_their_ends_and_the_middle() {
        assert_eq!(spread(&[1, 2, 9]), Some([1, 2, 9]));
        assert_eq!(spread::<u8>(&[]), None);
    }
}
