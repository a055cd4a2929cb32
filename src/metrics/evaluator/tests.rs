use rayon::prelude::*;

use super::*;
use crate::{
    data::mask::Mask,
    metrics::{EmptyRule, ImageCase, PredictedClass, ScoreMap, ScoreMapError},
    rng::{Purpose, Stream},
};

const SIZE: (usize, usize) = (9, 7);

struct Example {
    id: String,
    label: usize,
    scores: Vec<f32>,
    truth: Mask,
}

impl Example {
    fn draw(index: u64) -> Self {
        let mut stream = Stream::new(5, Purpose::Synthetic, 0, index);
        let pixels = SIZE.0 * SIZE.1;
        let truth = mask((0..pixels).map(|_| stream.chance(0.4)).collect());
        let scores = (0..pixels).map(|_| stream.uniform() as f32).collect();
        Self { id: format!("{index}.png"), label: (index % 2) as usize, scores, truth }
    }

    fn case(&self) -> ImageCase<'_> {
        let predicted_class =
            PredictedClass { class: usize::from(self.id.len() > 5), probability: 0.75 };
        ImageCase {
            id: &self.id,
            label: self.label,
            classifier: Some(predicted_class),
            localizer: Some(PredictedClass { class: 0, ..predicted_class }),
            map: Some(ScoreMap::new(SIZE.0, SIZE.1, &self.scores).unwrap()),
            truth: Some(&self.truth),
            boxes: &[],
        }
    }
}

fn mask(foreground: Vec<bool>) -> Mask {
    Mask { width: SIZE.0 as u32, height: SIZE.1 as u32, foreground, ignored: None }
}

fn classes() -> Vec<String> {
    vec!["benign".to_owned(), "malignant".to_owned()]
}

fn evaluate(cases: &[ImageCase<'_>], protocol: Protocol) -> Evaluation {
    let summaries: Result<Vec<_>, ScoreMapError> =
        cases.par_iter().map(|case| ImageSummary::of(case, &protocol)).collect();
    let mut evaluator = Evaluator::new(&classes(), protocol);
    summaries.unwrap().into_iter().for_each(|summary| evaluator.accumulate(summary));
    evaluator.compute()
}

#[test]
fn chance_is_the_most_frequent_class_and_trivial_masks_are_scored_beside_the_method() {
    let examples: Vec<Example> = (0..3).map(Example::draw).collect();
    let cases: Vec<_> = examples.iter().map(Example::case).collect();
    let scores = evaluate(&cases, Protocol::default()).scores;
    // Labels 0, 1, 0: one of three is wrong.
    assert!((scores.chance_error.unwrap() - 100.0 / 3.0).abs() < 1e-9);
    let dice = |example: &Example| {
        let share = example.truth.foreground.iter().filter(|inside| **inside).count() as f64
            / example.truth.foreground.len() as f64;
        100.0 * 2.0 * share / (1.0 + share)
    };
    let expected = examples.iter().map(dice).sum::<f64>() / 3.0;
    let found = scores.trivial.unwrap().all_ones.f1_foreground.unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    assert_eq!(evaluate(&[], Protocol::default()).scores.chance_error, None);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let examples: Vec<Example> = (0..20).map(Example::draw).collect();
    let cases: Vec<_> = examples.iter().map(Example::case).collect();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| evaluate(&cases, Protocol::default()));
        serde_json::to_string(&found).unwrap()
    };
    assert_eq!(on(1), on(4));
}

#[test]
fn class_rows_and_image_rows_add_up_to_the_headline() {
    let examples: Vec<Example> = (0..21).map(Example::draw).collect();
    let cases: Vec<_> = examples.iter().map(Example::case).collect();
    let Evaluation { scores, classes, images, confusion, .. } =
        evaluate(&cases, Protocol::default());
    assert_eq!((scores.images, scores.images_with_truth), (21, 21));
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let rows: f64 = images.iter().map(|row| row.pixels.f1_foreground.unwrap()).sum();
    close(scores.mean.f1_foreground.unwrap(), rows / 21.0);
    let weighted = |value: fn(&ClassRow) -> Option<f64>| {
        classes.iter().map(|row| value(row).unwrap() * row.images as f64).sum::<f64>() / 21.0
    };
    close(scores.mean.f1_background.unwrap(), weighted(|row| row.f1_background));
    close(scores.classification_error.unwrap(), weighted(|row| row.classification_error));
    assert_eq!(confusion.unwrap().images(), 21);
    for (name, interval) in &scores.intervals {
        assert!(interval.low <= interval.high, "{name}");
    }
    let f1 = scores.intervals["f1_foreground"];
    assert!(f1.low < scores.mean.f1_foreground.unwrap());
    assert!(f1.high > scores.mean.f1_foreground.unwrap());
}

#[test]
fn inverted_maps_and_areas_are_told_by_class() {
    // Two pixels of foreground, two of background; one class ranks them wrongly.
    let truth =
        Mask { width: 4, height: 1, foreground: vec![true, true, false, false], ignored: None };
    let maps = [[0.9, 0.8, 0.1, 0.2], [0.1, 0.6, 0.7, 0.8], [0.3, 0.9, 0.3, 0.8]];
    let cases: Vec<_> = maps
        .iter()
        .zip([0, 1, 1])
        .map(|(map, label)| ImageCase {
            id: "a.png",
            label,
            classifier: None,
            localizer: None,
            map: Some(ScoreMap::new(4, 1, map).unwrap()),
            truth: Some(&truth),
            boxes: &[],
        })
        .collect();
    let found = evaluate(&cases, Protocol::default());
    // Of four pairs, the second image has none right, the third 0.5 + 0 + 1 + 1.
    let areas: Vec<_> = found.images.iter().map(|row| row.roc_auc.unwrap()).collect();
    assert_eq!(areas, [100.0, 0.0, 62.5]);
    let [benign, malignant] = &found.classes[..] else { panic!("two classes") };
    assert_eq!((benign.roc_auc, benign.inverted), (Some(100.0), Some(0.0)));
    assert_eq!((malignant.roc_auc, malignant.inverted), (Some(31.25), Some(50.0)));
    assert!((found.scores.inverted.unwrap() - 100.0 / 3.0).abs() < 1e-9);
    // Marked at one half: 2, 3 and 2 of 4 pixels.
    assert_eq!((benign.covered_area, malignant.covered_area), (Some(50.0), Some(62.5)));
    assert!((found.scores.covered_area.unwrap() - 175.0 / 3.0).abs() < 1e-9);
    assert_eq!((found.scores.true_area, malignant.true_area), (Some(50.0), Some(50.0)));
    assert!(found.scores.intervals.contains_key("inverted"));
}

#[test]
fn a_constant_map_is_not_inverted_and_one_side_alone_has_no_rank() {
    let example = Example::draw(0);
    let pixels = SIZE.0 * SIZE.1;
    let (flat, full) = (vec![0.5; pixels], mask(vec![true; pixels]));
    let map = Some(ScoreMap::new(SIZE.0, SIZE.1, &flat).unwrap());
    let constant = ImageCase { map, ..example.case() };
    assert_eq!(evaluate(&[constant], Protocol::default()).scores.inverted, Some(0.0));
    let one_side = ImageCase { truth: Some(&full), ..example.case() };
    let scores = evaluate(&[one_side], Protocol::default()).scores;
    assert_eq!((scores.inverted, scores.true_area), (None, Some(100.0)));
}

#[test]
fn marking_everything_scores_as_in_the_paper_and_has_no_class() {
    let examples: Vec<Example> = (0..4).map(Example::draw).collect();
    let ones = vec![1.0; SIZE.0 * SIZE.1];
    let cases: Vec<_> = examples
        .iter()
        .map(|example| ImageCase {
            classifier: None,
            localizer: None,
            map: Some(ScoreMap::new(SIZE.0, SIZE.1, &ones).unwrap()),
            ..example.case()
        })
        .collect();
    let scores = evaluate(&cases, Protocol::default()).scores;
    let expected: f64 = examples
        .iter()
        .map(|example| {
            let foreground = example.truth.foreground.iter().filter(|&&f| f).count();
            let p = foreground as f64 / ones.len() as f64;
            100.0 * 2.0 * p / (1.0 + p) / 4.0
        })
        .sum();
    assert!((scores.mean.f1_foreground.unwrap() - expected).abs() < 1e-9);
    assert_eq!(scores.mean.f1_background, Some(0.0));
    let json = serde_json::to_value(&scores).unwrap();
    assert!(json["classification_error"].is_null() && json["top1_localization"].is_null());
    assert_eq!(json["f1_background"], 0.0);
    assert_eq!(json["protocol"]["threshold"]["rule"], "0.5");
    assert_eq!(serde_json::from_value::<Scores>(json).unwrap(), scores);
}

#[test]
fn missing_truth_leaves_the_class_and_nothing_else() {
    let example = Example::draw(0);
    let blind = ImageCase { truth: None, ..example.case() };
    let found = evaluate(&[blind], Protocol::default());
    assert_eq!(found.scores.classification_error, Some(0.0));
    assert_eq!(found.scores.images_with_truth, 0);
    assert_eq!(found.scores.mean, PixelScores::default());
    assert_eq!(found.scores.pooled, PixelScores::default());
    assert_eq!((found.scores.pxap, found.scores.max_box_acc), (None, None));
    assert_eq!(found.sweep.best(), None);

    let mut ignored = Example::draw(0);
    ignored.truth.ignored = Some(vec![true; SIZE.0 * SIZE.1]);
    assert_eq!(evaluate(&[ignored.case()], Protocol::default()).scores.images_with_truth, 0);
}

#[test]
fn empty_and_full_truth_have_defined_scores_and_are_counted() {
    let pixels = SIZE.0 * SIZE.1;
    let (nothing, everything) = (vec![0.0; pixels], vec![1.0; pixels]);
    let (empty, full) = (mask(vec![false; pixels]), mask(vec![true; pixels]));
    let example = Example::draw(0);
    let case = |scores, truth| ImageCase {
        map: Some(ScoreMap::new(SIZE.0, SIZE.1, scores).unwrap()),
        truth: Some(truth),
        ..example.case()
    };
    let cases = [case(&nothing, &empty), case(&everything, &full), case(&nothing, &full)];
    let scores = evaluate(&cases, Protocol::default()).scores;
    assert_eq!((scores.images_without_foreground, scores.images_without_background), (1, 1));
    assert_eq!(scores.mean.f1_foreground, Some(200.0 / 3.0));
    assert_eq!(scores.mean.f1_background, Some(200.0 / 3.0));
    let published = Protocol { empty: EmptyRule::Nan, ..Protocol::default() };
    assert_eq!(evaluate(&cases, published).scores.mean.f1_foreground, None);
}

#[test]
fn a_truth_of_another_size_is_the_users_to_fix() {
    let example = Example::draw(0);
    let small = Mask { width: 1, height: 1, foreground: vec![true], ignored: None };
    let case = ImageCase { truth: Some(&small), ..example.case() };
    let problem = ImageSummary::of(&case, &Protocol::default()).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "score map is 9×7 pixels but the truth is 1×1\n\
         hint: save score maps at the size of their image"
    );
}

#[test]
fn a_right_box_counts_for_top_1_only_with_the_right_class() {
    let truth = mask((0..SIZE.0 * SIZE.1).map(|at| at % 9 < 3).collect());
    let scores: Vec<f32> =
        truth.foreground.iter().map(|&inside| if inside { 0.9 } else { 0.1 }).collect();
    let example = Example { id: "a".to_owned(), label: 0, scores, truth };
    let wrong = Some(PredictedClass { class: 1, probability: 0.6 });
    let cases = [example.case(), ImageCase { classifier: wrong, ..example.case() }];
    let scores = evaluate(&cases, Protocol::default()).scores;
    assert_eq!(scores.gt_known_localization, Some(100.0));
    assert_eq!(scores.top1_localization, Some(50.0));
    assert_eq!((scores.max_box_acc, scores.max_box_acc_v2), (Some(100.0), Some(100.0)));
}
