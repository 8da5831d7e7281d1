//! How well a linker finds the entities that questions are about, with the gold topics hidden.
//!
//! ```text
//! recall@k         = gold topics among the k best candidates of some mention / gold topics
//! recall@k (list)  = gold topics among the first k of all candidates, best first / gold topics
//! ```
//!
//! Every gold topic counts, also one that the graph does not have: it is never found. The first
//! is the figure for questions with several topics, where no single list can hold all in its first
//! place; `mentions` says how many chances it had.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use wherefore::link::{Linker, Mention};
use wherefore_graph::{EntityId, Graph};

use crate::error::Result;
use crate::questions::{GoldQuestion, resolve};

/// What a linker found over a file of questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Linking {
    /// Questions that name a topic.
    pub questions: usize,
    /// Their gold topics.
    pub topics: usize,
    /// Share of the gold topics that are in the graph.
    pub in_graph: f64,
    /// Recall at each k.
    pub recall: Vec<LinkRecall>,
    /// Mean number of mentions in a question.
    pub mentions: f64,
    /// Share of the questions in which nothing was found.
    pub unlinked: f64,
    /// Questions a second, on all cores.
    pub questions_per_second: f64,
}

/// Recall at one k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkRecall {
    /// Candidates looked at.
    pub k: usize,
    /// By mention: see the module.
    pub recall: f64,
    /// Over one list of all candidates.
    pub list: f64,
}

/// A question whose topics were not all found first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// The question.
    pub question: String,
    /// The topic.
    pub topic: String,
    /// What was found instead: mention and its best candidate.
    pub found: Vec<(String, String)>,
}

/// Counts of one question.
#[derive(Default)]
struct Counts {
    topics: usize,
    in_graph: usize,
    mentions: usize,
    unlinked: usize,
    by_mention: Vec<usize>,
    in_list: Vec<usize>,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.topics += other.topics;
        self.in_graph += other.in_graph;
        self.mentions += other.mentions;
        self.unlinked += other.unlinked;
        for (sum, x) in [
            (&mut self.by_mention, &other.by_mention),
            (&mut self.in_list, &other.in_list),
        ] {
            sum.resize(x.len().max(sum.len()), 0);
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
        }
    }
}

/// Links every question that names topics, on all cores, and counts what was found at each of
/// `ks`. `progress` hears how many are done; `missed` gets every topic that is nobody's first
/// candidate, in the order of the questions, if it is asked for.
pub fn linking(
    linker: &dyn Linker,
    graph: &dyn Graph,
    questions: &[GoldQuestion],
    ks: &[usize],
    progress: &(dyn Fn(usize) + Sync),
    mut missed: Option<&mut Vec<Miss>>,
) -> Result<Linking> {
    let asked: Vec<&GoldQuestion> = questions.iter().filter(|q| !q.topics.is_empty()).collect();
    // the first question pays for what is made once per graph
    if let Some(first) = asked.first() {
        linker.mentions(&first.without_topics(), graph)?;
    }
    let wanted: Vec<Vec<Vec<EntityId>>> = asked
        .iter()
        .map(|q| Ok(resolve(q, graph)?.topics))
        .collect::<Result<_>>()?;
    let begun = Instant::now();
    let done = AtomicUsize::new(0);
    let link = |question: &&GoldQuestion| -> Result<Vec<Mention>> {
        let mentions = linker.mentions(&question.without_topics(), graph)?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(mentions)
    };
    let linked: Vec<Vec<Mention>> = asked.par_iter().map(link).collect::<Result<_>>()?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut sum = Counts::default();
    for ((question, gold), mentions) in asked.iter().zip(&wanted).zip(&linked) {
        sum.add(&count(gold, mentions, ks));
        if let Some(missed) = missed.as_deref_mut() {
            misses(question, gold, mentions, graph, missed)?;
        }
    }
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    Ok(Linking {
        questions: asked.len(),
        topics: sum.topics,
        in_graph: share(sum.in_graph, sum.topics),
        recall: ks
            .iter()
            .enumerate()
            .map(|(i, &k)| LinkRecall {
                k,
                recall: share(sum.by_mention.get(i).copied().unwrap_or(0), sum.topics),
                list: share(sum.in_list.get(i).copied().unwrap_or(0), sum.topics),
            })
            .collect(),
        mentions: share(sum.mentions, asked.len()),
        unlinked: share(sum.unlinked, asked.len()),
        questions_per_second: asked.len() as f64 / seconds.max(1e-9),
    })
}

fn count(gold: &[Vec<EntityId>], mentions: &[Mention], ks: &[usize]) -> Counts {
    let mut list: Vec<_> = mentions.iter().flat_map(|m| &m.candidates).collect();
    list.sort_by(|a, b| b.score.total_cmp(&a.score));
    let found = |k: usize, entities: &[EntityId]| {
        mentions
            .iter()
            .flat_map(|m| m.candidates.iter().take(k))
            .any(|c| entities.contains(&c.entity))
    };
    let listed =
        |k: usize, entities: &[EntityId]| list.iter().take(k).any(|c| entities.contains(&c.entity));
    let over = |hit: &dyn Fn(usize, &[EntityId]) -> bool| {
        ks.iter()
            .map(|&k| gold.iter().filter(|e| hit(k, e)).count())
            .collect()
    };
    Counts {
        topics: gold.len(),
        in_graph: gold.iter().filter(|e| !e.is_empty()).count(),
        mentions: mentions.len(),
        unlinked: usize::from(mentions.is_empty()),
        by_mention: over(&found),
        in_list: over(&listed),
    }
}

fn misses(
    question: &GoldQuestion,
    gold: &[Vec<EntityId>],
    mentions: &[Mention],
    graph: &dyn Graph,
    missed: &mut Vec<Miss>,
) -> Result<()> {
    let firsts: Vec<(&str, EntityId)> = mentions
        .iter()
        .filter_map(|m| Some((m.text.as_str(), m.candidates.first()?.entity)))
        .collect();
    for (name, entities) in question.topics.iter().zip(gold) {
        if firsts.iter().any(|(_, first)| entities.contains(first)) {
            continue;
        }
        let mut found = Vec::new();
        for &(mention, first) in &firsts {
            found.push((mention.to_owned(), graph.entity_label(first)?.into_owned()));
        }
        missed.push(Miss {
            question: question.question.clone(),
            topic: name.name.clone(),
            found,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wherefore::link::{Names, NamesConfig};
    use wherefore_graph::toy;

    use super::*;

    fn question(text: &str, topics: &[&str]) -> GoldQuestion {
        GoldQuestion {
            question: text.into(),
            topics: topics.iter().map(|&t| t.to_owned().into()).collect(),
            ..GoldQuestion::default()
        }
    }

    #[test]
    fn every_gold_topic_counts() {
        let questions = [
            question(
                "Do Lou Seal and Oracle Park match?",
                &["Lou Seal", "Oracle Park"],
            ),
            question("Whose mascot is Lou Seal?", &["Lou Seal"]),
            question("Who is Hamlet?", &["Hamlet"]),
            question("nothing is known of this", &[]),
        ];
        let linker = Names::new(NamesConfig::default()).unwrap();
        let mut missed = Vec::new();
        let done = linking(
            &linker,
            &toy::graph(),
            &questions,
            &[1, 5],
            &|_| {},
            Some(&mut missed),
        )
        .unwrap();
        assert_eq!((done.questions, done.topics), (3, 4));
        assert_eq!(done.in_graph, 0.75);
        // both topics of the first question are first of their mention, but one is first of all
        assert_eq!((done.recall[0].recall, done.recall[0].list), (0.75, 0.5));
        assert_eq!((done.recall[1].recall, done.recall[1].list), (0.75, 0.75));
        assert_eq!(missed.len(), 1);
        assert_eq!(missed[0].topic, "Hamlet");
    }
}
