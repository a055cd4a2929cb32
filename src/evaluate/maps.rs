//! Which file holds the score map of which sample.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use crate::{
    data::Sample,
    error::{Error, Result},
};

/// Missing files that are named; the rest are counted.
const NAMED: usize = 5;

/// The file of each sample's score map, relative to their folder: `a/1.npy` for `a/1.png`.
///
/// Where two images of a folder differ in extension alone, theirs is kept: `a/1.png.npy`.
pub fn map_names(samples: &[Sample]) -> Vec<PathBuf> {
    let (short, long) = (paths(samples, short_name), paths(samples, long_name));
    let times = count(&short);
    short.into_iter().zip(long).map(|(s, l)| if times[&s] == 1 { s } else { l }).collect()
}

/// Finds the map of every sample, also where other tools put it: beside each other, or
/// under the image's whole name.
pub(super) fn find(folder: &Path, samples: &[Sample]) -> Result<Vec<PathBuf>> {
    let layouts = [
        paths(samples, short_name),
        paths(samples, long_name),
        paths(samples, |path| last(&short_name(path))),
        paths(samples, |path| last(&long_name(path))),
    ];
    let times = layouts.each_ref().map(|names| count(names));
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (index, sample) in samples.iter().enumerate() {
        // A name that two samples share is neither's.
        let own = layouts.iter().zip(&times).filter(|(names, times)| times[&names[index]] == 1);
        let mut files = own.map(|(names, _)| folder.join(&names[index]));
        match files.find(|file| file.is_file()) {
            Some(file) => found.push(file),
            None => missing.push(sample.id.as_str()),
        }
    }
    if missing.is_empty() { Ok(found) } else { Err(lacking(folder, samples, &missing)) }
}

fn lacking(folder: &Path, samples: &[Sample], missing: &[&str]) -> Error {
    if !folder.is_dir() {
        return Error::Data {
            path: folder.to_owned(),
            problem: "there is no such folder of score maps".to_owned(),
            remedy: "give the folder that holds the `.npy` files".to_owned(),
        };
    }
    let named: Vec<_> = missing.iter().take(NAMED).map(|id| format!("`{id}`")).collect();
    let rest = if missing.len() > NAMED { ", …" } else { "" };
    Error::Data {
        path: folder.to_owned(),
        problem: format!(
            "{} of {} images have no score map: {}{rest}",
            missing.len(),
            samples.len(),
            named.join(", ")
        ),
        remedy: "name each map after its image, with the ending `.npy`".to_owned(),
    }
}

/// A name for each sample.
fn paths(samples: &[Sample], name: impl Fn(&Path) -> PathBuf) -> Vec<PathBuf> {
    samples.iter().map(|sample| name(&inner(&sample.id))).collect()
}

/// The sample's name as a path that stays within any folder it is joined to.
fn inner(id: &str) -> PathBuf {
    Path::new(id).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn short_name(path: &Path) -> PathBuf {
    path.with_extension("npy")
}

fn long_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".npy");
    name.into()
}

fn last(path: &Path) -> PathBuf {
    path.file_name().unwrap_or_default().into()
}

fn count(names: &[PathBuf]) -> BTreeMap<PathBuf, usize> {
    let mut times = BTreeMap::new();
    for name in names {
        *times.entry(name.clone()).or_insert(0) += 1;
    }
    times
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::Truth;

    fn samples(ids: &[&str]) -> Vec<Sample> {
        let sample = |id: &&str| Sample {
            id: (*id).to_owned(),
            image: id.into(),
            label: 0,
            truth: Truth::default(),
        };
        ids.iter().map(sample).collect()
    }

    #[test]
    fn maps_are_named_after_their_image_and_stay_in_their_folder() {
        let names = map_names(&samples(&["a/1.png", "a/2.x.png", "b/1.png", "b/1.jpg", "../../e"]));
        let expected = ["a/1.npy", "a/2.x.npy", "b/1.png.npy", "b/1.jpg.npy", "e.npy"];
        assert_eq!(names, expected.map(PathBuf::from));
    }

    #[test]
    fn maps_of_other_tools_are_found_where_their_name_is_clear() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1.npy", "2.png.npy"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = find(folder.path(), &samples(&["a/1.png", "b/2.png"])).unwrap();
        assert_eq!(found, ["1.npy", "2.png.npy"].map(|name| folder.path().join(name)));
        let error = find(folder.path(), &samples(&["a/1.png", "b/1.png"])).unwrap_err();
        assert!(error.to_string().starts_with("2 of 2 images have no score map: `a/1.png`"));
    }

    #[test]
    fn a_folder_that_does_not_exist_is_told_from_one_that_lacks_maps() {
        let error = find(Path::new("gone"), &samples(&["a.png"])).unwrap_err().to_string();
        assert!(error.contains("no such folder"), "{error}");
    }
}
