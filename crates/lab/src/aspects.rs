//! How well the three aspects of questions are retrieved, with the gold topics hidden.
//!
//! ```text
//! entities@k    gold topics among the k best candidates / gold topics
//! relations@k   mean over questions of: relations of the gold form among the k best / relations
//!               of the gold form; those that the graph lacks are never found
//! subgraphs@k   questions with a gold answer in one of the k best documents / questions with
//!               answers
//! ```

use rayon::prelude::*;
use serde::Serialize;
use wherefore::link::Linker;
use wherefore::logic::Form;
use wherefore::logic::aspects::{RelationRetriever, documents};
use wherefore_graph::{EntityId, Graph};

use crate::error::Result;
use crate::forms::gold_form;
use crate::questions::{GoldQuestion, resolve};
use crate::train::gold_relations;

/// Documents looked at, beside the ranks from 1 to 10.
const DOCUMENTS: usize = 100;

/// Recall of each aspect.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AspectRecall {
    /// Questions with gold relations.
    pub questions: usize,
    /// Recall of entities at 1 to 10.
    pub entities: Vec<f64>,
    /// Recall of relations at 1 to 10.
    pub relations: Vec<f64>,
    /// Recall of answers in documents at 1 to 10.
    pub subgraphs: Vec<f64>,
    /// The same at 100.
    pub subgraphs_at_100: f64,
    /// Share of gold relations that the graph has.
    pub relations_in_graph: f64,
}

struct One {
    entities: Vec<f64>,
    relations: Vec<f64>,
    subgraphs: Vec<f64>,
    in_graph: f64,
}

/// Retrieves for every question that has gold relations.
pub fn aspects(
    linker: &dyn Linker,
    relations: &RelationRetriever,
    graph: &dyn Graph,
    questions: &[GoldQuestion],
) -> Result<AspectRecall> {
    // the first question pays for what is made once per graph
    if let Some(first) = questions.first() {
        linker.mentions(&first.without_topics(), graph)?;
        relations.rank(&first.without_topics(), &[], graph)?;
    }
    let all: Vec<Option<One>> = questions
        .par_iter()
        .map(|question| one(linker, relations, graph, question))
        .collect::<Result<_>>()?;
    let all: Vec<One> = all.into_iter().flatten().collect();
    let mean = |of: &dyn Fn(&One) -> f64| {
        let values: Vec<f64> = all.iter().map(of).filter(|v| !v.is_nan()).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let ranks = |of: fn(&One) -> &[f64]| (0..10).map(|k| mean(&|one| of(one)[k])).collect();
    Ok(AspectRecall {
        questions: all.len(),
        entities: ranks(|one| &one.entities),
        relations: ranks(|one| &one.relations),
        subgraphs: ranks(|one| &one.subgraphs),
        subgraphs_at_100: mean(&|one| one.subgraphs[10]),
        relations_in_graph: mean(&|one| one.in_graph),
    })
}

fn one(
    linker: &dyn Linker,
    retriever: &RelationRetriever,
    graph: &dyn Graph,
    question: &GoldQuestion,
) -> Result<Option<One>> {
    let gold = gold_relations(question, graph)?;
    let named = match gold_form(question).and_then(|f| f.parse::<Form>().ok()) {
        Some(form) => {
            let mut names: Vec<String> = form.relations().iter().map(|r| r.name.clone()).collect();
            names.sort_unstable();
            names.dedup();
            names.len()
        }
        None => gold.len(),
    };
    if named == 0 {
        return Ok(None);
    }
    let asked = question.without_topics();
    let mut candidates: Vec<(EntityId, f32)> = Vec::new();
    for mention in linker.mentions(&asked, graph)? {
        candidates.extend(mention.candidates.iter().map(|c| (c.entity, c.score)));
    }
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut seen = std::collections::HashSet::new();
    candidates.retain(|c| seen.insert(c.0));
    let resolved = resolve(question, graph)?;
    let share = |hits: usize, of: usize| match of {
        0 => f64::NAN,
        of => hits as f64 / of as f64,
    };
    let entities = (1..=10)
        .map(|k| {
            let found =
                |topic: &&Vec<EntityId>| candidates.iter().take(k).any(|c| topic.contains(&c.0));
            let hits = resolved.topics.iter().filter(found).count();
            share(hits, resolved.topics.len())
        })
        .collect();
    let links = linker.link(&asked, graph)?;
    let ranked = retriever.rank(&asked, &links, graph)?;
    let relations = (1..=10)
        .map(|k| {
            let found = ranked.iter().take(k).filter(|(r, _)| gold.contains(r));
            share(found.count(), named)
        })
        .collect();
    let around: Vec<EntityId> = candidates.iter().take(10).map(|c| c.0).collect();
    let documents = documents(&question.question, &around, graph)?;
    let answers = resolved.answer_entities();
    let first = documents.iter().position(|document| {
        let ends = document.item.iter().flat_map(|t| [t.head, t.tail]);
        ends.into_iter().any(|e| answers.binary_search(&e).is_ok())
    });
    let subgraphs = (1..=10)
        .chain([DOCUMENTS])
        .map(|k| match question.answers.is_empty() {
            true => f64::NAN,
            false => f64::from(u8::from(first.is_some_and(|first| first < k))),
        })
        .collect();
    Ok(Some(One {
        entities,
        relations,
        subgraphs,
        in_graph: share(gold.len(), named),
    }))
}
