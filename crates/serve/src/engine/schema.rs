//! What a graph speaks of, as JSON, computed once for each state of the graph.

use std::sync::{Arc, PoisonError};

use wherefore::schema::overview;

use super::Served;
use crate::problem::Problem;

impl Served {
    /// Classes and relations with counts and examples.
    pub(crate) fn schema(&self) -> Result<Arc<Vec<u8>>, Problem> {
        let graph = self.current()?;
        let identity = graph.identity().map(str::to_owned);
        // others wait: they would compute the same
        let mut kept = self.schema.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((of, made)), Some(identity)) = (kept.as_ref(), &identity)
            && of == identity
        {
            return Ok(Arc::clone(made));
        }
        let made = serde_json::to_vec(&overview(&*graph)?);
        let made = Arc::new(made.expect("texts, numbers and lists are JSON"));
        if let Some(identity) = identity {
            *kept = Some((identity, Arc::clone(&made)));
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::engine::toy_engine;

    #[test]
    fn the_schema_is_computed_once() {
        let engine = toy_engine();
        let toy = engine.graph(None).unwrap();
        let first = toy.schema().unwrap();
        assert!(Arc::ptr_eq(&first, &toy.schema().unwrap()));
        let schema: serde_json::Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(schema["relations"][0]["name"], "located in");
        assert_eq!(schema["relations"][0]["count"], 8);
    }
}
