//! Folds on disk, in the published format.
//!
//! ```text
//! out/split_<s>/fold_<f>/{train,valid,test}_s_<s>_f_<f>.csv   image,mask,class
//!                        encoding.yaml                        class: label
//!                        seed.txt
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Fold, FoldPlan, by_class, folds};
use crate::{
    data::{
        manifest::{Dataset, Sample, Split},
        staging::{is_vacant, make_folder},
    },
    error::{Error, Result},
};

/// Divides the dataset's training and validation samples anew and writes the folds to `out`.
///
/// The test list is the same in every fold. With `replace`, folds that are
/// already in `out` give way; a folder that holds anything else never does.
pub fn write_folds(dataset: &Dataset, plan: &FoldPlan, out: &Path, replace: bool) -> Result<()> {
    plan.check()?;
    refuse_to_overwrite(out, replace)?;
    let samples: Vec<&Sample> = dataset.train.iter().chain(&dataset.valid).collect();
    let classes = by_class(samples.iter().copied(), dataset.classes.len());
    let pick = |indices: &[usize]| -> Vec<&Sample> {
        indices.iter().map(|&index| samples[index]).collect()
    };
    make_folder(out, |root| {
        for (s, split) in folds(&classes, plan).iter().enumerate() {
            for (f, Fold { train, valid }) in split.iter().enumerate() {
                let dir = root.join(format!("split_{s}/fold_{f}"));
                fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
                for (split, rows) in [
                    (Split::Train, pick(train)),
                    (Split::Valid, pick(valid)),
                    (Split::Test, dataset.test.iter().collect()),
                ] {
                    let list = list(dataset, &rows)?;
                    write(&dir.join(format!("{split}_s_{s}_f_{f}.csv")), &list)?;
                }
                write(&dir.join("encoding.yaml"), encoding(&dataset.classes).as_bytes())?;
                write(&dir.join("seed.txt"), format!("{}\n", plan.seed).as_bytes())?;
            }
        }
        Ok(())
    })
}

fn refuse_to_overwrite(out: &Path, replace: bool) -> Result<()> {
    if is_vacant(out)? {
        return Ok(());
    }
    if !replace {
        let remedy = "choose another one, or replace it with `--force`";
        return Err(Error::data(out, "folder exists", remedy));
    }
    for entry in fs::read_dir(out).map_err(Error::file("look into", out))? {
        let name = entry.map_err(Error::file("look into", out))?.file_name();
        if !name.to_string_lossy().starts_with("split_") {
            let problem = "folder holds other things than folds";
            return Err(Error::data(out, problem, "choose another one"));
        }
    }
    Ok(())
}

/// Rows of `image,mask,class`, in the dialect of the published files.
fn list(dataset: &Dataset, samples: &[&Sample]) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().quote(b'|').from_writer(Vec::new());
    for sample in samples {
        let mask = mask_name(dataset, sample)?;
        let row = [sample.id.as_str(), &mask, &dataset.classes[sample.label]];
        writer.write_record(row).expect("memory takes any row of three fields");
    }
    Ok(writer.into_inner().expect("memory takes any row"))
}

/// The masks' paths relative to the dataset's root, with `/`; empty if there is none.
///
/// The published files have one mask per image; several have `;` between them.
fn mask_name(dataset: &Dataset, sample: &Sample) -> Result<String> {
    let name = |path: &PathBuf| {
        let relative = path.strip_prefix(&dataset.root).unwrap_or(path);
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        parts
            .map(|parts| parts.join("/"))
            .ok_or_else(|| Error::data(path, "name is not UTF-8", "rename the file"))
    };
    let names: Result<Vec<String>> = sample.truth.masks.iter().map(name).collect();
    Ok(names?.join(";"))
}

/// Labels of the classes, as a YAML flow mapping with one class per line.
fn encoding(classes: &[String]) -> String {
    let entries: Vec<String> = classes
        .iter()
        .enumerate()
        .map(|(label, class)| format!("{}: {label}", yaml_key(class)))
        .collect();
    format!("{{{}}}\n", entries.join(",\n  "))
}

/// `name` as YAML reads it back as the same text.
fn yaml_key(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let has_letter = name.contains(|c: char| c.is_ascii_alphabetic());
    let is_number = name.parse::<f64>().is_ok()
        || ["0x", "0o", "0b"].iter().any(|prefix| name.starts_with(prefix));
    let is_keyword = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"]
        .contains(&name.to_ascii_lowercase().as_str());
    let starts_plainly = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_plainly && name.chars().all(is_word) && has_letter && !is_number && !is_keyword {
        name.to_owned()
    } else {
        // Every JSON string is a YAML string.
        serde_json::Value::from(name).to_string()
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_stay_text_in_yaml() {
        let keys = ["019.Gray_Catbird", "benign", "7", "1e5", "No", "a: b", "two words", "-x"];
        let written: Vec<String> = keys.iter().map(|key| yaml_key(key)).collect();
        assert_eq!(
            written,
            [
                "019.Gray_Catbird",
                "benign",
                "\"7\"",
                "\"1e5\"",
                "\"No\"",
                "\"a: b\"",
                "\"two words\"",
                "\"-x\""
            ]
        );
    }
}
