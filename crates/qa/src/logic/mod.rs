//! Logical forms: questions as expressions that run on the graph.

pub mod aspects;
mod bind;
mod called;
pub mod decode;
mod english;
mod evaluate;
mod evidence;
mod form;
mod measure;
mod nouns;
mod parse;
mod parts;
mod pieces;
mod plan;
mod print;
pub mod repair;
mod run;
mod sparql;
mod standard;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use called::{entity_name, relation_name};
pub use form::{
    Comparison, Constant, Extreme, Form, MAX_DEPTH, MAX_FORM_BYTES, MAX_PARTS, Place, Rank,
    Relation, Table,
};
pub use measure::{Aggregate, Measure, Number, Operator, Than};
pub use plan::{Plan, SAMPLED_VALUES, TYPE_RELATIONS, relation_called, sense_of, type_relations};
pub use print::{Notation, bracketed_name, written_name};
pub use run::{Outcome, RunLimits, Runner, run};
pub use sparql::MAX_SPARQL_BYTES;
pub use standard::standard_query;
pub use table::{Cell, Rows};
pub(crate) use value::days_in_month;
pub use value::{Moment, Quantity, Sense, Value};
