//! A SPARQL service as a graph, against a server that evaluates queries over a store, or does what
//! a test tells it to.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod server;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use server::films::{films, loaded, of_films};
use server::{JSON, Reply, drip, honest, says, serve, stay_silent};
use wherefore_graph::sparql::{ResultFormat, SparqlOptions};
use wherefore_graph::{
    Adjacency, Direction, EntityId, Error, Expansion, Graph, NameMatch, RelationId, Service,
    ServiceConfig, Triple, expand, index_labels,
};

fn always(status: &'static str, kind: &'static str, body: &'static str) -> Reply {
    Box::new(move |_, _, stream| {
        says(stream, status, kind, body.as_bytes());
        true
    })
}

/// The triples around an entity by their terms, without those that only give names.
fn around(graph: &dyn Graph, entity: EntityId) -> BTreeSet<String> {
    let term = |e: EntityId| graph.entity_term(e).unwrap().to_string();
    let naming = graph.naming_relations();
    let mut found = BTreeSet::new();
    for t in graph.triples_of(entity).unwrap() {
        if !naming.contains(&t.relation) {
            assert!(graph.contains(t).unwrap());
            let relation = graph.relation_term(t.relation).unwrap();
            found.insert(format!("{} {relation} {}", term(t.head), term(t.tail)));
        }
    }
    found
}

fn named(graph: &dyn Graph, name: &str) -> Vec<String> {
    let found = graph.entities_named(name, NameMatch::Normalised).unwrap();
    let mut terms: Vec<String> = (found.into_iter())
        .map(|e| graph.entity_term(e).unwrap().to_string())
        .collect();
    terms.sort();
    terms
}

fn entity(graph: &dyn Graph, iri: &str) -> EntityId {
    graph.entities_named(iri, NameMatch::Exact).unwrap()[0]
}

#[test]
fn a_service_is_the_graph_of_the_store_behind_it() {
    let (folder, store, server) = of_films(honest());
    let plain = Service::open(server.config()).unwrap();
    let out = folder.path().join("labels");
    let report = index_labels(server.config(), &out, 1 << 24, false, &|_| {}, &|_| {}).unwrap();
    // five names in English, a relation's and an alias
    assert_eq!((report.labels, report.entities), (7, 6));
    let indexed = ServiceConfig::read(&out.join("service.toml")).unwrap();
    let indexed = Service::open(indexed).unwrap();
    assert!(indexed.is_indexed() && !plain.is_indexed());
    for service in [&plain, &indexed] {
        for iri in [
            "http://f/dune",
            "http://f/alien",
            "http://f/m.0abc",
            "http://f/drama",
        ] {
            let (ours, theirs) = (entity(&store, iri), entity(service, iri));
            assert_eq!(around(service, theirs), around(&store, ours), "{iri}");
            assert_eq!(
                service.entity_label(theirs).unwrap(),
                store.entity_label(ours).unwrap()
            );
            assert_eq!(
                service.is_named(theirs).unwrap(),
                store.is_named(ours).unwrap()
            );
        }
        for name in [
            "Dune",
            "dune",
            "Ridley Scott",
            "sir ridley",
            "nobody at all",
        ] {
            assert_eq!(named(service, name), named(&store, name), "{name}");
        }
        let directed = service
            .relation_named("http://f/directed_by")
            .unwrap()
            .unwrap();
        assert_eq!(service.relation_label(directed).unwrap(), "directed by");
        assert_eq!(
            service.relation_named("directed by").unwrap(),
            Some(directed)
        );
        assert_eq!(service.relation_named("nothing").unwrap(), None);
        let year = service.relation_named("http://f/year").unwrap().unwrap();
        assert_eq!(service.relation_label(year).unwrap(), "year");
        assert!(
            service
                .entities_named("http://f/nobody", NameMatch::Exact)
                .unwrap()
                .is_empty()
        );
        assert!(service.outgoing(EntityId(u32::MAX - 1)).is_err());
        assert!(service.relation_label(RelationId(999)).is_err());
        let near = expand(
            service,
            &[entity(service, "http://f/dune")],
            &Expansion::default(),
        );
        let wanted = expand(
            &store,
            &[entity(&store, "http://f/dune")],
            &Expansion {
                skip: store.naming_relations().to_vec(),
                ..Expansion::default()
            },
        );
        assert_eq!(
            near.unwrap().subgraph.triples().len(),
            wanted.unwrap().subgraph.triples().len()
        );
    }
    // names and labels of the index cost no request
    let before = indexed.requests();
    assert_eq!(indexed.entities_with_prefix("ri", 5).unwrap().len(), 1);
    assert_eq!(named(&indexed, "denis villeneuve").len(), 1);
    assert_eq!(indexed.requests(), before);
}

#[test]
fn neighbourhoods_and_labels_come_in_few_requests_and_are_kept() {
    let (_folder, _store, server) = of_films(honest());
    let mut config = server.config();
    config.limits.batch = 100;
    let service = Service::open(config).unwrap();
    let drama = entity(&service, "http://f/drama");
    let films: Vec<EntityId> = (service.incoming(drama).unwrap().iter())
        .map(|edge| edge.entity)
        .collect();
    assert_eq!(films.len(), 300);
    let before = server.sent();
    service.prefetch(&films, Direction::Both).unwrap();
    // 300 entities, 100 a request, both directions
    assert_eq!(server.sent() - before, 6);
    for &film in &films {
        assert_eq!(service.degree(film).unwrap(), 1);
        service.entity_label(film).unwrap();
    }
    // labels of those that were met together come together, 400 a request
    assert_eq!(server.sent() - before, 7);
    service.prefetch(&films, Direction::Both).unwrap();
    assert_eq!(server.sent() - before, 7);
}

#[test]
fn a_hub_is_cut_by_the_service_and_its_triples_are_still_known() {
    let (_folder, _store, server) = of_films(honest());
    let mut config = server.config();
    config.limits.rows = 50;
    let service = Service::open(config).unwrap();
    let (drama, dune) = (
        entity(&service, "http://f/drama"),
        entity(&service, "http://f/dune"),
    );
    // both in one request, which is too long, so each by itself
    service.prefetch(&[drama, dune], Direction::Both).unwrap();
    assert_eq!(service.incoming(drama).unwrap().len(), 50);
    assert_eq!(service.outgoing(dune).unwrap().len(), 2);
    let genre = service.relation_named("http://f/genre").unwrap().unwrap();
    for i in [0, 150, 299] {
        let head = entity(&service, &format!("http://f/film{i}"));
        let stated = Triple {
            head,
            relation: genre,
            tail: drama,
        };
        assert!(service.contains(stated).unwrap());
        assert!(
            !service
                .contains(Triple {
                    tail: dune,
                    ..stated
                })
                .unwrap()
        );
    }
}

#[test]
fn a_service_that_ignores_limits_is_not_read_to_its_end() {
    let reply: Reply = Box::new(|_, query, stream| {
        if !query.contains("VALUES ?e") || query.contains("?p ?l") {
            return false;
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        let _ = stream
            .write_all(b"{\"head\":{\"vars\":[\"e\",\"p\",\"o\"]},\"results\":{\"bindings\":[");
        let row = "{\"e\":{\"type\":\"uri\",\"value\":\"http://f/dune\"},\
            \"p\":{\"type\":\"uri\",\"value\":\"http://f/genre\"},\
            \"o\":{\"type\":\"uri\",\"value\":\"http://f/xNNN\"}},";
        for i in 0..u64::MAX {
            let row = row.replace("NNN", &i.to_string());
            if stream.write_all(row.as_bytes()).is_err() {
                break; // the reader has seen enough
            }
        }
        true
    });
    let (_folder, _store, server) = of_films(reply);
    let mut config = server.config();
    config.limits.rows = 1000;
    let service = Service::open(config).unwrap();
    let dune = entity(&service, "http://f/dune");
    assert_eq!(service.outgoing(dune).unwrap().len(), 1000);
    let mut config = server.config();
    config.limits.bytes = 10_000;
    let error = Service::open(config)
        .unwrap()
        .entities_named("http://f/dune", NameMatch::Exact)
        .unwrap_err();
    assert!(
        error.to_string().contains("more than 10000 bytes"),
        "{error}"
    );
}

/// A label of the film, or with `o` a value of it, of so many bytes.
fn long(query: &str, bytes: usize, stream: &mut TcpStream) -> bool {
    let labels = query.contains("?e ?p ?l");
    if !query.contains("<http://f/dune>") || query.contains("isIRI") {
        return false;
    }
    let (variable, predicate) = match labels {
        true => ("l", "http://www.w3.org/2000/01/rdf-schema#label"),
        false => ("o", "http://f/year"),
    };
    let name = "x".repeat(bytes);
    let body = format!(
        "{{\"head\":{{\"vars\":[\"e\",\"p\",\"{variable}\"]}},\"results\":{{\"bindings\":[{{\
         \"e\":{{\"type\":\"uri\",\"value\":\"http://f/dune\"}},\
         \"p\":{{\"type\":\"uri\",\"value\":\"{predicate}\"}},\
         \"{variable}\":{{\"type\":\"literal\",\"value\":\"{name}\"}}}}]}}}}"
    );
    says(stream, "200 OK", JSON, body.as_bytes());
    true
}

#[test]
fn a_label_of_ten_megabytes_is_cut_or_passed_over() {
    for (bytes, cut) in [(1 << 20, true), (10 << 20, false)] {
        let reply: Reply = Box::new(move |_, query, stream| {
            query.contains("?e ?p ?l") && long(query, bytes, stream)
        });
        let (_folder, _store, server) = of_films(reply);
        let service = Service::open(server.config()).unwrap();
        let label = service
            .entity_label(entity(&service, "http://f/dune"))
            .unwrap();
        assert_eq!((label.len() < 5000, label.ends_with('…')), (true, cut));
        assert!(cut || label == "dune");
    }
}

#[test]
fn a_value_of_ten_megabytes_is_left_out() {
    let reply: Reply =
        Box::new(|_, query, stream| query.contains("?e ?p ?o") && long(query, 10 << 20, stream));
    let (_folder, _store, server) = of_films(reply);
    let service = Service::open(server.config()).unwrap();
    // asked for again without long values, the service tells the rest
    let dune = entity(&service, "http://f/dune");
    assert_eq!(service.outgoing(dune).unwrap().len(), 2);
}

fn refused(reply: Reply) -> Error {
    let (_folder, _store, server) = of_films(reply);
    let mut config = server.config();
    config.limits.timeout_s = 0.4;
    Service::open(config).unwrap_err()
}

#[test]
fn what_is_no_answer_is_told_from_one() {
    for (reply, told) in [
        (always("200 OK", "text/html", "<html>"), "web page"),
        (always("200 OK", "text/csv", "p\r\n"), "`text/csv`"),
        (
            always(
                "200 OK",
                JSON,
                "{\"head\":{\"vars\":[\"p\"]},\"results\":{\"bind",
            ),
            "truncated",
        ),
        (always("200 OK", JSON, "nonsense"), "malformed"),
        (
            always("200 OK", JSON, "{\"head\":{},\"boolean\":true}"),
            "boolean instead of rows",
        ),
        (
            always("404 Not Found", "text/html", "<html>gone"),
            "status 404: it sent a web page",
        ),
        (
            always("400 Bad Request", "text/plain", "Virtuoso 37000\nError"),
            "Virtuoso 37000 Error",
        ),
        (
            always("401 Unauthorized", "text/plain", "who?"),
            "status 401",
        ),
        (
            always("503 Service Unavailable", "text/plain", "busy"),
            "status 503: busy",
        ),
        (always("302 Found", "text/html", ""), "status 302"),
    ] {
        let error = refused(reply);
        assert!(error.to_string().contains(told), "{told}: {error}");
        assert!(error.hint().is_some() && !error.is_internal(), "{error}");
    }
    let hint = refused(always("401 Unauthorized", "text/plain", "")).hint();
    assert!(hint.unwrap().contains("token_env"));
}

#[test]
fn a_service_that_is_down_slow_or_half_is_an_error_in_time() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut config = ServiceConfig::at(&format!("http://{closed}/sparql"));
    config.limits.retries = 1;
    let error = Service::open(config).unwrap_err();
    assert!(matches!(error, Error::ServiceUnreachable { .. }), "{error}");
    let silent: Reply = Box::new(|_, _, stream| {
        stay_silent(stream);
        true
    });
    let error = refused(silent);
    assert!(error.to_string().contains("no reply in 0.4 s"), "{error}");
    let half: Reply = Box::new(|_, _, stream| {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: 500\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(b"{\"head\":{\"vars\":[\"p\"]},\"results\":{\"bindings\":[");
        true
    });
    let error = refused(half);
    assert!(matches!(error, Error::BadReply { .. }), "{error}");
}

#[test]
fn a_service_that_drips_is_an_error_when_the_time_of_the_request_is_over() {
    let drips = |head: &'static str| -> Reply {
        Box::new(move |_, _, stream| {
            drip(stream, head);
            true
        })
    };
    let body = "HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\n\r\n";
    for (head, told) in [
        (body, "did not send a whole reply in time"),
        ("HTTP/1.1 200 OK\r\nX: ", "no reply in"),
        (
            "HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\n\r\n",
            "503",
        ),
    ] {
        let (_folder, _store, server) = of_films(drips(head));
        let mut config = server.config();
        // longer than any single wait
        config.limits.timeout_s = 0.15;
        let error = Service::open(config).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(error.hint().is_some() && !error.is_internal(), "{error}");
    }
}

#[test]
fn a_question_costs_as_many_requests_as_it_may() {
    let (_folder, _store, server) = of_films(honest());
    let mut config = server.config();
    config.limits.batch = 100;
    config.limits.connections = 1;
    config.limits.requests = 2;
    let service = Service::open(config).unwrap();
    let drama = entity(&service, "http://f/drama");
    let films: Vec<EntityId> = (service.incoming(drama).unwrap().iter())
        .map(|edge| edge.entity)
        .collect();
    let before = (server.sent(), service.requests());
    let question = service.for_question();
    // 300 entities, 100 a request, both directions
    let error = question.prefetch(&films, Direction::Both).unwrap_err();
    assert!(
        matches!(error, Error::RequestsSpent { limit: 2, .. }),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("--max-requests"));
    assert_eq!((question.requests(), question.rounds()), (2, 2));
    assert_eq!(
        (server.sent(), service.requests()),
        (before.0 + 2, before.1 + 2)
    );
    // another has a budget of its own, and what was fetched is kept; what is done once is free
    let other = service.for_question();
    other
        .outside_budget(|service| service.prefetch(&films, Direction::Outgoing))
        .unwrap();
    other.prefetch(&films[..100], Direction::Both).unwrap();
    assert_eq!((other.requests(), server.sent()), (1, before.0 + 4));
}

#[test]
fn a_service_that_drips_takes_no_longer_than_a_question_may() {
    let drips: Reply = Box::new(|number, _, stream| {
        // the relations and their labels come at once
        if number <= 2 {
            return false;
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\n\r\n";
        drip(stream, head);
        true
    });
    let (_folder, _store, server) = of_films(drips);
    let mut config = server.config();
    config.limits.timeout_s = 60.0;
    config.limits.question_s = 0.3;
    let service = Service::open(config).unwrap();
    let question = service.for_question();
    // the service's own limit would be four minutes
    for _ in 0..2 {
        let error = question
            .entities_named("Dune", NameMatch::Normalised)
            .unwrap_err();
        assert!(matches!(error, Error::ServiceTooSlow { .. }), "{error}");
        assert!(error.hint().unwrap().contains("question_s"));
    }
}

#[test]
fn the_time_of_a_query_holds_at_a_service_too() {
    let (_folder, _, server) = of_films(Box::new(|_, query, stream| {
        if !query.contains("dripping") {
            return false;
        }
        let kind = match query.contains("CONSTRUCT") {
            true => "text/turtle",
            false => JSON,
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        drip(stream, &head);
        true
    }));
    let mut config = server.config();
    // longer than any test runs
    config.limits.timeout_s = 86_400.0;
    let service = Service::open(config).unwrap();
    let options = SparqlOptions {
        timeout: Some(Duration::from_millis(300)),
        ..SparqlOptions::default()
    };
    for (query, format) in [
        ("SELECT * { ?dripping ?p ?o }", ResultFormat::Json),
        ("CONSTRUCT WHERE { ?dripping ?p ?o }", ResultFormat::Turtle),
    ] {
        let mut out = Vec::new();
        let error = service.write_query(query, &options, format, &mut out);
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("did not send a whole reply in time"),
            "{text}"
        );
    }
}

#[test]
fn a_certificate_that_fails_is_told_and_not_tried_again() {
    // for the right name, but nobody vouches for it
    let certificate = include_bytes!("certificate/self-signed.der").as_slice();
    let key = include_bytes!("certificate/self-signed.key.der").as_slice();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.into()], key.try_into().unwrap())
        .unwrap();
    let tls = Arc::new(tls);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut connection = rustls::ServerConnection::new(Arc::clone(&tls)).unwrap();
            while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
        }
    });
    let config = ServiceConfig::at(&format!("https://localhost:{}/sparql", address.port()));
    let error = Service::open(config).unwrap_err();
    assert!(matches!(error, Error::ServiceUnreachable { .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_service_that_speaks_no_tls_is_told_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(loaded(folder.path(), &films()), honest());
    let mut config = ServiceConfig::at(&server.url.replace("http://", "https://"));
    config.limits.timeout_s = 2.0;
    let error = Service::open(config).unwrap_err();
    assert!(matches!(error, Error::ServiceUnreachable { .. }), "{error}");
}

#[test]
fn a_busy_service_is_asked_again_when_it_says() {
    let reply: Reply = Box::new(|number, _, stream| {
        if number > 1 {
            return false;
        }
        let text = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0.3\r\nContent-Length: 0\r\n\
                    Connection: close\r\n\r\n";
        let _ = stream.write_all(text.as_bytes());
        true
    });
    let (_folder, _store, server) = of_films(reply);
    let start = Instant::now();
    let service = Service::open(server.config()).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(service.relation_bound() > 5);
    // one that asks for more patience than there is
    let reply: Reply = Box::new(|_, _, stream| {
        let text = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 4000\r\nContent-Length: 0\r\n\
                    Connection: close\r\n\r\n";
        let _ = stream.write_all(text.as_bytes());
        true
    });
    let (_folder, _store, server) = of_films(reply);
    assert!(Service::open(server.config()).is_err());
    assert_eq!(server.sent(), 1);
}

#[test]
fn queries_that_are_too_long_are_cut_in_two() {
    let reply: Reply = Box::new(|_, query, stream| {
        let entities = query.matches("<http://f/film").count();
        if entities > 20 {
            says(stream, "414 URI Too Long", "text/plain", b"too long");
        }
        entities > 20
    });
    let (_folder, _store, server) = of_films(reply);
    let service = Service::open(server.config()).unwrap();
    let drama = entity(&service, "http://f/drama");
    let films: Vec<EntityId> = (service.incoming(drama).unwrap().iter())
        .map(|edge| edge.entity)
        .collect();
    service.prefetch(&films, Direction::Outgoing).unwrap();
    for &film in &films {
        assert_eq!(service.outgoing(film).unwrap().len(), 1);
        assert!(service.entity_label(film).unwrap().starts_with("film"));
    }
    // an entity by itself cannot be cut
    let error = refused(always("414 URI Too Long", "text/plain", "too long"));
    assert!(error.hint().unwrap().contains("limits.batch"), "{error}");
}

#[test]
fn queries_of_the_user_run_at_the_service() {
    let (_folder, _store, server) = of_films(honest());
    let mut config = server.config();
    config.prefixes.insert("f".into(), "http://f/".into());
    let service = Service::open(config).unwrap();
    let run = |query: &str, format, limit| {
        let mut out = Vec::new();
        let options = SparqlOptions {
            max_rows: limit,
            ..SparqlOptions::default()
        };
        let written = service.write_query(query, &options, format, &mut out);
        written.map(|written| (String::from_utf8(out).unwrap(), written))
    };
    let table = ResultFormat::Table { width: 40 };
    let (text, written) = run("SELECT ?d WHERE { f:dune f:directed_by ?d }", table, None).unwrap();
    assert_eq!(text, "d\n----------------\n<http://f/denis>\n");
    assert_eq!(written.rows, 1);
    let films = "SELECT ?s WHERE { ?s f:genre f:drama }";
    let (text, written) = run(films, ResultFormat::Csv, Some(7)).unwrap();
    assert_eq!((text.lines().count(), written.is_cut), (8, true));
    let (text, written) = run("ASK { f:dune ?p ?o }", table, None).unwrap();
    assert_eq!((text.as_str(), written.boolean), ("yes\n", Some(true)));
    let error = run("SELECT nonsense", table, None).unwrap_err();
    assert!(matches!(error, Error::SparqlSyntax(_)), "{error}");
}

#[test]
fn only_what_reads_the_graph_reaches_the_service() {
    let (_folder, _store, server) = of_films(honest());
    let service = Service::open(server.config()).unwrap();
    let sent = server.sent();
    let run = |query: &str, format| {
        let mut out = Vec::new();
        let options = SparqlOptions {
            max_rows: Some(5),
            ..SparqlOptions::default()
        };
        service.write_query(query, &options, format, &mut out)
    };
    for query in [
        "SELECT * { SERVICE <http://169.254.169.254/> { ?s ?p ?o } }",
        "SELECT * FROM <http://secret/> { ?s ?p ?o }",
        "SELECT * { ?s ?p ?o FILTER EXISTS { GRAPH ?g { ?s ?p ?o } } }",
        "LOAD <http://169.254.169.254/>",
        "INSERT DATA { <a:a> <a:a> <a:a> }",
        "DROP ALL",
        "DEFINE sql:log-enable 2 SELECT * { ?s ?p ?o }",
        "SELECT (<sql:run>('x') AS ?x) {}",
    ] {
        let error = run(query, ResultFormat::Json).unwrap_err();
        assert!(matches!(error, Error::SparqlRefused { .. }), "{error}");
    }
    assert_eq!(server.sent(), sent);
    // what is sent is what was understood, with a limit
    run("SELECT ?s { ?s ?p ?o # DROP ALL\n}", ResultFormat::Csv).unwrap();
    assert_eq!(
        server.queries.lock().unwrap().last().unwrap(),
        "SELECT ?s WHERE { ?s ?p ?o . } LIMIT 6"
    );
}

#[test]
fn triples_of_a_service_are_limited_and_written_in_every_format() {
    let reply: Reply = Box::new(|_, query, stream| {
        let asked = query.starts_with("CONSTRUCT");
        if asked {
            let body = "<a:1> <a:p> \"x\" .\n<a:2> <a:p> \"y\"@en .\n<a:3> <a:p> 5 .\n";
            says(stream, "200 OK", "text/turtle", body.as_bytes());
        }
        asked
    });
    let (_folder, _store, server) = of_films(reply);
    let service = Service::open(server.config()).unwrap();
    let run = |format, rows| {
        let mut out = Vec::new();
        let options = SparqlOptions {
            max_rows: Some(rows),
            ..SparqlOptions::default()
        };
        let query = "CONSTRUCT WHERE { ?s ?p ?o }";
        let written = service.write_query(query, &options, format, &mut out);
        let written = written.unwrap();
        (
            String::from_utf8(out).unwrap(),
            written.rows,
            written.is_cut,
        )
    };
    let (text, rows, cut) = run(ResultFormat::NTriples, 2);
    assert_eq!(text, "<a:1> <a:p> \"x\" .\n<a:2> <a:p> \"y\"@en .\n");
    assert_eq!((rows, cut), (2, true));
    let (text, rows, cut) = run(ResultFormat::Csv, 3);
    assert_eq!(
        text,
        "subject,predicate,object\r\na:1,a:p,x\r\na:2,a:p,y\r\na:3,a:p,5\r\n"
    );
    assert_eq!((rows, cut), (3, false));
    let (text, ..) = run(ResultFormat::Json, 10);
    assert!(text.contains("\"predicate\""), "{text}");
}

#[test]
fn a_token_does_not_follow_to_another_host() {
    let stolen = Arc::new(AtomicUsize::new(0));
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let counter = Arc::clone(&stolen);
    std::thread::spawn(move || {
        for _stream in other.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary",
        "308 Permanent",
    ] {
        let (_folder, _store, server) = of_films(Box::new(move |_, _, stream| {
            let head = format!(
                "HTTP/1.1 {status}\r\nLocation: http://{address}/sparql\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes());
            true
        }));
        let mut config = server.config();
        config.token_env = Some("PATH".into());
        let error = Service::open(config).unwrap_err();
        assert!(matches!(error, Error::ServiceRefused { .. }), "{error}");
    }
    assert_eq!(stolen.load(Ordering::SeqCst), 0);
}

#[test]
fn what_a_query_asks_for_is_computed_at_the_service() {
    let (_folder, store, server) = of_films(honest());
    let service = Service::open(server.config()).unwrap();
    let sent = server.sent();
    let films = "SELECT DISTINCT ?x WHERE { ?x <http://f/genre> <http://f/drama> }";
    let (found, more) = service.run_there(films, 1000).unwrap().unwrap();
    assert_eq!(server.sent(), sent + 1);
    assert!(!more);
    let drama = entity(&store, "http://f/drama");
    let genre = store.relation_named("http://f/genre").unwrap().unwrap();
    let held = store.incoming(drama).unwrap();
    let wanted = wherefore_graph::edges_by_relation(&held, genre).iter();
    let wanted: BTreeSet<_> = wanted
        .map(|e| store.entity_term(e.entity).unwrap())
        .collect();
    let found: BTreeSet<_> = found
        .iter()
        .map(|e| service.entity_term(*e).unwrap())
        .collect();
    assert!(found.len() > 2);
    assert_eq!(found, wanted);
    let (two, more) = service.run_there(films, 2).unwrap().unwrap();
    assert_eq!((two.len(), more), (2, true));
    let nothing = films.replace("drama", "no-such-genre");
    let none = service.run_there(&nothing, 2).unwrap().unwrap();
    assert_eq!(none, (Vec::new(), false));
    assert!(store.run_there(films, 2).unwrap().is_none());
    // a relation's triples come in one request too
    let sent = server.sent();
    let genre = service.relation_named("http://f/genre").unwrap().unwrap();
    let all = service.with_relation(genre).unwrap().count();
    let there = store.relation_named("http://f/genre").unwrap().unwrap();
    assert_eq!(all, store.with_relation(there).unwrap().count());
    assert_eq!(server.sent(), sent + 1);
}

#[test]
fn credentials_come_from_the_environment_and_are_never_told() {
    let (_folder, _store, server) = of_films(Box::new(|_, _, stream| {
        let body = "no entry for Bearer /usr and /usr";
        says(stream, "403 Forbidden", "text/plain", body.as_bytes());
        true
    }));
    let mut config = server.config();
    // any variable that is always set will do
    config.token_env = Some("PATH".into());
    let error = Service::open(config).unwrap_err();
    let path = std::env::var("PATH").unwrap();
    assert!(!error.to_string().contains(&path), "{error}");
    let mut config = server.config();
    config.token_env = Some("WHEREFORE_NO_SUCH_VARIABLE".into());
    let error = Service::open(config).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`WHEREFORE_NO_SUCH_VARIABLE` is not set")
    );
    let Err(Error::BadService { .. }) = Service::open(ServiceConfig::at("nonsense")) else {
        panic!("an address that is none is refused");
    };
}
