//! The dataset layouts that are read as they are.
//!
//! One file per layout turns what is on disk into rows; the rest is shared:
//!
//! ```text
//! open ─▶ glas | cub | oxford_flowers | oxford_pets | voc | coco | folders | folds | table | wsol
//!   │               │ list files (list, mat)
//!   ▼               │ where a path leads (path, search)
//! unrecognized      ▼
//!                 builder ─▶ finish ─▶ Dataset { samples, notes, problems }
//! ```

mod builder;
mod coco;
mod cub;
mod finish;
mod folders;
mod folds;
mod glas;
mod list;
mod mat;
mod oxford_flowers;
mod oxford_pets;
mod path;
mod search;
mod table;
#[cfg(test)]
pub(crate) mod tree;
mod unrecognized;
mod voc;
mod wsol;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use self::builder::Builder;
pub use self::path::is_image;
use super::{Dataset, Split, mask::MaskRule};
use crate::error::{Error, Result};

/// A way of arranging images, labels and masks on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// GlaS as distributed: `Grade.csv`, images and `_anno` masks.
    Glas,
    /// CUB-200-2011 as distributed: list files, `images/`, `segmentations/`.
    Cub,
    /// Oxford flowers 102 as distributed: `jpg/`, `segmim/`, two `.mat` files.
    OxfordFlowers,
    /// The Oxford-IIIT pets as distributed: `images/`, `annotations/`.
    OxfordPets,
    /// Pascal VOC as distributed, images of one class.
    Voc,
    /// COCO's `instances_*.json`, images of one category.
    Coco,
    /// `train|valid|test/<class>/*`, with an optional parallel `masks/` tree.
    Folders,
    /// Header-less `image,mask,class` files, one per split, as published with the paper.
    Folds,
    /// CSV with a header: `image,label[,mask][,split]`.
    Table,
    /// Metadata folders of wsolevaluation.
    Wsol,
}

/// What the user may say about a dataset instead of having it guessed.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// How to read it; told from its files if absent.
    pub layout: Option<Layout>,
    /// Where the images of list files are, when not beside the lists.
    pub images: Option<PathBuf>,
    /// What counts as foreground; the layout's own rule if absent.
    pub mask_rule: Option<MaskRule>,
    /// Takes pictures in class folders for images even if they are named like masks.
    pub no_mask_names: bool,
}

impl Layout {
    /// All layouts, in the order they are tried.
    pub const ALL: [Self; 10] = [
        Self::Glas,
        Self::Cub,
        Self::OxfordFlowers,
        Self::OxfordPets,
        Self::Voc,
        Self::Coco,
        Self::Wsol,
        Self::Folds,
        Self::Table,
        Self::Folders,
    ];
}

/// As in flags and in output: `oxford-flowers`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Dataset {
    /// Reads the dataset at `path`: lists, labels and which files exist, but no pixels.
    ///
    /// Problems are collected in [`Dataset::problems`]; the only error is a dataset
    /// whose layout cannot be told, or in which nothing is usable.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let path = path::absolute(path)?;
        if !path.exists() {
            return Err(Error::data(&path, "dataset does not exist", "check the path"));
        }
        let images = options.images.as_deref().map(path::absolute).transpose()?;
        if let Some(images) = images.as_ref().filter(|images| !images.is_dir()) {
            let remedy = "name an existing folder with `--images DIR`";
            return Err(Error::data(images, "there is no such folder of images", remedy));
        }
        let options = OpenOptions { images, ..options.clone() };
        let builder = match options.layout {
            Some(layout) => read(layout, &path, &options)
                .ok_or_else(|| unrecognized::as_layout(&path, layout))?,
            None => Layout::ALL
                .into_iter()
                .find_map(|layout| read(layout, &path, &options))
                .ok_or_else(|| unrecognized::as_any(&path))?,
        };
        builder.finish(options.mask_rule)
    }
}

/// What `path` holds, if it has this layout.
fn read(layout: Layout, path: &Path, options: &OpenOptions) -> Option<Builder> {
    match layout {
        Layout::Glas => glas::read(path),
        Layout::Cub => cub::read(path),
        Layout::OxfordFlowers => oxford_flowers::read(path),
        Layout::OxfordPets => oxford_pets::read(path),
        Layout::Voc => voc::read(path),
        Layout::Coco => coco::read(path),
        Layout::Folders => folders::read(path, options),
        Layout::Folds => folds::read(path, options),
        Layout::Table => table::read(path, options),
        Layout::Wsol => wsol::read(path, options),
    }
}

/// Values by their keys, those of a key in the order they come in.
fn grouped<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, Vec<V>> {
    let mut groups = BTreeMap::<K, Vec<V>>::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}

/// The split that a folder, a file or a field is named after.
fn split_named(name: &str) -> Option<Split> {
    match name.to_ascii_lowercase().as_str() {
        "train" | "training" => Some(Split::Train),
        "val" | "valid" | "validation" => Some(Split::Valid),
        "test" | "testing" => Some(Split::Test),
        _ => None,
    }
}

/// The split whose name a file's name starts with, as in `train_s_0_f_0.csv`.
fn split_of_file(path: &Path) -> Option<Split> {
    let name = path::name(path).to_ascii_lowercase();
    let starts = |split: &Split| name.starts_with(&split.to_string()[..3]);
    Split::ALL.into_iter().find(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_one_name_in_flags_and_output() {
        for layout in Layout::ALL {
            assert_eq!(serde_json::to_value(layout).unwrap(), layout.to_string());
        }
    }

    #[test]
    fn files_belong_to_the_split_they_are_named_after() {
        let split = |name| split_of_file(Path::new(name));
        assert_eq!(split("train_s_0_f_0.csv"), Some(Split::Train));
        assert_eq!(split("val.csv"), Some(Split::Valid));
        assert_eq!(split("validation.csv"), Some(Split::Valid));
        assert_eq!(split("Test.csv"), Some(Split::Test));
        assert_eq!(split("labels.csv"), None);
    }
}
