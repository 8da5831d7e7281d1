//! Files of models, by the first byte: GGUF, safetensors, tokenizers, tables of vectors, and the
//! descriptions beside them.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore_fuzz::scratch;
use wherefore_model::checkpoint::Checkpoint;
use wherefore_model::distance_mlp::Network;
use wherefore_model::encode::{Encoder, StaticTable, TransformerEncoder, TransformerOptions};

use wherefore_model::language::{Local, Prompt};
use wherefore_model::tensor::Device;

const CHECKPOINT: [(&str, &[u8]); 2] = [
    (
        "config.json",
        include_bytes!("../../crates/graph/tests/upgrade/checkpoint/config.json"),
    ),
    (
        "model.safetensors",
        include_bytes!("../../crates/graph/tests/upgrade/checkpoint/model.safetensors"),
    ),
];
const ENCODER: [(&str, &[u8]); 3] = [
    (
        "config.json",
        include_bytes!("../../crates/model/tests/fixtures/bert/config.json"),
    ),
    (
        "tokenizer.json",
        include_bytes!("../../crates/model/tests/fixtures/bert/tokenizer.json"),
    ),
    (
        "model.safetensors",
        include_bytes!("../../crates/model/tests/fixtures/bert/model.safetensors"),
    ),
];

static SCRATCH: LazyLock<TempDir> = LazyLock::new(|| {
    let scratch = scratch();
    for (folder, files) in [("checkpoint", &CHECKPOINT[..]), ("encoder", &ENCODER[..])] {
        let folder = scratch.path().join(folder);
        std::fs::create_dir(&folder).expect("there is room");
        for (name, bytes) in files {
            write(&folder.join(name), bytes);
        }
    }
    scratch
});

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("there is room");
}

/// Puts `bytes` in the place of one file while `read` runs.
fn with(folder: &str, (name, whole): (&str, &[u8]), bytes: &[u8], read: impl FnOnce(&Path)) {
    let folder = SCRATCH.path().join(folder);
    write(&folder.join(name), bytes);
    read(&folder);
    write(&folder.join(name), whole);
}

fn checkpoint(folder: &Path) {
    let _ = Checkpoint::<Network>::load(folder, &Device::Cpu);
}

fn encoder(folder: &Path) {
    if let Ok(encoder) = TransformerEncoder::load(folder, &TransformerOptions::default()) {
        let _ = encoder.encode(&["the cat", "", "Zürich \u{202e} 3.5"]);
    }
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, bytes)) = data.split_first() else {
        return Corpus::Reject;
    };
    let file = SCRATCH.path().join("file");
    match first % 7 {
        0 => {
            write(&file, bytes);
            if let Ok(model) = Local::open(&file) {
                let _ = model.tokens(&Prompt::Plain("the cat".into()));
            }
        }
        1 => with("checkpoint", CHECKPOINT[0], bytes, checkpoint),
        2 => with("checkpoint", CHECKPOINT[1], bytes, checkpoint),
        3 => with("encoder", ENCODER[0], bytes, encoder),
        4 => with("encoder", ENCODER[1], bytes, encoder),
        5 => with("encoder", ENCODER[2], bytes, encoder),
        _ => {
            write(&file, bytes);
            if let Ok(table) = StaticTable::load(&file) {
                let _ = table.encode(&["the cat"]);
            }
        }
    }
    Corpus::Keep
});
