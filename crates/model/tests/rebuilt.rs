//! Checkpoints rebuilt from `docs/checkpoints.md` alone: its equations in plain loops over the files,
//! from texts to scores, against the code that learns and the code that answers.
//!
//! Nothing but file formats comes from the crate here: the table of the encoder is read byte by byte,
//! tensors with the `safetensors` crate. Numbers are added up in 64 bits, so that what differs is the
//! crate's rounding.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use wherefore_model::checkpoint::{Checkpoint, Checkpointable, Description, save};
use wherefore_model::gnn2r::sentence::{SentenceEncoder, SentenceReader};
use wherefore_model::qr_gat::{Scratch, Subgraph, Table};
use wherefore_model::scoring::{TripleNetwork, TripleScorer};
use wherefore_model::tensor::{Device, Tensor};
use wherefore_model::{Encoder, Random, encode, gnn2r, qr_gat};

/// How far the crate's numbers may be from those of the page.
const TOLERANCE: f64 = 2e-5;

/// Labels of entities; one node has no name.
const ENTITIES: [Option<&str>; 9] = [
    Some("Oracle Park"),
    Some("San Francisco Giants"),
    Some("Bruce Bochy"),
    None,
    Some("41,915 seats"),
    Some("Willie Mays"),
    Some("Landes de Bussac"),
    Some("France"),
    Some("Sluggerrr"),
];
/// Labels of relations, opened up into words.
const RELATIONS: [&str; 4] = ["plays in", "coached by", "venue record", "is part of"];
/// One in the middle, and one without a triple.
const TOPICS: [bool; 9] = [false, true, false, false, false, false, false, false, true];
/// A hub, two relations between the same entities, a triple and its way back, a loop, and one triple
/// that comes twice.
const TRIPLES: [[u32; 3]; 12] = [
    [1, 0, 0],
    [1, 1, 2],
    [0, 2, 3],
    [3, 3, 4],
    [1, 3, 5],
    [5, 3, 1],
    [2, 3, 6],
    [6, 3, 7],
    [1, 1, 5],
    [7, 0, 7],
    [1, 0, 0],
    [4, 2, 2],
];
const QUESTION: &str = "Who's the coach of the San Francisco Giants?";

type Row = Vec<f64>;

// Rows of numbers.

fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn plus(a: &[f64], b: &[f64]) -> Row {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn unit(row: &[f64]) -> Row {
    let length = dot(row, row).sqrt();
    row.iter()
        .map(|x| if length > 0.0 { x / length } else { 0.0 })
        .collect()
}

fn leaky(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.2 * x }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softmax(scores: &[f64]) -> Row {
    let all: f64 = scores.iter().map(|s| s.exp()).sum();
    scores.iter().map(|s| s.exp() / all).collect()
}

// The encoder `static`.

/// A token's row of the table.
struct NaiveTable {
    dim: usize,
    rows: HashMap<String, Row>,
}

impl NaiveTable {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/static.table");
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(&bytes[..8], b"WFTABLE1");
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[12..12 + length]).unwrap();
        let number = |key: &str| header[key].as_u64().unwrap() as usize;
        let (dim, count) = (number("dim"), number("tokens"));
        let rest = &bytes[12 + length..];
        let (tokens, rest) = rest.split_at(number("token_bytes"));
        let (scales, rest) = rest.split_at(4 * count);
        let codes = &rest[..count * dim];
        let mut rows = HashMap::new();
        for (i, token) in std::str::from_utf8(tokens).unwrap().lines().enumerate() {
            let scale = f32::from_le_bytes(scales[4 * i..4 * i + 4].try_into().unwrap());
            let codes = &codes[i * dim..(i + 1) * dim];
            let row = codes
                .iter()
                .map(|c| f64::from(scale) * f64::from(*c as i8))
                .collect();
            if token != header["unknown"] {
                rows.insert(token.to_owned(), row);
            }
        }
        assert_eq!(rows.len() + 1, count);
        Self { dim, rows }
    }

    /// The rows of a text's tokens; the texts here are ASCII.
    fn tokens(&self, text: &str) -> Vec<&Row> {
        assert!(text.is_ascii());
        let mut spaced = String::new();
        for c in text.chars().map(|c| c.to_ascii_lowercase()) {
            match c {
                ' ' | '\t' | '\n' | '\r' => spaced.push(' '),
                c if c.is_ascii_punctuation() => spaced += &format!(" {c} "),
                c if c.is_ascii_control() => {}
                c => spaced.push(c),
            }
        }
        let mut found: Vec<&Row> = spaced.split(' ').flat_map(|word| self.word(word)).collect();
        found.truncate(512);
        found
    }

    /// The longest pieces of a word, from its beginning; nothing if some part of it is no piece.
    fn word(&self, word: &str) -> Vec<&Row> {
        let mut found = vec![];
        let mut start = 0;
        while start < word.len() {
            let mark = if start > 0 { "##" } else { "" };
            let piece = (start + 1..=word.len()).rev().find_map(|end| {
                Some((self.rows.get(&format!("{mark}{}", &word[start..end]))?, end))
            });
            let Some((row, end)) = piece.filter(|_| word.len() <= 100) else {
                return vec![];
            };
            found.push(row);
            start = end;
        }
        found
    }

    /// The vector of a text.
    fn vector(&self, text: &str) -> Row {
        let zeros = vec![0.0; self.dim];
        unit(
            &self
                .tokens(text)
                .into_iter()
                .fold(zeros, |sum, row| plus(&sum, row)),
        )
    }

    /// The token vectors of a text, each with a mean square of 1.
    fn states(&self, text: &str) -> Vec<Row> {
        let root = (self.dim as f64).sqrt();
        let scaled = |row: &Row| unit(row).iter().map(|x| x * root).collect();
        self.tokens(text).into_iter().map(scaled).collect()
    }
}

// The files of a checkpoint.

struct Folder {
    sizes: Value,
    tensors: HashMap<String, (Vec<usize>, Row)>,
}

impl Folder {
    fn read(folder: &Path) -> Self {
        let config = std::fs::read(folder.join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        assert_eq!(config["format"], 1);
        let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let numbers = |data: &[u8]| {
            let numbers = data.chunks_exact(4);
            numbers
                .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
                .collect()
        };
        Self {
            sizes: config["sizes"].clone(),
            tensors: tensors
                .tensors()
                .into_iter()
                .map(|(name, view)| {
                    assert_eq!(view.dtype(), Dtype::F32);
                    (name, (view.shape().to_vec(), numbers(view.data())))
                })
                .collect(),
        }
    }

    fn size(&self, key: &str) -> usize {
        self.sizes[key].as_u64().unwrap() as usize
    }

    fn is(&self, key: &str) -> bool {
        self.sizes[key].as_bool().unwrap()
    }

    fn lacks(&self, ablation: &str) -> bool {
        let ablations = self.sizes["ablations"].as_array().unwrap();
        ablations.iter().any(|a| a == ablation)
    }

    /// The numbers of a tensor, row after row.
    fn get(&self, name: &str) -> &[f64] {
        &self
            .tensors
            .get(name)
            .unwrap_or_else(|| panic!("there is no `{name}`"))
            .1
    }

    /// `W·x`.
    fn times(&self, name: &str, x: &[f64]) -> Row {
        let (shape, numbers) = &self.tensors[name];
        assert_eq!(shape[1], x.len(), "columns of `{name}`");
        numbers
            .chunks_exact(x.len())
            .map(|row| dot(row, x))
            .collect()
    }

    /// `W·x + b`.
    fn affine(&self, [w, b]: [&str; 2], x: &[f64]) -> Row {
        plus(&self.times(w, x), self.get(b))
    }
}

/// Gives every tensor random numbers, the scales of norms around 1: what a network begins with has
/// zeros and equal tensors, in which mistakes would hide.
fn shaken<N: Checkpointable>(network: N, seed: u64) -> N {
    let mut random = Random::new(seed);
    for (name, var) in network.parameters() {
        let count = var.elem_count();
        // token vectors are long, and gates that are closed would hide mistakes too
        let bound = if name.ends_with("w_i") { 0.05 } else { 0.5 };
        let mut numbers = random.within(bound, count);
        if name.ends_with("norm.scale") {
            numbers.iter_mut().for_each(|x| *x += 1.0);
        }
        let numbers = Tensor::from_vec(numbers, var.dims(), &Device::Cpu).unwrap();
        var.set(&numbers).unwrap();
    }
    network
}

/// Writes a checkpoint; it is read back by the crate and by the code of this file.
fn written<N: Checkpointable>(folder: &Path, sizes: N::Sizes, network: &N) -> (N, Folder) {
    let description = Description::of::<N>(sizes, "static", 1);
    save(folder, &description, network, None).unwrap();
    let read = Checkpoint::<N>::load(folder, &Device::Cpu).unwrap();
    (read.network, Folder::read(folder))
}

fn assert_near(what: &str, crates: &[f32], pages: &[f64]) {
    assert_eq!(crates.len(), pages.len(), "{what}");
    for (ours, page) in crates.iter().zip(pages) {
        let off = (f64::from(*ours) - page).abs();
        assert!(off < TOLERANCE, "{what}: {ours} and not {page}");
    }
}

fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - values.iter().copied().fold(f64::INFINITY, f64::min)
}

// QR-GAT.

/// The logits of every triple: of itself and, with `answers`, of its head and of its tail.
fn qr_gat_page(folder: &Folder, q: &Row, e: &[Row], r: &[Row]) -> Vec<Row> {
    let forward = stack(folder, "forward", q, e, r);
    let backward = stack(folder, "backward", q, e, r);
    let state = |i: u32| [&forward[i as usize][..], &backward[i as usize]].concat();
    let logits = |&[h, relation, t]: &[u32; 3]| {
        let r = &r[relation as usize];
        let mut x = [&state(h)[..], r, &state(t)].concat();
        if !folder.lacks("no-query-score") {
            x = [&q[..], &x].concat();
        }
        let mut inner = folder.affine(["w_1", "b_1"], &x);
        if folder.is("matching") && !folder.lacks("no-query-score") {
            let met = folder
                .times("m_q", q)
                .into_iter()
                .zip(folder.times("m_r", r));
            inner = plus(&inner, &met.map(|(q, r)| q * r).collect::<Row>());
        }
        inner.iter_mut().for_each(|x| *x = x.max(0.0));
        folder.affine(["w_2", "b_2"], &inner)
    };
    TRIPLES.iter().map(logits).collect()
}

/// The last states of one direction.
fn stack(folder: &Folder, direction: &str, q: &Row, e: &[Row], r: &[Row]) -> Vec<Row> {
    let (heads, width) = (
        folder.size("heads"),
        folder.size("hidden") / folder.size("heads"),
    );
    let mut h: Vec<Row> = (e.iter().zip(TOPICS))
        .map(|(e, topic)| {
            let flag = if topic { [0.0, 1.0] } else { [1.0, 0.0] };
            let q: &[f64] = if folder.lacks("no-query-init") {
                &[]
            } else {
                q
            };
            [&e[..], q, &flag].concat()
        })
        .collect();
    for layer in 1..=folder.size("layers") {
        let name = |tensor: &str| format!("{direction}.{layer}.{tensor}");
        let times = |tensor: &str, x: &[f64]| folder.times(&name(tensor), x);
        h = (0..h.len())
            .map(|i| {
                let z_i = times("w_s", &h[i]);
                let mut scores: Vec<Row> = vec![vec![]; heads];
                let mut brought: Vec<Row> = vec![];
                for (j, r) in heard(folder, direction, i, r) {
                    let (z_j, w_r) = (times("w_t", &h[j]), times("w_e", &r));
                    let u = plus(&plus(&z_i, &z_j), &w_r);
                    for (k, scores) in scores.iter_mut().enumerate() {
                        let own = k * width..(k + 1) * width;
                        let u: Row = u[own.clone()].iter().map(|x| leaky(*x)).collect();
                        let mut score = dot(&folder.get(&name("a"))[own.clone()], &u);
                        if !folder.lacks("no-query-attn") {
                            score += dot(&times("w_q", q)[own.clone()], &times("w_r", &r)[own]);
                        }
                        scores.push(score);
                    }
                    brought.push(if folder.is("steps") {
                        plus(&z_j, &w_r)
                    } else {
                        z_j
                    });
                }
                let mut o = vec![0.0; heads * width];
                for (k, scores) in scores.iter().enumerate() {
                    for (share, brought) in softmax(scores).iter().zip(&brought) {
                        for x in k * width..(k + 1) * width {
                            o[x] += share * brought[x];
                        }
                    }
                }
                normed(
                    &o,
                    folder.get(&name("norm.scale")),
                    folder.get(&name("norm.shift")),
                )
            })
            .collect();
    }
    h
}

/// Which entities entity i hears, each with the vector of the relation.
fn heard(folder: &Folder, direction: &str, i: usize, r: &[Row]) -> Vec<(usize, Row)> {
    let mut heard = vec![];
    for [head, relation, tail] in TRIPLES.map(|t| t.map(|id| id as usize)) {
        let (from, to) = match direction {
            "forward" => (head, tail),
            _ => (tail, head),
        };
        let r = &r[relation];
        if to == i {
            heard.push((from, r.clone()));
        }
        if folder.is("steps") && from == i {
            heard.push((to, r.iter().map(|x| -x).collect()));
        }
    }
    if folder.is("steps") && TOPICS[i] {
        heard.push((i, vec![0.0; r[0].len()]));
    }
    heard
}

fn normed(o: &Row, scale: &[f64], shift: &[f64]) -> Row {
    let count = o.len() as f64;
    let mean = o.iter().sum::<f64>() / count;
    let variance = o.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let numbers = o.iter().zip(scale).zip(shift);
    numbers
        .map(|((x, scale), shift)| scale * (x - mean) / (variance + 1e-5).sqrt() + shift)
        .collect()
}

/// The crate's logits of a network: as it answers, and as it learns; triple by triple.
fn qr_gat_crate(network: &qr_gat::Network) -> [Vec<Vec<f32>>; 2] {
    let encoder = encode::open("static").unwrap();
    let dim = encoder.dim();
    let question = encoder.encode_queries(&[QUESTION]).unwrap();
    let mut entities = vec![0.0; ENTITIES.len() * dim];
    for (row, label) in entities.chunks_exact_mut(dim).zip(ENTITIES) {
        if let Some(label) = label {
            row.copy_from_slice(encoder.encode(&[label]).unwrap().row(0));
        }
    }
    let relations = encoder.encode(&RELATIONS).unwrap();
    let rows: Vec<u32> = (0..ENTITIES.len() as u32).collect();
    let subgraph = Subgraph {
        question: question.row(0),
        entities: &rows,
        topics: &TOPICS,
        relations: &rows[..RELATIONS.len()],
        triples: &TRIPLES,
    };
    let entities = Table::new(&entities, dim).unwrap();
    let relations = Table::new(relations.values(), dim).unwrap();
    let learns = network.logits(&[subgraph], [&entities, &relations], None, &Device::Cpu);
    let learns = learns.unwrap().to_vec2::<f32>().unwrap();

    let scorer = TripleNetwork::scorer(network).unwrap();
    let entities = TripleScorer::entity_parts(&scorer, &entities).unwrap();
    let relations = TripleScorer::relation_parts(&scorer, &relations).unwrap();
    let mut scratch = Scratch::default();
    let scored = TripleScorer::score(&scorer, &subgraph, &entities, &relations, &mut scratch);
    let scored = scored.unwrap();
    let answers = (0..TRIPLES.len())
        .map(|i| {
            let ends = scored.answers.map_or(vec![], |[h, t]| vec![h[i], t[i]]);
            [&[scored.triples[i]], &ends[..]].concat()
        })
        .collect();
    [answers, learns]
}

#[test]
fn scores_of_a_qr_gat_are_those_of_the_page() {
    let table = NaiveTable::read();
    let place = tempfile::tempdir().unwrap();
    let variants = [
        json!({}),
        json!({"layers": 3, "heads": 1}),
        json!({"ablations": ["no-query-init"]}),
        json!({"ablations": ["no-query-attn"]}),
        json!({"ablations": ["no-query-score"]}),
        json!({"steps": true}),
        json!({"answers": true}),
        json!({"matching": true}),
        json!({"matching": true, "answers": true, "ablations": ["no-query-score"]}),
        json!({"steps": true, "answers": true, "matching": true}),
        json!({"steps": true, "ablations": ["no-query-attn", "no-query-init"]}),
    ];
    let mut seen: Vec<Row> = vec![];
    for (number, variant) in variants.into_iter().enumerate() {
        let mut sizes = json!({"dim": table.dim, "hidden": 8, "layers": 2, "heads": 2});
        let given = variant.as_object().unwrap().clone();
        sizes.as_object_mut().unwrap().extend(given);
        let sizes: qr_gat::Config = serde_json::from_value(sizes).unwrap();
        let network = qr_gat::Network::new(sizes.clone(), &mut Random::new(3), &Device::Cpu);
        let network = shaken(network.unwrap(), 40 + number as u64);
        let (network, folder) = written(&place.path().join(number.to_string()), sizes, &network);

        let no_name = vec![0.0; table.dim];
        let e: Vec<Row> = ENTITIES
            .map(|e| e.map_or(no_name.clone(), |e| table.vector(e)))
            .into();
        let r: Vec<Row> = RELATIONS.map(|r| table.vector(r)).into();
        let page = qr_gat_page(&folder, &table.vector(QUESTION), &e, &r);
        for (way, ours) in ["answering", "learning"].iter().zip(qr_gat_crate(&network)) {
            for (triple, (ours, page)) in ours.iter().zip(&page).enumerate() {
                assert_near(&format!("{variant}, {way}, triple {triple}"), ours, page);
            }
        }
        let triples: Row = page.iter().map(|outputs| outputs[0]).collect();
        assert!(spread(&triples) > 0.05, "{variant} tells nothing apart");
        assert!(
            (triples[0] - triples[10]).abs() < 1e-12,
            "the same triple twice"
        );
        assert!(!seen.contains(&triples));
        seen.push(triples);
    }
}

// GNN2R.

/// The last state of a GRU.
fn gru(folder: &Folder, name: &str, tokens: &[Row], mut h: Row) -> Row {
    let n = h.len();
    let of = |tensor: &str| format!("{name}.{tensor}");
    for x in tokens {
        let x = folder.affine([&of("w_i"), &of("b_i")], x);
        let y = folder.affine([&of("w_h"), &of("b_h")], &h);
        h = (0..n)
            .map(|i| {
                let r = sigmoid(x[i] + y[i]);
                let z = sigmoid(x[n + i] + y[n + i]);
                let u = (x[2 * n + i] + r * y[2 * n + i]).tanh();
                (1.0 - z) * u + z * h[i]
            })
            .collect();
    }
    h
}

/// The last states from either end, and their mean.
fn read(folder: &Folder, name: &str, tokens: &[Row], first: &[Row; 2]) -> ([Row; 2], Row) {
    let reversed: Vec<Row> = tokens.iter().rev().cloned().collect();
    let forward = gru(folder, &format!("{name}.forward"), tokens, first[0].clone());
    let backward = gru(
        folder,
        &format!("{name}.backward"),
        &reversed,
        first[1].clone(),
    );
    let mean = plus(&forward, &backward).iter().map(|x| 0.5 * x).collect();
    ([forward, backward], mean)
}

/// `a·leaky(W·[x ‖ q] + b)`.
fn weighed(folder: &Folder, layer: usize, [part, a]: [&str; 2], x: &Row, q: &Row) -> f64 {
    let [w, b] = ["w", "b"].map(|tensor| format!("{layer}.{tensor}_{part}"));
    let inner = folder.affine([&w, &b], &[&x[..], q].concat());
    let inner: Row = inner.into_iter().map(leaky).collect();
    dot(folder.get(&format!("{layer}.{a}")), &inner)
}

/// The distance of every entity.
fn gnn2r_page(folder: &Folder, question: &[Row], relations: &[Vec<Row>]) -> Row {
    let n = folder.size("hidden");
    let zeros = [vec![0.0; n], vec![0.0; n]];
    let q = read(folder, "question", question, &zeros).1;
    let labels = relations.iter();
    let r: Vec<Row> = labels
        .map(|tokens| read(folder, "relation", tokens, &zeros).1)
        .collect();
    let mut e: Vec<Row> = TOPICS
        .map(|topic| {
            if topic {
                q.clone()
            } else {
                folder.get("other").to_vec()
            }
        })
        .into();
    let mut states = zeros;
    for layer in 1..=folder.size("layers") {
        let mut q_k = vec![];
        if folder.is("layerwise") {
            (states, q_k) = read(folder, &format!("{layer}.question"), question, &states);
        }
        e = (0..e.len())
            .map(|i| {
                let mut messages: Vec<Row> = vec![];
                let mut hear = |from: usize, r: &[f64]| {
                    let [w, b] = ["w_m", "b_m"].map(|tensor| format!("{layer}.{tensor}"));
                    let m = folder.affine([&w, &b], &[&e[from][..], r].concat());
                    messages.push(m.into_iter().map(f64::tanh).collect());
                };
                for [head, relation, tail] in TRIPLES.map(|t| t.map(|id| id as usize)) {
                    let r = &r[relation];
                    if tail == i {
                        hear(head, r);
                    }
                    if head == i && folder.is("inverse") {
                        hear(tail, &plus(r, folder.get("inverse")));
                    } else if head == i {
                        hear(tail, r);
                    }
                }
                let scores: Row = match folder.is("layerwise") {
                    true => messages
                        .iter()
                        .map(|m| weighed(folder, layer, ["a", "a"], m, &q_k))
                        .collect(),
                    false => vec![0.0; messages.len()],
                };
                let mut m = vec![0.0; n];
                for (share, message) in softmax(&scores).iter().zip(&messages) {
                    m = plus(&m, &message.iter().map(|x| share * x).collect::<Row>());
                }
                if !folder.is("gate") {
                    return m;
                }
                let gate = [&m, &e[i]].map(|x| weighed(folder, layer, ["u", "a_u"], x, &q));
                let g = softmax(&gate);
                let both = m.iter().zip(&e[i]);
                both.map(|(m, e)| g[0] * m + g[1] * e).collect()
            })
            .collect();
    }
    let distance = |e: &Row| {
        let away: Row = q.iter().zip(e).map(|(q, e)| q - e).collect();
        dot(&away, &away).sqrt()
    };
    e.iter().map(distance).collect()
}

#[test]
fn distances_of_a_gnn2r_are_those_of_the_page() {
    let table = NaiveTable::read();
    let encoder = encode::open("static").unwrap();
    let place = tempfile::tempdir().unwrap();
    let question = encoder.token_states(&[QUESTION]).unwrap();
    let labels = encoder.token_states(&RELATIONS).unwrap();
    let rows: Vec<u32> = (0..RELATIONS.len() as u32).collect();
    let shape = gnn2r::Shape {
        topics: &TOPICS,
        relations: &rows,
        triples: &TRIPLES,
    };
    let variants = [
        json!({}),
        json!({"layers": 1}),
        json!({"gate": false}),
        json!({"layerwise": false}),
        json!({"inverse": false}),
        json!({"gate": false, "layerwise": false, "inverse": false}),
    ];
    for (number, variant) in variants.into_iter().enumerate() {
        let mut sizes = json!({"dim": table.dim, "hidden": 8, "layers": 3});
        let given = variant.as_object().unwrap().clone();
        sizes.as_object_mut().unwrap().extend(given);
        let sizes: gnn2r::Config = serde_json::from_value(sizes).unwrap();
        let network = gnn2r::Network::new(sizes.clone(), &mut Random::new(3), &Device::Cpu);
        let network = shaken(network.unwrap(), 60 + number as u64);
        let folder = place.path().join(number.to_string());
        let (network, folder) = written(&folder, sizes.clone(), &network);

        let relations: Vec<Vec<Row>> = RELATIONS.map(|r| table.states(r)).into();
        let page = gnn2r_page(&folder, &table.states(QUESTION), &relations);
        assert!(spread(&page) > 0.05, "{variant} tells nothing apart");

        let batch = gnn2r::Batch::new(&sizes, &question, &[shape], &labels, &Device::Cpu).unwrap();
        let by_class = network.distances(&batch).unwrap().flatten_all().unwrap();
        let by_class: Vec<f32> = by_class.to_vec1().unwrap();
        let classes = batch.classes(0).iter();
        let learns: Vec<f32> = classes.map(|class| by_class[*class as usize]).collect();
        assert_near(&format!("{variant}, learning"), &learns, &page);

        let reader = gnn2r::Reader::new(network).unwrap();
        let relations = reader.relations(&labels).unwrap();
        let near = reader.read(&question, &shape, &relations, false).unwrap();
        assert_near(&format!("{variant}, answering"), &near.distances, &page);
    }
}

#[test]
fn vectors_of_sentences_are_those_of_the_page() {
    let table = NaiveTable::read();
    let place = tempfile::tempdir().unwrap();
    let sizes = serde_json::from_value(json!({"dim": table.dim, "hidden": 8}));
    let sizes: <SentenceReader as Checkpointable>::Sizes = sizes.unwrap();
    let reader = SentenceReader::new(sizes.clone(), &mut Random::new(3), &Device::Cpu).unwrap();
    let (reader, folder) = written(place.path(), sizes, &shaken(reader, 80));
    let base: Arc<dyn Encoder> = encode::open("static").unwrap();
    let encoder = SentenceEncoder::new(base, &reader).unwrap();
    let texts = [
        QUESTION,
        "who is the coached by of San Francisco Giants",
        "the parent of an entity that is the spouse",
        "the spouse of an entity that is the parent",
    ];
    let ours = encoder.encode(&texts).unwrap();
    let zeros = [vec![0.0; 8], vec![0.0; 8]];
    for (text, ours) in texts.iter().zip(ours.rows()) {
        let g = read(&folder, "sentence", &table.states(text), &zeros).1;
        let page = unit(&plus(&table.vector(text), &folder.times("w_o", &g)));
        assert_near(text, ours, &page);
    }
}

#[test]
fn vectors_of_the_built_in_table_are_those_of_the_page() {
    let table = NaiveTable::read();
    let encoder = encode::open("static").unwrap();
    assert_eq!(encoder.dim(), table.dim);
    let long = "the giants play ".repeat(200) + &"film ".repeat(400);
    let unspeakable = "x".repeat(101);
    let texts = [
        QUESTION,
        "",
        "   \t\n",
        "e-mail, (1999) & co.\u{7} con\u{1}trol",
        "antidisestablishmentarianism",
        "41,915 seats",
        // a word of 101 letters is unknown and adds nothing
        &format!("seats {unspeakable} park"),
        &long,
    ];
    for text in texts {
        let ours = encoder.encode(&[text]).unwrap();
        assert_near(text, ours.row(0), &table.vector(text));
        let ours = encoder.token_states(&[text]).unwrap().text(0);
        assert_near(text, &ours, &table.states(text).concat());
    }
    // tokens after the 512th count for nothing: not one film among them
    let first: String = long.split_inclusive(' ').take(512).collect();
    assert_eq!(table.vector(&long), table.vector(&first));
    assert!(table.vector("").iter().all(|x| *x == 0.0));
}
