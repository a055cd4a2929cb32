//! Where a point falls in the lattice: the corners of its simplex, and how much of it each gets.

use super::key::KeyMap;

/// Points embedded together, so that the arithmetic runs in vector registers.
pub(crate) const BATCH: usize = 8;

/// Features of a batch, feature-major; the last row is unused (`V` is one more than they are).
pub(crate) type Features<const V: usize> = [[f32; BATCH]; V];

/// Corners of the simplices around a batch of points.
pub(super) struct Simplices<const V: usize> {
    pub(super) keys: [[u64; V]; BATCH],
    /// Barycentric weights of the corners: not negative, summing to one.
    pub(super) weights: [[f32; V]; BATCH],
}

/// The embedding of feature space into the lattice's hyperplane.
#[derive(Debug, Clone)]
pub(super) struct Embedding<const V: usize> {
    scale: [f32; V],
    pub(super) map: KeyMap<V>,
}

impl<const V: usize> Embedding<V> {
    const PER_CELL: f32 = 1.0 / V as f32;

    /// For features between `low` and `high`; `None` if keys would not fit.
    pub(super) fn new(low: &[f32; V], high: &[f32; V]) -> Option<Self> {
        let scale = axis_scales::<V>();
        let scaled = |bounds: &[f32; V]| std::array::from_fn(|axis| bounds[axis] * scale[axis]);
        Some(Self { scale, map: KeyMap::new(&scaled(low), &scaled(high))? })
    }

    /// Finds the simplex around each point of a batch.
    pub(super) fn embed(&self, features: &Features<V>) -> Simplices<V> {
        let elevated = self.elevate(features);
        let mut quotient = [[0_i32; BATCH]; V];
        let mut excess = [[0.0_f32; BATCH]; V];
        for axis in 0..V {
            for lane in 0..BATCH {
                let (whole, whole_f32) = round(elevated[axis][lane] * Self::PER_CELL);
                quotient[axis][lane] = whole;
                excess[axis][lane] = elevated[axis][lane] - whole_f32 * V as f32;
            }
        }
        let mut rank = ranks(&excess);
        settle(&mut quotient, &mut rank, &mut excess);
        self.corners(&quotient, &rank, &excess)
    }

    /// Maps features to the hyperplane where coordinates sum to zero.
    #[inline(always)]
    fn elevate(&self, features: &Features<V>) -> [[f32; BATCH]; V] {
        let mut elevated = [[0.0; BATCH]; V];
        let mut sum = [0.0; BATCH];
        for axis in (1..V).rev() {
            for lane in 0..BATCH {
                let scaled = features[axis - 1][lane] * self.scale[axis - 1];
                elevated[axis][lane] = sum[lane] - axis as f32 * scaled;
                sum[lane] += scaled;
            }
        }
        elevated[0] = sum;
        elevated
    }

    /// Walks each simplex from its remainder-zero corner, one lattice step per corner.
    #[inline(always)]
    fn corners(
        &self,
        quotient: &[[i32; BATCH]; V],
        rank: &[[i32; BATCH]; V],
        excess: &[[f32; BATCH]; V],
    ) -> Simplices<V> {
        let mut simplices = Simplices { keys: [[0; V]; BATCH], weights: [[0.0; V]; BATCH] };
        for lane in 0..BATCH {
            let mut step = [0_i64; V];
            let mut fraction = [0.0_f32; V];
            for axis in 0..V {
                let rank = rank[axis][lane] as usize;
                step[rank] = self.map.step[axis];
                fraction[rank] = excess[axis][lane] * Self::PER_CELL;
            }
            let mut key = self.map.key(|axis| quotient[axis][lane]);
            simplices.keys[lane][0] = key as u64;
            simplices.weights[lane][0] = 1.0 + fraction[V - 1] - fraction[0];
            for corner in 1..V {
                key += step[V - corner];
                simplices.keys[lane][corner] = key as u64;
                simplices.weights[lane][corner] = fraction[V - 1 - corner] - fraction[V - corner];
            }
        }
        simplices
    }
}

/// Scale per feature that makes the lattice's blur a Gaussian of unit deviation.
fn axis_scales<const V: usize>() -> [f32; V] {
    // Rounded where the original implementation rounds, so that the same pixels share points.
    let deviation = f64::from(((2.0_f64 / 3.0).sqrt() * V as f64) as f32);
    std::array::from_fn(|axis| (1.0 / (((axis + 1) * (axis + 2)) as f64).sqrt() * deviation) as f32)
}

/// Nearest whole number, as both types; x86-64 without extensions has no instruction for it.
#[inline(always)]
fn round(value: f32) -> (i32, f32) {
    // Adding 1.5·2²³ pushes the fraction out of the mantissa; the rest is the integer itself.
    const SHIFT: f32 = 12_582_912.0;
    let shifted = value + SHIFT;
    (shifted.to_bits() as i32 - SHIFT.to_bits() as i32, shifted - SHIFT)
}

/// Position of each coordinate's excess in descending order; of equal ones the earlier comes first.
#[inline(always)]
fn ranks<const V: usize>(excess: &[[f32; BATCH]; V]) -> [[i32; BATCH]; V] {
    let mut rank = [[0; BATCH]; V];
    for i in 0..V {
        for j in i + 1..V {
            for lane in 0..BATCH {
                let less = i32::from(excess[i][lane] < excess[j][lane]);
                rank[i][lane] += less;
                rank[j][lane] += 1 - less;
            }
        }
    }
    rank
}

/// Moves a rounded point whose coordinates do not sum to zero back onto the hyperplane.
#[inline(always)]
fn settle<const V: usize>(
    quotient: &mut [[i32; BATCH]; V],
    rank: &mut [[i32; BATCH]; V],
    excess: &mut [[f32; BATCH]; V],
) {
    let v = V as i32;
    let mut sum = [0; BATCH];
    for quotient in &*quotient {
        for lane in 0..BATCH {
            sum[lane] += quotient[lane];
        }
    }
    for axis in 0..V {
        for lane in 0..BATCH {
            let shifted = rank[axis][lane] + sum[lane];
            let up = i32::from(shifted < 0) - i32::from(shifted >= v);
            rank[axis][lane] = shifted + up * v;
            quotient[axis][lane] += up;
            excess[axis][lane] -= (up * v) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_origin_is_a_corner_of_its_own_simplex() {
        let embedding = Embedding::<3>::new(&[-9.0; 3], &[9.0; 3]).unwrap();
        let simplices = embedding.embed(&[[0.0; BATCH]; 3]);
        assert_eq!(simplices.weights[0], [1.0, 0.0, 0.0]);
        assert_eq!(simplices.keys[0][0] as i64, embedding.map.key(|_| 0));
    }

    #[test]
    fn the_scales_in_two_dimensions_are_root_three_and_one() {
        let [x, y, _] = axis_scales::<3>();
        assert!((x - 3_f32.sqrt()).abs() < 1e-6 && (y - 1.0).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn weights_are_barycentric_and_corners_distinct(
            point in prop::array::uniform5(0.0_f32..80.0),
        ) {
            let embedding = Embedding::<6>::new(&[0.0; 6], &[80.0; 6]).unwrap();
            let features = std::array::from_fn(|axis| [*point.get(axis).unwrap_or(&0.0); BATCH]);
            let Simplices { keys, weights } = embedding.embed(&features);
            prop_assert!(weights[0].iter().all(|&w| (-1e-4..=1.0001).contains(&w)), "{weights:?}");
            prop_assert!((weights[0].iter().sum::<f32>() - 1.0).abs() < 1e-4);
            let mut sorted = keys[0];
            sorted.sort_unstable();
            prop_assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(sorted[5] < 1 << embedding.map.bits);
        }
    }
}
