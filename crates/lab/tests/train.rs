//! A small network learns a small family; a stopped training goes on; bad input is said.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;

use wherefore::graph::MemoryGraph;
use wherefore::model::checkpoint::{Checkpoint, Checkpointable};
use wherefore::model::qr_gat::Network;
use wherefore::model::tensor::Device;
use wherefore::model::{distance_mlp, pna, relation_plan};
use wherefore_lab::supervise::{RelationPaths, ShortestPaths};
use wherefore_lab::train::{
    Labels, Progress, RelationPlanTrainConfig, Settings, Task, TrainConfig, TrainableNetwork,
    Trained, TrainerConfig, network,
};
use wherefore_lab::{Error, GoldQuestion};

const RELATIONS: [&str; 4] = ["mother", "employer", "home town", "favourite food"];

fn family() -> MemoryGraph {
    let mut triples = vec![];
    for person in 0..30 {
        for relation in RELATIONS {
            triples.push([
                format!("person {person}"),
                relation.to_owned(),
                format!("{relation} {}", person % 7),
            ]);
        }
    }
    MemoryGraph::from_names(triples.iter().map(|[h, r, t]| (h, r, t)))
}

fn questions(people: std::ops::Range<usize>) -> Vec<GoldQuestion> {
    let ask = |person: usize, relation: &str| GoldQuestion {
        id: format!("{person}-{relation}"),
        question: format!("what is the {relation} of person {person}?"),
        topics: vec![format!("person {person}").as_str().into()],
        answers: vec![format!("{relation} {}", person % 7).as_str().into()],
        ..GoldQuestion::default()
    };
    people.flat_map(|p| RELATIONS.map(|r| ask(p, r))).collect()
}

fn config() -> TrainConfig {
    let mut config: TrainConfig = TrainConfig {
        encoder: "hashing".into(),
        ks: vec![1, 3],
        ..TrainConfig::default()
    };
    config.sizes.hidden = 32;
    config.trainer = TrainerConfig {
        epochs: 8,
        patience: 8,
        batch_questions: 8,
        warm_up: 0.07,
        ..config.trainer
    };
    config.trainer.optimiser.learning_rate = 3.3e-3;
    config
}

fn train(
    out: &Path,
    config: &TrainConfig,
    valid: &[GoldQuestion],
    see: &mut dyn FnMut(Progress),
) -> Result<Trained, Error> {
    let graph = family();
    let task = Task {
        graph: &graph,
        train: &questions(0..24),
        valid,
        labels: Labels::Weak(ShortestPaths::default()),
        data: serde_json::Map::new(),
        out,
        init: None,
        restart: false,
    };
    network::<Network>(&task, config, &Device::Cpu, see)
}

fn weights(folder: &Path) -> Vec<f32> {
    let checkpoint =
        Checkpoint::<wherefore::model::qr_gat::Network>::load(folder, &Device::Cpu).unwrap();
    let numbers = |var: &wherefore::model::tensor::Var| {
        let flat = var.as_tensor().flatten_all().unwrap();
        flat.to_vec1::<f32>().unwrap()
    };
    checkpoint
        .network
        .parameters()
        .values()
        .flat_map(numbers)
        .collect()
}

#[test]
fn a_family_is_learned_and_a_stopped_training_ends_the_same() {
    let place = tempfile::tempdir().unwrap();
    let valid = questions(24..30);
    let whole = place.path().join("whole");
    let trained = train(&whole, &config(), &valid, &mut |_| {}).unwrap();
    assert_eq!(trained.questions, 96);
    assert!(trained.best.triple_recall[&1] > 0.9, "{:?}", trained.best);
    assert!(trained.best.hit_at_1.unwrap() > 0.9, "{:?}", trained.best);
    assert!(!place.path().join("whole.training").exists());

    // stopped by a panic in the middle of the third pass, after two were saved
    let cut = place.path().join("cut");
    let stopped = std::panic::catch_unwind(|| {
        train(&cut, &config(), &valid, &mut |progress| {
            if let Progress::Step {
                epoch: 3, done: 2, ..
            } = progress
            {
                panic!("stopped");
            }
        })
    });
    assert!(stopped.is_err());
    let mut resumed = 0;
    let again = train(&cut, &config(), &valid, &mut |progress| {
        if let Progress::Resumed { steps } = progress {
            resumed = steps;
        }
    })
    .unwrap();
    assert_eq!(resumed, 2 * 12); // two passes of 96 / 8 steps
    let course = |trained: &Trained| -> Vec<(u32, f32, bool)> {
        let epochs = trained.epochs.iter();
        epochs.map(|e| (e.epoch, e.loss, e.best)).collect()
    };
    assert_eq!(course(&again), course(&trained));
    assert_eq!(weights(&cut), weights(&whole));
}

#[test]
fn another_training_in_the_same_place_is_not_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("model");
    let valid = questions(24..30);
    let stopped = std::panic::catch_unwind(|| {
        train(&out, &config(), &valid, &mut |progress| {
            if let Progress::Epoch(_) = progress {
                panic!("stopped");
            }
        })
    });
    assert!(stopped.is_err());
    let mut other = config();
    other.sizes.hidden = 16;
    let error = train(&out, &other, &valid, &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::OtherTraining { .. }), "{error}");
    assert!(error.hint().unwrap().contains("--restart"));
}

#[test]
fn a_loss_without_bounds_stops_and_says_where() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("model");
    let mut wild = config();
    wild.trainer.optimiser.learning_rate = 1e30;
    wild.trainer.optimiser.clip = 0.0;
    let error = train(&out, &wild, &questions(24..30), &mut |_| {}).unwrap_err();
    let Error::Diverged { step, .. } = error else {
        panic!("{error}");
    };
    assert!(step > 1);
}

#[test]
fn questions_that_lead_nowhere_are_said() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("model");
    let mut lost = questions(24..25);
    for question in &mut lost {
        question.answers = vec!["nobody".into()];
    }
    let error = train(&out, &config(), &lost, &mut |_| {}).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("none of the 4 validation questions")
    );
    let mut wrong = config();
    assert!(wrong.set("sizes.widht", "3").is_err());
    wrong.set("sizes.ablations", "[\"no-query-attn\"]").unwrap();
    assert_eq!(wrong.sizes.ablations.len(), 1);
    wrong.set("encoder", "static").unwrap();
    wrong.set("ks", "[]").unwrap();
    assert!(train(&out, &wrong, &lost, &mut |_| {}).is_err());
}

/// Trains another network on the same family.
fn learned<N: TrainableNetwork>(change: impl FnOnce(&mut TrainConfig<N::Sizes>)) -> Trained {
    let place = tempfile::tempdir().unwrap();
    let graph = family();
    let mut config: TrainConfig<N::Sizes> = TrainConfig {
        encoder: "hashing".into(),
        ks: vec![1, 3],
        trainer: TrainerConfig {
            epochs: 12,
            patience: 12,
            batch_questions: 8,
            ..TrainerConfig::default()
        },
        ..TrainConfig::default()
    };
    config.trainer.optimiser.learning_rate = 5e-3;
    change(&mut config);
    let task = Task {
        graph: &graph,
        train: &questions(0..24),
        valid: &questions(24..30),
        labels: Labels::Weak(ShortestPaths::default()),
        data: serde_json::Map::new(),
        out: &place.path().join("model"),
        init: None,
        restart: false,
    };
    network::<N>(&task, &config, &Device::Cpu, &mut |_| {}).unwrap()
}

#[test]
fn distances_and_messages_learn_a_family() {
    let distance = learned::<distance_mlp::Network>(|config| config.sizes.hidden = 32);
    assert!(distance.best.triple_recall[&3] > 0.9, "{:?}", distance.best);
    assert!(distance.best.hit_at_1.unwrap() > 0.9, "{:?}", distance.best);
    let messages = learned::<pna::Network>(|config| {
        config.sizes.hidden = 16;
        config.sizes.relations = true;
    });
    assert!(messages.best.hit_at_1.unwrap() > 0.8, "{:?}", messages.best);
}

#[test]
fn relation_paths_learn_a_family_from_weak_and_from_picked_paths() {
    let place = tempfile::tempdir().unwrap();
    let graph = family();
    let config = RelationPlanTrainConfig {
        encoder: "hashing".into(),
        trainer: TrainerConfig {
            epochs: 30,
            patience: 30,
            batch_questions: 8,
            ..TrainerConfig::default()
        },
        sizes: relation_plan::Config {
            hidden: 32,
            ..relation_plan::Config::default()
        },
        ..RelationPlanTrainConfig::default()
    };
    let all = questions(0..24);
    let line = serde_json::json!({ "id": all[0].id, "paths": [] });
    let file = place.path().join("labels.jsonl");
    std::fs::write(&file, format!("{line}\n")).unwrap();
    for (name, labels) in [
        ("sequences", Labels::Sequences(RelationPaths::default())),
        ("shortest", Labels::Weak(ShortestPaths::default())),
        ("picked", Labels::read(&file).unwrap()),
    ] {
        let task = Task {
            graph: &graph,
            train: &all,
            valid: &questions(24..30),
            labels,
            data: serde_json::Map::new(),
            out: &place.path().join(name),
            init: None,
            restart: false,
        };
        let mut config = config.clone();
        config.trainer.optimiser.learning_rate = 5e-3;
        let trained =
            wherefore_lab::train::relation_plan(&task, &config, &Device::Cpu, &mut |_| {}).unwrap();
        assert!(trained.questions >= 95, "{name}: {trained:?}");
        assert!(trained.best.hit_at_1 > 0.9, "{name}: {:?}", trained.best);
    }
}
