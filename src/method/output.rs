//! What a network gives for an image.

/// Class probabilities and pixel scores of one image: what the network gave and no more.
///
/// A [`Prediction`](crate::Prediction) is what is made of it for a user: refined, cut and named.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOutput {
    /// Probability of each class, by the classifier; none for a method without one.
    pub classifier: Option<Vec<f32>>,
    /// Probability of each class, by the localizer, if that is another network.
    pub localizer: Option<Vec<f32>>,
    /// Soft mask, row by row, 1 is foreground; one half is where the method itself would cut.
    ///
    /// One score per pixel of the network's input, or of the image itself once the preprocessing
    /// is undone.
    pub scores: Vec<f32>,
}

/// The index of the largest value, the first of equals.
pub fn most_probable(probabilities: &[f32]) -> usize {
    let larger = |best: usize, next: usize| {
        if probabilities[next] > probabilities[best] { next } else { best }
    };
    (0..probabilities.len()).reduce(larger).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_most_probable() {
        assert_eq!(most_probable(&[0.2, 0.4, 0.4]), 1);
        assert_eq!(most_probable(&[]), 0);
    }
}
