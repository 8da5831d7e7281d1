//! Weak supervision: training labels made from questions and answers alone.

mod relation_paths;
mod shortest_paths;
mod votes;

pub use relation_paths::{Ground, RelationPaths, whole};
pub use shortest_paths::{Positives, ShortestPaths, SubgraphLabels};
pub use votes::{Votes, votes};
