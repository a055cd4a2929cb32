//! The regions of a mask as JSON, CSV and GeoJSON.
//!
//! Boxes are in pixels of the image, `x0 ≤ x < x1` from the left and `y0 ≤ y < y1` from the
//! top. The area is the number of pixels of the region itself, the score their mean.

use serde_json::{Value, json};

use super::spreadsheet;
use crate::{
    formats::{
        contour::Polygon,
        geojson::{self, About},
    },
    metrics::Component,
};

/// The regions that were found in an image.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ImageRegions<'a> {
    pub image: &'a str,
    /// Width and height.
    pub size: (u32, u32),
    /// What the image was taken for, if for anything.
    pub class: Option<&'a str>,
    pub regions: &'a [Component],
}

impl ImageRegions<'_> {
    /// One document: the image and its boxes, the largest first.
    pub fn to_json(&self) -> String {
        let record = |region: &Component| {
            let [x0, y0, x1, y1] = corners(region);
            json!({
                "x0": x0, "y0": y0, "x1": x1, "y1": y1, "area": region.pixels,
                "score": region.score,
            })
        };
        let boxes: Vec<Value> = self.regions.iter().map(record).collect();
        let (width, height) = self.size;
        let Self { image, class, .. } = *self;
        let document = json!({
            "image": image, "width": width, "height": height, "class": class, "boxes": boxes,
        });
        format!("{document:#}\n")
    }

    /// A header and one row per box, the largest first.
    pub fn to_csv(&self) -> String {
        let header = ["image", "class", "x0", "y0", "x1", "y1", "area", "score"];
        let names = [self.image, self.class.unwrap_or_default()].map(spreadsheet::name);
        let row = |region: &Component| {
            let numbers = corners(region).map(|corner| corner.to_string());
            let measures = [region.pixels.to_string(), region.score.to_string()];
            names.iter().cloned().chain(numbers).chain(measures).collect::<Vec<String>>()
        };
        spreadsheet::csv(&header, self.regions.iter().map(row))
    }

    /// A `FeatureCollection` (RFC 7946) of annotations, as QuPath reads and writes it.
    ///
    /// Coordinates are pixels, not degrees. Rings run counterclockwise in them, as the standard
    /// asks; on a screen, where `y` points down, that is clockwise.
    pub fn to_geojson(&self) -> String {
        let about = About { class: self.class, colour: None, probability: None };
        let feature = |region: &Component| {
            let [x0, y0, x1, y1] = corners(region);
            let outer = vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
            let rectangle = geojson::geometry(&[Polygon { outer, holes: Vec::new() }]);
            geojson::feature(rectangle, region, about)
        };
        geojson::collection(&self.regions.iter().map(feature).collect::<Vec<Value>>())
    }
}

/// The box's corners, which for regions of pixels are whole numbers.
fn corners(region: &Component) -> [u32; 4] {
    let bounds = region.bounds;
    [bounds.x0, bounds.y0, bounds.x1, bounds.y1].map(|corner| corner as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::PixelBox;

    fn regions() -> [Component; 1] {
        let bounds = PixelBox { x0: 2.0, y0: 3.0, x1: 7.0, y1: 5.0 };
        [Component { bounds, pixels: 8, score: 0.75 }]
    }

    fn found<'a>(regions: &'a [Component], class: Option<&'a str>) -> ImageRegions<'a> {
        ImageRegions { image: "a, b.png", size: (10, 6), class, regions }
    }

    #[test]
    fn json_has_the_image_and_its_boxes() {
        let document: Value =
            serde_json::from_str(&found(&regions(), Some("cat")).to_json()).unwrap();
        assert_eq!(document["image"], "a, b.png");
        assert_eq!((&document["width"], &document["class"]), (&json!(10), &json!("cat")));
        let expected = json!({"x0": 2, "y0": 3, "x1": 7, "y1": 5, "area": 8, "score": 0.75});
        assert_eq!(document["boxes"], json!([expected]));
    }

    #[test]
    fn csv_has_a_header_even_without_boxes_and_quotes_what_needs_it() {
        let header = "image,class,x0,y0,x1,y1,area,score\n";
        assert_eq!(found(&[], None).to_csv(), header);
        let expected = format!("{header}\"a, b.png\",,2,3,7,5,8,0.75\n");
        assert_eq!(found(&regions(), None).to_csv(), expected);
    }

    #[test]
    fn geojson_has_a_closed_ring_of_positive_area() {
        let document: Value =
            serde_json::from_str(&found(&regions(), Some("cat")).to_geojson()).unwrap();
        let feature = &document["features"][0];
        assert_eq!(feature["properties"]["classification"]["name"], "cat");
        let ring = feature["geometry"]["coordinates"][0].as_array().unwrap();
        let corner = |i: usize| [0, 1].map(|axis| ring[i][axis].as_f64().unwrap());
        assert_eq!((ring.len(), corner(0)), (5, corner(4)));
        let cross = |i: usize| corner(i)[0] * corner(i + 1)[1] - corner(i + 1)[0] * corner(i)[1];
        // The shoelace formula; positive is the standard's order of an outer ring.
        assert_eq!((0..4).map(cross).sum::<f64>() / 2.0, 10.0);
    }
}
