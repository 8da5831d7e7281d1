//! The facts that a smaller question is answered from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, RelationId, Triple};
use wherefore_model::language::{Decoding, Message, Prompt, Role};
use wherefore_model::vector::dot;

use super::super::budget::Meter;
use super::super::reply;
use crate::error::Result;
use crate::organize::one_line;
use crate::relations::RelationEncoder;
use crate::retrieve::TripleEncoder;
use crate::words::opened;

/// Who chooses the facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Those of the evidence that are nearest to the question, as published.
    #[default]
    Nearest,
    /// Those of the relations that are nearest to the question, around the entities at hand.
    Relations,
    /// Those of the relations that the language model picks, around the entities at hand.
    PickedRelations,
}

/// Entities that are followed at a time.
const MAX_ANCHORS: usize = 50;
/// Edges that are looked at around one entity, in each direction.
const MAX_EDGES: usize = 10_000;
/// Relations that a language model may pick from.
const MAX_LISTED: usize = 30;
/// Facts around a node without a name that are shown with it.
const AROUND_UNNAMED: usize = 8;

/// Finds facts.
pub(super) struct Facts {
    pub(super) choice: Choice,
    /// Facts, at most.
    pub(super) k: usize,
    /// Relations, at most.
    pub(super) relations: usize,
    pub(super) triples: TripleEncoder,
    pub(super) encoder: RelationEncoder,
}

impl Facts {
    /// The facts for `asked`, best first. `evidence` is what the retriever found, `anchors` are
    /// the entities that earlier answers gave, or the topics.
    pub(super) fn find(
        &self,
        asked: &str,
        evidence: &[(Triple, f32)],
        anchors: &[EntityId],
        graph: &dyn Graph,
        (meter, decoding): (&mut Meter<'_>, &Decoding),
    ) -> Result<Vec<(Triple, f32)>> {
        if self.choice == Choice::Nearest {
            return self.nearest(asked, evidence, graph);
        }
        let around = Around::of(anchors, graph, &mut meter.notes)?;
        let mut ranked = self.ranked(asked, &around, graph)?;
        if self.choice == Choice::PickedRelations {
            ranked.truncate(MAX_LISTED);
            ranked = picked(asked, ranked, graph, meter, decoding)?;
        }
        ranked.truncate(self.relations);
        self.along(&ranked, &around, graph)
    }

    fn nearest(
        &self,
        asked: &str,
        evidence: &[(Triple, f32)],
        graph: &dyn Graph,
    ) -> Result<Vec<(Triple, f32)>> {
        let triples: Vec<Triple> = evidence.iter().map(|(t, _)| *t).collect();
        let scores = self.triples.scores(asked, &triples, graph)?;
        let mut facts: Vec<(Triple, f32)> = triples.into_iter().zip(scores).collect();
        facts.sort_by(|a, b| b.1.total_cmp(&a.1));
        facts.truncate(self.k);
        Ok(facts)
    }

    /// Relations around the anchors, nearest to the question first, with their scores.
    fn ranked(
        &self,
        asked: &str,
        around: &Around,
        graph: &dyn Graph,
    ) -> Result<Vec<(RelationId, f32)>> {
        let question = self.encoder.encoder().encode_queries(&[asked])?;
        let rows = self.encoder.rows(graph)?;
        let mut ranked: Vec<(RelationId, f32)> = (around.triples.keys())
            .map(|r| {
                let cosine = dot(question.row(0), rows.row(r.index()));
                (*r, (0.5 + 0.5 * cosine).clamp(0.0, 1.0))
            })
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(ranked)
    }

    /// Triples of the relations, best relation first, as many as are allowed.
    fn along(
        &self,
        relations: &[(RelationId, f32)],
        around: &Around,
        graph: &dyn Graph,
    ) -> Result<Vec<(Triple, f32)>> {
        let mut facts: Vec<(Triple, f32)> = Vec::new();
        for (relation, score) in relations {
            for triple in &around.triples[relation] {
                let mut add = |triple: Triple, score: f32| {
                    if facts.len() < self.k && !facts.iter().any(|(t, _)| *t == triple) {
                        facts.push((triple, score));
                    }
                };
                add(*triple, *score);
                // what a node without a name joins is told with it
                for end in [triple.head, triple.tail] {
                    if !graph.is_named(end)? {
                        let others = graph.triples_of(end)?;
                        (others.into_iter().take(AROUND_UNNAMED)).for_each(|t| add(t, *score));
                    }
                }
            }
        }
        Ok(facts)
    }
}

/// The triples around some entities, by relation.
struct Around {
    triples: BTreeMap<RelationId, Vec<Triple>>,
}

impl Around {
    fn of(anchors: &[EntityId], graph: &dyn Graph, notes: &mut Vec<String>) -> Result<Self> {
        if anchors.len() > MAX_ANCHORS {
            notes.push(format!(
                "only the first {MAX_ANCHORS} of {} answers on the way were followed",
                anchors.len()
            ));
        }
        let naming = graph.naming_relations();
        let mut triples: BTreeMap<RelationId, Vec<Triple>> = BTreeMap::new();
        for &anchor in anchors.iter().take(MAX_ANCHORS) {
            let outgoing = graph.outgoing(anchor)?;
            let incoming = graph.incoming(anchor)?;
            let out = outgoing.iter().take(MAX_EDGES).map(|e| Triple {
                head: anchor,
                relation: e.relation,
                tail: e.entity,
            });
            let back = incoming.iter().take(MAX_EDGES).map(|e| Triple {
                head: e.entity,
                relation: e.relation,
                tail: anchor,
            });
            for triple in out.chain(back).filter(|t| !naming.contains(&t.relation)) {
                triples.entry(triple.relation).or_default().push(triple);
            }
        }
        Ok(Self { triples })
    }
}

/// The relations that the model picks, in its order; all where it picks none.
fn picked(
    asked: &str,
    ranked: Vec<(RelationId, f32)>,
    graph: &dyn Graph,
    meter: &mut Meter<'_>,
    decoding: &Decoding,
) -> Result<Vec<(RelationId, f32)>> {
    if meter.spent().is_some() || ranked.len() < 2 {
        return Ok(ranked);
    }
    let labels = (ranked.iter())
        .map(|(r, _)| Ok(one_line(&graph.relation_label(*r)?)))
        .collect::<Result<Vec<String>>>()?;
    let listed: Vec<String> = (1..)
        .zip(&labels)
        .map(|(n, l)| format!("{n}. {l}"))
        .collect();
    let messages = vec![
        Message::new(
            Role::System,
            include_str!("../prompts/relations-system.txt").trim(),
        ),
        Message::new(
            Role::User,
            format!(
                "Relations:\n{}\n\nQuestion: {}",
                listed.join("\n"),
                one_line(asked)
            ),
        ),
    ];
    let said = reply::read(&meter.complete(&Prompt::Chat(messages), decoding)?.text);
    let chosen: Vec<(RelationId, f32)> = (said.names.iter())
        .filter_map(|name| {
            let place = reply::forms(name).into_iter().find_map(|form| {
                let number = form.trim_end_matches('.').parse::<usize>().ok();
                let by_number = number
                    .and_then(|n| n.checked_sub(1))
                    .filter(|n| *n < labels.len());
                let form = form.split_once(". ").map_or(form, |(n, rest)| {
                    if n.parse::<usize>().is_ok() {
                        rest
                    } else {
                        form
                    }
                });
                by_number.or_else(|| labels.iter().position(|l| plain(l) == plain(form)))
            })?;
            Some(ranked[place])
        })
        .collect();
    Ok(if chosen.is_empty() { ranked } else { chosen })
}

/// A relation's name as it is compared: its words, letter case aside.
fn plain(relation: &str) -> String {
    normalise(&opened(relation))
}
