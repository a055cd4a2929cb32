//! Regions of many images in one COCO file.
//!
//! An annotation is a region of a mask. Its segmentation is a run-length encoding, which is exact,
//! or a list of polygons, which more tools can edit; polygons of COCO have no holes, so that
//! regions with holes are always run lengths.

use serde::Serialize;

use super::{
    contour::{Polygon, polygons},
    rle,
};
use crate::metrics::RegionPixels;

/// How regions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segmentation {
    /// All as run lengths.
    RunLengths,
    /// As polygons, except those with holes.
    Polygons,
}

/// The content of a file, to which images are added.
#[derive(Debug, Serialize)]
pub struct Document {
    info: Info,
    images: Vec<Image>,
    categories: Vec<Category>,
    annotations: Vec<Annotation>,
    #[serde(skip)]
    segmentation: Segmentation,
}

#[derive(Debug, Serialize)]
struct Info {
    description: String,
}

#[derive(Debug, Serialize)]
struct Image {
    id: usize,
    file_name: String,
    width: u32,
    height: u32,
}

#[derive(Debug, Serialize)]
struct Category {
    id: usize,
    name: String,
}

#[derive(Debug, Serialize)]
struct Annotation {
    id: usize,
    image_id: usize,
    category_id: usize,
    segmentation: Written,
    area: u64,
    /// Left, top, width, height.
    bbox: [f32; 4],
    iscrowd: u8,
    score: f64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Written {
    RunLengths {
        /// Height and width.
        size: [u32; 2],
        counts: String,
    },
    Polygons(Vec<Vec<u32>>),
}

/// The category of regions if a method predicts no class.
const FOREGROUND: &str = "foreground";

impl Document {
    /// An empty file for images of some classes.
    pub fn new(description: &str, classes: &[String], segmentation: Segmentation) -> Self {
        let category =
            |(index, name): (usize, &String)| Category { id: index + 1, name: name.clone() };
        let categories = classes.iter().enumerate().map(category).collect();
        let info = Info { description: description.to_owned() };
        Self { info, images: Vec::new(), categories, annotations: Vec::new(), segmentation }
    }

    /// Adds an image and its regions; `class` is its place among the classes, if it has one.
    pub fn add(
        &mut self,
        file_name: &str,
        [width, height]: [u32; 2],
        class: Option<usize>,
        regions: &[RegionPixels],
    ) {
        let image_id = self.images.len() + 1;
        self.images.push(Image { id: image_id, file_name: file_name.to_owned(), width, height });
        let category_id = class.map_or_else(|| self.foreground(), |class| class + 1);
        for region in regions {
            let bounds = region.component.bounds;
            self.annotations.push(Annotation {
                id: self.annotations.len() + 1,
                image_id,
                category_id,
                segmentation: self.written(region, [width, height]),
                area: region.component.pixels,
                bbox: [bounds.x0, bounds.y0, bounds.x1 - bounds.x0, bounds.y1 - bounds.y0],
                iscrowd: 0,
                score: region.component.score,
            });
        }
    }

    /// The category of what has no class, added when it is first needed.
    fn foreground(&mut self) -> usize {
        let found = self.categories.iter().find(|category| category.name == FOREGROUND);
        found.map(|category| category.id).unwrap_or_else(|| {
            let id = self.categories.len() + 1;
            self.categories.push(Category { id, name: FOREGROUND.to_owned() });
            id
        })
    }

    fn written(&self, region: &RegionPixels, [width, height]: [u32; 2]) -> Written {
        if self.segmentation == Segmentation::Polygons {
            let polygons = polygons(&region.runs);
            if polygons.iter().all(|polygon| polygon.holes.is_empty()) {
                let flat = |polygon: &Polygon| polygon.outer.iter().flatten().copied().collect();
                return Written::Polygons(polygons.iter().map(flat).collect());
            }
        }
        let counts = rle::compressed(&rle::counts(&region.runs, [width, height]));
        Written::RunLengths { size: [height, width], counts }
    }

    /// Whether no image was added.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::metrics::{ScoreMap, regions_at};

    fn document(segmentation: Segmentation, class: Option<usize>) -> Value {
        // A frame with a hole, and a bar.
        let picture = ["###.#", "#.#.#", "###.."];
        let scores: Vec<f32> =
            picture.concat().chars().map(|pixel| if pixel == '#' { 0.75 } else { 0.0 }).collect();
        let regions = regions_at(&ScoreMap::new(5, 3, &scores).unwrap(), 0.5);
        let classes = ["cat", "dog"].map(str::to_owned);
        let mut document = Document::new("masks", &classes, segmentation);
        document.add("a.png", [5, 3], class, &regions);
        serde_json::from_str(&document.to_json()).unwrap()
    }

    #[test]
    fn run_lengths_are_written_with_boxes_areas_and_scores() {
        let document = document(Segmentation::RunLengths, Some(1));
        assert_eq!(
            document["images"],
            json!([{"id": 1, "file_name": "a.png", "width": 5, "height": 3}])
        );
        assert_eq!(document["categories"][1], json!({"id": 2, "name": "dog"}));
        let bar = &document["annotations"][1];
        assert_eq!(bar["segmentation"]["size"], json!([3, 5]));
        assert_eq!(bar["segmentation"]["counts"], "<21");
        assert_eq!((&bar["category_id"], &bar["area"]), (&json!(2), &json!(2)));
        assert_eq!(bar["bbox"], json!([4.0, 0.0, 1.0, 2.0]));
        assert_eq!(bar["score"], 0.75);
    }

    #[test]
    fn polygons_are_written_where_there_is_no_hole() {
        let document = document(Segmentation::Polygons, None);
        let [frame, bar] = [0, 1].map(|index| &document["annotations"][index]);
        assert!(frame["segmentation"]["counts"].is_string());
        assert_eq!(bar["segmentation"], json!([[4, 0, 5, 0, 5, 2, 4, 2]]));
        assert_eq!(document["categories"][2], json!({"id": 3, "name": "foreground"}));
        assert_eq!(bar["category_id"], 3);
    }
}
