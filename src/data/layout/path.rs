//! Paths in lists: resolving them, and finding their files.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, iter,
    path::{Component, Path, PathBuf},
};

use super::grouped;
use crate::{
    error::{Error, Result},
    regular,
};

/// Endings that are taken for images, the preferred ones first.
const IMAGE_EXTENSIONS: [&str; 8] = ["bmp", "png", "tif", "tiff", "jpg", "jpeg", "webp", "gif"];

/// The first folder with `is_one`, among `path` and the folders in it.
pub(super) fn here_or_below(path: &Path, is_one: impl Fn(&PathBuf) -> bool) -> Option<PathBuf> {
    iter::once(path.to_owned()).chain(subfolders(path)).find(is_one)
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    /// A file of exactly this name.
    File(PathBuf),
    /// An image of the same stem with another extension.
    OtherExtension(PathBuf),
    /// A folder where a file should be.
    Folder,
    /// Nothing.
    Missing,
}

/// Looks files up by stem, listing each folder only once.
#[derive(Debug, Default)]
pub(super) struct Files {
    folders: BTreeMap<PathBuf, BTreeMap<String, Vec<PathBuf>>>,
}

impl Files {
    /// What is at `path`, or failing that, which image beside it has its stem.
    pub(super) fn find(&mut self, path: &Path) -> PathKind {
        match fs::metadata(path) {
            Ok(facts) if facts.is_file() => return PathKind::File(path.to_owned()),
            Ok(facts) if facts.is_dir() => return PathKind::Folder,
            _ => {}
        }
        let (Some(folder), Some(stem)) = (path.parent(), path.file_stem().and_then(OsStr::to_str))
        else {
            return PathKind::Missing;
        };
        match self.with_stem(folder, stem).first() {
            Some(image) => PathKind::OtherExtension(image.clone()),
            None => PathKind::Missing,
        }
    }

    /// The images in `folder` with this stem, the preferred extension first.
    pub(super) fn with_stem(&mut self, folder: &Path, stem: &str) -> &[PathBuf] {
        if !self.folders.contains_key(folder) {
            self.folders.insert(folder.to_owned(), images_by_stem(folder));
        }
        self.folders[folder].get(stem).map_or(&[], Vec::as_slice)
    }
}

fn images_by_stem(folder: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let files = entries(folder).into_iter().filter(|path| is_image(path) && path.is_file());
    let with_stem = |path: PathBuf| Some((path.file_stem()?.to_str()?.to_owned(), path));
    let mut images = grouped(files.filter_map(with_stem));
    for same_stem in images.values_mut() {
        same_stem.sort_by_key(|path| extension_rank(path));
    }
    images
}

/// What `folder` holds, sorted, without hidden files; nothing if it cannot be listed.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths = regular::entries(folder).unwrap_or_default();
    paths.retain(|path| !name(path).starts_with('.'));
    paths
}

/// The folders in `folder`, sorted, without hidden ones.
pub(super) fn subfolders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// Whether the name says that this is an image.
pub fn is_image(path: &Path) -> bool {
    extension_rank(path).is_some()
}

fn extension_rank(path: &Path) -> Option<usize> {
    let extension = path.extension()?.to_str()?;
    IMAGE_EXTENSIONS.iter().position(|known| known.eq_ignore_ascii_case(extension))
}

/// The last part of a path, as text.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `path` from the root of the file system, without `.` and `..`.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map(|path| normalize(&path)).map_err(Error::file("find", path))
}

/// The path `written`, resolved from `root`; `None` if it is outside of `root`.
///
/// Decided on the text alone, so that symbolic links inside a dataset keep working.
/// Windows paths are understood everywhere.
pub(super) fn inside(root: &Path, written: &str) -> Option<PathBuf> {
    let written = written.replace('\\', "/");
    let drive = matches!(written.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if drive && !cfg!(windows) {
        return None;
    }
    let path = normalize(&root.join(written));
    path.starts_with(root).then_some(path)
}

/// Resolves `.` and `..` by text; a `..` too many stays at the root of the file system.
fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// A path as written in lists: relative to `root` and with `/`, on every system.
pub(super) fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::Tree;

    #[test]
    fn a_path_may_wander_but_not_leave_its_root() {
        let root = Path::new("/data/set");
        assert_eq!(inside(root, "a/../b.png"), Some(PathBuf::from("/data/set/b.png")));
        assert_eq!(inside(root, "a\\..\\b.png"), Some(PathBuf::from("/data/set/b.png")));
        assert_eq!(inside(root, "/data/set/b.png"), Some(PathBuf::from("/data/set/b.png")));
        for escape in ["../b.png", "a/../../b.png", "/etc/passwd", "../set2/b.png", "..\\b.png"] {
            assert_eq!(inside(root, escape), None, "{escape}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_path_with_a_drive_letter_is_outside() {
        assert_eq!(inside(Path::new("/data"), "C:/images/b.png"), None);
    }

    #[test]
    fn an_image_is_found_under_another_extension() {
        let tree = Tree::new().png("a.png", 1, 1).png("b.JPG", 1, 1).text("c.txt", "");
        let mut files = Files::default();
        let mut find = |name: &str| files.find(&tree.path(name));
        assert_eq!(find("a.png"), PathKind::File(tree.path("a.png")));
        assert_eq!(find("a.bmp"), PathKind::OtherExtension(tree.path("a.png")));
        assert_eq!(find("b.png"), PathKind::OtherExtension(tree.path("b.JPG")));
        assert_eq!(find("c.png"), PathKind::Missing);
        assert_eq!(find("."), PathKind::Folder);
    }

    #[test]
    fn lossless_copies_are_preferred() {
        let tree = Tree::new().png("a.jpg", 1, 1).png("a.bmp", 1, 1);
        let mut files = Files::default();
        assert_eq!(files.with_stem(&tree.path(""), "a")[0], tree.path("a.bmp"));
    }
}
