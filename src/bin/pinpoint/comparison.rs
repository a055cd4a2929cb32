//! A comparison of reports, written down and announced.

use std::path::Path;

use pinpoint::{
    data::Dataset,
    report::compare::{self, Comparison},
};

use crate::ui::Ui;

/// Writes a comparison down.
pub(crate) fn write(
    comparison: &Comparison,
    folder: &Path,
    dataset: Option<&Dataset>,
    ui: &mut Ui,
) -> anyhow::Result<()> {
    let shown = compare::write(comparison, folder, dataset)?;
    let page = folder.join("comparison.html");
    let with = if shown > 0 { format!(", with {shown} images") } else { String::new() };
    ui.note(&format!("comparison in `{}`{with}", page.display()));
    Ok(())
}
