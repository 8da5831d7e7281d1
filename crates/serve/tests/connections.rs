//! Clients that hold connections and do nothing with them, and calls that come in heaps: others are
//! still served.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use served::{Served, toy};

/// Asks for more than the buffers between us hold, and never reads: 600 times 30 KB.
fn never_reads(served: &Served) -> TcpStream {
    let mut stream = served.connect();
    let request = format!("GET /app.js HTTP/1.1\r\nhost: {}\r\n\r\n", served.address);
    // a server that has seen enough may close
    let _ = stream.write_all(request.repeat(600).as_bytes());
    stream
}

fn gauge(served: &Served, name: &str) -> u64 {
    let metrics = served.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

fn is_closed(stream: &mut TcpStream) -> bool {
    let limit = Some(Duration::from_millis(100));
    stream.set_read_timeout(limit).unwrap();
    match stream.read(&mut [0; 16]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn clients_that_never_read_lock_nobody_out() {
    let limits = "connections = 4, connections_per_address = 0, write_seconds = 0.3";
    let served = toy(&format!("limits = {{ {limits} }}"));
    let unread: Vec<TcpStream> = (0..4).map(|_| never_reads(&served)).collect();
    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(served.get("/v1/graphs").status, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    // each of them was given up, though its client still holds it
    let until = Instant::now() + Duration::from_secs(20);
    while gauge(&served, "wherefore_connections ") > 1 {
        assert!(Instant::now() < until, "they are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(unread);
}

#[test]
fn a_reader_that_is_slow_gets_all_of_it() {
    let served = toy("limits = { write_seconds = 0.5 }");
    let mut stream = served.connect();
    let request = format!("GET /app.js HTTP/1.1\r\nhost: {}\r\n", served.address);
    let all = format!("{request}\r\n").repeat(599) + &request + "connection: close\r\n\r\n";
    stream.write_all(all.as_bytes()).unwrap();
    let one = served.get("/app.js").body.len();
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 20]);
    loop {
        // a pause now and then, each shorter than the limit
        std::thread::sleep(Duration::from_millis(20));
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            read => bytes += read,
        }
    }
    assert!(bytes > 600 * one, "{bytes} bytes");
}

#[test]
fn idle_connections_make_room_for_new_ones() {
    let served = toy("limits = { connections = 3, connections_per_address = 0 }");
    let request = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", served.address);
    // one that was used and rests, one that never spoke, one that stopped in the middle of a word
    let mut rests = served.connect();
    rests.write_all(request.as_bytes()).unwrap();
    let mut reply = [0; 12];
    rests.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 200");
    let mut silent = served.connect();
    let mut stuck = served.connect();
    stuck.write_all(b"GET /heal").unwrap();
    let mut later: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    assert_eq!(served.get("/health").status, 200);
    // the rest of the first reply is read before its end is seen
    let mut rest = Vec::new();
    let _ = rests.read_to_end(&mut rest);
    assert!(is_closed(&mut rests) && is_closed(&mut silent) && is_closed(&mut stuck));
    // the longest idle went first
    assert!(!is_closed(&mut later[0]) && !is_closed(&mut later[1]));
}

#[test]
fn one_address_has_its_share_of_connections() {
    let served = toy("limits = { connections_per_address = 2, sparql_seconds = 1.0 }");
    let endless = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?o ?p . ?q ?r ?s . ?t ?u ?v }";
    let query = ["content-type: application/sparql-query"];
    let mut at_work: Vec<TcpStream> = Vec::new();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let mut stream = served.connect();
        served.write(
            &mut stream,
            "POST",
            "/v1/sparql",
            &query,
            endless.as_bytes(),
        );
        at_work.push(stream);
        let refused = served.get("/health");
        if refused.status == 429 {
            assert_eq!(refused.json()["code"], "connections");
            assert_eq!(refused.header("retry-after"), Some("1"));
            break;
        }
        assert!(Instant::now() < until, "nobody is refused");
    }
    // those that were in go on, and make room when they have ended
    let statuses: Vec<u16> = at_work.iter_mut().map(|s| served::read(s).status).collect();
    assert!(statuses.contains(&422), "{statuses:?}");
    while served.get("/health").status != 200 {
        assert!(Instant::now() < until, "there is still no room");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn calls(count: usize, tool: &str, arguments: &Value) -> Value {
    let call = |id| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": tool, "arguments": arguments } })
    };
    (0..count).map(call).collect()
}

#[test]
fn a_batch_counts_call_by_call_and_has_the_time_of_one_answer() {
    let served = toy("limits = { rate = 0.001, burst = 5 }");
    let found = json!({ "entity": "Lou Seal" });
    let replies = served
        .post("/mcp", &calls(8, "describe_entity", &found))
        .json();
    let replies = replies.as_array().unwrap();
    // waiting for the server took none: what supervisors ask is free
    for reply in &replies[..5] {
        assert_eq!(reply["result"]["isError"], false, "{reply}");
    }
    for reply in &replies[5..] {
        let text = reply["error"]["message"].as_str().unwrap();
        assert!(text.starts_with("rate: "), "{reply}");
    }
    assert_eq!(served.post("/mcp", &calls(1, "ask", &found)).status, 429);
    served.end();

    let served = toy("limits = { workers = 1, seconds = 1.0, sparql_seconds = 0.5 }");
    let endless = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?o ?p . ?q ?r ?s . ?t ?u ?v }";
    let begun = Instant::now();
    let batch = calls(8, "sparql", &json!({ "query": endless }));
    let reply = served.post("/mcp", &batch);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let replies = reply.json();
    assert_eq!(replies.as_array().unwrap().len(), 8);
    let last = replies[7]["error"]["message"].as_str().unwrap();
    assert!(last.starts_with("out-of-time: "), "{last}");
    let too_many = served
        .post("/mcp", &calls(9, "describe_entity", &found))
        .json();
    assert_eq!(too_many["error"]["code"], -32600);
}
