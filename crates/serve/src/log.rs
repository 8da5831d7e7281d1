//! Where the lines of the log go.

use std::sync::Arc;

/// Takes the lines of the log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;
