//! Stage one: from words to entities.

mod names;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

use crate::error::Result;
use crate::question::Question;

pub use names::{Names, NamesConfig};

/// A part of the question tied to an entity of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The entity.
    pub entity: EntityId,
    /// The words of the question, or the given topic.
    pub mention: String,
    /// Byte range of the mention in the question; none for a given topic.
    pub span: Option<(usize, usize)>,
    /// Between 0 and 1.
    pub score: f32,
}

/// Ties a question to the graph.
///
/// Topics that came with the question always win. No link at all is legal: the pipeline then
/// abstains and says so.
pub trait Linker: Send + Sync {
    /// The links of the question, best first.
    fn link(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Link>>;
}
