//! Builds a dataset: every layout adds its rows here.
//!
//! The builder decides what all layouts have in common: whether files exist, what
//! is a duplicate, how classes are numbered, and which problems and notes follow.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Layout, finish,
    path::{self, Files, PathKind},
};
use crate::{
    data::{
        Dataset, MaskRule, Sample, Split, Truth,
        problem::{self, Problem, ProblemKind, quoted},
    },
    error::{Error, Result},
};

/// Known classes that are named beside an unknown one.
const SHOWN_CLASSES: usize = 5;

/// The file, and the line in it, that a row or a problem is from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) file: PathBuf,
    pub(super) line: Option<u64>,
}

/// A dataset that rows are still added to.
#[derive(Debug)]
pub(super) struct Builder {
    layout: Layout,
    /// The folder that paths are relative to and must not leave.
    pub(super) root: PathBuf,
    /// The layout's own rule.
    pub(super) mask_rule: MaskRule,
    /// Class names in order, where a list declares them; otherwise they are sorted.
    pub(super) classes: Option<Vec<String>>,
    files: Files,
    /// Samples with their classes, which are not numbered yet.
    samples: Vec<(Split, String, Sample)>,
    /// The index of each image's sample.
    sample_of: BTreeMap<PathBuf, usize>,
    pub(super) problems: Vec<Problem>,
    pub(super) notes: Vec<String>,
    other_extension: Tally,
    backslashes: Tally,
    ambiguous: Tally,
    /// Masks of training images that do not exist.
    unmasked: Tally,
}

/// A count of something harmless, with its first occurrence.
#[derive(Debug, Default)]
struct Tally {
    count: usize,
    example: String,
}

impl Origin {
    pub(super) fn line(file: &Path, line: u64) -> Self {
        Self { file: file.to_owned(), line: Some(line) }
    }

    pub(super) fn file(file: &Path) -> Self {
        Self { file: file.to_owned(), line: None }
    }
}

impl Builder {
    pub(super) fn new(layout: Layout, root: &Path) -> Self {
        Self {
            layout,
            root: root.to_owned(),
            mask_rule: MaskRule::NonZero,
            classes: None,
            files: Files::default(),
            samples: Vec::new(),
            sample_of: BTreeMap::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            other_extension: Tally::default(),
            backslashes: Tally::default(),
            ambiguous: Tally::default(),
            unmasked: Tally::default(),
        }
    }

    /// Records a problem; always `None`, for the row that is left out.
    pub(super) fn problem(
        &mut self,
        by: &Origin,
        kind: ProblemKind,
        text: impl Into<String>,
    ) -> Option<()> {
        let Origin { file, line } = by.clone();
        self.problems.push(Problem { kind, file, line, text: text.into() });
        None
    }

    /// The content of a list; `None`, and a problem, if it could not be read.
    pub(super) fn readable<T>(&mut self, list: &Origin, read: Result<T, String>) -> Option<T> {
        read.map_err(|reason| self.problem(list, ProblemKind::UnreadableList, reason)).ok()
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The only image named `stem` in `folder`, whatever its extension.
    pub(super) fn image_named(&mut self, folder: &Path, stem: &str) -> Option<PathBuf> {
        let found = self.files.with_stem(folder, stem);
        let image = found.first()?.clone();
        if found.len() > 1 {
            self.ambiguous.add(|| format!("`{}`", image.display()));
        }
        Some(image)
    }

    /// The path written in a list, resolved from `base`; `None`, and a problem, if it leaves
    /// `base`.
    pub(super) fn resolve(&mut self, base: &Path, written: &str, by: &Origin) -> Option<PathBuf> {
        if written.contains('\\') {
            self.backslashes.add(|| format!("`{written}`"));
        }
        let resolved = path::inside(base, written);
        if resolved.is_none() {
            let text = format!("path `{written}` leaves `{}`", base.display());
            self.problem(by, ProblemKind::OutsideRoot, text);
        }
        resolved
    }

    /// The paths of the mask files in a list, one or several separated by `;`.
    fn resolve_masks(&mut self, base: &Path, written: &str, by: &Origin) -> Option<Vec<PathBuf>> {
        let is_one = !written.contains(';')
            || path::inside(base, written)
                .is_some_and(|path| matches!(self.files.find(&path), PathKind::File(_)));
        let masks = if is_one { vec![written] } else { written.split(';').collect() };
        let named = masks.into_iter().map(str::trim).filter(|mask| !mask.is_empty());
        named.map(|mask| self.resolve(base, mask, by)).collect()
    }

    /// Maps splits to those of the dataset: if there are no labels of test images, `val` becomes
    /// the test split, as is usual.
    pub(super) fn scored_split(
        &mut self,
        found: &[Split],
        since: &str,
    ) -> impl Fn(Split) -> Split + use<> {
        let val_is_scored = found.contains(&Split::Train) && !found.contains(&Split::Test);
        if val_is_scored && found.contains(&Split::Valid) {
            self.note(format!("`val` is scored as the `test` split, since {since}"));
        }
        move |split| if val_is_scored && split == Split::Valid { Split::Test } else { split }
    }

    /// Adds an image if it exists, its class is known, and it is new, with those of its mask files
    /// that exist.
    pub(super) fn add(
        &mut self,
        by: &Origin,
        split: Split,
        class: &str,
        image: &Path,
        truth: Truth,
    ) -> Option<()> {
        self.require_known(class, by)?;
        let image = self.existing(image, "image", ProblemKind::MissingImage, by)?;
        self.require_new(&image, split, class, by)?;
        let mut mask = |path: PathBuf| self.existing_mask(&path, split, by);
        let masks = truth.masks.into_iter().filter_map(&mut mask).collect();
        let ignore = truth.ignore.and_then(mask);
        let id = path::relative(&self.root, &image);
        let truth = Truth { masks, ignore, ..truth };
        self.sample_of.insert(image.clone(), self.samples.len());
        self.samples.push((split, class.to_owned(), Sample { id, image, label: 0, truth }));
        Some(())
    }

    /// [Adds](Self::add) the image and the masks that a list names, relative to the root.
    pub(super) fn add_written(
        &mut self,
        by: &Origin,
        split: Split,
        class: &str,
        image: &str,
        masks: &str,
    ) -> Option<()> {
        let root = self.root.clone();
        let image = self.resolve(&root, image, by)?;
        let masks = self.resolve_masks(&root, masks, by)?;
        self.add(by, split, class, &image, Truth { masks, ..Truth::default() })
    }

    fn require_known(&mut self, class: &str, by: &Origin) -> Option<()> {
        if class.is_empty() {
            return self.problem(by, ProblemKind::BadRow, "image without a class");
        }
        match &self.classes {
            Some(classes) if !classes.iter().any(|name| name == class) => {
                let known = quoted(classes.iter().take(SHOWN_CLASSES));
                let rest = if classes.len() > SHOWN_CLASSES { ", …" } else { "" };
                let text = format!("unknown class `{class}`, not one of {known}{rest}");
                self.problem(by, ProblemKind::UnknownClass, text)
            }
            _ => Some(()),
        }
    }

    /// The file at `path`; `None`, and a problem of `kind`, if there is none.
    fn existing(
        &mut self,
        path: &Path,
        what: &str,
        kind: ProblemKind,
        by: &Origin,
    ) -> Option<PathBuf> {
        let shown = path.display();
        let (kind, problem) = match self.files.find(path) {
            PathKind::File(file) => return Some(file),
            PathKind::OtherExtension(file) => {
                self.other_extension.add(|| format!("`{shown}` → `{}`", path::name(&file)));
                return Some(file);
            }
            PathKind::Folder => (ProblemKind::NotAFile, "is a folder"),
            PathKind::Missing => (kind, "does not exist"),
        };
        self.problem(by, kind, format!("{what} `{shown}` {problem}"));
        None
    }

    /// The mask at `path`; `None` if there is none, which is a problem unless the image is for
    /// training.
    fn existing_mask(&mut self, path: &Path, split: Split, by: &Origin) -> Option<PathBuf> {
        if split == Split::Train && self.files.find(path) == PathKind::Missing {
            // Training needs labels only.
            self.unmasked.add(|| format!("`{}`", path.display()));
            return None;
        }
        self.existing(path, "mask", ProblemKind::MissingMask, by)
    }

    fn require_new(&mut self, image: &Path, split: Split, class: &str, by: &Origin) -> Option<()> {
        let Some(&first) = self.sample_of.get(image) else { return Some(()) };
        let (first_split, first_class, _) = &self.samples[first];
        let shown = image.display();
        let (kind, text) = if first_class != class {
            let text = format!("`{shown}` is labelled both `{first_class}` and `{class}`");
            (ProblemKind::ConflictingLabel, text)
        } else if *first_split != split {
            let text = format!("`{shown}` is in both `{first_split}` and `{split}`");
            (ProblemKind::SharedImage, text)
        } else {
            (ProblemKind::DuplicateRow, format!("`{shown}` is listed again"))
        };
        self.problem(by, kind, text)
    }

    /// Numbers the classes and makes the dataset; fails only if there is no sample.
    pub(super) fn finish(mut self, mask_rule: Option<MaskRule>) -> Result<Dataset> {
        if self.samples.is_empty() {
            let mut problems: Vec<_> =
                problem::group(&self.problems).iter().map(ToString::to_string).collect();
            problems.push(format!("there is no usable image, read as layout `{}`", self.layout));
            return Err(Error::Dataset { path: self.root, problems });
        }
        let occurring = || self.samples.iter().map(|(_, class, _)| class.clone());
        let classes = self.classes.take().unwrap_or_else(|| finish::in_order(occurring()));
        let [train, valid, test] = self.labelled(&classes);
        let Self { layout, root, problems, mut notes, .. } = self;
        for (Tally { count, example }, what) in [
            (self.other_extension, "matched by name despite another extension"),
            (self.backslashes, "read with `/` in place of `\\`"),
            (self.ambiguous, "chosen among files that differ in extension only"),
        ] {
            if count > 0 {
                notes.push(format!("paths {what}: {count}, the first is {example}"));
            }
        }
        let told = mask_rule.is_some();
        let mask_rule = mask_rule.unwrap_or(self.mask_rule);
        let mut dataset =
            Dataset { layout, root, classes, mask_rule, train, valid, test, notes, problems };
        if !told && mask_rule == MaskRule::NonZero {
            finish::guess_mask_rule(&mut dataset);
        }
        let Tally { count, example } = self.unmasked;
        if count > 0 {
            dataset.notes.push(format!(
                "training images without a mask: {count}, the first would be {example}; only \
                 `--method unet` learns from masks"
            ));
        }
        finish::check_classes(&mut dataset);
        finish::note_splits(&mut dataset);
        Ok(dataset)
    }

    /// The samples by split, with their labels.
    fn labelled(&mut self, classes: &[String]) -> [Vec<Sample>; 3] {
        let label: BTreeMap<&str, usize> =
            classes.iter().enumerate().map(|(label, name)| (name.as_str(), label)).collect();
        let mut splits = [const { Vec::new() }; 3];
        for (split, class, sample) in self.samples.drain(..) {
            splits[split as usize].push(Sample { label: label[class.as_str()], ..sample });
        }
        splits
    }
}

impl Tally {
    fn add(&mut self, example: impl FnOnce() -> String) {
        if self.count == 0 {
            self.example = example();
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::{Tree, kinds};

    fn origin(tree: &Tree) -> Origin {
        Origin::line(&tree.path("list.csv"), 1)
    }

    /// A dataset of these rows; every image but `gone.png` exists.
    fn dataset(rows: &[(Split, &str, &str)]) -> Dataset {
        let tree = Tree::new().png("a.png", 1, 1).png("b.png", 1, 1).png("c.png", 1, 1);
        let mut builder = Builder::new(Layout::Table, &tree.path(""));
        for (split, class, image) in rows {
            builder.add(&origin(&tree), *split, class, &tree.path(image), Truth::default());
        }
        builder.finish(None).unwrap()
    }

    #[test]
    fn classes_are_sorted_by_name_or_as_numbers() {
        let by_name = dataset(&[(Split::Train, "y", "a.png"), (Split::Train, "x", "b.png")]);
        assert_eq!(by_name.classes, ["x", "y"]);
        assert_eq!(by_name.train[0].label, 1);
        let numbers = dataset(&[(Split::Train, "10", "a.png"), (Split::Train, "9", "b.png")]);
        assert_eq!(numbers.classes, ["9", "10"]);
    }

    #[test]
    fn an_image_counts_once_and_each_repetition_is_told_by_its_kind() {
        let dataset = dataset(&[
            (Split::Train, "x", "a.png"),
            (Split::Train, "y", "b.png"),
            (Split::Train, "x", "a.png"),
            (Split::Train, "y", "a.png"),
            (Split::Test, "x", "a.png"),
        ]);
        assert_eq!(kinds(&dataset), ["duplicate-row", "conflicting-label", "shared-image"]);
        assert_eq!((dataset.train.len(), dataset.test.len()), (2, 0));
    }

    #[test]
    fn a_class_seen_only_in_test_is_a_problem_but_not_a_fatal_one() {
        let dataset = dataset(&[
            (Split::Train, "x", "a.png"),
            (Split::Train, "y", "b.png"),
            (Split::Test, "z", "c.png"),
        ]);
        assert_eq!(kinds(&dataset), ["unseen-class"]);
        dataset.require_usable().unwrap();
    }

    #[test]
    fn training_is_refused_with_every_fatal_problem_at_once() {
        let dataset = dataset(&[
            (Split::Train, "x", "a.png"),
            (Split::Train, "x", "gone.png"),
            (Split::Train, "", "b.png"),
        ]);
        let message = dataset.require_usable().unwrap_err().to_string();
        for kind in ["missing-image (1)", "bad-row (1)", "single-class (1)"] {
            assert!(message.contains(kind), "{message}");
        }
    }

    #[test]
    fn a_mask_that_nothing_is_scored_with_may_be_missing() {
        let tree = Tree::new().png("a.png", 1, 1).png("b.png", 1, 1);
        let mut builder = Builder::new(Layout::Table, &tree.path(""));
        for (split, class, image) in [(Split::Train, "x", "a.png"), (Split::Test, "y", "b.png")] {
            let truth = Truth { masks: vec![tree.path("gone.png")], ..Truth::default() };
            builder.add(&origin(&tree), split, class, &tree.path(image), truth);
        }
        let dataset = builder.finish(None).unwrap();
        assert_eq!(kinds(&dataset), ["missing-mask", "unseen-class"]);
        assert!(dataset.notes[0].contains("training images without a mask: 1"));
    }

    #[test]
    fn nothing_usable_is_an_error_that_tells_why() {
        let tree = Tree::new();
        let mut builder = Builder::new(Layout::Table, &tree.path(""));
        let gone = tree.path("gone.png");
        builder.add(&origin(&tree), Split::Train, "x", &gone, Truth::default());
        let message = builder.finish(None).unwrap_err().to_string();
        assert!(message.contains("gone.png` does not exist"), "{message}");
    }
}
