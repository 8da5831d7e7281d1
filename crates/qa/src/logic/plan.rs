//! A form tied to a graph: names become entities and relations, constants become quantities.
//!
//! - A name is the entities of that identity or label, letter by letter, or else those that
//!   differ in case, accents and punctuation. Several of one name are a set like any other.
//! - A relation is one by identity or label, or else the only one that differs in spelling habits.
//! - A class is whatever a type relation of the graph joins to it ([`TYPE_RELATIONS`]).
//! - A constant below `JOIN` is whatever has the same value; where it is neither number nor time,
//!   it is a name, and its language or datatype is minded where the graph's literals have theirs.
//! - Values are compared as numbers or as times. A constant that is both (`1994`), and whatever is
//!   ranked or aggregated, go by what most of the relation's first [`SAMPLED_VALUES`] values are.
//!   Times cannot be added up or calculated with.

use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, RelationId, Term};

use super::form::{Aggregate, Comparison, Extreme, Operator, Rank};
use super::value::{Moment, Quantity, Sense, Value};
use crate::error::Result;

/// Relations that join a thing to its class, by identity or label.
pub const TYPE_RELATIONS: [&str; 8] = [
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    "http://www.wikidata.org/prop/direct/P31",
    "type.object.type",
    "common.topic.notable_types",
    "instance_of",
    "instance of",
    "is_a",
    "type",
];

/// How many values of a relation are looked at to tell numbers from times.
pub const SAMPLED_VALUES: usize = 256;

/// A form tied to a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(super) root: Root,
    /// Names that the graph does not have.
    pub(super) missing: Vec<String>,
}

/// A relation of the graph, and which way it is read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Way {
    /// None if the graph has no such relation.
    pub(super) relation: Option<RelationId>,
    pub(super) term: Term,
    pub(super) reversed: bool,
}

/// Entities by their ids and terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Members {
    /// Sorted.
    pub(super) ids: Vec<EntityId>,
    /// In the same order; a name where the graph has none.
    pub(super) terms: Vec<Term>,
}

/// What a form stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Root {
    Set(Set),
    /// Never of a [`Domain::Reached`] at its top: it has no thing to start from.
    Number(Measure),
    Any(Set),
    Is(Comparison, Measure, Measure),
    Table(Table),
}

/// Measures and numbers alike: a number is a measure that does not ask what is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Measure {
    Constant(Quantity),
    Path(Vec<Way>, Sense),
    Count(Domain),
    Of(Aggregate, Domain, Box<Measure>),
    Arithmetic(Operator, Box<Measure>, Box<Measure>),
}

/// What is counted or aggregated.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Domain {
    /// What a path leads to from the thing that is measured; of those in a set.
    Reached(Vec<Way>, Option<Box<Set>>),
    Members(Box<Set>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// Of the first column: what the members are.
    pub(super) title: String,
    pub(super) of: Set,
    pub(super) columns: Vec<Column>,
    pub(super) order: Option<(Measure, Extreme)>,
    /// Rows before the first that is given, and how many are given.
    pub(super) slice: Option<(usize, usize)>,
}

/// A column and its title. A path's cells are the entities at its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) measure: Measure,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Set {
    Of(Members),
    /// Whatever any of the relations joins to a member.
    Instances(Vec<Way>, Members),
    Join(Way, Box<Set>),
    And(Vec<Set>),
    Or(Vec<Set>),
    Except(Box<Set>, Box<Set>),
    Best {
        rank: Rank,
        among: Box<Set>,
        by: Measure,
    },
    Compare {
        is: Comparison,
        by: Measure,
        than: Measure,
    },
    /// Begun by `last`, and not ended before `first`.
    At {
        set: Box<Set>,
        start: Option<Way>,
        end: Option<Way>,
        first: Moment,
        last: Moment,
    },
}

/// A part of the plan, by where it lies: the plan does not move while it runs.
pub(super) type Node = usize;

/// The part of the plan.
pub(super) fn node<T>(part: &T) -> Node {
    std::ptr::from_ref(part).addr()
}

impl Plan {
    /// What the graph does not have: `relation …` and `entity …`, each with its name in
    /// backticks.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Whether the answer is a number.
    pub fn counts(&self) -> bool {
        matches!(self.root, Root::Number(_))
    }

    /// The entities that the form names, classes among them.
    pub fn entities(&self) -> Vec<EntityId> {
        let mut found = Vec::new();
        let mut see = |set: &Set| {
            if let Set::Of(members) | Set::Instances(_, members) = set {
                found.extend(&members.ids);
            }
        };
        match &self.root {
            Root::Set(set) | Root::Any(set) => set.walk(&mut see),
            Root::Number(number) => number.walk(&mut see),
            Root::Is(_, a, b) => [a, b].into_iter().for_each(|n| n.walk(&mut see)),
            Root::Table(table) => {
                table.of.walk(&mut see);
                for column in &table.columns {
                    column.measure.walk(&mut see);
                }
                if let Some((by, _)) = &table.order {
                    by.walk(&mut see);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Set {
    /// This set and all within.
    fn walk(&self, see: &mut dyn FnMut(&Set)) {
        see(self);
        match self {
            Set::Of(_) | Set::Instances(..) => {}
            Set::Join(_, of) | Set::At { set: of, .. } => of.walk(see),
            Set::And(all) | Set::Or(all) => all.iter().for_each(|set| set.walk(see)),
            Set::Except(of, not) => [of, not].into_iter().for_each(|set| set.walk(see)),
            Set::Best { among, by, .. } => {
                among.walk(see);
                by.walk(see);
            }
            Set::Compare { by, than, .. } => [by, than].into_iter().for_each(|m| m.walk(see)),
        }
    }

    /// Whether it holds for things that the graph may say nothing of, so that to compute it is to
    /// look at everything: `(lt (HOW_MANY r) 5)` holds for what has none.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Set::Compare { is, by, than } => match (by, than) {
                (Measure::Count(_), Measure::Constant(than)) => {
                    is.holds(Quantity::Number(0.0).order(than))
                }
                _ => [by, than].iter().all(|m| m.is_open() || m.is_closed()),
            },
            Set::And(all) => all.iter().all(Set::is_open),
            Set::Or(all) => all.iter().any(Set::is_open),
            Set::Except(of, _) | Set::At { set: of, .. } => of.is_open(),
            Set::Best { .. } | Set::Of(_) | Set::Instances(..) | Set::Join(..) => false,
        }
    }
}

impl Measure {
    fn walk(&self, see: &mut dyn FnMut(&Set)) {
        match self {
            Measure::Constant(_) | Measure::Path(..) => {}
            Measure::Count(domain) => domain.walk(see),
            Measure::Of(_, domain, by) => {
                domain.walk(see);
                by.walk(see);
            }
            Measure::Arithmetic(_, a, b) => [a, b].into_iter().for_each(|m| m.walk(see)),
        }
    }

    /// As what its values are compared.
    pub(super) fn sense(&self) -> Sense {
        match self {
            Measure::Constant(quantity) => quantity.sense(),
            Measure::Path(_, sense) => *sense,
            Measure::Of(aggregate, _, by) if !aggregate.adds() => by.sense(),
            Measure::Count(_) | Measure::Of(..) | Measure::Arithmetic(..) => Sense::Number,
        }
    }

    /// Whether it is a number: it does not ask what is measured.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Measure::Constant(_) => true,
            Measure::Path(..) => false,
            Measure::Count(domain) | Measure::Of(_, domain, _) => {
                matches!(domain, Domain::Members(_))
            }
            Measure::Arithmetic(_, a, b) => a.is_closed() && b.is_closed(),
        }
    }

    /// Whether things have a value that the graph says nothing of.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Measure::Count(Domain::Reached(..)) => true,
            Measure::Arithmetic(_, a, b) => {
                let may_be = |m: &Measure| m.is_open() || m.is_closed();
                !self.is_closed() && may_be(a) && may_be(b)
            }
            _ => false,
        }
    }
}

impl Domain {
    fn walk(&self, see: &mut dyn FnMut(&Set)) {
        match self {
            Domain::Reached(_, None) => {}
            Domain::Reached(_, Some(set)) | Domain::Members(set) => set.walk(see),
        }
    }
}

/// The relation of this name: by identity or label, or else the only one that differs in case,
/// punctuation, `_` and spaces.
pub fn relation_called(name: &str, graph: &dyn Graph) -> Result<Option<RelationId>> {
    Ok(match relations_called(name, graph)?.as_slice() {
        [one] => Some(*one),
        _ => None,
    })
}

/// All that a name may mean, where it is not one relation's.
pub(super) fn relations_called(name: &str, graph: &dyn Graph) -> Result<Vec<RelationId>> {
    if let Some(found) = graph.relation_named(name)? {
        return Ok(vec![found]);
    }
    let wanted = normalise(name);
    let mut found = Vec::new();
    for id in 0..graph.relation_bound() {
        let relation = RelationId(id as u32);
        if normalise(&graph.relation_label(relation)?) == wanted
            || normalise(&graph.relation_term(relation)?.to_string()) == wanted
        {
            found.push(relation);
        }
    }
    Ok(found)
}

/// The relations of the graph that join a thing to its class.
pub fn type_relations(graph: &dyn Graph) -> Result<Vec<RelationId>> {
    let mut found = Vec::new();
    for name in TYPE_RELATIONS {
        if let Some(relation) = graph.relation_named(name)?
            && !found.contains(&relation)
        {
            found.push(relation);
        }
    }
    Ok(found)
}

/// As what the values of a relation are compared; none where it has no values.
pub fn sense_of(relation: RelationId, graph: &dyn Graph) -> Result<Option<Sense>> {
    sampled_sense(relation, false, graph)
}

pub(super) fn sampled_sense(
    relation: RelationId,
    reversed: bool,
    graph: &dyn Graph,
) -> Result<Option<Sense>> {
    let (mut numbers, mut times, mut only_times) = (0, 0, 0);
    for triple in graph.with_relation(relation)?.take(SAMPLED_VALUES) {
        let triple = triple?;
        let end = if reversed { triple.head } else { triple.tail };
        let value = Value::of(&graph.entity_term(end)?);
        numbers += usize::from(value.number.is_some());
        times += usize::from(value.time.is_some());
        only_times += usize::from(value.number.is_none() && value.time.is_some());
    }
    Ok(match (numbers, times) {
        (0, 0) => None,
        // years alone are numbers until a longer date stands among them
        _ if only_times > 0 && times >= numbers => Some(Sense::Time),
        (0, _) => Some(Sense::Time),
        _ => Some(Sense::Number),
    })
}
