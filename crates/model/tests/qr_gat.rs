//! QR-GAT against PyTorch: scores of a tiny network made by `experiments/qrgat_fixture.py`.

use std::path::Path;

use serde::Deserialize;
use wherefore_model::checkpoint::Checkpoint;
use wherefore_model::qr_gat::{Batch, Network, Scorer, Scratch, Subgraph, Table};
use wherefore_model::scoring::TripleScorer;
use wherefore_model::tensor::Device;

#[derive(Deserialize)]
struct Fixture {
    question: Vec<f32>,
    entities: Vec<f32>,
    relations: Vec<f32>,
    topics: Vec<bool>,
    triples: Vec<[u32; 3]>,
    logits: Vec<f32>,
}

fn assert_near(ours: &[f32], torch: &[f32]) {
    assert_eq!(ours.len(), torch.len());
    for (ours, torch) in ours.iter().zip(torch) {
        assert!((ours - torch).abs() < 1e-5, "{ours} {torch}");
    }
}

#[test]
fn training_and_answering_code_give_the_scores_of_pytorch() {
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/qr_gat"
    ));
    let text = std::fs::read_to_string(folder.join("graph.json")).unwrap();
    let fixture: Fixture = serde_json::from_str(&text).unwrap();
    let checkpoint = Checkpoint::<Network>::load(folder, &Device::Cpu).unwrap();
    let network = &checkpoint.network;
    let dim = network.config().dim;
    let rows = |count: usize| (0..count as u32).collect::<Vec<_>>();
    let subgraph = Subgraph {
        question: &fixture.question,
        entities: &rows(fixture.entities.len() / dim),
        topics: &fixture.topics,
        relations: &rows(fixture.relations.len() / dim),
        triples: &fixture.triples,
    };
    let entities = Table::new(&fixture.entities, dim).unwrap();
    let relations = Table::new(&fixture.relations, dim).unwrap();

    let batch = Batch::new(
        network.config(),
        &[subgraph],
        &entities,
        &relations,
        &Device::Cpu,
    )
    .unwrap();
    let trained: Vec<f32> = {
        let logits = network.forward(&batch, None).unwrap();
        logits.flatten_all().unwrap().to_vec1().unwrap()
    };
    assert_near(&trained, &fixture.logits);

    let scorer = Scorer::new(network).unwrap();
    let entities = scorer.entity_parts(&entities).unwrap();
    let relations = scorer.relation_parts(&relations).unwrap();
    let mut scratch = Scratch::default();
    let answered = scorer
        .score(&subgraph, &entities, &relations, &mut scratch)
        .unwrap();
    assert_near(answered.triples, &fixture.logits);
}
