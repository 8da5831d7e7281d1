//! Saved answers: whatever stands in the file, it is verified or refused.
#![no_main]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use libfuzzer_sys::{Corpus, fuzz_target};
use wherefore::verify::{PublicKey, Saved, SigningKey, verify_saved};
use wherefore_graph::{MemoryGraph, toy};

static TOY: LazyLock<MemoryGraph> = LazyLock::new(toy::graph);
static KEY: LazyLock<PublicKey> = LazyLock::new(|| {
    let pem = SigningKey::generate().expect("the system gives random numbers");
    SigningKey::from_pem(&pem)
        .expect("it was just made")
        .public()
});

fuzz_target!(|text: &str| -> Corpus {
    let Ok(saved) = Saved::from_json(text) else {
        return Corpus::Keep;
    };
    let start = Instant::now();
    let _ = verify_saved(&saved, &*TOY, None);
    if let Ok(verification) = verify_saved(&saved, &*TOY, Some(&KEY)) {
        assert!(!verification.holds, "nobody signed it");
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(30), "it took {took:?}");
    Corpus::Keep
});
