//! Drafts training questions for any graph from its own paths and the names of its relations, for
//! those who have a graph and no questions.
//!
//! A question is a path of one to three relations from a named entity, or two relations from two
//! entities to the same things, put into words by the relations' names:
//!
//! ```text
//! Paris ◀─ capital ── France ── currency ─▶ Euro      what is the currency of the country whose capital is Paris
//! Alien ── directed by ─▶ Ridley Scott                who directed Alien
//! ```
//!
//! Its answers are all that the path leads to. Paths that lead to more than `max_answers` things, or
//! back to where they came from, are not asked about. Every relation is begun with about as often
//! as every other, so that rare ones are learned too. The words are those of the relations' names
//! (`wording`): a network learns from them which relations belong to which names, not all the ways
//! in which people ask.

use std::collections::{BTreeSet, HashSet};

use wherefore::model::Random;
use wherefore::phrase::{is_kind, is_silent, opened};
use wherefore_graph::{EntityId, Graph, Hop, RelationId, edges_by_relation};

use crate::error::{Error, Result};
use crate::questions::{GoldQuestion, Name, NamedTriple, Proof};
use crate::wording::Step;

/// Things of the graph that are looked at for places to begin.
const MAX_STARTS: usize = 200_000;

/// Tries for each question that is wanted.
const TRIES: usize = 40;

/// Gold paths that are written down for a question.
const MAX_PATHS: usize = 20;

/// What to draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftOptions {
    /// How many questions; fewer where the graph has no more to ask.
    pub count: usize,
    /// The longest path.
    pub hops: usize,
    /// Questions with more answers are left out.
    pub max_answers: usize,
    /// The seed.
    pub seed: u64,
}

impl Default for DraftOptions {
    fn default() -> Self {
        Self {
            count: 1000,
            hops: 3,
            max_answers: 20,
            seed: 0,
        }
    }
}

/// Drafts questions.
///
/// ```
/// use wherefore_lab::draft::{DraftOptions, draft};
/// let graph = wherefore_graph::toy::graph();
/// let questions = draft(&graph, &DraftOptions { count: 5, ..DraftOptions::default() })?;
/// assert!(questions.iter().all(|q| !q.answers.is_empty()));
/// # Ok::<(), wherefore_lab::Error>(())
/// ```
///
/// # Errors
/// If a setting makes no sense, or the graph cannot be read.
pub fn draft(graph: &dyn Graph, options: &DraftOptions) -> Result<Vec<GoldQuestion>> {
    if options.count == 0 || !(1..=3).contains(&options.hops) || options.max_answers == 0 {
        return Err(Error::BadSetting(
            "drafts need a count and answers of at least 1, and 1 to 3 hops".into(),
        ));
    }
    let drafter = Drafter::new(graph, options)?;
    let mut random = Random::new(options.seed);
    let mut seen = HashSet::new();
    let mut questions = Vec::new();
    if drafter.starts.iter().all(Vec::is_empty) {
        return Ok(questions);
    }
    for _ in 0..options.count * TRIES {
        if questions.len() == options.count {
            break;
        }
        let both = options.hops > 1 && random.below(8) == 0;
        let made = match both {
            true => drafter.conjunction(&mut random)?,
            false => drafter.chain(&mut random)?,
        };
        if let Some(question) = made
            && seen.insert(question.question.clone())
        {
            questions.push(GoldQuestion {
                id: format!("draft-{}", questions.len() + 1),
                ..question
            });
        }
    }
    Ok(questions)
}

struct Drafter<'a> {
    graph: &'a dyn Graph,
    options: &'a DraftOptions,
    /// Relations that say which class something is of.
    kinds: Vec<RelationId>,
    /// For each relation and direction, entities that it can be followed from.
    starts: Vec<Vec<EntityId>>,
}

impl<'a> Drafter<'a> {
    fn new(graph: &'a dyn Graph, options: &'a DraftOptions) -> Result<Self> {
        let mut starts = vec![Vec::new(); graph.relation_bound() * 2];
        let mut kinds = Vec::new();
        for id in 0..graph.relation_bound() as u32 {
            if is_kind(&graph.relation_label(RelationId(id))?) {
                kinds.push(RelationId(id));
            }
        }
        let step = (graph.entity_bound() / MAX_STARTS).max(1);
        for id in (0..graph.entity_bound()).step_by(step) {
            let entity = EntityId(u32::try_from(id).expect("entity ids have 32 bits"));
            if !graph.is_named(entity)? {
                continue;
            }
            for (forward, edges) in [
                (true, graph.outgoing(entity)?),
                (false, graph.incoming(entity)?),
            ] {
                let mut last = None;
                for edge in edges.iter() {
                    if last != Some(edge.relation) && !is_silent(edge.relation, graph)? {
                        starts[edge.relation.index() * 2 + usize::from(forward)].push(entity);
                    }
                    last = Some(edge.relation);
                }
            }
        }
        Ok(Self {
            graph,
            options,
            kinds,
            starts,
        })
    }

    /// A relation and a direction, every one as likely, and something to begin with.
    fn start(&self, random: &mut Random) -> Option<(EntityId, Hop)> {
        let place = random.below(self.starts.len());
        let starts = &self.starts[place];
        (!starts.is_empty()).then(|| {
            let hop = Hop {
                relation: RelationId((place / 2) as u32),
                forward: place % 2 == 1,
            };
            (starts[random.below(starts.len())], hop)
        })
    }

    /// A path of one to `hops` relations.
    fn chain(&self, random: &mut Random) -> Result<Option<GoldQuestion>> {
        let Some((topic, first)) = self.start(random) else {
            return Ok(None);
        };
        let mut hops = vec![first];
        let mut stages = vec![self.follow(&[topic], first)?];
        for _ in 1..1 + random.below(self.options.hops) {
            let from = &stages[stages.len() - 1];
            let Some(hop) = self.any_hop(from, hops[hops.len() - 1], random)? else {
                break;
            };
            stages.push(self.follow(from, hop)?);
            hops.push(hop);
        }
        let ends = stages[stages.len() - 1].clone();
        if !self.is_asked(&ends, &[topic])? {
            return Ok(None);
        }
        let mut words = self.label(topic)?;
        for (place, (hop, ends)) in hops.iter().zip(&stages).enumerate() {
            words = self.told(*hop, ends, |step| match place + 1 == hops.len() {
                true => step.question(&words, random),
                false => step.phrase(&words, random),
            })?;
        }
        let paths = self.paths(topic, &hops, &ends)?;
        self.question(words, &[topic], &ends, paths, hops.len(), "path")
            .map(Some)
    }

    /// Two relations from two things to the same ones.
    fn conjunction(&self, random: &mut Random) -> Result<Option<GoldQuestion>> {
        let Some((one, first)) = self.start(random) else {
            return Ok(None);
        };
        let ends = self.follow(&[one], first)?;
        if ends.is_empty() {
            return Ok(None);
        }
        let end = ends[random.below(ends.len())];
        let back = Hop {
            forward: !first.forward,
            ..first
        };
        let Some(hop) = self.any_hop(&[end], back, random)? else {
            return Ok(None);
        };
        let others = self.follow(&[end], hop)?;
        let other = others[random.below(others.len())];
        let second = Hop {
            forward: !hop.forward,
            ..hop
        };
        if other == one || !self.graph.is_named(other)? {
            return Ok(None);
        }
        let theirs = self.follow(&[other], second)?;
        let both: Vec<EntityId> = (ends.into_iter())
            .filter(|e| theirs.binary_search(e).is_ok())
            .collect();
        if !self.is_asked(&both, &[one, other])? {
            return Ok(None);
        }
        let (of, others) = (self.label(one)?, self.label(other)?);
        let question = self.told(first, &both, |step| step.question_by_clause(&of, random))?;
        let clause = self.told(second, &both, |step| step.clause(&others, random))?;
        let words = format!("{question} and {clause}");
        let mut paths = self.paths(one, &[first], &both)?;
        paths.extend(self.paths(other, &[second], &both)?);
        self.question(words, &[one, other], &both, paths, 1, "conjunction")
            .map(Some)
    }

    fn question(
        &self,
        question: String,
        topics: &[EntityId],
        ends: &[EntityId],
        paths: Vec<Vec<NamedTriple>>,
        hops: usize,
        kind: &str,
    ) -> Result<GoldQuestion> {
        let names = |entities: &[EntityId]| -> Result<Vec<Name>> {
            let mut names = Vec::new();
            for &entity in entities {
                let id = self.graph.entity_term(entity)?.to_string();
                names.push(Name::with_id(self.label(entity)?, id));
            }
            Ok(names)
        };
        Ok(GoldQuestion {
            question,
            topics: names(topics)?,
            answers: names(ends)?,
            hops: u32::try_from(hops).ok(),
            kind: Some(kind.into()),
            proof: Proof {
                paths,
                ..Proof::default()
            },
            ..GoldQuestion::default()
        })
    }

    /// Whether these are answers to ask for: some, not too many, named, and none of the topics.
    fn is_asked(&self, ends: &[EntityId], topics: &[EntityId]) -> Result<bool> {
        if ends.is_empty() || ends.len() > self.options.max_answers {
            return Ok(false);
        }
        for end in ends {
            if topics.contains(end) || !self.graph.is_named(*end)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn follow(&self, from: &[EntityId], hop: Hop) -> Result<Vec<EntityId>> {
        let mut ends = BTreeSet::new();
        for &entity in from.iter().take(self.options.max_answers * 4) {
            let edges = match hop.forward {
                true => self.graph.outgoing(entity)?,
                false => self.graph.incoming(entity)?,
            };
            ends.extend(
                edges_by_relation(&edges, hop.relation)
                    .iter()
                    .map(|e| e.entity),
            );
        }
        Ok(ends.into_iter().collect())
    }

    /// A relation that one of the things has, other than the way back.
    fn any_hop(&self, from: &[EntityId], last: Hop, random: &mut Random) -> Result<Option<Hop>> {
        if from.is_empty() {
            return Ok(None);
        }
        let entity = from[random.below(from.len())];
        let mut hops = BTreeSet::new();
        for (forward, edges) in [
            (true, self.graph.outgoing(entity)?),
            (false, self.graph.incoming(entity)?),
        ] {
            for edge in edges.iter() {
                let hop = Hop {
                    relation: edge.relation,
                    forward,
                };
                if !hop.undoes(&last) && !is_silent(edge.relation, self.graph)? {
                    hops.insert(hop);
                }
            }
        }
        let hops: Vec<Hop> = hops.into_iter().collect();
        Ok((!hops.is_empty()).then(|| hops[random.below(hops.len())]))
    }

    fn paths(
        &self,
        topic: EntityId,
        hops: &[Hop],
        ends: &[EntityId],
    ) -> Result<Vec<Vec<NamedTriple>>> {
        let mut walks: Vec<(Vec<NamedTriple>, EntityId)> = vec![(Vec::new(), topic)];
        for hop in hops {
            let mut longer = Vec::new();
            for (path, at) in &walks {
                for end in self.follow(&[*at], *hop)? {
                    let (head, tail) = if hop.forward { (*at, end) } else { (end, *at) };
                    let triple = [
                        self.graph.entity_term(head)?.to_string(),
                        self.graph.relation_term(hop.relation)?.to_string(),
                        self.graph.entity_term(tail)?.to_string(),
                    ];
                    longer.push(([path.as_slice(), &[triple]].concat(), end));
                }
            }
            longer.truncate(MAX_PATHS * 50);
            walks = longer;
        }
        walks.retain(|(_, end)| ends.contains(end));
        walks.truncate(MAX_PATHS);
        Ok(walks.into_iter().map(|(path, _)| path).collect())
    }

    fn label(&self, entity: EntityId) -> Result<String> {
        Ok(self.graph.entity_label(entity)?.into_owned())
    }

    /// One step in words, by what it leads to.
    fn told(
        &self,
        hop: Hop,
        ends: &[EntityId],
        tell: impl FnOnce(Step<'_>) -> String,
    ) -> Result<String> {
        let name = opened(&self.graph.relation_label(hop.relation)?);
        let class = self.class(ends)?;
        Ok(tell(Step {
            name: &name,
            forward: hop.forward,
            class: class.as_deref(),
            is_many: ends.len() > 1,
        }))
    }

    /// The class that all of some things are of.
    fn class(&self, of: &[EntityId]) -> Result<Option<String>> {
        let mut common: Option<Vec<EntityId>> = None;
        for &entity in of.iter().take(self.options.max_answers) {
            let edges = self.graph.outgoing(entity)?;
            let own = |kind: &RelationId| edges_by_relation(&edges, *kind).iter();
            let own: Vec<EntityId> = self.kinds.iter().flat_map(own).map(|e| e.entity).collect();
            match &mut common {
                None => common = Some(own),
                Some(common) => common.retain(|class| own.contains(class)),
            }
        }
        let Some(class) = common.and_then(|classes| classes.first().copied()) else {
            return Ok(None);
        };
        Ok(Some(opened(&self.label(class)?)))
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, toy};

    use super::*;
    use crate::questions::resolve;

    #[test]
    fn drafts_are_the_same_for_the_same_seed_and_no_question_comes_twice() {
        let options = DraftOptions {
            count: 30,
            ..DraftOptions::default()
        };
        let graph = toy::graph();
        let one = draft(&graph, &options).unwrap();
        assert_eq!(one, draft(&graph, &options).unwrap());
        let texts: HashSet<_> = one.iter().map(|q| &q.question).collect();
        assert_eq!(texts.len(), one.len());
        assert!(one.len() > 20);
    }

    #[test]
    fn answers_are_where_the_gold_paths_lead() {
        let graph = toy::graph();
        let options = DraftOptions {
            count: 60,
            seed: 3,
            ..DraftOptions::default()
        };
        for question in draft(&graph, &options).unwrap() {
            let resolved = resolve(&question, &graph).unwrap();
            assert_eq!(resolved.answers.len(), question.answers.len());
            for path in &question.proof.paths {
                let ends = path.last().unwrap();
                let names: Vec<&str> = question.answers.iter().flat_map(Name::all).collect();
                assert!(
                    names.contains(&ends[0].as_str()) || names.contains(&ends[2].as_str()),
                    "{question:?}"
                );
            }
        }
    }

    #[test]
    fn classes_are_named_where_the_graph_has_them() {
        let graph = MemoryGraph::from_names([
            ("Alien", "directed_by", "Scott"),
            ("Thelma", "directed_by", "Scott"),
            ("Alien", "type", "Film"),
            ("Thelma", "type", "Film"),
        ]);
        let options = DraftOptions {
            hops: 1,
            ..DraftOptions::default()
        };
        let questions = draft(&graph, &options).unwrap();
        let texts: BTreeSet<_> = questions.iter().map(|q| q.question.as_str()).collect();
        assert!(texts.contains("who directed Alien"), "{texts:?}");
        assert!(
            texts.contains("which films were directed by Scott"),
            "{texts:?}"
        );
    }

    #[test]
    fn nothing_to_ask_is_no_question_and_no_hops_are_refused() {
        let empty = MemoryGraph::from_names::<&str>([]);
        assert_eq!(draft(&empty, &DraftOptions::default()).unwrap(), []);
        let options = DraftOptions {
            hops: 9,
            ..DraftOptions::default()
        };
        assert!(draft(&toy::graph(), &options).is_err());
    }
}
