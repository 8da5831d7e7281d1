//! The graph under Wherefore: loading, a memory-mapped store, SPARQL, neighbourhoods and paths.

mod base;
mod block_sums;
mod changes;
mod dictionary;
mod endpoint;
mod error;
mod expand;
mod file;
mod graph;
mod graph_folder;
mod key;
mod load;
mod manifest;
mod mapped;
mod marks;
mod memory;
pub mod names;
mod pagerank;
mod paths;
pub mod private;
mod shape;
pub mod sparql;
mod store;
mod subgraph;
mod sums;
pub mod toy;
mod varint;
mod verified;
mod write_lock;

pub use base::Verification;
pub use block_sums::{BlockGuard, FileSums};
pub use changes::compact::{CompactReport, compact};
pub use changes::edit::{ChangeReport, ChangeSet};
pub use changes::log::{Action, LogCut};
pub use changes::repair::{DamagedFile, LogReport, LostRecord, RepairReport, repair};
pub use endpoint::{
    Around, Deferred, Engine, LabelReport, Method, RelationSummary, Search, Service, ServiceConfig,
    ServiceLimits, SideSummary, Summary, Trust, Trusted, TrustedServices, index_labels,
};
pub use error::{Error, Result};
pub use expand::{Cut, CutHub, Expanded, Expander, Expansion, expand};
pub use file::FileInfo;
pub use graph::{
    Adjacency, Direction, Edge, EntityId, Graph, Literal, LiteralKind, NameMatch, RelationId, Term,
    Triple, edges_by_relation,
};
pub use load::{
    Format, Input, LEAST_MEMORY, LoadOptions, LoadProgress, LoadReport, LoadStep, Mistake,
    TableOptions, Wide, load,
};
pub use manifest::Counts;
pub use mapped::Mapped;
pub use memory::MemoryGraph;
pub use pagerank::{
    PageRank, RankBudget, RankedSubgraph, Ranker, Ranking, pagerank, pagerank_subgraph,
};
pub use paths::{
    Hop, Path, PathFinder, PathLimits, PathSet, Reached, SimplePaths, Step, ground, reach,
    shortest_paths, shortest_paths_by_pair, simple_paths,
};
pub use store::{Pending, Store};
pub use subgraph::Subgraph;
pub use sums::{SUMS, Sums};
pub use verified::Verified;
