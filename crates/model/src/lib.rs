//! The door to tensors and language models: encoders from text to vectors, and where their
//! models lie.

pub mod distill;
pub mod encode;
mod error;
pub mod models;

pub use encode::{Embeddings, Encoder};
pub use error::{Error, Result};

// only for its features: see the workspace's Cargo.toml
use gemm as _;
