//! Training from Python: events to a callback, Ctrl-C to a run that can be resumed.

use std::path::PathBuf;

use pinpoint::{
    Config, TrainRequest,
    method::published,
    run::DataSource,
    train::{Ending, Event, Observer},
};
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*, types::PyDict};
use serde_json::Value;

use crate::error::raised;

/// What to train, as the package gives it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    data: Option<PathBuf>,
    out: PathBuf,
    method: String,
    weights: Option<PathBuf>,
    /// Settings by dotted key, as JSON.
    settings: Vec<(String, String)>,
    device: String,
    threads: Option<usize>,
    resume: bool,
    /// Where features are that were made beforehand.
    features: Option<PathBuf>,
}

impl Wanted {
    /// The same as the command would fill it in.
    pub fn request(self) -> PyResult<TrainRequest> {
        let mut request = if self.resume {
            TrainRequest::resume(&self.out).map_err(raised)?
        } else {
            let base = published(&self.method).map_err(raised)?;
            TrainRequest::new(self.data.clone().unwrap_or_default(), &self.out, base)
        };
        request.data = self.data.map(DataSource::new).or(request.data);
        request.config = with_settings(&request.config, &self.settings)?;
        request.weights = self.weights.or(request.weights);
        request.features = self.features;
        request.device = self.device;
        request.threads = self.threads;
        Ok(request)
    }
}

/// Trains until the last epoch, and gives the run's folder.
#[pyfunction]
pub fn train(py: Python<'_>, wanted: Wanted, progress: Option<Py<PyAny>>) -> PyResult<PathBuf> {
    let request = wanted.request()?;
    let mut watcher = Watcher { progress, raised: None };
    let trained = py.detach(|| pinpoint::train(&request, &mut watcher));
    if let Some(error) = watcher.raised {
        return Err(error);
    }
    match trained.map_err(raised)?.ending {
        Ending::Finished(_) => Ok(request.out),
        Ending::Interrupted => Err(PyKeyboardInterrupt::new_err(())),
    }
}

/// Settings with some of them replaced.
fn with_settings(config: &Config, settings: &[(String, String)]) -> PyResult<Config> {
    let mut tree = serde_json::to_value(config).map_err(raised)?;
    for (key, value) in settings {
        let value: Value = serde_json::from_str(value).map_err(raised)?;
        let mut place = &mut tree;
        for part in key.split('.') {
            let Value::Object(table) = place else {
                return Err(raised(format!("there is no setting `{key}`: see docs/settings.md")));
            };
            place = table.entry(part).or_insert(Value::Null);
        }
        *place = value;
    }
    let config: Config = serde_json::from_value(tree)
        .map_err(|error| raised(format!("unusable settings: {error}; see docs/settings.md")))?;
    config.check().map_err(raised)?;
    Ok(config)
}

/// Tells a callback what happens, and listens for Ctrl-C.
struct Watcher {
    progress: Option<Py<PyAny>>,
    /// What Python raised meanwhile; training is asked to stop then, and saves its state.
    raised: Option<PyErr>,
}

impl Observer for Watcher {
    fn observe(&mut self, event: &Event<'_>) {
        if self.raised.is_some() {
            return;
        }
        self.raised = Python::attach(|py| {
            py.check_signals()?;
            match self.progress.as_ref().zip(described(py, event)?) {
                Some((callback, event)) => callback.call1(py, (event,)).map(drop),
                None => Ok(()),
            }
        })
        .err();
    }

    fn wants_to_stop(&self) -> bool {
        self.raised.is_some()
    }
}

/// An event as a dictionary; none for those that say nothing to a person.
fn described<'py>(py: Python<'py>, event: &Event<'_>) -> PyResult<Option<Bound<'py, PyDict>>> {
    macro_rules! dict {
        ($($name:literal: $value:expr),* $(,)?) => {{
            let found = PyDict::new(py);
            $(found.set_item($name, $value)?;)*
            found
        }};
    }
    Ok(Some(match event {
        Event::Note(text) | Event::Warning(text) => dict!("kind": "note", "text": *text),
        Event::Started { epochs, steps, from } => {
            dict!("kind": "started", "epochs": epochs, "steps": steps, "from": *from)
        }
        Event::Step { epoch, step, terms, .. } => {
            dict!("kind": "step", "epoch": epoch, "step": step, "loss": terms.total())
        }
        Event::Working { what, done, total } => {
            dict!("kind": "working", "what": *what, "done": done, "total": total)
        }
        Event::Epoch(record) => dict!(
            "kind": "epoch",
            "epoch": record.epoch,
            "train_error": record.train_error,
            "valid_error": record.valid_error,
            "valid_localizer_error": record.valid_localizer_error,
            "valid_loss": record.valid_loss,
        ),
        _ => return Ok(None),
    }))
}
