//! The confusion matrix.

use serde::{Deserialize, Serialize};

/// How often images of each class were given each class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Confusion {
    /// One row per true class, one column per predicted class.
    counts: Vec<Vec<u64>>,
}

impl Confusion {
    /// Nothing seen yet of `classes` classes.
    pub fn new(classes: usize) -> Self {
        Self { counts: vec![vec![0; classes]; classes] }
    }

    /// Counts one image.
    pub fn accumulate(&mut self, label: usize, predicted: usize) {
        let classes = self.counts.len();
        assert!(
            label < classes && predicted < classes,
            "classes {label} and {predicted} are below {classes}"
        );
        self.counts[label][predicted] += 1;
    }

    /// One row per true class, one column per predicted class.
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// The number of images seen.
    pub fn images(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Share of wrong images in percent; `None` before the first one.
    pub fn error(&self) -> Option<f64> {
        let right: u64 = self.counts.iter().enumerate().map(|(class, row)| row[class]).sum();
        error_percent(right, self.images())
    }

    /// Share of wrong images of one class in percent; `None` if it has no image.
    pub fn class_error(&self, class: usize) -> Option<f64> {
        error_percent(self.counts[class][class], self.counts[class].iter().sum())
    }
}

fn error_percent(right: u64, images: u64) -> Option<f64> {
    (images > 0).then(|| 100.0 * (images - right) as f64 / images as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_all_images_and_of_each_class() {
        let mut confusion = Confusion::new(3);
        for (label, predicted) in [(0, 0), (0, 1), (1, 1), (1, 1), (1, 0)] {
            confusion.accumulate(label, predicted);
        }
        assert_eq!(confusion.counts(), [vec![1, 1, 0], vec![1, 2, 0], vec![0, 0, 0]]);
        assert_eq!(confusion.error(), Some(40.0));
        assert_eq!(confusion.class_error(0), Some(50.0));
        assert_eq!(confusion.class_error(2), None);
        assert_eq!(Confusion::new(2).error(), None);
    }
}
