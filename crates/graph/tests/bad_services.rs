//! Services that drip, lie, fail, redirect and break off in the middle of a question: the question
//! ends in time with an error that says why, and the next one is answered.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod server;

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use server::films::of_films;
use server::{JSON, Reply, drip, says, stay_silent};
use wherefore_graph::{Adjacency, Error, Graph, NameMatch, Service};

/// What a service does instead of answering.
type Mischief = fn(&mut TcpStream);

fn json(stream: &mut TcpStream, body: &str) {
    says(stream, "200 OK", JSON, body.as_bytes());
}

fn head(more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n{more}\r\n")
}

const MISCHIEF: [(&str, Mischief, &str); 12] = [
    (
        "drips",
        |stream| drip(stream, &head("Connection: close\r\n")),
        "took longer than 0.4 s for the question",
    ),
    (
        "drips its head",
        |stream| drip(stream, "HTTP/1.1 200 OK\r\nX: "),
        "took longer than 0.4 s for the question",
    ),
    (
        "is silent",
        stay_silent,
        "took longer than 0.4 s for the question",
    ),
    (
        "speaks of others",
        |stream| {
            json(
                stream,
                "{\"head\":{\"vars\":[\"e\",\"p\",\"o\"]},\"results\":{\"bindings\":[{\
                 \"e\":{\"type\":\"uri\",\"value\":\"http://f/other\"},\
                 \"p\":{\"type\":\"uri\",\"value\":\"http://f/genre\"},\
                 \"o\":{\"type\":\"uri\",\"value\":\"http://f/drama\"}}]}}",
            );
        },
        "rows that were not requested",
    ),
    (
        "leaves columns out",
        |stream| {
            json(
                stream,
                "{\"head\":{\"vars\":[\"e\"]},\"results\":{\"bindings\":[{\
                 \"e\":{\"type\":\"uri\",\"value\":\"http://f/dune\"}}]}}",
            );
        },
        "has no `?e`, `?p`, `?o`",
    ),
    (
        "says yes",
        |stream| json(stream, "{\"head\":{},\"boolean\":true}"),
        "boolean instead of rows",
    ),
    (
        "says JSON and sends XML",
        |stream| json(stream, "<?xml version=\"1.0\"?><sparql/>"),
        "truncated or malformed",
    ),
    (
        "fails",
        |stream| {
            let status = "500 Internal Server Error";
            says(
                stream,
                status,
                "text/plain",
                b"java.lang.NullPointerException",
            );
        },
        "returned status 500: java.lang.NullPointerException",
    ),
    (
        "fails behind a proxy",
        |stream| says(stream, "502 Bad Gateway", "text/html", b"<html>nginx"),
        "returned status 502: it sent a web page",
    ),
    (
        "redirects",
        |stream| {
            let text = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\
                        Content-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(text.as_bytes());
        },
        "returned status 302",
    ),
    (
        "breaks off",
        |stream| {
            let text = head("Content-Length: 5000\r\n") + "{\"head\":{\"vars\":[\"e\"";
            let _ = stream.write_all(text.as_bytes());
        },
        "truncated or malformed",
    ),
    (
        "breaks off between chunks",
        |stream| {
            let text = head("Transfer-Encoding: chunked\r\n") + "8\r\n{\"head\":\r\n";
            let _ = stream.write_all(text.as_bytes());
        },
        "truncated or malformed",
    ),
];

#[test]
fn a_question_ends_in_time_and_says_why_and_the_next_is_answered() {
    for (what, mischief, told) in MISCHIEF {
        let bad = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&bad);
        let reply: Reply = Box::new(move |_, _, stream| {
            let is_bad = now.load(Ordering::SeqCst);
            if is_bad {
                mischief(stream);
            }
            is_bad
        });
        let (_folder, store, server) = of_films(reply);
        let mut config = server.config();
        config.limits.timeout_s = 60.0;
        config.limits.question_s = 0.4;
        config.limits.max_wait_s = 0.01;
        let service = Service::open(config).unwrap();
        let film = |i: usize| service.entity_iri(&format!("http://f/film{i}")).unwrap();
        bad.store(true, Ordering::SeqCst);
        let start = Instant::now();
        // what the service might do with one request, and with several side by side
        let many: Vec<_> = (0..200).map(film).collect();
        for films in [&many[..1], &many] {
            let question = service.for_question();
            let error =
                (question.prefetch(films, wherefore_graph::Direction::Outgoing)).unwrap_err();
            assert!(error.to_string().contains(told), "{what}: {error}");
            assert!(error.hint().is_some() && !error.is_internal(), "{what}");
            assert!(!matches!(error, Error::Stopped));
        }
        assert!(start.elapsed() < Duration::from_secs(4), "{what}");
        bad.store(false, Ordering::SeqCst);
        let question = service.for_question();
        let there = store
            .entities_named("http://f/film7", NameMatch::Exact)
            .unwrap()[0];
        assert_eq!(
            question.degree(many[7]).unwrap(),
            store.degree(there).unwrap(),
            "{what}"
        );
    }
}

#[test]
fn a_service_that_fails_only_where_it_counts_is_asked_for_whole_rows() {
    let reply: Reply = Box::new(|_, query, stream| {
        let counts = query.contains("COUNT(*)");
        if counts {
            let status = "500 Internal Server Error";
            says(stream, status, "text/plain", b"no aggregates here");
        }
        counts
    });
    let (_folder, _store, server) = of_films(reply);
    let service = Service::open(server.config()).unwrap();
    let films: Vec<_> = (0..60)
        .map(|i| service.entity_iri(&format!("http://f/film{i}")).unwrap())
        .collect();
    for _ in 0..2 {
        let deferred = service.deferred();
        let missing = films
            .iter()
            .filter(|&&film| deferred.outgoing(film).unwrap().is_empty());
        if missing.count() > 0 {
            assert!(deferred.fetch().unwrap());
        }
    }
    let deferred = service.deferred();
    for &film in &films {
        assert_eq!(deferred.outgoing(film).unwrap().len(), 1);
    }
    // once is enough to know
    let queries = server.queries.lock().unwrap();
    assert_eq!(queries.iter().filter(|q| q.contains("COUNT(*)")).count(), 1);
}
