//! A real browser, where there is one, that tests drive as a person would.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Nothing here takes that long; a busy machine may take its time all the same.
const PATIENCE: Duration = Duration::from_secs(300);

/// Browsers that are started before it is given up: on a busy machine the driver may lose patience.
const STARTS: usize = 3;

/// Sends an HTTP request as it is to a port of this machine, and gives status line and body.
pub(crate) fn exchange(port: u16, head: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut reader = BufReader::new(stream);
    let mut status = String::new();
    reader.read_line(&mut status).unwrap();
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body).unwrap();
    (status.trim().to_owned(), body)
}

/// A browser that is told what to do by the WebDriver protocol.
pub(crate) struct Person {
    driver: Child,
    port: u16,
    session: String,
}

impl Person {
    /// With a window of that width and height; none, which is said, if there is no browser with
    /// its driver on the path.
    pub(crate) fn new(profile: &Path, window: &str) -> Option<Self> {
        let on_path = |name: &str| {
            env::split_paths(&env::var_os("PATH")?)
                .map(|folder| folder.join(name))
                .find(|file| file.is_file())
        };
        let (Some(driver), Some(browser)) = (on_path("chromedriver"), on_path("chromium")) else {
            eprintln!("skipped: no Chromium with its driver on the path");
            return None;
        };
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let started = lines.find(|line| line.contains("started successfully on port"));
        let started = started.expect("the driver says its port");
        let port = started.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap();
        // Whoever stops reading ends the driver.
        thread::spawn(move || lines.for_each(drop));
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
        ];
        let own =
            [format!("--user-data-dir={}", profile.display()), format!("--window-size={window}")];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(own.iter().map(String::as_str)).collect();
        let options = json!({ "binary": browser, "args": arguments });
        let mut person = Self { driver, port, session: String::new() };
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let mut answers = (0..STARTS).map(|_| person.call("POST", "/session", &wanted));
        let answer = answers.find(|answer| answer["error"].is_null());
        let answer = answer.expect("the driver starts a browser");
        person.session = answer["sessionId"].as_str().unwrap().to_owned();
        let patience = PATIENCE.as_millis() as u64;
        person.does("timeouts", &json!({ "script": patience, "pageLoad": patience }));
        Some(person)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.port,
            body.len()
        );
        let (_, answer) = exchange(self.port, &head, body.as_bytes());
        serde_json::from_slice::<Value>(&answer).unwrap()["value"].clone()
    }

    pub(crate) fn does(&self, what: &str, body: &Value) -> Value {
        let answer = self.call("POST", &format!("/session/{}/{what}", self.session), body);
        assert!(answer["error"].is_null(), "{what}: {answer:#}");
        answer
    }

    /// What a script in the page gives.
    pub(crate) fn sees(&self, script: &str) -> Value {
        self.does("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// What a script in the page gives in the end to the function that is its only argument.
    pub(crate) fn learns(&self, script: &str) -> Value {
        self.does("execute/async", &json!({ "script": script, "args": [] }))
    }

    pub(crate) fn waits_until(&self, script: &str) {
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            if self.sees(script) == json!(true) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("never: {script}; the page says {}", self.sees("return document.body.innerText"));
    }

    /// Chooses a file in the page's only file field.
    pub(crate) fn chooses(&self, file: &Path) {
        let field = self.does("element", &json!({ "using": "css selector", "value": "#file" }));
        let id = field.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.does(&format!("element/{id}/value"), &json!({ "text": file }));
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
