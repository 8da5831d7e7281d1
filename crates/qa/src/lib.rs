//! Question answering over knowledge graphs, with evidence that is checked against the graph.
//!
//! ```text
//! question -> link -> subgraph -> score -> select -> organize -> reason -> answer + evidence -> verify
//! ```

pub mod answer;
mod error;
pub mod link;
pub mod organize;
mod question;
pub mod reason;
pub mod retrieve;
pub mod select;

pub use answer::Answer;
pub use error::{Error, Result};
pub use question::Question;
pub use wherefore_graph as graph;
