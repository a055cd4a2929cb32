//! Flags that take one of a setting's names.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use pinpoint::data::Layout;
use serde::{
    Deserialize,
    de::{
        IntoDeserializer,
        value::{Error, StringDeserializer},
    },
};

/// Presets of the dense CRF.
pub(crate) const PRESETS: &[&str] = &["glas", "natural"];

const LAYOUTS: &[&str] = &[
    "glas",
    "cub",
    "oxford-flowers",
    "oxford-pets",
    "voc",
    "coco",
    "folders",
    "folds",
    "table",
    "wsol",
];

/// Parses the names that serde gives the variants of `T`.
pub(crate) fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: for<'de> Deserialize<'de> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| {
        let name: StringDeserializer<Error> = name.into_deserializer();
        T::deserialize(name)
    })
}

/// Parses the name of a dataset layout.
pub(crate) fn layout() -> impl TypedValueParser<Value = Layout> {
    named(LAYOUTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_can_be_asked_for() {
        let mut names = Layout::ALL.map(|layout| layout.to_string());
        let mut offered: Vec<_> = LAYOUTS.to_vec();
        names.sort_unstable();
        offered.sort_unstable();
        assert_eq!(offered, names);
    }
}
