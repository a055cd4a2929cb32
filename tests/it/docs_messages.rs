//! The messages that `docs/troubleshooting.md` explains are those of the command.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every text of the sources, with lines that go on put together.
fn sources() -> String {
    let mut text = String::new();
    let mut folders: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let file = fs::read_to_string(&path).unwrap();
            let code = file.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.split("\\\n").enumerate();
            text.extend(lines.map(|(at, part)| if at == 0 { part } else { part.trim_start() }));
            text.push('\n');
        }
    }
    text
}

#[test]
fn every_message_that_is_explained_is_still_said() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    let sources = sources();
    let messages: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    assert!(messages.len() > 30, "{} messages were found", messages.len());
    for message in messages {
        // What stands between the parts that differ must follow each other in one text.
        let parts: Vec<&str> = message.split('…').filter(|part| !part.trim().is_empty()).collect();
        let longest = parts.iter().max_by_key(|part| part.len()).unwrap();
        assert!(longest.len() > 12, "too little of it is fixed: {message}");
        let near = |at: usize| {
            let from = sources[..at].char_indices().rev().nth(300).map_or(0, |(start, _)| start);
            let to =
                sources[at..].char_indices().nth(500).map_or(sources.len(), |(end, _)| at + end);
            let mut rest = &sources[from..to];
            parts.iter().all(|part| match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
        };
        let said = sources.match_indices(*longest).any(|(at, _)| near(at));
        assert!(said, "nobody says: {message}");
    }
}
