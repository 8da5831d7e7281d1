//! The reader over a graph that a SPARQL service holds: answers are those of the store, and what the
//! service counted is asked for once.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../graph/tests/server/mod.rs"]
mod server;

use std::path::Path;

use server::{honest, serve};
use wherefore::graph::{
    Graph, Input, LoadOptions, Service, ServiceConfig, Store, index_labels, load,
};
use wherefore::{PipelineConfig, Question};

/// Countries with classes, labels, numbers, years and days.
const GRAPH: &str = r#"
@prefix : <http://e.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Country rdfs:label "country" . :City rdfs:label "city" . :River rdfs:label "river" .
:arda a :Country ; rdfs:label "Arda" ; :capital :alba ; :population 5000 ; :borders :borea, :cania ; :founded "1945-05-02"^^xsd:date .
:borea a :Country ; rdfs:label "Borea" ; :capital :brim ; :population 2000 ; :borders :arda ; :founded "1945"^^xsd:gYear .
:cania a :Country ; rdfs:label "Cania" ; :capital :corr ; :population 9000 ; :borders :arda ; :founded "1960-01-01"^^xsd:date .
:alba a :City ; rdfs:label "Alba" ; :country :arda ; :population 700 .
:aster a :City ; rdfs:label "Aster" ; :country :arda ; :population 900 .
:brim a :City ; rdfs:label "Brim" ; :country :borea ; :population 300 .
:corr a :City ; rdfs:label "Corr" ; :country :cania ; :population 800 .
:wend a :River ; rdfs:label "Wend" ; :flowsThrough :arda, :cania ; :length 120 .
:yare a :River ; rdfs:label "Yare" ; :flowsThrough :arda, :borea ; :length 340 .
"#;

const ASKED: [(&str, &[&str]); 10] = [
    ("What is the capital of Arda?", &["Alba"]),
    ("Which countries border Arda?", &["Borea", "Cania"]),
    ("How many cities are in Arda?", &["2"]),
    ("What is the largest city in Arda?", &["Aster"]),
    (
        "Which rivers flow through countries that border Borea?",
        &["Wend", "Yare"],
    ),
    ("Which is longer, the Wend or the Yare?", &["Yare"]),
    ("Is Alba the capital of Arda?", &["yes"]),
    ("Which country has the most people?", &["Cania"]),
    ("Which countries were founded in 1945?", &["Arda", "Borea"]),
    ("Who is the king of Arda?", &[]),
];

fn load_graph(folder: &Path) -> Store {
    let file = folder.join("graph.ttl");
    std::fs::write(&file, GRAPH).unwrap();
    let out = folder.join("graph");
    load(&[Input::File(file)], &out, &LoadOptions::default(), &|_| {}).unwrap();
    Store::open(&out).unwrap()
}

fn hold(graph: &dyn Graph) {
    let pipeline = PipelineConfig::default().build().unwrap();
    for (text, wanted) in ASKED {
        let answer = pipeline
            .answer(&Question::new(text), graph, &mut ())
            .unwrap();
        let mut names: Vec<&str> = answer.answers.iter().map(|a| a.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names, wanted,
            "{text}: {:?} {:?}",
            answer.reading, answer.reason
        );
        assert!(answer.evidence.iter().all(|e| e.verified), "{text}");
    }
}

#[test]
fn a_service_is_read_as_the_store_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = load_graph(folder.path());
    hold(&store);
    let server = serve(store, honest());
    // names by labels as they are written
    hold(&Service::open(server.config()).unwrap());

    let index = folder.path().join("labels");
    index_labels(server.config(), &index, 1 << 26, false, &|_| {}, &|_| {}).unwrap();
    let indexed = || {
        let config = ServiceConfig::read(&index.join("service.toml")).unwrap();
        Service::open(config).unwrap()
    };
    let counts = |server: &server::Server| {
        let queries = server.queries.lock().unwrap();
        queries.iter().filter(|q| q.contains("COUNT(*)")).count()
    };
    let before = counts(&server);
    hold(&indexed());
    let once = counts(&server);
    assert!(once > before, "classes and relations are counted");
    let asked = server.sent();
    hold(&indexed());
    assert_eq!(counts(&server), once, "and that is kept beside the index");
    let each = (server.sent() - asked) / ASKED.len();
    assert!(each <= 40, "{each} queries a question");
}
