//! Trainings over the toy graph.

use std::path::Path;

use wherefore::Question;
use wherefore::graph::{Graph, toy};
use wherefore::link::{Linker, Names, NamesConfig};
use wherefore::logic::aspects::RelationRetriever;

use super::dataset::found;
use super::*;
use crate::questions::{GoldQuestion, Proof};
use crate::train::{Labels, TrainerConfig};

fn asked(number: usize, question: &str, form: &str) -> GoldQuestion {
    GoldQuestion {
        id: number.to_string(),
        question: question.into(),
        proof: Proof {
            logical_form: Some(form.into()),
            ..Proof::default()
        },
        ..GoldQuestion::default()
    }
}

#[test]
fn ties_and_scores_that_are_no_numbers_are_not_found() {
    assert_eq!(found(&[0.1, 0.9, 0.5], &[1, 2], 1), 1);
    assert_eq!(found(&[0.1, 0.9, 0.5], &[1, 2], 2), 2);
    // a network that tells nothing apart finds nothing
    assert_eq!(found(&[0.5; 20], &[3], 10), 0);
    // two gold ones of the same score take the first two places
    assert_eq!(found(&[0.5, 0.5, 0.1], &[0, 1], 1), 1);
    assert_eq!(found(&[0.5, 0.5, 0.1], &[0, 1], 2), 2);
    assert_eq!(found(&[f32::NAN; 3], &[0], 10), 0);
    assert_eq!(found(&[f32::NAN, 0.3], &[1], 1), 0);

    let mut sum = Ranked::default();
    let error = sum.add(&[f32::NAN, 0.3], &[1]).unwrap_err();
    assert_eq!(error.code(), "diverged");
}

#[test]
fn gold_relations_come_from_the_form_or_else_from_triples() {
    let graph = toy::graph();
    let id = |name: &str| graph.relation_named(name).unwrap().unwrap();
    let question = asked(
        0,
        "?",
        "(JOIN (R won) (JOIN (R mascot_of) (JOIN (R nothing) x)))",
    );
    let mut wanted = vec![id("won"), id("mascot_of")];
    wanted.sort_unstable();
    assert_eq!(gold_relations(&question, &graph).unwrap(), wanted);
    let question = GoldQuestion {
        proof: Proof {
            relevant: vec![["a", "lost", "b"].map(str::to_owned)],
            logical_form: Some("null".into()),
            ..Proof::default()
        },
        ..GoldQuestion::default()
    };
    assert_eq!(gold_relations(&question, &graph).unwrap(), [id("lost")]);
}

fn baseball() -> Vec<GoldQuestion> {
    [
        (
            "who manages the San Francisco Giants",
            "(JOIN (R coached_by) [San Francisco Giants])",
        ),
        (
            "who manages the Kansas City Royals",
            "(JOIN (R coached_by) [Kansas City Royals])",
        ),
        (
            "home ground of the San Francisco Giants",
            "(JOIN (R plays_in) [San Francisco Giants])",
        ),
        (
            "home ground of the Kansas City Royals",
            "(JOIN (R plays_in) [Kansas City Royals])",
        ),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, (question, form))| asked(i, question, form))
    .collect()
}

fn task<'a>(graph: &'a dyn Graph, questions: &'a [GoldQuestion], out: &'a Path) -> Task<'a> {
    Task {
        graph,
        train: questions,
        valid: questions,
        labels: Labels::Weak(crate::supervise::ShortestPaths::default()),
        data: serde_json::Map::new(),
        out,
        init: None,
        restart: false,
    }
}

#[test]
fn words_that_no_relation_has_are_learned() {
    let graph = toy::graph();
    let questions = baseball();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("relations");
    let task = task(&graph, &questions, &out);
    // 4 of 11 relations a step: gold, hard and random ones
    let config = RelationTrainConfig {
        trainer: TrainerConfig {
            epochs: 30,
            patience: 30,
            ..RelationTrainConfig::default().trainer
        },
        negatives: 4,
        sizes: Sizes {
            buckets: 512,
            ..Sizes::default()
        },
        ..RelationTrainConfig::default()
    };
    let trained = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap();
    assert_eq!(trained.matcher.questions, 4);
    assert_eq!(
        trained.matcher.best.recall_at_1,
        1.0,
        "{:?}",
        trained.matcher.epochs.last()
    );
    let retriever = RelationRetriever::load(&out).unwrap();
    let question = Question::new("who manages the San Francisco Giants");
    let linker = Names::new(NamesConfig::default()).unwrap();
    let links = linker.link(&question, &graph).unwrap();
    let ranked = retriever.rank(&question, &links, &graph).unwrap();
    assert_eq!(graph.relation_label(ranked[0].0).unwrap(), "coached by");
    // one step from there, and it knows what it knew; another shape is refused
    let more = place.path().join("more");
    let task = Task {
        out: &more,
        init: Some(&out),
        ..task
    };
    let mut config = config;
    config.trainer.epochs = 1;
    config.trainer.optimiser.learning_rate = 1e-9;
    let trained = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap();
    assert_eq!(trained.matcher.best.recall_at_1, 1.0);
    config.sizes.buckets = 256;
    let task = Task {
        out: &place.path().join("other"),
        ..task
    };
    let refused = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("other sizes"), "{refused}");
}

#[test]
fn an_encoder_is_tuned_and_kept_with_its_matcher() {
    let graph = toy::graph();
    let questions = baseball();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("relations");
    let task = task(&graph, &questions, &out);
    let bert = concat!(env!("CARGO_MANIFEST_DIR"), "/../model/tests/fixtures/bert");
    let mut config = RelationTrainConfig {
        encoder: bert.into(),
        ..RelationTrainConfig::default()
    };
    config.tune.epochs = 8;
    config.tune.patience = 8;
    config.tune.negatives = 6;
    config.tune.optimiser.learning_rate = 1e-3;
    config.pairs.epochs = 1;
    let trained = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap();
    let (first, last) = (
        &trained.matcher.epochs[0],
        trained.matcher.epochs.last().unwrap(),
    );
    assert!(last.loss < first.loss, "{} {}", first.loss, last.loss);
    assert_eq!(trained.pair_epochs.len(), 1);
    // what answers ranks as the training said: without the re-ranker, which is judged apart
    std::fs::remove_dir_all(out.join("pairs")).unwrap();
    let retriever = RelationRetriever::load(&out).unwrap();
    let linker = Names::new(NamesConfig::default()).unwrap();
    let mut sum = Ranked::default();
    for question in &questions {
        let gold = gold_relations(question, &graph).unwrap();
        let asked = Question::new(&question.question);
        let links = linker.link(&asked, &graph).unwrap();
        let ranked = retriever.rank(&asked, &links, &graph).unwrap();
        let mut scores = vec![0.0; ranked.len()];
        for (relation, score) in ranked {
            scores[relation.0 as usize] = score;
        }
        let gold: Vec<u32> = gold.iter().map(|r| r.0).collect();
        sum.add(&scores, &gold).unwrap();
    }
    assert_eq!(sum.over(questions.len()), trained.matcher.best);
    // without its encoder it is of no use
    std::fs::remove_dir_all(out.join(ENCODER)).unwrap();
    assert!(RelationRetriever::load(&out).is_err());
    config.encoder = "static".into();
    let refused = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap_err();
    assert!(
        refused.to_string().contains("--encoder minilm"),
        "{refused}"
    );
}
