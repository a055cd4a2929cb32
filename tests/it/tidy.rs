//! The rules of ARCHITECTURE.md that a machine can check.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every Rust file below a folder of the repository, with its text without comments.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.join(folder)];
    while let Some(next) = folders.pop() {
        if next.is_file() {
            files.push(next);
            continue;
        }
        folders.extend(fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let relative =
        |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    files.iter().map(|path| (relative(path), code(&fs::read_to_string(path).unwrap()))).collect()
}

/// The text without its comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Fails with every file below `folder` that holds one of the words.
fn forbid(folder: &str, words: &[&str], exempt: &[&str]) {
    let found: Vec<String> = sources(folder)
        .into_iter()
        .filter(|(path, _)| !exempt.iter().any(|exempt| path.starts_with(exempt)))
        .flat_map(|(path, text)| {
            let hits = words.iter().filter(move |word| text.contains(**word));
            hits.map(move |word| format!("{path}: {word}"))
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The modules of the library in the order in which `src/lib.rs` declares them.
fn order() -> Vec<String> {
    let (_, text) = sources("src/lib.rs").pop().expect("the library has a root");
    let name = |line: &str| {
        let declared = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?;
        declared.strip_suffix(';').map(str::to_owned)
    };
    text.lines().filter_map(name).collect()
}

/// Settings name how mask files are read, which is parsed where they are read.
const UPWARDS: &[(&str, &str)] = &[("config", "data")];

/// The modules that a text imports from the crate's root, by `crate::name` or `crate::{name, …}`.
fn imports(text: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = Vec::new();
    for after in text.split("crate::").skip(1) {
        let Some(list) = after.strip_prefix('{') else {
            found.push(name(after));
            continue;
        };
        let (mut depth, mut start) = (1, 0);
        for (at, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    found.push(name(&list[start..at]));
                    start = at + 1;
                }
                _ => {}
            }
            if depth == 0 {
                found.push(name(&list[start..at]));
                break;
            }
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

/// The text without the tests at its foot, which may import from anywhere.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

#[test]
fn modules_import_downwards_only() {
    let order = order();
    let rank = |name: &str| order.iter().position(|known| known == name);
    let mut found = Vec::new();
    for (path, text) in sources("src") {
        let module = path.split('/').nth(1).unwrap().trim_end_matches(".rs");
        let is_test = path.ends_with("/tests.rs") || path.ends_with("/parity.rs");
        if module == "bin" || module == "lib" || is_test {
            continue;
        }
        let own = rank(module).unwrap_or_else(|| panic!("{path} is not declared in lib.rs"));
        for import in imports(without_tests(&text)) {
            let upwards = rank(&import).is_some_and(|other| other > own);
            if upwards && !UPWARDS.contains(&(module, &import)) {
                found.push(format!("{path}: {import}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn what_needs_no_tensors_does_not_import_them() {
    for folder in [
        "src/data",
        "src/stats",
        "src/metrics",
        "src/report",
        "src/formats",
        "src/config",
        "crates",
    ] {
        forbid(folder, &["burn::", "burn_"], &[]);
    }
    // Heads are plain numbers: only what holds the backbone knows tensors.
    let backbone =
        ["features.rs", "model.rs", "arrays.rs"].map(|f| format!("src/method/probe/{f}"));
    forbid("src/method/probe", &["burn::"], &backbone.each_ref().map(String::as_str));
    for file in ["src/method/minmax/trust.rs", "src/train/schedule.rs", "src/train/event.rs"] {
        forbid(file, &["burn::"], &[]);
    }
}

#[test]
fn the_library_neither_prints_nor_reads_the_environment() {
    let words = ["println!", "print!(", "dbg!", "std::env", "env::var"];
    forbid("src", &words, &["src/bin/"]);
    // Within the command, only one file prints.
    forbid("src/bin", &["println!", "print!(", "stdout()"], &["src/bin/pinpoint/ui.rs"]);
}

#[test]
fn backends_are_named_in_one_place() {
    forbid(
        "src",
        &["::flex", "Flex", "cuda", "wgpu", "vulkan"],
        &["src/device.rs", "src/model/fused"],
    );
}

#[test]
fn unsafe_code_lives_in_the_kernels_and_the_allocator() {
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    for folder in ["src", "examples", "tests"] {
        // This file holds the words it looks for.
        forbid(folder, &words, &["tests/it/tidy.rs"]);
    }
    forbid("crates", &words, &["crates/conv-kernels/", "crates/huge-pages/"]);
}

#[test]
fn randomness_comes_from_the_named_streams() {
    forbid("src", &["rand::", "thread_rng", "RandomState"], &["src/data/split"]);
}

#[test]
fn a_training_batch_has_no_mask() {
    let (_, text) = sources("src/data/loader")
        .into_iter()
        .find(|(_, text)| text.contains("pub struct Batch {"))
        .expect("the loader defines `Batch`");
    let fields = text.split("pub struct Batch {").nth(1).unwrap().split('}').next().unwrap();
    assert!(!fields.to_lowercase().contains("mask") && !fields.contains("truth"), "{fields}");
}

#[test]
fn only_full_supervision_can_be_given_masks() {
    let exempt = ["src/data/loader/", "src/method/unet.rs"];
    forbid("src", &["SupervisedBatch", "SupervisedLoader"], &exempt);
    // Nor can a method read masks on its own: it is not given the dataset.
    let words = ["data::mask", "mask::read", "Dataset", "truth.masks"];
    forbid("src/method", &words, &["src/method/unet.rs"]);
    // A probe is trained on the dataset itself, of which it takes images and labels.
    forbid("src/train/probe.rs", &["truth", "data::mask", "mask::read"], &[]);
}

#[test]
fn no_verb_imports_a_verb() {
    let (_, main) = sources("src/bin/pinpoint/main.rs").pop().expect("the command has a root");
    let start = main.find("enum Command {").expect("the command has verbs");
    let verbs: Vec<&str> = main[start..]
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('}'))
        .filter_map(|line| line.trim().split_once('(')?.1.split_once("::"))
        .map(|(verb, _)| verb)
        .collect();
    assert!(verbs.contains(&"train") && verbs.contains(&"weights"), "{verbs:?}");
    let found: Vec<String> = sources("src/bin/pinpoint")
        .into_iter()
        .filter(|(path, _)| !path.ends_with("main.rs"))
        .flat_map(|(path, text)| {
            let own = path.trim_start_matches("src/bin/pinpoint/").to_owned();
            let others = imports(&text).into_iter().filter(|name| verbs.contains(&name.as_str()));
            let others: Vec<String> = others.filter(|name| !own.starts_with(&**name)).collect();
            others.into_iter().map(move |name| format!("{path} imports the verb `{name}`"))
        })
        .collect();
    // Their arguments are not reached either, since a verb's struct is in its own file.
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_search_finds_what_it_is_meant_to_find() {
    assert_eq!(code("let a = 1; // unsafe {\nunsafe { b }"), "let a = 1; \nunsafe { b }");
    let hit = std::panic::catch_unwind(|| forbid("src/device.rs", &["Device::flex"], &[]));
    assert!(hit.is_err(), "a forbidden word must be found");
    let text = "use crate::{\n    a::{b, c},\n    d,\n};\nfn f() { crate::e::g() }";
    assert_eq!(imports(text), ["a", "d", "e"]);
    let report =
        sources("src/report").into_iter().find(|(path, _)| path.ends_with("report/folder.rs"));
    assert!(imports(&report.unwrap().1).contains(&"evaluate".to_owned()));
}
