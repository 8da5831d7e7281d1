//! Every gold form of the benchmarks is read, written as it was, and translated.
//!
//! The files are not in the repository: they are looked for where `WHEREFORE_DATA` says, or else
//! in `../shared/data` beside it.

use std::path::PathBuf;

use wherefore::logic::{Form, Moment, Notation, Plan};
use wherefore_graph::MemoryGraph;
use wherefore_lab::forms::gold_form;
use wherefore_lab::questions;

fn data() -> PathBuf {
    match std::env::var_os("WHEREFORE_DATA") {
        Some(folder) => folder.into(),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
    }
}

#[test]
fn every_gold_form_is_read_written_and_translated() {
    let folder = data().join("freebase");
    let graph = MemoryGraph::from_names::<&str>([]);
    for (file, forms) in [
        ("webqsp_train.jsonl", 2991),
        ("webqsp_test.jsonl", 800),
        ("cwq_test.jsonl", 1700),
        ("grailqa_dev_1000.jsonl", 500),
    ] {
        let path = folder.join(file);
        if !path.exists() {
            println!("skipped: there is no `{}`", path.display());
            continue;
        }
        let questions = questions::read(&path, None).unwrap();
        let texts: Vec<&str> = questions.iter().filter_map(gold_form).collect();
        assert!(
            texts.len() + 100 > forms,
            "{file} has {} forms",
            texts.len()
        );
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        for text in texts {
            let form: Form = text.parse().unwrap_or_else(|e| panic!("{e}: {text}"));
            let written = form.written(Notation::Bracketed);
            assert!(
                bare(&written) == bare(text) || !text.contains(" , "),
                "{text}\n{written}"
            );
            assert_eq!(form.to_string().parse::<Form>().unwrap(), form, "{text}");
            let plan =
                Plan::new(&form, &graph, Moment::now()).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert!(plan.sparql().starts_with("SELECT"), "{text}");
        }
    }
}
