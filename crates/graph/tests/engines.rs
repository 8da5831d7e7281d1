//! What differs between SPARQL engines, against a server that says what theirs would.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod server;

use std::io::Write;
use std::time::Duration;

use server::films::of_films;
use server::{JSON, Reply, honest, says, says_with};
use wherefore_graph::{
    Adjacency, Engine, Error, Graph, NameMatch, Search, Service, ServiceConfig, Store,
};

/// Answers queries for names with what full text would find.
fn full_text() -> Reply {
    Box::new(|_, query, stream| {
        let asked = query.contains("?e ?l");
        if asked {
            let body = "{\"head\":{\"vars\":[\"e\",\"l\"]},\"results\":{\"bindings\":[{\
                \"e\":{\"type\":\"uri\",\"value\":\"http://f/scott\"},\
                \"l\":{\"type\":\"literal\",\"value\":\"Ridley Scott\"}},{\
                \"e\":{\"type\":\"uri\",\"value\":\"http://f/other\"},\
                \"l\":{\"type\":\"literal\",\"value\":\"Ridley Scott Free\"}}]}}";
            says(stream, "200 OK", JSON, body.as_bytes());
        }
        asked
    })
}

fn named(service: &Service, name: &str) -> Vec<String> {
    let found = service.entities_named(name, NameMatch::Normalised).unwrap();
    let terms = found.into_iter().map(|e| service.entity_term(e).unwrap());
    terms.map(|term| term.to_string()).collect()
}

#[test]
fn each_kind_of_full_text_is_asked_in_its_own_words() {
    let text = Search::FullText;
    for (engine, search, told) in [
        (
            Engine::Virtuoso,
            text,
            "?l <bif:contains> \"'ridley' AND 'scott'\"",
        ),
        (
            Engine::Fuseki,
            text,
            "<http://jena.apache.org/text#query> ( \"ridley AND scott\" 40 )",
        ),
        (
            Engine::Graphdb,
            text,
            "<http://www.ontotext.com/connectors/lucene#query> \"ridley AND scott\"",
        ),
        (
            Engine::Qlever,
            text,
            "contains-word> \"ridley scott\" . ?t <http://qlever.cs.uni-freiburg.de/\
             builtin-functions/contains-entity> ?l",
        ),
        (
            Engine::Virtuoso,
            Search::Exact,
            "\"ridley scott\"@en \"ridley scott\"",
        ),
        (
            Engine::Oxigraph,
            text,
            "\"ridley scott\"@en \"ridley scott\"",
        ),
        (
            Engine::Standard,
            text,
            "\"ridley scott\"@en \"ridley scott\"",
        ),
    ] {
        // full text is not evaluated here: its answer is
        let (_folder, _store, server) = of_films(full_text());
        let mut config = server.config();
        config.engine = engine;
        config.search = search;
        let service = Service::open(config).unwrap();
        service
            .prefetch_names(&["ridley scott", "who directed", "a\" } DROP"])
            .unwrap();
        let sent = server.sent();
        assert_eq!(named(&service, "Ridley Scott"), ["http://f/scott"]);
        // it was among those that were asked for together
        assert_eq!(server.sent(), sent);
        let queries = server.queries.lock().unwrap().join("\n");
        assert!(queries.contains(told), "{engine:?}: {queries}");
        assert!(!queries.contains("a\" }"), "{queries}");
    }
}

#[test]
fn names_are_completed_where_there_is_full_text() {
    for (engine, told) in [
        (Engine::Virtuoso, Some("'ridley' AND 'scot*'")),
        (Engine::Fuseki, Some("\"ridley AND scot*\"")),
        (Engine::Graphdb, Some("\"ridley AND scot*\"")),
        (Engine::Qlever, Some("\"ridley scot*\"")),
        (Engine::Oxigraph, None),
        (Engine::Standard, None),
    ] {
        let (_folder, _store, server) = of_films(full_text());
        let mut config = server.config();
        config.engine = engine;
        let service = Service::open(config).unwrap();
        let found = service.entities_with_prefix("Ridley Scot", 5).unwrap();
        assert_eq!(found.len(), if told.is_some() { 2 } else { 0 });
        let queries = server.queries.lock().unwrap().join("\n");
        assert!(told.is_none_or(|told| queries.contains(told)), "{queries}");
    }
}

#[test]
fn a_full_text_of_former_files_is_told_from_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.toml");
    std::fs::write(&path, "url = \"http://x/\"\nsearch = \"virtuoso\"\n").unwrap();
    let error = ServiceConfig::read(&path).unwrap_err().to_string();
    assert!(error.contains("`full-text`"), "{error}");
    std::fs::write(&path, "url = \"http://x/\"\nengine = \"virtuoso\"\n").unwrap();
    let config = ServiceConfig::read(&path).unwrap();
    assert_eq!(
        (config.engine, config.search),
        (Engine::Virtuoso, Search::FullText)
    );
}

/// What engines say when they stop a query at a limit of their own, after the service was opened.
fn stopped(answer: fn(&mut std::net::TcpStream)) -> Reply {
    Box::new(move |number, _, stream| {
        if number > 2 {
            answer(stream);
        }
        number > 2
    })
}

#[test]
fn a_query_that_an_engine_stopped_is_an_error_and_not_sent_again() {
    let answers: [fn(&mut std::net::TcpStream); 5] = [
        // Virtuoso's part of a result looks like a whole one
        |stream| {
            let body = "{\"head\":{\"vars\":[\"e\",\"p\",\"o\"]},\"results\":{\"bindings\":[]}}";
            let headers = format!(
                "Content-Type: {JSON}\r\nX-SQL-State: S1TAT\r\nX-SQL-Message: RC...: Returning \
                 incomplete results, query interrupted by result timeout.\r\n"
            );
            says_with(stream, "200 OK", &headers, body.as_bytes());
        },
        |stream| {
            let text = "Virtuoso S1T00 Error SR171: Transaction timed out";
            let status = "500 SPARQL Request Failed";
            says(stream, status, "text/plain", text.as_bytes());
        },
        // QLever's 429 is no request to wait
        |stream| {
            let text = "{\"exception\":\"Operation timed out. Last operation: Sort\"}";
            let status = "429 Too Many Requests";
            says(stream, status, "application/json", text.as_bytes());
        },
        // nor is Fuseki's 503
        |stream| {
            let status = "503 Service Unavailable";
            says(stream, status, "text/plain", b"Query timed out");
        },
        // Oxigraph's head has gone out by then; in small pieces
        |stream| {
            let body = "{\"head\":{\"vars\":[\"e\",\"p\",\"o\"]},\"results\":{\"bindings\":[\
                        The SPARQL operation has been cancelled\n";
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            for piece in body.as_bytes().chunks(17) {
                let _ = stream.write_all(piece);
                let _ = stream.flush();
                std::thread::sleep(Duration::from_millis(1));
            }
        },
    ];
    for answer in answers {
        let (_folder, _store, server) = of_films(stopped(answer));
        let mut config = server.config();
        config.limits.retries = 3;
        let service = Service::open(config).unwrap();
        let sent = server.sent();
        let dune = service.entity_iri("http://f/dune").unwrap();
        let error = service.outgoing(dune).unwrap_err();
        assert!(matches!(error, Error::ServiceGaveUp { .. }), "{error}");
        assert!(error.hint().unwrap().contains("wherefore index"));
        assert!(!error.is_internal());
        assert_eq!(server.sent(), sent + 1, "{error}");
    }
}

#[test]
fn what_an_engine_does_not_count_in_its_time_is_not_known() {
    let reply: Reply = Box::new(|_, query, stream| {
        let counts = query.contains("COUNT(*)");
        if counts {
            let text = "{\"exception\":\"Operation timed out.\"}";
            let status = "429 Too Many Requests";
            says(stream, status, "application/json", text.as_bytes());
        }
        counts
    });
    let (_folder, store, server) = of_films(reply);
    let service = Service::open(server.config()).unwrap();
    let summary = service.summary(&[], "2026-11-19").unwrap();
    let genre = &summary.relations["http://f/genre"];
    assert_eq!((genre.triples, genre.tails.len()), (None, 100));
    assert_eq!(outlined(&service, 100), outgoing(&store, 100));
}

#[test]
fn what_things_on_a_side_of_a_relation_have_in_common_is_counted() {
    let (_folder, _store, server) = of_films(honest());
    let service = Service::open(server.config()).unwrap();
    let summary = service.summary(&[], "2026-11-19").unwrap();
    // nothing has a class
    assert!(!summary.has_classes());
    let [heads, tails] = summary.relations["http://f/genre"].sides.as_ref().unwrap();
    assert!(heads.things >= heads.names.len() && heads.names.len() <= 64);
    let share = |side: &wherefore_graph::SideSummary, forward: bool| {
        let mut steps = side.steps.iter();
        let genre = |(iri, on, _): &&(String, bool, f32)| iri == "http://f/genre" && *on == forward;
        steps.find(genre).map(|(.., share)| *share)
    };
    // every head has a genre, and every tail is one of something
    assert_eq!(share(heads, true), Some(1.0));
    assert_eq!(share(tails, false), Some(1.0));
}

/// Edges of so many films, read as the reader does.
fn outlined(service: &Service, count: usize) -> Vec<String> {
    let films: Vec<_> = (0..count)
        .map(|i| service.entity_iri(&format!("http://f/film{i}")).unwrap())
        .collect();
    let deferred = service.deferred();
    for &film in &films {
        assert!(deferred.outgoing(film).unwrap().is_empty());
    }
    assert!(deferred.fetch().unwrap());
    let tails = films.iter().flat_map(|&film| {
        let edges = deferred.outgoing(film).unwrap().to_vec();
        edges.into_iter().map(|edge| edge.entity)
    });
    let tails = tails.map(|tail| deferred.entity_term(tail).unwrap());
    tails.map(|term| term.to_string()).collect()
}

fn outgoing(store: &Store, count: usize) -> Vec<String> {
    let films = (0..count).map(|i| format!("http://f/film{i}"));
    let tails = films.flat_map(|iri| {
        let film = store.entities_named(&iri, NameMatch::Exact).unwrap()[0];
        store.outgoing(film).unwrap().to_vec()
    });
    let tails = tails.map(|edge| store.entity_term(edge.entity).unwrap());
    tails.map(|term| term.to_string()).collect()
}

#[test]
fn outlines_are_those_of_the_store() {
    // few, with all their triples, and many, which are counted
    for (count, counted) in [(10, false), (100, true)] {
        let (_folder, store, server) = of_films(honest());
        let service = Service::open(server.config()).unwrap();
        assert_eq!(outlined(&service, count), outgoing(&store, count));
        let queries = server.queries.lock().unwrap().join("\n");
        assert_eq!(queries.contains("COUNT(*)"), counted);
    }
}
