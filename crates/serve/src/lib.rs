//! Wherefore, served: a web page, an HTTP API, an OpenAI-compatible door, and MCP.
//!
//! The only async code of the workspace. The engine is sync and shared by all threads; requests
//! reach it through a bounded pool.
//!
//! ```no_run
//! use std::sync::Arc;
//! use wherefore_serve::{ServeConfig, Server};
//! let config = ServeConfig::from_toml("[graphs.toy]\npath = \"@toy\"")?;
//! let server = Server::open(config, Arc::new(|line| eprintln!("{line}")))?;
//! server.run()?;
//! # Ok::<(), wherefore_serve::Error>(())
//! ```

mod api;
mod app;
mod config;
mod connections;
mod engine;
mod error;
mod exchange;
mod feedback;
mod guard;
mod keys;
mod loads;
mod log;
mod mcp;
mod metrics;
mod openai;
mod page;
mod pool;
mod problem;
mod runs;
mod server;
mod stream;
mod throttle;
mod watch;

pub use config::{GraphConfig, KeyConfig, KeyGraphs, Limits, MethodConfig, Scope, ServeConfig};
pub use error::{Error, Result};
pub use keys::new_key;
pub use log::Log;
pub use problem::Problem;
pub use server::{Server, Stop, speak_mcp};
