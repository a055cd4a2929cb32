//! Published weight files, known by name and SHA-256.

use std::path::Path;

use crate::{
    config::{Backbone, Config, Normalization, Stem},
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
    pub backbone: Backbone,
    /// What it was trained on, and how well it classifies there.
    pub training: &'static str,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: &'static str,
}

/// The files of torchvision that fit the backbones here; of several for one backbone, the first is
/// meant by the backbone's name alone.
pub const KNOWN_FILES: &[KnownFile] = &[
    KnownFile {
        name: "resnet18-f37072fd.pth",
        backbone: Backbone::Resnet18,
        training: "ImageNet-1K, 69.76 % top-1",
        sha256: "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
    },
    KnownFile {
        name: "resnet34-b627a593.pth",
        backbone: Backbone::Resnet34,
        training: "ImageNet-1K, 73.31 % top-1",
        sha256: "b627a593bcbe140c234610266fe4f8ae95ea42fc881d091c9b6052e6b1d0590f",
    },
    KnownFile {
        name: "resnet50-0676ba61.pth",
        backbone: Backbone::Resnet50,
        training: "ImageNet-1K, 76.13 % top-1",
        sha256: "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
    },
    KnownFile {
        name: "resnet50-11ad3fa6.pth",
        backbone: Backbone::Resnet50,
        training: "ImageNet-1K, 80.86 % top-1",
        sha256: "11ad3fa62ca79e40addfd354a8ec4b7c75143b3038b8d2a807fbc68deab379ca",
    },
    KnownFile {
        name: "resnet101-63fe2227.pth",
        backbone: Backbone::Resnet101,
        training: "ImageNet-1K, 77.37 % top-1",
        sha256: "63fe2227b86e8f1f2063f43a75c84d195911b6a0eace650907dd3dc62dd49a0a",
    },
    KnownFile {
        name: "resnet101-cd907fc2.pth",
        backbone: Backbone::Resnet101,
        training: "ImageNet-1K, 81.89 % top-1",
        sha256: "cd907fc2a0de2292b2ba2b27d2216bc672d84632d1cf20058d01c0c03b5e020e",
    },
];

impl KnownFile {
    /// The file meant by a name: that of a backbone, or its own with or without the ending.
    pub fn named(name: &str) -> Option<&'static Self> {
        let is_meant = |file: &&Self| {
            file.backbone.name() == name
                || file.name == name
                || file.name.strip_suffix(".pth") == Some(name)
        };
        KNOWN_FILES.iter().find(is_meant)
    }

    /// The known file with the name of a path, whose content is not checked.
    pub fn at(path: &Path) -> Option<&'static Self> {
        let name = path.file_name()?.to_str()?;
        KNOWN_FILES.iter().find(|file| file.name == name)
    }

    /// Where torchvision publishes it.
    pub fn address(&self) -> String {
        format!("https://download.pytorch.org/models/{}", self.name)
    }

    /// Sets what the file was trained with.
    pub fn lay_over(&self, config: &mut Config) {
        config.model.backbone = self.backbone;
        config.model.stem = Stem::Classic;
        config.preprocess.normalization = Normalization::Imagenet;
    }

    /// For each setting that differs from what the file was trained with, what it should be, as
    /// `key = value`.
    pub fn disagreements(&self, config: &Config) -> Vec<String> {
        let backbone = format!("`model.backbone = \"{}\"`", self.backbone.name());
        let normalization = config.preprocess.normalization;
        let settings = [
            (config.model.backbone == self.backbone, backbone.as_str()),
            (config.model.stem == Stem::Classic, "`model.stem = \"classic\"`"),
            (normalization == Normalization::Imagenet, "`preprocess.normalization = \"imagenet\"`"),
        ];
        let other = settings.into_iter().filter(|(agrees, _)| !agrees);
        other.map(|(_, setting)| setting.to_owned()).collect()
    }
}

/// The SHA-256 of a file, in hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String> {
    let file = regular::open(path).map_err(Error::file("read", path))?;
    let mut digest = Digest::default();
    digest.add_all(file).map_err(Error::file("read", path))?;
    Ok(digest.hex())
}

/// Refuses a file that has a known name but other content.
pub fn verify(path: &Path) -> Result<()> {
    let Some(known) = KnownFile::at(path) else { return Ok(()) };
    let hash = sha256(path)?;
    if hash == known.sha256 {
        return Ok(());
    }
    Err(Error::Weights {
        path: path.to_owned(),
        problem: format!("not the published file of that name (its SHA-256 is {hash})"),
        remedy: format!("fetch it again from {}, or rename it", known.address()),
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
    fn names_end_in_the_first_digits_of_their_hash() {
        for file in KNOWN_FILES {
            let stem = file.name.strip_suffix(".pth").unwrap();
            let (backbone, prefix) = stem.split_once('-').unwrap();
            assert_eq!(backbone, file.backbone.name());
            assert!(file.sha256.starts_with(prefix) && file.sha256.len() == 64, "{}", file.name);
        }
    }

    #[test]
    fn a_backbone_s_name_stands_for_its_first_file() {
        let name = |asked| KnownFile::named(asked).map(|file| file.name);
        assert_eq!(name("resnet50"), Some("resnet50-0676ba61.pth"));
        assert_eq!(name("resnet50-11ad3fa6"), Some("resnet50-11ad3fa6.pth"));
        assert_eq!(name("resnet50-11ad3fa6.pth"), name("resnet50-11ad3fa6"));
        assert_eq!((name("tiny"), name("vgg16")), (None, None));
    }

    #[test]
    fn settings_that_follow_a_file_agree_with_it() {
        let file = KnownFile::named("resnet34").unwrap();
        let mut config = Config::default();
        assert_eq!(file.disagreements(&config).len(), 3);
        file.lay_over(&mut config);
        assert!(file.disagreements(&config).is_empty());
        config.preprocess.normalization = Normalization::Half;
        assert_eq!(file.disagreements(&config), ["`preprocess.normalization = \"imagenet\"`"]);
    }
}
