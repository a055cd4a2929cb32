//! What an evaluation says about why masks are as they are, with masks and without.

use std::{fs, path::Path};

use crate::{
    evaluate::{document, evaluate},
    train::{Workshop, failure},
};

#[test]
fn inverted_maps_and_areas_are_in_every_form_of_the_report() {
    let workshop = Workshop::new();
    let more = ["--method", "centre-gaussian", "--report", "report", "--json"];
    let found = document(&evaluate(&workshop, &more));
    let of = |key: &str| found[key].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&of("inverted")));
    // An ellipse of half the sides.
    assert!((of("covered_area") - 100.0 * std::f64::consts::PI / 16.0).abs() < 1.5, "{found}");
    assert!(of("true_area") > 1.0 && of("true_area") < 60.0, "{found}");
    assert!(found["decidability"].is_null());

    let read = |name: &str| fs::read_to_string(workshop.folder.path().join(name)).unwrap();
    let header = |name: &str| read(name).lines().next().unwrap().to_owned();
    assert!(header("report/metrics.csv").contains("roc_auc,covered_area,true_area,box_iou"));
    assert!(header("report/classes.csv").ends_with("roc_auc,inverted,covered_area,true_area"));
    for (page, name) in
        [("report/report.md", "| Inverted ↓ |"), ("report/report.html", ">Inverted ↓<")]
    {
        assert!(read(page).contains("Inverted maps") && read(page).contains(name), "{page}");
    }
}

/// A dataset as before, but nobody has drawn masks.
fn without_masks() -> Workshop {
    let workshop = Workshop::new();
    fs::remove_dir_all(workshop.folder.path().join("data/masks")).unwrap();
    workshop
}

#[test]
fn maps_are_scored_without_masks() {
    let workshop = without_masks();
    let trained = workshop.train("run", &["--method", "cam-avg"]);
    assert!(trained.status.success(), "{trained:?}");
    let score = |threads: &str| {
        let output =
            evaluate(&workshop, &["run", "--decidability", "--json", "--threads", threads]);
        (document(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (found, said) = score("1");
    assert!(said.contains("masks get no score"), "{said}");
    assert!(found["f1_foreground"].is_null() && found["inverted"].is_null(), "{found}");
    assert!(found["classification_error"].is_number(), "{found}");
    let told = &found["decidability"];
    assert_eq!((told["images"].as_u64(), told["classes"].as_u64()), (Some(4), Some(2)));
    let loss = |side: &str| told[side]["log_loss"].as_f64().unwrap();
    let difference = loss("background") - loss("foreground");
    assert!((told["difference"].as_f64().unwrap() - difference).abs() < 1e-12, "{told}");
    let features = found["conditions"]["features"].as_str().unwrap();
    assert!(features.starts_with("stage 3 of tiny"), "{features}");
    assert_eq!(score("3").0["decidability"], *told, "whatever the number of threads");

    let page = fs::read_to_string(workshop.run_dir("run/report/report.html")).unwrap();
    assert!(page.contains("Decidability") && page.contains("features of decidability"));
    // What another network sees in the maps of a method that needs none.
    let best = Path::new("run/weights/best.safetensors").to_str().unwrap();
    let more = ["--method", "all-ones", "--decidability", "--weights", best, "--json"];
    let told = document(&evaluate(&workshop, &more))["decidability"].clone();
    // Nothing is beside such a map, so all that is known there is which class has more images:
    // with two of each, and one held out, the other one.
    assert_eq!(told["background"]["error"], 100.0, "{told}");
}

#[test]
fn features_must_come_from_somewhere() {
    let workshop = Workshop::new();
    let all_ones = ["--method", "all-ones", "--decidability"];
    let message = failure(&evaluate(&workshop, &all_ones));
    assert!(message.contains("--weights") && message.contains("hint"), "{message}");
    let gone = [&all_ones[..], &["--weights", "gone.pth"]].concat();
    assert!(failure(&evaluate(&workshop, &gone)).contains("gone.pth"));
}
