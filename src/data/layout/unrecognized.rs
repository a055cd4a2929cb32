//! Errors for folders that have no known layout, or not the one that was asked for.

use std::path::Path;

use super::{Layout, path, table};
use crate::{data::problem::quoted, error::Error};

/// `path` was said to have a layout that it does not have.
pub(super) fn as_layout(path: &Path, layout: Layout) -> Error {
    if let (Layout::Table, Some(error)) = (layout, other_columns(path)) {
        return error;
    }
    let remedy = format!("a `{layout}` dataset has {}", looked_for(layout));
    Error::data(path, format!("this is no `{layout}` dataset"), remedy)
}

/// A list whose columns are called otherwise than those of a table.
fn other_columns(path: &Path) -> Option<Error> {
    let (list, columns) = table::other_columns(path)?;
    let columns = quoted(columns);
    let problem = format!("the columns are {columns}, not those of a table of images");
    let remedy = format!(
        "the first line must name a column of images ({}) and one of classes ({}), and may name \
         {} and {}",
        quoted(table::IMAGE),
        quoted(table::LABEL),
        quoted(table::MASK),
        quoted(table::SPLIT),
    );
    Some(Error::data(&list, problem, remedy))
}

/// None of the layouts is that of the dataset at `path`.
pub(super) fn as_any(path: &Path) -> Error {
    if path.is_file()
        && let Some(error) = other_columns(path)
    {
        return error;
    }
    if let Some(hint) = flat_images(path) {
        return hint;
    }
    let looked_for: Vec<_> = Layout::ALL
        .iter()
        .map(|layout| format!("\n  {layout:<15} {}", looked_for(*layout)))
        .collect();
    let problem = format!("cannot tell how the dataset is laid out{}", columns_found(path));
    Error::data(
        path,
        problem,
        format!("pass a path that holds one of these:{}", looked_for.concat()),
    )
}

/// The columns of a list that is no table, to go with a problem.
fn columns_found(path: &Path) -> String {
    table::other_columns(path).map_or_else(String::new, |(list, columns)| {
        format!(" (`{}` has the columns {})", path::name(&list), columns.join(", "))
    })
}

/// A folder of images without classes.
fn flat_images(path: &Path) -> Option<Error> {
    let folder = [path.to_owned(), path.join("images")]
        .into_iter()
        .find(|folder| path::entries(folder).iter().any(|file| path::is_image(file)))?;
    let columns = columns_found(path);
    let problem = format!("there are images, but nothing says of which class each is{columns}");
    let remedy = "put them into one folder per class, as in `train/cat/1.jpg`, or list them in a \
                  CSV file with the columns `image` and `label`";
    Some(Error::data(&folder, problem, remedy))
}

fn looked_for(layout: Layout) -> &'static str {
    match layout {
        Layout::Glas => "`Grade.csv`, here or one folder down",
        Layout::Cub => "`images.txt` and `image_class_labels.txt`, here or in `CUB_200_2011/`",
        Layout::OxfordFlowers => "`imagelabels.mat` and `setid.mat`, here or one folder down",
        Layout::OxfordPets => "`images/` and `annotations/trainval.txt`, here or one folder down",
        Layout::Voc => "`JPEGImages/` and `ImageSets/Main/`, here or up to two folders down",
        Layout::Coco => "`annotations/instances_*.json`",
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
    fn images_without_classes_are_told_from_no_images() {
        let tree = Tree::new().png("images/1.png", 4, 4).text("meta.csv", "id,diagnosis\n1,x\n");
        let message = tree.open().unwrap_err().to_string();
        for part in ["nothing says of which class", "`meta.csv` has the columns id, diagnosis"] {
            assert!(message.contains(part), "{message}");
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
            assert!(message.contains(&layout.to_string()), "{layout}: {message}");
        }
    }
}
