//! What the words of a question stand for in a reading.

use std::rc::Rc;

use wherefore_graph::{EntityId, Graph, RelationId};

use super::arena::Node;
use super::cat::Cat;
use super::features::{Derivation, Feature};
use super::lang::Op;
use super::schema::Schema;
use super::search::{Reading, Search};
use super::vocabulary::Kind;
use crate::answer::{WordKind, WordMeaning};
use crate::error::Result;
use crate::logic::{Aggregate, Comparison, entity_name};
use crate::words::opened;

/// Some words of a question, by bytes, and what they stand for.
#[derive(Clone, Debug)]
pub(crate) struct Understood {
    from: usize,
    to: usize,
    meaning: Meant,
}

#[derive(Clone, Debug)]
enum Meant {
    /// Things or values of one name.
    Named(Rc<[EntityId]>, Kind),
    /// What was answered before.
    Carried(String),
    Class(EntityId),
    Relation(Vec<RelationId>),
    Number(String),
    Operator(String),
    Unused,
}

impl Understood {
    /// The same words in a text that has other words before them; none where they begin earlier.
    pub(crate) fn moved(mut self, by: isize) -> Option<Self> {
        self.from = self.from.checked_add_signed(by)?;
        self.to = self.to.checked_add_signed(by)?;
        Some(self)
    }

    /// Where the words begin and end, in bytes.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.from, self.to)
    }

    /// As it is told, in code points of the question.
    pub(crate) fn told(&self, question: &str, graph: &dyn Graph) -> Result<WordMeaning> {
        let points = |to: usize| question.get(..to).map_or(0, |text| text.chars().count());
        let (kind, meaning, id) = match &self.meaning {
            Meant::Named(things, kind) => {
                let kind = match kind {
                    Kind::Thing => WordKind::Entity,
                    _ => WordKind::Value,
                };
                let (name, id) = match &things[..] {
                    [] => (String::new(), None),
                    [one] => {
                        let id = graph.entity_term(*one)?.to_string();
                        (graph.entity_label(*one)?.into_owned(), Some(id))
                    }
                    [first, ..] => (graph.entity_label(*first)?.into_owned(), None),
                };
                (kind, name, id)
            }
            Meant::Carried(told) => (WordKind::Entity, told.clone(), None),
            Meant::Class(class) => {
                let id = graph.entity_term(*class)?.to_string();
                let name = opened(&graph.entity_label(*class)?);
                (WordKind::Class, name, Some(id))
            }
            Meant::Relation(all) => {
                let mut names = Vec::with_capacity(all.len());
                for relation in all {
                    names.push(opened(&graph.relation_label(*relation)?));
                }
                let id = match &all[..] {
                    [one] => Some(graph.relation_term(*one)?.to_string()),
                    _ => None,
                };
                (WordKind::Relation, names.join(" of "), id)
            }
            Meant::Number(number) => (WordKind::Value, number.clone(), None),
            Meant::Operator(operator) => (WordKind::Operator, operator.clone(), None),
            Meant::Unused => (WordKind::Unused, String::new(), None),
        };
        Ok(WordMeaning {
            from: points(self.from),
            to: points(self.to),
            meaning,
            kind,
            id,
        })
    }
}

impl Search<'_> {
    /// What the words of a reading stand for, in their order.
    pub(super) fn understood(&self, reading: &Reading) -> Result<Vec<Understood>> {
        let mut leaves = Vec::new();
        leaves_of(&reading.derivation, &mut leaves);
        let mut found = Vec::new();
        for ((from, to), cat) in leaves {
            let bytes = (self.words.all[from].start, self.words.all[to - 1].end);
            if let Some(meaning) = self.meant(&cat)? {
                found.push(Understood {
                    from: bytes.0,
                    to: bytes.1,
                    meaning,
                });
            }
        }
        for (slot, &at) in self.words.slots.iter().enumerate() {
            let word = &self.words.all[at];
            let silent = [Feature::skip_silent, Feature::skip_asking];
            let is_passed = reading.skipped & 1 << slot != 0;
            if is_passed && !word.is_silent && !silent.contains(&self.skip[slot]) {
                found.push(Understood {
                    from: word.start,
                    to: word.end,
                    meaning: Meant::Unused,
                });
            }
        }
        found.sort_by_key(|u| (u.from, u.to));
        found.dedup_by_key(|u| (u.from, u.to));
        Ok(found)
    }

    fn meant(&self, cat: &Cat) -> Result<Option<Meant>> {
        Ok(match cat {
            Cat::Set { node, .. } => match self.arena.node(*node) {
                Node::Ents(all) => {
                    let kind = self.arena.kind(*node);
                    Some(Meant::Named(Rc::clone(all), kind))
                }
                Node::Carried => Some(Meant::Carried(self.carried_names()?.join(", "))),
                Node::Class(class) => {
                    Some(Meant::Class(self.schema.classes[*class as usize].entity))
                }
                Node::Side(relation, _) | Node::Join((relation, _), _) => {
                    Some(Meant::Relation(relations(self.schema, *relation)))
                }
                _ => None,
            },
            Cat::Relation(relation) => Some(Meant::Relation(relations(self.schema, *relation))),
            Cat::Chain(all) => Some(Meant::Relation(all.iter().map(|step| step.0).collect())),
            Cat::Number(node) => match self.arena.node(*node) {
                Node::Const(bits) => Some(Meant::Number(f64::from_bits(*bits).to_string())),
                _ => None,
            },
            Cat::Range(low, high) => {
                let number = |node| match self.arena.node(node) {
                    Node::Const(bits) => f64::from_bits(*bits).to_string(),
                    _ => String::new(),
                };
                let range = format!("{} to {}", number(*low), number(*high));
                Some(Meant::Number(range))
            }
            Cat::Op(op) | Cat::Superlative(op, _) => Some(Meant::Operator(said(*op))),
            Cat::Ordered(_, first) => Some(Meant::Operator(said(Op::Order(*first)))),
            _ => None,
        })
    }

    /// The names of what was answered before, the first of them.
    fn carried_names(&self) -> Result<Vec<String>> {
        let members = self.arena.carried_members();
        let some = members.iter().take(3);
        some.map(|&member| entity_name(member, self.graph))
            .collect()
    }
}

/// A relation as the graph has it: both steps of one through a node that nobody names.
fn relations(schema: &Schema, relation: RelationId) -> Vec<RelationId> {
    let (first, second) = schema.steps((relation, true));
    std::iter::once(first)
        .chain(second)
        .map(|step| step.0)
        .collect()
}

fn leaves_of(derivation: &Derivation, found: &mut Vec<((usize, usize), Cat)>) {
    found.extend(derivation.anchor.iter().cloned());
    for part in derivation.parts.iter().flatten() {
        leaves_of(part, found);
    }
}

/// What an operator does, in plain English.
fn said(op: Op) -> String {
    let compared = |is| match is {
        Comparison::Less => "less than",
        Comparison::AtMost => "at most",
        Comparison::Greater => "more than",
        Comparison::AtLeast => "at least",
        Comparison::Equal => "equal to",
        Comparison::NotEqual => "other than",
    };
    match op {
        Op::Count => "how many",
        Op::Aggregate(Aggregate::Sum) => "total",
        Op::Aggregate(Aggregate::Average) => "average",
        Op::Aggregate(Aggregate::Largest) => "largest",
        Op::Aggregate(Aggregate::Smallest) => "smallest",
        Op::Aggregate(Aggregate::Only) => "the",
        Op::And => "and",
        Op::Or => "or",
        Op::Not => "not",
        Op::Except => "other than",
        Op::Difference => "difference",
        Op::Percentage => "share",
        Op::Best(true, _) | Op::Extreme(true) => "largest",
        Op::Best(false, _) | Op::Extreme(false) => "smallest",
        Op::More(true, _) => "more than",
        Op::More(false, _) => "less than",
        Op::Compare(is) => compared(is),
        Op::How(_) => "how much",
        Op::Ordinal(n) => return format!("number {n}"),
        Op::Order(true) => "largest first",
        Op::Order(false) => "smallest first",
        Op::Rank => "in order",
        Op::Share => "the same",
        Op::Event => "time",
        Op::Each => "for each",
        Op::Where => "place",
        Op::When => "time",
        Op::Zero(_) => "nothing",
        Op::Idle => "",
    }
    .to_owned()
}
