//! One line for each triple, best first: `(head, relation, tail)`.
//!
//! A node without a name is written `?1`, `?2` and so on, the same node always the same way, so
//! that two triples through it stay joined:
//!
//! ```text
//! (Oracle Park, venue record, ?1)
//! (?1, capacity, 41915)
//! ```

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

use super::{Context, ContextLine, Organizer};
use crate::error::Result;
use crate::question::Question;
use crate::select::Selection;

/// Settings of [`TripleLines`]: none yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TripleLinesConfig {}

/// Writes each triple on a line.
#[derive(Clone, Debug, Default)]
pub struct TripleLines;

impl Organizer for TripleLines {
    fn organize(
        &self,
        _question: &Question,
        selection: &Selection,
        graph: &dyn Graph,
    ) -> Result<Context> {
        let mut unnamed = HashMap::new();
        let mut name = |entity: EntityId| -> Result<String> {
            if graph.is_named(entity)? {
                return Ok(graph.entity_label(entity)?.into_owned());
            }
            let next = unnamed.len() + 1;
            Ok(format!("?{}", unnamed.entry(entity).or_insert(next)))
        };
        let mut lines = Vec::with_capacity(selection.triples.len());
        for (i, &(triple, score)) in selection.triples.iter().enumerate() {
            lines.push(ContextLine {
                text: format!(
                    "({}, {}, {})",
                    name(triple.head)?,
                    graph.relation_label(triple.relation)?,
                    name(triple.tail)?
                ),
                path: vec![i],
                score,
            });
        }
        Ok(Context {
            selection: selection.clone(),
            lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;

    #[test]
    fn unnamed_nodes_keep_triples_joined() {
        let graph = MemoryGraph::from_names([
            ("Oracle Park", "venue_record", "m.0seat"),
            ("m.0seat", "capacity", "41915"),
            ("Oracle Park", "owner", "m.0own"),
        ]);
        let selection = Selection {
            triples: graph.triples().map(|t| (t, 1.0)).collect(),
            ..Selection::default()
        };
        let context = TripleLines
            .organize(&Question::new("?"), &selection, &graph)
            .unwrap();
        let lines: Vec<&str> = context.lines.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(
            lines,
            [
                "(Oracle Park, venue record, ?1)",
                "(Oracle Park, owner, ?2)",
                "(?1, capacity, 41915)",
            ]
        );
        assert_eq!(context.lines[2].path, [2]);
    }
}
