//! As much of HTTP/1.1 as one page on this machine needs, with bounds on everything.
//!
//! Written out rather than taken from a crate: the servers that are well kept bring an
//! asynchronous runtime with them, which is more than the rest of this command.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

/// Most bytes of a request's first lines.
const HEAD_BYTES: u64 = 16 * 1024;

/// Most bytes of an image that is sent.
pub(super) const BODY_BYTES: usize = 256 << 20;

/// How long a browser may be silent within a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it may be silent once it has its answer.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);

/// What a browser asks for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    /// By their names in small letters.
    headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// What it is given.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: "200 OK", content_type, body: body.into() }
    }

    pub(super) fn problem(status: &'static str, message: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: message.into() }
    }

    pub(super) fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
        let Self { status, content_type, body } = self;
        // Nothing of a page may reach beyond this server, whatever is in its data.
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Content-Security-Policy: default-src 'self' 'unsafe-inline' data: blob:\r\n\
             Connection: close\r\n\r\n",
            body.len()
        )?;
        stream.write_all(body)?;
        stream.flush()?;
        // What was refused unread would reset the connection, and the answer would be lost with it.
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(CLOSING_TIMEOUT))?;
        io::copy(&mut stream.take(BODY_BYTES as u64), &mut io::sink()).map(drop)
    }
}

impl Request {
    /// Reads a request from `stream`, or answers one that is not as it should be; an error if the
    /// connection is of no use any more.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Result<Self, Response>> {
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let mut reader = BufReader::new(stream);
        let mut head = reader.by_ref().take(HEAD_BYTES);
        let mut line = String::new();
        head.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(Err(Response::problem("400 Bad Request", "this is no request")));
        };
        let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
        let mut headers = BTreeMap::new();
        loop {
            line.clear();
            if head.read_line(&mut line)? == 0 {
                let status = "431 Request Header Fields Too Large";
                return Ok(Err(Response::problem(status, "too long")));
            }
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap_or(usize::MAX));
        if length > BODY_BYTES {
            let message = format!("files of more than {} MiB are not taken here", BODY_BYTES >> 20);
            return Ok(Err(Response::problem("413 Content Too Large", message)));
        }
        // Grown as it arrives: what is announced costs nothing.
        let mut body = Vec::new();
        reader.take(length as u64).read_to_end(&mut body)?;
        if body.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Ok(Self { method, path, headers, body }))
    }

    /// Whether it comes from a page of this server: another page must not read what is here, not
    /// even under a name of its own for this address.
    pub(super) fn is_ours(&self, port: u16) -> bool {
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let of_page =
            |origin: &String| hosts.iter().any(|host| *origin == format!("http://{host}"));
        let header = |name: &str| self.headers.get(name);
        header("host").is_some_and(|host| hosts.contains(host))
            && header("origin").is_none_or(of_page)
            && (self.method == "GET"
                || header("content-type").is_some_and(|kind| kind == "application/octet-stream"))
    }
}
