//! Configurations, by the first byte: of a method, of the server, of a SPARQL service, of a sweep.
//! A method's configuration is written and read back as the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore::PipelineConfig;
use wherefore_fuzz::scratch;
use wherefore_graph::ServiceConfig;
use wherefore_lab::sweep::Sweep;
use wherefore_serve::ServeConfig;

static SCRATCH: LazyLock<TempDir> = LazyLock::new(|| {
    let scratch = scratch();
    let method = PipelineConfig::default().to_toml();
    std::fs::write(scratch.path().join("a.toml"), method).expect("there is room");
    scratch
});

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, text)) = data.split_first() else {
        return Corpus::Reject;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return Corpus::Reject;
    };
    let file = SCRATCH.path().join("config.toml");
    match first % 4 {
        0 => {
            if let Ok(config) = PipelineConfig::from_toml(text) {
                let written = config.to_toml();
                let again = PipelineConfig::from_toml(&written);
                assert_eq!(again.expect("what we write is read").to_toml(), written);
            }
        }
        1 => drop(ServeConfig::from_toml(text)),
        2 => {
            std::fs::write(&file, text).expect("there is room");
            let _ = ServiceConfig::read(&file);
        }
        _ => {
            std::fs::write(&file, text).expect("there is room");
            if let Ok(sweep) = Sweep::read(&file) {
                let _ = sweep.plan(SCRATCH.path());
            }
        }
    }
    Corpus::Keep
});
