//! Which file holds the score map of which sample.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use crate::{
    data::Sample,
    error::{Error, Result},
};

/// Most missing files that an error names.
const NAMED: usize = 5;

/// The file of each sample's score map, relative to the folder of maps: `a/1.npy` for `a/1.png`.
///
/// Images of a folder that differ in extension only keep it: `a/1.png.npy`.
pub fn map_names(samples: &[Sample]) -> Vec<PathBuf> {
    let names: Vec<_> = samples.iter().map(possible_names).collect();
    let [times, ..] = count(&names);
    let clearest = |[short, long, ..]: &[PathBuf; 4]| {
        if times[short] == 1 { short.clone() } else { long.clone() }
    };
    names.iter().map(clearest).collect()
}

/// Finds the map of every sample, also as other tools name them: all in one folder, or with the
/// extension of the image.
pub(super) fn find(folder: &Path, samples: &[Sample]) -> Result<Vec<PathBuf>> {
    let names: Vec<_> = samples.iter().map(possible_names).collect();
    let times = count(&names);
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (sample, names) in samples.iter().zip(&names) {
        // A name that several samples share is ambiguous.
        let own = names.iter().zip(&times).filter(|(name, times)| times[*name] == 1);
        let mut files = own.map(|(name, _)| folder.join(name));
        match files.find(|file| file.is_file()) {
            Some(file) => found.push(file),
            None => missing.push(sample.id.as_str()),
        }
    }
    if missing.is_empty() { Ok(found) } else { Err(lacking(folder, samples, &missing)) }
}

fn lacking(folder: &Path, samples: &[Sample], missing: &[&str]) -> Error {
    if !folder.is_dir() {
        let remedy = "give the folder that holds the `.npy` files";
        return Error::data(folder, "there is no such folder of score maps", remedy);
    }
    let named: Vec<_> = missing.iter().take(NAMED).map(|id| format!("`{id}`")).collect();
    let rest = if missing.len() > NAMED { ", …" } else { "" };
    let (lacking, all, named) = (missing.len(), samples.len(), named.join(", "));
    Error::data(
        folder,
        format!("{lacking} of {all} images have no score map: {named}{rest}"),
        "name each map after its image, with the ending `.npy`",
    )
}

/// The possible names of a sample's map: `a/1.npy`, `a/1.png.npy`, `1.npy`, `1.png.npy`.
fn possible_names(sample: &Sample) -> [PathBuf; 4] {
    // Without `..` or a root, so that it stays within the folder of maps.
    let parts = Path::new(&sample.id).components();
    let image: PathBuf = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
    let (short, long) = (image.with_extension("npy"), image.with_added_extension("npy"));
    let last = |path: &Path| path.file_name().unwrap_or_default().into();
    let (last_short, last_long) = (last(&short), last(&long));
    [short, long, last_short, last_long]
}

/// For each of the four kinds of names, how many samples have each name.
fn count(names: &[[PathBuf; 4]]) -> [BTreeMap<&PathBuf, usize>; 4] {
    std::array::from_fn(|layout| {
        let mut times = BTreeMap::new();
        names.iter().for_each(|names| *times.entry(&names[layout]).or_insert(0) += 1);
        times
    })
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
