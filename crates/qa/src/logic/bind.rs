//! Ties the parts of a form to a graph.

use wherefore_graph::names::normalise;
use wherefore_graph::{Graph, Literal, LiteralKind, NameMatch, RelationId, Term};

use super::form::{
    self as written, Aggregate, Comparison, Constant, Form, Number, Operator, Relation, Than,
};
use super::plan::{
    Column, Domain, Measure, Members, Plan, Root, Set, TYPE_RELATIONS, Table, Way, relation_called,
    relations_called, sampled_sense, type_relations,
};
use super::value::{Moment, Sense, Value, XSD};
use crate::error::{Error, Result};

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

impl Plan {
    /// Ties a form to a graph. Names that the graph does not have are kept: the plan can be
    /// written as SPARQL, and to run it is an error that tells them.
    pub fn new(form: &Form, graph: &dyn Graph, now: Moment) -> Result<Self> {
        let mut binder = Binder::new(graph, now);
        Ok(Self {
            root: binder.root(form)?,
            missing: binder.missing,
        })
    }
}

struct Binder<'a> {
    graph: &'a dyn Graph,
    now: Moment,
    pub(super) missing: Vec<String>,
}

/// A measure, and what its values are where that is known.
type Sensed = (Measure, Option<Sense>);

impl<'a> Binder<'a> {
    pub(super) fn new(graph: &'a dyn Graph, now: Moment) -> Self {
        Self {
            graph,
            now,
            missing: Vec::new(),
        }
    }

    pub(super) fn root(&mut self, form: &Form) -> Result<Root> {
        Ok(match form {
            Form::Number(number) => Root::Number(self.number(number, None)?.0),
            Form::Any(of) => Root::Any(self.operand(of)?),
            Form::Is(is, a, b) => {
                let (mut first, mut sense) = self.number(a, None)?;
                let (mut second, other) = self.number(b, sense)?;
                if sense.is_none() {
                    (first, sense) = self.number(a, other)?;
                }
                let sense = common(sense, other, form)?;
                for number in [&mut first, &mut second] {
                    self.settle(number, sense, form)?;
                }
                Root::Is(*is, first, second)
            }
            Form::Table(table) => {
                let of = self.operand(&table.of)?;
                let mut columns = Vec::with_capacity(table.columns.len());
                for column in &table.columns {
                    columns.push(Column {
                        title: column.english(self.graph)?,
                        measure: self.measure(column)?.0,
                    });
                }
                let order = match &table.order {
                    Some((by, first)) => Some((self.measure(by)?.0, *first)),
                    None => None,
                };
                let slice = table.slice.map(|(from, to)| {
                    let before = from.get() - 1;
                    (before as usize, to.get().saturating_sub(before) as usize)
                });
                let names = match &table.of {
                    Form::And(all) => all.as_slice(),
                    other => std::slice::from_ref(other),
                };
                let class = names.iter().find(|f| matches!(f, Form::Name(_)));
                let title = match class {
                    Some(class) => class.english(self.graph)?,
                    None => "thing".into(),
                };
                Root::Table(Table {
                    title,
                    of,
                    columns,
                    order,
                    slice,
                })
            }
            set => Root::Set(self.set(set)?),
        })
    }

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
            Form::Or(all) => {
                let all = all.iter().map(|operand| self.set(operand));
                either(all.collect::<Result<_>>()?)
            }
            Form::Except(of, not) => {
                let of = self.operand(of)?;
                Set::Except(Box::new(of), Box::new(self.operand(not)?))
            }
            Form::Best(rank, of, by) => Set::Best {
                rank: *rank,
                among: Box::new(self.operand(of)?),
                by: self.measure(by)?.0,
            },
            Form::Compare(is, by, than) => {
                let (mut by, sense) = self.measure(by)?;
                let (mut than, other) = match than {
                    Than::Number(number) => self.number(number, sense)?,
                    Than::Measure(measure) => self.measure(measure)?,
                };
                // a constant says as what it is meant
                let sense = match &than {
                    Measure::Constant(than) => than.sense(),
                    _ => common(sense, other, form)?,
                };
                self.settle(&mut by, sense, form)?;
                self.settle(&mut than, sense, form)?;
                Set::Compare { is: *is, by, than }
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
            Form::Number(_) | Form::Any(_) | Form::Is(..) | Form::Table(_) => {
                return Err(Error::FormSyntax {
                    at: 1,
                    reason: format!("`{form}` stands inside a form, and it is no set"),
                });
            }
        })
    }

    fn measure(&mut self, measure: &written::Measure) -> Result<Sensed> {
        Ok(match measure {
            written::Measure::Path(path) => {
                let ways = self.ways(path)?;
                let sense = self.sense(&ways)?;
                (Measure::Path(ways, sense.unwrap_or(Sense::Number)), sense)
            }
            written::Measure::HowMany(path, of) => {
                let ways = self.ways(path)?;
                let of = match of {
                    Some(of) => Some(Box::new(self.operand(of)?)),
                    None => None,
                };
                let count = Measure::Count(Domain::Reached(ways, of));
                (count, Some(Sense::Number))
            }
            written::Measure::Over(aggregate, path, by) => {
                let domain = Domain::Reached(self.ways(path)?, None);
                self.aggregated(*aggregate, domain, by)?
            }
            written::Measure::Arithmetic(operator, a, b) => {
                let sides = [self.measure(a)?, self.measure(b)?];
                arithmetic(*operator, sides, measure)?
            }
            written::Measure::Constant(constant) => self.constant(constant, Some(Sense::Number))?,
        })
    }

    /// A number; a constant that is both number and time is what the `other` is.
    fn number(&mut self, number: &Number, other: Option<Sense>) -> Result<Sensed> {
        Ok(match number {
            Number::Constant(constant) => self.constant(constant, other)?,
            Number::Count(of) => {
                let of = Domain::Members(Box::new(self.operand(of)?));
                (Measure::Count(of), Some(Sense::Number))
            }
            Number::Of(aggregate, of, by) => {
                let of = Domain::Members(Box::new(self.operand(of)?));
                self.aggregated(*aggregate, of, by)?
            }
            Number::Arithmetic(operator, a, b) => {
                let side = Some(Sense::Number);
                let sides = [self.number(a, side)?, self.number(b, side)?];
                arithmetic(*operator, sides, number)?
            }
        })
    }

    fn aggregated(
        &mut self,
        aggregate: Aggregate,
        domain: Domain,
        by: &written::Measure,
    ) -> Result<Sensed> {
        let (measure, mut sense) = self.measure(by)?;
        if aggregate.adds() {
            if sense == Some(Sense::Time) {
                return Err(no_number(by));
            }
            sense = Some(Sense::Number);
        }
        Ok((Measure::Of(aggregate, domain, Box::new(measure)), sense))
    }

    fn constant(&mut self, constant: &Constant, other: Option<Sense>) -> Result<Sensed> {
        let value = constant.value(self.now);
        let own = value.sense();
        let sense = own.or(other);
        let quantity = value.in_sense(sense.unwrap_or(Sense::Number));
        let quantity = quantity.ok_or_else(|| Error::FormValue {
            value: constant.to_string(),
            wanted: "a number or a date",
        })?;
        Ok((Measure::Constant(quantity), sense))
    }

    /// Makes a measure give values of one sense.
    fn settle(&self, measure: &mut Measure, sense: Sense, form: &Form) -> Result<()> {
        match measure {
            Measure::Path(_, own) => *own = sense,
            Measure::Of(aggregate, _, by) if !aggregate.adds() => {
                return self.settle(by, sense, form);
            }
            other if other.sense() == sense => {}
            _ => return Err(no_comparison(form)),
        }
        Ok(())
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
        let sense = self.sense(&by)?;
        let (than, _) = self.constant(constant, sense)?;
        Ok(Set::Compare {
            is: Comparison::Equal,
            by: Measure::Path(by, than.sense()),
            than,
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

fn arithmetic(
    operator: Operator,
    sides: [Sensed; 2],
    written: &impl std::fmt::Display,
) -> Result<Sensed> {
    if sides.iter().any(|(_, sense)| *sense == Some(Sense::Time)) {
        return Err(no_number(written));
    }
    let [a, b] = sides.map(|(side, _)| Box::new(side));
    Ok((Measure::Arithmetic(operator, a, b), Some(Sense::Number)))
}

/// As what both sides of a comparison are read; numbers where neither is known.
fn common(a: Option<Sense>, b: Option<Sense>, form: &Form) -> Result<Sense> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => Err(no_comparison(form)),
        (a, b) => Ok(a.or(b).unwrap_or(Sense::Number)),
    }
}

fn no_comparison(form: &Form) -> Error {
    Error::FormValue {
        value: form.to_string(),
        wanted: "a comparison of numbers with numbers or of times with times",
    }
}

fn no_number(written: &impl std::fmt::Display) -> Error {
    Error::FormValue {
        value: written.to_string(),
        wanted: "a number: times cannot be added up or calculated with",
    }
}

/// What is in one of some sets; of names alone, these names: services read one list of terms, and
/// not every one a union of lists.
fn either(all: Vec<Set>) -> Set {
    let mut pairs = Vec::new();
    for set in &all {
        let Set::Of(Members { ids, terms }) = set else {
            return Set::Or(all);
        };
        if ids.len() != terms.len() {
            // a name that the graph does not have
            return Set::Or(all);
        }
        pairs.extend(ids.iter().copied().zip(terms.iter().cloned()));
    }
    pairs.sort_by_key(|(id, _)| *id);
    pairs.dedup_by_key(|(id, _)| *id);
    let (ids, terms) = pairs.into_iter().unzip();
    Set::Of(Members { ids, terms })
}
