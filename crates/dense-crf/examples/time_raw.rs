//! Times one refinement of raw files, for `bench/crf_peer.py`.
//!
//! ```text
//! time_raw WIDTH HEIGHT glas|natural LABELS RGB PROBABILITIES OUT
//! ```
//!
//! `RGB` holds bytes, `PROBABILITIES` and `OUT` little-endian floats, labels × pixels.
//! Prints the seconds of the second of two runs, files not counted: the first warms memory up.
#![expect(clippy::print_stdout, reason = "an example talks to its caller")]

use std::{env, error::Error, fs, time::Instant};

use dense_crf::{DenseCrf, Params};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [width, height, preset, labels, rgb, probabilities, out] = &arguments[..] else {
        return Err("seven arguments wanted, see the top of the source".into());
    };
    let params = if preset == "glas" { Params::glas() } else { Params::natural() };
    let (width, height, labels) = (width.parse()?, height.parse()?, labels.parse()?);
    let rgb = fs::read(rgb)?;
    let bytes = fs::read(probabilities)?;
    let probabilities: Vec<f32> =
        bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();

    let refine = || DenseCrf::new(width, height, &rgb, params)?.infer(&probabilities, labels);
    refine()?;
    let start = Instant::now();
    let refined = refine()?;
    println!("{}", start.elapsed().as_secs_f64());

    fs::write(out, refined.iter().flat_map(|p| p.to_le_bytes()).collect::<Vec<_>>())?;
    Ok(())
}
