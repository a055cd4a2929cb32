//! The set-ups of `configs/`, built into the command and known by name.

use std::path::Path;

use pinpoint::{Error, config::Experiment};

macro_rules! shipped {
    ($($name:literal),*) => {
        /// Each set-up: its name, its file and what is in it.
        const SHIPPED: &[(&str, &str, &str)] = &[$((
            $name,
            concat!("configs/", $name, ".toml"),
            include_str!(concat!("../../../configs/", $name, ".toml")),
        )),*];
    };
}

shipped!(
    "glas",
    "glas-cpu",
    "cub5",
    "cub5-cpu",
    "cub",
    "cub-cpu",
    "oxford-flowers",
    "oxford-flowers-cpu",
    "synthetic"
);

/// The set-up of that name, one of `configs/`.
pub(crate) fn named(name: &str) -> Option<Result<Experiment, Error>> {
    let (_, file, text) = SHIPPED.iter().find(|(known, ..)| *known == name)?;
    Some(Experiment::parse(text, Path::new(file)))
}

/// A settings file, or the shipped set-up of that name if there is no such file.
pub(crate) fn file_or_name(path: &Path) -> Result<Experiment, Error> {
    match path.to_str().and_then(named) {
        Some(shipped) if !path.exists() => shipped,
        _ => Experiment::load(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_up_is_known_by_its_name_and_can_be_used() {
        for (name, ..) in SHIPPED {
            named(name).unwrap().unwrap();
            file_or_name(Path::new(name)).unwrap();
        }
        assert!(named("pets").is_none());
        let message = file_or_name(Path::new("pets.toml")).unwrap_err().to_string();
        assert!(message.contains("pets.toml"), "{message}");
    }
}
