//! Both steps of GNN2R learn a small family, whose questions need order; a stopped training goes on and
//! ends the same; what was trained answers with rationales.

use std::path::Path;

use wherefore::graph::MemoryGraph;
use wherefore::model::checkpoint;
use wherefore::model::tensor::Device;
use wherefore::retrieve::gnn2r::ANSWERING;
use wherefore::{PipelineConfig, Question};
use wherefore_lab::supervise::ShortestPaths;
use wherefore_lab::train::{
    Ablation, Gnn2rTrainConfig, Labels, Progress, Task, TrainedGnn2r, TrainerConfig, gnn2r,
};
use wherefore_lab::{Error, GoldQuestion};

const PEOPLE: usize = 24;

/// Everybody has a boss and a neighbour, so that the boss of the neighbour is not the neighbour of
/// the boss.
fn boss(person: usize) -> usize {
    (5 * person + 3) % PEOPLE
}

fn neighbour(person: usize) -> usize {
    (person + 7) % PEOPLE
}

fn town() -> MemoryGraph {
    let mut triples = vec![];
    for person in 0..PEOPLE {
        for (relation, other) in [("boss", boss(person)), ("neighbour", neighbour(person))] {
            let names = (format!("p{person}"), relation, format!("p{other}"));
            triples.push(names);
        }
    }
    MemoryGraph::from_names(triples.iter().map(|(h, r, t)| (h.as_str(), *r, t.as_str())))
}

fn questions(people: std::ops::Range<usize>) -> Vec<GoldQuestion> {
    let ask = |person: usize, words: &str, answer: usize| GoldQuestion {
        id: format!("{person}-{words}"),
        question: format!("who is the {words} of p{person}?"),
        topics: vec![format!("p{person}").as_str().into()],
        answers: vec![format!("p{answer}").as_str().into()],
        ..GoldQuestion::default()
    };
    people
        .flat_map(|p| {
            [
                ask(p, "boss", boss(p)),
                ask(p, "neighbour", neighbour(p)),
                ask(p, "boss of the neighbour", boss(neighbour(p))),
                ask(p, "neighbour of the boss", neighbour(boss(p))),
            ]
        })
        .collect()
}

fn config() -> Gnn2rTrainConfig {
    let mut config = Gnn2rTrainConfig {
        encoder: "static".into(),
        trainer: TrainerConfig {
            epochs: 8,
            patience: 8,
            batch_questions: 8,
            ..TrainerConfig::default()
        },
        ..Gnn2rTrainConfig::default()
    };
    config.sizes.hidden = 32;
    config.trainer.optimiser.learning_rate = 5e-3;
    config.answering.candidates = 8;
    config.sentences.candidates = 8;
    config.sentences.hidden = 32;
    config.sentences.epochs = 6;
    config.sentences.learning_rate = Some(5e-3);
    config
}

fn train(
    out: &Path,
    config: &Gnn2rTrainConfig,
    see: &mut dyn FnMut(Progress),
) -> Result<TrainedGnn2r, Error> {
    let graph = town();
    let task = Task {
        graph: &graph,
        train: &questions(0..18),
        valid: &questions(18..PEOPLE),
        labels: Labels::Weak(ShortestPaths::default()),
        data: serde_json::Map::new(),
        out,
        init: None,
        restart: false,
    };
    gnn2r(&task, config, &Device::Cpu, see)
}

#[test]
fn a_town_is_learned_and_a_stopped_training_ends_the_same() {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let trained = train(&whole, &config(), &mut |_| {}).unwrap();
    assert_eq!((trained.network.questions, trained.network.valid), (72, 24));
    assert!(
        trained.network.best.candidate_recall > 0.9,
        "{:?}",
        trained.network.best
    );
    assert!(trained.answers.hit_at_1 > 0.9, "{:?}", trained.answers);
    assert!(!place.path().join("whole.training").exists());

    let pipeline = PipelineConfig::of_checkpoint(&whole)
        .unwrap()
        .build()
        .unwrap();
    let person = 20;
    let question = Question::new(format!("who is the boss of the neighbour of p{person}?"))
        .about([format!("p{person}")]);
    let answer = pipeline.answer(&question, &town(), &mut ()).unwrap();
    let first = &answer.answers[0];
    assert_eq!(first.name, format!("p{}", boss(neighbour(person))));
    let because: Vec<[&str; 3]> = (first.rationale.iter())
        .map(|i| &answer.evidence[*i])
        .map(|t| [t.head.as_str(), t.relation.as_str(), t.tail.as_str()])
        .collect();
    assert_eq!(because, [["p20", "neighbour", "p3"], ["p3", "boss", "p18"]]);
    assert!(answer.notes[0].contains("is the boss of an entity that is the neighbour of p20"));

    // stopped in either step by a panic, after some passes were saved
    for step_two in [false, true] {
        let cut = place.path().join(format!("cut-{step_two}"));
        let stopped = std::panic::catch_unwind(|| {
            let mut second = false;
            train(&cut, &config(), &mut |progress| match progress {
                Progress::Exploring { .. } => second = true,
                Progress::Step { epoch: 3, .. } if second == step_two => panic!("stopped"),
                _ => {}
            })
        });
        assert!(stopped.is_err());
        let mut resumed = 0;
        train(&cut, &config(), &mut |progress| {
            resumed += usize::from(matches!(progress, Progress::Resumed { .. }));
        })
        .unwrap();
        assert_eq!(resumed, 1 + usize::from(step_two));
        for file in ["model.safetensors", "sentences/model.safetensors"] {
            let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
            assert!(read(&cut) == read(&whole), "{file}");
        }
    }
}

#[test]
fn parts_can_be_left_out_by_name() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("model");
    let mut less = config();
    less.trainer.epochs = 1;
    less.ablations = [
        Ablation::NoGate,
        Ablation::NoLayerwiseAttention,
        Ablation::NoFineTuning,
        Ablation::Fast,
    ]
    .into();
    let trained = train(&out, &less, &mut |_| {}).unwrap();
    assert!(trained.sentence_epochs.is_empty());
    assert!(!out.join("sentences").exists());
    assert!(PipelineConfig::of_checkpoint(&out).unwrap().build().is_ok());
    // what a grid leaves out stays as it was set, whatever the validation questions would choose
    less.answering.nearness = 0.25;
    less.answering.threshold = 1.5;
    less.grid.nearnesses.clear();
    less.grid.thresholds.clear();
    train(&out, &less, &mut |_| {}).unwrap();
    let kept = checkpoint::read_description(&out).unwrap();
    assert_eq!(kept.training[ANSWERING]["nearness"], 0.25);
    assert_eq!(kept.training[ANSWERING]["threshold"], 1.5);
    let mut wrong = config();
    wrong.answering.candidates = 0;
    assert!(train(&out, &wrong, &mut |_| {}).is_err());
}
