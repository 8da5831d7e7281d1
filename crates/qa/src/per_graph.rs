//! What was computed for one graph, kept until another graph comes.

use std::sync::{Arc, Mutex, PoisonError};

use wherefore_graph::{Graph, Service};

use crate::error::Result;

/// Something derived from a graph. Graphs without an identity (small ones, made for a question)
/// get theirs made anew.
#[derive(Debug)]
pub(crate) struct PerGraph<T> {
    kept: Mutex<Option<(String, Arc<T>)>>,
}

impl<T> Default for PerGraph<T> {
    fn default() -> Self {
        Self {
            kept: Mutex::new(None),
        }
    }
}

impl<T> PerGraph<T> {
    /// What is kept for this graph, or what `make` makes of it. Others wait while it is made. What a
    /// service is asked for it counts for no question.
    pub(crate) fn get(
        &self,
        graph: &dyn Graph,
        make: impl FnOnce(&dyn Graph) -> Result<T>,
    ) -> Result<Arc<T>> {
        let Some(identity) = graph.identity() else {
            return make(graph).map(Arc::new);
        };
        // what is inside is replaced whole, so a panic elsewhere leaves it sound
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, value)) = kept.as_ref()
            && of == identity
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(match graph.service() {
            Some(service) => service.outside_budget(|service: &Service| make(service))?,
            None => make(graph)?,
        });
        *kept = Some((identity.to_owned(), Arc::clone(&value)));
        Ok(value)
    }
}
