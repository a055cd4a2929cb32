//! The report of one evaluation, as in `report.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    config::{Config, Semantics},
    data::{Layout, MaskRule, Split},
    error::{Error, Result},
    metrics::Evaluation,
    refine::Preset,
    regular,
    run::{Fingerprint, Inputs, write_atomically},
    train::EpochRecord,
};

/// The scores of one method on one split, and the conditions under which they were computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this form; a reader refuses a newer one.
    pub format: u32,
    /// Version of pinpoint that wrote it.
    pub version: String,
    /// The method that was scored.
    pub method: String,
    /// On which samples.
    pub split: Split,
    /// How the predictions came about.
    pub conditions: Conditions,
    /// What training took; none for a method without training.
    pub training: Option<Training>,
    /// The run's settings; `None` for a method without training, and in older reports.
    #[serde(default)]
    pub settings: Option<Box<Config>>,
    /// The inputs of the run; `None` for a method without training, and for older runs.
    #[serde(default)]
    pub inputs: Option<Inputs>,
    /// Scores, with their protocol; classes, images, curves.
    #[serde(flatten)]
    pub evaluation: Evaluation,
}

/// How the scored predictions were made; how they were scored is in
/// [`Scores::protocol`](crate::metrics::Scores::protocol).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The dataset.
    pub data: String,
    /// How it was read.
    pub layout: Layout,
    /// What counts as foreground in its mask files.
    pub truth_rule: MaskRule,
    /// How the method's mask is computed, in words; `None` for saved maps.
    pub mask_rule: Option<String>,
    /// The run, if one was scored.
    pub run: Option<String>,
    /// Its weights, if they were used.
    pub weights: Option<String>,
    /// The folder of score maps, if those were scored.
    pub maps: Option<String>,
    /// The network's backbone.
    pub backbone: Option<String>,
    /// The semantics that the run was trained with.
    pub semantics: Option<Semantics>,
    /// Root of the run's random streams.
    pub seed: Option<u64>,
    /// The run that this one has taken its training from, if it was not trained itself.
    #[serde(default)]
    pub trained_in: Option<String>,
    /// How maps were refined, if at all.
    pub crf: Option<Preset>,
    /// Whether the method was given the true class.
    pub oracle_label: bool,
    /// The features that decidability was computed from, if it was asked for.
    #[serde(default)]
    pub features: Option<String>,
}

/// What training took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights are kept, counted from 0.
    pub kept_epoch: Option<usize>,
    /// Time of all epochs together.
    pub seconds: f64,
}

impl Training {
    /// Sums up the finished epochs of a run.
    pub fn of(records: &[EpochRecord]) -> Self {
        Self {
            epochs: records.len(),
            kept_epoch: records.iter().rev().find(|record| record.best).map(|record| record.epoch),
            seconds: records.iter().map(|record| record.seconds).sum(),
        }
    }
}

/// What every version of the form has.
#[derive(Deserialize)]
struct Header {
    format: u32,
    version: String,
}

impl Report {
    /// The form written by this version.
    pub const FORMAT: u32 = 1;

    /// Reads a `report.json`, or the one in a folder.
    pub fn read(path: &Path) -> Result<Self> {
        let file = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
        let text = regular::read_text(&file).map_err(Error::file("read", &file))?;
        let unusable = |problem: String, remedy: &str| Error::Run {
            path: file.clone(),
            problem,
            remedy: remedy.to_owned(),
        };
        if let Ok(Header { format, version }) = serde_json::from_str(&text)
            && format > Self::FORMAT
        {
            let problem = format!("the report was written by pinpoint {version}, which is newer");
            return Err(unusable(problem, "update pinpoint"));
        }
        serde_json::from_str(&text).map_err(|error| {
            unusable(format!("unreadable report ({error})"), "evaluate the run again")
        })
    }

    /// Writes it down; the file appears whole or not at all.
    pub fn write(&self, file: &Path) -> Result<()> {
        let mut text = serde_json::to_vec(self).expect("a report is plain data");
        text.push(b'\n');
        write_atomically(file, &text)
    }

    /// What was scored, for titles: the run's name, or else the method's.
    pub fn subject(&self) -> String {
        let run = self.conditions.run.as_deref().and_then(last_part);
        run.unwrap_or_else(|| self.method.clone())
    }

    /// The dataset's name, for titles.
    pub fn dataset_name(&self) -> String {
        last_part(&self.conditions.data).unwrap_or_else(|| self.conditions.data.clone())
    }

    /// The names of the classes; a label is an index into them.
    pub fn class_names(&self) -> Vec<&str> {
        self.evaluation.classes.iter().map(|row| row.class.as_str()).collect()
    }

    /// The protocol in words: each condition with its value.
    pub fn protocol(&self) -> Vec<(&'static str, String)> {
        let Self { conditions, evaluation, split, method, .. } = self;
        let protocol = &evaluation.scores.protocol;
        let threshold = match (protocol.threshold.rule(), protocol.threshold.value()) {
            (rule, Some(value)) if rule.ready().is_none() => format!("{rule}, {value}"),
            (rule, Some(_)) => format!("{rule}, fixed"),
            (rule, None) => format!("{rule}, per image"),
        };
        let intervals = format!(
            "{} %, {} resamples of the images, seed {}",
            100.0 * protocol.bootstrap.confidence,
            protocol.bootstrap.resamples,
            protocol.bootstrap.seed
        );
        let initial = |inputs: &Inputs| match &inputs.weights {
            None => "drawn".to_owned(),
            Some(file) => format!("{}, SHA-256 {}", file.name, file.sha256),
        };
        let fingerprint = |Fingerprint { files, every_byte, sha256, .. }: &Fingerprint| {
            let of = if *every_byte { "every byte" } else { "a sample of each" };
            format!("{files} files, SHA-256 of {of} {sha256}")
        };
        let inputs = self.inputs.as_ref();
        let of_run = |value: Option<String>| {
            conditions.run.as_ref().map(|_| value.unwrap_or_else(|| "none".to_owned()))
        };
        let training = self.training.map(|Training { epochs, kept_epoch, seconds }| {
            let kept = kept_epoch.map_or_else(String::new, |kept| format!(", epoch {kept} kept"));
            let s = if epochs == 1 { "" } else { "s" };
            format!("{epochs} epoch{s}{kept}, {seconds:.0} s")
        });
        let rows = [
            ("method", Some(method.clone())),
            ("dataset", Some(conditions.data.clone())),
            ("layout", Some(conditions.layout.to_string())),
            ("split", Some(format!("{split}, {} images", evaluation.scores.images))),
            ("images with masks", Some(evaluation.scores.images_with_truth.to_string())),
            ("foreground of the truth", Some(name_of(&conditions.truth_rule))),
            ("threshold", Some(threshold)),
            ("CRF", Some(conditions.crf.map_or("none", Preset::name).to_owned())),
            ("class of class-dependent masks", Some(conditions.mask_class().to_owned())),
            ("Dice of two empty masks", Some(name_of(&protocol.empty))),
            ("intervals", Some(intervals)),
            ("initial weights", inputs.map(initial)),
            ("training images", inputs.map(|inputs| fingerprint(&inputs.images))),
            ("training masks", inputs.and_then(|inputs| inputs.masks.as_ref()).map(fingerprint)),
            ("mask rule", conditions.mask_rule.clone()),
            ("features of decidability", conditions.features.clone()),
            ("score maps", conditions.maps.clone()),
            ("run", conditions.run.clone()),
            ("weights", of_run(conditions.weights.clone())),
            ("backbone", of_run(conditions.backbone.clone())),
            ("semantics", of_run(conditions.semantics.as_ref().map(name_of))),
            ("seed", of_run(conditions.seed.map(|seed| seed.to_string()))),
            ("trained in", conditions.trained_in.clone()),
            ("training", training),
            ("written by", Some(format!("pinpoint {}", self.version))),
        ];
        rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Conditions {
    /// The class whose mask was scored, where masks depend on the class.
    pub(super) fn mask_class(&self) -> &'static str {
        if self.oracle_label { "true class (oracle)" } else { "predicted class" }
    }
}

/// The last part of a path, unless that is no name.
fn last_part(path: &str) -> Option<String> {
    Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The name that a setting is written by.
pub(super) fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;
    use crate::{
        data::mask::Mask,
        metrics::{Evaluator, ImageCase, ImageSummary, PredictedClass, Protocol, ScoreMap},
    };

    /// A report on three images of two classes, one of them without truth.
    pub(in crate::report) fn example() -> Report {
        let classes = ["benign".to_owned(), "<b>&\"'".to_owned()];
        let protocol = Protocol::default();
        let mut evaluator = Evaluator::new(&classes, protocol);
        for (index, scores) in
            [[0.9, 0.2, 0.8], [0.1, 0.7, 0.3], [0.5, 0.5, 0.5]].iter().enumerate()
        {
            let foreground = vec![true, false, index == 0];
            let truth = Mask { width: 3, height: 1, foreground, ignored: None };
            let predicted_class = PredictedClass { class: index % 2, probability: 0.75 };
            let case = ImageCase {
                id: &format!("test/<{index}>.png"),
                label: usize::from(index == 2),
                classifier: Some(predicted_class),
                localizer: Some(predicted_class),
                map: Some(ScoreMap::new(3, 1, scores).unwrap()),
                truth: (index < 2).then_some(&truth),
                boxes: &[],
            };
            evaluator.accumulate(ImageSummary::of(&case, &protocol).unwrap());
        }
        let conditions = Conditions {
            data: "data/<glas>".to_owned(),
            layout: Layout::Folders,
            truth_rule: MaskRule::NonZero,
            mask_rule: Some("every class's map by its probability".to_owned()),
            run: Some("run".to_owned()),
            weights: Some("run/weights/best.safetensors".to_owned()),
            maps: None,
            backbone: Some("resnet18".to_owned()),
            semantics: Some(Semantics::default()),
            seed: Some(7),
            trained_in: None,
            crf: Some(Preset::Glas),
            oracle_label: false,
            features: None,
        };
        let training = Training { epochs: 3, kept_epoch: Some(1), seconds: 12.5 };
        Report {
            format: Report::FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            method: "minmax".to_owned(),
            split: Split::Test,
            conditions,
            training: Some(training),
            settings: None,
            inputs: None,
            evaluation: evaluator.compute(),
        }
    }

    #[test]
    fn a_report_survives_being_saved() {
        let folder = tempfile::tempdir().unwrap();
        let report = example();
        report.write(&folder.path().join("report.json")).unwrap();
        assert_eq!(Report::read(folder.path()).unwrap(), report);
        assert_eq!(Report::read(&folder.path().join("report.json")).unwrap(), report);
    }

    #[test]
    fn a_newer_report_and_a_broken_one_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        let problem = |text: &str| {
            fs::write(&file, text).unwrap();
            Report::read(&file).unwrap_err().to_string()
        };
        assert!(problem("{\"format\": 2, \"version\": \"9.0.0\"}").contains("pinpoint 9.0.0"));
        assert!(problem("{\"format\": 1}").contains("unreadable report"));
    }

    #[test]
    fn titles_name_run_and_dataset() {
        let mut report = example();
        report.conditions.run = Some("runs/birds/".to_owned());
        report.conditions.data = "/data/cub5".to_owned();
        assert_eq!(
            (report.subject(), report.dataset_name()),
            ("birds".to_owned(), "cub5".to_owned())
        );
        report.conditions.run = None;
        report.conditions.data = "..".to_owned();
        assert_eq!(
            (report.subject(), report.dataset_name()),
            ("minmax".to_owned(), "..".to_owned())
        );
    }

    #[test]
    fn reports_of_the_version_before_open() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = serde_json::to_value(example()).unwrap();
        let scores = old["scores"].as_object_mut().unwrap();
        assert!(scores.remove("trivial").is_some() && scores.remove("chance_error").is_some());
        let file = folder.path().join("report.json");
        fs::write(&file, old.to_string()).unwrap();
        let report = Report::read(&file).unwrap();
        assert_eq!(report.evaluation.scores.trivial, None);
        assert_eq!(report.evaluation.scores.mean, example().evaluation.scores.mean);
    }

    #[test]
    fn the_protocol_names_everything_that_decides_a_score() {
        let protocol = example().protocol();
        let value = |condition: &str| {
            protocol.iter().find(|(name, _)| *name == condition).unwrap().1.as_str()
        };
        assert_eq!(value("threshold"), "0.5, fixed");
        assert_eq!(value("split"), "test, 3 images");
        assert_eq!((value("CRF"), value("seed")), ("glas", "7"));
        assert_eq!(value("training"), "3 epochs, epoch 1 kept, 12 s");
    }
}
