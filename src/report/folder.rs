//! A report on disk: an evaluation goes in, files come out.
//!
//! ```text
//! report.json              everything, to be read back
//! report.md report.html    for people
//! metrics.csv classes.csv  a line per image, per class
//! figures/                 curves and matrix as PNG and SVG, gallery as PNG
//! maps/                    score maps as they were scored, if asked for
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use image::RgbImage;

use super::{
    Report,
    canvas::encode_png,
    figures::{self, figures},
    gallery::{Exhibit, MOST_SHOWN, Spool, Standing, choose},
    headline::percent,
    html::{self, Shown},
    overlay::{self, Panel, Row, sheet},
    tables,
};
use crate::{
    data::npy,
    error::{Error, Result},
    evaluate::{Case, EvaluationTask, evaluate, map_names},
    metrics::Evaluation,
    run::write_atomically,
};

/// Images in `gallery.png`: this many each of the worst, the median and the best.
const PICTURED: usize = 4;

/// A folder for a report that is being made.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    spool: Spool,
}

impl Folder {
    /// Makes the folder, if there is none; files of an older report are replaced.
    pub fn create(root: &Path) -> Result<Self> {
        let figures = root.join("figures");
        fs::create_dir_all(&figures).map_err(Error::file("create", &figures))?;
        Ok(Self { root: root.to_owned(), spool: Spool::create(root)? })
    }

    /// Scores a split and keeps what the report will show; `advance` is called for each image.
    ///
    /// Maps are saved of the images that are `saved` by their place in the split.
    pub fn evaluate(
        &mut self,
        task: &EvaluationTask<'_>,
        saved: impl Fn(usize) -> bool + Sync,
        mut advance: impl FnMut(),
    ) -> Result<Evaluation> {
        let Self { root, spool } = self;
        let (maps, names) = (root.join("maps"), map_names(task.dataset.split(task.split)));
        let look = |case: &Case<'_>| {
            if saved(case.index) {
                save_map(&maps.join(&names[case.index]), case)?;
            }
            Ok(Exhibit::of(case))
        };
        evaluate(task, look, |exhibit| {
            advance();
            spool.push(&exhibit)
        })
    }

    /// Writes everything down.
    pub fn write(mut self, report: &Report) -> Result<()> {
        let images = &report.evaluation.images;
        let chosen = choose(images, MOST_SHOWN);
        let shown: Vec<Shown<'_>> = chosen
            .into_iter()
            .map(|(index, standing)| {
                Ok(Shown { row: &images[index], standing, exhibit: self.spool.get(index)? })
            })
            .collect::<Result<_>>()?;
        let drawn = figures(report);
        let file = |name: &str| self.root.join(name);
        for name in figures::NAMES {
            let (png, svg) = (format!("figures/{name}.png"), format!("figures/{name}.svg"));
            match drawn.iter().find(|figure| figure.name == name) {
                Some(figure) => {
                    write_atomically(&file(&png), &figure.png)?;
                    write_atomically(&file(&svg), figure.svg.as_bytes())?;
                }
                // An older report may have had it.
                None => [png, svg].iter().try_for_each(|name| remove(&file(name)))?,
            }
        }
        write_atomically(&file("figures/gallery.png"), &encode_png(&gallery(report, &shown)))?;
        write_atomically(&file("metrics.csv"), &tables::images_csv(report))?;
        write_atomically(&file("classes.csv"), &tables::classes_csv(report))?;
        write_atomically(&file("report.md"), tables::markdown(report).as_bytes())?;
        write_atomically(&file("report.html"), html::page(report, &drawn, &shown).as_bytes())?;
        report.write(&file("report.json"))
    }
}

fn save_map(path: &Path, case: &Case<'_>) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    }
    write_atomically(path, &npy::encode(case.image.width() as usize, case.map))
}

/// Removes a file that an older report may have left.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// A sheet of some of the shown images: image, truth, mask and scores.
fn gallery(report: &Report, shown: &[Shown<'_>]) -> RgbImage {
    let standings = [Standing::Worst, Standing::Median, Standing::Best, Standing::Unscored];
    let some = standings.iter().flat_map(|standing| {
        shown.iter().filter(move |shown| shown.standing == *standing).take(PICTURED)
    });
    let rows: Vec<Row> = some.filter_map(|shown| pictured(report, shown)).collect();
    sheet(&rows, &overlay::AGREEMENT_KEY)
}

fn pictured(report: &Report, shown: &Shown<'_>) -> Option<Row> {
    let Shown { row, standing, exhibit } = shown;
    let (image, map, truth) = exhibit.decode()?;
    let cut = row.threshold.unwrap_or(0.5);
    let mask: Vec<bool> = map.iter().map(|score| *score >= cut).collect();
    let tinted = |mask: &[bool], colour| overlay::tint(&image, mask, colour);
    let mut panels = vec![Panel::new(report.class_names()[row.label], image.clone())];
    match &truth {
        Some(truth) => {
            panels.push(Panel::new("truth", tinted(&truth.foreground, overlay::TRUE_MASK)));
            panels.push(Panel::new("mask", overlay::agreement(&image, &mask, truth)));
        }
        None => panels.push(Panel::new("mask", tinted(&mask, overlay::PREDICTED_MASK))),
    }
    panels.push(Panel::new("scores", overlay::heat_map(&image, &map)));
    let (foreground, background) = (percent(row.f1_foreground), percent(row.f1_background));
    let heading = format!("{}: F1+ {foreground}, F1- {background}, {}", standing.name(), row.id);
    Some(Row { heading, panels })
}
