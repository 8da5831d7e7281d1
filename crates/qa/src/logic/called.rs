//! What entities and relations are called in a form.

use wherefore_graph::{EntityId, Graph, NameMatch, RelationId};

use super::plan::relation_called;
use crate::error::Result;

/// What a relation is called in a form: its identity where that is short, or its label where it
/// means this one alone.
pub fn relation_name(relation: RelationId, graph: &dyn Graph) -> Result<String> {
    let term = graph.relation_term(relation)?.to_string();
    if !term.contains("://") {
        return Ok(term);
    }
    let label = graph.relation_label(relation)?;
    Ok(match relation_called(&label, graph)? {
        Some(found) if found == relation => label.into_owned(),
        _ => term,
    })
}

/// What an entity is called in a form: its label where it means this one alone, else its identity.
pub fn entity_name(entity: EntityId, graph: &dyn Graph) -> Result<String> {
    let label = graph.entity_label(entity)?;
    Ok(
        match graph.entities_named(&label, NameMatch::Exact)?.as_slice() {
            [one] if *one == entity => label.into_owned(),
            _ => graph.entity_term(entity)?.to_string(),
        },
    )
}
