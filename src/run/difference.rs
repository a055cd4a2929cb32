//! The differences between two settings.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::config::Config;

/// The settings that differ, one per line.
pub(crate) fn difference(before: &Config, now: &Config) -> Vec<String> {
    let leaves = |config: &Config| {
        let mut leaves = BTreeMap::new();
        let table = Table::try_from(config).expect("settings are plain data");
        flatten("", &table, &mut leaves);
        leaves
    };
    let (before, now) = (leaves(before), leaves(now));
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed = keys.into_iter().filter_map(|key| {
        let [was, is] = [&before, &now].map(|leaves| leaves.get(key).map_or("unset", |it| it));
        (was != is).then(|| format!("  `{key}` was {was}, is {is}"))
    });
    changed.collect()
}

fn flatten(prefix: &str, table: &Table, leaves: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        match value {
            Value::Table(group) => flatten(&format!("{prefix}{key}."), group, leaves),
            leaf => drop(leaves.insert(format!("{prefix}{key}"), leaf.to_string())),
        }
    }
}
