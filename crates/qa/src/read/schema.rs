//! What a graph speaks of: its classes, its relations, and which relation joins which classes.
//!
//! ```text
//! domain(r)      share of r's heads that are of each class; range(r) alike for its tails
//! joins(A, B)    relations from an A to a B, each with how many of its triples do so
//! kind(r)        things, numbers, times or texts: what most of its tails are
//! ```
//!
//! Large relations are told by a sample of their triples, and those of a service by what it counts
//! (`far.rs`).

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::{HashMap, HashSet};
use wherefore_graph::{
    Edge, EntityId, Graph, LiteralKind, RelationId, SideSummary, Term, edges_by_relation,
};

use super::counted::Counted;
use super::kinds::KindSteps;
use super::lang::{Lang, Sense, Unit, adverb};
use super::vocabulary::{Class, ClassIx, Kind, Relation, Step};
use crate::error::Result;
use crate::logic::type_relations;
use crate::words::{opened, stem};

/// Letters of a word that longer ones end with, and classes that are compared so.
const LEAST_END: usize = 4;
const ENDINGS: usize = 1000;
/// Letters that a label has more than, if it is nothing but a unit.
const LEAST_UNIT: usize = 2;
/// Triples of a relation that are looked at.
const SAMPLE: usize = 4000;
/// Triples of a type relation that are looked at.
const MAX_TYPED: usize = 5_000_000;
/// Classes of which instances are looked at, and how many of each.
const CLASSES_READ: usize = 2000;
const INSTANCES_READ: usize = 64;
/// Most classes that are told apart.
const MAX_CLASSES: usize = 20_000;
/// Most classes of one thing.
const MAX_TYPES: usize = 12;
/// Members of sides that are kept, of all relations together.
const KEPT_MEMBERS: usize = 4_000_000;
/// What relations between a class and a wider one are called.
const SUBCLASS: [&str; 5] = [
    "http://www.w3.org/2000/01/rdf-schema#subClassOf",
    "http://www.wikidata.org/prop/direct/P279",
    "subclass_of",
    "subclass of",
    "subClassOf",
];

/// What the label of a relation ends with that says what another says, from tail to head.
const INVERSE: &str = " inverse";
/// Entities that are looked at to tell whether a graph says what its things are.
const LOOKED_AT: usize = 1000;

/// Whether most things of a graph have a class.
pub(super) fn has_classes(graph: &dyn Graph, typed_by: &[RelationId]) -> Result<bool> {
    let bound = graph.entity_bound();
    let stride = bound.div_ceil(LOOKED_AT).max(1);
    let (mut things, mut typed) = (0usize, 0usize);
    for id in (0..bound).step_by(stride) {
        let row = graph.outgoing(EntityId(id as u32))?;
        let says = |edge: &Edge| !graph.naming_relations().contains(&edge.relation);
        if row.iter().any(says) {
            things += 1;
            typed += usize::from(row.iter().any(|edge| typed_by.contains(&edge.relation)));
        }
    }
    Ok(typed * 2 > things)
}

/// What was seen of a relation.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Triples that were looked at, and all there are.
    pub(super) triples: usize,
    pub(super) all: usize,
    /// How many tails are of each [`Kind`].
    pub(super) kinds: [usize; 4],
    /// Tails that say yes and no, while all of them do; whether they do so as 1 and 0.
    yes: Option<[Vec<EntityId>; 2]>,
    yes_as_number: bool,
    domain: HashMap<ClassIx, usize>,
    range: HashMap<ClassIx, usize>,
    joined: HashMap<(ClassIx, ClassIx), usize>,
}

/// Adds to a count; those of a service may be of any size.
fn more(count: &mut usize, by: usize) {
    *count = count.saturating_add(by);
}

impl Seen {
    /// Some triples whose heads and tails are of these classes.
    pub(super) fn add(&mut self, heads: &[ClassIx], tails: &[ClassIx], triples: usize) {
        for &head in heads {
            more(self.domain.entry(head).or_insert(0), triples);
            for &tail in tails {
                more(self.joined.entry((head, tail)).or_insert(0), triples);
            }
        }
        for &tail in tails {
            more(self.range.entry(tail).or_insert(0), triples);
        }
    }
}

/// The summary.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) typed_by: Vec<RelationId>,
    /// Most things have no class.
    pub(super) is_untyped: bool,
    pub(super) classes: Vec<Class>,
    pub(super) relations: Vec<Relation>,
    /// The steps of relations through nodes that nobody names; their numbers follow the graph's.
    pub(super) mediated: Vec<[Step; 2]>,
    class_of: HashMap<EntityId, ClassIx>,
    joins: HashMap<(ClassIx, ClassIx), Vec<(RelationId, u32)>>,
    /// The same by either class.
    next_to: HashMap<ClassIx, Vec<(ClassIx, Step, u32)>>,
    /// Relations by a stem of their labels.
    by_stem: HashMap<String, Vec<RelationId>>,
    /// Relations by a group of words that one of their stems is in.
    by_group: HashMap<u16, Vec<RelationId>>,
    /// Relations by what a stem of their labels means.
    by_sense: HashMap<Sense, Vec<RelationId>>,
    classes_by_stem: HashMap<String, Vec<ClassIx>>,
    classes_by_group: HashMap<u16, Vec<ClassIx>>,
    classes_by_sense: HashMap<Sense, Vec<ClassIx>>,
    /// What tells people and places.
    pub(super) kind_steps: KindSteps,
    /// All that stand on a side of a relation, for those that were asked for.
    sides: Mutex<Sides>,
    /// What a service counted of the sides of relations: (relation, true) for the heads.
    pub(super) counted_sides: HashMap<Step, SideSummary>,
}

/// All that stand on one side of a relation, sorted, each once.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// Edges that were read for it.
    pub(super) edges: usize,
    pub(super) members: Arc<[EntityId]>,
}

#[derive(Debug, Default)]
struct Sides {
    known: HashMap<Step, Side>,
    members: usize,
}

impl Schema {
    pub(super) fn new(graph: &dyn Graph, lang: &Lang) -> Result<Self> {
        let typed_by = type_relations(graph)?;
        let counted = Counted::of(graph, &typed_by)?;
        let is_untyped = match &counted {
            None => !has_classes(graph, &typed_by)?,
            Some(counted) => !counted.summary.has_classes(),
        };
        let mut schema = Schema {
            is_untyped,
            typed_by,
            classes: Vec::new(),
            relations: Vec::new(),
            mediated: Vec::new(),
            class_of: HashMap::new(),
            joins: HashMap::new(),
            next_to: HashMap::new(),
            by_stem: HashMap::new(),
            by_group: HashMap::new(),
            by_sense: HashMap::new(),
            classes_by_stem: HashMap::new(),
            classes_by_group: HashMap::new(),
            classes_by_sense: HashMap::new(),
            kind_steps: KindSteps::default(),
            sides: Mutex::default(),
            counted_sides: HashMap::new(),
        };
        schema.read_classes(graph, counted.as_ref(), lang)?;
        let mut labels = HashSet::new();
        for id in 0..graph.relation_bound() {
            labels.insert(opened(&graph.relation_label(RelationId(id as u32))?));
        }
        for id in 0..graph.relation_bound() {
            let id = RelationId(id as u32);
            let mut relation = schema.named_relation(id, &labels, graph, lang)?;
            if !relation.is_silent {
                let seen = match &counted {
                    None => schema.look_at(id, graph, lang)?,
                    Some(counted) => schema.counted(id, counted, lang)?,
                };
                schema.describe(&mut relation, id, seen, lang);
            }
            schema.relations.push(relation);
        }
        // nodes without a name cannot be asked for at a service, and rows are not read one by one
        if counted.is_none() {
            schema.read_mediators(graph, lang)?;
        }
        for id in 0..graph.relation_bound() {
            schema.index_relation(RelationId(id as u32), lang);
        }
        match &counted {
            None => schema.read_instances(graph)?,
            Some(counted) => schema.counted_around(counted, lang)?,
        }
        schema.kind_steps = KindSteps::of(&schema.relations, &schema.classes, lang);
        for joins in schema.joins.values_mut() {
            joins.sort_by_key(|&(relation, count)| (std::cmp::Reverse(count), relation));
        }
        for (&(head, tail), joins) in &schema.joins {
            for &(relation, count) in joins {
                let on = schema.next_to.entry(head).or_default();
                on.push((tail, (relation, true), count));
                let back = schema.next_to.entry(tail).or_default();
                back.push((head, (relation, false), count));
            }
        }
        for next in schema.next_to.values_mut() {
            next.sort_by_key(|&(class, step, count)| (std::cmp::Reverse(count), class, step));
        }
        Ok(schema)
    }

    /// Notes the words of a relation.
    pub(super) fn index_relation(&mut self, id: RelationId, lang: &Lang) {
        let relation = &self.relations[id.index()];
        if relation.is_silent {
            return;
        }
        for stem in &relation.stems {
            self.by_stem.entry(stem.clone()).or_default().push(id);
            for &group in lang.groups_of(stem) {
                self.by_group.entry(group).or_default().push(id);
            }
            for &sense in lang.wording.of_label(stem) {
                self.by_sense.entry(sense).or_default().push(id);
            }
        }
    }

    /// What stands where a step leads to, by at most `most` edges; `None` where there are more.
    pub(super) fn side(&self, graph: &dyn Graph, step: Step, most: usize) -> Result<Option<Side>> {
        let keeps = graph.service().is_none();
        // what is inside is replaced whole, so a panic elsewhere leaves it sound
        let sides = || self.sides.lock().unwrap_or_else(PoisonError::into_inner);
        if keeps && let Some(side) = sides().known.get(&step) {
            return Ok((side.edges < most).then(|| side.clone()));
        }
        let mut members = Vec::new();
        for triple in graph.with_relation(step.0)?.take(most) {
            let triple = triple?;
            members.push(if step.1 { triple.tail } else { triple.head });
        }
        let edges = members.len();
        if edges >= most {
            return Ok(None);
        }
        members.sort_unstable();
        members.dedup();
        let members = Arc::from(members);
        let side = Side { edges, members };
        let mut sides = sides();
        if keeps && sides.members + side.members.len() <= KEPT_MEMBERS {
            // another thread may have been faster
            if sides.known.insert(step, side.clone()).is_none() {
                sides.members += side.members.len();
            }
        }
        Ok(Some(side))
    }

    /// The steps that a relation is made of: one of the graph's own, or two.
    pub(super) fn steps(&self, (relation, forward): Step) -> (Step, Option<Step>) {
        let own = self.relations.len() - self.mediated.len();
        match relation.index().checked_sub(own) {
            None => ((relation, forward), None),
            Some(place) => {
                let [first, second] = self.mediated[place];
                match forward {
                    true => (first, Some(second)),
                    false => ((second.0, !second.1), Some((first.0, !first.1))),
                }
            }
        }
    }

    fn read_classes(
        &mut self,
        graph: &dyn Graph,
        counted: Option<&Counted<'_>>,
        lang: &Lang,
    ) -> Result<()> {
        if let Some(counted) = counted {
            self.counted_classes(counted, lang)?;
        } else {
            for &relation in &self.typed_by.clone() {
                for triple in graph.with_relation(relation)?.take(MAX_TYPED) {
                    if let Some(ix) = self.class(triple?.tail, graph, lang)? {
                        self.classes[ix as usize].instances += 1;
                    }
                }
            }
        }
        for name in SUBCLASS {
            let Some(relation) = graph.relation_named(name)? else {
                continue;
            };
            for triple in graph.with_relation(relation)?.take(MAX_TYPED) {
                let triple = triple?;
                let narrow = self.class(triple.head, graph, lang)?;
                let wide = self.class(triple.tail, graph, lang)?;
                if let (Some(narrow), Some(wide)) = (narrow, wide) {
                    self.classes[narrow as usize].wider.push(wide);
                }
            }
        }
        // all that is wider, at any depth; circles end by themselves
        for ix in 0..self.classes.len() {
            let mut all: Vec<ClassIx> = Vec::new();
            let mut next = self.classes[ix].wider.clone();
            while let Some(wide) = next.pop() {
                if wide as usize != ix && !all.contains(&wide) && all.len() < MAX_TYPES {
                    all.push(wide);
                    next.extend(&self.classes[wide as usize].wider);
                }
            }
            for &wide in &all {
                self.classes[wide as usize].narrower.push(ix as ClassIx);
            }
        }
        for (ix, class) in (0..).zip(&self.classes) {
            for stem in &class.stems {
                let of = self.classes_by_stem.entry(stem.clone()).or_default();
                of.push(ix);
                for &group in lang.groups_of(stem) {
                    self.classes_by_group.entry(group).or_default().push(ix);
                }
                for &sense in lang.wording.of_label(stem) {
                    self.classes_by_sense.entry(sense).or_default().push(ix);
                }
            }
        }
        Ok(())
    }

    pub(super) fn class(
        &mut self,
        entity: EntityId,
        graph: &dyn Graph,
        lang: &Lang,
    ) -> Result<Option<ClassIx>> {
        if let Some(&ix) = self.class_of.get(&entity) {
            return Ok(Some(ix));
        }
        if self.classes.len() >= MAX_CLASSES {
            return Ok(None);
        }
        let label = graph.entity_label(entity)?;
        let ix = self.classes.len() as ClassIx;
        self.class_of.insert(entity, ix);
        self.classes.push(Class {
            entity,
            stems: stems_and_words(&label, lang).0,
            instances: 0,
            narrower: Vec::new(),
            wider: Vec::new(),
        });
        Ok(Some(ix))
    }

    /// A relation as far as its label tells.
    fn named_relation(
        &self,
        id: RelationId,
        labels: &HashSet<String>,
        graph: &dyn Graph,
        lang: &Lang,
    ) -> Result<Relation> {
        let label = graph.relation_label(id)?.into_owned();
        let named = graph.naming_relations().contains(&id) || self.typed_by.contains(&id);
        let mut is_silent = named || SUBCLASS.contains(&&*label);
        if let Some(other) = opened(&label).strip_suffix(INVERSE) {
            // the same said the other way round
            is_silent |= labels.contains(other);
        }
        let (stems, words) = stems_and_words(&label, lang);
        Ok(Relation {
            stems,
            words,
            prepositions: prepositions(&label, lang),
            unit: unit_of(&label, lang),
            // `has_lift`, until its values are known
            flag: opened(&label)
                .split(' ')
                .next()
                .filter(|first| lang.yes_no.contains(*first))
                .map(|_| Default::default()),
            kind: Kind::Thing,
            is_noun: false,
            is_silent,
            is_inner: false,
            domain: Vec::new(),
            range: Vec::new(),
            count: 0,
        })
    }

    /// The first triples of a relation.
    fn look_at(&self, id: RelationId, graph: &dyn Graph, lang: &Lang) -> Result<Seen> {
        let mut seen = Seen {
            yes: Some(Default::default()),
            ..Seen::default()
        };
        for triple in graph.with_relation(id)?.take(SAMPLE) {
            let triple = triple?;
            seen.triples += 1;
            let heads = self.types_of(graph, triple.head)?;
            let term = graph.entity_term(triple.tail)?;
            let kind = kind_of(&term);
            if let Some(yes) = &mut seen.yes {
                match yes_or_no(&term, lang) {
                    Some((is_yes, as_number)) => {
                        let of = &mut yes[usize::from(!is_yes)];
                        if !of.contains(&triple.tail) {
                            of.push(triple.tail);
                        }
                        seen.yes_as_number |= as_number;
                    }
                    None => seen.yes = None,
                }
            }
            seen.kinds[kind as usize] += 1;
            let tails = match kind {
                Kind::Thing => self.types_of(graph, triple.tail)?,
                _ => Vec::new(),
            };
            seen.add(&heads, &tails, 1);
        }
        seen.all = match graph.store() {
            Some(store) => store.relation_count(id)?,
            None => seen.triples,
        };
        Ok(seen)
    }

    /// Says of a relation what was seen of it.
    fn describe(&mut self, relation: &mut Relation, id: RelationId, mut seen: Seen, lang: &Lang) {
        let all = [Kind::Thing, Kind::Number, Kind::Time, Kind::Text];
        let most = (0..4).max_by_key(|&i| (seen.kinds[i], 4 - i)).unwrap_or(0);
        relation.kind = all[most];
        // 1 and 0 may be counted as well: `goals`
        let says = !seen.yes_as_number
            || relation.flag.is_some()
            || relation.words.iter().any(|w| lang.is_participle(w));
        relation.flag = seen.yes.take().filter(|_| says && seen.triples > 0);
        if relation.flag.is_some() {
            relation.kind = Kind::Text;
        }
        let shares = |counts: HashMap<ClassIx, usize>| {
            let share = |n: usize| n as f32 / seen.triples.max(1) as f32;
            let mut all: Vec<_> = counts.into_iter().map(|(c, n)| (c, share(n))).collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all
        };
        (relation.domain, relation.range) = (shares(seen.domain), shares(seen.range));
        relation.count = seen.all;
        let scale = seen.all as f32 / seen.triples.max(1) as f32;
        for (pair, n) in seen.joined {
            let joins = self.joins.entry(pair).or_default();
            joins.push((id, (n as f32 * scale) as u32));
        }
        relation.is_noun = self.classes.iter().any(|c| c.stems == relation.stems);
    }

    /// What a few instances of each class are joined to: a class of few things does not show in
    /// the first triples of a relation that many others have.
    fn read_instances(&mut self, graph: &dyn Graph) -> Result<()> {
        let mut most: Vec<ClassIx> = (0..self.classes.len() as ClassIx).collect();
        most.sort_by_key(|&c| std::cmp::Reverse(self.classes[c as usize].instances));
        for &class in most.iter().take(CLASSES_READ) {
            let Class {
                entity, instances, ..
            } = self.classes[class as usize];
            let mut all = Vec::new();
            for &relation in &self.typed_by {
                let row = graph.incoming(entity)?;
                let of = edges_by_relation(&row, relation);
                let stride = of.len().div_ceil(INSTANCES_READ).max(1);
                all.extend(of.iter().step_by(stride).map(|e| e.entity));
            }
            let scale = instances as f32 / all.len().max(1) as f32;
            let mut counts: HashMap<(ClassIx, ClassIx, RelationId), f32> = HashMap::new();
            let (mut heads, mut tails) = (HashMap::new(), HashMap::new());
            for entity in all {
                for forward in [true, false] {
                    let row = row(graph, entity, forward)?;
                    for (relation, run) in by_relation(&row) {
                        if self.relations[relation.index()].is_silent {
                            continue;
                        }
                        let side = if forward { &mut heads } else { &mut tails };
                        *side.entry(relation).or_insert(0.0) += run.len() as f32 * scale;
                        for other in self.types_of(graph, run[0].entity)? {
                            let pair = match forward {
                                true => (class, other, relation),
                                false => (other, class, relation),
                            };
                            *counts.entry(pair).or_insert(0.0) += run.len() as f32 * scale;
                        }
                    }
                }
            }
            for ((head, tail, relation), count) in counts {
                self.joins_at_least(head, tail, relation, count);
            }
            for (sides, is_domain) in [(heads, true), (tails, false)] {
                for (relation, count) in sides {
                    self.has_at_least(class, relation, is_domain, count);
                }
            }
        }
        Ok(())
    }

    /// A relation joins two classes, by so many triples or more.
    pub(super) fn joins_at_least(
        &mut self,
        head: ClassIx,
        tail: ClassIx,
        relation: RelationId,
        count: f32,
    ) {
        let joins = self.joins.entry((head, tail)).or_default();
        match joins.iter_mut().find(|(r, _)| *r == relation) {
            Some((_, known)) => *known = (*known).max(count as u32),
            None => joins.push((relation, (count as u32).max(1))),
        }
    }

    /// Things of a class are heads of a relation, or tails, of so many triples.
    pub(super) fn has_at_least(
        &mut self,
        class: ClassIx,
        relation: RelationId,
        heads: bool,
        count: f32,
    ) {
        let of = &mut self.relations[relation.index()];
        let share = (count / of.count.max(1) as f32).min(1.0);
        let side = if heads { &mut of.domain } else { &mut of.range };
        if !side.iter().any(|(c, _)| *c == class) {
            side.push((class, share));
        }
    }

    /// The classes of a thing, wider ones included.
    pub(super) fn types_of(&self, graph: &dyn Graph, entity: EntityId) -> Result<Vec<ClassIx>> {
        let mut found: Vec<ClassIx> = Vec::new();
        if self.typed_by.is_empty() {
            return Ok(found);
        }
        let row = graph.outgoing(entity)?;
        for &relation in &self.typed_by {
            for edge in edges_by_relation(&row, relation).iter().take(MAX_TYPES) {
                if let Some(&ix) = self.class_of.get(&edge.entity)
                    && !found.contains(&ix)
                {
                    found.push(ix);
                }
            }
        }
        self.add_wider(&mut found);
        Ok(found)
    }

    /// Adds the classes that are wider than these.
    pub(super) fn add_wider(&self, found: &mut Vec<ClassIx>) {
        let mut at = 0;
        while at < found.len() && found.len() < MAX_TYPES {
            for &wide in &self.classes[found[at] as usize].wider {
                if !found.contains(&wide) {
                    found.push(wide);
                }
            }
            at += 1;
        }
    }

    pub(super) fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.index()]
    }

    /// Whether a relation says nothing that is asked for: names and classes.
    pub(super) fn is_idle(&self, id: RelationId) -> bool {
        let of = self.relation(id);
        of.is_silent && !of.is_inner
    }

    pub(super) fn class_of(&self, entity: EntityId) -> Option<ClassIx> {
        self.class_of.get(&entity).copied()
    }

    /// Relations from things of one class to things of another, most triples first.
    pub(super) fn joins(&self, head: ClassIx, tail: ClassIx) -> &[(RelationId, u32)] {
        self.joins.get(&(head, tail)).map_or(&[], Vec::as_slice)
    }

    /// Classes that some relation joins to a class, most triples first: class, step towards it
    /// from the given one, triples.
    pub(super) fn next_to(&self, class: ClassIx) -> &[(ClassIx, Step, u32)] {
        self.next_to.get(&class).map_or(&[], Vec::as_slice)
    }

    /// Relations whose label has this stem, or a word for the same thing.
    pub(super) fn relations_with(&self, stem: &str, lang: &Lang) -> Vec<RelationId> {
        gathered(&self.by_stem, &self.by_group, stem, lang)
    }

    /// Relations of which a word is what a word of the question may mean, not being the same.
    pub(super) fn relations_said(&self, stem: &str, lang: &Lang) -> Vec<RelationId> {
        meant(&self.by_sense, lang.wording.of_said(stem))
    }

    /// Relations of which a word has one of these meanings.
    pub(super) fn relations_meaning(&self, senses: &[Sense]) -> Vec<RelationId> {
        meant(&self.by_sense, senses)
    }

    /// Classes of which a word is what a word of the question may mean, not being the same.
    pub(super) fn classes_said(&self, stem: &str, lang: &Lang) -> Vec<ClassIx> {
        meant(&self.classes_by_sense, lang.wording.of_said(stem))
    }

    /// Classes of a word that ends with this one: `artwork` for *work*.
    pub(super) fn classes_ending(&self, stem: &str) -> Vec<ClassIx> {
        let is_one = |class: &Class| matches!(&class.stems[..], [one] if is_end_of(stem, one));
        let all = (0..).zip(self.classes.iter().take(ENDINGS));
        let found = all.filter(|(_, class)| class.instances > 0 && is_one(class));
        found.map(|(ix, _)| ix).collect()
    }

    /// Classes whose label has this stem, or a word for the same thing.
    pub(super) fn classes_with(&self, stem: &str, lang: &Lang) -> Vec<ClassIx> {
        gathered(&self.classes_by_stem, &self.classes_by_group, stem, lang)
    }

    /// Whether the step can be made from things of these classes; true where nothing is known.
    pub(super) fn fits(&self, types: &[ClassIx], step: Step) -> bool {
        let relation = self.relation(step.0);
        let side = if step.1 {
            &relation.domain
        } else {
            &relation.range
        };
        if types.is_empty() || side.is_empty() {
            return types.is_empty() && (side.is_empty() || self.typed_by.is_empty());
        }
        side.iter().any(|(class, _)| types.contains(class))
    }

    /// Whether a step ever leads to things of these classes.
    pub(super) fn may_lead_to(&self, step: Step, types: &[ClassIx]) -> bool {
        let relation = self.relation(step.0);
        let side = if step.1 {
            &relation.range
        } else {
            &relation.domain
        };
        side.iter().any(|(class, _)| types.contains(class))
    }

    /// The classes that a step leads to.
    pub(super) fn leads_to(&self, step: Step) -> impl Iterator<Item = ClassIx> + '_ {
        let relation = self.relation(step.0);
        let side = if step.1 {
            &relation.range
        } else {
            &relation.domain
        };
        side.iter()
            .filter(|(_, share)| *share >= 0.05)
            .map(|(c, _)| *c)
    }
}

/// Whether a word is the end of a longer one, and means much the same: `work` of `artwork`.
pub(super) fn is_end_of(end: &str, word: &str) -> bool {
    end.len() >= LEAST_END && word.len() >= end.len() + 2 && word.ends_with(end)
}

fn meant<T: Copy + Ord>(by_sense: &HashMap<Sense, Vec<T>>, senses: &[Sense]) -> Vec<T> {
    let of = |sense: &Sense| by_sense.get(sense).into_iter().flatten().copied();
    let mut found: Vec<T> = senses.iter().flat_map(of).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn gathered<T: Copy + Ord>(
    by_stem: &HashMap<String, Vec<T>>,
    by_group: &HashMap<u16, Vec<T>>,
    stem: &str,
    lang: &Lang,
) -> Vec<T> {
    let mut found = by_stem.get(stem).cloned().unwrap_or_default();
    for group in lang.groups_of(stem) {
        found.extend(by_group.get(group).into_iter().flatten());
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The edges that lead on from an entity, or to it.
pub(super) fn row(graph: &dyn Graph, entity: EntityId, forward: bool) -> Result<Cow<'_, [Edge]>> {
    Ok(match forward {
        true => graph.outgoing(entity)?,
        false => graph.incoming(entity)?,
    })
}

/// Where an entity leads in one direction, by relation: how many triples each has, and the first of
/// them, or all.
pub(super) struct Runs<'g> {
    row: Cow<'g, [Edge]>,
    long: Vec<(RelationId, usize)>,
}

impl<'g> Runs<'g> {
    pub(super) fn of(graph: &'g dyn Graph, entity: EntityId, forward: bool) -> Result<Self> {
        Ok(Self {
            row: row(graph, entity, forward)?,
            long: graph.long_runs(entity, forward)?,
        })
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (RelationId, usize, &[Edge])> {
        by_relation(&self.row).map(|(relation, run)| {
            let long = self.long.iter().find(|(of, _)| *of == relation);
            (relation, long.map_or(run.len(), |(_, all)| *all), run)
        })
    }
}

/// The edges of a row by relation, without reading them all: hubs have long rows.
pub(crate) fn by_relation(row: &[Edge]) -> impl Iterator<Item = (RelationId, &[Edge])> {
    let mut rest = row;
    std::iter::from_fn(move || {
        let relation = rest.first()?.relation;
        let end = rest.partition_point(|edge| edge.relation <= relation);
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((relation, run))
    })
}

/// Whether a term says yes or no, and whether it does so as a number.
fn yes_or_no(term: &Term, lang: &Lang) -> Option<(bool, bool)> {
    let text = match term {
        Term::Name(name) => name.as_str(),
        Term::Literal(literal) => literal.value.as_str(),
        _ => return None,
    };
    let as_number = matches!(text, "0" | "1");
    let is_boolean = matches!(term, Term::Literal(literal)
        if matches!(&literal.kind, LiteralKind::Typed(of) if of.ends_with("#boolean")));
    match text {
        "1" => Some((true, as_number && !is_boolean)),
        "0" => Some((false, as_number && !is_boolean)),
        _ => lang
            .says_yes(&text.to_lowercase())
            .map(|is_yes| (is_yes, false)),
    }
}

/// Whether a text is a day, as `1994-02-28`.
fn is_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && (bytes.iter().enumerate()).all(|(at, b)| match at {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        })
}

/// What a term is: a thing, a number, a time or text.
pub(super) fn kind_of(term: &Term) -> Kind {
    match term {
        Term::Literal(literal) => {
            let datatype = match &literal.kind {
                LiteralKind::Typed(datatype) => datatype.rsplit('#').next().unwrap_or(""),
                _ => "",
            };
            let times = ["date", "dateTime", "gYear", "gYearMonth", "time"];
            let is_plain = !matches!(literal.kind, LiteralKind::Typed(_));
            if times.contains(&datatype) || is_plain && is_day(&literal.value) {
                Kind::Time
            } else if number_of(&literal.value).is_some() {
                Kind::Number
            } else {
                Kind::Text
            }
        }
        Term::Name(name) if number_of(name).is_some() => Kind::Number,
        Term::Name(name) if is_day(name) => Kind::Time,
        _ => Kind::Thing,
    }
}

/// What an entity is. A name that reads as a number is a thing where the graph says something of
/// it: the film `21`.
pub(super) fn entity_kind(entity: EntityId, graph: &dyn Graph) -> Result<Kind> {
    let term = graph.entity_term(entity)?;
    let kind = kind_of(&term);
    let is_thing =
        kind.is_measure() && matches!(term, Term::Name(_)) && !graph.outgoing(entity)?.is_empty();
    Ok(if is_thing { Kind::Thing } else { kind })
}

/// The number that a text is, with or without commas between thousands.
pub(super) fn number_of(text: &str) -> Option<f64> {
    let plain: String = text.trim().chars().filter(|c| *c != ',').collect();
    let number = plain.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    plain.parse().ok().filter(|n: &f64| number && n.is_finite())
}

/// The words of a label that join it to what follows.
fn prepositions(label: &str, lang: &Lang) -> Vec<String> {
    let last = label.rsplit('.').next().unwrap_or(label);
    let words = opened(last);
    let all = words.split(' ').filter(|w| lang.between(w).is_some());
    all.map(str::to_owned).collect()
}

/// The unit that a label ends with.
fn unit_of(label: &str, lang: &Lang) -> Option<Unit> {
    let last = label.rsplit('.').next().unwrap_or(label);
    let words = opened(last);
    match words.rsplit_once(' ') {
        // `price_per_kg` is no weight
        Some((before, unit)) => {
            let is_rate = before.rsplit(' ').next().is_some_and(|w| lang.is_rate(w));
            lang.unit_of_label(unit).filter(|_| !is_rate)
        }
        // `hours`, but no letter alone
        None => lang
            .unit_of_label(&words)
            .filter(|_| words.len() > LEAST_UNIT),
    }
}

/// The words of a label that are not closed-class, as stems and as they stand; all of them where
/// there are no others.
fn stems_and_words(label: &str, lang: &Lang) -> (Vec<String>, Vec<String>) {
    let last = label.rsplit('.').next().unwrap_or(label);
    let words = opened(last);
    let all: Vec<&str> = words.split(' ').filter(|w| !w.is_empty()).collect();
    // `length_km` is the length
    let measured = &all[..all.len() - usize::from(all.len() > 1 && unit_of(label, lang).is_some())];
    let said = |w: &&str| !lang.is_silent(w);
    let mut kept: Vec<&str> = measured.iter().copied().filter(said).collect();
    if kept.is_empty() {
        kept = all;
    }
    let mut seen = HashSet::new();
    kept.retain(|w| seen.insert(stem(adverb(w)).into_owned()));
    let stems = kept.iter().map(|w| stem(adverb(w)).into_owned()).collect();
    (stems, kept.into_iter().map(str::to_owned).collect())
}
