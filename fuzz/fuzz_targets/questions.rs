//! Question files and predictions in every format, by the first byte. What was read is written as
//! our own JSON lines and read back as the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore_fuzz::scratch;
use wherefore_lab::questions::{self, Format};
use wherefore_lab::score::read_predictions;

static SCRATCH: LazyLock<TempDir> = LazyLock::new(scratch);

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, text)) = data.split_first() else {
        return Corpus::Reject;
    };
    let file = SCRATCH.path().join("questions");
    std::fs::write(&file, text).expect("there is room");
    if first & 16 != 0 {
        let _ = read_predictions(&file, None);
        return Corpus::Keep;
    }
    let format = Format::ALL.get(usize::from(first & 15)).copied();
    let Ok(read) = questions::read(&file, format) else {
        return Corpus::Keep;
    };
    for question in &read {
        question.own_graph();
        question.with_gold_topics();
    }
    let mut lines = Vec::new();
    questions::write(&read, &mut lines).expect("a vector takes all");
    std::fs::write(&file, lines).expect("there is room");
    let again = questions::read(&file, Some(Format::Jsonl)).expect("our own lines are read");
    assert_eq!(read, again);
    Corpus::Keep
});
