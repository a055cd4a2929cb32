//! Which layout a path has, told by the files it holds.

use std::path::Path;

use super::{Layout, cub, folders, folds, glas, oxford_flowers, table, wsol};
use crate::error::{Error, Result};

/// The layout of the dataset at `path`, or an error that says what was looked for.
pub(super) fn detect(path: &Path) -> Result<Layout> {
    let matches = |layout: &Layout| match layout {
        Layout::Glas => glas::home(path).is_some(),
        Layout::Cub => cub::Home::find(path).is_some(),
        Layout::OxfordFlowers => oxford_flowers::home(path).is_some(),
        Layout::Wsol => !wsol::folders(path).is_empty(),
        Layout::Folds => !folds::lists(path).is_empty(),
        Layout::Table => !table::lists(path).is_empty(),
        Layout::Folders => folders::home(path).is_some(),
    };
    Layout::ALL.into_iter().find(matches).ok_or_else(|| unknown(path))
}

/// `path` was said to have a layout that it does not have.
pub(super) fn lacks(path: &Path, layout: Layout) -> Error {
    Error::Data {
        path: path.to_owned(),
        problem: format!("this is no `{layout}` dataset"),
        remedy: format!("a `{layout}` dataset has {}", looked_for(layout)),
    }
}

fn unknown(path: &Path) -> Error {
    let looked_for: Vec<_> = Layout::ALL
        .iter()
        .map(|layout| format!("\n  {:<15} {}", layout.name(), looked_for(*layout)))
        .collect();
    Error::Data {
        path: path.to_owned(),
        problem: "cannot tell how the dataset is laid out".to_owned(),
        remedy: format!("pass a path that holds one of these:{}", looked_for.concat()),
    }
}

fn looked_for(layout: Layout) -> &'static str {
    match layout {
        Layout::Glas => "`Grade.csv`, here or one folder down",
        Layout::Cub => "`images.txt` and `image_class_labels.txt`, here or in `CUB_200_2011/`",
        Layout::OxfordFlowers => "`imagelabels.mat` and `setid.mat`, here or one folder down",
        Layout::Wsol => "`train/image_ids.txt`, likewise for `val`, `valcl`, `valpx` or `test`",
        Layout::Folds => "`train*.csv`, `valid*.csv`, `test*.csv` with rows `image,mask,class`",
        Layout::Table => "a CSV file with a header row that has `image` and `label`",
        Layout::Folders => "folders `train/<class>/` with images, or just `<class>/`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::{OpenOptions, tree::Tree};

    #[test]
    fn a_path_without_a_dataset_is_told_what_was_looked_for() {
        let tree = Tree::new().text("readme.md", "");
        let message = tree.open().unwrap_err().to_string();
        assert!(message.contains(&tree.path("").display().to_string()), "{message}");
        for sign in ["Grade.csv", "images.txt", "imagelabels.mat", "train/<class>/"] {
            assert!(message.contains(sign), "{message}");
        }
    }

    #[test]
    fn a_path_that_does_not_exist_is_told_from_the_root() {
        let tree = Tree::new();
        let message = tree.open_at("gone", &OpenOptions::default()).unwrap_err().to_string();
        assert!(message.contains(&tree.path("gone").display().to_string()), "{message}");
    }

    #[test]
    fn every_layout_that_is_asked_for_in_vain_says_what_it_needs() {
        for layout in Layout::ALL {
            let tree = Tree::new().text("readme.md", "");
            let options = OpenOptions { layout: Some(layout), ..OpenOptions::default() };
            let message = tree.open_at("", &options).unwrap_err().to_string();
            assert!(message.contains(layout.name()), "{layout}: {message}");
        }
    }
}
