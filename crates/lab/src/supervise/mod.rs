//! Weak supervision: training labels made from questions and answers alone.

mod shortest_paths;
mod votes;

pub use shortest_paths::{Positives, ShortestPaths, SubgraphLabels};
pub use votes::{Votes, votes};
