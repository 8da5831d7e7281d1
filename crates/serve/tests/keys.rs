//! API keys: what they are for, until when, where they are read from, and wrong ones. And what a
//! browser sends on behalf of somebody else.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod served;

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use served::{Reply, Served, read, serve, toy};

const TWO_GRAPHS: &str = "[graphs.a]\npath = \"@toy\"\n[graphs.b]\npath = \"@toy\"\n";

struct Key {
    key: String,
    entry: String,
}

/// A new key with these settings.
fn key(name: &str, settings: &str) -> Key {
    let (key, sha256) = wherefore_serve::new_key().unwrap();
    let entry = format!("[[keys]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\n{settings}\n");
    Key { key, entry }
}

impl Key {
    fn send(&self, served: &Served, method: &str, path: &str, body: &str) -> Reply {
        let key = format!("authorization: Bearer {}", self.key);
        let kind = match path.contains("sparql") {
            true => "content-type: application/sparql-query",
            false => "content-type: application/json",
        };
        served.send(method, path, &[&key, kind], body.as_bytes())
    }

    fn get(&self, served: &Served, path: &str) -> u16 {
        self.send(served, "GET", path, "").status
    }

    fn tool(&self, served: &Served, name: &str, arguments: &Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                           "params": { "name": name, "arguments": arguments } });
        self.send(served, "POST", "/mcp", &call.to_string()).json()
    }
}

/// Requests that name a graph, each with the letter of its scope.
fn requests(graph: &str, answer: &Value) -> Vec<(char, &'static str, String, String)> {
    let question = "Who is the mascot of the San Francisco Giants?";
    let asked = json!({ "question": question, "graph": graph }).to_string();
    let verified = json!({ "graph": graph, "answer": answer }).to_string();
    let chat = json!({ "model": format!("{graph}/read"),
                       "messages": [{ "role": "user", "content": question }] });
    let opinion = json!({ "question": "Who?", "vote": "up", "graph": graph }).to_string();
    let change = json!({ "graph": graph, "format": "tsv", "add": "" }).to_string();
    let query = "ASK{}".to_owned();
    let post = |letter, path: &str, body: &str| (letter, "POST", path.to_owned(), body.to_owned());
    let get = |letter, path: String| (letter, "GET", path, String::new());
    vec![
        post('a', "/v1/ask", &asked),
        post('a', "/v1/ask?stream=true", &asked),
        post('a', "/v1/retrieve", &asked),
        post('a', "/v1/link", &asked),
        post('a', "/v1/verify", &verified),
        post('a', "/v1/chat/completions", &chat.to_string()),
        get('a', format!("/v1/models/{graph}/read")),
        get('a', format!("/v1/complete?text=lou&graph={graph}")),
        get('a', format!("/v1/entities?prefix=lou&graph={graph}")),
        get(
            'a',
            format!("/v1/neighbourhood?id=Lou%20Seal&graph={graph}"),
        ),
        get('a', format!("/v1/graphs/{graph}/relations")),
        get('a', format!("/v1/graphs/{graph}/schema")),
        get('a', format!("/text2sparql?dataset={graph}&question=Who%3F")),
        get('s', format!("/v1/sparql?query=ASK%7B%7D&graph={graph}")),
        get('s', format!("/v1/graphs/{graph}/sparql?query=ASK%7B%7D")),
        post('s', &format!("/v1/sparql?graph={graph}"), &query),
        post('s', &format!("/v1/graphs/{graph}/sparql"), &query),
        post('w', "/v1/triples", &change),
        post('f', "/v1/feedback", &opinion),
    ]
}

#[test]
fn a_key_opens_what_it_is_for_and_no_other_graph() {
    let folder = tempfile::tempdir().unwrap();
    let everything = key("everything", "write = true");
    let plain = key("plain", "");
    let asks = key("asks", "scopes = [\"ask\"]");
    let of_a = key("of a", "write = true\ngraphs = [\"a\"]");
    let each = key(
        "each",
        "scopes = [\"metrics\"]\ngraphs = { a = [\"ask\"], b = [\"sparql\", \"feedback\"] }",
    );
    let keys = [&everything, &plain, &asks, &of_a, &each];
    let entries: String = keys.iter().map(|key| key.entry.as_str()).collect();
    let served = serve(&format!(
        "feedback = {:?}\nruns = {:?}\n{entries}{TWO_GRAPHS}",
        folder.path().join("feedback").display().to_string(),
        folder.path().display().to_string()
    ));
    let question = json!({ "question": "Who wrote Hamlet?" }).to_string();
    let answer = everything
        .send(&served, "POST", "/v1/ask", &question)
        .json();
    for (key, on_a, on_b) in [
        (&everything, "aswf", "aswf"),
        (&plain, "asf", "asf"),
        (&asks, "a", "a"),
        (&of_a, "aswf", ""),
        (&each, "a", "sf"),
    ] {
        for (graph, scopes) in [("a", on_a), ("b", on_b)] {
            for (letter, method, path, body) in requests(graph, &answer) {
                let reply = key.send(&served, method, &path, &body);
                let forbidden = reply.status == 403;
                let told = format!("{} {path}: {} {}", key.entry, reply.status, reply.body);
                assert_eq!(!forbidden, scopes.contains(letter), "{told}");
                assert!(
                    forbidden || reply.status < 500 && reply.status != 401,
                    "{told}"
                );
            }
        }
    }
    // a key that may ask nothing of the default graph is told where it may
    let reply = each.send(&served, "POST", "/v1/sparql", "ASK{}");
    assert_eq!(reply.json()["hint"], "name one of: b");
    // what else there is, is not told
    for (key, graphs) in [(&plain, vec!["a", "b"]), (&of_a, vec!["a"])] {
        let listed = key.send(&served, "GET", "/v1/graphs", "").json();
        let listed = listed["graphs"].as_array().unwrap().clone();
        let names: Vec<&str> = listed.iter().map(|g| g["name"].as_str().unwrap()).collect();
        assert_eq!(names, graphs);
        let models = key.send(&served, "GET", "/v1/models", "").body;
        assert_eq!(models.contains("b/read"), graphs.contains(&"b"));
    }
    let missing = of_a.send(&served, "GET", "/v1/graphs/nothing/relations", "");
    assert_eq!((missing.status, missing.body.contains(" b")), (403, false));
    for (key, metrics) in [(&plain, 200), (&asks, 403), (&of_a, 200), (&each, 200)] {
        assert_eq!(key.get(&served, "/metrics"), metrics, "{}", key.entry);
        for (path, status) in [("/v1/runs", 200), ("/v1/runs/x/questions", 404)] {
            assert_eq!(key.get(&served, path), status, "{path} {}", key.entry);
        }
    }
}

#[test]
fn the_tools_of_mcp_ask_for_the_same_scopes() {
    let asks = key("asks", "scopes = [\"ask\"]");
    let queries = key("queries", "scopes = [\"sparql\"]\ngraphs = [\"b\"]");
    let served = serve(&format!("{}{}{TWO_GRAPHS}", asks.entry, queries.entry));
    let forbidden = |key: &Key, tool: &str, arguments: Value| {
        let reply = key.tool(&served, tool, &arguments);
        let text = reply["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default();
        let refused = text.starts_with("no-scope: ");
        assert_eq!(reply["result"]["isError"], refused, "{reply}");
        refused
    };
    let question = json!({ "question": "Who is the mascot of the San Francisco Giants?" });
    for tool in ["ask", "retrieve", "link"] {
        assert!(!forbidden(&asks, tool, question.clone()));
        assert!(forbidden(&queries, tool, question.clone()));
    }
    let entity = json!({ "entity": "Lou Seal", "graph": "b" });
    assert!(!forbidden(&asks, "describe_entity", entity.clone()));
    assert!(forbidden(&queries, "describe_entity", entity));
    assert!(forbidden(&asks, "sparql", json!({ "query": "ASK{}" })));
    assert!(forbidden(&queries, "sparql", json!({ "query": "ASK{}" })));
    assert!(!forbidden(
        &queries,
        "sparql",
        json!({ "query": "ASK{}", "graph": "b" })
    ));
    let call = |key: &Key, method: &str, params: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        key.send(&served, "POST", "/mcp", &call.to_string()).json()
    };
    let list = |key| call(key, "resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(list(&asks).as_array().unwrap().len(), 2);
    assert_eq!(list(&queries).as_array().unwrap().len(), 1);
    let hello = call(&queries, "initialize", json!({}))["result"]["instructions"].clone();
    let hello = hello.as_str().unwrap();
    assert!(hello.contains("b (") && !hello.contains("a (20"), "{hello}");
    let relations = json!({ "uri": "wherefore://graphs/b/relations" });
    assert!(call(&asks, "resources/read", relations.clone())["result"].is_object());
    assert!(call(&queries, "resources/read", relations)["error"].is_object());
}

#[test]
fn a_key_that_has_expired_is_refused() {
    let old = key("old", "expires = 2020-01-01");
    let good = key("good", "expires = 2120-01-01T00:00:00Z");
    let served = toy(&format!("{}{}", old.entry, good.entry));
    let reply = old.send(&served, "GET", "/v1/graphs", "");
    assert_eq!(
        (reply.status, reply.json()["code"].clone()),
        (401, json!("key-expired"))
    );
    assert_eq!(good.get(&served, "/v1/graphs"), 200);
}

#[test]
fn keys_come_and_go_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.toml");
    let write = |text: &str| {
        let aside = folder.path().join("aside");
        std::fs::write(&aside, text).unwrap();
        std::fs::rename(&aside, &file).unwrap();
    };
    write("");
    let (first, second) = (key("first", ""), key("second", ""));
    let fixed = key("fixed", "");
    let served = toy(&format!(
        "keys_file = {:?}\n{}",
        file.display().to_string(),
        fixed.entry
    ));
    let becomes = |key: &Key, status: u16| {
        let until = Instant::now() + Duration::from_secs(30);
        while key.get(&served, "/v1/graphs") != status {
            assert!(Instant::now() < until, "{status} does not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert_eq!(served.get("/v1/graphs").status, 401);
    assert_eq!(first.get(&served, "/v1/graphs"), 401);
    write(&first.entry);
    becomes(&first, 200);
    // a mistake locks nobody out
    write("[[keys]]\nnam = 1");
    let until = Instant::now() + Duration::from_secs(30);
    let told = |line: &String| line.contains("API keys stay as they were");
    while !served.log.lock().unwrap().iter().any(told) {
        assert!(Instant::now() < until, "the mistake is not told");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(first.get(&served, "/v1/graphs"), 200);
    write(&second.entry);
    becomes(&second, 200);
    assert_eq!(first.get(&served, "/v1/graphs"), 401);
    assert_eq!(fixed.get(&served, "/v1/graphs"), 200);
}

#[test]
fn wrong_keys_are_throttled() {
    let right = key("right", "");
    let used = key("used", "");
    let served = toy(&format!(
        "{}{}[limits]\nwrong_keys = 3",
        right.entry, used.entry
    ));
    assert_eq!(used.get(&served, "/v1/graphs"), 200);
    let guess = |text: &str| {
        let header = format!("authorization: Bearer {text}");
        served.send("GET", "/v1/graphs", &[&header], b"")
    };
    for n in 0..3 {
        assert_eq!(guess(&format!("wf-{n}")).status, 401);
    }
    let refused = guess("wf-3");
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (429, &json!("wrong-keys"))
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    // neither does a right guess get in, nor is anybody thrown out
    assert_eq!(right.get(&served, "/v1/graphs"), 429);
    assert_eq!(used.get(&served, "/v1/graphs"), 200);
    assert_eq!(served.get("/v1/graphs").status, 401);
    assert_eq!(served.get("/").status, 200);
}

#[test]
fn pages_of_other_sites_load_nothing() {
    let served = toy("cors = [\"https://app.example\"]");
    let image = [
        "sec-fetch-site: cross-site",
        "sec-fetch-mode: no-cors",
        "sec-fetch-dest: image",
    ];
    let link = [
        "sec-fetch-site: cross-site",
        "sec-fetch-mode: navigate",
        "sec-fetch-dest: document",
    ];
    let sparql = "/v1/sparql?query=ASK%7B%7D";
    for path in [sparql, "/v1/graphs", "/v1/entities?prefix=lou", "/metrics"] {
        for headers in [&image, &link] {
            let refused = served.send("GET", path, headers, b"");
            assert_eq!(
                (refused.status, &refused.json()["code"]),
                (403, &json!("cross-site"))
            );
        }
        let own = served.send("GET", path, &["sec-fetch-site: same-origin"], b"");
        assert_eq!(own.status, 200, "{path}");
    }
    assert_eq!(served.send("GET", "/?q=who", &link, b"").status, 200);
    assert_eq!(served.send("GET", "/", &image, b"").status, 403);
    let fetched = ["sec-fetch-site: cross-site", "origin: https://app.example"];
    assert_eq!(served.send("GET", sparql, &fetched, b"").status, 200);
    let foreign = ["sec-fetch-site: cross-site", "origin: https://evil.example"];
    assert_eq!(served.send("GET", sparql, &foreign, b"").status, 403);
}

#[test]
fn a_request_names_one_host() {
    let served = toy("");
    let raw = |head: &str| {
        let mut stream = served.connect();
        let head = format!("{head}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        read(&mut stream)
    };
    for head in [
        "GET /v1/graphs HTTP/1.1\r\n",
        "GET /v1/graphs HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n",
        "GET /v1/graphs HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n",
        "GET http://evil.example/v1/graphs HTTP/1.1\r\nhost: localhost\r\n",
        "GET /health HTTP/1.1\r\n",
    ] {
        let refused = raw(head);
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (400, &json!("bad-host")),
            "{head}"
        );
    }
    let good = "GET /v1/graphs HTTP/1.1\r\nhost: localhost\r\n";
    assert_eq!(raw(good).status, 200);
}
