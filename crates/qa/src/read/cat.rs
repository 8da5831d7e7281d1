//! The categories of the search: what some words of a question may be.

use std::rc::Rc;

use wherefore_graph::RelationId;

use super::arena::{Id, Measure, Ranked};
use super::lang::Op;
use super::vocabulary::Step;
use crate::logic::{Aggregate, Comparison};

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cat {
    /// Things or values.
    Set {
        node: Id,
        /// The two parts of `X and Y`.
        pair: Option<(Id, Id)>,
        /// A relation of these things to something that is not said yet: `rivers that run through`.
        open: Option<RelationId>,
    },
    Relation(RelationId),
    /// `grandmother`.
    Chain(Rc<[Step]>),
    Number(Id),
    Op(Op),
    /// `longest`, `second longest`.
    Superlative(Op, Ranked),
    /// `highest population`.
    Top(bool, Measure, Ranked),
    /// `most rivers`.
    TopCount {
        greatest: bool,
        of: Id,
        via: Option<RelationId>,
        ranked: Ranked,
    },
    /// `population above 100`.
    Filter(Measure, Comparison, Id),
    /// `longer than X`: a set's own value, or a number.
    FilterDegree {
        greater: bool,
        degree: u8,
        than: Id,
        is_number: bool,
    },
    /// `more than 100`.
    Than(Comparison, Id),
    /// `more people than`.
    ThanRelation(Comparison, RelationId),
    /// `more than Mila`, `before the mint`: what these have of the same.
    ThanOf(Comparison, Id),
    /// `above the average age`.
    ThanAverage(Comparison, Aggregate, RelationId),
    /// `at least 3 rivers`.
    CountThan(Comparison, Id, Id, Option<RelationId>),
    Not(Id),
    /// `except X`.
    Except(Id),
    /// `how much longer`, and then of what.
    Apart(bool, u8, Option<Id>),
    /// `how much more`, and then by what of whom: `does the Lodge cost`.
    MoreOf(bool, Option<(RelationId, Id)>),
    /// `difference in population`.
    Difference(RelationId),
    NotRelation(RelationId),
    NotFilter(Measure, Comparison, Id),
    /// `and X`, `or X`.
    With(bool, Id),
    /// `or after 2010`: whether it is `or`.
    WithThan(bool, Comparison, Id),
    /// `share an actor with`.
    Sharing(RelationId),
    /// `average age`.
    Aggregated(Aggregate, RelationId),
    /// `for each doctor`, `each doctor treats`.
    Each(Id, Option<RelationId>),
    /// `rivers flow through each country`: what is counted, of what, and by what.
    CountedEach(Id, Id, RelationId),
    /// `number of neighbours`, of each.
    Counted(RelationId),
    /// `in descending order of age`: by what, where that is said.
    Ordered(Option<Measure>, bool),
    /// `by number of concerts`.
    OrderedCount(Id, bool),
    /// `the capital and the area`.
    Columns(Rc<[RelationId]>),
    /// `and the area`.
    WithColumn(RelationId),
    /// `between 3 and 5`.
    Range(Id, Id),
    /// `population between 3 and 5`.
    FilterRange(Measure, Id, Id),
    /// `older than average`.
    ThanUsual {
        greater: bool,
        degree: u8,
        aggregate: Aggregate,
    },
}

impl Cat {
    pub(super) fn than_usual(greater: bool, degree: u8, aggregate: Aggregate) -> Self {
        Cat::ThanUsual {
            greater,
            degree,
            aggregate,
        }
    }

    pub(super) fn set(node: Id) -> Self {
        Cat::Set {
            node,
            pair: None,
            open: None,
        }
    }
}
