//! Graphs that come over HTTP.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod served;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use served::{Reply, Served, read, serve, toy};

const FILE: &str = "content-type: application/octet-stream";
const FILMS: &[u8] = b"Alien\tdirected by\tRidley Scott\nAlien\tyear\t1979\n\
    Gladiator\tdirected by\tRidley Scott\n";

/// `a\tb\tc\n`, a thousand times, by gzip.
const PACKED: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc4\x21\x01\x00\x00\x08\x03\x30\x0d\
        \x2d\x0f\xfd\x3b\x10\x02\xbb\x89\xa5\xa6\xb6\x63\xdb\xb6\x6d\xdb\xb6\x6d\xdb\xb6\
        \x1f\x1f\xa0\x98\x03\xa7\x70\x17\x00\x00";

fn load(served: &Served, query: &str, body: &[u8]) -> Reply {
    served.send("POST", &format!("/v1/load?{query}"), &[FILE], body)
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn in_folder(folder: &Path, more: &str) -> String {
    format!(
        "loads = {:?}\n{more}\n[graphs.toy]\npath = \"@toy\"\n",
        folder.display().to_string()
    )
}

#[test]
fn a_file_becomes_a_graph_that_is_asked_at_once() {
    let served = toy("");
    assert_eq!(served.get("/v1/graphs").json()["may_load"], true);
    let reply = load(&served, "graph=films&file=films.tsv&typed=true", FILMS);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let loaded = reply.json();
    assert_eq!(
        (&loaded["graph"], &loaded["triples"]),
        (&json!("films"), &json!(3))
    );
    assert_eq!(
        (&loaded["entities"], &loaded["relations"]),
        (&json!(4), &json!(2))
    );
    assert!(loaded["seconds"].as_f64().unwrap() > 0.0);
    let questions = loaded["questions"].as_array().unwrap().clone();
    assert!(!questions.is_empty());
    let asked = json!({ "question": "Who directed Alien?", "graph": "films" });
    let answer = served.post("/v1/ask", &asked).json();
    assert_eq!(answer["answers"][0]["name"], "Ridley Scott", "{answer}");
    let graphs = served.get("/v1/graphs").json();
    assert_eq!(graphs["graphs"][0]["name"], "films");
    assert_eq!(graphs["graphs"][0]["default"], false);
    assert_eq!(graphs["graphs"][0]["examples"], json!(questions));
    assert_eq!(graphs["graphs"][0]["default_method"], "auto");

    // rows that are things take its place
    let table = b"title,directed by,cast\nDune,Denis Villeneuve,Zendaya;Rebecca Ferguson\n";
    let reply = load(&served, "graph=films&file=x.csv&wide=true&split=%3B", table);
    // the fourth says what Dune is: `x`, as the file is called
    assert_eq!(reply.json()["triples"], 4, "{}", reply.body);
    let answer = served.post("/v1/ask", &asked).json();
    assert_eq!(answer["status"], "abstained");
    let asked = json!({ "question": "Who directed Dune?", "graph": "films" });
    let answer = served.post("/v1/ask", &asked).json();
    assert_eq!(answer["answers"][0]["name"], "Denis Villeneuve", "{answer}");
    served.end();
}

#[test]
fn what_cannot_be_loaded_is_told_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(&in_folder(
        folder.path(),
        "limits = { load_bytes = 100, loaded_graphs = 1 }",
    ));
    for (query, body, status, code) in [
        (
            "graph=g&file=g.nt",
            &b"<a> <b>\nnonsense\n"[..],
            422,
            "bad-input",
        ),
        (
            "graph=g&file=g.json",
            b"[{\"a\": 1},\n{\"a\"",
            422,
            "bad-input",
        ),
        ("graph=g&file=g.csv&wide=true", b"a\n1\n", 422, "bad-input"),
        ("graph=g&file=g.tsv", b"", 400, "empty-body"),
        ("graph=g&file=g.tsv", &[b'x'; 101], 413, "body-too-large"),
        ("graph=g&format=docx", b"x", 400, "bad-value"),
        ("graph=g&columns=a,b", b"x", 400, "bad-value"),
        ("graph=..%2Fg&file=g.tsv", b"a\tb\tc\n", 422, "bad-name"),
        ("graph=.&file=g.tsv", b"a\tb\tc\n", 422, "bad-name"),
        ("graph=toy&file=g.tsv", b"a\tb\tc\n", 409, "graph-exists"),
        ("file=g.tsv", b"a\tb\tc\n", 400, "bad-query"),
        ("graph=g&more=1", b"a\tb\tc\n", 400, "bad-query"),
    ] {
        let reply = load(&served, query, body);
        let problem = reply.json();
        assert_eq!(
            (reply.status, problem["code"].as_str()),
            (status, Some(code)),
            "{query} {}",
            reply.body
        );
        assert!(!reply.body.contains(&*folder.path().to_string_lossy()));
        assert!(entries(folder.path()).is_empty(), "{query}");
    }
    let reply = load(&served, "graph=g&file=g.json", b"[{\"a\": 1},\n{\"a\"");
    assert!(reply.json()["message"].as_str().unwrap().contains("line 2"));
    // packed, a few bytes are many
    let packed = PACKED;
    assert!(packed.len() <= 100);
    let reply = load(&served, "graph=g&file=g.tsv.gz", packed);
    assert_eq!(reply.status, 422, "{}", reply.body);
    assert!(reply.body.contains("500 bytes"), "{}", reply.body);
    assert_eq!(
        load(&served, "graph=g&file=g.tsv", b"a\tb\tc\n").status,
        200
    );
    let more = load(&served, "graph=h&file=g.tsv", b"a\tb\tc\n");
    assert_eq!(
        (more.status, more.json()["code"].as_str()),
        (422, Some("too-many-graphs"))
    );
    assert_eq!(entries(folder.path()), ["g"]);
    served.end();
}

#[test]
fn a_file_that_breaks_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(&in_folder(folder.path(), ""));
    let mut stream = served.connect();
    let head = format!(
        "POST /v1/load?graph=g&file=g.tsv HTTP/1.1\r\nhost: {}\r\n{FILE}\r\ncontent-length: 1000\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(FILMS).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while entries(folder.path()).is_empty() {
        assert!(Instant::now() < until, "the upload does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    // one at a time
    let busy = load(&served, "graph=h&file=g.tsv", FILMS);
    assert_eq!((busy.status, busy.header("retry-after")), (429, Some("5")));
    drop(stream);
    while !entries(folder.path()).is_empty() {
        assert!(Instant::now() < until, "{:?}", entries(folder.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(load(&served, "graph=g&file=g.tsv", FILMS).status, 200);
    served.end();
}

#[test]
fn no_page_of_another_site_loads_a_graph() {
    let served = toy("");
    let send = |headers: &[&str]| {
        let reply = served.send("POST", "/v1/load?graph=g&file=g.tsv", headers, FILMS);
        reply.status
    };
    assert_eq!(send(&[FILE, "origin: https://evil.example"]), 403);
    assert_eq!(send(&[FILE, "sec-fetch-site: cross-site"]), 403);
    assert_eq!(send(&[FILE, "host: evil.example"]), 403);
    for kind in [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
    ] {
        assert_eq!(send(&[&format!("content-type: {kind}")]), 415, "{kind}");
    }
    assert_eq!(send(&[]), 415);
    // our own page, which sends what the browser makes of the file
    let own = format!("origin: http://{}", served.address);
    assert_eq!(
        send(&[
            "content-type: text/plain",
            &own,
            "sec-fetch-site: same-origin"
        ]),
        200
    );
}

#[test]
fn with_keys_only_those_that_may_write_load_graphs() {
    let folder = tempfile::tempdir().unwrap();
    let keys = "[[keys]]\nname = \"reader\"\nsha256 = \"5ba309d97235eb63edd707f2f399c1010236e03b693e73e88d4b02e2743f8360\"\n\
         [[keys]]\nname = \"writer\"\nsha256 = \"ae3db19cd0df8b8f31a6b8d52225894af5e846760f64f4fc06ae858048a67df0\"\nwrite = true\n";
    let reader = "authorization: Bearer wf-read";
    let writer = "authorization: Bearer wf-write";
    let send = |served: &Served, key: &str| {
        let reply = served.send(
            "POST",
            "/v1/load?graph=films&file=f.tsv",
            &[FILE, key],
            FILMS,
        );
        (
            reply.status,
            reply.json()["code"].as_str().map(str::to_owned),
        )
    };
    let may = |served: &Served, key: &str| {
        served.send("GET", "/v1/graphs", &[key], b"").json()["may_load"].clone()
    };
    // nowhere to put them
    let served = toy(keys);
    assert_eq!(send(&served, writer), (403, Some("no-loads".into())));
    assert_eq!(may(&served, writer), false);
    served.end();
    let served = serve(&in_folder(folder.path(), keys));
    assert_eq!(may(&served, reader), false);
    assert_eq!(may(&served, writer), true);
    assert_eq!(send(&served, reader), (403, Some("read-only".into())));
    assert_eq!(send(&served, "x-none: 1"), (401, Some("no-key".into())));
    assert_eq!(send(&served, writer), (200, None));
    served.end();
    // it is there when the server starts again, and may be replaced then too
    let served = serve(&in_folder(folder.path(), keys));
    let graphs = served.send("GET", "/v1/graphs", &[reader], b"").json();
    assert_eq!(graphs["graphs"][0]["name"], "films");
    assert_eq!(send(&served, writer), (200, None));
    served.end();
}

#[test]
fn a_server_that_others_reach_loads_nothing_unasked() {
    let served = toy("limits = { load_bytes = 0 }");
    assert_eq!(served.get("/v1/graphs").json()["may_load"], false);
    let reply = load(&served, "graph=g&file=g.tsv", FILMS);
    assert_eq!(
        (reply.status, reply.json()["code"].as_str()),
        (403, Some("no-loads"))
    );
    // what is refused is not waited for
    let mut stream = served.connect();
    served.write(&mut stream, "POST", "/v1/load?graph=g", &[FILE], b"");
    assert_eq!(read(&mut stream).status, 403);
}
