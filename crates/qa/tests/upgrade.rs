//! What an older version wrote is read as it was: an index and a checkpoint. The graph itself is
//! looked at in `crates/graph/tests/store.rs`.

use std::path::{Path, PathBuf};

use wherefore::index::{IndexOptions, Part, TextIndex, Vectors, build, check};
use wherefore_graph::Store;
use wherefore_model::Encoder;
use wherefore_model::checkpoint::{Checkpoint, Checkpointable};
use wherefore_model::distance_mlp::{Config, Network};
use wherefore_model::encode::HashingEncoder;
use wherefore_model::tensor::Device;

fn written_before() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../graph/tests/upgrade")
}

#[test]
fn an_index_of_an_older_version_answers_as_it_did() {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            match entry.path().is_dir() {
                true => copy(&entry.path(), &target),
                false => drop(std::fs::copy(entry.path(), target).unwrap()),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let before = written_before().join("graph");
    let path = folder.path().join("graph");
    copy(&before, &path);
    let store = Store::open(&path).unwrap();
    let encoder = HashingEncoder::new(16);
    let query = encoder.encode(&["Salzburg"]).unwrap().into_values();
    // what that version answered
    for (part, wanted) in [
        (Part::Entities, [(2, 1.000_053_3), (3, 0.198_610_38)]),
        (Part::Relations, [(1, 0.222_582_55), (2, 0.114_707_865)]),
        (Part::Triples, [(2, 0.425_953_8), (5, 0.257_028_52)]),
    ] {
        let vectors = Vectors::open(&store, &encoder, part).unwrap();
        assert!(vectors.is_linked());
        let near = vectors.nearest(&query, 2).unwrap();
        for (found, wanted) in near.iter().zip(wanted) {
            assert_eq!(found.0, wanted.0, "{part}: {near:?}");
            assert!((found.1 - wanted.1).abs() < 1e-3, "{part}: {near:?}");
        }
    }
    // full text has other files now: the error says so, and building it again mends it
    let error = TextIndex::open(&store).unwrap_err();
    assert!(error.to_string().contains("older version"), "{error}");
    assert!(error.hint().unwrap().contains("wherefore index"));
    // nothing to verify, and only full text to build
    assert_eq!(check(&store).unwrap().len(), 4);
    let options = IndexOptions {
        triples: true,
        scanned: 0,
        ..IndexOptions::default()
    };
    let report = build(&store, &encoder, &options, &|_| {}).unwrap();
    let built = report.parts.iter().filter(|part| part.built);
    assert_eq!(
        built.map(|part| part.part).collect::<Vec<_>>(),
        [Part::Text]
    );
    let text = TextIndex::open(&store).unwrap();
    let found = text.documents("salzburg austria", 3).unwrap();
    assert_eq!(found.iter().map(|f| f.0.0).collect::<Vec<_>>(), [2, 3, 5]);
}

#[test]
fn a_checkpoint_of_an_older_version_has_the_same_weights() {
    let folder = written_before().join("checkpoint");
    let checkpoint = Checkpoint::<Network>::load(&folder, &Device::Cpu).unwrap();
    let sizes = Config {
        dim: 16,
        hidden: 8,
        ..Config::default()
    };
    assert_eq!(checkpoint.description.sizes, sizes);
    assert_eq!(checkpoint.description.encoder.name, "hashing");
    assert_eq!(checkpoint.description.seed, 7);
    let parameters = checkpoint.network.parameters();
    let sum = |name: &str| {
        let values = parameters[name].as_tensor().flatten_all().unwrap();
        let values = values.to_vec1::<f32>().unwrap();
        (
            values.len(),
            values.iter().map(|v| f64::from(*v)).sum::<f64>(),
        )
    };
    // counted in the file by hand
    for (name, wanted) in [
        ("b_1", (8, 0.000000)),
        ("b_2", (1, 0.000000)),
        ("w_1", (672, -1.448578)),
        ("w_2", (8, -1.230374)),
    ] {
        let (count, total) = sum(name);
        assert_eq!(count, wanted.0, "{name}");
        assert!((total - wanted.1).abs() < 1e-5, "{name}: {total}");
    }
}
