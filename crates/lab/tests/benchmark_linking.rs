//! Linking on the benchmarks' training and development questions, gold topics hidden.
//!
//! The data is not part of the repository: `WHEREFORE_DATA` names its folder, else `../shared/data`
//! beside the repository is tried. Without it, the test says that it was skipped. Test parts are
//! left alone here; `experiments/linking.sh` measures them.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

use wherefore::link::{Names, NamesConfig};
use wherefore_graph::{Input, LoadOptions, Store, load};
use wherefore_lab::linking::linking;
use wherefore_lab::questions;

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    folder.join("metaqa/kb.txt").exists().then_some(folder)
}

fn store(folder: &Path, file: &Path) -> Store {
    let options = LoadOptions::default();
    load(&[Input::File(file.to_owned())], folder, &options, &|_| {}).unwrap();
    Store::open(folder).unwrap()
}

#[test]
fn topics_of_train_and_development_questions_are_found() {
    let Some(data) = data() else {
        println!("skipped: no benchmark data");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // questions, graph, least recall at 1 and at 5
    for (asked, graph, least) in [
        ("metaqa/1-hop/qa_dev.txt", "metaqa/kb.txt", [0.98, 0.999]),
        ("metaqa/3-hop/qa_dev.txt", "metaqa/kb.txt", [0.99, 0.999]),
        (
            "pathquestion/PQ-3H.valid.txt",
            "pathquestion/3H-kb.txt",
            [0.99, 0.995],
        ),
        (
            "freebase/webqsp_train.jsonl",
            "freebase/triples.tsv",
            [0.85, 0.92],
        ),
    ] {
        let name = asked.replace('/', "-");
        let graph = store(&folder.path().join(name), &data.join(graph));
        let mut questions = questions::read(&data.join(asked), None).unwrap();
        questions.truncate(2000);
        let linker = Names::new(NamesConfig::default()).unwrap();
        let found = linking(&linker, &graph, &questions, &[1, 5], &|_| {}, None).unwrap();
        for (at, least) in found.recall.iter().zip(least) {
            println!("{asked}: recall@{} {:.4}", at.k, at.recall);
            assert!(at.recall >= least, "{asked}: {at:?}");
        }
    }
}
