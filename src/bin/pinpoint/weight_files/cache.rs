//! Where fetched weights are kept.

use std::{env, path::PathBuf};

/// The file of that name in the user's cache; none if the system does not say where that is.
pub(crate) fn file(name: &str) -> Option<PathBuf> {
    Some(folder()?.join("pinpoint").join("weights").join(name))
}

/// What may be the name of a fetched file: no path leads out of the cache.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(plain)
}

/// The user's cache folder, as each system has it.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    // Asked for by name, it holds on every system.
    if let Some(folder) = variable("XDG_CACHE_HOME") {
        return Some(folder);
    }
    if cfg!(windows) {
        return variable("LOCALAPPDATA");
    }
    let home = variable("HOME")?;
    Some(if cfg!(target_os = "macos") { home.join("Library/Caches") } else { home.join(".cache") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        assert!(is_name("resnet18") && is_name("resnet18-f37072fd.pth"));
        for path in ["", "..", "../x", "a/b", ".hidden", "-o", "C:\\x"] {
            assert!(!is_name(path), "{path}");
        }
    }
}
