//! Files of triples in every format, by the first byte; a format that is guessed, too. What was
//! loaded is a sound graph that holds as many triples as the report says.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore_fuzz::scratch;
use wherefore_graph::{
    Action, ChangeSet, Format, Graph, Input, LoadOptions, Store, TableOptions, load,
};

static SCRATCH: LazyLock<TempDir> = LazyLock::new(scratch);

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, text)) = data.split_first() else {
        return Corpus::Reject;
    };
    let format = (Format::NAMES.get(usize::from(first & 15))).map(|(format, _)| *format);
    let is_typed = first & 16 != 0;
    let file = SCRATCH.path().join("input");
    let out = SCRATCH.path().join("graph");
    std::fs::write(&file, text).expect("there is room");
    let input = Input::File(file);
    let table = TableOptions {
        typed: is_typed,
        ..TableOptions::default()
    };
    // changes are read line by line, by code of their own
    let _ = ChangeSet::read(&input, Action::Add, format, &table);
    let options = LoadOptions {
        format,
        table,
        base: (first & 32 != 0).then(|| "http://e/".to_owned()),
        memory: 64 << 20,
        threads: 1,
        replace: true,
        ..LoadOptions::default()
    };
    let Ok(report) = load(&[input], &out, &options, &|_| {}) else {
        return Corpus::Keep;
    };
    let store = Store::open(&out).expect("what was loaded can be opened");
    store.check().expect("what was loaded is sound");
    assert_eq!(store.counts(), &report.counts);
    let mut triples = 0;
    for triple in store.triples() {
        let triple = triple.expect("a sound graph is read");
        for entity in [triple.head, triple.tail] {
            store
                .entity_label(entity)
                .expect("every entity has a label");
            let term = store.entity_term(entity).expect("every entity has a term");
            let found = store.find_term(&term).expect("a sound graph is read");
            assert_eq!(found, Some(entity), "{term:?}");
        }
        store
            .relation_label(triple.relation)
            .expect("every relation has a label");
        triples += 1;
    }
    assert_eq!(triples, report.counts.triples);
    Corpus::Keep
});
