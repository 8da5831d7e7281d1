//! How well the gold forms of a benchmark are read, and what they come to on a graph.
//!
//! ```text
//! parsed      forms that the reader reads
//! printed     of them, those whose bracketed or plain writing is the gold text but for spaces
//! translated  of them, those that become SPARQL which parses
//! runs        those whose names the graph has, and that run within their limits
//! hits        those that run and give some gold answer
//! equals      those that run and give the gold answers and nothing else
//! ```
//!
//! The entities that a form names are no answers, unless there are no others: the benchmarks' SPARQL
//! leaves its topics out as well.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::Serialize;
use wherefore::logic::{Form, Moment, Notation, Outcome, Plan, Relation, RunLimits, run};
use wherefore_graph::{EntityId, Graph, Store, Term, names::normalise, sparql};

use crate::error::Result;
use crate::questions::{GoldQuestion, NamedTriple};

/// What became of the forms of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forms {
    /// Questions in the file.
    pub questions: usize,
    /// Those that bring a form.
    pub forms: usize,
    /// Forms that parse.
    pub parsed: usize,
    /// Forms that are written as they were.
    pub printed: usize,
    /// Forms whose SPARQL parses.
    pub translated: usize,
    /// Forms of `JOIN`, `AND` and `R` alone.
    pub plain: Ran,
    /// Of them, those without constants: the graph may lack values.
    pub entities: Ran,
    /// All forms.
    pub all: Ran,
    /// The first forms that do not parse, with the reason.
    pub faults: Vec<String>,
}

/// What running came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ran {
    /// Forms.
    pub forms: usize,
    /// Those that run.
    pub runs: usize,
    /// Those that give a gold answer.
    pub hits: usize,
    /// Those that give the gold answers and nothing else.
    pub equals: usize,
    /// Those that run and whose SPARQL gives the same.
    pub agrees: usize,
}

impl Ran {
    fn add(&mut self, other: &Ran) {
        self.forms += other.forms;
        self.runs += other.runs;
        self.hits += other.hits;
        self.equals += other.equals;
        self.agrees += other.agrees;
    }
}

/// Reads, writes, translates and runs every form.
pub fn forms(
    graph: &Store,
    questions: &[GoldQuestion],
    now: Moment,
    limits: &RunLimits,
) -> Result<Forms> {
    let each: Vec<Forms> = questions
        .par_iter()
        .map(|question| one(graph, question, now, limits))
        .collect::<Result<_>>()?;
    let mut sum = Forms::default();
    for one in each {
        sum.questions += one.questions;
        sum.forms += one.forms;
        sum.parsed += one.parsed;
        sum.printed += one.printed;
        sum.translated += one.translated;
        sum.plain.add(&one.plain);
        sum.entities.add(&one.entities);
        sum.all.add(&one.all);
        sum.faults.extend(one.faults);
    }
    sum.faults.truncate(20);
    Ok(sum)
}

/// The gold form of a question; the benchmarks write `null` where they have none.
pub fn gold_form(question: &GoldQuestion) -> Option<&str> {
    let text = question.proof.logical_form.as_deref()?;
    (text != "null" && !text.trim().is_empty()).then_some(text)
}

/// What the gold form of a question is, where its benchmark tells: as a form, as one gold path (or
/// several that end in one answer), or as MetaQA's kind (`actor_to_movie_to_year`).
pub fn known_form(question: &GoldQuestion) -> Option<Form> {
    if let Some(text) = gold_form(question) {
        return text.parse().ok();
    }
    let paths = &question.proof.paths;
    if let Some(first) = paths.first() {
        let end = |path: &Vec<NamedTriple>| path.last().map(|triple| triple[2].clone());
        let together = paths.iter().all(|path| end(path) == end(first));
        let mut sets: Vec<Form> = paths.iter().filter_map(|path| of_path(path)).collect();
        return match sets.len() {
            1 if paths.len() == 1 => sets.pop(),
            n if n == paths.len() && together => Some(Form::And(sets)),
            _ => None,
        };
    }
    of_kind(question.kind.as_deref()?, &question.topics.first()?.name)
}

/// `s —r₁→ e —r₂→ a` is `(JOIN (R r₂) (JOIN (R r₁) s))`.
fn of_path(path: &[NamedTriple]) -> Option<Form> {
    let begin = Form::Name(path.first()?[0].clone());
    Some(path.iter().fold(begin, |form, [_, relation, _]| {
        form.joined(Relation::new(relation).reverse())
    }))
}

/// MetaQA's relations lead from a movie to what the kind names.
fn of_kind(kind: &str, topic: &str) -> Option<Form> {
    let relation = |end: &str| {
        Some(Relation::new(match end {
            "actor" => "starred_actors",
            "director" => "directed_by",
            "writer" => "written_by",
            "year" => "release_year",
            "genre" => "has_genre",
            "tag" | "tags" => "has_tags",
            "language" => "in_language",
            "imdbrating" => "has_imdb_rating",
            "imdbvotes" => "has_imdb_votes",
            _ => return None,
        }))
    };
    let ends: Vec<&str> = kind.split("_to_").collect();
    let mut form = Form::Name(topic.to_owned());
    for step in ends.windows(2) {
        form = form.joined(match step {
            ["movie", end] => relation(end)?.reverse(),
            [end, "movie"] => relation(end)?,
            _ => return None,
        });
    }
    (ends.len() > 1).then_some(form)
}

fn one(graph: &Store, question: &GoldQuestion, now: Moment, limits: &RunLimits) -> Result<Forms> {
    let mut counts = Forms {
        questions: 1,
        ..Forms::default()
    };
    let Some(text) = gold_form(question) else {
        return Ok(counts);
    };
    counts.forms = 1;
    let form: Form = match text.parse() {
        Ok(form) => form,
        Err(error) => {
            counts
                .faults
                .push(format!("{}: {error}: {text}", question.id));
            return Ok(counts);
        }
    };
    counts.parsed = 1;
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let written = [Notation::Bracketed, Notation::Plain].map(|n| form.written(n));
    let as_it_was = written.iter().any(|w| bare(w) == bare(text));
    // GrailQA writes `5^^http://…`, which is `"5"^^xsd:…` here: the same form all the same
    let reads_back = written[1].parse::<Form>().is_ok_and(|again| again == form);
    counts.printed = usize::from(reads_back && (as_it_was || text.contains("^^")));
    let mut ran = Ran {
        forms: 1,
        ..Ran::default()
    };
    if let Ok(plan) = Plan::new(&form, graph, now) {
        let outcome = run(&plan, graph, limits).ok();
        let by_sparql = answers_by_sparql(&plan, graph, limits);
        counts.translated = usize::from(by_sparql.is_some());
        if let Some(outcome) = outcome {
            let found = labels(&outcome, &plan.entities(), graph)?;
            let gold: Vec<BTreeSet<String>> = (question.answers.iter())
                .map(|name| name.all().map(normalise).collect())
                .collect();
            let right = |name: &String| gold.iter().any(|names| names.contains(name));
            let complete = (gold.iter()).all(|names| !names.is_disjoint(&found));
            ran.runs = 1;
            ran.hits = usize::from(found.iter().any(right));
            ran.equals = usize::from(complete && !found.is_empty() && found.iter().all(right));
            ran.agrees = usize::from(by_sparql == Some(Asked::Given(shown(&outcome, graph)?)));
        }
    }
    if form.is_plain() {
        counts.plain = ran;
        if !form.has_constants() {
            counts.entities = ran;
        }
    }
    counts.all = ran;
    Ok(counts)
}

/// What SPARQL came to.
#[derive(PartialEq)]
enum Asked {
    /// The terms of all answers, or the number that was counted.
    Given(BTreeSet<String>),
    OutOfTime,
}

/// What SPARQL gives; none if the query fails. Time alone is no failure of the translation.
fn answers_by_sparql(plan: &Plan, graph: &Store, limits: &RunLimits) -> Option<Asked> {
    let options = sparql::SparqlOptions {
        timeout: Some(limits.time),
        max_rows: Some(limits.rows),
        max_bytes: None,
    };
    let query = plan.query().ok()?;
    let given = sparql::query(graph, &query, &options, |answer| match answer {
        sparql::QueryAnswer::Rows(rows) => rows
            .filter_map(|row| match row {
                Ok(row) => row.values()[0].clone().map(|term| {
                    Ok(match term {
                        sparql::RdfTerm::Literal(n) if plan.counts() => n.value().to_owned(),
                        term => term.to_string(),
                    })
                }),
                Err(error) => Some(Err(error)),
            })
            .collect(),
        sparql::QueryAnswer::Boolean(yes) => {
            let text = if yes { "yes" } else { "no" };
            Ok(BTreeSet::from([text.to_owned()]))
        }
        _ => Ok(BTreeSet::new()),
    });
    match given {
        Ok(given) => Some(Asked::Given(given)),
        Err(wherefore_graph::Error::OutOfTime { .. }) => Some(Asked::OutOfTime),
        Err(_) => None,
    }
}

/// What running came to, as SPARQL shows it.
fn shown(outcome: &Outcome, graph: &Store) -> Result<BTreeSet<String>> {
    if let Some((text, _)) = outcome.computed() {
        return Ok(BTreeSet::from([text]));
    }
    let mut shown = BTreeSet::new();
    for &entity in outcome.entities() {
        shown.insert(match graph.entity_term(entity)? {
            Term::Iri(iri) => format!("<{iri}>"),
            Term::Name(name) => format!("<{}>", sparql::name_iri(&name)),
            other => other.to_string(),
        });
    }
    Ok(shown)
}

fn labels(outcome: &Outcome, named: &[EntityId], graph: &dyn Graph) -> Result<BTreeSet<String>> {
    if let Some((text, _)) = outcome.computed() {
        return Ok(BTreeSet::from([text]));
    }
    let (own, others): (Vec<EntityId>, Vec<EntityId>) =
        (outcome.entities().iter()).partition(|entity| named.binary_search(entity).is_ok());
    let answers = if others.is_empty() { own } else { others };
    let mut found = BTreeSet::new();
    for entity in answers {
        found.insert(normalise(&graph.entity_label(entity)?));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::Proof;

    #[test]
    fn forms_come_from_the_benchmark_its_paths_or_its_kinds() {
        let triple = |names: [&str; 3]| names.map(str::to_owned);
        let path = vec![triple(["s", "child", "m"]), triple(["m", "gender", "male"])];
        let mut question = GoldQuestion {
            topics: vec!["Lee".into()],
            kind: Some("actor_to_movie_to_year".into()),
            proof: Proof {
                paths: vec![path],
                logical_form: Some("(JOIN won x)".into()),
                ..Proof::default()
            },
            ..GoldQuestion::default()
        };
        let text = |question: &GoldQuestion| known_form(question).map(|form| form.to_string());
        assert_eq!(text(&question).as_deref(), Some("(JOIN won x)"));
        question.proof.logical_form = None;
        assert_eq!(
            text(&question).as_deref(),
            Some("(JOIN (R gender) (JOIN (R child) s))")
        );
        question
            .proof
            .paths
            .push(vec![triple(["t", "kind", "male"])]);
        assert_eq!(
            text(&question).as_deref(),
            Some("(AND (JOIN (R gender) (JOIN (R child) s)) (JOIN (R kind) t))")
        );
        question.proof.paths[1][0][2] = "female".into();
        assert_eq!(text(&question), None);
        question.proof.paths.clear();
        assert_eq!(
            text(&question).as_deref(),
            Some("(JOIN (R release_year) (JOIN starred_actors Lee))")
        );
        question.kind = Some("actor_to_studio".into());
        assert_eq!(text(&question), None);
    }
}
