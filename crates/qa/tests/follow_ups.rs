//! Questions that follow another, over the sample graph.
//!
//! `cargo test -p wherefore --test follow_ups -- --nocapture` prints how many of
//! `data/sample/follow_ups.jsonl` are answered with exactly the right answers, and which are not.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;
use wherefore::answer::Status;
use wherefore::graph::{Input, LoadOptions, Store, load};
use wherefore::logic::Form;
use wherefore::verify::verify;
use wherefore::{Answer, Carried, Follow, Pipeline, PipelineConfig, Question};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sample")
}

static WORLD: LazyLock<(tempfile::TempDir, Store)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let file = sample().join("world.ttl.xz");
    load(
        &[Input::File(file)],
        &folder.path().join("world"),
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    let store = Store::open(folder.path().join("world")).unwrap();
    (folder, store)
});

fn world() -> &'static Store {
    &WORLD.1
}

fn pipeline() -> Pipeline {
    PipelineConfig::of(wherefore::Method::Read).build().unwrap()
}

fn ask(pipeline: &Pipeline, text: &str, follow: Option<Follow>) -> Answer {
    let question = Question::new(text).after(follow);
    pipeline.answer(&question, world(), &mut ()).unwrap()
}

#[derive(Deserialize)]
struct Pair {
    id: String,
    first: String,
    follow: String,
    answers: Vec<String>,
}

fn lines<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let text = std::fs::read_to_string(sample().join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn most_follow_ups_are_read_as_they_are_meant() {
    let pipeline = pipeline();
    let pairs: Vec<Pair> = lines("follow_ups.jsonl");
    let (mut right, mut unverified) = (0, 0);
    for pair in &pairs {
        let first = ask(&pipeline, &pair.first, None);
        let then = ask(&pipeline, &pair.follow, Follow::of(&first));
        let given: BTreeSet<&str> = then.answers.iter().map(|a| a.name.as_str()).collect();
        let gold: BTreeSet<&str> = pair.answers.iter().map(String::as_str).collect();
        let checked = verify(&then, world()).unwrap();
        if !checked.holds {
            println!("{} does not hold: {:?}", pair.id, checked.checks);
            unverified += 1;
        }
        if given == gold {
            right += 1;
            continue;
        }
        println!(
            "{}: {} → {}\n    {:?} read as {:?}\n    given {:?}, gold {:?}, {:?}, first read as {:?}",
            pair.id,
            pair.first,
            pair.follow,
            then.carried,
            then.reading,
            given.iter().take(8).collect::<Vec<_>>(),
            gold.iter().take(8).collect::<Vec<_>>(),
            then.reason,
            first.logical_form.or(first.reason),
        );
    }
    println!("{right} of {} follow-ups", pairs.len());
    assert_eq!(unverified, 0);
    assert!(right * 5 >= pairs.len() * 4, "{right}");
}

#[derive(Deserialize)]
struct Asked {
    question: String,
}

/// What follows from nothing but the question.
fn told(mut answer: Answer) -> Answer {
    answer.timings_ms.clear();
    answer
}

#[test]
fn whole_questions_are_read_as_if_nothing_had_been_asked() {
    let pipeline = pipeline();
    let before = ask(&pipeline, "Which rivers flow through Hungary?", None);
    let before = Follow::of(&before).unwrap();
    let mut asked: Vec<Asked> = lines("handwritten.jsonl");
    asked.extend(lines::<Asked>("dev.jsonl"));
    for Asked { question } in asked {
        let alone = told(ask(&pipeline, &question, None));
        let after = told(ask(&pipeline, &question, Some(before.clone())));
        assert_eq!(after, alone, "{question}");
    }
}

#[test]
fn what_was_asked_before_is_not_believed() {
    let pipeline = pipeline();
    let deep = format!("{}Kenya{}", "(JOIN capital ".repeat(400), ")".repeat(400));
    let forms = [
        "",
        "(",
        "(COUNT",
        "(JOIN nothing [Nobody])",
        "(JOIN (R capital) [Kenya])",
        "(COUNT (AND country (JOIN continent [Nowhere])))",
        "(TABLE country population)",
        "(JOIN (R population) \"\\u0000\")",
        deep.as_str(),
    ];
    let ids = [
        "",
        "Kenya",
        "http://example.org/world/KE",
        "http://example.org/world/XX",
        "\"1\"^^<x>",
        "\0",
    ];
    let questions = [
        "And its population?",
        "Which of these border Uganda?",
        "What about Uganda?",
        "How many are there?",
        "And the smallest?",
        "and",
        "its",
        "What about?",
    ];
    for form in forms {
        let follow = Follow {
            question: "What is the capital of Kenya?".into(),
            logical_form: Some(form.to_owned()),
            answers: ids
                .iter()
                .map(|id| Carried {
                    id: (*id).to_owned(),
                    name: "a forged name".into(),
                })
                .collect(),
        };
        for question in questions {
            let answer = ask(&pipeline, question, Some(follow.clone()));
            let told = format!("{answer:?}");
            assert!(!told.contains("forged"), "{question}: {told}");
            if answer.status == Status::Answered {
                assert!(verify(&answer, world()).unwrap().holds, "{question}");
            }
        }
    }
    // a hundred are carried over, whoever gives more
    let many: Vec<Carried> = (0..5000)
        .map(|_| Carried {
            id: "http://example.org/world/KE".into(),
            name: "Kenya".into(),
        })
        .collect();
    let follow = Follow {
        answers: many,
        ..Follow::default()
    };
    let answer = ask(&pipeline, "What is its capital?", Some(follow));
    assert_eq!(answer.answers[0].name, "Nairobi");
    assert_eq!(answer.carried.as_deref(), Some("its = Kenya"));
    let long = Follow {
        question: "a".repeat(100_000),
        ..Follow::default()
    };
    let question = Question::new("And its population?").after(Some(long));
    assert!(pipeline.answer(&question, world(), &mut ()).is_err());
}

#[test]
fn what_is_carried_over_is_told_and_the_form_refers_to_nothing() {
    let pipeline = pipeline();
    let capital = ask(&pipeline, "What is the capital of Kenya?", None);
    for (question, carried, form) in [
        (
            "And its population?",
            "its = Nairobi",
            "(JOIN (R population) Nairobi)",
        ),
        (
            "What about Uganda?",
            "as before, with Uganda for Kenya",
            "(JOIN (R capital) Uganda)",
        ),
    ] {
        let then = ask(&pipeline, question, Follow::of(&capital));
        assert_eq!(then.carried.as_deref(), Some(carried), "{question}");
        let form: Form = form.parse().unwrap();
        let read: Form = then.logical_form.unwrap().parse().unwrap();
        assert_eq!(read, form, "{question}");
    }
}
