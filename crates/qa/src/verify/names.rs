//! Is everything called what the answer says? A name is checked against the identity beside it.

use wherefore_graph::{EntityId, Graph, NameMatch};

use crate::answer::Evidence;
use crate::error::Result;

/// Names of a saved answer, looked up in the graph.
pub(super) struct Names<'a> {
    graph: &'a dyn Graph,
    /// Triples that the graph states under these names.
    found: Vec<&'a Evidence>,
}

impl<'a> Names<'a> {
    pub(super) fn new(graph: &'a dyn Graph, found: Vec<&'a Evidence>) -> Self {
        Self { graph, found }
    }

    /// Why the entity of this identity is not called so.
    pub(super) fn objection(&self, id: &str, name: &str) -> Result<Option<String>> {
        let label = match entities_with_id(id, name, self.graph)?.first() {
            Some(&entity) => self.graph.entity_label(entity)?.into_owned(),
            // literals and blank nodes are not filed under their identity
            None => match self.in_evidence(id) {
                Some(label) => label.to_owned(),
                None => return Ok(Some(format!("the graph has no `{id}`"))),
            },
        };
        Ok((label != name).then(|| format!("the graph calls it `{label}`")))
    }

    fn in_evidence(&self, id: &str) -> Option<&str> {
        self.found.iter().find_map(|e| {
            let [head, _, tail] = &e.ids;
            [(head, &e.head), (tail, &e.tail)]
                .into_iter()
                .find_map(|(of, label)| (of == id).then_some(label.as_str()))
        })
    }
}

/// The entities of this identity. What is not filed under its identity, such as a literal, is
/// looked for by its name.
pub(crate) fn entities_with_id(id: &str, name: &str, graph: &dyn Graph) -> Result<Vec<EntityId>> {
    let mut found = Vec::new();
    for text in [id, name] {
        for entity in graph.entities_named(text, NameMatch::Exact)? {
            if graph.entity_term(entity)?.to_string() == id {
                found.push(entity);
            }
        }
        if !found.is_empty() || name == id {
            break;
        }
    }
    Ok(found)
}
