//! A server on a free port of the loopback address, and a client that hides nothing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use wherefore_serve::{ServeConfig, Server, Stop};

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// What came back, as it came.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// The toy graph with `more` in the configuration.
pub(crate) fn toy(more: &str) -> Served {
    serve(&format!("{more}\n[graphs.toy]\npath = \"@toy\"\n"))
}

pub(crate) fn serve(config: &str) -> Served {
    let mut config = ServeConfig::from_toml(config).unwrap();
    config.listen.set_port(0);
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    let server = Server::open(
        config,
        Arc::new(move |line| lines.lock().unwrap().push(line.to_owned())),
    )
    .unwrap();
    let address = server.address().unwrap();
    let stop = server.stopper();
    let thread = std::thread::spawn(move || server.run().unwrap());
    let served = Served {
        address,
        log,
        stop,
        thread: Some(thread),
    };
    let until = Instant::now() + Duration::from_secs(60);
    while served.get("/ready").status != 200 {
        assert!(Instant::now() < until, "the server does not get ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    served
}

impl Served {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).unwrap();
        stream
    }

    /// Sends a request and reads until the other side closes.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        self.write(&mut stream, method, path, headers, body);
        read(&mut stream)
    }

    pub(crate) fn write(
        &self,
        stream: &mut TcpStream,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|h| h.starts_with("host:")) {
            head += &format!("host: {}\r\n", self.address);
        }
        for header in headers {
            head += &format!("{header}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        // a server that has seen enough may close before all is sent
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body);
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        let headers = ["content-type: application/json"];
        self.send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// Stops the server and waits for its end.
    pub(crate) fn end(mut self) {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap();
    }

    pub(crate) fn begin_to_stop(&self) {
        self.stop.stop();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            thread.join().unwrap();
        }
    }
}

/// Reads a whole reply; chunks are put together.
pub(crate) fn read(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // a reset after the reply is as good as an end
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    Reply {
        status: status.unwrap_or(0),
        body: if chunked {
            unchunked(body)
        } else {
            body.to_owned()
        },
        head: head.to_owned(),
    }
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        out += &rest[..size];
        body = rest[size..].trim_start_matches("\r\n");
    }
    out
}
