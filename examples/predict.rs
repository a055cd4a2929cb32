//! Predicts images by a run: `cargo run --release --example predict -- RUN IMAGE…`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;

use pinpoint::{PredictOptions, Predictor, refine::Preset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [run, images @ ..] = &arguments[..] else {
        return Err("usage: predict RUN IMAGE…".into());
    };
    let predictor = Predictor::open(run, "cpu")?;
    let options =
        PredictOptions { crf: Some(Preset::Natural.params()), ..PredictOptions::default() };
    for path in images {
        let image = image::open(path)?.into_rgb8();
        let found = predictor.predict(&image, &options)?;
        let class = found.class_name.as_deref().unwrap_or("no class");
        println!("{path}: {class}, {:.1} % foreground", 100.0 * found.foreground());
        for region in found.regions() {
            println!("  {:?}, score {:.2}", region.bounds, region.score);
        }
    }
    Ok(())
}
