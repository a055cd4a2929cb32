//! Weight files: every format reads the same, and none can do harm.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pinpoint::model::weights::read;
use proptest::prelude::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/weights").join(name)
}

const READABLE: [&str; 6] = [
    "zip.pth",
    "legacy.pth",
    "nested.pth",
    "f32.safetensors",
    "f16.safetensors",
    "bf16.safetensors",
];

#[test]
fn every_format_gives_the_same_tensors_and_leaves_counters_out() {
    for name in READABLE {
        let arrays = read(&fixture(name)).unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["bn1.bias", "conv1.weight"], "{name}");
        let weight = &arrays["conv1.weight"];
        assert_eq!(weight.shape, [2, 3, 2, 2], "{name}");
        let expected: Vec<f32> = (0..24).map(|i| i as f32 / 8.0 - 1.0).collect();
        assert_eq!(weight.values, expected, "{name}");
        assert_eq!(arrays["bn1.bias"].values, [0.5, -0.25], "{name}");
    }
}

#[test]
fn a_pickle_that_would_run_a_command_is_read_but_never_run() {
    let _ = read(&fixture("hostile.pth"));
    assert!(!Path::new("pinpoint-was-here").exists());
}

#[test]
fn what_is_no_weight_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("empty.pth", &b""[..]), ("text.safetensors", b"hello, weights")] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("hint:"), "{message}");
    }
}

#[test]
fn a_safetensors_file_must_be_as_long_as_its_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.safetensors");
    let whole = fs::read(fixture("f32.safetensors")).unwrap();
    let cut = whole[..whole.len() - 1].to_vec();
    let longer = [&whole[..], &[0]].concat();
    let endless = [&u64::MAX.to_le_bytes(), &whole[8..]].concat();
    for bytes in [cut, longer, endless] {
        fs::write(&path, bytes).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("other.safetensors") && message.contains("hint:"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_files_are_errors_or_weights_but_never_a_crash(
        which in 0..READABLE.len(),
        cut in 0.0..1.0_f64,
        flips in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 0..4),
        truncated in any::<bool>(),
    ) {
        let mut bytes = fs::read(fixture(READABLE[which])).unwrap();
        for (place, value) in flips {
            let place = (place * bytes.len() as f64) as usize;
            bytes[place] ^= value;
        }
        if truncated {
            bytes.truncate((cut * bytes.len() as f64) as usize);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.pth");
        fs::write(&path, bytes).unwrap();
        let _ = read(&path);
    }
}
