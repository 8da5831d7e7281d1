//! A graph of a few films, and a server of it.

use std::path::Path;

use wherefore_graph::{Input, LoadOptions, Store, load};

use super::{Reply, Server, serve};

/// Films with labels, an alias, values, a node without a name, and a hub of 300 edges.
pub(crate) fn films() -> String {
    let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
    let mut text = String::new();
    for (id, name) in [
        ("dune", "Dune"),
        ("alien", "Alien"),
        ("scott", "Ridley Scott"),
        ("denis", "Denis Villeneuve"),
        ("drama", "Drama"),
    ] {
        text += &format!("<http://f/{id}> {label} \"{name}\"@en .\n");
        text += &format!("<http://f/{id}> {label} \"{name} (fr)\"@fr .\n");
    }
    text += "<http://f/directed_by> <http://www.w3.org/2000/01/rdf-schema#label> \"directed by\"@en .\n";
    text += "<http://f/scott> <http://www.w3.org/2004/02/skos/core#altLabel> \"Sir Ridley\" .\n";
    text += "<http://f/dune> <http://f/directed_by> <http://f/denis> .\n";
    text += "<http://f/alien> <http://f/directed_by> <http://f/scott> .\n";
    text +=
        "<http://f/dune> <http://f/year> \"2021\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n";
    text += "<http://f/alien> <http://f/award> <http://f/m.0abc> .\n";
    text += "<http://f/m.0abc> <http://f/award_of> \"Oscar \\\"1980\\\"\" .\n";
    for i in 0..300 {
        text += &format!("<http://f/film{i}> <http://f/genre> <http://f/drama> .\n");
    }
    text
}

pub(crate) fn loaded(folder: &Path, text: &str) -> Store {
    let file = folder.join("g.nt");
    std::fs::write(&file, text).unwrap();
    let graph = folder.join("graph");
    load(
        &[Input::File(file)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    Store::open(&graph).unwrap()
}

pub(crate) fn of_films(reply: Reply) -> (tempfile::TempDir, Store, Server) {
    let folder = tempfile::tempdir().unwrap();
    let store = loaded(folder.path(), &films());
    let server = serve(store.clone(), reply);
    (folder, store, server)
}
