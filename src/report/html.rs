//! One self-contained page that shows a whole report.
//!
//! The parts of the page are in `html/` and `style/`. Numbers and tables are written here, so
//! that the page can be read without scripts; the gallery is drawn by its script
//! from data in the page. Every text that comes from the data is escaped.

use image::Rgb;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Report, Warning,
    figures::Figure,
    gallery::{MOST_SHOWN, Standing, Thumbnail},
    headline::{Headline, headline, leading},
    overlay,
    svg::{CHART_STYLE, COLOURS, Svg, escape},
    table,
    tables::{class_table, protocol_table, score_table},
    warnings::warnings,
};
use crate::metrics::{ImageRow, ThresholdRule};

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("style/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// An image of the gallery, as the script has it.
#[derive(Serialize)]
pub(super) struct GalleryImage<'a> {
    id: &'a str,
    label: usize,
    predicted: Option<usize>,
    probability: Option<f32>,
    threshold: Option<f32>,
    f1_foreground: Option<f64>,
    f1_background: Option<f64>,
    standing: Standing,
    #[serde(flatten)]
    thumbnail: Thumbnail,
}

impl<'a> GalleryImage<'a> {
    /// An image with its scores, where it stands among all, and its picture.
    pub(super) fn new(row: &'a ImageRow, standing: Standing, thumbnail: Thumbnail) -> Self {
        Self {
            id: &row.id,
            label: row.label,
            predicted: row.predicted,
            probability: row.probability,
            threshold: row.threshold,
            f1_foreground: row.pixels.f1_foreground,
            f1_background: row.pixels.f1_background,
            standing,
            thumbnail,
        }
    }
}

/// The page.
pub(super) fn page(report: &Report, figures: &[Figure], gallery: &[GalleryImage<'_>]) -> String {
    let scores = &report.evaluation.scores;
    let headline = headline(scores);
    let (first, rest) = headline.split_at(leading(&headline));
    let (subject, dataset) = (report.subject(), report.dataset_name());
    fill(PAGE, |name| match name {
        "title" => escape(&format!("{subject} on {dataset}")),
        "style" => style(),
        "script" => SCRIPT.to_owned(),
        "lead" => escape(&lead(report)),
        "oracle" => oracle(report),
        "warnings" => warnings(report).iter().map(warning).collect(),
        "tiles" => first.iter().map(tile).collect(),
        "scores" => table::html::table(&score_table(rest)),
        "gallery" => gallery_note(scores.images, gallery.len()),
        "key" => key(),
        "figures" => figures.iter().map(figure).collect(),
        "classes" => table::html::table(&class_table(report)),
        "protocol" => table::html::table(&protocol_table(report)),
        "footer" => escape(&format!("Written by pinpoint {}", report.version)),
        "data" => data(report, gallery),
        other => unreachable!("the page has no part `{other}`"),
    })
}

/// One line that says what was scored, and how.
fn lead(report: &Report) -> String {
    let scores = &report.evaluation.scores;
    let mut parts = vec![
        report.method.clone(),
        format!("{} images of the {} split", scores.images, report.split),
    ];
    if scores.images_with_truth != scores.images {
        parts.push(format!("{} with masks", scores.images_with_truth));
    }
    parts.push(format!("threshold {}", scores.protocol.threshold.rule()));
    parts.extend(report.conditions.crf.map(|crf| format!("CRF {}", crf.name())));
    parts.join(" · ")
}

/// The style sheet of every page.
pub(super) fn style() -> String {
    [COLOURS, CHART_STYLE, STYLE].concat()
}

/// The key to the colours of masks.
pub(super) fn key() -> String {
    let entry = |(name, Rgb([red, green, blue])): (&str, Rgb<u8>)| {
        format!("<li><i style=\"--swatch: rgb({red} {green} {blue})\"></i>{name}</li>\n")
    };
    let entries = overlay::AGREEMENT_KEY.map(entry).concat();
    format!("<ul class=\"key\" aria-label=\"Colours of the masks\">\n{entries}</ul>\n")
}

/// A part of a page under its title, both as markup.
pub(super) fn section(key: &str, title: &str, content: &str) -> String {
    format!(
        "<section aria-labelledby=\"{key}\">\n<h2 id=\"{key}\">{title}</h2>\n{content}</section>\n"
    )
}

/// Replaces each `{{name}}` of a template; the inserted text is not searched again.
pub(super) fn fill(template: &str, part: impl Fn(&str) -> String) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("parts of the template are closed");
        page.push_str(before);
        page.push_str(&part(name));
        rest = after;
    }
    page.push_str(rest);
    page
}

/// A warning if the threshold or the class was chosen with the ground truth.
fn oracle(report: &Report) -> String {
    let mut warnings = Vec::new();
    if report.evaluation.scores.protocol.threshold.rule() == ThresholdRule::Oracle {
        warnings.push("the threshold was tuned on the scored split itself");
    }
    if report.conditions.oracle_label {
        warnings.push("the method was told the true class");
    }
    if warnings.is_empty() {
        return String::new();
    }
    format!("<p class=\"oracle\"><strong>Oracle:</strong> {}</p>", warnings.join("; "))
}

fn warning(Warning { problem, remedy }: &Warning) -> String {
    // Remedies are ours; what stands between backquotes is typed.
    let typed: String = remedy
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            0 => escape(part),
            _ => format!("<code>{}</code>", escape(part)),
        })
        .collect();
    let problem = escape(problem);
    format!(
        "<p class=\"warning\"><strong>Warning:</strong> {problem}. <span>Try: {typed}.</span></p>\n"
    )
}

fn tile(row: &Headline) -> String {
    let Headline { name, unit, meaning, .. } = row;
    let direction = row.better.map_or_else(String::new, |better| {
        format!(" <abbr title=\"{}\">{}</abbr>", better.words(), better.arrow())
    });
    let unit = if row.score.is_some() { *unit } else { "" };
    let interval = match row.interval_text() {
        text if text.is_empty() => String::new(),
        text => format!("<span class=\"interval\">95 %: {text}</span>"),
    };
    let trivial: String = row
        .trivial
        .iter()
        .map(|(name, score)| format!("<div><dt>{name}</dt><dd>{score:.2}</dd></div>"))
        .collect();
    format!(
        "<div class=\"tile\" title=\"{meaning}\"><h3>{name}{direction}</h3><p><b>{}</b> {unit} \
         {interval}</p><dl>{trivial}</dl></div>\n",
        row.score_text()
    )
}

fn figure(figure: &Figure) -> String {
    let caption = figure.caption;
    let part = |part: &Svg| {
        format!("<figure>\n{}<figcaption>{caption}</figcaption></figure>\n", part.inline())
    };
    figure.parts.iter().map(part).collect()
}

fn gallery_note(images: u64, shown: usize) -> String {
    let which = if images as usize > shown {
        format!(
            "{shown} of {images} images: the worst, the median and the best third of at most \
             {MOST_SHOWN}."
        )
    } else {
        format!("All {images} images.")
    };
    format!(
        "{which} Sorted by the mean of F1⁺ and F1⁻. Pictures are previews of at most 256 pixels; \
         scores are of the full size, at the recorded threshold."
    )
}

/// What the script needs.
#[derive(Serialize)]
struct Data<'a> {
    classes: Vec<&'a str>,
    threshold: Option<f32>,
    scored: u64,
    sweep: Value,
    colours: Value,
    items: &'a [GalleryImage<'a>],
}

fn data(report: &Report, gallery: &[GalleryImage<'_>]) -> String {
    let evaluation = &report.evaluation;
    let data = Data {
        classes: report.class_names(),
        threshold: evaluation.scores.protocol.threshold.value(),
        scored: evaluation.scores.images_with_truth,
        sweep: json!({
            "f1_foreground": evaluation.sweep.f1_foreground,
            "f1_background": evaluation.sweep.f1_background,
        }),
        colours: json!({
            "hit": overlay::TRUE_POSITIVE.0,
            "alarm": overlay::FALSE_POSITIVE.0,
            "miss": overlay::FALSE_NEGATIVE.0,
            "mask": overlay::PREDICTED_MASK.0,
            "truth": overlay::TRUE_MASK.0,
            // Of the scores 0, 1/255, …, 1.
            "heat": overlay::colour_map::COLOURS.as_slice(),
        }),
        items: gallery,
    };
    // So that no text can end the script element it stands in.
    serde_json::to_string(&data).expect("plain data").replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{document::tests::example, figures::figures};

    fn shown(row: &ImageRow) -> GalleryImage<'_> {
        let thumbnail = Thumbnail { image: "data:i".into(), map: "data:m".into(), truth: None };
        GalleryImage::new(row, Standing::Worst, thumbnail)
    }

    #[test]
    fn every_part_of_the_template_is_filled() {
        let report = example();
        let gallery: Vec<_> = report.evaluation.images.iter().map(shown).collect();
        let page = page(&report, &figures(&report), &gallery);
        assert!(!page.contains("{{") && !page.contains("}}\n"), "unfilled");
        for part in ["F1⁺ (Dice of foreground)", "50.00", "0.5, fixed", "<svg", "All 3 images"] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn names_from_the_data_cannot_become_markup() {
        let mut report = example();
        let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{data}}";
        report.method = hostile.to_owned();
        report.conditions.data = hostile.to_owned();
        report.evaluation.classes[0].class = hostile.to_owned();
        report.evaluation.images[0].id = hostile.to_owned();
        let gallery: Vec<_> = report.evaluation.images.iter().map(shown).collect();
        let page = page(&report, &figures(&report), &gallery);
        assert!(!page.contains("<script>alert") && !page.contains("<img src=x"));
        assert_eq!(page.matches("</script>").count(), 2, "the data's and the script's own");
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        let report = example();
        let page = page(&report, &figures(&report), &[]);
        let namespaces = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
        assert_eq!(page.matches("http").count() - page.matches("http-equiv").count(), namespaces);
        for request in ["<link", "@import", "url(", "fetch(", " src=\"", "XMLHttpRequest"] {
            assert!(!page.contains(request), "{request}");
        }
    }

    #[test]
    fn a_score_is_shown_once_with_unit_direction_and_what_trivial_masks_have() {
        let report = example();
        let page = page(&report, &[], &[]);
        let shown = page.split("<section aria-labelledby=\"classes").next().unwrap();
        for name in ["F1⁺ (Dice of foreground)", "PR area, foreground", "Classification error"] {
            assert_eq!(shown.matches(name).count(), 1, "{name}");
        }
        let tile = page.split("<h3>F1⁺").nth(1).unwrap().split("</dl>").next().unwrap();
        for part in ["title=\"higher is better\">↑", "<b>50.00</b> %", "All-ones", "centre ellipse"]
        {
            assert!(tile.contains(part), "{part}: {tile}");
        }
    }

    #[test]
    fn warnings_say_what_to_try() {
        let mut report = example();
        report.evaluation.scores.inverted = Some(80.0);
        let page = page(&report, &[], &[]);
        assert!(
            page.contains("inverted more often than not") && page.contains("<code>wildcat</code>")
        );
    }

    #[test]
    fn oracles_are_named_at_the_top() {
        let mut report = example();
        assert_eq!(oracle(&report), "");
        report.conditions.oracle_label = true;
        report.evaluation.scores.protocol.threshold = ThresholdRule::Oracle.tuned(0.3);
        let warning = oracle(&report);
        assert!(warning.contains("tuned on the scored split") && warning.contains("true class"));
    }
}
