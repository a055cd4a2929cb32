//! `pinpoint view` from outside: what its server gives to whom, and a person who tries an image.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use assert_cmd::cargo::CommandCargoExt as _;
use serde_json::{Value, json};

use crate::{
    browser::{Person, exchange},
    train::Workshop,
};

/// The server of a run, ended with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn of(run: &Path) -> Self {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.arg("view").arg(run).arg("--no-open");
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next().unwrap();
        Self { port: port.parse().unwrap_or_else(|_| panic!("{line}")), process }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends a request as it is, and gives status line and body.
    fn ask(&self, head: &str, body: &[u8]) -> (String, Vec<u8>) {
        exchange(self.port, head, body)
    }

    fn get(&self, path: &str) -> (String, Vec<u8>) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host()), b"")
    }

    fn post(&self, body: &[u8], more: &str) -> (String, Vec<u8>) {
        let head = format!(
            "POST /predict HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{more}\r\n",
            self.host(),
            body.len()
        );
        self.ask(&head, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A trained run with a report, and one of its images.
fn workshop() -> (Workshop, PathBuf) {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let report = workshop.run_dir("run/report");
    fs::create_dir_all(&report).unwrap();
    fs::write(report.join("report.html"), "<p>the report</p>").unwrap();
    let class = fs::read_dir(workshop.run_dir("data/test")).unwrap().next().unwrap().unwrap();
    let image = fs::read_dir(class.path()).unwrap().next().unwrap().unwrap().path();
    (workshop, image)
}

const BYTES: &str = "Content-Type: application/octet-stream\r\n";

#[test]
fn the_server_shows_the_report_predicts_images_and_keeps_everything_else_to_itself() {
    let (workshop, image) = workshop();
    let server = Server::of(&workshop.run_dir("run"));

    let (status, page) = server.get("/");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(String::from_utf8(page).unwrap().contains("\"report\":true"));
    assert_eq!(server.get("/report/report.html").1, b"<p>the report</p>");

    let (status, answer) = server.post(&fs::read(&image).unwrap(), BYTES);
    assert_eq!(status, "HTTP/1.1 200 OK", "{}", String::from_utf8_lossy(&answer));
    let end = answer.iter().position(|&byte| byte == b'\n').unwrap();
    let facts: Value = serde_json::from_slice(&answer[..end]).unwrap();
    assert_eq!(answer.len() - end - 1, 32 * 32, "one score per pixel");
    assert_eq!((&facts["width"], &facts["height"]), (&json!(32), &json!(32)));
    let sum: f64 = facts["probabilities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["probability"].as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-5, "{facts}");

    for path in ["/report/../config.toml", "/config.toml", "/report//etc/passwd", "/report/x.html"]
    {
        assert_eq!(server.get(path).0, "HTTP/1.1 404 Not Found", "{path}");
    }
    let (status, message) = server.post(b"no image", BYTES);
    assert_eq!(status, "HTTP/1.1 422 Unprocessable Content");
    let message = String::from_utf8(message).unwrap();
    assert!(message.contains("not an image") && !message.contains("pinpoint-view"), "{message}");

    // Pages of others, under whatever name, and forms that need no permission.
    let elsewhere = "GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n";
    assert_eq!(server.ask(elsewhere, b"").0, "HTTP/1.1 403 Forbidden");
    assert_eq!(server.post(b"x", "Content-Type: text/plain\r\n").0, "HTTP/1.1 403 Forbidden");
    let origin = format!("{BYTES}Origin: http://elsewhere.example\r\n");
    assert_eq!(server.post(b"x", &origin).0, "HTTP/1.1 403 Forbidden");

    // Longer than what waits in buffers: the answer arrives although most of it is never read.
    let endless = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(8 << 20));
    assert!(server.ask(&endless, b"").0.starts_with("HTTP/1.1 431"));
    let huge = format!(
        "POST /predict HTTP/1.1\r\nHost: {}\r\nContent-Length: 99999999999\r\n\r\n",
        server.host()
    );
    assert!(server.ask(&huge, b"").0.starts_with("HTTP/1.1 413"));
    assert_eq!(server.get("/").0, "HTTP/1.1 200 OK", "it goes on");
}

#[test]
fn a_person_drops_an_image_and_moves_the_threshold() {
    let profile = tempfile::tempdir().unwrap();
    let Some(person) = Person::new(profile.path(), "420,900") else { return };
    let (workshop, image) = workshop();
    let server = Server::of(&workshop.run_dir("run"));
    person.does("url", &json!({ "url": format!("http://{}/", server.host()) }));
    assert_eq!(person.sees("return document.getElementById('report').hidden"), json!(false));
    assert_eq!(
        person.sees("return document.documentElement.scrollWidth <= innerWidth"),
        json!(true),
        "it fits a phone"
    );

    person.chooses(&image);
    person.waits_until("return !document.getElementById('result').hidden");
    let area = "return parseFloat(document.getElementById('area').textContent)";
    let at = |threshold: &str| {
        person.sees(&format!(
            "const slider = document.getElementById('threshold'); slider.value = '{threshold}'; \
             slider.dispatchEvent(new Event('input')); {area}"
        ))
    };
    let first = person.sees(area);
    assert_eq!(at("0"), json!(100), "everything is foreground");
    assert!(at("1").as_f64().unwrap() < 100.0);
    person.sees("document.getElementById('reset').click()");
    assert_eq!(person.sees(area), first);
    let classes = person.sees("return document.getElementById('probabilities').rows.length");
    assert_eq!(classes, json!(2));
    let drawn = person.sees("const c = document.getElementById('heat'); return c.width * c.height");
    assert_eq!(drawn, json!(32 * 32));

    let text = workshop.run_dir("notes.txt");
    fs::write(&text, "no image").unwrap();
    person.chooses(&text);
    person
        .waits_until("return document.getElementById('problem').textContent.includes('notes.txt')");
    assert_eq!(person.sees("return document.getElementById('result').hidden"), json!(true));
}
