//! Contours as GeoJSON (RFC 7946), as QuPath reads and writes it.
//!
//! Coordinates are pixels, not degrees, from the image's upper left corner.

use serde_json::{Value, json};

use super::contour::{Polygon, Ring, polygons};
use crate::metrics::{Component, RegionPixels};

/// What all regions of an image have in common.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The predicted class of the image, if there is one.
    pub class: Option<&'a str>,
    /// The colour of its regions; `None` leaves it to the other program.
    pub colour: Option<[u8; 3]>,
    /// The probability of that class.
    pub probability: Option<f32>,
}

/// One document: a feature for each region, the largest first.
pub fn document(regions: &[RegionPixels], about: About<'_>) -> String {
    let features: Vec<Value> = regions
        .iter()
        .map(|region| feature(geometry(&polygons(&region.runs)), &region.component, about))
        .collect();
    collection(&features)
}

/// A document of features.
pub fn collection(features: &[Value]) -> String {
    format!("{}\n", json!({ "type": "FeatureCollection", "features": features }))
}

/// An annotation of a region.
pub fn feature(geometry: Value, region: &Component, about: About<'_>) -> Value {
    let Component { pixels, score, .. } = region;
    // Shown by QuPath in the table of measurements.
    let mut measurements = json!({ "Area px^2": pixels, "Mean score": score });
    let mut properties = json!({ "objectType": "annotation", "area": pixels, "score": score });
    if let Some(class) = about.class {
        properties["classification"] = json!({ "name": class });
        if let Some(colour) = about.colour {
            properties["classification"]["color"] = json!(colour);
        }
    }
    if let Some(probability) = about.probability {
        measurements["Class probability"] = json!(probability);
    }
    properties["measurements"] = measurements;
    json!({ "type": "Feature", "geometry": geometry, "properties": properties })
}

/// A polygon, or several of one region.
pub fn geometry(polygons: &[Polygon]) -> Value {
    let rings = |polygon: &Polygon| -> Vec<Ring> {
        let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
        rings.map(|ring| ring.iter().chain(ring.first()).copied().collect()).collect()
    };
    match polygons {
        [polygon] => json!({ "type": "Polygon", "coordinates": rings(polygon) }),
        several => {
            let all: Vec<Vec<Ring>> = several.iter().map(rings).collect();
            json!({ "type": "MultiPolygon", "coordinates": all })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{ScoreMap, regions_at};

    #[test]
    fn a_region_with_a_hole_is_a_polygon_of_two_closed_rings() {
        let scores: Vec<f32> =
            [1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1].map(|x| x as f32).into();
        let regions = regions_at(&ScoreMap::new(4, 4, &scores).unwrap(), 0.5);
        let about =
            About { class: Some("gland"), colour: Some([0, 128, 0]), probability: Some(0.75) };
        let document: Value = serde_json::from_str(&document(&regions, about)).unwrap();
        let features = document["features"].as_array().unwrap();
        assert_eq!(features.len(), 1, "the last pixel touches by a corner");
        let geometry = &features[0]["geometry"];
        assert_eq!(geometry["type"], "MultiPolygon");
        let rings = geometry["coordinates"][0].as_array().unwrap();
        assert_eq!(rings.len(), 2);
        assert!(rings.iter().all(|ring| ring[0] == ring[ring.as_array().unwrap().len() - 1]));
        let properties = &features[0]["properties"];
        assert_eq!(properties["objectType"], "annotation");
        assert_eq!(properties["classification"], json!({ "name": "gland", "color": [0, 128, 0] }));
        assert_eq!(properties["measurements"]["Area px^2"], 9);
        assert_eq!(properties["measurements"]["Class probability"], 0.75);
    }
}
