//! Runs whose weights were drawn and not trained: quick, and as good where nothing is learned.

use std::{fs::File, path::Path};

use pinpoint::{
    config::{Backbone, Config},
    device,
    model::{Model, params, weights},
    run::{RunDir, WeightsNote},
};

/// Writes a run of a tiny network for images of any size into `folder/run`.
pub(crate) fn write(folder: &Path, classes: &[&str]) {
    let mut config = Config::default();
    config.model.backbone = Backbone::Tiny;
    config.model.output_stride = 8;
    config.preprocess.upscale_short_side = 0;
    config.preprocess.eval_multiple = 8;
    config.preprocess.crop = 32;
    let run = RunDir::plan(&folder.join("run")).unwrap();
    run.begin(&config, None).unwrap();
    let classes: Vec<String> = classes.iter().map(|&name| name.to_owned()).collect();
    let note = WeightsNote::new(&config, &classes, 1);
    let model = Model::new(&config, classes.len(), &device::cpu());
    let mut file = File::create(run.best()).unwrap();
    weights::write(&mut file, &params::collect(&model), &note).unwrap();
}
