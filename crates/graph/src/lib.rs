//! The graph under Wherefore: loading, a memory-mapped store, SPARQL, neighbourhoods and paths.

mod dictionary;
mod error;
mod graph;
mod key;
mod load;
mod manifest;
mod mapped;
mod memory;
pub mod names;
pub mod sparql;
mod store;
mod subgraph;
pub mod toy;

pub use error::{Error, Result};
pub use graph::{
    Adjacency, Direction, Edge, EntityId, Graph, Literal, LiteralKind, NameMatch, RelationId, Term,
    Triple,
};
pub use load::{
    Format, Input, LEAST_MEMORY, LoadOptions, LoadProgress, LoadReport, LoadStep, Mistake,
    TableOptions, load,
};
pub use manifest::Counts;
pub use memory::MemoryGraph;
pub use store::Store;
pub use subgraph::Subgraph;
