//! A server that evaluates queries over a store, or does what a test tells it to.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

pub(crate) mod films;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wherefore_graph::names::percent_decode;
use wherefore_graph::sparql::{ResultFormat, SparqlOptions, write};
use wherefore_graph::{ServiceConfig, Store};

pub(crate) const JSON: &str = "application/sparql-results+json";

/// What a server does with the n-th query.
pub(crate) type Reply = Box<dyn Fn(usize, &str, &mut TcpStream) -> bool + Send + Sync>;

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) queries: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn config(&self) -> ServiceConfig {
        let mut config = ServiceConfig::at(&self.url);
        config.limits.timeout_s = 5.0;
        config.limits.retries = 1;
        config
    }

    pub(crate) fn sent(&self) -> usize {
        self.queries.lock().unwrap().len()
    }
}

/// Serves a store; `reply` comes first and may do it all.
pub(crate) fn serve(store: Store, reply: Reply) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sparql", listener.local_addr().unwrap());
    let queries = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&queries);
    let (store, reply) = (Arc::new(store), Arc::new(reply));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (store, reply, seen) = (Arc::clone(&store), Arc::clone(&reply), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let Some(query) = query_of(&stream) else {
                    return;
                };
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(query.clone());
                    seen.len()
                };
                if reply(number, &query, &mut stream) {
                    return;
                }
                let mut out = Vec::new();
                let options = SparqlOptions::default();
                match write(&store, &query, &options, ResultFormat::Json, &mut out) {
                    Ok(_) => says(
                        &mut stream,
                        "200 OK",
                        "application/sparql-results+json",
                        &out,
                    ),
                    Err(e) => {
                        let text = format!("{e}: {query}");
                        says(
                            &mut stream,
                            "400 Bad Request",
                            "text/plain",
                            text.as_bytes(),
                        );
                    }
                }
            });
        }
    });
    Server { url, queries }
}

pub(crate) fn honest() -> Reply {
    Box::new(|_, _, _| false)
}

fn query_of(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut first) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if first.is_empty() {
            first.clone_from(&line);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let form = match first.split_once('?') {
        Some((_, rest)) => rest.split(' ').next()?.to_owned(),
        None => String::from_utf8(body).ok()?,
    };
    let query = form
        .split('&')
        .find_map(|pair| pair.strip_prefix("query="))?;
    Some(percent_decode(&query.replace('+', " ")))
}

pub(crate) fn says(stream: &mut TcpStream, status: &str, kind: &str, body: &[u8]) {
    says_with(stream, status, &format!("Content-Type: {kind}\r\n"), body);
}

/// With headers, each with its end of line.
pub(crate) fn says_with(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    // whoever hangs up has seen enough
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

/// Sends a head and then one byte after the other, until the client hangs up.
pub(crate) fn drip(stream: &mut TcpStream, head: &str) {
    let _ = stream.write_all(head.as_bytes());
    while stream.write_all(b" ").is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Says nothing until the client hangs up.
pub(crate) fn stay_silent(stream: &mut TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}
