//! What a service counted of the graph that it holds.

use wherefore_graph::{Graph, RelationId, Service, Summary};

use crate::error::Result;
use crate::logic::Moment;

/// A service and what it counted. Numbers that come from elsewhere may be of any size.
pub(super) struct Counted<'g> {
    pub(super) graph: &'g dyn Graph,
    pub(super) service: &'g Service,
    pub(super) summary: Summary,
}

impl<'g> Counted<'g> {
    /// None where no service holds the graph.
    pub(super) fn of(graph: &'g dyn Graph, typed_by: &[RelationId]) -> Result<Option<Self>> {
        let Some(service) = graph.service() else {
            return Ok(None);
        };
        let now = Moment::now().to_string();
        let today = now.get(..10).unwrap_or_default();
        let summary = service.summary(typed_by, today)?;
        Ok(Some(Self {
            graph,
            service,
            summary,
        }))
    }
}
