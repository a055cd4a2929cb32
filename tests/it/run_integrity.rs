//! Runs that were damaged, edited or moved onto other data since they were written.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::run::RunDir;
use safetensors::SafeTensors;

use crate::train::{Workshop, failure, weights};

const CHECKPOINT: &str = "state/checkpoint.safetensors";
const BEST: &str = "weights/best.safetensors";

fn trained() -> Workshop {
    let workshop = Workshop::new();
    let output = workshop.train("run", &[]);
    assert!(output.status.success(), "{output:?}");
    workshop
}

/// An unfinished run: two of three epochs are done.
fn unfinished() -> Workshop {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &["--epochs", "2"]).status.success());
    edit(&workshop.run_dir("run/config.toml"), "epochs = 2", "epochs = 3");
    workshop
}

fn edit(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(old), "{text}");
    fs::write(path, text.replace(old, new)).unwrap();
}

fn predict(workshop: &Workshop) -> Output {
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.arg("predict").arg(workshop.run_dir("run")).arg(workshop.run_dir("data/test"));
    command.output().unwrap()
}

fn evaluate(workshop: &Workshop) -> Output {
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.arg("evaluate").arg(workshop.run_dir("run")).arg("--data");
    command.arg(workshop.run_dir("data")).output().unwrap()
}

#[test]
fn any_flipped_bit_of_a_checkpoint_is_noticed() {
    let workshop = trained();
    let run = RunDir::open(&workshop.run_dir("run")).unwrap();
    let path = workshop.run_dir("run").join(CHECKPOINT);
    assert!(run.restore().unwrap().unwrap().verified);
    let whole = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    // A stride that meets every bit of a byte in turn, in the header and in the tensors.
    let places =
        (0..header).step_by(header / 150).chain((header..whole.len()).step_by(whole.len() / 60));
    let mut trials = 0;
    for place in places {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (trials % 8);
        trials += 1;
        fs::write(&path, bytes).unwrap();
        let outcome = run.restore();
        // Padding of the header is the only thing that means nothing.
        let harmless = whole[place] == b' ' && outcome.is_ok();
        assert!(outcome.is_err() || harmless, "bit {place}:{} of {header}", trials - 1);
    }
    assert!(trials > 200, "{trials}");
}

#[test]
fn a_damaged_checkpoint_or_weight_file_ends_the_command_with_its_name() {
    let workshop = trained();
    for (file, tried) in [(CHECKPOINT, "resume"), (BEST, "predict")] {
        let path = workshop.run_dir("run").join(file);
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        let place = bytes.len() - 1000;
        bytes[place] ^= 4;
        fs::write(&path, bytes).unwrap();
        let output = match tried {
            "resume" => workshop.train("run", &["--resume"]),
            _ => predict(&workshop),
        };
        let message = failure(&output);
        assert!(message.contains("is not what was written") && message.contains(file), "{message}");
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn tensors_that_are_missing_and_positions_that_cannot_be_are_refused() {
    let workshop = trained();
    let path = workshop.run_dir("run").join(CHECKPOINT);
    let whole = fs::read(&path).unwrap();
    rewrite(&path, &whole, |note| note, |name| !name.starts_with("optimizer."));
    let message = failure(&workshop.train("run", &["--resume"]));
    assert!(message.contains("its header is not what was written"), "{message}");

    // The same in a file of the version before, which has no checksums.
    let plain = |note: String| {
        let note: serde_json::Value = serde_json::from_str(&note).unwrap();
        note["note"].to_string()
    };
    rewrite(
        &path,
        &whole,
        |note| plain(note).replace("\"epoch\":3", "\"epoch\":18446744073709551615"),
        |_| true,
    );
    let message = failure(&workshop.train("run", &["--resume"]));
    assert!(message.contains("checkpoint is damaged"), "{message}");
    rewrite(&path, &whole, plain, |name| !name.starts_with("optimizer."));
    let message = failure(&workshop.train("run", &["--resume"]));
    assert!(message.contains("optimizer"), "{message}");
    // Of one weight only.
    let removed = "layer3.0.conv1.weight";
    rewrite(&path, &whole, plain, |name| name != format!("optimizer.first.{removed}"));
    let message = failure(&workshop.train("run", &["--resume"]));
    let told = format!("it lacks the optimizer's memory of `{removed}`");
    assert!(message.contains(&told) && message.contains(CHECKPOINT), "{message}");
}

#[test]
fn a_frozen_backbone_needs_no_memory_until_it_learns() {
    let frozen = ["--set", "optimizer.frozen_epochs=1"];
    let workshop = Workshop::new();
    for rule in ["sgd", "adam"] {
        let rule_of = format!("optimizer.rule={rule}");
        let more = [&frozen[..], &["--set", &rule_of, "--set", "optimizer.nesterov=false"]];
        let more = more.concat();
        let train = |run: &str, last: &[&str]| {
            let output = workshop.train(run, &[&more[..], last].concat());
            assert!(output.status.success(), "{output:?}");
        };
        let (whole, cut) = (format!("whole-{rule}"), format!("cut-{rule}"));
        train(&whole, &[]);
        train(&cut, &["--epochs", "1"]);
        edit(&workshop.run_dir(&cut).join("config.toml"), "\nepochs = 1\n", "\nepochs = 3\n");
        train(&cut, &["--resume"]);
        assert!(weights(&workshop.run_dir(&whole))[1] == weights(&workshop.run_dir(&cut))[1]);
    }
}

/// Writes a safetensors file anew, with another note and some of its tensors.
fn rewrite(
    path: &Path,
    whole: &[u8],
    note: impl Fn(String) -> String,
    keep: impl Fn(&str) -> bool,
) {
    let (_, header) = SafeTensors::read_metadata(whole).unwrap();
    let text = header.metadata().as_ref().unwrap()["pinpoint"].clone();
    let metadata = HashMap::from([("pinpoint".to_owned(), note(text))]);
    let file = SafeTensors::deserialize(whole).unwrap();
    let tensors = file.tensors().into_iter().filter(|(name, _)| keep(name));
    fs::write(path, safetensors::serialize(tensors, Some(metadata)).unwrap()).unwrap();
}

#[test]
fn runs_of_the_version_before_still_open_with_a_note() {
    let workshop = unfinished();
    let run = workshop.run_dir("run");
    let plain = |note: String| {
        let note: serde_json::Value = serde_json::from_str(&note).unwrap();
        let mut note = note["note"].clone();
        let entries = note.as_object_mut().unwrap();
        entries.remove("settings");
        if entries.remove("samples").is_some() {
            entries.insert("dataset".to_owned(), 12_345_678_901_234_567_890_u64.into());
        }
        note.to_string()
    };
    for file in [CHECKPOINT, BEST, "weights/last.safetensors"] {
        let whole = fs::read(run.join(file)).unwrap();
        rewrite(&run.join(file), &whole, plain, |_| true);
    }
    fs::remove_file(run.join("inputs.json")).unwrap();
    fs::remove_file(run.join("state/lock")).unwrap();
    fs::remove_file(run.join("state/holder.json")).unwrap();
    let resumed = workshop.train("run", &["--resume"]);
    let told = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(told.contains("names, classes and splits of its samples"), "{told}");
    for output in [predict(&workshop), evaluate(&workshop), resumed] {
        assert!(output.status.success(), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("of an older version, without checksums"), "{told}");
    }
    let resumed = RunDir::open(&run).unwrap().restore().unwrap().unwrap().position;
    assert_eq!(resumed.samples.map(|digest| digest.len()), Some(64), "it is known from now on");
    assert!(workshop.train("whole", &[]).status.success());
    // The best weights may be of an epoch that the version before has written.
    let ([_, resumed], [_, whole]) = (weights(&run), weights(&workshop.run_dir("whole")));
    assert!(resumed == whole, "it ends as if uninterrupted");
}

#[test]
fn edited_settings_are_checked_whenever_a_run_is_opened() {
    let workshop = trained();
    let config = workshop.run_dir("run/config.toml");
    let whole = fs::read_to_string(&config).unwrap();
    for (old, new, told) in [
        ("eval_multiple = 8", "eval_multiple = 0", "preprocess.eval_multiple"),
        ("eval_multiple = 8", "eval_multiple = 1000000000", "preprocess.eval_multiple"),
        ("eval_multiple = 8", "eval_multiple = 16", "`preprocess.eval_multiple` was 8, is 16"),
        ("output_stride = 8", "output_stride = 16", "`model.output_stride` was 8, is 16"),
        ("normalization = \"half\"", "normalization = \"imagenet\"", "preprocess.normalization"),
    ] {
        edit(&config, old, new);
        for output in [predict(&workshop), evaluate(&workshop)] {
            let message = failure(&output);
            assert!(message.contains(told) && message.contains("config.toml"), "{message}");
        }
        fs::write(&config, &whole).unwrap();
    }
    // What only says how data is read is the user's to change.
    edit(&config, "max_megapixels = 200", "max_megapixels = 300");
    let output = predict(&workshop);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn images_that_were_replaced_are_noticed_when_a_run_is_resumed() {
    let workshop = unfinished();
    let images = images_of(&workshop.run_dir("data/train"));
    let (one, other) = (fs::read(&images[0]).unwrap(), fs::read(&images[1]).unwrap());
    fs::write(&images[0], other).unwrap();
    let message = failure(&workshop.train("run", &["--resume"]));
    assert!(message.contains("images have changed"), "{message}");
    fs::write(&images[0], one).unwrap();
    let output = workshop.train("run", &["--resume"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_probe_that_failed_on_an_image_goes_on_once_it_is_mended() {
    let workshop = Workshop::new();
    let image = images_of(&workshop.run_dir("data/train")).pop().unwrap();
    let whole = fs::read(&image).unwrap();
    fs::write(&image, &whole[..whole.len() / 2]).unwrap();
    let message = failure(&workshop.train("run", &["--method", "probe"]));
    assert!(message.contains(image.file_name().unwrap().to_str().unwrap()), "{message}");
    fs::write(&image, &whole).unwrap();
    for (run, more) in
        [("run", &["--method", "probe", "--resume"][..]), ("other", &["--method", "probe"])]
    {
        let output = workshop.train(run, more);
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(weights(&workshop.run_dir("run")), weights(&workshop.run_dir("other")));
    let inputs = |run: &str| fs::read(workshop.run_dir(run).join("inputs.json")).unwrap();
    assert_eq!(inputs("run"), inputs("other"));
}

#[test]
fn masks_are_inputs_of_who_learns_from_them_and_of_nobody_else() {
    for (method, learns_from_masks) in [("unet", true), ("cam-avg", false)] {
        let workshop = Workshop::new();
        let method = ["--method", method, "--set", "preprocess.eval_multiple=32"];
        assert!(
            workshop.train("run", &[&method[..], &["--epochs", "2"]].concat()).status.success()
        );
        edit(&workshop.run_dir("run/config.toml"), "epochs = 2", "epochs = 3");
        let masks = images_of(&workshop.run_dir("data/masks/train"));
        let (one, other) = (fs::read(&masks[0]).unwrap(), fs::read(&masks[1]).unwrap());
        assert_ne!(one, other);
        fs::write(&masks[0], other).unwrap();
        let resumed = workshop.train("run", &[&method[..], &["--resume"]].concat());
        if learns_from_masks {
            let message = failure(&resumed);
            assert!(message.contains("masks that it learns from have changed"), "{message}");
            fs::write(&masks[0], one).unwrap();
            let resumed = workshop.train("run", &[&method[..], &["--resume"]].concat());
            assert!(resumed.status.success(), "{resumed:?}");
        } else {
            assert!(resumed.status.success(), "{resumed:?}");
        }
        let inputs = fs::read_to_string(workshop.run_dir("run/inputs.json")).unwrap();
        assert_eq!(inputs.contains("\"masks\""), learns_from_masks, "{inputs}");
    }
}

fn images_of(folder: &Path) -> Vec<PathBuf> {
    let mut images = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => images.extend(images_of(&path)),
            false => images.push(path),
        }
    }
    images.sort();
    images
}

#[test]
fn a_run_is_bound_to_the_weights_it_started_from() {
    let workshop = trained();
    let tiny = workshop.run_dir("run").join(BEST);
    let tiny = tiny.to_str().unwrap();
    let wrong = workshop.run_dir("wrong.safetensors");
    fs::write(&wrong, "no weights").unwrap();
    failure(&workshop.train("new", &["--weights", wrong.to_str().unwrap()]));
    assert!(!workshop.run_dir("new").exists(), "weights that fail leave no run");

    assert!(workshop.train("new", &["--weights", tiny, "--epochs", "1"]).status.success());
    let new = workshop.run_dir("new");
    let inputs = fs::read_to_string(new.join("inputs.json")).unwrap();
    assert!(inputs.contains("best.safetensors") && inputs.contains("sha256"), "{inputs}");
    let last = workshop.run_dir("run").join("weights/last.safetensors");
    let more = ["--resume", "--epochs", "1", "--weights", last.to_str().unwrap()];
    let other = fs::read(&last).unwrap() != fs::read(tiny).unwrap();
    if other {
        let message = failure(&workshop.train("new", &more));
        assert!(message.contains("started from other weights"), "{message}");
    }
    // Killed before the first checkpoint, it must not go on from drawn weights.
    fs::remove_file(new.join(CHECKPOINT)).unwrap();
    let moved = workshop.run_dir("moved.safetensors");
    fs::rename(tiny, &moved).unwrap();
    let message = failure(&workshop.train("new", &["--resume", "--epochs", "1"]));
    assert!(message.contains("before it had loaded its weights"), "{message}");
    let given = ["--resume", "--epochs", "1", "--weights", moved.to_str().unwrap()];
    let output = workshop.train("new", &given);
    assert!(output.status.success(), "{output:?}");
    // Where the weights are still in their place, the run finds them itself.
    fs::remove_file(new.join(CHECKPOINT)).unwrap();
    fs::rename(&moved, tiny).unwrap();
    let output = workshop.train("new", &["--resume", "--epochs", "1"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_checkpoint_without_settings_is_nothing_to_start_from() {
    let workshop = trained();
    fs::remove_file(workshop.run_dir("run/config.toml")).unwrap();
    let message = failure(&workshop.train("run", &[]));
    assert!(message.contains("a checkpoint here of a run without settings"), "{message}");
}

#[test]
fn a_report_says_what_the_run_was_started_from() {
    let workshop = trained();
    assert!(evaluate(&workshop).status.success());
    let report = workshop.run_dir("run/report/report.json");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["inputs"]["images"]["files"], 16);
    assert!(report["inputs"]["weights"].is_null());
    let page = fs::read_to_string(workshop.run_dir("run/report/report.md")).unwrap();
    assert!(page.contains("initial weights | drawn"), "{page}");
}
