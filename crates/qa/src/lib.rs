//! Question answering over knowledge graphs, with evidence that is checked against the graph.
//!
//! ```text
//! question -> link -> subgraph -> score -> select -> organize -> reason -> answer + evidence -> verify
//! ```

pub mod answer;
mod at_hand;
mod auto;
pub mod confidence;
pub mod config;
pub mod conformal;
mod error;
mod ground;
pub mod index;
pub mod link;
pub mod logic;
pub mod method;
pub mod organize;
mod per_graph;
pub mod phrase;
mod pipeline;
mod question;
mod rationale;
pub mod read;
pub mod reason;
mod relations;
pub mod retrieve;
pub mod select;
mod toml_fault;
pub mod verify;
mod words;

pub use answer::Answer;
pub use config::PipelineConfig;
pub use error::{Error, Result, graph_code};
pub use method::Method;
pub use pipeline::{Observer, Pipeline, Stage};
pub use question::{Carried, Follow, MAX_CARRIED, MAX_QUESTION_BYTES, Question};
pub use read::overview as schema;
pub use wherefore_graph as graph;
pub use wherefore_model as model;
