//! In what two settings differ.

use crate::config::Config;

/// The settings that differ, one per line.
pub(crate) fn difference(before: &Config, now: &Config) -> Vec<String> {
    let leaves = |config: &Config| {
        let mut leaves = Vec::new();
        let table = toml::Table::try_from(config).expect("settings are plain data");
        flatten("", &toml::Value::Table(table), &mut leaves);
        leaves
    };
    let (before, now) = (leaves(before), leaves(now));
    let value = |list: &[(String, String)], key: &str| {
        let found = list.iter().find(|(name, _)| name == key);
        found.map_or_else(|| "unset".to_owned(), |(_, value)| value.clone())
    };
    let mut keys: Vec<&String> = before.iter().chain(&now).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    let changed = keys.into_iter().filter_map(|key| {
        let (was, is) = (value(&before, key), value(&now, key));
        (was != is).then(|| format!("  `{key}` was {was}, is {is}"))
    });
    changed.collect()
}

fn flatten(prefix: &str, value: &toml::Value, leaves: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, leaves);
            }
        }
        leaf => leaves.push((prefix.to_owned(), leaf.to_string())),
    }
}
