//! PyTorch's `.pth` files: pickles, which are interpreted and never executed, so that only tensors
//! come out of them.

use std::path::Path;

use burn::store::pytorch_reader::{DType as TorchType, PytorchReader};
use safetensors::Dtype;

use super::{Arrays, broken, decoder};
use crate::{
    error::{Error, Result},
    model::params::Array,
};

pub(super) fn read(path: &Path) -> Result<Arrays> {
    let reader = PytorchReader::new(path).map_err(|error| broken(path, &error))?;
    // Training checkpoints keep the weights one level down.
    let reader = match reader.keys().iter().any(|key| key.starts_with("state_dict.")) {
        true => PytorchReader::with_top_level_key(path, "state_dict")
            .map_err(|error| broken(path, &error))?,
        false => reader,
    };
    let mut names = reader.keys();
    names.sort_unstable();
    let mut arrays = Arrays::new();
    for name in names {
        let Some(found) = reader.get(&name) else { continue };
        let dtype = match found.dtype() {
            TorchType::F32 => Dtype::F32,
            TorchType::F64 => Dtype::F64,
            TorchType::F16 => Dtype::F16,
            TorchType::BF16 => Dtype::BF16,
            _ => continue,
        };
        let decode = decoder(dtype).expect("these are floats");
        let shape = found.shape().to_vec();
        let mut values = Vec::new();
        decode(&found.read().map_err(Error::file("read", path))?, &mut values);
        if values.len() != shape.iter().product::<usize>() {
            return Err(broken(path, &format!("`{name}` is cut short")));
        }
        arrays.insert(name, Array { shape, values });
    }
    Ok(arrays)
}
