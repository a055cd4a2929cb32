//! Weight files that others have published, and how to know them.

use std::path::Path;

use crate::{
    digest::Digest,
    error::{Error, Result},
    regular,
};

/// A published weight file; its name ends in the first digits of its SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFile {
    /// The file's name, as published.
    pub name: &'static str,
    /// The `model.backbone` it fits; all have `model.stem = "classic"`.
    pub backbone: &'static str,
    /// What it was trained on, and how well it classifies there.
    pub training: &'static str,
}

/// Where torchvision publishes its files.
pub const SOURCE: &str = "https://download.pytorch.org/models/";

/// The files of torchvision that fit our backbones.
pub const KNOWN_FILES: &[KnownFile] = &[
    known("resnet18-f37072fd.pth", "resnet18", "ImageNet-1K, 69.76 % top-1"),
    known("resnet34-b627a593.pth", "resnet34", "ImageNet-1K, 73.31 % top-1"),
    known("resnet50-0676ba61.pth", "resnet50", "ImageNet-1K, 76.13 % top-1"),
    known("resnet50-11ad3fa6.pth", "resnet50", "ImageNet-1K, 80.86 % top-1"),
    known("resnet101-63fe2227.pth", "resnet101", "ImageNet-1K, 77.37 % top-1"),
    known("resnet101-cd907fc2.pth", "resnet101", "ImageNet-1K, 81.89 % top-1"),
];

const fn known(name: &'static str, backbone: &'static str, training: &'static str) -> KnownFile {
    KnownFile { name, backbone, training }
}

impl KnownFile {
    /// The first digits of the file's SHA-256.
    pub fn hash_prefix(&self) -> &'static str {
        let stem = self.name.trim_end_matches(".pth");
        stem.rsplit('-').next().unwrap_or(stem)
    }
}

/// Refuses a file that bears a known name but not its content.
pub fn verify(path: &Path) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(known) = KNOWN_FILES.iter().find(|file| Some(file.name) == name) else {
        return Ok(());
    };
    let file = regular::open(path).map_err(Error::file("read", path))?;
    let mut digest = Digest::default();
    digest.add_all(file).map_err(Error::file("read", path))?;
    let hash = digest.hex();
    if hash.starts_with(known.hash_prefix()) {
        return Ok(());
    }
    Err(Error::Weights {
        path: path.to_owned(),
        problem: format!("not the published file of that name (its SHA-256 is {hash})"),
        remedy: format!("fetch it again from {SOURCE}{}, or rename it", known.name),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_known_name_must_have_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resnet18-f37072fd.pth");
        fs::write(&path, b"something else").unwrap();
        let message = verify(&path).unwrap_err().to_string();
        assert!(message.contains("not the published file"), "{message}");
        let path = folder.path().join("mine.pth");
        fs::write(&path, b"something else").unwrap();
        verify(&path).unwrap();
    }

    #[test]
    fn names_end_in_their_hash() {
        assert_eq!(KNOWN_FILES[0].hash_prefix(), "f37072fd");
    }
}
