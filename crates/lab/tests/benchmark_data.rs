//! Reads every benchmark file of the data folder and holds the counts against its README.
//!
//! The folder is `WHEREFORE_DATA`, or else `../shared/data` beside the repository; where it is
//! absent, each test says so and passes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test says what it skipped, and fails where it cannot go on"
)]

use std::path::{Path, PathBuf};

use wherefore_graph::MemoryGraph;
use wherefore_lab::metrics::{Observation, Options, PredictedAnswer, evaluate};
use wherefore_lab::questions::{self, coverage};

/// File, number of questions, hops of every question where all have the same.
const FILES: [(&str, usize, Option<u32>); 35] = [
    ("pathquestion/PQ-2H.train.txt", 1377, Some(2)),
    ("pathquestion/PQ-2H.valid.txt", 171, Some(2)),
    ("pathquestion/PQ-2H.test.txt", 171, Some(2)),
    ("pathquestion/PQ-3H.train.txt", 3744, Some(3)),
    ("pathquestion/PQ-3H.valid.txt", 468, Some(3)),
    ("pathquestion/PQ-3H.test.txt", 468, Some(3)),
    ("pathquestion/PQL-2H.train.txt", 1150, Some(2)),
    ("pathquestion/PQL-2H.valid.txt", 143, Some(2)),
    ("pathquestion/PQL-2H.test.txt", 143, Some(2)),
    ("pathquestion/PQL-3H.train.txt", 744, Some(3)),
    ("pathquestion/PQL-3H.valid.txt", 92, Some(3)),
    ("pathquestion/PQL-3H.test.txt", 92, Some(3)),
    ("wc2014/WC-P1.train.txt", 4668, Some(1)),
    ("wc2014/WC-P1.valid.txt", 583, Some(1)),
    ("wc2014/WC-P1.test.txt", 583, Some(1)),
    ("wc2014/WC-P2.train.txt", 1061, Some(2)),
    ("wc2014/WC-P2.valid.txt", 132, Some(2)),
    ("wc2014/WC-P2.test.txt", 132, Some(2)),
    ("wc2014/WC-C.train.txt", 1592, Some(1)),
    ("wc2014/WC-C.valid.txt", 198, Some(1)),
    ("wc2014/WC-C.test.txt", 198, Some(1)),
    ("metaqa/1-hop/qa_train_10k.txt", 9938, Some(1)),
    ("metaqa/1-hop/qa_dev.txt", 9992, Some(1)),
    ("metaqa/1-hop/qa_dev_ntm.txt", 9992, Some(1)),
    ("metaqa/1-hop/qa_test.txt", 4973, Some(1)),
    ("metaqa/2-hop/qa_dev.txt", 14872, Some(2)),
    ("metaqa/2-hop/qa_test.txt", 7436, Some(2)),
    ("metaqa/3-hop/qa_dev.txt", 14274, Some(3)),
    ("metaqa/3-hop/qa_test.txt", 7137, Some(3)),
    ("freebase/webqsp_train.jsonl", 3090, None),
    ("freebase/webqsp_test.jsonl", 819, None),
    ("freebase/cwq_test.jsonl", 1765, None),
    ("freebase/wq_cwq_train.jsonl", 19930, None),
    ("freebase/grailqa_dev_1000.jsonl", 500, None),
    ("freebase/webqsp_test_full_rog_subgraphs_18.jsonl", 18, None),
];

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no benchmark data at {}", folder.display());
    None
}

fn table(path: &Path, separator: char) -> MemoryGraph {
    let text = std::fs::read_to_string(path).unwrap();
    MemoryGraph::from_names(text.lines().filter_map(|line| {
        let mut columns = line.split(separator);
        Some((columns.next()?, columns.next()?, columns.next()?))
    }))
}

#[test]
fn every_benchmark_file_is_read_in_full() {
    let Some(data) = data() else { return };
    for (file, count, hops) in FILES {
        let read = questions::read(&data.join(file), None).unwrap();
        assert_eq!(read.len(), count, "{file}");
        if hops.is_some() {
            assert!(read.iter().all(|q| q.hops == hops), "{file}");
            assert!(
                read.iter()
                    .all(|q| q.topics.len() == 1 || file.contains("WC-C"))
            );
            assert!(read.iter().all(|q| !q.answers.is_empty()), "{file}");
        }
    }
}

#[test]
fn gold_paths_and_answers_lie_in_their_graphs() {
    let Some(data) = data() else { return };
    for (graph, files) in [
        (
            "pathquestion/2H-kb.txt",
            &["pathquestion/PQ-2H.valid.txt"][..],
        ),
        ("pathquestion/3H-kb.txt", &["pathquestion/PQ-3H.valid.txt"]),
        (
            "pathquestion/PQL2-KB.txt",
            &["pathquestion/PQL-2H.valid.txt"],
        ),
        (
            "pathquestion/PQL3-KB.txt",
            &["pathquestion/PQL-3H.valid.txt"],
        ),
        (
            "wc2014/WC2014.txt",
            &[
                "wc2014/WC-P1.valid.txt",
                "wc2014/WC-P2.valid.txt",
                "wc2014/WC-C.valid.txt",
            ],
        ),
    ] {
        let text = std::fs::read_to_string(data.join(graph)).unwrap();
        let known: std::collections::HashSet<[&str; 3]> = text
            .lines()
            .filter_map(|l| l.split('\t').collect::<Vec<_>>().try_into().ok())
            .collect();
        let graph = table(&data.join(graph), '\t');
        for file in files {
            let read = questions::read(&data.join(file), None).unwrap();
            for triple in read.iter().flat_map(|q| q.proof.path_triples()) {
                assert!(
                    known.contains(&triple.each_ref().map(String::as_str)),
                    "{file} {triple:?}"
                );
            }
            let covered = coverage(&read, &graph, 3).unwrap();
            assert_eq!(covered.all_topics_in_graph, read.len(), "{file}");
            assert_eq!(covered.all_answers_in_graph, read.len(), "{file}");
            assert!((covered.share_within(3) - 1.0).abs() < 1e-12, "{file}");
        }
    }
}

/// The README: an answer lies within 2 hops for 98.4% of the WebQSP and 86.9% of the CWQ test
/// questions.
#[test]
fn answers_of_webqsp_and_cwq_lie_as_near_as_published() {
    let Some(data) = data() else { return };
    let graph = table(&data.join("freebase/triples.tsv"), '\t');
    for (file, within_two) in [("webqsp_test", 0.984), ("cwq_test", 0.869)] {
        let read =
            questions::read(&data.join("freebase").join(format!("{file}.jsonl")), None).unwrap();
        let covered = coverage(&read, &graph, 2).unwrap();
        println!(
            "{file}: {covered:?}, within 2 hops {:.4}",
            covered.share_within(2)
        );
        assert!(
            (covered.share_within(2) - within_two).abs() < 0.01,
            "{file} {}",
            covered.share_within(2)
        );
    }
}

#[test]
fn oracle_predictions_score_one_and_empty_ones_zero_on_every_benchmark() {
    let Some(data) = data() else { return };
    let options = Options {
        resamples: 20,
        ..Options::default()
    };
    for (file, count, _) in FILES {
        let read = questions::read(&data.join(file), None).unwrap();
        let oracle: Vec<_> = read
            .iter()
            .map(|question| {
                Some(Observation {
                    answers: question
                        .answers
                        .iter()
                        .map(|a| PredictedAnswer::new(&a.name))
                        .collect(),
                    rationale: Some(
                        question
                            .proof
                            .paths
                            .iter()
                            .flatten()
                            .cloned()
                            .map(Into::into)
                            .collect(),
                    ),
                    forms: Some(question.proof.logical_form.iter().cloned().collect()),
                    ..Observation::default()
                })
            })
            .collect();
        let empty = vec![Some(Observation::default()); read.len()];
        for (observations, wanted) in [(&oracle, 1.0), (&empty, 0.0)] {
            let metrics = evaluate(&read, observations, &options).unwrap();
            assert_eq!(metrics.counts.questions, count, "{file}");
            for group in std::iter::once(&metrics.overall)
                .chain(metrics.by_hops.values())
                .chain(metrics.by_kind.values())
            {
                for (name, estimate) in &group.metrics.0 {
                    assert_eq!(estimate.value, wanted, "{file} {name}");
                    assert_eq!(estimate.interval, Some((wanted, wanted)), "{file} {name}");
                }
            }
            assert!(metrics.overall.metrics.0.len() >= 19, "{file}");
        }
    }
}
