//! The Oxford-IIIT pets as distributed.
//!
//! ```text
//! images/Abyssinian_100.jpg              the breed is in the name
//! annotations/trainval.txt  test.txt     Abyssinian_100 1 1 1     name, class, species, breed
//! annotations/trimaps/Abyssinian_100.png 1 pet, 2 background, 3 border
//! ```

use std::{collections::BTreeMap, path::Path};

use super::{
    Layout,
    builder::Builder,
    list::{self, Row},
    path,
};
use crate::data::{MaskRule, Split, Truth, problem::ProblemKind};

const LISTS: [(&str, Split); 2] = [("trainval.txt", Split::Train), ("test.txt", Split::Test)];

pub(super) fn read(path: &Path) -> Option<Builder> {
    let root = path::here_or_below(path, |folder| {
        folder.join("images").is_dir() && folder.join("annotations/trainval.txt").is_file()
    })?;
    let mut builder = Builder::new(Layout::OxfordPets, &root);
    builder.mask_rule = MaskRule::Trimap;
    let mut rows = Vec::new();
    for (name, split) in LISTS {
        let list = root.join("annotations").join(name);
        if list.is_file() {
            rows.extend(list::keyed(&mut builder, &list).into_iter().map(|row| (split, row)));
        } else {
            builder.note(format!("no `annotations/{name}` found: no such images"));
        }
    }
    // A comment may head the list.
    rows.retain(|(_, row)| !row.get(0).starts_with('#'));
    builder.classes = Some(official_order(&rows));
    for (split, row) in &rows {
        add(&mut builder, *split, row);
    }
    Some(builder)
}

/// The breed in the name of an image, and the number of the image.
fn breed(name: &str) -> Option<&str> {
    name.rsplit_once('_').map(|(breed, _)| breed).filter(|breed| !breed.is_empty())
}

/// The number of the class in a row.
fn number(row: &Row) -> Option<u32> {
    row.get(1).split_whitespace().next()?.parse().ok()
}

/// Breeds in the order of their numbers, once each.
fn official_order(rows: &[(Split, Row)]) -> Vec<String> {
    let numbered = rows.iter().filter_map(|(_, row)| Some((number(row)?, breed(row.get(0))?)));
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for (number, breed) in numbered {
        first.entry(breed).or_insert(number);
    }
    let mut breeds: Vec<_> = first.into_iter().map(|(breed, number)| (number, breed)).collect();
    breeds.sort_unstable();
    breeds.into_iter().map(|(_, breed)| breed.to_owned()).collect()
}

fn add(builder: &mut Builder, split: Split, row: &Row) -> Option<()> {
    let name = row.get(0);
    let (Some(class), Some(_)) = (breed(name), number(row)) else {
        let text = format!("`{name} {}` is not `Breed_1 class species breed`", row.get(1));
        return builder.problem(&row.origin, ProblemKind::BadRow, text);
    };
    let root = builder.root.clone();
    let image = builder.resolve(&root.join("images"), &format!("{name}.jpg"), &row.origin)?;
    let trimaps = root.join("annotations/trimaps");
    let masks = match trimaps.is_dir() {
        true => vec![builder.resolve(&trimaps, &format!("{name}.png"), &row.origin)?],
        false => Vec::new(),
    };
    builder.add(&row.origin, split, class, &image, Truth { masks, ..Truth::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::{Tree, kinds};

    fn tree(trainval: &str) -> Tree {
        Tree::new()
            .text("annotations/trainval.txt", trainval)
            .text("annotations/test.txt", "Abyssinian_2 2 1 1\n")
            .png("images/Abyssinian_1.jpg", 4, 4)
            .png("images/Abyssinian_2.jpg", 4, 4)
            .png("images/saint_bernard_7.jpg", 4, 4)
            .mask("annotations/trimaps/Abyssinian_2.png", 4, 4)
    }

    #[test]
    fn the_breed_is_in_the_name_and_its_number_gives_the_order() {
        let tree = tree("#Image CLASS-ID\nAbyssinian_1 2 1 1\nsaint_bernard_7 1 2 1\n");
        let dataset = tree.open().unwrap();
        assert_eq!((dataset.layout, dataset.mask_rule), (Layout::OxfordPets, MaskRule::Trimap));
        assert_eq!(dataset.classes, ["saint_bernard", "Abyssinian"]);
        assert_eq!(dataset.train.iter().map(|s| s.label).collect::<Vec<_>>(), [1, 0]);
        let trimap = tree.path("annotations/trimaps/Abyssinian_2.png");
        assert_eq!(dataset.test[0].truth.masks, [trimap]);
        assert_eq!(kinds(&dataset), [] as [&str; 0], "training images need no masks");
    }

    #[test]
    fn rows_that_do_not_fit_are_problems() {
        let dataset =
            tree("Abyssinian_1 2 1 1\nodd 1 1 1\nsaint_bernard_8 1 1 1\n").open().unwrap();
        assert_eq!(kinds(&dataset), ["bad-row", "missing-image", "empty-class"]);
    }
}
