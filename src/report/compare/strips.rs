//! Some images of the split: image, truth and the mask of each method.

use std::path::Path;

use image::RgbImage;

use super::{Comparison, is_shown, setup::Setup};
use crate::{
    data::{
        Dataset,
        image::read_rgb,
        mask::{self, Mask},
        npy,
    },
    error::{Error, Result},
    evaluate::map_names,
    report::{
        base64, overlay,
        picture::{encode_jpeg, thumbnail},
        svg::{LINE_HEIGHT, Paint, Svg, TextStyle, escape, fit_text},
    },
};

/// Longer side of the pictures in a strip, in pixels; smaller images are enlarged to it in a file.
const SIDE: u32 = 256;
/// Bytes of a picture, so that a page of many stays small.
const PICTURE_BYTES: usize = 16_000;
/// Pictures beside each other in a file; more go into the next line.
const COLUMNS: usize = 6;
const GAP: f32 = 12.0;

/// Pictures of one image, side by side.
pub(super) struct Strip {
    heading: String,
    panels: Vec<Panel>,
}

struct Panel {
    caption: String,
    size: (u32, u32),
    jpeg: Vec<u8>,
}

impl Panel {
    fn new(caption: &str, picture: &RgbImage) -> Self {
        let picture = thumbnail(picture, SIDE);
        let jpeg = encode_jpeg(&picture, PICTURE_BYTES);
        Self { caption: caption.to_owned(), size: picture.dimensions(), jpeg }
    }

    /// Width and height in a file.
    fn drawn_size(&self) -> (f32, f32) {
        let (width, height) = self.size;
        let scale = SIDE as f32 / width.max(height) as f32;
        (width as f32 * scale, height as f32 * scale)
    }
}

impl Strip {
    /// Image, truth and masks, each coloured by how it agrees with the truth.
    ///
    /// Without truth the masks are tinted. Masks have the size of the image.
    fn new(
        heading: String,
        image: &RgbImage,
        truth: Option<&Mask>,
        masks: &[(&str, Vec<bool>)],
    ) -> Self {
        let tint = |mask: &[bool], colour| overlay::tint(image, mask, colour, overlay::ALPHA);
        let mut panels = vec![Panel::new("image", image)];
        if let Some(truth) = truth {
            panels.push(Panel::new("truth", &tint(&truth.foreground, overlay::TRUE_MASK)));
        }
        for (name, mask) in masks {
            let picture = match truth {
                Some(truth) => overlay::agreement(image, mask, truth),
                None => tint(mask, overlay::PREDICTED_MASK),
            };
            panels.push(Panel::new(name, &picture));
        }
        Self { heading, panels }
    }

    /// The strip as a part of a page, which breaks its line where the window ends.
    pub(super) fn html(&self) -> String {
        let panel = |Panel { caption, size: (width, height), jpeg }: &Panel| {
            let caption = escape(caption);
            format!(
                "<figure><img alt=\"{caption}\" width=\"{width}\" height=\"{height}\" \
                 src=\"{}\"><figcaption>{caption}</figcaption></figure>\n",
                base64::image_url("jpeg", jpeg)
            )
        };
        format!(
            "<article class=\"card\"><h3>{}</h3>\n<div class=\"strip\">\n{}</div></article>\n",
            escape(&self.heading),
            self.panels.iter().map(panel).collect::<String>()
        )
    }
}

/// All strips under each other, with the key to their colours at the foot.
pub(super) fn drawing(strips: &[Strip]) -> Svg {
    let cell = SIDE as f32 + GAP;
    let columns = strips.iter().map(|strip| strip.panels.len()).max().unwrap_or(0).min(COLUMNS);
    let line_height = |line: &[Panel]| {
        let tallest = line.iter().map(|panel| panel.drawn_size().1).fold(0.0, f32::max);
        tallest + LINE_HEIGHT + GAP
    };
    let height = |strip: &Strip| {
        LINE_HEIGHT + GAP + strip.panels.chunks(COLUMNS).map(line_height).sum::<f32>()
    };
    let total = strips.iter().map(height).sum::<f32>() + 2.0 * GAP + LINE_HEIGHT;
    let mut svg = Svg::new(GAP + columns as f32 * cell, total);
    let width = svg.width;
    let mut y = GAP;
    for strip in strips {
        let bold = TextStyle { bold: true, ..TextStyle::default() };
        svg.text((GAP, y + LINE_HEIGHT / 2.0), &fit_text(&strip.heading, width - 2.0 * GAP), bold);
        y += LINE_HEIGHT + GAP / 2.0;
        for line in strip.panels.chunks(COLUMNS) {
            for (index, panel) in line.iter().enumerate() {
                let x = GAP + index as f32 * cell;
                let size = panel.drawn_size();
                svg.jpeg((x, y), size, &panel.jpeg);
                let at = (x, y + size.1 + LINE_HEIGHT / 2.0);
                let soft = TextStyle { paint: Paint::Soft, ..TextStyle::default() };
                svg.text(at, &fit_text(&panel.caption, SIDE as f32), soft);
            }
            y += line_height(line);
        }
        y += GAP / 2.0;
    }
    let key = overlay::AGREEMENT_KEY.map(|(name, image::Rgb([r, g, b]))| {
        format!("<tspan fill=\"#{r:02x}{g:02x}{b:02x}\">■</tspan> {name}   ")
    });
    svg.markup((GAP, y + LINE_HEIGHT / 2.0), &key.concat());
    svg
}

/// A strip for each image that is shown; a set-up is in it if its maps were saved.
pub(super) fn strips(compared: &Comparison, dataset: &Dataset) -> Result<Vec<Strip>> {
    let report = &compared.setups[0].first().report;
    let samples = dataset.split(report.split);
    let ids = report.evaluation.images.iter().map(|row| &row.id);
    if !ids.eq(samples.iter().map(|sample| &sample.id)) {
        let remedy = "give the dataset of the reports as `--data`";
        return Err(Error::data(
            &dataset.root,
            "the images are not those that were scored",
            remedy,
        ));
    }
    let names = map_names(samples);
    let settings = report.settings.as_deref().map(|settings| settings.data.clone());
    let limit = settings.unwrap_or_default().max_megapixels;
    let mut strips = Vec::new();
    for (index, sample) in samples.iter().enumerate().filter(|(i, _)| is_shown(*i, samples.len())) {
        let map = |setup: &Setup| setup.first().folder.join("maps").join(&names[index]);
        let saved = compared.setups.iter().map(|setup| (setup, map(setup)));
        let saved: Vec<_> = saved.filter(|(_, file)| file.is_file()).collect();
        if saved.is_empty() {
            continue;
        }
        let image = read_rgb(&sample.image, limit)?;
        let (rule, size) = (report.conditions.truth_rule, image.dimensions());
        let truth = mask::read(&sample.truth, rule, size, limit)?;
        let masks = saved.iter().map(|(setup, file)| {
            let row = &setup.first().report.evaluation.images[index];
            let mask = saved_mask(file, size, limit, row.threshold.unwrap_or(0.5))?;
            Ok((setup.short_title(), mask))
        });
        let masks = masks.collect::<Result<Vec<_>>>()?;
        let heading = format!("{}: {}", dataset.classes[sample.label], sample.id);
        strips.push(Strip::new(heading, &image, truth.as_ref(), &masks));
    }
    Ok(strips)
}

/// The pixels of a saved map of an image of that size that score no less than `cut`.
fn saved_mask(file: &Path, (width, height): (u32, u32), limit: u32, cut: f32) -> Result<Vec<bool>> {
    let map = npy::read(file, limit)?;
    if (map.width, map.height) != (width as usize, height as usize) {
        let problem = "the score map has not the size of its image";
        return Err(Error::image(file, problem, "evaluate the run again"));
    }
    Ok(map.values.iter().map(|score| *score >= cut).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(methods: usize, truth: bool) -> Strip {
        let image = RgbImage::new(400, 200);
        let foreground = vec![true; 400 * 200];
        let truth = truth.then_some(Mask { width: 400, height: 200, foreground, ignored: None });
        let masks = vec![("<method>", vec![false; 400 * 200]); methods];
        Strip::new("a: <b>.png".to_owned(), &image, truth.as_ref(), &masks)
    }

    #[test]
    fn a_strip_shows_image_truth_and_every_mask() {
        let captions = |strip: &Strip| {
            strip.panels.iter().map(|panel| panel.caption.clone()).collect::<Vec<_>>()
        };
        assert_eq!(captions(&strip(2, true)), ["image", "truth", "<method>", "<method>"]);
        assert_eq!(captions(&strip(1, false)), ["image", "<method>"]);
        let html = strip(2, true).html();
        assert_eq!(html.matches("<img ").count(), 4);
        assert!(html.contains("&lt;method&gt;") && html.contains("a: &lt;b&gt;.png"));
    }

    #[test]
    fn small_images_take_the_room_that_there_is() {
        assert_eq!(Panel::new("small", &RgbImage::new(20, 40)).drawn_size(), (128.0, 256.0));
        assert_eq!(Panel::new("large", &RgbImage::new(800, 400)).drawn_size(), (256.0, 128.0));
    }

    #[test]
    fn the_file_is_as_large_as_all_of_its_pictures() {
        let svg = drawing(&[strip(9, true), strip(1, true)]);
        // Pictures of 256 × 128; eleven in two lines, then three in one.
        let line = 128.0 + LINE_HEIGHT + GAP;
        let expected = 3.0 * line + 2.0 * (LINE_HEIGHT + GAP) + 2.0 * GAP + LINE_HEIGHT;
        assert_eq!((svg.width, svg.height), (GAP + 6.0 * (256.0 + GAP), expected));
        let text = svg.document();
        assert_eq!(text.matches("<image ").count(), 11 + 3);
        assert!(text.contains("false negative"));
    }
}
