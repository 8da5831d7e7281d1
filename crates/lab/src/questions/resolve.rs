//! Questions against a graph: which topics and answers it knows, and how far apart they are.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, NameMatch};

use super::gold::{GoldQuestion, Name};
use crate::error::Result;

/// A question's names as entities of one graph.
///
/// A name that several entities share gives them all; a name that none has gives an empty list
/// and is kept in place, so that metrics can count it as lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The entities of each topic.
    pub topics: Vec<Vec<EntityId>>,
    /// The entities of each answer.
    pub answers: Vec<Vec<EntityId>>,
}

impl Resolved {
    /// Every topic entity, sorted, each once.
    pub fn topic_entities(&self) -> Vec<EntityId> {
        flat(&self.topics)
    }

    /// Every answer entity, sorted, each once.
    pub fn answer_entities(&self) -> Vec<EntityId> {
        flat(&self.answers)
    }

    /// The names of `question` that the graph does not have: topics, then answers.
    pub fn missing<'q>(&self, question: &'q GoldQuestion) -> (Vec<&'q str>, Vec<&'q str>) {
        let missing = |names: &'q [Name], found: &[Vec<EntityId>]| {
            names
                .iter()
                .zip(found)
                .filter(|(_, entities)| entities.is_empty())
                .map(|(name, _)| name.name.as_str())
                .collect()
        };
        (
            missing(&question.topics, &self.topics),
            missing(&question.answers, &self.answers),
        )
    }
}

fn flat(lists: &[Vec<EntityId>]) -> Vec<EntityId> {
    let mut entities: Vec<EntityId> = lists.iter().flatten().copied().collect();
    entities.sort_unstable();
    entities.dedup();
    entities
}

/// Looks the names of a question up: letter by letter, then by alias, then by normal form.
pub fn resolve(question: &GoldQuestion, graph: &dyn Graph) -> Result<Resolved> {
    let find = |names: &[Name]| {
        names
            .iter()
            .map(|name| entities_of(name, graph))
            .collect::<Result<Vec<_>>>()
    };
    Ok(Resolved {
        topics: find(&question.topics)?,
        answers: find(&question.answers)?,
    })
}

fn entities_of(name: &Name, graph: &dyn Graph) -> Result<Vec<EntityId>> {
    for how in [NameMatch::Exact, NameMatch::Normalised] {
        for text in name.all() {
            let found = graph.entities_named(text, how)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(Vec::new())
}

/// How much of a questions file a graph can answer at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Questions looked at.
    pub questions: usize,
    /// Questions that name a topic.
    pub with_topics: usize,
    /// Questions with at least one topic in the graph.
    pub topic_in_graph: usize,
    /// Questions all of whose topics are in the graph.
    pub all_topics_in_graph: usize,
    /// Questions with known answers.
    pub with_answers: usize,
    /// Questions with at least one answer in the graph.
    pub answer_in_graph: usize,
    /// Questions all of whose answers are in the graph.
    pub all_answers_in_graph: usize,
    /// Questions by the number of hops between topic and nearest answer, up to the limit.
    pub nearest_answer: BTreeMap<u32, usize>,
}

impl Coverage {
    /// Share of the questions with known answers that have one in the graph.
    pub fn answer_share(&self) -> f64 {
        share(self.answer_in_graph, self.with_answers)
    }

    /// Share of the questions with known answers that have one within `hops` of a topic.
    pub fn share_within(&self, hops: u32) -> f64 {
        share(
            self.nearest_answer.range(..=hops).map(|(_, n)| n).sum(),
            self.with_answers,
        )
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Counts what the graph knows of the questions, walking edges both ways up to `max_hops`.
///
/// Uses every core; the result does not depend on how many there are. Questions that bring their
/// own triples are still looked up in `graph`.
pub fn coverage(questions: &[GoldQuestion], graph: &dyn Graph, max_hops: u32) -> Result<Coverage> {
    questions
        .par_iter()
        .map_init(
            || Walk::new(graph.entity_bound()),
            |walk, question| coverage_of(question, graph, max_hops, walk),
        )
        .try_reduce(Coverage::default, |sum, more| Ok(sum.and(more)))
}

impl Coverage {
    fn and(mut self, more: Self) -> Self {
        self.questions += more.questions;
        self.with_topics += more.with_topics;
        self.topic_in_graph += more.topic_in_graph;
        self.all_topics_in_graph += more.all_topics_in_graph;
        self.with_answers += more.with_answers;
        self.answer_in_graph += more.answer_in_graph;
        self.all_answers_in_graph += more.all_answers_in_graph;
        for (hops, count) in more.nearest_answer {
            *self.nearest_answer.entry(hops).or_default() += count;
        }
        self
    }
}

fn coverage_of(
    question: &GoldQuestion,
    graph: &dyn Graph,
    max_hops: u32,
    walk: &mut Walk,
) -> Result<Coverage> {
    let found = resolve(question, graph)?;
    let (topics, answers) = (found.topic_entities(), found.answer_entities());
    let all = |lists: &[Vec<EntityId>]| !lists.is_empty() && lists.iter().all(|l| !l.is_empty());
    let hops = walk.nearest(graph, &topics, &answers, max_hops)?;
    Ok(Coverage {
        questions: 1,
        with_topics: usize::from(!found.topics.is_empty()),
        topic_in_graph: usize::from(!topics.is_empty()),
        all_topics_in_graph: usize::from(all(&found.topics)),
        with_answers: usize::from(!found.answers.is_empty()),
        answer_in_graph: usize::from(!answers.is_empty()),
        all_answers_in_graph: usize::from(all(&found.answers)),
        nearest_answer: hops.map(|hops| (hops, 1)).into_iter().collect(),
    })
}

/// A breadth-first walk whose buffers serve one question after the other.
struct Walk {
    /// The round in which an entity was last met.
    met: Vec<u32>,
    round: u32,
    frontier: Vec<EntityId>,
    next: Vec<EntityId>,
}

impl Walk {
    fn new(entities: usize) -> Self {
        Self {
            met: vec![0; entities],
            round: 0,
            frontier: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Hops from the nearest of `from` to the nearest of `to` (sorted), both ways along edges.
    fn nearest(
        &mut self,
        graph: &dyn Graph,
        from: &[EntityId],
        to: &[EntityId],
        max_hops: u32,
    ) -> Result<Option<u32>> {
        if to.is_empty() {
            return Ok(None);
        }
        self.round += 1;
        self.frontier.clear();
        self.frontier.extend(from);
        for &entity in from {
            self.meet(entity);
        }
        for hops in 0..=max_hops {
            if self.frontier.iter().any(|e| to.binary_search(e).is_ok()) {
                return Ok(Some(hops));
            }
            if hops == max_hops {
                break;
            }
            self.next.clear();
            let frontier = std::mem::take(&mut self.frontier);
            for &entity in &frontier {
                for edges in [graph.outgoing(entity)?, graph.incoming(entity)?] {
                    for edge in edges.iter() {
                        if self.meet(edge.entity) {
                            self.next.push(edge.entity);
                        }
                    }
                }
            }
            self.frontier = std::mem::replace(&mut self.next, frontier);
        }
        Ok(None)
    }

    /// Whether this is the first time in this round. A service numbers entities as they are met,
    /// so that there are more and more of them.
    fn meet(&mut self, entity: EntityId) -> bool {
        if entity.index() >= self.met.len() {
            self.met.resize(entity.index() + 1, 0);
        }
        std::mem::replace(&mut self.met[entity.index()], self.round) != self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wherefore_graph::toy;

    fn question(topic: &str, answers: &[&str]) -> GoldQuestion {
        GoldQuestion {
            topics: vec![topic.into()],
            answers: answers.iter().map(|&a| a.into()).collect(),
            ..GoldQuestion::default()
        }
    }

    #[test]
    fn names_are_found_by_letter_alias_and_normal_form() {
        let graph = toy::graph();
        let mut asked = question("lou_seal", &["World Series 2010", "World Series 1905"]);
        asked.answers.push(Name::with_id("The seats", "m.0seat"));
        let found = resolve(&asked, &graph).unwrap();
        assert_eq!(found.topics, [[EntityId(0)]]);
        assert_eq!(
            found.answers.iter().map(Vec::len).collect::<Vec<_>>(),
            [1, 0, 1]
        );
        assert_eq!(found.missing(&asked), (vec![], vec!["World Series 1905"]));
    }

    #[test]
    fn a_walk_meets_entities_that_were_not_there_when_it_began() {
        let graph = toy::graph();
        let found = resolve(&question("Lou Seal", &["World Series 2010"]), &graph).unwrap();
        let (topics, answers) = (found.topic_entities(), found.answer_entities());
        let hops = Walk::new(0).nearest(&graph, &topics, &answers, 3).unwrap();
        assert_eq!(hops, Some(2));
    }

    #[test]
    fn coverage_counts_questions_that_the_graph_cannot_answer() {
        let graph = toy::graph();
        let questions = [
            question("Lou Seal", &["World Series 2010", "World Series 1905"]), // 2 hops
            question("Lou Seal", &["France"]),                                 // 4 hops
            question("Lou Seal", &["Lou Seal"]),                               // 0 hops
            question("Nobody", &["France"]),
            question("Lou Seal", &["Atlantis"]),
            question("Lou Seal", &[]),
        ];
        let counted = coverage(&questions, &graph, 3).unwrap();
        assert_eq!(counted.questions, 6);
        assert_eq!(counted.topic_in_graph, 5);
        assert_eq!(counted.with_answers, 5);
        assert_eq!(counted.answer_in_graph, 4);
        assert_eq!(counted.all_answers_in_graph, 3);
        assert_eq!(counted.nearest_answer, BTreeMap::from([(0, 1), (2, 1)]));
        // 4 of 5, and 2 of 5 within three hops
        assert!((counted.answer_share() - 0.8).abs() < 1e-12);
        assert!((counted.share_within(3) - 0.4).abs() < 1e-12);
        assert!((counted.share_within(1) - 0.2).abs() < 1e-12);
    }
}
