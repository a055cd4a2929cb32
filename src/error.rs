//! Errors, named after what the user has to fix.
#![expect(missing_docs, reason = "each variant's message says what its fields are")]

use std::{
    io,
    path::{Path, PathBuf},
};

/// The result of everything in this crate that reads files, settings or data.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A problem with the user's files, settings or data.
///
/// Disagreements *between our own modules*, such as a mask of the wrong shape
/// after the manifest was checked, are bugs and panic instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Settings that are out of range or contradict each other, all of them at once.
    #[error("{}", one_per_line("unusable settings", .0))]
    Setting(Vec<String>),

    /// The settings file is not valid TOML or has an unknown key.
    #[error("cannot parse settings in `{}`", .path.display())]
    Settings { path: PathBuf, source: Box<toml::de::Error> },

    /// A dataset that cannot be used as it is.
    #[error("{problem}: `{}`\nhint: {remedy}", .path.display())]
    Data { path: PathBuf, problem: String, remedy: String },

    /// A dataset with problems that cannot be worked around, one line per kind.
    #[error("{}", one_per_line(&format!("unusable dataset `{}`", .path.display()), .problems))]
    Dataset { path: PathBuf, problems: Vec<String> },

    /// An image or mask that cannot be used.
    #[error("{problem}: `{}`\nhint: {remedy}", .path.display())]
    Image { path: PathBuf, problem: String, remedy: String },

    /// Images that cannot be scored, each with its problem.
    #[error("{}", one_per_line("cannot score every image", .0))]
    Images(Vec<String>),

    /// A score map that the CRF cannot refine.
    #[error("cannot refine the score map: {0}")]
    Refine(dense_crf::Error),

    /// A weight file that cannot be used.
    #[error("{problem}: `{}`\nhint: {remedy}", .path.display())]
    Weights { path: PathBuf, problem: String, remedy: String },

    /// A run directory that cannot be used.
    #[error("{problem}: `{}`\nhint: {remedy}", .path.display())]
    Run { path: PathBuf, problem: String, remedy: String },

    /// Reports that cannot share a table, with everything they differ in.
    #[error(
        "{}\nhint: evaluate the runs again in the same way, or compare them in groups",
        one_per_line("cannot put these reports into one table", .0)
    )]
    Mismatch(Vec<String>),

    /// The loss of a training step is not finite.
    #[error(
        "the loss became {loss} in epoch {epoch}, step {step}; the last good state is in `{}`\n\
         hint: lower `optimizer.learning_rate`",
        .saved.display()
    )]
    Diverged { epoch: usize, step: usize, loss: f64, saved: PathBuf },

    /// Another process of the same job could not go on.
    #[error("rank {rank}: {message}")]
    Rank { rank: usize, message: String },

    /// Work that needs more memory than there is.
    #[error("{problem}\nhint: {remedy}")]
    Memory { problem: String, remedy: String },

    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,

    /// A file could not be read or written.
    #[error("cannot {action} `{}`", .path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// Adds the path that [`io::Error`] leaves out.
    ///
    /// Reads as `fs::read(path).map_err(Error::file("read", path))?`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }

    /// A dataset at `path` that cannot be used as it is.
    pub(crate) fn data(path: &Path, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Data { path: path.to_owned(), problem: problem.into(), remedy: remedy.into() }
    }

    /// An image or mask at `path` that cannot be used.
    pub(crate) fn image(path: &Path, problem: impl Into<String>, remedy: &str) -> Self {
        Self::Image { path: path.to_owned(), problem: problem.into(), remedy: remedy.to_owned() }
    }

    /// A weight file at `path` that cannot be used.
    pub(crate) fn weights(path: &Path, problem: impl Into<String>, remedy: &str) -> Self {
        Self::Weights { path: path.to_owned(), problem: problem.into(), remedy: remedy.to_owned() }
    }

    /// A run directory at `path` that cannot be used.
    pub(crate) fn run(path: &Path, problem: impl Into<String>, remedy: &str) -> Self {
        Self::Run { path: path.to_owned(), problem: problem.into(), remedy: remedy.to_owned() }
    }
}

fn one_per_line(title: &str, items: &[String]) -> String {
    let mut text = String::from(title);
    for item in items {
        text.push_str("\n  ");
        text.push_str(item);
    }
    text
}
