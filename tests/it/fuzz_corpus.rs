//! The entry points of `fuzz/` over its corpus and mutations of it, without a fuzzer.

#[path = "../../fuzz/entry_points.rs"]
mod entry_points;

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use pinpoint::rng::{Purpose, Stream};

use self::entry_points::{TARGETS, images_and_masks, run_in};

/// Mutations tried of each target.
const MUTATIONS: u64 = 1000;

/// The files of a folder of `fuzz/`, sorted; none if there is no such folder.
fn files(kind: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind).join(target);
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A copy with a few bytes changed, removed, repeated, or taken from another file.
fn mutated(seeds: &[Vec<u8>], stream: &mut Stream) -> Vec<u8> {
    let mut below = |n: usize| stream.below(n);
    let mut bytes = seeds[below(seeds.len())].clone();
    for _ in 0..1 + below(4) {
        let (at, span) = (below(bytes.len().max(1)), 1 + below(16));
        let end = (at + span).min(bytes.len());
        match below(7) {
            _ if bytes.is_empty() => bytes.push(0),
            0 => bytes[at] ^= 1 << below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'9', b'-'][below(7)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes.truncate(at),
            5 => bytes[at..end].fill(0xff),
            _ => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len().max(1));
                let piece = other[from..(from + span).min(other.len())].to_vec();
                bytes.splice(at..end, piece);
            }
        }
    }
    bytes
}

#[test]
fn no_file_of_others_makes_a_reader_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut trials = 0;
    for (number, target) in TARGETS.into_iter().enumerate() {
        let read = |kind| files(kind, target).iter().map(|path| fs::read(path).unwrap()).collect();
        let (seeds, regressions): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            (read("corpus"), read("regressions"));
        assert!(!seeds.is_empty(), "`{target}` has no corpus");
        let mut stream = Stream::new(0, Purpose::Synthetic, number as u64, 0);
        let mutations = (0..MUTATIONS).map(|_| mutated(&seeds, &mut stream));
        let all: Vec<Vec<u8>> =
            seeds.iter().chain(&regressions).cloned().chain(mutations).collect();
        for bytes in all {
            trials += 1;
            let attempt = AssertUnwindSafe(|| run_in(folder.path(), target, &bytes));
            if panic::catch_unwind(attempt).is_err() {
                let kept = std::env::temp_dir().join(format!("pinpoint-{target}-finding"));
                fs::write(&kept, bytes).unwrap();
                panic!("`{target}` panics; what it was given is in `{}`", kept.display());
            }
        }
    }
    eprintln!("{trials} files read");
}

#[test]
fn the_seeds_are_files_that_are_read() {
    let read = |target: &str, name: &str| {
        files("corpus", target).into_iter().find(|path| path.ends_with(name)).unwrap()
    };
    let sealed = read("run_state", "sealed.safetensors");
    let checkpoint = pinpoint::model::weights::read_with_note::<pinpoint::run::Position>(&sealed);
    assert!(checkpoint.unwrap().verified, "the script seals as the library does");
    let npy = pinpoint::data::npy::read(&read("npy", "f4.npy"), 1).unwrap();
    assert_eq!(npy.values, [0.5, 1.0]);
    pinpoint::Report::read(&read("report", "probe.json")).unwrap();

    let folder = tempfile::tempdir().unwrap();
    for target in TARGETS {
        let seeds = files("corpus", target).into_iter().map(|path| fs::read(path).unwrap());
        let found: Option<Vec<_>> =
            seeds.map(|bytes| images_and_masks(folder.path(), target, &bytes)).collect();
        let Some(found) = found else { continue };
        let [images, masks] = [0, 1].map(|kind| found.iter().map(|read| read[kind]).sum::<usize>());
        // The picture that stands for all masks has a 0, which no trimap has.
        let scored = masks > 0 || target == "pets";
        assert!(images > 0 && scored, "`{target}` leads to {images} images, {masks} masks");
    }
}
