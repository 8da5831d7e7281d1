//! A language model small enough to be written by a test: two layers of random weights, and a
//! tokenizer of single letters.

use std::path::Path;

const WIDTH: usize = 32;
const FEED: usize = 64;
const HEADS: usize = 4;
const KEYS: usize = 2;
const SIZE: usize = 8;
const LAYERS: usize = 2;

enum Value {
    Number(u32),
    Float(f32),
    Text(String),
    Flag(bool),
    Texts(Vec<String>),
    Numbers(Vec<i32>),
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn value(out: &mut Vec<u8>, value: &Value) {
    let kind = |out: &mut Vec<u8>, kind: u32| out.extend(kind.to_le_bytes());
    match value {
        Value::Number(number) => {
            kind(out, 4);
            out.extend(number.to_le_bytes());
        }
        Value::Float(number) => {
            kind(out, 6);
            out.extend(number.to_le_bytes());
        }
        Value::Flag(flag) => {
            kind(out, 7);
            out.push(u8::from(*flag));
        }
        Value::Text(words) => {
            kind(out, 8);
            text(out, words);
        }
        Value::Texts(all) => {
            kind(out, 9);
            kind(out, 8);
            out.extend((all.len() as u64).to_le_bytes());
            all.iter().for_each(|words| text(out, words));
        }
        Value::Numbers(all) => {
            kind(out, 9);
            kind(out, 5);
            out.extend((all.len() as u64).to_le_bytes());
            all.iter()
                .for_each(|number| out.extend(number.to_le_bytes()));
        }
    }
}

/// Writes a model of the Llama family; another seed is another model.
pub(crate) fn write(path: &Path, seed: u64) {
    let mut tokens = vec!["<|endoftext|>".to_owned(), "<|im_end|>".to_owned()];
    tokens.extend((33..127u8).map(|c| char::from(c).to_string()));
    tokens.extend(["Ġ".to_owned(), "Ċ".to_owned(), "th".to_owned()]);
    let vocabulary = tokens.len();
    let types = (0..vocabulary).map(|i| if i < 2 { 3 } else { 1 }).collect();
    let mut values: Vec<(String, Value)> = vec![
        ("general.architecture".into(), Value::Text("llama".into())),
        ("general.name".into(), Value::Text("tiny".into())),
        (
            "llama.attention.layer_norm_rms_epsilon".into(),
            Value::Float(1e-6),
        ),
        ("tokenizer.ggml.model".into(), Value::Text("gpt2".into())),
        ("tokenizer.ggml.pre".into(), Value::Text("qwen2".into())),
        ("tokenizer.ggml.tokens".into(), Value::Texts(tokens)),
        ("tokenizer.ggml.token_type".into(), Value::Numbers(types)),
        (
            "tokenizer.ggml.merges".into(),
            Value::Texts(vec!["t h".into()]),
        ),
        ("tokenizer.ggml.eos_token_id".into(), Value::Number(1)),
        ("tokenizer.ggml.add_bos_token".into(), Value::Flag(false)),
    ];
    for (key, size) in [
        ("context_length", 2048),
        ("embedding_length", WIDTH),
        ("feed_forward_length", FEED),
        ("block_count", LAYERS),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KEYS),
        ("rope.dimension_count", SIZE),
    ] {
        values.push((format!("llama.{key}"), Value::Number(size as u32)));
    }
    // rows first; the file has them the other way round
    let mut tensors: Vec<(String, Vec<usize>)> = vec![
        ("token_embd.weight".into(), vec![vocabulary, WIDTH]),
        ("output_norm.weight".into(), vec![WIDTH]),
    ];
    for i in 0..LAYERS {
        for (name, shape) in [
            ("attn_norm", vec![WIDTH]),
            ("ffn_norm", vec![WIDTH]),
            ("attn_q", vec![HEADS * SIZE, WIDTH]),
            ("attn_k", vec![KEYS * SIZE, WIDTH]),
            ("attn_v", vec![KEYS * SIZE, WIDTH]),
            ("attn_output", vec![WIDTH, HEADS * SIZE]),
            ("ffn_gate", vec![FEED, WIDTH]),
            ("ffn_up", vec![FEED, WIDTH]),
            ("ffn_down", vec![WIDTH, FEED]),
        ] {
            tensors.push((format!("blk.{i}.{name}.weight"), shape));
        }
    }
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((values.len() as u64).to_le_bytes());
    for (key, content) in &values {
        text(&mut out, key);
        value(&mut out, content);
    }
    let mut data: Vec<u8> = Vec::new();
    let mut state = seed;
    for (name, shape) in &tensors {
        text(&mut out, name);
        out.extend((shape.len() as u32).to_le_bytes());
        for size in shape.iter().rev() {
            out.extend((*size as u64).to_le_bytes());
        }
        out.extend(0u32.to_le_bytes());
        out.extend((data.len() as u64).to_le_bytes());
        for _ in 0..shape.iter().product() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let uniform = (state >> 40) as f32 / (1u32 << 24) as f32;
            let number = match name.ends_with("norm.weight") {
                true => 1.0,
                false => uniform - 0.5,
            };
            data.extend(number.to_le_bytes());
        }
        data.resize(data.len().next_multiple_of(32), 0);
    }
    out.resize(out.len().next_multiple_of(32), 0);
    out.extend(data);
    std::fs::write(path, out).unwrap();
}
