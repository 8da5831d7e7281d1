//! The graph under Wherefore: loading, a memory-mapped store, SPARQL, neighbourhoods and paths.

mod error;
mod graph;
mod memory;
pub mod names;
mod subgraph;
pub mod toy;

pub use error::{Error, Result};
pub use graph::{
    Adjacency, Direction, Edge, EntityId, Graph, Literal, LiteralKind, NameMatch, RelationId, Term,
    Triple,
};
pub use memory::MemoryGraph;
pub use subgraph::Subgraph;
