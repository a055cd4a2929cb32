//! `pinpoint view`: the report of a run in the browser, and a page to try the run on an image.

mod http;

use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Component, Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    thread,
};

use anyhow::Context;
use pinpoint::{
    Predictor,
    data::image::read_rgb,
    predict::{PredictOptions, Prediction},
};
use serde_json::json;

use self::http::{Request, Response};
use crate::ui::Ui;

const PAGE: &str = include_str!("page.html");

/// Most requests that are answered at once.
const MOST_REQUESTS: usize = 16;

/// Longest side of the scores that the page is sent, in pixels.
const SHOWN_SIDE: u32 = 1024;

/// Look at a run's report in the browser, and try the run on images of your own
#[derive(Debug, clap::Args)]
pub(crate) struct View {
    /// Run directory written by `pinpoint train`
    run: PathBuf,

    /// Port on this machine; any free one by default
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,

    /// Do not open the browser
    #[arg(long)]
    no_open: bool,
}

/// What the pages are made of.
struct Site {
    run: PathBuf,
    port: u16,
    predictor: Predictor,
}

impl View {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let predictor = Predictor::open(&self.run, "cpu")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))
            .with_context(|| format!("cannot listen on port {} of this machine", self.port))?;
        let port = listener.local_addr()?.port();
        let address = format!("http://127.0.0.1:{port}/");
        ui.print(&address);
        ui.note("only this machine can reach it; Ctrl-C ends it");
        if !self.no_open {
            open_browser(&address);
        }
        let site = Arc::new(Site { run: self.run, port, predictor });
        for stream in listener.incoming().flatten() {
            // Each answer shares the site until it is given; beyond that, browsers try again.
            if Arc::strong_count(&site) <= MOST_REQUESTS {
                let site = Arc::clone(&site);
                thread::spawn(move || site.answer(stream));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Site {
    fn answer(&self, mut stream: TcpStream) {
        let response = match Request::read(&stream) {
            Ok(Ok(request)) if request.is_ours(self.port) => self.respond(&request),
            Ok(Ok(_)) => Response::problem("403 Forbidden", "asked from elsewhere"),
            Ok(Err(refusal)) => refusal,
            Err(_) => return,
        };
        // A browser that has gone away needs no answer.
        let _ = response.write(&mut stream);
    }

    fn respond(&self, request: &Request) -> Response {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => Response::new("text/html; charset=utf-8", self.page()),
            ("POST", "/predict") => self.predict(&request.body).unwrap_or_else(|error| {
                Response::problem("422 Unprocessable Content", format!("{error:#}"))
            }),
            ("GET", path) => self
                .file(path)
                .unwrap_or_else(|| Response::problem("404 Not Found", "there is no such page")),
            _ => Response::problem("405 Method Not Allowed", "not to be done here"),
        }
    }

    /// The page on which images are tried, linked to the report where there is one.
    fn page(&self) -> String {
        let facts = json!({
            "run": self.run.display().to_string(),
            "method": self.predictor.method(),
            "classes": self.predictor.classes(),
            "report": self.run.join("report/report.html").is_file(),
        });
        // `<` could end the script that the facts stand in.
        PAGE.replace("{{facts}}", &facts.to_string().replace('<', "\\u003c"))
    }

    /// A file of the run's report.
    fn file(&self, path: &str) -> Option<Response> {
        let relative = Path::new(path.strip_prefix("/report/")?);
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let content_type = match relative.extension()?.to_str()? {
            "html" => "text/html; charset=utf-8",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "json" => "application/json",
            "csv" | "md" => "text/plain; charset=utf-8",
            _ => return None,
        };
        let file = self.run.join("report").join(relative);
        Some(Response::new(content_type, fs::read(file).ok()?))
    }

    /// A line of JSON, and then one byte per pixel of the scores.
    fn predict(&self, bytes: &[u8]) -> anyhow::Result<Response> {
        // A file for the one decoder that there is, removed with this value.
        let mut upload = tempfile::Builder::new()
            .prefix("pinpoint-view-")
            .tempfile()
            .context("cannot store the image")?;
        upload.write_all(bytes).context("cannot store the image")?;
        let image = read_rgb(upload.path(), self.predictor.config().data.max_megapixels);
        // Its name is one that only we know.
        let unnamed = |text: &str| text.replace(&format!(": `{}`", upload.path().display()), "");
        let image = image.map_err(|error| anyhow::anyhow!("{}", unnamed(&error.to_string())))?;
        let prediction = self.predictor.predict(&image, &PredictOptions::default())?;
        let (size, scores) = shown_scores(&prediction);
        let classes = self.predictor.classes().iter();
        let probabilities = prediction.probabilities.iter().flatten();
        let named: Vec<_> = classes
            .zip(probabilities)
            .map(|(class, probability)| json!({ "class": class, "probability": probability }))
            .collect();
        let facts = json!({
            "class": prediction.class_name,
            "probabilities": named,
            "threshold": prediction.threshold,
            "width": size.0,
            "height": size.1,
        });
        let mut body = facts.to_string().into_bytes();
        body.push(b'\n');
        body.extend(scores);
        Ok(Response::new("application/octet-stream", body))
    }
}

/// Scores as bytes, of every n-th pixel where the image is larger than a page shows.
fn shown_scores(prediction: &Prediction) -> ((u32, u32), Vec<u8>) {
    let (width, height) = (prediction.size.width, prediction.size.height);
    let step = width.max(height).div_ceil(SHOWN_SIDE).max(1);
    let byte = |score: f32| (score.clamp(0.0, 1.0) * 255.0).round() as u8;
    let rows = prediction.scores.chunks_exact(width as usize).step_by(step as usize);
    let scores = rows.flat_map(|row| row.iter().step_by(step as usize).map(|&score| byte(score)));
    ((width.div_ceil(step), height.div_ceil(step)), scores.collect())
}

/// Asks the system to show a page; whoever has no browser has read the address.
fn open_browser(address: &str) {
    let (program, arguments): (_, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(address);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
