//! Is each triple of a saved answer still in the graph, under the names that the answer shows?

use serde::{Deserialize, Serialize};
use wherefore_graph::{Edge, EntityId, Graph, RelationId, Triple};

use super::names::entities_with_id;
use crate::answer::Evidence;
use crate::error::Result;

/// What became of one triple of a saved answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceState {
    /// The graph states it.
    Found,
    /// The graph states it, but head, relation or tail are called otherwise.
    Renamed,
    /// The graph does not state it.
    Gone,
}

/// Looks for the triple from its head, or from its tail where the head has no name to find it by.
/// The triple comes back where the graph states it.
pub(super) fn look_up(
    saved: &Evidence,
    graph: &dyn Graph,
) -> Result<(EvidenceState, Option<Triple>)> {
    let [head_id, relation_id, tail_id] = &saved.ids;
    let Some(relation) = relation_with_id(relation_id, graph)? else {
        return Ok((EvidenceState::Gone, None));
    };
    for head in entities_with_id(head_id, &saved.head, graph)? {
        let edges = graph.outgoing(head)?;
        if let Some(tail) = end_with_id(&edges, relation, tail_id, graph)? {
            return state(saved, head, relation, tail, graph);
        }
    }
    for tail in entities_with_id(tail_id, &saved.tail, graph)? {
        let edges = graph.incoming(tail)?;
        if let Some(head) = end_with_id(&edges, relation, head_id, graph)? {
            return state(saved, head, relation, tail, graph);
        }
    }
    Ok((EvidenceState::Gone, None))
}

/// The relation of this identity; another relation may have it as its label.
pub(super) fn relation_with_id(id: &str, graph: &dyn Graph) -> Result<Option<RelationId>> {
    Ok(match graph.relation_named(id)? {
        Some(found) if graph.relation_term(found)?.to_string() == id => Some(found),
        _ => None,
    })
}

fn state(
    saved: &Evidence,
    head: EntityId,
    relation: RelationId,
    tail: EntityId,
    graph: &dyn Graph,
) -> Result<(EvidenceState, Option<Triple>)> {
    let same = graph.entity_label(head)? == saved.head
        && graph.relation_label(relation)? == saved.relation
        && graph.entity_label(tail)? == saved.tail;
    let triple = Triple {
        head,
        relation,
        tail,
    };
    let state = if same {
        EvidenceState::Found
    } else {
        EvidenceState::Renamed
    };
    Ok((state, Some(triple)))
}

/// Among edges sorted by relation, the end with this identity.
fn end_with_id(
    edges: &[Edge],
    relation: RelationId,
    id: &str,
    graph: &dyn Graph,
) -> Result<Option<EntityId>> {
    let from = edges.partition_point(|e| e.relation < relation);
    for edge in edges[from..].iter().take_while(|e| e.relation == relation) {
        if graph.entity_term(edge.entity)?.to_string() == id {
            return Ok(Some(edge.entity));
        }
    }
    Ok(None)
}
