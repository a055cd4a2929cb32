//! A report on disk: an evaluation goes in, files come out.
//!
//! ```text
//! report.json              everything, to be read back
//! report.md report.html    for people
//! metrics.csv classes.csv  a line per image, per class
//! figures/                 curves and matrix as SVG
//! maps/                    score maps as they were scored, if asked for
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Report,
    figures::{self, figures},
    gallery::{MOST_SHOWN, Thumbnail, ThumbnailFile, choose},
    html::{self, GalleryImage},
    tables,
};
use crate::{
    data::npy,
    error::{Error, Result},
    evaluate::{Case, EvaluationTask, evaluate, map_names},
    metrics::Evaluation,
    run::write_atomically,
};

/// A folder for a report that is being made.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    thumbnails: ThumbnailFile,
}

impl Folder {
    /// Makes the folder, if there is none; files of an older report are replaced.
    pub fn create(root: &Path) -> Result<Self> {
        let figures = root.join("figures");
        fs::create_dir_all(&figures).map_err(Error::file("create", &figures))?;
        Ok(Self { root: root.to_owned(), thumbnails: ThumbnailFile::create(root)? })
    }

    /// Scores a split and keeps what the report will show; `advance` is called for each image
    /// and may break off.
    ///
    /// Maps are saved of the images that are `saved` by their place in the split.
    pub fn evaluate(
        &mut self,
        task: &EvaluationTask<'_>,
        saved: impl Fn(usize) -> bool + Sync,
        mut advance: impl FnMut() -> Result<()>,
    ) -> Result<Evaluation> {
        let Self { root, thumbnails } = self;
        let (maps, names) = (root.join("maps"), map_names(task.dataset.split(task.split)));
        let shrink = |case: &Case| {
            if saved(case.index) {
                save_map(&maps.join(&names[case.index]), case)?;
            }
            Ok(Thumbnail::of(case))
        };
        evaluate(task, shrink, |thumbnail| {
            thumbnails.push(&thumbnail)?;
            advance()
        })
    }

    /// Writes everything down.
    pub fn write(mut self, report: &Report) -> Result<()> {
        let images = &report.evaluation.images;
        let show = |(index, standing)| {
            Ok(GalleryImage::new(&images[index], standing, self.thumbnails.get(index)?))
        };
        let chosen = choose(images, MOST_SHOWN).into_iter();
        let shown = chosen.map(show).collect::<Result<Vec<_>>>()?;
        let drawn = figures(report);
        let file = |name: &str| self.root.join(name);
        for name in figures::NAMES {
            let svg = file(&format!("figures/{name}.svg"));
            match drawn.iter().find(|figure| figure.name == name) {
                Some(figure) => write_atomically(&svg, figure.drawing.document().as_bytes())?,
                // An older report may have had it.
                None => remove(&svg)?,
            }
            // Versions before wrote figures as PNG too.
            remove(&svg.with_extension("png"))?;
        }
        remove(&file("figures/gallery.png"))?;
        write_atomically(&file("metrics.csv"), tables::images_csv(report).as_bytes())?;
        write_atomically(&file("classes.csv"), tables::classes_csv(report).as_bytes())?;
        write_atomically(&file("report.md"), tables::markdown(report).as_bytes())?;
        write_atomically(&file("report.html"), html::page(report, &drawn, &shown).as_bytes())?;
        report.write(&file("report.json"))
    }
}

fn save_map(path: &Path, case: &Case) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    }
    write_atomically(path, &npy::encode(case.image.width() as usize, &case.map))
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
