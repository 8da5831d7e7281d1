//! A form tied to a graph: names become entities and relations, constants become quantities.
//!
//! - A name is the entities of that identity or label, letter by letter, or else those that
//!   differ in case, accents and punctuation. Several of one name are a set like any other.
//! - A relation is one by identity or label, or else the only one that differs in spelling habits.
//! - A class is whatever a type relation of the graph joins to it ([`TYPE_RELATIONS`]).
//! - A constant below `JOIN` is whatever has the same value; where it is neither number nor time,
//!   it is a name, and its language or datatype is minded where the graph's literals have theirs.
//! - Values are compared as numbers or as times. A constant that is both (`1994`) and `ARGMAX`
//!   and `ARGMIN`, which have none, go by what most of the relation's first
//!   [`SAMPLED_VALUES`] values are.

use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, Literal, LiteralKind, NameMatch, RelationId, Term};

use super::form::{Comparison, Constant, Extreme, Form, Relation};
use super::value::{Moment, Quantity, Sense, Value, XSD};
use crate::error::{Error, Result};

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

/// What relations of a beginning and of an end are called; the last part of their names.
const PERIODS: [(&str, &str); 12] = [
    ("from", "to"),
    ("from_date", "to_date"),
    ("start_date", "end_date"),
    ("start_time", "end_time"),
    ("start date", "end date"),
    ("start time", "end time"),
    ("startDate", "endDate"),
    ("startTime", "endTime"),
    ("start", "end"),
    ("since", "until"),
    ("P580", "P582"),
    ("begin", "end"),
];

/// A form tied to a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The set.
    pub(super) set: Set,
    /// Whether its size is asked for.
    pub(super) count: bool,
    /// Names that the graph does not have.
    missing: Vec<String>,
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

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Test {
    Equal,
    Is(Comparison),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Set {
    Of(Members),
    /// Whatever any of the relations joins to a member.
    Instances(Vec<Way>, Members),
    Join(Way, Box<Set>),
    And(Vec<Set>),
    Or(Vec<Set>),
    Best {
        extreme: Extreme,
        among: Box<Set>,
        by: Vec<Way>,
        sense: Sense,
    },
    Compare {
        test: Test,
        by: Vec<Way>,
        than: Quantity,
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

impl Plan {
    /// Ties a form to a graph. Names that the graph does not have are kept: the plan can be
    /// written as SPARQL, and to run it is an error that tells them.
    pub fn new(form: &Form, graph: &dyn Graph, now: Moment) -> Result<Self> {
        let mut binder = Binder {
            graph,
            now,
            missing: Vec::new(),
        };
        let (count, form) = match form {
            Form::Count(of) => (true, &**of),
            other => (false, other),
        };
        let set = if count {
            binder.operand(form)?
        } else {
            binder.set(form)?
        };
        Ok(Self {
            set,
            count,
            missing: binder.missing,
        })
    }

    /// What the graph does not have: `relation …` and `entity …`, each with its name in
    /// backticks.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Whether the answer is a number: the form is a `COUNT`.
    pub fn counts(&self) -> bool {
        self.count
    }

    /// The entities that the form names, classes among them.
    pub fn entities(&self) -> Vec<EntityId> {
        fn collect(set: &Set, found: &mut Vec<EntityId>) {
            match set {
                Set::Of(members) | Set::Instances(_, members) => found.extend(&members.ids),
                Set::Join(_, of) => collect(of, found),
                Set::And(all) | Set::Or(all) => all.iter().for_each(|s| collect(s, found)),
                Set::Best { among, .. } => collect(among, found),
                Set::At { set, .. } => collect(set, found),
                Set::Compare { .. } => {}
            }
        }
        let mut found = Vec::new();
        collect(&self.set, &mut found);
        found.sort_unstable();
        found.dedup();
        found
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
fn relations_called(name: &str, graph: &dyn Graph) -> Result<Vec<RelationId>> {
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

fn sampled_sense(relation: RelationId, reversed: bool, graph: &dyn Graph) -> Result<Option<Sense>> {
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

struct Binder<'a> {
    graph: &'a dyn Graph,
    now: Moment,
    missing: Vec<String>,
}

impl Binder<'_> {
    fn set(&mut self, form: &Form) -> Result<Set> {
        Ok(match form {
            Form::Name(name) => Set::Of(self.members(name)?),
            Form::Constant(constant) => Set::Of(self.constant_members(constant)?),
            Form::Join(relation, of) => {
                let way = self.way(relation)?;
                match &**of {
                    Form::Constant(constant) if !relation.reversed => self.equal(way, constant)?,
                    of => Set::Join(way, Box::new(self.set(of)?)),
                }
            }
            Form::And(all) => Set::And(
                all.iter()
                    .map(|operand| self.operand(operand))
                    .collect::<Result<_>>()?,
            ),
            Form::Or(all) => Set::Or(
                all.iter()
                    .map(|operand| self.set(operand))
                    .collect::<Result<_>>()?,
            ),
            Form::Count(_) => {
                return Err(Error::FormSyntax {
                    at: 1,
                    reason: "`COUNT` stands inside a form, and a number is no set".into(),
                });
            }
            Form::Best(extreme, of, by) => {
                let among = Box::new(self.operand(of)?);
                let by = self.ways(by)?;
                let sense = self.sense(&by)?.unwrap_or(Sense::Number);
                Set::Best {
                    extreme: *extreme,
                    among,
                    by,
                    sense,
                }
            }
            Form::Compare(is, by, than) => {
                let by = self.ways(by)?;
                let than = self.quantity(than, &by)?;
                Set::Compare {
                    test: Test::Is(*is),
                    by,
                    than,
                }
            }
            Form::At(of, relation, time) => {
                let set = Box::new(self.operand(of)?);
                let (start, end) = self.period(relation)?;
                let value = time.value(self.now).time;
                let moment = value.ok_or_else(|| Error::FormValue {
                    value: time.to_string(),
                    wanted: "a date",
                })?;
                Set::At {
                    set,
                    start,
                    end,
                    first: moment,
                    last: moment.last(),
                }
            }
        })
    }

    /// A form below a set operator, where a name is a class.
    fn operand(&mut self, form: &Form) -> Result<Set> {
        let Form::Name(name) = form else {
            return self.set(form);
        };
        let members = self.members(name)?;
        let mut ways = Vec::new();
        for relation in type_relations(self.graph)? {
            ways.push(Way {
                relation: Some(relation),
                term: self.graph.relation_term(relation)?,
                reversed: false,
            });
        }
        if ways.is_empty() {
            self.miss("relation", "type");
            ways.push(Way {
                relation: None,
                term: Term::Iri(TYPE_RELATIONS[0].into()),
                reversed: false,
            });
        }
        Ok(Set::Instances(ways, members))
    }

    fn miss(&mut self, what: &str, name: &str) {
        let told = format!("{what} `{name}`");
        if !self.missing.contains(&told) {
            self.missing.push(told);
        }
    }

    /// Reads on from `the graph has no`.
    fn miss_of_several(&mut self, name: &str, several: &[RelationId]) -> Result<()> {
        const TOLD: usize = 3;
        let mut terms = Vec::new();
        for &relation in several.iter().take(TOLD) {
            terms.push(format!("`[{}]`", self.graph.relation_term(relation)?));
        }
        let more = if several.len() > TOLD { ", …" } else { "" };
        let told = format!(
            "single relation `{name}` but {}: write {}{more}",
            several.len(),
            terms.join(" or ")
        );
        if !self.missing.contains(&told) {
            self.missing.push(told);
        }
        Ok(())
    }

    fn members(&mut self, name: &str) -> Result<Members> {
        let mut ids = self.graph.entities_named(name, NameMatch::Exact)?;
        if ids.is_empty() {
            ids = self.graph.entities_named(name, NameMatch::Normalised)?;
        }
        if ids.is_empty() {
            self.miss("entity", name);
            return Ok(Members {
                ids,
                terms: vec![Term::Name(name.to_owned())],
            });
        }
        let mut members = Members::default();
        for id in ids {
            let term = self.graph.entity_term(id)?;
            // a blank node's label means nothing outside its file
            if !matches!(term, Term::Blank(_)) {
                members.ids.push(id);
                members.terms.push(term);
            }
        }
        Ok(members)
    }

    fn constant_members(&mut self, constant: &Constant) -> Result<Members> {
        match constant {
            Constant::Now => Err(Error::FormValue {
                value: "NOW".into(),
                wanted: "an entity",
            }),
            Constant::Bare(text) => self.members(text),
            Constant::Literal(literal) => self.literal_members(literal),
        }
    }

    /// What a literal is called. A language, or a datatype that is not that of text, means itself
    /// alone where the graph has it, and never another.
    fn literal_members(&mut self, literal: &Literal) -> Result<Members> {
        let is_text = |kind: &LiteralKind| match kind {
            LiteralKind::Plain => true,
            LiteralKind::Language(_) => false,
            LiteralKind::Typed(datatype) => datatype.strip_prefix(XSD) == Some("string"),
        };
        let found = self.members(&literal.value)?;
        if is_text(&literal.kind) || found.ids.is_empty() {
            return Ok(found);
        }
        let same = |kind: &LiteralKind| match (kind, &literal.kind) {
            (LiteralKind::Language(a), LiteralKind::Language(b)) => a.eq_ignore_ascii_case(b),
            (a, b) => a == b,
        };
        let kind = |term: &Term| match term {
            Term::Literal(found) => Some(found.kind.clone()),
            _ => None,
        };
        let is_there = found
            .terms
            .iter()
            .any(|t| kind(t).is_some_and(|k| same(&k)));
        let mut members = Members::default();
        for (id, term) in found.ids.into_iter().zip(found.terms) {
            let fits = match kind(&term) {
                Some(kind) if is_there => same(&kind),
                Some(kind) => is_text(&kind),
                None => !is_there,
            };
            if fits {
                members.ids.push(id);
                members.terms.push(term);
            }
        }
        if members.ids.is_empty() {
            let term = Term::Literal(literal.clone());
            self.miss("entity", &term.to_string());
            members.terms.push(term);
        }
        Ok(members)
    }

    /// `(JOIN r constant)`.
    fn equal(&mut self, way: Way, constant: &Constant) -> Result<Set> {
        let value = constant.value(self.now);
        if value == Value::default() {
            return Ok(Set::Join(
                way,
                Box::new(Set::Of(self.constant_members(constant)?)),
            ));
        }
        let by = vec![way];
        let than = self.quantity(constant, &by)?;
        Ok(Set::Compare {
            test: Test::Equal,
            by,
            than,
        })
    }

    fn quantity(&mut self, constant: &Constant, by: &[Way]) -> Result<Quantity> {
        let value = constant.value(self.now);
        let sense = match value.sense() {
            Some(sense) => sense,
            None => self.sense(by)?.unwrap_or(Sense::Number),
        };
        value.in_sense(sense).ok_or_else(|| Error::FormValue {
            value: constant.to_string(),
            wanted: "a number or a date",
        })
    }

    fn sense(&self, by: &[Way]) -> Result<Option<Sense>> {
        match by.last() {
            Some(Way {
                relation: Some(relation),
                reversed,
                ..
            }) => sampled_sense(*relation, *reversed, self.graph),
            _ => Ok(None),
        }
    }

    fn ways(&mut self, by: &[Relation]) -> Result<Vec<Way>> {
        by.iter().map(|relation| self.way(relation)).collect()
    }

    fn way(&mut self, relation: &Relation) -> Result<Way> {
        let found = match relations_called(&relation.name, self.graph)?.as_slice() {
            [one] => Some(*one),
            [] => {
                self.miss("relation", &relation.name);
                None
            }
            several => {
                self.miss_of_several(&relation.name, several)?;
                None
            }
        };
        Ok(Way {
            relation: found,
            term: match found {
                Some(found) => self.graph.relation_term(found)?,
                None => Term::Name(relation.name.clone()),
            },
            reversed: relation.reversed,
        })
    }

    /// The relations of the beginning and of the end, one of which is given. Of several
    /// counterparts (`end` has `start` and `begin`) it is the first that the graph has.
    fn period(&mut self, given: &Relation) -> Result<(Option<Way>, Option<Way>)> {
        let way = self.way(given)?;
        let mut names = vec![given.name.clone()];
        if let Some(found) = way.relation {
            // a counterpart lies nearest by its identity
            names.insert(0, self.graph.relation_term(found)?.to_string());
            names.push(self.graph.relation_label(found)?.into_owned());
        }
        let mut is_end = None;
        for (i, name) in names.into_iter().enumerate() {
            // a label says less than a name that was understood
            if i == 2 && is_end.is_some() {
                break;
            }
            let cut = name.rfind(['.', '/', '#', ':']).map_or(0, |at| at + 1);
            let (before, last) = name.split_at(cut);
            let last = normalise(last);
            for (start, end) in PERIODS {
                let (other, ends) = match &last {
                    last if *last == normalise(start) => (end, false),
                    last if *last == normalise(end) => (start, true),
                    _ => continue,
                };
                is_end.get_or_insert(ends);
                if let Some(partner) = self.partner(&format!("{before}{other}"), given)? {
                    return Ok(match ends {
                        true => (Some(partner), Some(way)),
                        false => (Some(way), Some(partner)),
                    });
                }
            }
        }
        Ok(match is_end {
            Some(true) => (None, Some(way)),
            _ => (Some(way), None),
        })
    }

    fn partner(&self, name: &str, given: &Relation) -> Result<Option<Way>> {
        let Some(found) = relation_called(name, self.graph)? else {
            return Ok(None);
        };
        Ok(Some(Way {
            relation: Some(found),
            term: self.graph.relation_term(found)?,
            reversed: given.reversed,
        }))
    }
}
