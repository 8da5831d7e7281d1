//! The toy graph: twenty facts about two baseball clubs, small enough to check by hand.
//!
//! Tests all over the workspace use it, and `@toy` on the command line.

use crate::memory::MemoryGraph;

/// The facts, as (head, relation, tail). `m.0seat` is a node without a name of its own that
/// joins a stadium to its city and its seats, as Freebase does.
pub const FACTS: [(&str, &str, &str); 20] = [
    ("Lou Seal", "mascot_of", "San Francisco Giants"),
    ("San Francisco Giants", "plays_in", "Oracle Park"),
    ("San Francisco Giants", "located_in", "San Francisco"),
    ("San Francisco Giants", "won", "World Series 2010"),
    ("San Francisco Giants", "won", "World Series 2012"),
    ("San Francisco Giants", "won", "World Series 2014"),
    ("San Francisco Giants", "coached_by", "Bruce Bochy"),
    ("Oracle Park", "located_in", "San Francisco"),
    ("Oracle Park", "venue_record", "m.0seat"),
    ("m.0seat", "capacity", "41915"),
    ("Kansas City Royals", "won", "World Series 2015"),
    ("Kansas City Royals", "lost", "World Series 2014"),
    ("Kansas City Royals", "located_in", "Kansas City"),
    ("Sluggerrr", "mascot_of", "Kansas City Royals"),
    ("Bruce Bochy", "born_in", "Landes de Bussac"),
    ("Landes de Bussac", "located_in", "France"),
    ("San Francisco", "located_in", "California"),
    ("Kansas City", "located_in", "Missouri"),
    ("California", "located_in", "United States"),
    ("Missouri", "located_in", "United States"),
];

/// The toy graph in memory.
pub fn graph() -> MemoryGraph {
    MemoryGraph::from_names(FACTS)
}
