//! Parts of readings over ids: equal parts are one node, and each is computed once.
//!
//! What a node stands for is computed when somebody asks; where that takes more edges than the
//! question may have, it stays unknown, and the node is carried on as it is.

use std::rc::Rc;

use hashbrown::HashMap;
use wherefore_graph::{Deferred, Direction, EntityId, Graph, RelationId, Term, edges_by_relation};

use super::lang::Unit;
use super::phrases::Told;
use super::schema::{Schema, entity_kind, number_of, row};
use super::vocabulary::{ClassIx, Kind, Step};
use crate::error::Result;
use crate::logic::{Aggregate, Comparison, Form, Operator};

/// The number of a node.
pub(super) type Id = u32;

/// What may be read for one question.
#[derive(Clone, Copy)]
struct Limits {
    /// Edges in all.
    edges: usize,
    /// Members of a set that is computed.
    set: usize,
    /// Triples of a relation whose heads or tails are all read.
    side: usize,
}

/// Where the graph lies here.
const HERE: Limits = Limits {
    edges: 600_000,
    set: 100_000,
    side: 20_000,
};
/// Where a service holds it: what is too much to fetch is run there, once it is chosen.
const FAR: Limits = Limits {
    edges: 30_000,
    set: Deferred::LONGEST_RUN,
    side: 1000,
};
/// Members of a set whose classes are looked at.
const TYPED: usize = 16;

/// A function from a thing to numbers or times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Measure {
    /// Values at the end of a path.
    Path(Rc<[Step]>),
    /// How many things a path leads to; of those in a set.
    HowMany(Rc<[Step]>, Option<Id>),
}

/// Which members a ranking gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ranked {
    /// All of the n-th of the distinct values.
    Nth(u32),
    /// So many.
    First(u32),
}

/// A part of a reading.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// These, sorted.
    Ents(Rc<[EntityId]>),
    /// What was answered before.
    Carried,
    /// What the noun at a slot means, of which the graph has no word.
    Whatever(u8),
    /// Whatever is of a class.
    Class(ClassIx),
    /// All tails of a relation, or all heads.
    Side(RelationId, bool),
    /// What the members lead to by a step.
    Join(Step, Id),
    And(Id, Id),
    Or(Id, Id),
    Except(Id, Id),
    /// The best by a measure; the greatest, where that is so.
    Top(Id, Measure, bool, Ranked),
    /// The members whose measure compares so with a number.
    Where(Id, Measure, Comparison, Id),
    /// A number by its bits.
    Const(u64),
    Count(Id),
    Of(Aggregate, Id, Measure),
    /// Two numbers, calculated together.
    Arithmetic(Operator, Id, Id),
    /// Whether there is a member.
    Any(Id),
    /// The members with what is told of each, in an order.
    Table(Id, Rc<[Measure]>, Option<(Measure, bool)>),
}

/// What a node stands for.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    Set(Rc<[EntityId]>),
    Number(Option<f64>),
    Truth(bool),
    /// Too large to compute here.
    Unknown,
}

/// What a question says of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SaidNumber {
    /// Its unit.
    pub(super) unit: Option<Unit>,
    /// How long the month or day lasts that begins with it, in years.
    pub(super) lasts: Option<f64>,
}

/// The nodes of one question.
pub(super) struct Arena<'g> {
    pub(super) graph: &'g dyn Graph,
    pub(super) schema: &'g Schema,
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
    types: Vec<Rc<[ClassIx]>>,
    kinds: Vec<Kind>,
    meanings: Vec<Option<Meaning>>,
    edges: usize,
    most: Limits,
    /// What was answered before, sorted, and as a form that stands below a set operator.
    carried: (Rc<[EntityId]>, Form),
    /// What the question says of its numbers.
    said: HashMap<Id, SaidNumber>,
}

impl Measure {
    /// What a relation leads to.
    pub(super) fn of(relation: RelationId) -> Self {
        Measure::Path(Rc::from([(relation, true)]))
    }

    /// How many things a relation leads to.
    pub(super) fn how_many(relation: RelationId) -> Self {
        Measure::HowMany(Rc::from([(relation, true)]), None)
    }
}

impl<'g> Arena<'g> {
    /// The steps that a node takes, `most` of them at most, with what each relation is said of: a
    /// set whose class is known, or what is asked for, which is of the class `head`.
    pub(super) fn steps(&self, of: Id, head: Option<ClassIx>, most: usize, found: &mut Vec<Told>) {
        if found.len() >= most {
            return;
        }
        let by = |set: Id, measure: &Measure, found: &mut Vec<Told>| {
            let (Measure::Path(path) | Measure::HowMany(path, _)) = measure;
            let first = |place: usize, step: &Step| match (place, step.1) {
                (0, true) => self.class_of(set),
                _ => None,
            };
            let steps = path.iter().enumerate();
            found.extend(steps.map(|(place, step)| (*step, first(place, step))));
            if let Measure::HowMany(_, Some(among)) = measure {
                self.steps(*among, None, most, found);
            }
        };
        match self.node(of) {
            Node::Ents(_) | Node::Carried | Node::Whatever(_) | Node::Const(_) => {}
            // a set of its own, like a class
            Node::Class(_) | Node::Side(..) => {}
            Node::Join(step, from) => {
                self.steps(*from, None, most, found);
                let of = if step.1 { self.class_of(*from) } else { head };
                found.push((*step, of));
            }
            Node::And(a, b) => {
                let named = |id: Id| match *self.node(id) {
                    Node::Class(class) => Some(class),
                    _ => None,
                };
                let head = named(*a).or(named(*b)).or(head);
                self.steps(*a, head, most, found);
                self.steps(*b, head, most, found);
            }
            Node::Arithmetic(_, a, b) => {
                self.steps(*a, None, most, found);
                self.steps(*b, None, most, found);
            }
            Node::Or(a, b) | Node::Except(a, b) => {
                self.steps(*a, head, most, found);
                self.steps(*b, head.or_else(|| self.class_of(*a)), most, found);
            }
            Node::Top(set, measure, ..) | Node::Of(_, set, measure) => {
                self.steps(*set, head, most, found);
                by(*set, measure, found);
            }
            Node::Where(set, measure, _, than) => {
                self.steps(*set, head, most, found);
                by(*set, measure, found);
                self.steps(*than, None, most, found);
            }
            Node::Count(set) | Node::Any(set) => self.steps(*set, head, most, found),
            Node::Table(set, columns, order) => {
                self.steps(*set, head, most, found);
                let order = order.iter().map(|(measure, _)| measure);
                let measures = columns.iter().chain(order);
                measures.for_each(|measure| by(*set, measure, found));
            }
        }
    }

    /// The class that a set is of, where it is one.
    pub(super) fn class_of(&self, of: Id) -> Option<ClassIx> {
        match &*self.types[of as usize] {
            [one] => Some(*one),
            _ => None,
        }
    }

    pub(super) fn new(graph: &'g dyn Graph, schema: &'g Schema) -> Self {
        Self {
            graph,
            schema,
            nodes: Vec::new(),
            ids: HashMap::new(),
            types: Vec::new(),
            kinds: Vec::new(),
            meanings: Vec::new(),
            edges: 0,
            most: if graph.service().is_some() { FAR } else { HERE },
            carried: (Rc::from([]), Form::Or(Vec::new())),
            said: HashMap::new(),
        }
    }

    /// A number as the question says it. One with a unit, or that is a month or a day, is another
    /// than the same number without.
    pub(super) fn add_said(&mut self, number: f64, said: SaidNumber) -> Result<Id> {
        let node = Node::Const(number.to_bits());
        if said == SaidNumber::default() {
            return self.add(node);
        }
        let is_same =
            |(id, other): &(&Id, &SaidNumber)| **other == said && *self.node(**id) == node;
        if let Some((id, _)) = self.said.iter().find(is_same) {
            return Ok(*id);
        }
        let id = self.push(node)?;
        self.said.insert(id, said);
        Ok(id)
    }

    /// The unit in which a number is said.
    pub(super) fn unit_of(&self, number: Id) -> Option<Unit> {
        self.said.get(&number)?.unit
    }

    /// Whether a number may be compared with what a relation leads to: units of one kind, where
    /// both have one.
    pub(super) fn agrees(&self, relation: RelationId, number: Id) -> bool {
        let units = (self.schema.relation(relation).unit, self.unit_of(number));
        !matches!(units, (Some(own), Some(said)) if own.kind != said.kind)
    }

    /// A number as a measure has it: `two hours` as 120 where the relation says minutes.
    fn in_unit_of(&mut self, by: &Measure, number: Id) -> Result<Id> {
        let own = match by {
            Measure::Path(path) => path.last().map(|step| self.schema.relation(step.0).unit),
            Measure::HowMany(..) => None,
        };
        match (own.flatten(), self.unit_of(number), self.node(number)) {
            (Some(own), Some(said), Node::Const(bits)) if own.kind == said.kind => {
                let number = f64::from_bits(*bits) * said.times / own.times;
                self.add(Node::Const(number.to_bits()))
            }
            _ => Ok(number),
        }
    }

    /// Takes over what was answered before.
    pub(super) fn carry(&mut self, members: Rc<[EntityId]>, form: Form) {
        self.carried = (members, form);
    }

    /// What was answered before.
    pub(super) fn carried_members(&self) -> &[EntityId] {
        &self.carried.0
    }

    /// What was answered before, as a form.
    pub(super) fn carried(&self) -> &Form {
        &self.carried.1
    }

    pub(super) fn add(&mut self, node: Node) -> Result<Id> {
        if let Some(&id) = self.ids.get(&node) {
            return Ok(id);
        }
        let id = self.push(node.clone())?;
        self.ids.insert(node, id);
        Ok(id)
    }

    fn push(&mut self, node: Node) -> Result<Id> {
        let (types, kind) = self.typed(&node)?;
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        self.types.push(types);
        self.kinds.push(kind);
        self.meanings.push(None);
        Ok(id)
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// The members of a set whose measure compares so with a number. After a year is after all of
    /// it, and up to a year takes in all of it.
    pub(super) fn filtered(&mut self, of: Id, by: Measure, is: Comparison, than: Id) -> Result<Id> {
        let than = self.in_unit_of(&by, than)?;
        let lasts = self.said.get(&than).and_then(|said| said.lasts);
        if let (Some(lasts), Node::Const(bits)) = (lasts, self.node(than)) {
            let end = self.add(Node::Const((f64::from_bits(*bits) + lasts).to_bits()))?;
            let (is, than) = match is {
                Comparison::Greater => (Comparison::AtLeast, end),
                Comparison::AtMost => (Comparison::Less, end),
                Comparison::Equal => {
                    let begun = Node::Where(of, by.clone(), Comparison::AtLeast, than);
                    let begun = self.add(begun)?;
                    return self.add(Node::Where(begun, by, Comparison::Less, end));
                }
                is => (is, than),
            };
            return self.add(Node::Where(of, by, is, than));
        }
        let year = match *self.node(than) {
            Node::Const(bits) if self.is_time(&by) => Some(f64::from_bits(bits)),
            _ => None,
        };
        let whole = year.filter(|year| year.fract() == 0.0);
        let (is, than) = match (whole, is) {
            (Some(year), Comparison::Greater) => (
                Comparison::AtLeast,
                self.add(Node::Const((year + 1.0).to_bits()))?,
            ),
            (Some(year), Comparison::AtMost) => (
                Comparison::Less,
                self.add(Node::Const((year + 1.0).to_bits()))?,
            ),
            _ => (is, than),
        };
        self.add(Node::Where(of, by, is, than))
    }

    /// The classes that its members may be of; none where that is not known.
    pub(super) fn types(&self, id: Id) -> Rc<[ClassIx]> {
        Rc::clone(&self.types[id as usize])
    }

    pub(super) fn kind(&self, id: Id) -> Kind {
        self.kinds[id as usize]
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn typed(&self, node: &Node) -> Result<(Rc<[ClassIx]>, Kind)> {
        let of = |id: &Id| (self.types(*id), self.kind(*id));
        let none: Rc<[ClassIx]> = Rc::from([]);
        Ok(match node {
            Node::Ents(all) => self.typed_members(all)?,
            Node::Carried => self.typed_members(&self.carried.0)?,
            Node::Whatever(_) => (none, Kind::Thing),
            Node::Class(class) => (Rc::from([*class]), Kind::Thing),
            Node::Side(relation, tails) => self.ends((*relation, *tails)),
            Node::Join(step, _) => self.ends(*step),
            Node::And(a, b) => {
                let ((first, kind), (second, _)) = (of(a), of(b));
                let both: Vec<ClassIx> = first
                    .iter()
                    .copied()
                    .filter(|c| second.contains(c))
                    .collect();
                match both.is_empty() {
                    true => (first, kind),
                    false => (both.into(), kind),
                }
            }
            Node::Or(a, b) => {
                let ((first, kind), (second, _)) = (of(a), of(b));
                let mut all = first.to_vec();
                all.extend(second.iter().filter(|c| !first.contains(c)));
                (all.into(), kind)
            }
            Node::Except(a, _) | Node::Top(a, ..) | Node::Where(a, ..) | Node::Table(a, ..) => {
                of(a)
            }
            Node::Const(_) | Node::Count(_) | Node::Of(..) | Node::Arithmetic(..) => {
                (none, Kind::Number)
            }
            Node::Any(_) => (none, Kind::Text),
        })
    }

    /// The classes of some entities, and what they are.
    fn typed_members(&self, all: &[EntityId]) -> Result<(Rc<[ClassIx]>, Kind)> {
        let mut found = Vec::new();
        let some = &all[..all.len().min(TYPED)];
        self.graph.prefetch(some, Direction::Outgoing)?;
        for &entity in some {
            for class in self.schema.types_of(self.graph, entity)? {
                if !found.contains(&class) {
                    found.push(class);
                }
            }
        }
        let kind = match all.first() {
            Some(&entity) => entity_kind(entity, self.graph)?,
            None => Kind::Thing,
        };
        Ok((found.into(), kind))
    }

    fn ends(&self, step: Step) -> (Rc<[ClassIx]>, Kind) {
        let kind = match step.1 {
            true => self.schema.relation(step.0).kind,
            false => Kind::Thing,
        };
        (self.schema.leads_to(step).collect(), kind)
    }

    /// What a node stands for.
    pub(super) fn meaning(&mut self, id: Id) -> Result<Meaning> {
        if let Some(meaning) = &self.meanings[id as usize] {
            return Ok(meaning.clone());
        }
        let node = self.nodes[id as usize].clone();
        let missed = self.graph.misses();
        let mut meaning = self.compute(&node)?;
        if self.graph.misses() > missed {
            meaning = Meaning::Unknown;
        }
        self.meanings[id as usize] = Some(meaning.clone());
        Ok(meaning)
    }

    /// The members of a set; none where they are not known.
    pub(super) fn members(&mut self, id: Id) -> Result<Option<Rc<[EntityId]>>> {
        Ok(match self.meaning(id)? {
            Meaning::Set(set) => Some(set),
            _ => None,
        })
    }

    fn number(&mut self, id: Id) -> Result<Option<Option<f64>>> {
        Ok(match self.meaning(id)? {
            Meaning::Number(number) => Some(number),
            _ => None,
        })
    }

    fn step(&mut self, from: &[EntityId], step: Step) -> Result<Option<Vec<EntityId>>> {
        let ((relation, forward), second) = self.schema.steps(step);
        if let Some(second) = second {
            return match self.step(from, (relation, forward))? {
                Some(between) => self.step(&between, second),
                None => Ok(None),
            };
        }
        let mut found = Vec::new();
        for &entity in from {
            let edges = self.graph.run(entity, relation, forward)?;
            self.edges += edges.len() + 1;
            found.extend(edges.iter().map(|edge| edge.entity));
            if found.len() > self.most.set || self.edges > self.most.edges {
                return Ok(None);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(Some(found))
    }

    fn path(&mut self, from: EntityId, path: &[Step]) -> Result<Option<Vec<EntityId>>> {
        let mut at = vec![from];
        for &step in path {
            match self.step(&at, step)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// The number or time that an entity is, times in years.
    fn value(&self, entity: EntityId) -> Result<Option<f64>> {
        Ok(match self.graph.entity_term(entity)? {
            Term::Literal(literal) => number_of(&literal.value).or_else(|| year_of(&literal.value)),
            Term::Name(name) => number_of(&name).or_else(|| year_of(&name)),
            _ => None,
        })
    }

    /// What the first steps of a measure read.
    fn fetch(&self, all: &[EntityId], by: &Measure) -> Result<()> {
        let (Measure::Path(path) | Measure::HowMany(path, _)) = by;
        match path.first() {
            Some(&step) => {
                let (first, _) = self.schema.steps(step);
                Ok(self.graph.prefetch(all, Direction::along(first.1))?)
            }
            None => Ok(()),
        }
    }

    fn values(&mut self, entity: EntityId, by: &Measure) -> Result<Option<Vec<f64>>> {
        match by {
            Measure::Path(path) => {
                let Some(ends) = self.path(entity, path)? else {
                    return Ok(None);
                };
                let mut values = Vec::new();
                for end in ends {
                    values.extend(self.value(end)?);
                }
                Ok(Some(values))
            }
            Measure::HowMany(path, of) => {
                let Some(ends) = self.path(entity, path)? else {
                    return Ok(None);
                };
                let count = match of {
                    None => ends.len(),
                    Some(of) => match self.kept(&ends, *of)? {
                        Some(kept) => kept.len(),
                        None => return Ok(None),
                    },
                };
                Ok(Some(vec![count as f64]))
            }
        }
    }

    /// The step that led to a set.
    pub(super) fn last_step(&self, id: Id) -> Option<Step> {
        match *self.node(id) {
            Node::Join(step, _) => Some(step),
            Node::Except(of, _) => self.last_step(of),
            _ => None,
        }
    }

    /// The first union that a set is made from by steps and conditions, and its two parts.
    pub(super) fn union_in(&self, id: Id) -> Option<(Id, Id, Id)> {
        match *self.node(id) {
            Node::Or(a, b) => Some((id, a, b)),
            Node::Join(_, of) | Node::Except(of, _) | Node::Where(of, ..) => self.union_in(of),
            Node::And(a, b) => self.union_in(a).or_else(|| self.union_in(b)),
            _ => None,
        }
    }

    /// The same set with one part of it replaced, as far as [`union_in`](Self::union_in) looks.
    pub(super) fn replaced(&mut self, id: Id, part: Id, by: Id) -> Result<Id> {
        if id == part {
            return Ok(by);
        }
        let node = match self.node(id).clone() {
            Node::Join(step, of) => Node::Join(step, self.replaced(of, part, by)?),
            Node::Except(of, not) => Node::Except(self.replaced(of, part, by)?, not),
            Node::Where(of, measure, is, than) => {
                Node::Where(self.replaced(of, part, by)?, measure, is, than)
            }
            Node::And(a, b) => Node::And(self.replaced(a, part, by)?, self.replaced(b, part, by)?),
            _ => return Ok(id),
        };
        self.add(node)
    }

    /// How many names a set is reached from, each with all that are called so; none of a choice
    /// among names (`which of Rome and Oslo`).
    pub(super) fn names_below(&self, id: Id, found: &mut Vec<EntityId>) -> usize {
        match self.node(id) {
            Node::Ents(all) => {
                found.extend(all.iter());
                1
            }
            Node::Join(_, of) | Node::Where(of, ..) => self.names_below(*of, found),
            Node::And(a, b) => self.names_below(*a, found) + self.names_below(*b, found),
            _ => 0,
        }
    }

    /// Whether a set comes from names of the question.
    fn is_grounded(&self, id: Id) -> bool {
        match *self.node(id) {
            Node::Ents(_) | Node::Carried => true,
            Node::Join(_, of) | Node::Except(of, _) => self.is_grounded(of),
            Node::Top(of, ..) | Node::Where(of, ..) | Node::Table(of, ..) => self.is_grounded(of),
            Node::And(a, b) => self.is_grounded(a) || self.is_grounded(b),
            Node::Or(a, b) => self.is_grounded(a) && self.is_grounded(b),
            _ => false,
        }
    }

    /// Whether the values of a measure are times.
    pub(super) fn is_time(&self, by: &Measure) -> bool {
        match by {
            Measure::Path(path) => path
                .last()
                .is_some_and(|step| self.schema.relation(step.0).kind == Kind::Time),
            Measure::HowMany(..) => false,
        }
    }

    /// Those that are in a set as well.
    pub(super) fn kept(&mut self, all: &[EntityId], set: Id) -> Result<Option<Vec<EntityId>>> {
        let filter = self.nodes[set as usize].clone();
        if matches!(filter, Node::Class(_) | Node::Side(..)) {
            // by what each of them says, without reading the whole of the set
            let forward = match filter {
                Node::Side(_, tails) => !tails,
                _ => true,
            };
            self.graph.prefetch(all, Direction::along(forward))?;
            let mut kept = Vec::new();
            for &entity in all {
                self.edges += 1;
                let inside = match filter {
                    Node::Side(relation, tails) => self.has_edge(entity, (relation, !tails))?,
                    Node::Class(class) => {
                        self.schema.types_of(self.graph, entity)?.contains(&class)
                    }
                    _ => false,
                };
                if inside {
                    kept.push(entity);
                }
            }
            return Ok((self.edges <= self.most.edges).then_some(kept));
        }
        let Some(members) = self.members(set)? else {
            return Ok(None);
        };
        let inside = |e: &EntityId| members.binary_search(e).is_ok();
        Ok(Some(all.iter().copied().filter(inside).collect()))
    }

    fn class(&mut self, class: ClassIx) -> Result<Option<Vec<EntityId>>> {
        let mut all = vec![class];
        all.extend(&self.schema.classes[class as usize].narrower);
        if all
            .iter()
            .map(|c| self.schema.classes[*c as usize].instances)
            .sum::<usize>()
            > self.most.set
        {
            return Ok(None);
        }
        let mut found = Vec::new();
        for class in all {
            let entity = self.schema.classes[class as usize].entity;
            for &relation in &self.schema.typed_by {
                let Some(of) = self.step(&[entity], (relation, false))? else {
                    return Ok(None);
                };
                found.extend(of);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(Some(found))
    }

    fn compute(&mut self, node: &Node) -> Result<Meaning> {
        let set = |found: Option<Vec<EntityId>>| match found {
            Some(found) => Meaning::Set(found.into()),
            None => Meaning::Unknown,
        };
        Ok(match node {
            Node::Ents(all) => Meaning::Set(Rc::clone(all)),
            Node::Carried => Meaning::Set(Rc::clone(&self.carried.0)),
            Node::Whatever(_) => Meaning::Unknown,
            Node::Class(class) => set(self.class(*class)?),
            Node::Side(relation, _) if self.schema.relation(*relation).count > self.most.side => {
                Meaning::Unknown
            }
            Node::Side(relation, tails) => {
                let (step, _) = self.schema.steps((*relation, !tails));
                let step = (step.0, !step.1);
                match self.schema.side(self.graph, step, self.most.set)? {
                    Some(side) => {
                        self.edges += side.edges;
                        let within = self.edges <= self.most.edges;
                        match within {
                            true => Meaning::Set(side.members.as_ref().into()),
                            false => Meaning::Unknown,
                        }
                    }
                    None => {
                        self.edges += self.most.set;
                        Meaning::Unknown
                    }
                }
            }
            // nothing tells the parts of such a graph apart: most of them are far too large
            Node::Join(_, of) if self.schema.is_untyped && !self.is_grounded(*of) => {
                Meaning::Unknown
            }
            Node::Join(step, of) => match self.members(*of)? {
                Some(from) => set(self.step(&from, *step)?),
                None => Meaning::Unknown,
            },
            Node::And(a, b) => {
                let (of, filter) = match self.nodes[*a as usize] {
                    Node::Class(_) | Node::Side(..) => (*b, *a),
                    _ => (*a, *b),
                };
                match self.members(of)? {
                    Some(all) => set(self.kept(&all, filter)?),
                    None => Meaning::Unknown,
                }
            }
            Node::Except(a, b) => match (self.members(*a)?, self.members(*b)?) {
                (Some(all), Some(not)) => {
                    let outside = |e: &EntityId| not.binary_search(e).is_err();
                    set(Some(all.iter().copied().filter(outside).collect()))
                }
                _ => Meaning::Unknown,
            },
            Node::Or(a, b) => match (self.members(*a)?, self.members(*b)?) {
                (Some(a), Some(b)) => {
                    let mut all: Vec<EntityId> = a.iter().chain(&*b).copied().collect();
                    all.sort_unstable();
                    all.dedup();
                    set(Some(all))
                }
                _ => Meaning::Unknown,
            },
            Node::Top(of, by, greatest, ranked) => set(self.top(*of, by, *greatest, *ranked)?),
            Node::Where(of, by, is, than) => {
                let (Some(all), Some(than)) = (self.members(*of)?, self.number(*than)?) else {
                    return Ok(Meaning::Unknown);
                };
                self.fetch(&all, by)?;
                let mut found = Vec::new();
                for &entity in all.iter() {
                    let Some(values) = self.values(entity, by)? else {
                        return Ok(Meaning::Unknown);
                    };
                    let whole = self.is_time(by) && *is == Comparison::Equal;
                    let value = |v: &f64| if whole { v.floor() } else { *v };
                    if than.is_some_and(|than| values.iter().any(|v| compares(value(v), *is, than)))
                    {
                        found.push(entity);
                    }
                }
                set(Some(found))
            }
            Node::Const(bits) => Meaning::Number(Some(f64::from_bits(*bits))),
            Node::Count(of) => match self.members(*of)? {
                Some(all) => Meaning::Number(Some(all.len() as f64)),
                None => Meaning::Unknown,
            },
            Node::Of(aggregate, of, by) => {
                let Some(all) = self.members(*of)? else {
                    return Ok(Meaning::Unknown);
                };
                self.fetch(&all, by)?;
                let mut values = Vec::new();
                for &entity in all.iter() {
                    match self.values(entity, by)? {
                        Some(of) => values.extend(of),
                        None => return Ok(Meaning::Unknown),
                    }
                }
                let sum: f64 = values.iter().sum();
                Meaning::Number(match aggregate {
                    _ if values.is_empty() => None,
                    Aggregate::Sum => Some(sum),
                    Aggregate::Average => Some(sum / values.len() as f64),
                    Aggregate::Largest => values.into_iter().reduce(f64::max),
                    Aggregate::Smallest => values.into_iter().reduce(f64::min),
                    Aggregate::Only => {
                        values.dedup();
                        (values.len() == 1).then(|| values[0])
                    }
                })
            }
            Node::Arithmetic(operator, a, b) => match (self.number(*a)?, self.number(*b)?) {
                (Some(Some(a)), Some(Some(b))) => {
                    let value = match operator {
                        Operator::Add => a + b,
                        Operator::Subtract => a - b,
                        Operator::Multiply => a * b,
                        Operator::Divide => a / b,
                    };
                    Meaning::Number(Some(value).filter(|value| value.is_finite()))
                }
                (Some(_), Some(_)) => Meaning::Number(None),
                _ => Meaning::Unknown,
            },
            Node::Any(of) => match self.members(*of)? {
                Some(all) => Meaning::Truth(!all.is_empty()),
                None => Meaning::Unknown,
            },
            Node::Table(of, ..) => self.meaning(*of)?,
        })
    }

    fn top(
        &mut self,
        of: Id,
        by: &Measure,
        greatest: bool,
        ranked: Ranked,
    ) -> Result<Option<Vec<EntityId>>> {
        let Some(all) = self.members(of)? else {
            return Ok(None);
        };
        self.fetch(&all, by)?;
        let mut valued: Vec<(f64, EntityId)> = Vec::new();
        for &entity in all.iter() {
            let Some(values) = self.values(entity, by)? else {
                return Ok(None);
            };
            let better = |a: f64, b: f64| if (a > b) == greatest { a } else { b };
            if let Some(value) = values.into_iter().reduce(better) {
                valued.push((if greatest { -value } else { value }, entity));
            }
        }
        valued.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let last = match ranked {
            Ranked::First(n) => valued.get(n as usize - 1).or(valued.last()).map(|v| v.0),
            Ranked::Nth(n) => {
                let mut distinct: Vec<f64> = valued.iter().map(|v| v.0).collect();
                distinct.dedup();
                distinct.get(n as usize - 1).copied()
            }
        };
        let kept = |v: &f64| match (last, ranked) {
            (Some(last), Ranked::First(_)) => *v <= last,
            (Some(last), Ranked::Nth(_)) => *v == last,
            (None, _) => false,
        };
        let mut found: Vec<EntityId> = valued
            .iter()
            .filter(|(v, _)| kept(v))
            .map(|(_, e)| *e)
            .collect();
        found.sort_unstable();
        Ok(Some(found))
    }

    /// Whether some of the first members have this relation on that side; for graphs without
    /// classes.
    pub(super) fn has_step(&mut self, of: Id, step: Step) -> Result<bool> {
        let Some(all) = self.members(of)? else {
            return Ok(true);
        };
        let (first, _) = self.schema.steps(step);
        let some = &all[..all.len().min(TYPED)];
        self.graph.prefetch(some, Direction::along(first.1))?;
        for &entity in some {
            if self.has_edge(entity, step)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_edge(&self, entity: EntityId, step: Step) -> Result<bool> {
        let ((relation, forward), _) = self.schema.steps(step);
        let row = row(self.graph, entity, forward)?;
        Ok(!edges_by_relation(&row, relation).is_empty())
    }
}

/// Whether a value stands so to another. A year is equal to any day of it.
fn compares(value: f64, is: Comparison, than: f64) -> bool {
    match is {
        Comparison::Less => value < than,
        Comparison::AtMost => value <= than,
        Comparison::Greater => value > than,
        Comparison::AtLeast => value >= than,
        Comparison::Equal => value == than,
        Comparison::NotEqual => value != than,
    }
}

/// The year in a date, with its month as a fraction where it is written first.
fn year_of(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_digit = |b: &u8| b.is_ascii_digit();
    let bytes = text.as_bytes();
    if bytes.len() >= 4
        && bytes[..4].iter().all(is_digit)
        && bytes.get(4).is_none_or(|b| *b == b'-')
    {
        let part = |from: usize, to: usize| text.get(from..to).and_then(|t| t.parse::<f64>().ok());
        let month = part(5, 7).map_or(0.0, |m| (m - 1.0) / 12.0);
        let day = part(8, 10).map_or(0.0, |d| (d - 1.0) / 372.0);
        return Some(part(0, 4)? + month + day);
    }
    let mut words = text.split(|c: char| !c.is_ascii_digit());
    words.find(|w| w.len() == 4)?.parse().ok()
}
