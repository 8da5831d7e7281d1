//! What keeps the server alive and safe: queues, slow and vanishing clients, the way it ends,
//! keys, names, origins, headers, labels that are no text.

mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use served::{Served, read, serve, toy};

/// Seven joins without a common variable: more rows than can be counted in time.
const ENDLESS: &str = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?o ?p . ?q ?r ?s . ?t ?u ?v }";
const QUERY: [&str; 1] = ["content-type: application/sparql-query"];
const ASK: &str = r#"{"question":"Who is the mascot of the San Francisco Giants?"}"#;

fn one_worker(seconds: f64, queue: usize) -> Served {
    toy(&format!(
        "limits = {{ workers = 1, sparql_workers = 1, queue = {queue}, sparql_seconds = {seconds} }}"
    ))
}

/// Begins a query that holds the worker for SPARQL until its time is over.
fn hold(served: &Served) -> TcpStream {
    let stream = begin_query(served, ENDLESS);
    await_gauge(served, "wherefore_workers_busy 1");
    stream
}

fn begin_query(served: &Served, query: &str) -> TcpStream {
    let mut stream = served.connect();
    let path = "/v1/sparql";
    served.write(&mut stream, "POST", path, &QUERY, query.as_bytes());
    stream
}

fn await_gauge(served: &Served, line: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while !served.get("/metrics").body.lines().any(|l| l == line) {
        assert!(Instant::now() < until, "{line} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn begin_ask(served: &Served) -> TcpStream {
    let mut stream = served.connect();
    let headers = ["content-type: application/json"];
    served.write(
        &mut stream,
        "POST",
        "/v1/ask?stream=true",
        &headers,
        ASK.as_bytes(),
    );
    stream
}

#[test]
fn beyond_the_queue_there_is_429_and_a_dropped_request_gives_its_place_away() {
    let served = one_worker(3.0, 1);
    let mut held = hold(&served);
    let waiting = begin_query(&served, "ASK {}");
    await_gauge(&served, "wherefore_queue_waiting 1");
    let refused = served.send("POST", "/v1/sparql", &QUERY, b"ASK {}");
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("1"))
    );
    assert_eq!(refused.json()["code"], "busy");
    // questions are answered and things are looked up meanwhile
    let answered = served.post("/v1/ask", &serde_json::from_str(ASK).unwrap());
    assert_eq!(answered.status, 200);
    assert_eq!(served.get("/v1/entities?prefix=lou").status, 200);
    assert_eq!(served.get("/ready").json()["pools"]["sparql"]["running"], 1);
    drop(waiting);
    let until = Instant::now() + Duration::from_secs(20);
    let mut next = loop {
        let mut next = begin_query(&served, "ASK {}");
        next.set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        let mut first = [0; 12];
        // a refusal comes at once
        match next.read_exact(&mut first) {
            Ok(()) if first.ends_with(b"429") => {}
            _ => break next,
        }
        assert!(Instant::now() < until, "the place is not given away");
    };
    let over = read(&mut held);
    assert_eq!(
        (over.status, over.json()["code"].as_str()),
        (422, Some("out-of-time"))
    );
    next.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut rest = String::new();
    next.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"boolean\":true"), "{rest}");
}

#[test]
fn slow_clients_hold_no_worker() {
    let served = one_worker(1.0, 4);
    let mut half_head = served.connect();
    half_head
        .write_all(b"POST /v1/ask HTTP/1.1\r\nhost: localhost\r\n")
        .unwrap();
    let mut half_body = served.connect();
    let head = "POST /v1/ask HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{";
    half_body.write_all(head.as_bytes()).unwrap();
    // streams whose readers do not read
    let unread: Vec<TcpStream> = (0..4).map(|_| begin_ask(&served)).collect();
    await_gauge(&served, "wherefore_queue_waiting 0");
    for _ in 0..8 {
        let reply = served.post("/v1/ask", &serde_json::from_str(ASK).unwrap());
        assert_eq!(reply.status, 200);
    }
    drop((half_head, half_body, unread));
}

#[test]
fn what_runs_comes_to_its_end_when_the_server_is_stopped() {
    let served = one_worker(1.0, 4);
    let mut held = hold(&served);
    let mut waiting = begin_query(&served, "ASK {}");
    await_gauge(&served, "wherefore_queue_waiting 1");
    served.begin_to_stop();
    let over = read(&mut held);
    assert_eq!(over.status, 422);
    let answered = read(&mut waiting);
    assert!(answered.body.contains("true"), "{}", answered.body);
    let address = served.address;
    served.end();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn keys_open_the_api_and_nothing_else_needs_one() {
    let (key, sha256) = wherefore_serve::new_key().unwrap();
    let served = toy(&format!(
        "keys = [{{ name = \"a\", sha256 = \"{sha256}\", rate = 0.001 }}]\nlimits = {{ burst = 2 }}"
    ));
    for path in [
        "/",
        "/app.js",
        "/docs",
        "/openapi.json",
        "/health",
        "/ready",
    ] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    for path in [
        "/v1/graphs",
        "/metrics",
        "/v1/models",
        "/v1/runs",
        "/nowhere",
    ] {
        let reply = served.get(path);
        assert_eq!(
            (reply.status, reply.header("www-authenticate")),
            (401, Some("Bearer")),
            "{path}"
        );
    }
    let wrong = served.send("GET", "/v1/graphs", &["authorization: Bearer wf-00"], b"");
    assert_eq!(wrong.status, 401);
    let right = format!("authorization: Bearer {key}");
    for status in [200, 200, 429] {
        assert_eq!(
            served.send("GET", "/v1/graphs", &[&right], b"").status,
            status
        );
    }
}

#[test]
fn wrong_names_and_foreign_pages_are_kept_out() {
    let served = toy("cors = [\"https://app.example\"]\nhosts = [\"graph.example\"]");
    let get = |headers: &[&str]| served.send("GET", "/v1/graphs", headers, b"");
    assert_eq!(get(&["host: evil.example"]).status, 403);
    assert_eq!(get(&["host: graph.example"]).status, 200);
    assert_eq!(get(&["origin: https://evil.example"]).status, 403);
    let own = format!("origin: http://{}", served.address);
    assert_eq!(get(&[&own]).status, 200);
    let allowed = get(&["origin: https://app.example"]);
    assert_eq!(
        allowed.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let preflight = served.send(
        "OPTIONS",
        "/v1/ask",
        &[
            "origin: https://app.example",
            "access-control-request-method: POST",
        ],
        b"",
    );
    assert_eq!(
        (
            preflight.status,
            preflight.header("access-control-allow-methods")
        ),
        (204, Some("GET, POST"))
    );
    let foreign = served.send(
        "OPTIONS",
        "/v1/ask",
        &[
            "origin: https://evil.example",
            "access-control-request-method: POST",
        ],
        b"",
    );
    assert_eq!(foreign.status, 403);
}

#[test]
fn every_reply_carries_the_headers_that_keep_browsers_safe() {
    let served = toy("");
    for path in ["/", "/v1/graphs", "/nowhere", "/v1/entities"] {
        let reply = served.get(path);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{path}"
        );
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(reply.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(
            reply.header("referrer-policy"),
            Some("no-referrer"),
            "{path}"
        );
    }
}

#[test]
fn a_label_that_looks_like_html_stays_text() {
    let label = "<img src=x onerror=alert(1)>";
    let folder = tempfile::tempdir().unwrap();
    let (file, graph) = (folder.path().join("g.tsv"), folder.path().join("g"));
    std::fs::write(&file, format!("{label}\tdrawn by\t<script>x</script>\n")).unwrap();
    let options = wherefore::graph::LoadOptions::default();
    let input = [wherefore::graph::Input::File(file)];
    wherefore::graph::load(&input, &graph, &options, &|_| {}).unwrap();
    let served = serve(&format!(
        "[graphs.g]\npath = {:?}\n",
        graph.display().to_string()
    ));
    let body = json!({ "question": "drawn by whom?", "topics": [label] });
    let reply = served.post("/v1/ask", &body);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json()["answers"][0]["name"], "<script>x</script>");
    let missing = served.get("/v1/neighbourhood?id=%3Cscript%3E");
    assert_eq!(
        missing.header("content-type"),
        Some("application/problem+json")
    );
    // the page is the same whatever is asked, so that nothing asked can stand in it
    assert_eq!(served.get("/?q=%3Cscript%3E").body, served.get("/").body);
}
