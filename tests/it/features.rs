//! Features of a probe that are made beforehand: the same bytes, and refused where they do not fit.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pinpoint::{
    TrainRequest,
    config::Backbone,
    data::synthetic::{self, SyntheticSpec},
    method,
    train::{Event, Made, Observer},
    workflow::FeatureWork,
};
use tempfile::TempDir;

use crate::train::weights;

struct Workshop {
    folder: TempDir,
}

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = SyntheticSpec { classes: 3, train: 18, valid: 6, test: 6, side: 64, seed: 1 };
        synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn request(&self, run: &str) -> TrainRequest {
        let mut config = method::published("probe").unwrap();
        config.model.backbone = Backbone::Tiny;
        config.preprocess.upscale_short_side = 96;
        TrainRequest::new(self.path("data"), self.path(run), config)
    }

    fn with_features(&self, run: &str) -> TrainRequest {
        TrainRequest { features: Some(self.path("features")), ..self.request(run) }
    }

    /// Makes features in shards of so many images, each by an opening of its own.
    fn make(&self, request: &TrainRequest, images: usize) -> Made {
        let work = FeatureWork::of(request).unwrap();
        let mut all = Made::default();
        for (number, images) in work.images.chunks(images).enumerate() {
            let maker = FeatureWork::maker(request, work.cells).unwrap();
            let made = maker.make(&self.path("features"), number, images, || true).unwrap();
            let Made { done, kept, failed } = made.unwrap();
            all.done += done;
            all.kept += kept;
            all.failed.extend(failed);
        }
        all
    }

    fn refusal(&self, request: &TrainRequest) -> String {
        let message = pinpoint::train(request, &mut ()).unwrap_err().to_string();
        assert!(!request.out.exists(), "a failed start leaves nothing behind: {message}");
        message
    }

    fn an_image(&self) -> PathBuf {
        FeatureWork::of(&self.request("never")).unwrap().images[7].path.clone()
    }
}

fn train(request: &TrainRequest) -> [Vec<u8>; 2] {
    pinpoint::train(request, &mut ()).unwrap();
    weights(&request.out)
}

fn first_shard(features: &Path) -> PathBuf {
    let mut shards: Vec<PathBuf> =
        fs::read_dir(features).unwrap().map(|entry| entry.unwrap().path()).collect();
    shards.sort();
    shards.remove(0)
}

#[test]
fn a_run_has_the_same_bytes_with_features_that_were_made_before_and_stopped_halfway() {
    /// Asks to stop before the first image whose features are read, or computed.
    struct Impatient(bool);

    impl Observer for Impatient {
        fn observe(&mut self, event: &Event<'_>) {
            self.0 |= matches!(event, Event::Working { what: "reading features", .. });
        }

        fn wants_to_stop(&self) -> bool {
            self.0
        }
    }

    let workshop = Workshop::new();
    let plain = train(&workshop.request("plain"));
    let request = workshop.with_features("run");
    // A job that ends early leaves whole shards, which the next one keeps.
    let work = FeatureWork::of(&request).unwrap();
    let maker = FeatureWork::maker(&request, work.cells).unwrap();
    let features = workshop.path("features");
    assert_eq!(maker.make(&features, 0, &work.images[..5], || false).unwrap(), None);
    assert_eq!(maker.make(&features, 0, &work.images[..5], || true).unwrap().unwrap().done, 5);
    let made = workshop.make(&request, 5);
    assert_eq!((made.done, made.kept), (13, 5), "{made:?}");
    assert!(train(&request) == plain);

    // Other heads are trained on them too.
    let fewer = |mut request: TrainRequest| {
        request.config.probe.students = 1;
        request
    };
    let expected = train(&fewer(workshop.request("fewer students, plain")));
    assert!(train(&fewer(workshop.with_features("fewer students"))) == expected);

    let stopped = workshop.with_features("stopped");
    pinpoint::train(&stopped, &mut Impatient(false)).unwrap();
    assert!(!stopped.out.join("weights/best.safetensors").exists());
    let resumed = TrainRequest::resume(&stopped.out).unwrap();
    assert!(train(&TrainRequest { features: stopped.features, ..resumed }) == plain);
}

#[test]
fn weights_that_are_given_leave_the_seed_free() {
    let workshop = Workshop::new();
    let mut other = workshop.request("weights");
    other.config = method::published("cam-avg").unwrap();
    other.config.model.backbone = Backbone::Tiny;
    other.config.model.stem = workshop.request("").config.model.stem;
    other.config.train.epochs = 1;
    other.config.preprocess.crop = 64;
    pinpoint::train(&other, &mut ()).unwrap();
    let start = Some(other.out.join("weights/best.safetensors"));
    let seeded = |request: TrainRequest, seed| {
        let mut request = TrainRequest { weights: start.clone(), ..request };
        request.config.seed = seed;
        request
    };
    workshop.make(&seeded(workshop.request("never"), 0), 7);
    for seed in [0, 5] {
        let plain = train(&seeded(workshop.request(&format!("{seed}, plain")), seed));
        assert!(train(&seeded(workshop.with_features(&seed.to_string()), seed)) == plain, "{seed}");
    }
    // Drawn weights are other weights.
    let message = workshop.refusal(&workshop.with_features("drawn"));
    assert!(message.contains("18 of 18") && message.contains("is drawn"), "{message}");
}

#[test]
fn an_image_that_cannot_be_used_is_told_and_stops_nobody() {
    let workshop = Workshop::new();
    let request = workshop.with_features("run");
    let image = workshop.an_image();
    let content = fs::read(&image).unwrap();
    fs::write(&image, "not an image any more").unwrap();
    let made = workshop.make(&request, 5);
    assert_eq!((made.done, made.kept, made.failed.len()), (17, 0, 1), "{made:?}");
    assert_eq!(made.failed[0].0, image);
    let message = workshop.refusal(&request);
    assert!(message.contains("1 of 18 training images, such as `"), "{message}");

    // Only the shard that lacks an image is made again.
    fs::write(&image, content).unwrap();
    let made = workshop.make(&request, 5);
    assert_eq!((made.done, made.kept, made.failed.len()), (5, 13, 0), "{made:?}");
    assert!(train(&request) == train(&workshop.request("plain")));
}

#[test]
fn features_of_other_images_settings_or_methods_are_refused() {
    let workshop = Workshop::new();
    let request = workshop.with_features("run");
    workshop.make(&request, 20);

    let mut other = request.clone();
    other.config.preprocess.upscale_short_side = 128;
    other.config.seed = 3;
    let message = workshop.refusal(&other);
    assert!(message.contains("`preprocess.upscale_short_side` was 96, is 128"), "{message}");
    assert!(message.contains("`seed` was 0, is 3"), "{message}");

    let mut other = request.clone();
    other.config = method::published("minmax").unwrap();
    let message = workshop.refusal(&other);
    assert!(message.contains("features are for `method = \"probe\"`"), "{message}");

    let shard = first_shard(&workshop.path("features"));
    let whole = fs::read(&shard).unwrap();
    let mut damaged = whole.clone();
    // In the middle lie cells; the header stays as it was.
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&shard, damaged).unwrap();
    let message = pinpoint::train(&request, &mut ()).unwrap_err().to_string();
    assert!(message.contains("not what was written") && message.contains("remove"), "{message}");
    fs::write(&shard, &whole[..whole.len() - 1]).unwrap();
    let message = workshop.refusal(&workshop.with_features("cut short"));
    assert!(message.contains("cannot be used") && message.contains("remove"), "{message}");
    fs::write(&shard, whole).unwrap();

    let image = workshop.an_image();
    let mut content = fs::read(&image).unwrap();
    content.extend(b"after the end of the picture");
    fs::write(&image, content).unwrap();
    let message = workshop.refusal(&workshop.with_features("changed"));
    assert!(message.contains("1 of 18 training images"), "{message}");

    fs::remove_dir_all(workshop.path("features")).unwrap();
    let message = workshop.refusal(&workshop.with_features("missing"));
    assert!(message.contains("features"), "{message}");
}
