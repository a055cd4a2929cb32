//! `pinpoint train --tensorboard`: the epochs of a run, as TensorBoard shows them.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use pinpoint::{formats::tensorboard, run::RunDir, train::EpochRecord};

/// An event file that grows with the run.
#[derive(Debug)]
pub(crate) struct EventFile {
    run: PathBuf,
    /// Once the first epoch is over, and when the last one was, in seconds since 1970.
    open: Option<(File, f64)>,
}

impl EventFile {
    /// The file of a run that is about to be trained.
    pub(crate) fn of(run: &Path) -> Self {
        Self { run: run.to_owned(), open: None }
    }

    /// Adds an epoch that has been recorded; the first one brings those before it.
    pub(crate) fn add(&mut self, record: &EpochRecord) -> anyhow::Result<()> {
        match &mut self.open {
            Some((file, time)) => {
                *time += record.seconds;
                file.write_all(&tensorboard::epoch(*time, record))
                    .context("cannot write the event file of TensorBoard")
            }
            None => self.create(),
        }
    }

    fn create(&mut self) -> anyhow::Result<()> {
        let run = RunDir::open(&self.run)?;
        let path = run.tensorboard();
        let failed = || format!("cannot write `{}`", path.display());
        fs::create_dir_all(path.parent().with_context(failed)?).with_context(failed)?;
        let records = run.records()?;
        let seconds: f64 = records.iter().map(|record| record.seconds).sum();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut time = now.as_secs_f64() - seconds;
        let mut file = File::create(&path).with_context(failed)?;
        let mut events = tensorboard::header(time);
        for record in &records {
            time += record.seconds;
            events.extend(tensorboard::epoch(time, record));
        }
        file.write_all(&events).with_context(failed)?;
        self.open = Some((file, time));
        Ok(())
    }
}
