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
//!
//! # Measures and numbers
//!
//! Sets are ranked, filtered and added up by measures.
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

use std::num::NonZeroU32;

use wherefore_graph::Literal;

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
