//! Tiny models of every family against llama.cpp's numbers.
//!
//! `experiments/gguf_fixture.py` made `tests/fixtures/gguf.json`: tokens of a prompt, the three
//! largest logits behind it, and the tokens written. The weights are a recipe, followed here too.

use std::path::Path;

use candle_core::quantized::gguf_file::{Value, write};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use serde::Deserialize;

use super::*;

const WIDTH: usize = 32;
const FEED: usize = 64;
const HEADS: usize = 4;
const KEYS: usize = 2;
const SIZE: usize = 8;

#[derive(Deserialize)]
struct Fixture {
    prompt: String,
    cases: std::collections::BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    tokens: Vec<u32>,
    written: Vec<u32>,
    top: Vec<f32>,
}

fn numbers(name: &str, count: usize) -> Vec<f32> {
    let mut seed = 0xcbf2_9ce4_8422_2325u64;
    for byte in name.bytes() {
        seed = (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut random = Random::new(seed);
    let shift = if name.ends_with("norm.weight") {
        0.5
    } else {
        -0.5
    };
    (0..count).map(|_| random.uniform() + shift).collect()
}

fn tensors(family: &str, layers: usize, vocabulary: usize) -> Vec<(String, QTensor)> {
    let mut all: Vec<(String, Vec<usize>)> = vec![
        ("token_embd.weight".into(), vec![vocabulary, WIDTH]),
        ("output_norm.weight".into(), vec![WIDTH]),
    ];
    if !family.starts_with("gemma") {
        all.push(("output.weight".into(), vec![vocabulary, WIDTH]));
    }
    for i in 0..layers {
        let mut add =
            |name: &str, shape: &[usize]| all.push((format!("blk.{i}.{name}"), shape.to_vec()));
        add("attn_norm.weight", &[WIDTH]);
        add("ffn_norm.weight", &[WIDTH]);
        for (name, heads) in [("attn_q", HEADS), ("attn_k", KEYS), ("attn_v", KEYS)] {
            add(&format!("{name}.weight"), &[heads * SIZE, WIDTH]);
            if family == "qwen2" {
                add(&format!("{name}.bias"), &[heads * SIZE]);
            }
        }
        if matches!(family, "qwen3" | "gemma3") {
            add("attn_q_norm.weight", &[SIZE]);
            add("attn_k_norm.weight", &[SIZE]);
        }
        if matches!(family, "gemma2" | "gemma3") {
            add("post_attention_norm.weight", &[WIDTH]);
            add("post_ffw_norm.weight", &[WIDTH]);
        }
        add("attn_output.weight", &[WIDTH, HEADS * SIZE]);
        add("ffn_gate.weight", &[FEED, WIDTH]);
        add("ffn_up.weight", &[FEED, WIDTH]);
        add("ffn_down.weight", &[WIDTH, FEED]);
    }
    all.into_iter()
        .map(|(name, shape)| {
            let values = numbers(&name, shape.iter().product());
            let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
            let tensor = QTensor::quantize(&tensor, GgmlDType::F32).unwrap();
            (name, tensor)
        })
        .collect()
}

fn texts<S: Into<String>>(list: impl IntoIterator<Item = S>) -> Value {
    Value::Array(list.into_iter().map(|s| Value::String(s.into())).collect())
}

/// The values of a tokenizer, and how many tokens it has.
fn byte_level() -> (Vec<(&'static str, Value)>, usize) {
    let merges = ["t h", "th e", "Ġ the", "o t", "ot h", "q u", "o x", "Ġ d"];
    let mut tokens = vec!["<|endoftext|>".to_owned(), "<|im_end|>".into()];
    tokens.extend((33..127u8).map(|c| char::from(c).to_string()));
    tokens.extend(["Ġ".to_owned(), "Ċ".to_owned()]);
    tokens.extend(merges.map(|m| m.replace(' ', "")));
    let count = tokens.len();
    let types = (0..count).map(|i| Value::I32(if i < 2 { 3 } else { 1 }));
    let values = vec![
        ("tokenizer.ggml.model", Value::String("gpt2".into())),
        ("tokenizer.ggml.pre", Value::String("qwen2".into())),
        ("tokenizer.ggml.tokens", texts(tokens)),
        ("tokenizer.ggml.token_type", Value::Array(types.collect())),
        ("tokenizer.ggml.merges", texts(merges)),
        ("tokenizer.ggml.bos_token_id", Value::U32(0)),
        ("tokenizer.ggml.eos_token_id", Value::U32(1)),
        ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
    ];
    (values, count)
}

fn by_pieces(space: bool) -> (Vec<(&'static str, Value)>, usize) {
    let words = [
        "▁", "t", "h", "e", "o", "r", "th", "he", "the", "▁the", "▁t", "oth", "er", "▁o", "ow",
        "w", "n", "▁d", "d", "g", "og",
    ];
    let mut tokens = vec!["<unk>".to_owned(), "<s>".into(), "</s>".into()];
    tokens.extend((0..=255u8).map(|b| format!("<0x{b:02X}>")));
    tokens.extend(words.map(str::to_owned));
    let count = tokens.len();
    let types = (0..count).map(|i| {
        Value::I32(match i {
            0 => 2,
            1 | 2 => 3,
            3..259 => 6,
            _ => 1,
        })
    });
    let scores = (0..count).map(|i| Value::F32(-(i.saturating_sub(259) as f32)));
    let values = vec![
        ("tokenizer.ggml.model", Value::String("llama".into())),
        ("tokenizer.ggml.tokens", texts(tokens)),
        ("tokenizer.ggml.token_type", Value::Array(types.collect())),
        ("tokenizer.ggml.scores", Value::Array(scores.collect())),
        ("tokenizer.ggml.bos_token_id", Value::U32(1)),
        ("tokenizer.ggml.eos_token_id", Value::U32(2)),
        ("tokenizer.ggml.unknown_token_id", Value::U32(0)),
        ("tokenizer.ggml.add_bos_token", Value::Bool(true)),
        ("tokenizer.ggml.add_space_prefix", Value::Bool(space)),
    ];
    (values, count)
}

fn make(path: &Path, family: &str, layers: usize, tokenizer: (Vec<(&str, Value)>, usize)) {
    let (mut values, vocabulary): (Vec<(String, Value)>, usize) = (
        tokenizer
            .0
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v))
            .collect(),
        tokenizer.1,
    );
    values.push(("general.architecture".into(), Value::String(family.into())));
    let mut add = |key: &str, value| values.push((format!("{family}.{key}"), value));
    for (key, value) in [
        ("context_length", 256),
        ("embedding_length", WIDTH),
        ("feed_forward_length", FEED),
        ("block_count", layers),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KEYS),
        ("attention.key_length", SIZE),
        ("attention.value_length", SIZE),
        ("rope.dimension_count", SIZE),
    ] {
        add(key, Value::U32(value as u32));
    }
    add("attention.layer_norm_rms_epsilon", Value::F32(1e-6));
    add("rope.freq_base", Value::F32(50_000.0));
    if matches!(family, "gemma2" | "gemma3") {
        add("attention.sliding_window", Value::U32(8));
    }
    if family == "gemma2" {
        add("attn_logit_softcapping", Value::F32(0.5));
        add("final_logit_softcapping", Value::F32(3.0));
    }
    let tensors = tensors(family, layers, vocabulary);
    let values: Vec<(&str, &Value)> = values.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(k, t)| (k.as_str(), t)).collect();
    let mut file = std::fs::File::create(path).unwrap();
    write(&mut file, &values, &tensors).unwrap();
}

/// The model of a case, in a folder that must outlive it only while it is read.
fn model(name: &str) -> Local {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    make_case(&path, name);
    Local::open(&path).unwrap()
}

pub(crate) fn make_case(path: &Path, name: &str) {
    match name {
        "gemma" => make(path, name, 2, by_pieces(false)),
        "llama-pieces" => make(path, "llama", 2, by_pieces(true)),
        "gemma3" => make(path, name, 7, byte_level()),
        _ => make(path, name, 2, byte_level()),
    }
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../../tests/fixtures/gguf.json")).unwrap()
}

#[test]
fn every_family_reads_and_writes_as_llama_cpp_does() {
    let fixture = fixture();
    assert_eq!(fixture.cases.len(), 7);
    for (name, case) in &fixture.cases {
        let model = model(name);
        let prompt = Prompt::Plain(fixture.prompt.clone());
        assert_eq!(model.tokens(&prompt).unwrap(), case.tokens, "{name}");
        let mut engine = model.engine.lock().unwrap();
        compare(name, case, &mut **engine);
    }
}

#[test]
fn the_tensors_of_a_card_read_and_write_as_llama_cpp_does() {
    let fixture = fixture();
    let folder = tempfile::tempdir().unwrap();
    for (name, case) in &fixture.cases {
        let path = folder.path().join(name);
        make_case(&path, name);
        let mut gguf = Gguf::open(&path).unwrap();
        let shape = Shape::read(&gguf).unwrap();
        let vocabulary = Tokenizer::read(&gguf).unwrap().len();
        let mut card = Card::read(&mut gguf, shape, vocabulary, &Device::Cpu).unwrap();
        compare(name, case, &mut card);
        // what is forgotten and read again gives the same
        card.truncate(case.tokens.len() - 2);
        let rest = &case.tokens[case.tokens.len() - 2..];
        let largest = |logits: Vec<f32>| logits.into_iter().fold(f32::MIN, f32::max);
        let again = largest(card.read_on(rest).unwrap());
        assert!((again - case.top[0]).abs() < 2e-3, "{name}: {again}");
    }
}

/// Holds an engine against what llama.cpp gave.
fn compare(name: &str, case: &Case, engine: &mut dyn Engine) {
    let mut logits = engine.read_on(&case.tokens).unwrap();
    let mut top = logits.clone();
    top.sort_by(|a, b| b.total_cmp(a));
    for (found, want) in top.iter().zip(&case.top) {
        assert!((found - want).abs() < 2e-3, "{name}: {found} {want}");
    }
    let mut random = Random::new(0);
    for want in &case.written {
        let token = sample::next(&mut logits, &[], &Decoding::default(), &mut random);
        assert_eq!(token, *want, "{name}");
        logits = engine.read_on(&[token]).unwrap();
    }
}

#[test]
fn what_two_prompts_share_is_read_once_and_changes_nothing() {
    let model = model("gemma3");
    let complete = |text: &str| {
        let mut begun_at = None;
        let completion = model
            .complete(
                &Prompt::Plain(text.into()),
                &Decoding {
                    max_tokens: 9,
                    ..Decoding::default()
                },
                &mut |p| {
                    if let Progress::Reading { done, .. } = p {
                        begun_at.get_or_insert(done);
                    }
                    ControlFlow::Continue(())
                },
            )
            .unwrap();
        (completion.text, begun_at.unwrap())
    };
    let (first, begun) = complete("the quick brown fox");
    assert_eq!(begun, 0);
    let (_, begun) = complete("the quick red hen");
    assert!(begun > 5, "{begun}");
    let (again, begun) = complete("the quick brown fox");
    assert!(begun > 5, "{begun}");
    assert_eq!(again, first);
}

#[test]
fn a_file_that_was_cut_short_is_an_error_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    make(&path, "qwen3", 2, byte_level());
    let whole = std::fs::read(&path).unwrap();
    for kept in (0..whole.len()).step_by(whole.len() / 40 + 1) {
        std::fs::write(&path, &whole[..kept]).unwrap();
        let error = Local::open(&path).err();
        assert!(
            matches!(error, Some(Error::BadGguf { .. })),
            "{kept} of {} bytes: {error:?}",
            whole.len()
        );
    }
}

#[test]
fn limits_and_stops_of_a_real_decoder() {
    let model = model("llama");
    assert_eq!(model.context(), 256);
    let prompt = Prompt::Plain("the dog".into());
    let complete = |decoding: Decoding| {
        model
            .complete(&prompt, &decoding, &mut super::super::unwatched)
            .unwrap()
    };
    let all = complete(Decoding {
        max_tokens: 12,
        ..Decoding::default()
    });
    assert_eq!((all.finish, all.completion_tokens), (Finish::Length, 12));
    let stop = all.text[4..6].to_owned();
    let stopped = complete(Decoding {
        stop: vec![stop.clone()],
        ..Decoding::default()
    });
    assert_eq!(stopped.finish, Finish::Stop);
    assert_eq!(
        Some(stopped.text.as_str()),
        all.text.split(stop.as_str()).next()
    );
    let late = complete(Decoding {
        time_limit: Some(std::time::Duration::ZERO),
        ..Decoding::default()
    });
    assert_eq!((late.finish, late.text.as_str()), (Finish::Stopped, ""));
    let long = Prompt::Plain("x".repeat(300));
    let error = model.complete(&long, &Decoding::default(), &mut super::super::unwatched);
    assert!(matches!(
        error,
        Err(Error::PromptTooLong {
            tokens: 300,
            context: 256
        })
    ));
    // without a template there is no chat
    let chat = Prompt::Chat(vec![super::super::Message::new(
        super::super::Role::User,
        "hi",
    )]);
    let error = model.complete(&chat, &Decoding::default(), &mut super::super::unwatched);
    assert!(matches!(error, Err(Error::BadTemplate { .. })));
}

#[test]
fn the_frozen_decoder_gives_the_logits_of_the_decoder_with_and_without_a_cache() {
    use super::frozen::Frozen;
    let folder = tempfile::tempdir().unwrap();
    for name in ["llama", "qwen2", "qwen3", "llama-pieces"] {
        let path = folder.path().join(name);
        make_case(&path, name);
        let local = Local::open(&path).unwrap();
        let mut engine = local.engine.lock().unwrap();
        let frozen = Frozen::open(&path, &Device::Cpu).unwrap();
        let tokens = [5u32, 9, 40, 12, 7, 33];
        let close = |found: Vec<f32>, want: &[f32]| {
            let worst = found.iter().zip(want).map(|(a, b)| (a - b).abs());
            let worst = worst.fold(0.0, f32::max);
            assert!(worst < 2e-3, "{name}: {worst}");
        };
        let last = |x: &Tensor, text: usize, at: usize| {
            let row = x.narrow(0, text, 1).unwrap().narrow(1, at, 1).unwrap();
            let row = row.reshape((1, WIDTH)).unwrap();
            let logits = frozen.logits(&row).unwrap();
            logits.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        // two texts at once, the first shorter: what lies behind its end changes nothing
        let batch = [&tokens[..4], &[0, 0], &tokens[..]].concat();
        let x = frozen
            .embed(&batch)
            .unwrap()
            .reshape((2, 6, WIDTH))
            .unwrap();
        let places = frozen.places_at_the_start(6).unwrap();
        let mut caches = Vec::new();
        let none = &mut |_, _, _: &Tensor| Ok(None);
        let x = frozen.run(&x, &places, Some(&mut caches), none).unwrap();
        let four = engine.read_on(&tokens[..4]).unwrap();
        close(last(&x, 0, 3), &four);
        let six = engine.read_on(&tokens[4..]).unwrap();
        close(last(&x, 1, 5), &six);
        // both go on with one token each, three times the second and once the first
        let order = Tensor::new(&[1u32, 0, 1], &Device::Cpu).unwrap();
        let mut caches = caches.iter().map(|c| c.of(&order).unwrap()).collect();
        let x = frozen
            .embed(&[3, 4, 8])
            .unwrap()
            .reshape((3, 1, WIDTH))
            .unwrap();
        let places = frozen.one_further(&[6, 4, 6], 6, 0).unwrap();
        let x = frozen.run(&x, &places, Some(&mut caches), none).unwrap();
        close(last(&x, 2, 0), &engine.read_on(&[8]).unwrap());
        engine.truncate(6);
        close(last(&x, 0, 0), &engine.read_on(&[3]).unwrap());
        engine.truncate(4);
        close(last(&x, 1, 0), &engine.read_on(&[4]).unwrap());
        let x = frozen
            .embed(&[2, 2, 2])
            .unwrap()
            .reshape((3, 1, WIDTH))
            .unwrap();
        let places = frozen.one_further(&[6, 4, 6], 6, 1).unwrap();
        let x = frozen.run(&x, &places, Some(&mut caches), none).unwrap();
        close(last(&x, 1, 0), &engine.read_on(&[2]).unwrap());
    }
    let path = folder.path().join("gemma");
    make_case(&path, "gemma");
    assert!(matches!(
        Frozen::open(&path, &Device::Cpu),
        Err(Error::UnknownFamily { .. })
    ));
}
