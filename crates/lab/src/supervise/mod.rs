//! Weak supervision: training labels made from questions and answers alone.

mod shortest_paths;

pub use shortest_paths::{Positives, ShortestPaths, SubgraphLabels};
