//! Logical forms: S-expressions that stand for sets of entities, numbers, truth values or tables.
//!
//! Gu et al., "Beyond I.I.D.: Three Levels of Generalization for Question Answering on Knowledge
//! Bases" (GrailQA), WWW 2021; AMAR adds `TC`; what has a ∗ is ours:
//!
//! ```text
//! (JOIN r S)        { x : (x, r, y), y ∈ S }        (JOIN (R r) S)    { x : (y, r, x), y ∈ S }
//! (AND S T …)       S ∩ T ∩ …                       (OR S T …) ∗      S ∪ T ∪ …
//! (EXCEPT S T) ∗    S \ T                           (COUNT S)         |S|
//! (ARGMAX S m)      the x ∈ S whose value by m is largest; all of them where several are
//! (ARGMIN S m)      … smallest
//! (TOP S m k) ∗     the k members of largest value, and all that tie with the k-th; BOTTOM alike
//! (NTH S m k) ∗     the members of the k-th largest of the distinct values; NTHLAST alike
//! (lt m N)          { x : some value of x by m is < N }; le, gt, ge, eq ∗, ne ∗ alike
//! (lt m m') ∗       { x : some value of x by m is < some value of x by m' }
//! (TC S r t)        the x ∈ S that hold at the time t: begun by then, and not ended before
//! (ANY S) ∗         whether S has a member          (IS lt N M) ∗     whether N < M
//! (TABLE S m … (ORDER m desc) (SLICE 1 5)) ∗        a row for each x ∈ S, a cell for each m
//! ```
//!
//! m is a [`Measure`] and N a [`Number`]. A relation, or `(JOIN r p)`, a way of several, is a
//! measure. A name below `JOIN` or `OR` is an entity; a name that stands alone below any other
//! operator is a class, and means its instances. An entity as an operand of `AND` is
//! `(OR [Berlin])`, the set of it alone.
//!
//! Departures: `AND` takes two operands or more; `(AND C)` is the instances of the class C where a
//! name alone would be an entity. Numbers, truth values and tables are no sets of
//! entities: they stand only at the root. The reader refuses them elsewhere, and so does
//! [`Plan`](super::Plan).

use std::num::NonZeroU32;

use wherefore_graph::Literal;

use super::measure::{Measure, Number, Than};

/// The deepest nesting that is read or run.
pub const MAX_DEPTH: usize = 32;
/// The most operators, names and literals of a form.
pub const MAX_PARTS: usize = 512;
/// The longest text of a form, in bytes.
pub const MAX_FORM_BYTES: usize = 64 << 10;

/// A logical form.
///
/// ```
/// use wherefore::logic::Form;
/// let text = "(AND (JOIN people.person.gender Male) (JOIN (R people.person.children) [Ada Lovelace]))";
/// let form: Form = text.parse()?;
/// assert_eq!(form.to_string(), text);
/// # Ok::<(), wherefore::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// The entities of this name; below a set operator, the instances of the class.
    Name(String),
    /// A value.
    Constant(Constant),
    /// Whatever is joined by a relation to a member of a set.
    Join(Relation, Box<Form>),
    /// Whatever is in all sets.
    And(Vec<Form>),
    /// Whatever is in any of the sets.
    Or(Vec<Form>),
    /// Whatever is in the first set and not in the second.
    Except(Box<Form>, Box<Form>),
    /// The members of a rank by a measure.
    Best(Rank, Box<Form>, Measure),
    /// Whatever has a value that compares so.
    Compare(Comparison, Measure, Than),
    /// The members that hold at a time.
    At(Box<Form>, Relation, Constant),
    /// A number; only at the root. A constant alone is read as [`Form::Constant`].
    Number(Number),
    /// Whether there is a member; only at the root.
    Any(Box<Form>),
    /// Whether two numbers compare so; only at the root.
    Is(Comparison, Number, Number),
    /// Rows; only at the root.
    Table(Box<Table>),
}

/// A relation, and which way it is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relation {
    /// Its identity or label.
    pub name: String,
    /// `(R name)`: read from tail to head.
    pub reversed: bool,
}

impl Relation {
    /// The relation from head to tail.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reversed: false,
        }
    }

    /// The relation read the other way.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reversed = !self.reversed;
        self
    }
}

/// A value in a form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// `NOW`: the time at which the form is run.
    Now,
    /// A number or date without a datatype: `1994`, `-3.5`, `1995-02-14`.
    Bare(String),
    /// Text, or a value with its datatype.
    Literal(Literal),
}

/// Largest or smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extreme {
    /// `ARGMAX`; `desc` in an order.
    Largest,
    /// `ARGMIN`; `asc` in an order.
    Smallest,
}

/// Which members a ranking gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank {
    /// From which end it counts.
    pub extreme: Extreme,
    /// Which places it gives.
    pub place: Place,
}

/// Places of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// `ARGMAX`, `ARGMIN`: all that are best.
    Best,
    /// `TOP`, `BOTTOM`: so many members, and all that tie with the last of them.
    First(NonZeroU32),
    /// `NTH`, `NTHLAST`: all that have the n-th of the distinct values.
    Nth(NonZeroU32),
}

impl From<Extreme> for Rank {
    fn from(extreme: Extreme) -> Self {
        let place = Place::Best;
        Self { extreme, place }
    }
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// `lt`.
    Less,
    /// `le`.
    AtMost,
    /// `gt`.
    Greater,
    /// `ge`.
    AtLeast,
    /// `eq`.
    Equal,
    /// `ne`.
    NotEqual,
}

/// `TABLE`: a row for each member of a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table {
    /// The set.
    pub of: Form,
    /// What stands beside each member: the entities that a path leads to, or the values of
    /// another measure.
    pub columns: Vec<Measure>,
    /// By what the rows are ordered, and which come first; rows without a value are last.
    pub order: Option<(Measure, Extreme)>,
    /// The first and last row that are given, counted from 1.
    pub slice: Option<(NonZeroU32, NonZeroU32)>,
}

impl Form {
    /// `(JOIN r self)`.
    #[must_use]
    pub fn joined(self, relation: Relation) -> Self {
        Form::Join(relation, Box::new(self))
    }

    /// `(COUNT self)`.
    #[must_use]
    pub fn counted(self) -> Self {
        Form::Number(Number::Count(Box::new(self)))
    }
}
