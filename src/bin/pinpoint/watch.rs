//! Training and evaluation, as the terminal shows them.

use std::{process::ExitCode, time::Instant};

use pinpoint::{
    Dataset, Report, TrainRequest,
    config::Backbone,
    evaluate,
    method::Terms,
    train::{Ending, EpochRecord, Event, Observer},
    workflow::{EvaluateEvent, EvaluateRequest, Trained},
};

use crate::{
    event_file::EventFile,
    expected_time::{ExpectedTime, about},
    interrupt::{go_on, interrupted, requested},
    ui::{Progress, Ui},
};

/// Trains with progress on the terminal, and says how it ended.
pub(crate) fn train(
    request: &TrainRequest,
    events: Option<EventFile>,
    ui: &mut Ui,
) -> anyhow::Result<(Trained, ExitCode)> {
    let mut progress = TrainingProgress {
        request,
        ui: &mut *ui,
        bar: None,
        expected: ExpectedTime::default(),
        events,
        started: Instant::now(),
        images: 0,
        mistakes: 0.0,
    };
    let outcome = pinpoint::train(request, &mut progress);
    drop(progress);
    let trained = outcome?;
    let code = match trained.ending {
        Ending::Finished(best) => {
            let kept = match (request.config.method.as_str(), best) {
                ("probe", _) => "the probe".to_owned(),
                (_, Some(epoch)) => format!("epoch {epoch}"),
                (_, None) => "the last epoch".to_owned(),
            };
            ui.note(&format!("done; `{}` holds {kept}", trained.run.best().display()));
            ExitCode::SUCCESS
        }
        Ending::Interrupted => {
            let run = trained.run.root().display();
            interrupted(ui, &format!("continue with `pinpoint train --out {run} --resume`"))
        }
    };
    Ok((trained, code))
}

/// Scores with progress on the terminal.
pub(crate) fn score(request: &EvaluateRequest, ui: &mut Ui) -> pinpoint::Result<Report> {
    let mut bar: Option<Progress> = None;
    evaluate(request, |event| {
        match event {
            EvaluateEvent::Note(text) => ui.note(text),
            EvaluateEvent::Warning(text) | EvaluateEvent::DatasetProblem(text) => {
                bar = None;
                ui.warn(text);
            }
            EvaluateEvent::Tuning(images) => {
                bar = Some(ui.progress(images as u64, "tuning the threshold"));
            }
            EvaluateEvent::Scoring(images) => {
                bar = Some(ui.progress(images as u64, "evaluating"));
            }
            EvaluateEvent::Image => bar.iter().for_each(|bar| bar.inc(1)),
            _ => {}
        }
        go_on()
    })
}

/// The loss, term by term if it has several.
pub(crate) fn describe(terms: &Terms) -> String {
    match (terms.foreground, terms.background) {
        (Some(foreground), Some(background)) => format!(
            "localizer {:.3}, foreground {foreground:.3}, background {background:.3}",
            terms.localizer
        ),
        _ => format!("loss {:.3}", terms.localizer),
    }
}

/// What an epoch came to, in a line.
pub(crate) fn epoch_line(record: &EpochRecord) -> String {
    let valid = record.valid_error.map_or_else(String::new, |error| {
        let localizer = record.valid_localizer_error;
        let localizer = localizer.map(|error| format!(" (localizer {error:.2} %)"));
        let best = if record.best { " (best)" } else { "" };
        format!(", validation error {error:.2} %{}{best}", localizer.unwrap_or_default())
    });
    let terms = Terms {
        localizer: record.loss_localizer,
        foreground: record.loss_foreground,
        background: record.loss_background,
    };
    format!(
        "epoch {}: {}, training error {:.2} %{valid}, {:.1} s",
        record.epoch,
        describe(&terms),
        record.train_error,
        record.seconds,
    )
}

/// One training, as the terminal shows it.
struct TrainingProgress<'a> {
    request: &'a TrainRequest,
    ui: &'a mut Ui,
    bar: Option<Progress>,
    expected: ExpectedTime,
    /// What TensorBoard shows, if that is wanted.
    events: Option<EventFile>,
    started: Instant,
    images: usize,
    mistakes: f64,
}

impl TrainingProgress<'_> {
    /// Says before it starts what will be trained, from what and where to.
    fn announce(&mut self, dataset: &Dataset) {
        let TrainRequest { config, weights, out, resume, .. } = self.request;
        let (method, backbone) = (&config.method, self.request.backbone());
        let network = backbone.map(|backbone| format!(" with {}", backbone.name()));
        let start = weights.as_ref().map(|path| format!(", weights `{}`", path.display()));
        let epochs = match method.as_str() {
            "probe" => String::new(),
            _ => format!(", {} epochs", config.train.epochs),
        };
        let input = match config.preprocess.shrink_short_side {
            0 => "images at their own size".to_owned(),
            side => format!("images of at most {side} pixels on the short side"),
        };
        self.ui.note(&format!(
            "{method}{}{}{epochs}: {} training and {} validation images of {} classes, \
             {input}; the run is `{}`",
            network.unwrap_or_default(),
            start.unwrap_or_default(),
            dataset.train.len(),
            dataset.valid.len(),
            dataset.classes.len(),
            out.display()
        ));
        // A probe says so itself, and nobody publishes weights of `tiny`.
        let wants_weights =
            method != "probe" && backbone.is_some_and(|backbone| backbone != Backbone::Tiny);
        if wants_weights && weights.is_none() && !resume {
            self.ui.warn(
                "no `--weights` were given, so the network starts from weights drawn at random, \
                 which takes many more images and epochs: `pinpoint weights get resnet18` fetches \
                 ImageNet's",
            );
        }
    }

    fn begin(&mut self, epochs: usize, steps: usize, (epoch, step): (usize, usize)) {
        if (epoch, step) != (0, 0) {
            self.ui.note(&format!("going on from epoch {epoch}, step {step}"));
        }
        let bar = self.ui.progress((epochs * steps) as u64, "training");
        bar.skip((epoch * steps + step) as u64);
        self.bar = Some(bar);
        self.expected = ExpectedTime::default();
    }

    /// Says how long it will take, once the first pieces tell.
    fn expect(&mut self, what: &str) {
        let Some(bar) = &self.bar else { return };
        if let Some(time) = self.expected.piece(Instant::now(), bar.pieces_left()) {
            let line = format!("expected time of {what}: {}", about(time));
            bar.aside(|| self.ui.note(&line));
        }
    }

    fn step(&mut self, epoch: usize, terms: &Terms, images: usize, mistakes: f64) {
        self.images += images;
        self.mistakes += mistakes;
        if let Some(bar) = &self.bar {
            let speed = self.images as f64 / self.started.elapsed().as_secs_f64();
            bar.describe(&format!(
                "epoch {epoch}: {}, error {:.1} %, {speed:.1} images/s",
                describe(terms),
                100.0 * self.mistakes / self.images as f64,
            ));
            bar.inc(1);
        }
        self.expect("training, validation not counted");
    }

    fn working(&mut self, what: &'static str, done: usize, total: usize) {
        if done == 0 {
            self.bar = Some(self.ui.progress(total as u64, what));
            self.expected = ExpectedTime::default();
        } else if let Some(bar) = &self.bar {
            bar.inc(1);
            self.expect(what);
        }
    }

    fn epoch(&mut self, record: &EpochRecord) {
        (self.images, self.mistakes, self.started) = (0, 0.0, Instant::now());
        let line = epoch_line(record);
        match &self.bar {
            Some(bar) => bar.say(&line),
            None => self.ui.note(&line),
        }
        // Training goes on where the file of TensorBoard cannot be written.
        if let Some(Err(error)) = self.events.as_mut().map(|events| events.add(record)) {
            self.ui.warn(&format!("{error:#}"));
            self.events = None;
        }
    }
}

impl Observer for TrainingProgress<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Opened(dataset) => {
                dataset.notes.iter().for_each(|note| self.ui.note(note));
                self.announce(dataset);
            }
            Event::Note(text) => self.ui.note(text),
            Event::Warning(text) => self.ui.warn(text),
            Event::Started { epochs, steps, from } => self.begin(*epochs, *steps, *from),
            Event::Step { epoch, terms, images, mistakes, .. } => {
                self.step(*epoch, terms, *images, *mistakes);
            }
            Event::Working { what, done, total } => self.working(what, *done, *total),
            Event::Epoch(record) => self.epoch(record),
            _ => {}
        }
    }

    fn wants_to_stop(&self) -> bool {
        requested()
    }
}
