//! Weight files: safetensors in and out, PyTorch's `.pth` in.

mod pytorch_file;
mod safetensors_file;

use std::{collections::BTreeMap, fmt, io::Read as _, path::Path};

use burn::module::Module;
use half::{bf16, f16};
use safetensors::Dtype;

use self::safetensors_file::SafetensorsFile;
pub use self::safetensors_file::{Noted, read_note, read_with_note, write};
pub(crate) use self::safetensors_file::{read_some, write_some_in_half};
use super::{
    known::verify,
    layers::tensor,
    params::{self, Array, Description},
    role::{Part, Role},
};
use crate::{
    error::{Error, Result},
    regular,
};

/// Tensors by name.
pub type Arrays = BTreeMap<String, Array>;

/// What became of the tensors of a weight file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Names that were found and loaded.
    pub loaded: Vec<String>,
    /// Names in the file that the model has no place for.
    pub skipped: Vec<String>,
    /// Names of the model that the file does not have; they keep their drawn values.
    pub missing: Vec<String>,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tensors loaded", self.loaded.len())?;
        for (kind, names) in [("skipped", &self.skipped), ("missing", &self.missing)] {
            if !names.is_empty() {
                write!(f, "; {} {kind}: {}", names.len(), names.join(", "))?;
            }
        }
        Ok(())
    }
}

/// Reads a weight file of either kind, told apart by content.
///
/// A file with a published name must also have the published content.
pub fn read(path: &Path) -> Result<Arrays> {
    verify(path)?;
    let mut start = [0; 9];
    let mut file = regular::open(path).map_err(Error::file("read", path))?;
    let length = file.read(&mut start).map_err(Error::file("read", path))?;
    // A safetensors file starts with the length of its JSON header.
    if length == 9 && start[8] == b'{' {
        SafetensorsFile::open(path)?.arrays()
    } else {
        pytorch_file::read(path)
    }
}

/// Puts the tensors of a weight file into a model, by name.
///
/// Tensors of the same name must have the same shape, and at least the backbone
/// must be there; heads of another task and torchvision's `fc` are skipped.
pub fn load<M: Module>(model: M, path: &Path, arrays: Arrays) -> Result<(M, Loaded)> {
    let mut arrays: Arrays =
        arrays.into_iter().map(|(name, array)| (our_name(&name), array)).collect();
    let names: Vec<String> = arrays.keys().cloned().collect();
    let mut report = Loaded::default();
    let mut misfits = Vec::new();
    let mut absent = Vec::new();
    let model = params::map_described(model, |wanted, weights| {
        let Description { name, part, shape, .. } = wanted;
        match take(&mut arrays, wanted) {
            Some(array) if array.shape == *shape => {
                report.loaded.push(name.clone());
                let length = array.values.len();
                return tensor(array.values, [length], &weights.device());
            }
            // A head for other classes is no reason to refuse a backbone.
            _ if *part == Some(Part::Head) => report.missing.push(name.clone()),
            Some(Array { shape: found, .. }) => {
                misfits.push(format!("`{name}` is {found:?} where the model has {shape:?}"));
            }
            None => absent.push(format!("`{name}` is missing")),
        }
        weights
    });
    report.skipped = names.into_iter().filter(|name| !report.loaded.contains(name)).collect();
    misfits.extend(absent);
    if misfits.is_empty() { Ok((model, report)) } else { Err(other_architecture(path, &misfits)) }
}

/// The array of a tensor; statistics of foregrounds start as those of whole images.
fn take(arrays: &mut Arrays, wanted: &Description) -> Option<Array> {
    let Description { name, role, .. } = wanted;
    let of_whole_images = |field: &str| {
        let layer = name.rsplit_once('.').map_or("", |(layer, _)| layer);
        arrays.get(&format!("{layer}.{field}"))
    };
    match role {
        Role::ForegroundStatistic(field) => {
            arrays.get(name).or_else(|| of_whole_images(field)).cloned()
        }
        // Statistics of whole images may be wanted once more, for foregrounds.
        Role::Statistic => arrays.get(name).cloned(),
        _ => arrays.remove(name),
    }
}

/// The name of a tensor in our models, from what other programs call it.
fn our_name(name: &str) -> String {
    let name = name.strip_prefix("module.").unwrap_or(name);
    let name = name.strip_prefix("backbone.").unwrap_or(name);
    name.replace("headseg.to_modalities.", "localizer.")
        .replace("cl32.to_modalities.", "classifier.")
}

/// Appends the numbers that bytes stand for.
type Decode = fn(&[u8], &mut Vec<f32>);

/// How floats of a type are read, which are little-endian; bytes of an incomplete last one are left
/// out. None for other numbers.
fn decoder(dtype: Dtype) -> Option<Decode> {
    fn each<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
        bytes.as_chunks().0.iter().copied()
    }
    let decode: Decode = match dtype {
        Dtype::F16 => |bytes, to| to.extend(each(bytes).map(|b| f16::from_le_bytes(b).to_f32())),
        Dtype::BF16 => |bytes, to| to.extend(each(bytes).map(|b| bf16::from_le_bytes(b).to_f32())),
        Dtype::F32 => |bytes, to| to.extend(each(bytes).map(f32::from_le_bytes)),
        Dtype::F64 => |bytes, to| to.extend(each(bytes).map(|b| f64::from_le_bytes(b) as f32)),
        _ => return None,
    };
    Some(decode)
}

fn broken(path: &Path, reason: &dyn fmt::Display) -> Error {
    Error::Weights {
        path: path.to_owned(),
        problem: format!("not a usable weight file ({reason})"),
        remedy:
            "give a `.safetensors` file, or a `.pth` file with a state dict; fetch it again if \
                 it was cut short"
                .to_owned(),
    }
}

fn other_architecture(path: &Path, misfits: &[String]) -> Error {
    const SHOWN: usize = 3;
    let more = misfits.len().saturating_sub(SHOWN);
    let mut shown = misfits[..misfits.len().min(SHOWN)].join(", ");
    if more > 0 {
        shown.push_str(&format!(", and {more} more"));
    }
    Error::Weights {
        path: path.to_owned(),
        problem: format!("weights of another architecture ({shown})"),
        remedy: "set `model.backbone` and `model.stem` to what the weights were trained with; \
                 torchvision's have `stem = \"classic\"`"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        config::{Backbone, Config},
        device,
        model::Model,
    };

    fn model(classes: usize, seed: u64) -> Model {
        let mut config = Config { seed, ..Config::default() };
        config.model.backbone = Backbone::Tiny;
        Model::new(&config, classes, &device::cpu())
    }

    #[test]
    fn what_is_written_is_read_back_with_its_note() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let arrays = params::collect(&model(2, 1));
        let written = || {
            let mut bytes = Vec::new();
            write(&mut bytes, &arrays, &["benign", "malignant"]).unwrap();
            bytes
        };
        let first = written();
        fs::write(&path, &first).unwrap();
        let read = read_with_note::<Vec<String>>(&path).unwrap();
        assert!(read.arrays == arrays && read.note == ["benign", "malignant"] && read.verified);
        // The same content gives the same bytes, or runs could not be compared.
        assert!(first == written());
    }

    #[test]
    fn a_backbone_loads_by_name_under_any_prefix_and_heads_of_other_classes_are_kept() {
        let source = params::collect(&model(5, 1));
        let prefixed: Arrays =
            source.iter().map(|(name, array)| (format!("module.{name}"), array.clone())).collect();
        let (loaded, report) = load(model(2, 2), Path::new("w"), prefixed).unwrap();
        let loaded = params::collect(&loaded);
        assert_eq!(loaded["layer3.0.conv1.weight"], source["layer3.0.conv1.weight"]);
        assert_eq!(report.missing.len(), 4, "{:?}", report.missing);
        assert_eq!(loaded["localizer.weight"], params::collect(&model(2, 2))["localizer.weight"]);
    }

    #[test]
    fn an_incomplete_backbone_is_refused() {
        let mut arrays = params::collect(&model(2, 1));
        arrays.remove("layer2.0.bn1.bias");
        let message = load(model(2, 2), Path::new("w.pth"), arrays).unwrap_err().to_string();
        assert!(message.contains("layer2.0.bn1.bias") && message.contains("w.pth"), "{message}");
    }
}
