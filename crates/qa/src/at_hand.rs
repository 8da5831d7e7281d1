//! Work over a graph that a service holds: rows that it needs are fetched together.

use wherefore_graph::Graph;

use crate::error::Result;

/// Rounds after which each row is fetched when it is read.
const ROUNDS: usize = 12;

/// Does some work. Where a service holds the graph, it is done with what is at hand, all that was
/// missed is fetched at once, and it is done again until nothing is missed.
pub(crate) fn with_rows_at_hand<T>(
    graph: &dyn Graph,
    mut work: impl FnMut(&dyn Graph) -> Result<T>,
) -> Result<T> {
    if let Some(service) = graph.service() {
        let at_hand = service.deferred();
        for _ in 0..ROUNDS {
            let done = work(&at_hand)?;
            if !at_hand.fetch()? {
                return Ok(done);
            }
        }
    }
    work(graph)
}
