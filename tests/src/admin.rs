//! A client of the admin server of a running instance, over plain sockets: the Unix socket, or the
//! TCP address with a token.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// An admin server that does not respond within this time counts as not responding.
const PATIENCE: Duration = Duration::from_secs(2);

/// The admin server of a data folder.
#[derive(Clone, Debug)]
pub struct Admin {
    data: PathBuf,
}

/// A sample of the metrics page.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name and labels, as the page has them.
    pub name: String,
    /// The value.
    pub value: f64,
}

impl Admin {
    /// The admin server of the instance with this data folder.
    pub fn of(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
        }
    }

    /// Sends `GET` for a path such as `/api/status`; `None` without a response of status 200.
    pub fn show(&self, path: &str) -> Option<Value> {
        serde_json::from_str(&self.request("GET", path)?).ok()
    }

    /// Sends `GET` for a path of the API that must respond.
    ///
    /// # Panics
    /// If it does not respond with status 200.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn must_show(&self, path: &str) -> Value {
        self.show(path).expect("the admin server responds")
    }

    /// Sends a command such as `/api/halt`.
    ///
    /// # Panics
    /// If the command is refused or gets no response.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn command(&self, path: &str) {
        self.request("POST", path).expect("the command is accepted");
    }

    /// The metrics without comment lines; empty while nothing listens.
    pub fn metrics(&self) -> Vec<Sample> {
        let page = self.request("GET", "/metrics").unwrap_or_default();
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some(Sample {
                name: name.to_owned(),
                value: value.parse().ok()?,
            })
        });
        samples.collect()
    }

    /// All bytes of the response to this request, also of a refusal; `None` while nothing listens.
    pub fn raw(&self, method: &str, path: &str) -> Option<String> {
        // Through the open folder, because a long path does not fit into a socket's address.
        let folder = File::open(&self.data).ok()?;
        let socket = format!("/proc/self/fd/{}/admin.sock", folder.as_raw_fd());
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        exchange(stream, method, path, "localhost", "")
    }

    /// The same over the TCP address of `admin.listen`, with this token.
    pub fn raw_over_tcp(&self, method: &str, path: &str, token: Option<&str>) -> Option<String> {
        let address = self.address()?;
        let stream = TcpStream::connect(&address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        exchange(
            stream,
            method,
            path,
            &address,
            &authorization.unwrap_or_default(),
        )
    }

    /// The TCP address in `admin.addr`.
    pub fn address(&self) -> Option<String> {
        let address = std::fs::read_to_string(self.data.join("admin.addr")).ok()?;
        Some(address.trim().to_owned())
    }

    /// The token in `admin.token`.
    pub fn token(&self) -> Option<String> {
        let token = std::fs::read_to_string(self.data.join("admin.token")).ok()?;
        Some(token.trim().to_owned())
    }

    fn request(&self, method: &str, path: &str) -> Option<String> {
        let answer = self.raw(method, path)?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    host: &str,
    headers: &str,
) -> Option<String> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
         Content-Length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
