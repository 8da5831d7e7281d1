//! Holds every network against rows that `fixtures/make.py` computed in plain numpy.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wherefore_model::encode::{Pooling, Precision, TransformerEncoder, TransformerOptions};
use wherefore_model::{Encoder, Error};

#[derive(Deserialize)]
struct Expected {
    texts: Vec<String>,
    rows: Vec<Vec<f32>>,
}

fn fixture(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(family)
}

fn load(family: &str) -> TransformerEncoder {
    TransformerEncoder::load(&fixture(family), &TransformerOptions::default()).unwrap()
}

fn expected(family: &str) -> Expected {
    serde_json::from_slice(&fs::read(fixture(family).join("expected.json")).unwrap()).unwrap()
}

fn worst(encoder: &dyn Encoder, expected: &Expected) -> f32 {
    let texts: Vec<&str> = expected.texts.iter().map(String::as_str).collect();
    let rows = encoder.encode(&texts).unwrap();
    let pairs = rows.rows().zip(&expected.rows);
    pairs
        .flat_map(|(got, want)| got.iter().zip(want).map(|(g, w)| (g - w).abs()))
        .fold(0.0, f32::max)
}

#[test]
fn every_family_computes_the_reference_rows() {
    for family in ["bert", "mpnet", "gte", "qwen3"] {
        let difference = worst(&load(family), &expected(family));
        assert!(difference < 1e-5, "{family}: {difference}");
    }
}

#[test]
fn every_family_comes_near_the_reference_in_bf16() {
    let options = TransformerOptions {
        precision: Precision::Bf16,
        ..TransformerOptions::default()
    };
    for family in ["bert", "mpnet", "gte", "qwen3"] {
        let encoder = TransformerEncoder::load(&fixture(family), &options).unwrap();
        let difference = worst(&encoder, &expected(family));
        assert!(
            difference > 1e-6 && difference < 0.05,
            "{family}: {difference}"
        );
    }
}

#[test]
fn batches_of_one_token_give_the_same_rows() {
    let options = TransformerOptions {
        batch_tokens: 1,
        ..TransformerOptions::default()
    };
    let encoder = TransformerEncoder::load(&fixture("bert"), &options).unwrap();
    assert!(worst(&encoder, &expected("bert")) < 1e-5);
    let mut seen = vec![];
    encoder
        .encode_with_progress(&["a", "a b", "c"], &mut |done| seen.push(done))
        .unwrap();
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn vocabulary_file_does_where_there_is_no_tokenizer_file() {
    let folder = copy("bert");
    let tokenizer: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("tokenizer.json")).unwrap()).unwrap();
    let vocabulary = tokenizer["model"]["vocab"].as_object().unwrap();
    let mut tokens: Vec<(&String, u64)> = vocabulary
        .iter()
        .map(|(token, id)| (token, id.as_u64().unwrap()))
        .collect();
    tokens.sort_by_key(|token| token.1);
    let lines: Vec<&str> = tokens.iter().map(|token| token.0.as_str()).collect();
    fs::write(folder.path().join("vocab.txt"), lines.join("\n")).unwrap();
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let encoder = TransformerEncoder::load(folder.path(), &TransformerOptions::default()).unwrap();
    assert!(worst(&encoder, &expected("bert")) < 1e-5);
}

#[test]
fn query_prefix_of_the_folder_goes_before_questions_only() {
    let encoder = load("qwen3");
    assert_eq!(encoder.pooling(), Pooling::LastToken);
    let text = encoder.encode(&["who directed films?"]).unwrap();
    assert_eq!(encoder.encode_queries(&["films?"]).unwrap(), text);
    assert_ne!(encoder.encode(&["films?"]).unwrap(), text);
}

#[test]
fn endless_text_is_cut_and_no_text_gives_no_rows() {
    let encoder = load("mpnet");
    let long = "where was the river born ".repeat(4000);
    let rows = encoder.encode(&[&long, "\u{0}\u{202e}🙂"]).unwrap();
    assert!(rows.values().iter().all(|x| x.is_finite()));
    assert!(encoder.encode(&[]).unwrap().is_empty());
}

fn copy(family: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(family)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

fn error_of(folder: &Path) -> Error {
    match TransformerEncoder::load(folder, &TransformerOptions::default()) {
        Ok(_) => panic!("it loaded"),
        Err(error) => error,
    }
}

fn edit_config(folder: &Path, from: &str, to: &str) {
    let path = folder.join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn files_cut_short_are_errors_that_name_the_file() {
    for family in ["bert", "mpnet", "gte", "qwen3"] {
        for file in ["model.safetensors", "tokenizer.json", "config.json"] {
            let folder = copy(family);
            let path = folder.path().join(file);
            let whole = fs::read(&path).unwrap();
            for part in [0, 1, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
                fs::write(&path, &whole[..part]).unwrap();
                let error = error_of(folder.path());
                assert!(error.to_string().contains(file), "{family} {part}: {error}");
                assert!(!error.is_internal(), "{error}");
            }
            fs::remove_file(&path).unwrap();
            let error = error_of(folder.path());
            assert!(error.to_string().contains(file), "{family}: {error}");
            assert!(matches!(error, Error::MissingFile { .. }) && error.hint().is_some());
        }
    }
}

#[test]
fn weights_of_another_shape_are_an_error_that_names_the_tensor() {
    let folder = copy("bert");
    edit_config(
        folder.path(),
        "\"intermediate_size\": 24",
        "\"intermediate_size\": 32",
    );
    let error = error_of(folder.path());
    assert!(
        error
            .to_string()
            .ends_with("has shape [24, 16], and [32, 16] was expected"),
        "{error}"
    );
    let folder = copy("qwen3");
    edit_config(
        folder.path(),
        "\"num_hidden_layers\": 2",
        "\"num_hidden_layers\": 3",
    );
    let error = error_of(folder.path());
    assert!(
        error.to_string().contains("have no tensor `layers.2."),
        "{error}"
    );
}

#[test]
fn configurations_that_no_network_has_are_errors() {
    for (family, from, to) in [
        ("bert", "\"model_type\": \"bert\"", "\"model_type\": \"t5\""),
        (
            "bert",
            "\"num_attention_heads\": 4",
            "\"num_attention_heads\": 0",
        ),
        (
            "bert",
            "\"num_attention_heads\": 4",
            "\"num_attention_heads\": 5",
        ),
        ("bert", "\"hidden_size\": 16", "\"hidden_size\": 0"),
        (
            "bert",
            "\"hidden_act\": \"gelu\"",
            "\"hidden_act\": \"mystery\"",
        ),
        (
            "mpnet",
            "\"max_position_embeddings\": 40",
            "\"max_position_embeddings\": 1",
        ),
        ("gte", "\"ntk\"", "\"yarn\""),
        ("gte", "\"rope\"", "\"absolute\""),
        (
            "qwen3",
            "\"num_key_value_heads\": 2",
            "\"num_key_value_heads\": 3",
        ),
        ("qwen3", "\"head_dim\": 8", "\"head_dim\": 7"),
    ] {
        let folder = copy(family);
        edit_config(folder.path(), from, to);
        let error = error_of(folder.path());
        assert!(!error.is_internal(), "{to}: {error}");
    }
}

#[test]
fn tokenizer_of_another_model_is_an_error() {
    let folder = copy("bert");
    let path = folder.path().join("tokenizer.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"born\":8", "\"born\":800")).unwrap();
    let encoder = TransformerEncoder::load(folder.path(), &TransformerOptions::default()).unwrap();
    let error = encoder.encode(&["born"]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TokenOutside {
                token: 800,
                rows: 19,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn modules_and_poolings_that_are_not_known_are_errors() {
    let folder = copy("bert");
    fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    let pooling = folder.path().join("1_Pooling/config.json");
    fs::write(&pooling, "{\"pooling_mode_max_tokens\": true}").unwrap();
    let error = error_of(folder.path());
    assert!(
        error.to_string().contains("pooling_mode_max_tokens"),
        "{error}"
    );
    fs::write(&pooling, "{\"pooling_mode_cls_token\": true}").unwrap();
    let encoder = TransformerEncoder::load(folder.path(), &TransformerOptions::default()).unwrap();
    assert_eq!(encoder.pooling(), Pooling::Cls);
    fs::write(
        folder.path().join("modules.json"),
        "[{\"path\": \"2_Dense\", \"type\": \"sentence_transformers.models.Dense\"}]",
    )
    .unwrap();
    assert!(error_of(folder.path()).to_string().contains("`Dense`"));
}
