//! The door to tensors and language models: encoders from text to vectors, and where their
//! models lie; networks over graphs, how they are trained and kept.

pub mod amar;
pub mod checkpoint;
pub mod distance_mlp;
pub mod distill;
pub mod encode;
mod error;
pub mod gnn2r;
pub mod language;
pub mod models;
pub mod optimise;
pub mod pna;
pub mod qr_gat;
mod random;
pub mod relation_pairs;
pub mod relation_plan;
pub mod relations;
pub mod scoring;
pub mod tensor;
pub mod tuned;
pub mod vector;

pub use encode::{Embeddings, Encoder};
pub use error::{Error, Result};
pub use language::LanguageModel;
pub use random::Random;

// only for its features: see the workspace's Cargo.toml
use gemm as _;
