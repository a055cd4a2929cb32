//! Problems of a dataset, which are collected and reported together.
//!
//! A user with a thousand files wants all mistakes at once. So the readers of datasets record a
//! [`Problem`] and go on; [`group`] then makes one line of each kind, with a count and an example.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde::Serialize;

/// Something wrong with one file, row or class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What sort of thing is wrong; the remedy depends on it alone.
    pub kind: ProblemKind,
    /// The file to look at.
    pub file: PathBuf,
    /// The line in it, counted from 1, where the file is a list.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub text: String,
}

/// What sort of thing is wrong, in the order problems are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "`remedy` says of each what it is about")]
pub enum ProblemKind {
    UnreadableList,
    BadRow,
    UnknownClass,
    OutsideRoot,
    MissingImage,
    NotAFile,
    UnreadableImage,
    ImageTooLarge,
    ImageTooSmall,
    UnlabelledImage,
    MaskAmongImages,
    ConflictingLabel,
    DuplicateRow,
    DuplicateImage,
    SharedImage,
    EmptyClass,
    UnseenClass,
    SingleClass,
    MissingMask,
    OrphanMask,
    UnreadableMask,
    MaskSize,
    EmptyMask,
    FullMask,
}

/// All problems of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProblemGroup {
    /// What sort of thing is wrong.
    pub kind: ProblemKind,
    /// How often.
    pub count: usize,
    /// The first of them, with file, problem and remedy.
    pub example: String,
}

impl Problem {
    /// A problem with a file as a whole.
    pub(crate) fn of_file(kind: ProblemKind, file: &Path, text: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), line: None, text: text.into() }
    }
}

/// File, line, problem and remedy, on one line.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; {}", self.text, self.kind.remedy())
    }
}

impl ProblemKind {
    /// What the user can do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::UnreadableList => "restore the file or save it anew as UTF-8 text",
            Self::BadRow => "correct or remove the row",
            Self::UnknownClass => "correct the class, or add it to the list of classes",
            Self::OutsideRoot => {
                "write the path relative to the folder of the images, and name that folder with `--images DIR`"
            }
            Self::MissingImage => {
                "restore it, correct the row, or say where the images are with `--images DIR`"
            }
            Self::NotAFile => "put the file there, or name the file instead of the folder",
            Self::UnreadableImage => "replace the file by an intact copy",
            Self::ImageTooLarge => {
                "cut it into tiles or shrink it, or raise the limit with `--max-megapixels N`"
            }
            Self::ImageTooSmall => "replace it by an image of at least 32 pixels on each side",
            Self::UnlabelledImage => "give it a class, or move it out of the dataset",
            Self::MaskAmongImages => {
                "put its image beside it, or the mask into `masks/`; if it is an image after all, \
                 say so with `--no-mask-names`"
            }
            Self::ConflictingLabel => "keep the row with the right class",
            Self::DuplicateRow => "remove the repetition; the image is counted once",
            Self::DuplicateImage => "keep one of the two files",
            Self::SharedImage => {
                "keep it in one split; scores on images seen in training mean nothing"
            }
            Self::EmptyClass => "add images of this class, or remove the class",
            Self::UnseenClass => {
                "add training images of this class, or remove it from the other splits"
            }
            Self::SingleClass => "add images of a second class; there is nothing to tell apart",
            Self::MissingMask => {
                "add the mask, or leave it: such an image counts for classification only"
            }
            Self::OrphanMask => "name the mask as its image, or remove it",
            Self::UnreadableMask => "replace the mask by an intact copy",
            Self::MaskSize => "export the mask at the size of its image",
            Self::EmptyMask => {
                "check the mask and `--mask-rule`; nothing in it counts as foreground"
            }
            Self::FullMask => {
                "check the mask and `--mask-rule`; everything in it counts as foreground"
            }
        }
    }

    /// Whether training is refused while there is such a problem.
    ///
    /// A problem is not fatal if the label and the split of every remaining image are certain.
    pub fn is_fatal(self) -> bool {
        !matches!(
            self,
            Self::DuplicateRow
                | Self::DuplicateImage
                | Self::EmptyClass
                | Self::UnseenClass
                | Self::MissingMask
                | Self::OrphanMask
                | Self::UnreadableMask
                | Self::MaskSize
                | Self::EmptyMask
                | Self::FullMask
        )
    }
}

/// As in output: `missing-mask`.
impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for ProblemGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, count, example } = self;
        write!(f, "{kind} ({count}): {example}")
    }
}

/// One entry per kind that occurs, the first problem of each as its example.
pub fn group<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Vec<ProblemGroup> {
    let mut groups = BTreeMap::new();
    for problem in problems {
        let kind = problem.kind;
        let first = || ProblemGroup { kind, count: 0, example: problem.to_string() };
        groups.entry(kind).or_insert_with(first).count += 1;
    }
    groups.into_values().collect()
}

/// Names as they stand in a sentence: `` `a`, `b` ``.
pub(super) fn quoted(names: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: ProblemKind, file: &str) -> Problem {
        Problem::of_file(kind, Path::new(file), "is odd")
    }

    #[test]
    fn problems_are_grouped_by_kind_with_the_first_as_example() {
        let problems = [
            problem(ProblemKind::MissingMask, "a"),
            problem(ProblemKind::BadRow, "b"),
            problem(ProblemKind::MissingMask, "c"),
        ];
        let groups = group(&problems);
        assert_eq!(groups.iter().map(|g| g.count).collect::<Vec<_>>(), [1, 2]);
        assert!(groups[1].example.starts_with("a: is odd; "), "{}", groups[1].example);
    }

    #[test]
    fn a_kind_has_one_name_in_text_and_json() {
        let kind = ProblemKind::ConflictingLabel;
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.to_string());
    }

    #[test]
    fn a_problem_names_file_line_problem_and_remedy() {
        let problem = Problem { line: Some(3), ..problem(ProblemKind::BadRow, "list.csv") };
        assert_eq!(problem.to_string(), "list.csv:3: is odd; correct or remove the row");
    }
}
