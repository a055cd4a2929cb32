//! What PyTorch said, and how close we must come.

use std::{collections::BTreeMap, path::Path};

use burn::{module::Module, tensor::Tensor};
use pinpoint::model::{
    params::{self, Array},
    role::Role,
    weights::{self, Arrays},
};

use super::formula::words;

/// Sum, three dot products with random signs, and L2 norm.
const PROJECTIONS: usize = 5;

/// The stored results.
pub(super) struct Fixture(Arrays);

impl Fixture {
    /// The results for our own method.
    pub(super) fn load() -> Self {
        Self::open("method.safetensors")
    }

    pub(super) fn open(file: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
        Self(weights::read(&folder.join(file)).unwrap())
    }

    /// A stored tensor, flat.
    pub(super) fn get(&self, name: &str) -> &[f32] {
        &self.array(name).values
    }

    pub(super) fn array(&self, name: &str) -> &Array {
        self.0.get(name).unwrap_or_else(|| panic!("`{name}` is not in the fixture"))
    }

    /// Stored whole numbers.
    pub(super) fn counts(&self, name: &str) -> Vec<usize> {
        self.get(name).iter().map(|&value| value as usize).collect()
    }

    /// Compares every value; `tolerance` is absolute.
    pub(super) fn assert_close(&self, name: &str, found: &[f32], tolerance: f32) {
        let expected = self.get(name);
        assert_eq!(found.len(), expected.len(), "{name}: number of values");
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            let error = (found - expected).abs();
            assert!(error <= tolerance, "{name}[{index}]: {found}, PyTorch {expected}");
        }
    }

    /// Compares the projections of tensors.
    ///
    /// `tolerance` is relative to a tensor's norm, or to a projection that is larger: values
    /// of one sign add up, and so does their rounding. `floor` is an absolute error to allow
    /// a tensor of that name.
    pub(super) fn assert_rows(
        &self,
        name: &str,
        found: &BTreeMap<String, Vec<f32>>,
        tolerance: f64,
        floor: impl Fn(&str) -> f64,
    ) {
        let rows: Vec<&[f32]> = self.get(name).chunks_exact(PROJECTIONS).collect();
        assert_eq!(found.len(), rows.len(), "{name}: number of tensors");
        for ((key, values), expected) in found.iter().zip(rows) {
            let (found, norm) = (project(key, values), expected[PROJECTIONS - 1]);
            let near = |(&found, &expected): (&f64, &f32)| {
                let scale = f64::from(norm.max(expected.abs()));
                (found - f64::from(expected)).abs() <= tolerance * scale + floor(key)
            };
            let all_near = found.iter().zip(expected).all(near);
            assert!(all_near, "{name}, {key}: {found:?}, PyTorch {expected:?}");
        }
    }

    /// Compares the projections of one tensor.
    pub(super) fn assert_row(&self, name: &str, key: &str, found: &[f32], tolerance: f64) {
        let found = BTreeMap::from([(key.to_owned(), found.to_vec())]);
        self.assert_rows(name, &found, tolerance, |_| 0.0);
    }
}

/// Five numbers that stand for a large tensor.
///
/// The sum and the dot products with three vectors of random signs each move by about
/// the size of an error, unless the error happens to be orthogonal to all four
/// directions; the norm sees a wrong scale.
pub(super) fn project(name: &str, values: &[f32]) -> [f64; PROJECTIONS] {
    let signs = [0, 1, 2].map(|k| words(&format!("{name}/sign{k}")));
    let mut sums = [0.0; PROJECTIONS];
    for (index, &value) in values.iter().enumerate() {
        let value = f64::from(value);
        sums[0] += value;
        for (sum, sign) in sums[1..].iter_mut().zip(&signs) {
            *sum += if sign(index) < 1 << 31 { value } else { -value };
        }
        sums[PROJECTIONS - 1] += value * value;
    }
    sums[PROJECTIONS - 1] = sums[PROJECTIONS - 1].sqrt();
    sums
}

/// The values of a tensor.
pub(super) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// The weights of a module, by name; without the running statistics.
pub(super) fn learned(module: &impl Module) -> BTreeMap<String, Vec<f32>> {
    by_role(module, |role| !role.is_statistic())
}

/// The running statistics of a module, by name.
pub(super) fn statistics(module: &impl Module) -> BTreeMap<String, Vec<f32>> {
    by_role(module, Role::is_statistic)
}

fn by_role(module: &impl Module, wanted: impl Fn(Role) -> bool) -> BTreeMap<String, Vec<f32>> {
    let mut arrays = params::collect(module);
    for tensor in params::describe(module).iter().filter(|tensor| !wanted(tensor.role)) {
        arrays.remove(&tensor.name);
    }
    arrays.into_iter().map(|(name, array)| (name, array.values)).collect()
}
