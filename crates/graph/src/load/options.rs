//! Options and progress of a load.

use std::path::PathBuf;

use super::format::Format;
use super::table::TableOptions;

/// Options of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// The inputs' format; detected by file name or first line if not set.
    pub format: Option<Format>,
    /// Options for tables.
    pub table: TableOptions,
    /// Label predicates, ranked before the well-known ones.
    pub labels: Vec<String>,
    /// Alias predicates, beside the well-known ones.
    pub aliases: Vec<String>,
    /// Tables of (entity, label).
    pub names: Vec<PathBuf>,
    /// The preferred language of labels.
    pub language: String,
    /// Approximate memory limit in bytes.
    pub memory: usize,
    /// Number of worker threads; 0 stands for all cores.
    pub threads: usize,
    /// Maximum number of malformed lines to skip.
    pub max_errors: u64,
    /// Whether an existing graph may be replaced.
    pub replace: bool,
    /// The base of relative IRIs in documents that do not set one.
    pub base: Option<String>,
    /// Maximum bytes of an input after decompression. Set it for untrusted files: a few bytes
    /// can decompress to very many.
    pub max_text: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            format: None,
            table: TableOptions::default(),
            labels: Vec::new(),
            aliases: Vec::new(),
            names: Vec::new(),
            language: "en".into(),
            memory: 4 << 30,
            threads: 0,
            max_errors: u64::MAX,
            replace: false,
            base: None,
            max_text: u64::MAX,
        }
    }
}

/// Minimum of [`LoadOptions::memory`], in bytes; smaller values are raised to it.
pub const LEAST_MEMORY: usize = 1 << 20;

/// The steps of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// Reading and parsing; counted in bytes of the input.
    Reading,
    /// Merging dictionaries.
    Merging,
    /// Sorting triples by head and by tail; counted in triples, twice.
    Sorting,
    /// Choosing labels and sorting names.
    Naming,
}

/// The progress of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadProgress {
    /// The current step.
    pub step: LoadStep,
    /// How much of the step is done.
    pub done: u64,
    /// The total, if known.
    pub total: Option<u64>,
    /// Triples read so far.
    pub triples: u64,
}
