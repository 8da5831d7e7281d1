//! Logical forms: questions as expressions that run on the graph.

pub mod aspects;
mod bind;
mod called;
pub mod decode;
mod english;
mod evaluate;
mod evidence;
mod form;
mod nouns;
mod parse;
mod parts;
mod pieces;
mod plan;
mod print;
pub mod repair;
mod rows;
mod run;
mod sparql;
mod standard;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use called::{entity_name, relation_name};
pub use form::{
    Aggregate, Comparison, Constant, Extreme, Form, MAX_DEPTH, MAX_FORM_BYTES, MAX_PARTS, Measure,
    Number, Operator, Place, Rank, Relation, Table, Than,
};
pub use plan::{Plan, SAMPLED_VALUES, TYPE_RELATIONS, relation_called, sense_of, type_relations};
pub use print::{Notation, bracketed_name, written_name};
pub use rows::{Cell, Rows};
pub use run::{Outcome, RunLimits, Runner, run};
pub use sparql::MAX_SPARQL_BYTES;
pub use standard::standard_query;
pub(crate) use value::days_in_month;
pub use value::{Moment, Quantity, Sense, Value};
