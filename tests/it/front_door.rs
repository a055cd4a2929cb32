//! The library's front door and the command: the same bytes; and runs that know their own data.

use std::{fs, path::Path, process::Command};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::{
    EvaluateRequest, PredictOptions, Predictor, TrainRequest,
    data::{image::read_rgb, npy},
    evaluate,
    run::RunDir,
    train,
    train::Ending,
};

use crate::train::{Workshop, failure, weights};

fn pinpoint(arguments: &[&str], at: &Path) -> std::process::Output {
    Command::cargo_bin("pinpoint").unwrap().args(arguments).current_dir(at).output().unwrap()
}

#[test]
fn training_and_prediction_by_the_library_give_the_bytes_of_the_command() {
    let workshop = Workshop::new();
    assert!(workshop.train("command", &["--epochs", "1"]).status.success());
    let [command, library] = ["command", "library"].map(|run| workshop.run_dir(run));
    let config = RunDir::open(&command).unwrap().config().unwrap();
    let request = TrainRequest::new(workshop.run_dir("data"), &library, config);
    let trained = train(&request, &mut ()).unwrap();
    assert!(matches!(trained.ending, Ending::Finished(_)), "{trained:?}");
    assert!(weights(&command) == weights(&library));

    let image = fs::read_dir(workshop.run_dir("data/test")).unwrap().next().unwrap().unwrap();
    let image = fs::read_dir(image.path()).unwrap().next().unwrap().unwrap().path();
    let arguments = ["predict", "command", image.to_str().unwrap(), "--npy", "--out", "out"];
    let output = pinpoint(&arguments, workshop.folder.path());
    assert!(output.status.success(), "{output:?}");
    let saved = workshop.run_dir("out").join(image.file_stem().unwrap()).with_extension("npy");
    let predictor = Predictor::open(&library, "cpu").unwrap();
    let rgb = read_rgb(&image, 100).unwrap();
    let predict = || predictor.predict(&rgb, &PredictOptions::default()).unwrap();
    let found = predict();
    assert_eq!(npy::read(&saved, 100).unwrap().values, found.scores);
    assert_eq!(found.class_name.as_deref(), found.class.map(|at| &*predictor.classes()[at]));
    // Shared by threads, it says the same.
    let others = std::thread::scope(|scope| {
        [(); 3].map(|()| scope.spawn(predict)).map(|thread| thread.join().unwrap())
    });
    assert!(others.iter().all(|other| *other == found));
}

#[test]
fn a_run_knows_its_data_so_that_scoring_and_resuming_need_no_more_than_the_run() {
    let workshop = Workshop::new();
    let at = workshop.folder.path();
    assert!(workshop.train("whole", &["--epochs", "3"]).status.success());
    assert!(workshop.train("run", &["--epochs", "2"]).status.success());
    // Raised, and from another directory than the run was started in.
    let elsewhere = tempfile::tempdir().unwrap();
    let run = workshop.run_dir("run");
    let more = ["train", "--out", run.to_str().unwrap(), "--resume", "--epochs", "3"];
    let output = pinpoint(&more, elsewhere.path());
    assert!(output.status.success(), "{output:?}");
    let last = |run: &str| fs::read(at.join(run).join("weights/last.safetensors")).unwrap();
    assert!(last("run") == last("whole"), "as if three epochs had been asked for at once");
    assert!(fs::read_to_string(run.join("config.toml")).unwrap().contains("epochs = 3"));

    let fewer = ["train", "--out", "run", "--resume", "--epochs", "1"];
    assert!(failure(&pinpoint(&fewer, at)).contains("train.epochs"));

    let report = |arguments: &[&str]| {
        let output = pinpoint(arguments, at);
        assert!(output.status.success(), "{output:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["f1_foreground"].clone()
    };
    let known = report(&["evaluate", "run", "--no-report", "--json"]);
    assert_eq!(known, report(&["evaluate", "run", "--no-report", "--json", "--data", "data"]));

    // Its own test images are predicted if no others are named, under their own names.
    let output = pinpoint(&["predict", "run", "--out", "masks"], at);
    assert!(output.status.success(), "{output:?}");
    let named = pinpoint(&["predict", "run", "data/test", "--out", "named"], at);
    assert!(named.status.success(), "{named:?}");
    for class in crate::masks::sorted(&at.join("data/test")) {
        let class = class.file_name().unwrap().to_owned();
        let known = crate::masks::sorted(&at.join("masks/test").join(&class));
        let named = crate::masks::sorted(&at.join("named").join(&class));
        assert_eq!((known.len(), named.len()), (2, 2));
        for (known, named) in known.iter().zip(&named) {
            assert_eq!(known.file_name(), named.file_name());
            assert!(fs::read(known).unwrap() == fs::read(named).unwrap());
        }
    }

    let scores = evaluate(&EvaluateRequest::run(&run), |_| std::ops::ControlFlow::Continue(()));
    assert_eq!(scores.unwrap().evaluation.scores.images, 4);
    let stopped = evaluate(&EvaluateRequest::run(&run), |_| std::ops::ControlFlow::Break(()));
    assert!(matches!(stopped, Err(pinpoint::Error::Interrupted)));
}

#[test]
fn a_run_of_an_older_version_opens_and_asks_for_its_data() {
    let workshop = Workshop::new();
    let at = workshop.folder.path();
    assert!(workshop.train("run", &["--epochs", "1"]).status.success());
    let path = workshop.run_dir("run/inputs.json");
    let mut inputs: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(inputs.as_object_mut().unwrap().remove("data").is_some());
    fs::write(&path, inputs.to_string()).unwrap();
    for verb in [&["evaluate", "run"][..], &["train", "--out", "run", "--resume"]] {
        let message = failure(&pinpoint(verb, at));
        assert!(message.contains("does not say which dataset"), "{message}");
        assert!(message.contains("--data"), "{message}");
    }
    let output = pinpoint(&["evaluate", "run", "--data", "data"], at);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_run_without_a_name_is_named_after_its_data_and_numbered() {
    let workshop = Workshop::new();
    let at = workshop.folder.path();
    let arguments = ["train", "--data", "data", "--epochs", "1", "--method", "cam-avg"];
    let small = ["--set", "model.backbone=tiny", "--set", "model.output_stride=8"];
    let images = ["--set", "preprocess.crop=32", "--set", "preprocess.upscale_short_side=0"];
    let small = [&arguments[..], &small, &images].concat();
    for run in ["runs/data", "runs/data-2"] {
        let output = pinpoint(&small, at);
        assert!(output.status.success(), "{output:?}");
        assert!(at.join(run).join("weights/best.safetensors").is_file(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("the run is `{run}`")), "{said}");
    }
    let message = failure(&pinpoint(&["train", "--data", "nowhere"], at));
    assert!(!message.contains("runs"), "nothing is promised that never comes: {message}");
}

#[test]
fn without_a_method_a_probe_is_trained_and_said_to_be_before_it_starts() {
    let workshop = Workshop::new();
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.current_dir(workshop.folder.path()).args(["train", "--data", "data", "--out", "run"]);
    let output = command.args(["--set", "model.backbone=tiny"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("probe with tiny: 12 training and 4 validation images of 2 classes"),
        "{said}"
    );
    assert!(said.contains("no `--weights` were given"), "{said}");
    let config = fs::read_to_string(workshop.run_dir("run/config.toml")).unwrap();
    assert!(config.contains("method = \"probe\""), "{config}");
}

#[test]
fn a_shipped_set_up_is_known_by_its_name() {
    let workshop = Workshop::new();
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.current_dir(workshop.folder.path()).args(["train", "--data", "data", "--out", "run"]);
    let small = ["--config", "glas", "--epochs", "0"];
    let output = command.args(small).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("train.epochs") && !said.contains("cannot read"), "{said}");
    assert!(!workshop.run_dir("run").exists());
}
