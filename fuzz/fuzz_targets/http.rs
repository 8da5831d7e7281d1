//! Requests to a server in this process: the first byte picks what is called, the rest is the
//! body, the query or the whole request. No request may be the server's own fault.
#![no_main]

use std::io::{Cursor, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore_fuzz::{scratch, small_graph};
use wherefore_serve::{ServeConfig, Server, speak_mcp};

struct Served {
    _scratch: TempDir,
    address: SocketAddr,
    config: ServeConfig,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let scratch = scratch();
    let graph = small_graph(&scratch);
    let text = format!(
        "limits = {{ seconds = 5.0, sparql_seconds = 1.0, rate = 0 }}\n\
         [graphs.small]\npath = \"{}\"\n[graphs.toy]\npath = \"@toy\"\n",
        graph.display()
    );
    let mut config = ServeConfig::from_toml(&text).expect("the configuration is well-formed");
    config.listen.set_port(0);
    let server = Server::open(config.clone(), Arc::new(|_| {})).expect("the server opens");
    let address = server.address().expect("it listens");
    std::thread::spawn(move || server.run());
    Served {
        _scratch: scratch,
        address,
        config,
    }
});

const POSTS: [&str; 12] = [
    "/v1/ask",
    "/v1/ask?stream=true",
    "/v1/retrieve",
    "/v1/link",
    "/v1/verify",
    "/v1/sparql",
    "/v1/graphs/small/sparql",
    "/v1/triples",
    "/v1/feedback",
    "/v1/chat/completions",
    "/mcp",
    "/v1/graphs/toy/sparql",
];
const GETS: [&str; 6] = [
    "/v1/sparql?",
    "/v1/complete?",
    "/v1/entities?",
    "/v1/neighbourhood?",
    "/v1/runs/",
    "/v1/models/",
];

fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: {kind}\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        SERVED.address,
        body.len()
    );
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    request
}

fn get(path: &str, rest: &[u8]) -> Vec<u8> {
    let mut request = format!("GET {path}").into_bytes();
    request.extend_from_slice(rest);
    let end = format!(
        " HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        SERVED.address
    );
    request.extend_from_slice(end.as_bytes());
    request
}

/// Waits where all ports of this machine are taken by connections that have just ended.
fn connect() -> TcpStream {
    for _ in 0..600 {
        match TcpStream::connect(SERVED.address) {
            Ok(stream) => return stream,
            Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(error) => panic!("the server does not listen: {error}"),
        }
    }
    panic!("no port was free for a minute");
}

fn send(request: &[u8]) {
    let mut stream = connect();
    let limit = Some(Duration::from_secs(30));
    stream.set_read_timeout(limit).expect("it is not zero");
    // a server that has seen enough may close before all is sent
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut reply = Vec::new();
    if let Err(error) = stream.read_to_end(&mut reply) {
        let is_late = matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        );
        assert!(!is_late, "there is no reply");
    }
    let status = reply.get(9..12).unwrap_or_default();
    // 503 is said while it warms up, and 504 when the time is over
    assert!(
        !status.starts_with(b"5") || status == b"503" || status == b"504",
        "{}",
        String::from_utf8_lossy(&reply)
    );
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, rest)) = data.split_first() else {
        return Corpus::Reject;
    };
    let kind = match first & 32 == 0 {
        true => "application/json",
        false => "application/sparql-query",
    };
    match usize::from(first & 31) {
        which if which < POSTS.len() => send(&post(POSTS[which], kind, rest)),
        which if which < POSTS.len() + GETS.len() => {
            send(&get(GETS[which - POSTS.len()], rest));
        }
        18 => send(rest),
        19 => {
            let mut out = Vec::new();
            let config = SERVED.config.clone();
            let spoken = speak_mcp(config, Arc::new(|_| {}), &mut Cursor::new(rest), &mut out);
            spoken.expect("a vector takes all");
        }
        _ => return Corpus::Reject,
    }
    Corpus::Keep
});
