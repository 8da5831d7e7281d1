//! Measures and numbers: what sets are ranked, filtered and added up by.
//!
//! A measure m takes a thing x to its values, which may be none or several; a number N is one
//! value or none:
//!
//! ```text
//! r, (JOIN r p)       the values at the end of a path p       HOW_MANY p, HOW_MANY p S
//! (SUM p m)           Σ m(y) over the y that p leads to       how many y p leads to [and are in S]
//! (ADD m m')          a + b for all a ∈ m(x), b ∈ m'(x); a constant may stand for either
//! (COUNT S)           |S|
//! (SUM S m)           Σ m(x) over x ∈ S
//! (ADD N N')          N + N'
//! ```
//!
//! `AVG`, `MAX`, `MIN` and `THE` stand where `SUM` does, `SUB`, `MUL` and `DIV` where `ADD` does.
//! Aggregates are over distinct pairs of thing and value; `THE` is the value where there is only
//! one. Of nothing, `HOW_MANY` and `COUNT` are 0 and all others have no value. What is no number is
//! passed over, a division by zero and whatever is too large for a number have no value.
//!
//! Numbers are `f64`, as SPARQL's `xsd:double`: whole numbers are exact up to 2⁵³. They are shown
//! with at most 15 significant digits, so that `0.1 + 0.2` is `0.3`.
//!
//! The second place of a comparison takes both: `(gt m (AVG country area))` is a number there, as
//! is whatever reads as one; `(gt m (ITS (AVG country area)))` says that it is a measure.

use super::form::{Constant, Form, Relation};

/// A function from a thing to its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// The values at the end of a path; of one relation at least.
    Path(Vec<Relation>),
    /// How many distinct things a path leads to; of those in a set, where one is given.
    HowMany(Vec<Relation>, Option<Box<Form>>),
    /// An aggregate over what a path leads to.
    Over(Aggregate, Vec<Relation>, Box<Measure>),
    /// Two measures of the same thing, calculated together.
    Arithmetic(Operator, Box<Measure>, Box<Measure>),
    /// A constant; only as an operand of arithmetic.
    Constant(Constant),
}

/// A number, or a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Number {
    /// As it stands.
    Constant(Constant),
    /// How many members a set has.
    Count(Box<Form>),
    /// An aggregate over the members of a set.
    Of(Aggregate, Box<Form>, Measure),
    /// Two numbers, calculated together.
    Arithmetic(Operator, Box<Number>, Box<Number>),
}

/// What a measure is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Than {
    /// A number.
    Number(Number),
    /// Another measure of the same thing.
    Measure(Measure),
}

impl Than {
    /// Whether it is the number 1.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Than::Number(Number::Constant(Constant::Bare(text))) if text == "1")
    }
}

/// Many values made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aggregate {
    /// `SUM`.
    Sum,
    /// `AVG`.
    Average,
    /// `MAX`.
    Largest,
    /// `MIN`.
    Smallest,
    /// `THE`: the value, where there is only one.
    Only,
}

/// Two values made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// `ADD`.
    Add,
    /// `SUB`.
    Subtract,
    /// `MUL`.
    Multiply,
    /// `DIV`.
    Divide,
}

impl Aggregate {
    /// All of them.
    pub const ALL: [Aggregate; 5] = [
        Aggregate::Sum,
        Aggregate::Average,
        Aggregate::Largest,
        Aggregate::Smallest,
        Aggregate::Only,
    ];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Aggregate::Sum => "SUM",
            Aggregate::Average => "AVG",
            Aggregate::Largest => "MAX",
            Aggregate::Smallest => "MIN",
            Aggregate::Only => "THE",
        }
    }

    /// Whether it adds values up, which times cannot be.
    pub fn adds(self) -> bool {
        matches!(self, Aggregate::Sum | Aggregate::Average)
    }
}

impl Operator {
    /// All of them.
    pub const ALL: [Operator; 4] = [
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
    ];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Operator::Add => "ADD",
            Operator::Subtract => "SUB",
            Operator::Multiply => "MUL",
            Operator::Divide => "DIV",
        }
    }

    /// The result; none where it is no finite number.
    pub fn of(self, a: f64, b: f64) -> Option<f64> {
        let result = match self {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
        };
        // no negative zero: it is equal to zero, and SPARQL tells them apart
        result.is_finite().then_some(result + 0.0)
    }
}

impl Measure {
    /// Whether it would be read as a number where both may stand: an aggregate whose path can be
    /// a set, and what is calculated from such and constants alone.
    pub(super) fn reads_as_number(&self) -> bool {
        match self {
            Measure::Path(_) | Measure::HowMany(..) => false,
            Measure::Over(_, path, _) => path.last().is_some_and(|last| !last.reversed),
            Measure::Arithmetic(_, a, b) => a.reads_as_number() && b.reads_as_number(),
            Measure::Constant(_) => true,
        }
    }
}

impl From<Vec<Relation>> for Measure {
    fn from(path: Vec<Relation>) -> Self {
        Measure::Path(path)
    }
}

impl From<Constant> for Than {
    fn from(constant: Constant) -> Self {
        Than::Number(Number::Constant(constant))
    }
}
