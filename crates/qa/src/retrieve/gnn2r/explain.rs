//! What each layer did, for people: how much the triples of the rationale were heard, and where the
//! entities stood around the question.

use std::collections::BTreeSet;

use wherefore_graph::{EntityId, Graph};
use wherefore_model::gnn2r::plane;

use super::explanation::{Explanation, LayerPicture, Place, Role};
use super::explored::Explored;
use crate::error::Result;
use crate::retrieve::Rationales;

/// Entities drawn beside the candidates, at most.
const MOST: usize = 300;

pub(super) fn explain(
    found: &Explored,
    rationales: Option<&Rationales>,
    graph: &dyn Graph,
) -> Result<Explanation> {
    let subgraph = &found.around.subgraph;
    let answers: Vec<EntityId> = rationales
        .into_iter()
        .flat_map(|r| r.answers.iter().map(|a| a.entity))
        .collect();
    let in_rationale: BTreeSet<_> = rationales
        .into_iter()
        .flat_map(|r| r.answers.iter().flat_map(|a| a.paths.iter().flatten()))
        .collect();
    let triples: Vec<usize> = (0..subgraph.triples().len())
        .filter(|i| in_rationale.contains(&subgraph.triple(*i)))
        .collect();
    // topics and candidates are always drawn
    let mut shown: Vec<u32> = found.around.topics.iter().map(|t| t.0).collect();
    shown.extend(&found.candidates);
    let others = 0..subgraph.entities().len() as u32;
    shown.extend(others.take(MOST));
    shown.sort_unstable();
    shown.dedup();
    let label = |e: EntityId| -> Result<String> { Ok(graph.entity_label(e)?.into_owned()) };
    let mut layers = Vec::new();
    for layer in &found.near.layers {
        let mut attention = Vec::new();
        for &i in &triples {
            let (own, whole) = (subgraph.triples()[i], subgraph.triple(i));
            let (head, tail) = (own.head.index(), own.tail.index());
            let names = [
                label(whole.head)?,
                graph.relation_label(whole.relation)?.into_owned(),
                label(whole.tail)?,
            ];
            let relation = own.relation.0;
            attention.push((
                names,
                layer.attention(tail, head, relation, true),
                layer.attention(head, tail, relation, false),
            ));
        }
        let states: Vec<&[f32]> = std::iter::once(&found.near.question[..])
            .chain(shown.iter().map(|i| layer.state(*i as usize)))
            .collect();
        let mut places = Vec::with_capacity(states.len());
        for (row, at) in plane(&states).into_iter().enumerate() {
            let (name, role) = match row {
                0 => ("the question".to_owned(), Role::Question),
                row => {
                    let own = shown[row - 1];
                    let entity = subgraph.entity(EntityId(own));
                    let role = if answers.contains(&entity) {
                        Role::Answer
                    } else if found.around.topics.contains(&EntityId(own)) {
                        Role::Topic
                    } else if found.candidates.contains(&own) {
                        Role::Candidate
                    } else {
                        Role::Other
                    };
                    (label(entity)?, role)
                }
            };
            places.push(Place { name, at, role });
        }
        layers.push(LayerPicture { attention, places });
    }
    Ok(Explanation { layers })
}
