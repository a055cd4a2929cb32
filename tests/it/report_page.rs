//! The page of a report in a real browser: it draws, obeys its controls, and asks for nothing.

use std::{fs, process::Command};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::data::synthetic::{self, SyntheticSpec};
use serde_json::{Value, json};

use crate::{browser::Person, evaluate::evaluate, train::Workshop};

/// Uses the page as a person would, once it is drawn, and gives what there was to see.
const USE: &str = r#"
const [give] = arguments;
(async () => {
  const find = (id) => document.getElementById(id);
  const pause = () => new Promise((done) => setTimeout(done, 60));
  const seen = {};
  try {
    const cards = () => [...document.querySelectorAll("article.card")];
    const visible = () => cards().filter((card) => card.getClientRects().length > 0).length;
    // Masks are coloured over grey: pixels whose channels differ are coloured.
    const coloured = () => [...document.querySelectorAll("canvas[aria-label^=Mask]")].map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += data[i] !== data[i + 1] || data[i] !== data[i + 2];
      return count;
    });
    const orange = () => [...document.querySelectorAll("canvas[aria-label^=Mask]")].map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += data[i] > data[i + 2] + 60;
      return count;
    });
    const set = async (id, value, event) => {
      find(id).value = value;
      find(id).dispatchEvent(new Event(event, { bubbles: true }));
      await pause();
    };
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    seen.cards = cards().length;
    seen.recorded = sum(coloured());
    await set("threshold", "0", "input");
    seen.alarms_at_zero = sum(orange());
    seen.text_at_zero = find("at-threshold").textContent;
    await set("threshold", "1", "input");
    seen.alarms_at_one = sum(orange());
    find("reset").click();
    await pause();
    seen.reset = sum(coloured());
    seen.all = visible();
    seen.options = [...find("class").options].map((option) => option.textContent);
    await set("class", "0", "change");
    seen.one_class = visible();
    await set("class", "", "change");
    await set("outcome", "wrong", "change");
    seen.wrong = visible();
    await set("outcome", "correct", "change");
    seen.correct = visible();
    await set("outcome", "", "change");
    const ids = () => cards().map((card) => card.querySelector("h3").textContent);
    seen.worst_first = ids();
    await set("order", "best", "change");
    seen.best_first = ids();
    seen.requests = performance.getEntriesByType("resource")
      .map((entry) => entry.name).filter((name) => !name.startsWith("data:"));
    seen.injected = typeof window.injected;
    seen.images = [...document.images].every((image) => image.naturalWidth > 0 && image.alt !== "");
  } catch (error) {
    seen.error = String(error.stack);
  }
  give(seen);
})();
"#;

/// A dataset whose names try to become markup.
fn rename_a_class(workshop: &Workshop) {
    let data = workshop.folder.path().join("data");
    for root in [data.clone(), data.join("masks")] {
        for split in ["train", "valid", "test"] {
            let folder = root.join(split);
            let mut classes: Vec<_> =
                fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            classes.sort();
            fs::rename(&classes[0], folder.join("<img src=x onerror=injected=1>&\"'")).unwrap();
        }
    }
}

#[test]
fn the_page_draws_its_gallery_and_obeys_its_controls_without_a_network() {
    let profile = tempfile::tempdir().unwrap();
    let Some(person) = Person::new(profile.path(), "1280,2000") else { return };
    let workshop = Workshop::new();
    rename_a_class(&workshop);
    assert!(workshop.train("run", &[]).status.success());
    let output = evaluate(&workshop, &["run", "--report", "out"]);
    assert!(output.status.success(), "{output:?}");

    let page = format!("file://{}", workshop.run_dir("out/report.html").display());
    person.does("url", &json!({ "url": page }));
    // Pictures are decoded in the browser's own time.
    person.waits_until("return document.getElementById('gallery').dataset.state === 'drawn'");
    person.waits_until("return [...document.images].every((image) => image.complete)");
    let seen = person.learns(USE);

    assert!(seen["error"].is_null(), "{seen:#}");
    let count = |name: &str| seen[name].as_u64().unwrap_or_else(|| panic!("{name}: {seen:#}"));
    assert_eq!(count("cards"), 4, "{seen:#}");
    assert!(count("alarms_at_zero") > count("alarms_at_one"), "the slider recolours: {seen:#}");
    assert_eq!(count("recorded"), count("reset"), "{seen:#}");
    assert!(seen["text_at_zero"].as_str().unwrap().contains("F1⁻\u{a0}0.00"), "{seen:#}");
    assert_eq!((count("all"), count("one_class")), (4, 2), "{seen:#}");
    assert_eq!(count("wrong") + count("correct"), 4, "{seen:#}");
    assert_eq!(seen["options"][1], "<img src=x onerror=injected=1>&\"' (2)", "{seen:#}");
    assert_eq!(seen["injected"], "undefined", "names are text: {seen:#}");
    let reversed =
        |list: &Value| list.as_array().unwrap().iter().rev().cloned().collect::<Vec<_>>();
    assert_eq!(reversed(&seen["worst_first"]), *seen["best_first"].as_array().unwrap());
    assert_eq!(seen["requests"], json!([]), "{seen:#}");
    assert_eq!(seen["images"], true, "{seen:#}");
}

#[test]
fn a_page_of_180_images_is_smaller_than_three_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let spec = SyntheticSpec { classes: 3, train: 3, valid: 0, test: 180, side: 256, seed: 4 };
    synthetic::write(&data, &spec, || {}).unwrap();
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.args(["evaluate", "--method", "centre-gaussian", "--report", "out", "--data", "data"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("120 of 180 images"), "images are on the page");
    assert!(page.matches("data:image/jpeg").count() >= 2 * 120, "with their maps");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}
