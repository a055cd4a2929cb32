//! `pinpoint weights get`: a file fetched by the system's downloader, verified and kept.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, anyhow, bail, ensure};
use pinpoint::{
    model::known::{KNOWN_FILES, KnownFile, sha256},
    run::PartFile,
};

use crate::ui::Ui;
use crate::weight_files::cache;

/// Fetch a weight file by curl or wget, verify it and keep it in the user's cache folder
#[derive(Debug, clap::Args)]
pub(super) struct Get {
    /// A backbone or a file that `pinpoint weights` lists; any name with `--url`
    name: String,

    /// Fetch it from here, such as a mirror within a hospital
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// What the file's SHA-256 must be; known for published files
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,

    /// Fetch it again even if it is here
    #[arg(long)]
    force: bool,
}

/// A file to fetch.
struct Wanted {
    /// What it is called in the cache.
    file: String,
    url: String,
    /// SHA-256 in hexadecimal digits.
    sha256: String,
}

impl Get {
    pub(super) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let force = self.force;
        let name = self.name.clone();
        let wanted = self.wanted()?;
        let target = cache::file(&wanted.file).context(
            "the system does not say where the user's cache folder is\n\
             hint: set `XDG_CACHE_HOME` to a folder",
        )?;
        if !force && target.is_file() && sha256(&target)? == wanted.sha256 {
            ui.note(&format!("`{}` is here already, and what it should be", target.display()));
        } else {
            wanted.fetch(&target, ui)?;
            ui.note(&format!("verified by SHA-256; `--weights {name}` uses it"));
        }
        ui.print(&target.display().to_string());
        Ok(ExitCode::SUCCESS)
    }

    /// What is asked for, checked.
    fn wanted(self) -> anyhow::Result<Wanted> {
        let Self { name, url, sha256, .. } = self;
        ensure!(
            cache::is_name(&name),
            "`{name}` cannot be the name of a file in the cache\n\
             hint: use letters, digits, `-`, `_` and `.`"
        );
        if let Some(url) = &url {
            ensure!(
                ["https://", "http://", "file://"].iter().any(|scheme| url.starts_with(scheme)),
                "`{url}` is no address\nhint: it starts with https://, http:// or file://"
            );
        }
        let sha256 = sha256.map(|digest| digest.to_ascii_lowercase());
        if let Some(digest) = &sha256 {
            ensure!(
                digest.len() == 64 && digest.chars().all(|digit| digit.is_ascii_hexdigit()),
                "`--sha256 {digest}` is no SHA-256\nhint: it has 64 hexadecimal digits"
            );
        }
        match (KnownFile::named(&name), url, sha256) {
            (Some(known), url, None) => Ok(Wanted {
                file: known.name.to_owned(),
                url: url.unwrap_or_else(|| known.address()),
                sha256: known.sha256.to_owned(),
            }),
            (Some(known), ..) => bail!(
                "the SHA-256 of `{}` is known\nhint: leave `--sha256` out, or give the file \
                 another name",
                known.name
            ),
            (None, Some(url), Some(sha256)) => Ok(Wanted { file: name, url, sha256 }),
            (None, Some(_), None) => {
                bail!("what `{name}` should hold is not known\nhint: give its `--sha256`")
            }
            (None, None, _) => {
                let mut known: Vec<&str> =
                    KNOWN_FILES.iter().map(|file| file.backbone.name()).collect();
                known.dedup();
                bail!(
                    "`{name}` is no published file\nhint: there are {}; fetch any other with \
                     `--url` and `--sha256`",
                    known.join(", ")
                )
            }
        }
    }
}

impl Wanted {
    /// Fetches the file; it appears once it is verified, or not at all.
    fn fetch(&self, target: &Path, ui: &mut Ui) -> anyhow::Result<()> {
        let folder = target.parent().context("a file in the cache has a folder")?;
        let create = || format!("cannot create `{}`", folder.display());
        fs::create_dir_all(folder).with_context(create)?;
        let part = PartFile::beside(target)
            .with_context(|| format!("cannot write beside `{}`", target.display()))?;
        if cfg!(windows) {
            // The downloader could not write into a locked file; what is open cannot be cleared.
            part.file.unlock().context("cannot unlock an unfinished file")?;
        }
        ui.note(&format!("fetching {}", self.url));
        download(&self.url, part.path()).map_err(|error| {
            anyhow!("{error:#}\nhint: without a network, {}", self.by_hand(target))
        })?;
        let found = sha256(part.path())?;
        if found != self.sha256 {
            bail!(
                "what came from {} is not the file asked for: its SHA-256 is {found} and should \
                 be {}{}\nhint: a proxy or a login page may stand in between; {}",
                self.url,
                self.sha256,
                first_words(part.path()),
                self.by_hand(target)
            );
        }
        part.publish(target).with_context(|| format!("cannot write `{}`", target.display()))
    }

    /// What to do where this machine cannot fetch the file.
    fn by_hand(&self, target: &Path) -> String {
        format!("copy\n  {}\nfrom another machine to\n  {}", self.url, target.display())
    }
}

/// Runs the first downloader that the system has.
fn download(url: &str, to: &Path) -> anyhow::Result<()> {
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--location", "--retry", "3", "--show-error", "--progress-bar"]);
    curl.arg("--output").arg(to).arg("--").arg(url);
    let mut wget = Command::new("wget");
    wget.args(["--tries=3", "--no-verbose", "-O"]).arg(to).arg("--").arg(url);
    for (name, mut command) in [("curl", curl), ("wget", wget)] {
        match command.stdin(Stdio::null()).stdout(Stdio::null()).status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => bail!("`{name}` could not fetch it ({status})"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot start `{name}`")),
        }
    }
    bail!("neither `curl` nor `wget` is installed")
}

/// How a file that is text begins, since that is what proxies answer.
fn first_words(path: &Path) -> String {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(120).read_to_end(&mut start));
    let text = read.ok().and_then(|_| std::str::from_utf8(&start).ok()).unwrap_or_default();
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { String::new() } else { format!("; it begins with `{line}`") }
}
