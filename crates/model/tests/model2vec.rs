//! Reads a Model2Vec folder in both published layouts.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use wherefore_model::encode;
use wherefore_model::{Encoder, Error};

fn bytes<T, const N: usize>(values: &[T], to: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(to).collect()
}

fn write(folder: &Path, tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) {
    let tokenizer = r###"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
        "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
        "pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":null,"decoder":null,
        "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
                 "vocab":{"[UNK]":0,"red":1,"blue":2}}}"###;
    fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
    fs::write(
        folder.join("config.json"),
        r#"{"model_type":"model2vec","normalize":true}"#,
    )
    .unwrap();
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        })
        .collect();
    serialize_to_file(views, None, &folder.join("model.safetensors")).unwrap();
}

#[test]
fn plain_table_is_the_unit_mean_of_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let values = bytes(&[9.0f32, 9.0, 3.0, 0.0, 0.0, 4.0], |x| x.to_le_bytes());
    write(
        folder.path(),
        &[("embeddings", Dtype::F32, vec![3, 2], values)],
    );
    let table = encode::open(folder.path().to_str().unwrap()).unwrap();
    // (3, 0) + (0, 4) has length 5; `green` is unknown and adds nothing
    let rows = table.encode(&["Red blue green", "green"]).unwrap();
    assert_eq!(rows.row(0), [0.6, 0.8]);
    assert_eq!(rows.row(1), [0.0, 0.0]);
    assert_eq!(table.name(), folder.path().to_str().unwrap());
}

#[test]
fn newer_table_has_weights_and_shares_rows() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = [
        (
            "embeddings",
            Dtype::I8,
            vec![2, 2],
            vec![1, 0, 0, (-1i8) as u8],
        ),
        (
            "weights",
            Dtype::F64,
            vec![3],
            bytes(&[1.0f64, 3.0, 4.0], |x| x.to_le_bytes()),
        ),
        (
            "mapping",
            Dtype::I64,
            vec![3],
            bytes(&[0i64, 0, 1], |x| x.to_le_bytes()),
        ),
    ];
    write(folder.path(), &tensors);
    let table = encode::open(folder.path().to_str().unwrap()).unwrap();
    // 3·(1, 0) + 4·(0, −1)
    assert_eq!(table.encode(&["red blue"]).unwrap().row(0), [0.6, -0.8]);
}

#[test]
fn tables_that_do_not_fit_their_tokenizer_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let open = || match encode::open(folder.path().to_str().unwrap()) {
        Ok(_) => panic!("it loaded"),
        Err(error) => error,
    };
    let two = bytes(&[1.0f32; 4], |x| x.to_le_bytes());
    write(
        folder.path(),
        &[("embeddings", Dtype::F32, vec![2, 2], two.clone())],
    );
    assert!(matches!(
        open(),
        Error::TokenOutside {
            token: 2,
            rows: 2,
            ..
        }
    ));
    let far = bytes(&[0i64, 0, 7], |x| x.to_le_bytes());
    let tensors = [
        ("embeddings", Dtype::F32, vec![2, 2], two.clone()),
        ("mapping", Dtype::I64, vec![3], far),
    ];
    write(folder.path(), &tensors);
    assert!(matches!(
        open(),
        Error::TokenOutside {
            token: 7,
            rows: 2,
            ..
        }
    ));
    write(folder.path(), &[("other", Dtype::F32, vec![2, 2], two)]);
    assert!(matches!(open(), Error::MissingTensor { .. }));
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    assert!(matches!(
        open(),
        Error::MissingFile {
            file: "tokenizer.json",
            ..
        }
    ));
}
