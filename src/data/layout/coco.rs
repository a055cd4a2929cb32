//! COCO's instances, of images with one category.
//!
//! ```text
//! annotations/instances_train2017.json   images, annotations, categories
//! train2017/000000000009.jpg             or images/train2017/…
//! ```
//!
//! Images with objects of several categories are left out: one class per image is learned.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, de::IgnoredAny};

use super::{
    Layout,
    builder::{Builder, Origin},
    grouped, path, split_of_file,
};
use crate::{
    data::{
        PixelBox, Split, Truth,
        mask::{Outline, Outlines, Shape},
        problem::ProblemKind,
    },
    regular::read_bounded,
};

/// The official file of the training images has 450 MB.
const MAX_BYTES: u64 = 2 << 30;

/// What is read of a file of instances.
#[derive(Debug, Deserialize)]
struct Instances {
    images: Vec<Picture>,
    annotations: Vec<Annotation>,
    categories: Vec<Category>,
}

#[derive(Debug, Deserialize)]
struct Picture {
    id: u64,
    file_name: String,
    width: Option<u32>,
    height: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Annotation {
    #[serde(default)]
    id: u64,
    image_id: u64,
    category_id: u64,
    /// x, y, width, height.
    #[serde(default)]
    bbox: Vec<f32>,
    #[serde(default)]
    iscrowd: u8,
    segmentation: Option<Segmentation>,
}

/// The pixels of an object; files of other tools may have anything here.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Segmentation {
    Polygons(Vec<Vec<f32>>),
    /// Height and width.
    Compressed {
        size: [u32; 2],
        counts: String,
    },
    Runs {
        size: [u32; 2],
        counts: Vec<u64>,
    },
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
struct Category {
    id: u64,
    name: String,
}

pub(super) fn read(path: &Path) -> Option<Builder> {
    let name_of_set = |file: PathBuf| {
        let name = path::name(&file);
        let set = name.strip_prefix("instances_")?.strip_suffix(".json")?;
        Some((set.to_owned(), Origin::file(&file)))
    };
    let files = [path::entries(&path.join("annotations")), path::entries(path)].concat();
    let lists: Vec<(String, Origin)> = files.into_iter().filter_map(name_of_set).collect();
    if lists.is_empty() {
        return None;
    }
    let mut builder = Builder::new(Layout::Coco, path);
    let splits = lists.iter().map(|(set, _)| split_of_file(Path::new(set)));
    let splits: Vec<Split> = splits.map(|split| split.unwrap_or(Split::Train)).collect();
    let scored = builder.scored_split(&splits, "there are no labels of test images");
    let (mut several, mut without, mut unmarked) = (0, 0, 0);
    for ((set, list), split) in lists.iter().zip(splits) {
        let read = read_bounded(&list.file, MAX_BYTES)
            .and_then(|bytes| Ok(serde_json::from_slice::<Instances>(&bytes)?))
            .map_err(|error| format!("instances cannot be read ({error})"));
        let Some(instances) = builder.readable(list, read) else { continue };
        let objects = grouped(instances.annotations.iter().map(|one| (one.image_id, one)));
        let names: BTreeMap<u64, &str> =
            instances.categories.iter().map(|found| (found.id, found.name.as_str())).collect();
        let folder = folder_of(path, set);
        for picture in &instances.images {
            let objects = objects.get(&picture.id).map_or(&[][..], Vec::as_slice);
            let categories: BTreeSet<u64> = objects.iter().map(|one| one.category_id).collect();
            match categories.first() {
                None => without += 1,
                Some(_) if categories.len() > 1 => several += 1,
                Some(category) => {
                    let class = names.get(category).copied().unwrap_or_default();
                    let outlines = outlines(&mut builder, picture, objects, list);
                    unmarked += usize::from(outlines.is_none());
                    let single = objects.iter().filter(|one| one.iscrowd == 0);
                    let boxes = single.filter_map(|one| PixelBox::of_corner_and_size(&one.bbox));
                    let truth = Truth { outlines, boxes: boxes.collect(), ..Truth::default() };
                    if let Some(image) = builder.resolve(&folder, &picture.file_name, list) {
                        builder.add(list, scored(split), class, &image, truth);
                    }
                }
            }
        }
    }
    if several + without > 0 {
        builder.note(format!(
            "left out images with objects of several categories: {several}, and of none: {without}"
        ));
    }
    if unmarked > 0 {
        builder.note(format!(
            "images without pixel scores: {unmarked}, since not each of their objects has a \
             polygon or run lengths"
        ));
    }
    Some(builder)
}

/// Where the images of a set are.
fn folder_of(path: &Path, set: &str) -> PathBuf {
    let places = [path.join(set), path.join("images").join(set), path.join("images")];
    places.into_iter().find(|folder| folder.is_dir()).unwrap_or_else(|| path.to_owned())
}

/// Where the objects of an image are, if that is known of each of them.
fn outlines(
    builder: &mut Builder,
    picture: &Picture,
    objects: &[&Annotation],
    list: &Origin,
) -> Option<Outlines> {
    let mut found = Vec::new();
    for object in objects {
        let shape = match object.segmentation.as_ref()? {
            Segmentation::Polygons(polygons) if polygons.is_empty() => return None,
            Segmentation::Polygons(polygons) => Shape::polygons(polygons.clone()),
            Segmentation::Compressed { size: [height, width], counts } => {
                Shape::compressed_runs((*width, *height), counts)
            }
            Segmentation::Runs { size: [height, width], counts } => {
                Shape::runs((*width, *height), counts)
            }
            Segmentation::Other(_) => Err("it has neither polygons nor run lengths"),
        };
        match shape {
            Ok(shape) => found.push(Outline { shape, is_crowd: object.iscrowd != 0 }),
            Err(reason) => {
                let (id, image) = (object.id, &picture.file_name);
                let text = format!("annotation {id} of `{image}` cannot be drawn: {reason}");
                builder.problem(list, ProblemKind::UnreadableMask, text);
                return None;
            }
        }
    }
    // With crowds alone, no pixel is known to be of an object.
    found.iter().any(|outline| !outline.is_crowd).then(|| Outlines {
        list: Arc::from(&*list.file),
        image: picture.file_name.clone(),
        size: picture.width.zip(picture.height),
        objects: found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{
        layout::tree::{Tree, kinds},
        mask,
    };

    const TRAIN: &str = r#"{"info": {}, "images": [{"id": 1, "file_name": "a.jpg", "width": 4, "height": 4},
        {"id": 2, "file_name": "b.jpg"}, {"id": 3, "file_name": "c.jpg"}, {"id": 4, "file_name": "d.jpg"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 17, "bbox": [1, 1, 2, 3], "segmentation": [[1, 1, 3, 1, 3, 4, 1, 4]]},
            {"id": 2, "image_id": 1, "category_id": 17, "bbox": [0, 0, 4, 4], "iscrowd": 1,
             "segmentation": {"size": [4, 4], "counts": [0, 8, 8]}},
            {"id": 3, "image_id": 2, "category_id": 18, "bbox": [0, 0, 1, 1]},
            {"id": 4, "image_id": 3, "category_id": 17}, {"id": 5, "image_id": 3, "category_id": 18}],
        "categories": [{"id": 17, "name": "cat"}, {"id": 18, "name": "dog"}]}"#;

    #[test]
    fn images_of_one_category_are_read_with_their_boxes() {
        let mut tree = Tree::new()
            .text("annotations/instances_train2017.json", TRAIN)
            .text("annotations/instances_val2017.json", TRAIN);
        for name in ["a", "b", "c", "d"] {
            tree = tree.png(&format!("train2017/{name}.jpg"), 4, 4);
            tree = tree.png(&format!("images/val2017/{name}.jpg"), 4, 4);
        }
        let dataset = tree.open().unwrap();
        assert_eq!(
            (dataset.layout, &dataset.classes[..]),
            (Layout::Coco, &["cat".to_owned(), "dog".to_owned()][..])
        );
        assert_eq!((dataset.train.len(), dataset.test.len()), (2, 2));
        let expected = PixelBox { x0: 1.0, y0: 1.0, x1: 3.0, y1: 4.0 };
        assert_eq!(dataset.train[0].truth.boxes, [expected]);
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
        let notes = dataset.notes.join("\n");
        assert!(notes.contains("several categories: 2, and of none: 2"), "{notes}");
        assert!(notes.contains("images without pixel scores: 2"), "{notes}");

        // The object is in the middle columns, and the crowd to the left of it is not scored.
        let read = |at: usize| mask::read(&dataset.train[at].truth, dataset.mask_rule, (4, 4), 1);
        let found = read(0).unwrap().unwrap();
        let rows = |test: &dyn Fn(u32, u32) -> bool| {
            (0..4).flat_map(|y| (0..4).map(move |x| (x, y))).map(|(x, y)| test(x, y)).collect()
        };
        let object: Vec<bool> = rows(&|x, y| (1..3).contains(&x) && y > 0);
        assert_eq!(found.foreground, object);
        let crowd: Vec<bool> = rows(&|x, y| x < 2 && !(x == 1 && y > 0));
        assert_eq!(found.ignored, Some(crowd));
        assert_eq!(read(1).unwrap(), None);
    }

    #[test]
    fn objects_are_united_whatever_form_they_have_and_damaged_ones_are_told() {
        let list = |first: &str, second: &str| {
            format!(
                r#"{{"images": [{{"id": 1, "file_name": "a.jpg"}}], "categories": [{{"id": 7, "name": "cat"}}],
                "annotations": [{{"id": 1, "image_id": 1, "category_id": 7, "segmentation": {first}}},
                {{"id": 2, "image_id": 1, "category_id": 7, "segmentation": {second}}}]}}"#
            )
        };
        let open = |first: &str, second: &str| {
            let text = list(first, second);
            let tree = Tree::new().text("annotations/instances_train.json", &text);
            let dataset = tree.png("train/a.jpg", 2, 2).open().unwrap();
            (mask::read(&dataset.train[0].truth, dataset.mask_rule, (2, 2), 1).unwrap(), dataset)
        };
        // The left column, and the upper right pixel.
        let forms = ["[[0, 0, 1, 0, 1, 2, 0, 2]]", r#"{"size": [2, 2], "counts": [0, 2, 2]}"#];
        let upper_right = r#"{"size": [2, 2], "counts": "211"}"#;
        for form in forms {
            let (found, dataset) = open(form, upper_right);
            assert_eq!(found.unwrap().foreground, [true, true, true, false], "{form}");
            assert_eq!(kinds(&dataset), ["single-class"]);
        }
        for damaged in
            ["[[1, 2, 3]]", r#"{"size": [2, 2], "counts": "9"}"#, "3", r#"{"counts": []}"#]
        {
            let (found, dataset) = open(damaged, upper_right);
            assert_eq!(found, None, "{damaged}");
            assert_eq!(kinds(&dataset), ["unreadable-mask", "single-class"], "{damaged}");
            let text = &dataset.problems[0].text;
            assert!(text.starts_with("annotation 1 of `a.jpg` cannot be drawn"), "{text}");
        }
        assert_eq!(open("[]", upper_right).0, None, "an object nobody knows where");
    }

    #[test]
    fn a_file_that_is_none_of_instances_is_a_problem() {
        for text in ["", "[]", "{\"images\": [], \"annotations\": [{}], \"categories\": []}"] {
            let tree = Tree::new().text("annotations/instances_train.json", text);
            let message = tree.open().unwrap_err().to_string();
            assert!(message.contains("instances cannot be read"), "{message}");
        }
    }
}
