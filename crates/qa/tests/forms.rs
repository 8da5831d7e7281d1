//! Counts, extremes, comparisons and dates: the method `forms` on a small graph with values.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use wherefore::graph::{Input, LoadOptions, Store, load};
use wherefore::verify::verify;
use wherefore::{Answer, Pipeline, PipelineConfig, Question};

/// Six countries with their cities, mountains, rivers and people.
const PLACES: &str = include_str!("data/places.nt");

/// Questions with all their answers, sorted.
const QUESTIONS: [(&str, &[&str]); 34] = [
    ("What is the capital of Norway?", &["Oslo"]),
    ("Which country has the largest population?", &["Japan"]),
    ("Which country has the smallest population?", &["Norway"]),
    ("What is the largest country by area?", &["France"]),
    (
        "Which is the smallest country in Europe by area?",
        &["Italy"],
    ),
    ("Which mountain is the highest?", &["Mount Everest"]),
    ("What is the lowest mountain?", &["Galdhøpiggen"]),
    ("What is the highest mountain in Germany?", &["Zugspitze"]),
    ("What is the longest river?", &["Rhine"]),
    ("Which river in Germany is the shortest?", &["Elbe"]),
    ("What is the largest city in Germany?", &["Berlin"]),
    (
        "Which city in Norway has the fewest inhabitants?",
        &["Bergen"],
    ),
    ("How many cities are in Germany?", &["3"]),
    ("How many countries are there in Europe?", &["4"]),
    ("How many mountains are there?", &["5"]),
    ("How many rivers flow through Germany?", &["2"]),
    ("How many countries share a border with France?", &["2"]),
    (
        "Which mountains are higher than 4000 metres?",
        &["Mont Blanc", "Mount Everest"],
    ),
    (
        "Which cities have more than 2 million inhabitants?",
        &["Berlin", "Paris", "Rome", "Tokyo"],
    ),
    (
        "Which cities in Germany have less than 1,600,000 people?",
        &["Munich"],
    ),
    (
        "Which countries have a population of at least 83 million?",
        &["Germany", "Japan"],
    ),
    ("Which rivers are longer than 1050 km?", &["Elbe", "Rhine"]),
    ("How many mountains are higher than 3000 m?", &["3"]),
    ("Which person was born before 1870?", &["Marie Curie"]),
    ("Which person was born after 1900?", &["Enrico Fermi"]),
    (
        "Which persons were born between 1875 and 1890?",
        &["Albert Einstein", "Emmy Noether"],
    ),
    ("Who is the oldest person?", &["Marie Curie"]),
    ("When was Albert Einstein born?", &["1879-03-14"]),
    ("How high is Mont Blanc?", &["4806"]),
    ("How many people live in Munich?", &["1500000"]),
    ("How long is the Loire?", &["1006"]),
    (
        "What is the capital of the largest country in Asia?",
        &["Tokyo"],
    ),
    (
        "Which is higher, Mont Blanc or Mount Fuji?",
        &["Mont Blanc"],
    ),
    ("Which has more inhabitants, Oslo or Bergen?", &["Oslo"]),
];

fn places() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("places.nt");
    std::fs::write(&file, PLACES).unwrap();
    let out = folder.path().join("graph");
    load(&[Input::File(file)], &out, &LoadOptions::default(), &|_| {}).unwrap();
    let store = Store::open(&out).unwrap();
    (folder, store)
}

fn method() -> Pipeline {
    PipelineConfig::of_method("forms").unwrap().build().unwrap()
}

fn names(answer: &Answer) -> Vec<&str> {
    let mut names: Vec<&str> = answer.answers.iter().map(|a| a.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn questions_with_numbers_and_dates_are_answered_and_proved() {
    let (_folder, store) = places();
    let method = method();
    let mut wrong = Vec::new();
    for (question, wanted) in QUESTIONS {
        let answer = method
            .answer(&Question::new(question), &store, &mut ())
            .unwrap();
        if names(&answer) != wanted {
            wrong.push(format!(
                "{question}\n  wanted {wanted:?}\n  found  {:?} by {:?} {:?}",
                names(&answer),
                answer.logical_form,
                answer.reason
            ));
            continue;
        }
        assert!(
            answer.logical_form.is_some() && answer.sparql.is_some(),
            "{question}"
        );
        assert!(answer.evidence.iter().all(|e| e.verified), "{question}");
        let checked = verify(&answer, &store).unwrap();
        assert!(checked.holds, "{question}: {checked:?}");
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        QUESTIONS.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_form_that_no_longer_gives_the_answer_does_not_hold() {
    let (_folder, store) = places();
    let question = Question::new("How many cities are in Germany?");
    let mut answer = method().answer(&question, &store, &mut ()).unwrap();
    assert_eq!(
        answer.answers[0].id,
        "\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>"
    );
    answer.answers[0].id = answer.answers[0].id.replace('3', "4");
    let checked = verify(&answer, &store).unwrap();
    assert_eq!(
        checked.answers[0].reason.as_deref(),
        Some("the logical form gives 3")
    );
    answer.logical_form = Some("(COUNT (JOIN r [Atlantis]))".into());
    let checked = verify(&answer, &store).unwrap();
    assert!(
        checked.answers[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("no relation `r`")
    );
}

#[test]
fn nothing_that_matches_is_an_abstention() {
    let (_folder, store) = places();
    let question = Question::new("Which mountains are higher than 9000 metres?");
    let answer = method().answer(&question, &store, &mut ()).unwrap();
    assert!(answer.answers.is_empty(), "{:?}", names(&answer));
}
