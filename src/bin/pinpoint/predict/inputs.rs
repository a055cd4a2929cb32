//! What `pinpoint predict` is asked about: files, folders, patterns, a list on stdin.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

use glob::MatchOptions;
use pinpoint::data::{Sample, is_image};

/// An image to predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    /// What its outputs are called, below the output folder and without an ending.
    pub(super) name: PathBuf,
}

/// All images to predict, and what was asked for but cannot be found.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub(super) images: Vec<Input>,
    pub(super) problems: Vec<String>,
    /// All paths, by the last part of their name.
    paths: BTreeMap<OsString, BTreeSet<PathBuf>>,
    names: BTreeSet<String>,
}

impl Inputs {
    /// Finds the images that were asked for; `list` is read where `-` is asked for.
    ///
    /// Folders are searched with all folders below. Neither they nor patterns lead into `out`,
    /// which holds earlier predictions.
    pub(super) fn find(
        asked: &[PathBuf],
        out: &Path,
        mut list: impl FnMut() -> io::Result<String>,
    ) -> io::Result<Self> {
        let mut inputs = Self::default();
        for path in asked {
            if path.as_os_str() == "-" {
                let list = list()?;
                let lines = list.lines().map(str::trim_end).filter(|line| !line.is_empty());
                lines.for_each(|line| inputs.add(Path::new(line), out));
            } else if let Some(pattern) = pattern(path) {
                inputs.add_matches(pattern, out);
            } else {
                inputs.add(path, out);
            }
        }
        Ok(inputs)
    }

    /// Whether an image lies in a folder, given without links, or below it.
    pub(super) fn lie_below(&self, folder: &Path) -> bool {
        let below = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path.starts_with(folder));
        self.images.iter().any(|input| below(&input.path))
    }

    /// Images of a dataset, which are called as they are there.
    pub(super) fn of(samples: &[Sample]) -> Self {
        let mut inputs = Self::default();
        for sample in samples {
            let parts = Path::new(&sample.id).components();
            let within = parts.filter(|part| matches!(part, Component::Normal(_)));
            let name: PathBuf = within.collect();
            inputs.add_image(sample.image.clone(), name.with_extension(""));
        }
        inputs
    }

    fn add(&mut self, path: &Path, out: &Path) {
        if !path.is_dir() {
            let name = path.file_stem().unwrap_or_default();
            self.add_image(path.to_owned(), name.into());
            return;
        }
        let before = self.images.len();
        self.add_folder(path, path, out);
        if self.images.len() == before {
            self.problems.push(format!("no image in `{}`", path.display()));
        }
    }

    fn add_matches(&mut self, pattern: &str, out: &Path) {
        // As a shell does it: `*` stands for no hidden file.
        let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::new() };
        match glob::glob_with(pattern, options) {
            Ok(paths) => {
                let paths: Vec<PathBuf> =
                    paths.flatten().filter(|path| !path.starts_with(out)).collect();
                if paths.is_empty() {
                    self.problems.push(format!("nothing matches `{pattern}`"));
                }
                paths.iter().for_each(|path| self.add(path, out));
            }
            Err(error) => self.problems.push(format!("`{pattern}` is no pattern ({error})")),
        }
    }

    /// Adds what is in a folder that was found below `root`.
    fn add_folder(&mut self, folder: &Path, root: &Path, out: &Path) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(format!("cannot look into `{}`: {error}", folder.display()));
                return;
            }
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            // A link to a folder may lead back to where we are.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !hidden && path != out {
                self.add_folder(&path, root, out);
            } else if !is_folder && !hidden && is_image(&path) && path.is_file() {
                let below = path.strip_prefix(root).unwrap_or(&path).with_extension("");
                self.add_image(path, below);
            }
        }
    }

    /// Adds an image under a name of its own; one that is there already is not predicted twice.
    fn add_image(&mut self, path: PathBuf, name: PathBuf) {
        let file_name = path.file_name().unwrap_or_default().to_owned();
        if !self.paths.entry(file_name).or_default().insert(path.clone()) {
            return;
        }
        // Some file systems do not tell `A` from `a`.
        let key = |name: &Path| name.to_string_lossy().to_lowercase();
        let mut own = name.clone();
        for number in 2.. {
            if self.names.insert(key(&own)) {
                break;
            }
            own = with_ending(&name, &format!("-{number}"));
        }
        self.images.push(Input { path, name: own });
    }

    /// Whether `path` is one of the images themselves.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let Some(namesakes) = path.file_name().and_then(|name| self.paths.get(name)) else {
            return false;
        };
        let Ok(path) = path.canonicalize() else { return false };
        namesakes.iter().any(|input| input.canonicalize().is_ok_and(|input| input == path))
    }
}

/// `path` with `ending` behind the last part of its name.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// The text of a path that is a pattern and not a file that happens to look like one.
fn pattern(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    (text.contains(['*', '?', '[']) && fs::symlink_metadata(path).is_err()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(asked: &[&Path], list: &str) -> Inputs {
        let asked: Vec<PathBuf> = asked.iter().map(|path| path.to_path_buf()).collect();
        Inputs::find(&asked, Path::new("out"), || Ok(list.to_owned())).unwrap()
    }

    fn names(inputs: &Inputs) -> Vec<&str> {
        inputs.images.iter().map(|input| input.name.to_str().unwrap()).collect()
    }

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        folder
    }

    #[test]
    fn names_are_unique_whatever_the_folders_endings_and_cases() {
        let asked = ["x/a.png", "y/a.png", "x/A.jpg", "a-2.png", "x/a.png"].map(Path::new);
        assert_eq!(names(&find(&asked, "")), ["a", "a-2", "A-3", "a-2-2"]);
    }

    #[test]
    fn folders_are_searched_in_order_and_mirrored() {
        let folder = tree(&["b/c.PNG", "a.jpg", "b/notes.txt", ".hidden/d.png", "out/e_mask.png"]);
        let asked = [folder.path().to_owned()];
        let out = folder.path().join("out");
        let inputs = Inputs::find(&asked, &out, || Ok(String::new())).unwrap();
        assert_eq!(names(&inputs), ["a", "b/c"]);
        let asked = [folder.path().join("**/*.png")];
        let matches = Inputs::find(&asked, &out, || Ok(String::new())).unwrap();
        assert_eq!(matches.problems.len(), 1, "{matches:?}");
        assert!(inputs.problems.is_empty());
    }

    #[test]
    fn a_list_names_one_path_a_line() {
        let list = "x/a.png\r\n\nwith space.png\n[1].png\n";
        assert_eq!(names(&find(&[Path::new("-")], list)), ["a", "with space", "[1]"]);
    }

    #[test]
    fn patterns_are_expanded_unless_they_are_files() {
        let folder = tree(&["a.png", "b.png", "c.txt", "[a].png"]);
        let at = |name: &str| folder.path().join(name);
        assert_eq!(names(&find(&[&at("?.png")], "")), ["a", "b"]);
        assert_eq!(names(&find(&[&at("[a].png")], "")), ["[a]"]);
        let inputs = find(&[&at("*.bmp"), &at("***")], "");
        assert!(inputs.images.is_empty());
        assert!(inputs.problems[0].contains("nothing matches"), "{:?}", inputs.problems);
        assert!(inputs.problems[1].contains("is no pattern"), "{:?}", inputs.problems);
    }

    #[test]
    fn an_empty_folder_is_a_problem_and_a_missing_file_is_left_to_whoever_opens_it() {
        let folder = tree(&["readme.md"]);
        let inputs = find(&[folder.path(), Path::new("missing.png")], "");
        assert_eq!(names(&inputs), ["missing"]);
        assert!(inputs.problems[0].contains("no image in"), "{:?}", inputs.problems);
    }

    #[test]
    fn outputs_that_would_replace_an_input_are_recognized() {
        let folder = tree(&["a.png", "b/a.png"]);
        let inputs = find(&[&folder.path().join("a.png")], "");
        assert!(inputs.contains(&folder.path().join("b/../a.png")));
        assert!(!inputs.contains(&folder.path().join("b/a.png")));
    }
}
