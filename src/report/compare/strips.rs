//! Some images of the split: image, truth and the mask of each method.

use super::{Comparison, Setup, is_shown};
use crate::{
    config::DataConfig,
    data::{
        Dataset, Sample,
        image::read_rgb,
        mask::{self, MaskRule},
        npy,
    },
    error::{Error, Result},
    evaluate::map_names,
    report::{figures::comparison, overlay::Row},
};

/// A row for each image that is shown; a set-up is in it if its maps were saved.
pub(super) fn strips(compared: &Comparison, dataset: &Dataset) -> Result<Vec<Row>> {
    let report = &compared.setups[0].first().report;
    let samples = dataset.split(report.split);
    let ids = report.evaluation.images.iter().map(|row| &row.id);
    if !ids.eq(samples.iter().map(|sample| &sample.id)) {
        return Err(Error::Data {
            path: dataset.root.clone(),
            problem: "the images are not those that were scored".to_owned(),
            remedy: "give the dataset of the reports as `--data`".to_owned(),
        });
    }
    let names = map_names(samples);
    let saved: Vec<(&Setup, std::path::PathBuf)> =
        compared.setups.iter().map(|setup| (setup, setup.first().folder.join("maps"))).collect();
    let limit = report.settings.as_deref().map_or_else(DataConfig::default, |s| s.data.clone());
    let mut rows = Vec::new();
    for (index, sample) in samples.iter().enumerate().filter(|(i, _)| is_shown(*i, samples.len())) {
        let there = saved.iter().map(|(setup, folder)| (*setup, folder.join(&names[index])));
        let there: Vec<_> = there.filter(|(_, file)| file.is_file()).collect();
        if !there.is_empty() {
            let shown = Shown { index, sample, class: &dataset.classes[sample.label] };
            rows.push(shown.row(&there, report.conditions.truth_rule, limit.max_megapixels)?);
        }
    }
    Ok(rows)
}

/// An image that is shown.
struct Shown<'a> {
    index: usize,
    sample: &'a Sample,
    class: &'a str,
}

impl Shown<'_> {
    fn row(
        &self,
        maps: &[(&Setup, std::path::PathBuf)],
        rule: MaskRule,
        limit: u32,
    ) -> Result<Row> {
        let image = read_rgb(&self.sample.image, limit)?;
        let (width, height) = image.dimensions();
        let truth = mask::read(&self.sample.truth, rule, (width, height), limit)?;
        let mut masks = Vec::new();
        for (setup, file) in maps {
            let map = npy::read(file, limit)?;
            if (map.width, map.height) != (width as usize, height as usize) {
                return Err(Error::Image {
                    path: file.clone(),
                    problem: "the score map has not the size of its image".to_owned(),
                    remedy: "evaluate the run again".to_owned(),
                });
            }
            let row = &setup.first().report.evaluation.images[self.index];
            let cut = row.threshold.unwrap_or(0.5);
            let marked: Vec<bool> = map.values.iter().map(|score| *score >= cut).collect();
            masks.push((setup.short_title(), marked));
        }
        let masks: Vec<(&str, &[bool])> =
            masks.iter().map(|(title, mask)| (*title, mask.as_slice())).collect();
        let heading = format!("{}: {}", self.class, self.sample.id);
        Ok(Row { heading, ..comparison(&image, truth.as_ref(), &masks) })
    }
}
