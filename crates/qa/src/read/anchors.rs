//! Parts that words stand for by themselves: names, classes, relations, numbers, operators.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use wherefore_graph::names::normalise;
use wherefore_graph::{Direction, EntityId, NameMatch, RelationId};

use super::arena::{Measure, Node, Ranked, SaidNumber};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::{Gap, Op, Sense, Unit};
use super::schema::{entity_kind, is_end_of, number_of};
use super::search::{Anchor, Search, sorted};
use super::unnamed::{is_doubtful, says};
use super::vocabulary::{Class, ClassIx, Kind, Relation, Step};
use crate::error::Result;
use crate::link::Link;
use crate::link::nationalities::country;
use crate::logic::Comparison;

/// Longest name, in words.
const MAX_NAME: usize = 10;
/// A name that is less sure than this is known by a part of its words.
const PART: f32 = 0.3;
/// Longest word that joins the words of a name: `des`.
const PARTICLE: usize = 3;
/// Longest phrase of a class or relation, in slots.
const MAX_PHRASE: usize = 4;
/// Classes that a noun for whatever there is may mean.
const GENERIC: usize = 4;
/// Things of one name that are told apart.
const NAMESAKES: usize = 64;
/// Classes among which the things of a name are told apart.
const GROUPS: usize = 6;

/// A number as the question says it.
struct Quantity {
    number: f64,
    /// How many times what is written there it is: `million`.
    scale: f64,
    unit: Option<Unit>,
    /// The word after it.
    to: usize,
}

/// How words say a label.
struct Said {
    /// Words that are of one group with a word of the label.
    group: usize,
    /// Words that are said for a word of the label.
    otherwise: usize,
    /// Words of the label that are not said.
    missing: usize,
}

/// A name in the question.
struct Named {
    words: (usize, usize),
    entities: Vec<EntityId>,
    /// How unsure it is: 0 where it is spelt like the question has it.
    unsure: f32,
}

impl Search<'_> {
    /// All that words stand for, and what it costs to pass over each.
    pub(super) fn anchors(&mut self, links: &[Link]) -> Result<Vec<Anchor>> {
        let mut found = Vec::new();
        self.name_anchors(links, &mut found)?;
        self.referring_anchors(&mut found)?;
        self.within_reach = self.reach(&found)?;
        self.compare_steps(&found)?;
        self.phrase_anchors(&mut found)?;
        self.wording_anchors(&mut found);
        self.dated_anchors(&mut found);
        self.unlike_anchors(&mut found)?;
        self.generic_anchors(&mut found)?;
        self.operator_anchors(&mut found);
        self.zero_anchors(&mut found)?;
        self.number_anchors(&mut found)?;
        self.chain_anchors(&mut found);
        self.initial_anchors(&mut found);
        self.group_anchors(&mut found)?;
        self.near_anchors(&mut found)?;
        self.unnamed_anchors(&mut found)?;
        self.rate_anchors(&mut found);
        self.longest_first(&mut found);
        named_first(&mut found);
        self.price_of_passing_over(&found)?;
        (self.asked, self.asked_named) = self.asked_for(&found)?;
        self.asked_by_name = self.is_asked_by_name(&found);
        self.asks_things = self.is_asked_by_kind(&found);
        self.asked_group = self.group_asked_for(&found);
        self.asked_values = self.values_asked_for(&found);
        self.asked_ends = self.ends_asked_for(&found)?;
        Ok(found)
    }

    /// Words that stand for what was answered before.
    fn referring_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        let Some(referent) = self.referent.clone() else {
            return Ok(());
        };
        for words in self.words.referring.clone() {
            let Some(slots) = self.words.slots_of(words.0, words.1) else {
                continue;
            };
            let node = self.arena.add(referent.clone())?;
            found.push(Anchor {
                slots,
                words,
                cat: Cat::set(node),
                own: vec![(F::name, 1.0), (F::name_word, 1.0)],
            });
        }
        Ok(())
    }

    fn name_anchors(&mut self, links: &[Link], found: &mut Vec<Anchor>) -> Result<()> {
        let mut names: Vec<Named> = Vec::new();
        let n = self.words.all.len();
        let mut spans = Vec::new();
        for from in 0..n {
            for to in from + 1..=n.min(from + MAX_NAME) {
                let words = &self.words.all[from..to];
                let quoted = self.words.quoted.contains(&(from, to));
                let said = !words.iter().all(|w| w.is_silent) || quoted;
                if said && !self.words.refers(from, to) {
                    spans.push((from, to, self.words.text_of(from, to)));
                }
            }
        }
        let texts = spans.iter().map(|(.., text)| *text);
        let singular = texts.clone().filter_map(one_of_many);
        let texts: Vec<&str> = texts.chain(singular).collect();
        self.graph.prefetch_names(&texts)?;
        for (from, to, text) in spans {
            let mut entities = self.graph.entities_named(text, NameMatch::Normalised)?;
            let mut unsure = 0.0;
            if entities.is_empty()
                && let Some(one) = one_of_many(text)
            {
                entities = self.graph.entities_named(one, NameMatch::Normalised)?;
                unsure = 0.2;
            }
            if entities.is_empty() && to - from <= 3 {
                let text = normalise(text);
                for name in country(&text).into_iter().flatten() {
                    entities.extend(self.graph.entities_named(name, NameMatch::Normalised)?);
                    unsure = 0.1;
                }
            }
            if entities.is_empty()
                && to - from == 1
                && let Some(doing) = doing(&self.words.all[from].lower)
            {
                entities = self.of_doing(&doing)?;
                unsure = 0.2;
            }
            if to - from == 1 && self.is_operator(from) {
                // `per` is the code of an airport for nobody who does not write it as one
                let label = normalise(text);
                let mut called = Vec::new();
                for entity in entities {
                    if normalise(&self.graph.entity_label(entity)?) == label {
                        called.push(entity);
                    }
                }
                entities = called;
            }
            if !entities.is_empty() {
                names.push(Named {
                    words: (from, to),
                    entities,
                    unsure,
                });
            }
        }
        for link in links {
            let Some((start, end)) = link.span else {
                self.given.push(link.entity);
                continue;
            };
            let first = self.words.all.iter().position(|w| w.end > start);
            let last = self.words.all.iter().rposition(|w| w.start < end);
            let (Some(first), Some(last)) = (first, last) else {
                continue;
            };
            let words = (first, last + 1);
            if self.words.refers(first, last + 1) {
                continue;
            }
            self.linked.push(words);
            if first > last || names.iter().any(|n| n.words == words) {
                continue;
            }
            names.push(Named {
                words,
                entities: vec![link.entity],
                unsure: 1.0 - link.score,
            });
        }
        let all = names.iter().flat_map(|n| n.entities.iter().take(NAMESAKES));
        let all: Vec<EntityId> = all.copied().collect();
        self.graph.prefetch(&all, Direction::Both)?;
        for named in names {
            self.one_name(named, found)?;
        }
        Ok(())
    }

    /// Values that say what somebody does, where one who does it is named.
    fn of_doing(&self, doing: &str) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        for entity in self.graph.entities_named(doing, NameMatch::Normalised)? {
            let is_kind = |((relation, forward), _): &(Step, f32)| {
                let stems = &self.schema.relation(*relation).stems;
                !forward && stems.iter().any(|s| self.lang.kinds.contains(s))
            };
            if self.steps_around(&[entity])?.iter().any(is_kind) {
                found.push(entity);
            }
        }
        Ok(found)
    }

    /// Whether a word in small letters is an operator by itself.
    fn is_operator(&self, at: usize) -> bool {
        let word = &self.words.all[at];
        let capital = self.words.text[word.start..].starts_with(char::is_uppercase);
        !capital && !self.lang.operators(&[&word.lower]).is_empty()
    }

    /// A name, once for each class of what it may mean.
    fn one_name(&mut self, named: Named, found: &mut Vec<Anchor>) -> Result<()> {
        let (from, to) = named.words;
        let Some(slots) = self.words.slots_of(from, to) else {
            return Ok(());
        };
        let mut groups: Vec<(Vec<ClassIx>, Kind, Vec<EntityId>)> = Vec::new();
        for &entity in named.entities.iter().take(NAMESAKES) {
            let is_class = self.schema.class_of(entity);
            if is_class.is_some_and(|c| self.schema.classes[c as usize].instances > 0) {
                continue;
            }
            let types = self.schema.types_of(self.graph, entity)?;
            let kind = entity_kind(entity, self.graph)?;
            if kind == Kind::Number && self.graph.degree(entity)? == 0 {
                continue;
            }
            // a year is any day of it: the number that stands there says so, the one literal does not
            if kind == Kind::Time && is_year(self.words.text_of(from, to)) {
                continue;
            }
            let untyped = types.is_empty() && kind == Kind::Thing;
            match groups
                .iter_mut()
                .find(|g| g.0 == types && g.1 == kind && !untyped)
            {
                Some(group) => group.2.push(entity),
                None => groups.push((types, kind, vec![entity])),
            }
        }
        let capital = self.words.text[self.words.all[from].start..].starts_with(char::is_uppercase);
        let is_quoted = self.words.quoted.contains(&(from, to));
        let mut degrees = Vec::with_capacity(groups.len());
        for (_, _, entities) in &groups {
            let mut most = 0;
            for &entity in entities.iter().take(GROUPS) {
                most = most.max(self.graph.degree(entity)?);
            }
            degrees.push(most as f32 + 1.0);
        }
        let most = degrees.iter().copied().fold(1.0, f32::max);
        let text = self.words.text_of(from, to).to_owned();
        let several = groups.len() > 1;
        for ((_, kind, entities), degree) in groups.into_iter().zip(degrees).take(GROUPS) {
            // `gouda` is the cheese, where the graph has Gouda as well
            let mut as_written = false;
            for &entity in entities.iter().take(GROUPS) {
                as_written |= self.graph.entity_label(entity)? == text;
            }
            let mut own = vec![
                (F::name_rare, (most / degree).ln()),
                (F::name, 1.0),
                (F::name_word, (to - from) as f32),
                (F::name_namesakes, (entities.len() as f32).ln()),
            ];
            if named.unsure > 0.0 {
                own.push((F::name_unsure, named.unsure));
            }
            if !(capital || is_quoted || as_written && several) {
                own.push((F::name_lower, 1.0));
            }
            match kind {
                Kind::Thing => {}
                Kind::Text => own.push((F::name_literal, 1.0)),
                Kind::Number | Kind::Time => own.push((F::name_number, 1.0)),
            }
            self.prominent(&entities, slots, named.words, &own, found)?;
            // a question begins with a capital letter: `Manuscripts from …`
            let may_be_kind = !capital || from == 0;
            if may_be_kind && !is_quoted && matches!(kind, Kind::Thing | Kind::Text) {
                self.of_kind(&entities, slots, named.words, &own, found)?;
            }
            let node = self.arena.add(Node::Ents(sorted(entities)))?;
            found.push(Anchor {
                slots,
                words: named.words,
                cat: Cat::set(node),
                own,
            });
        }
        Ok(())
    }

    /// The things of which a name in small letters says what they are: `herbs`.
    fn of_kind(
        &mut self,
        entities: &[EntityId],
        slots: (usize, usize),
        words: (usize, usize),
        own: &[(F, f32)],
        found: &mut Vec<Anchor>,
    ) -> Result<()> {
        for ((relation, forward), _) in self.steps_around(entities)? {
            let stems = &self.schema.relation(relation).stems;
            if forward || !stems.iter().any(|s| self.lang.kinds.contains(s)) {
                continue;
            }
            let kind = self.arena.add(Node::Ents(sorted(entities.to_vec())))?;
            let node = self.arena.add(Node::Join((relation, false), kind))?;
            let mut own = own.to_vec();
            own.push((F::join_s_none_against, 1.0));
            found.push(Anchor {
                slots,
                words,
                cat: Cat::set(node),
                own,
            });
        }
        Ok(())
    }

    /// Of namesakes of one class, the one that the graph says most about by far.
    fn prominent(
        &mut self,
        entities: &[EntityId],
        slots: (usize, usize),
        words: (usize, usize),
        own: &[(F, f32)],
        found: &mut Vec<Anchor>,
    ) -> Result<()> {
        let mut degrees = Vec::with_capacity(entities.len());
        for &entity in entities {
            degrees.push((self.graph.degree(entity)?, entity));
        }
        degrees.sort_unstable_by(|a, b| b.cmp(a));
        if let [(most, first), (next, _), ..] = degrees[..]
            && most >= 3 * next
        {
            let mut own: Vec<(F, f32)> = own.to_vec();
            own.retain(|(f, _)| *f != F::name_namesakes);
            own.push((F::name_prominent, 1.0));
            let node = self.arena.add(Node::Ents(sorted(vec![first])))?;
            let cat = Cat::set(node);
            found.push(Anchor {
                slots,
                words,
                cat,
                own,
            });
        }
        Ok(())
    }

    /// Classes and relations by the words of their labels.
    fn phrase_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        let n = self.words.slots.len();
        let mut classes: HashMap<usize, Vec<ClassIx>> = HashMap::new();
        let mut relations: HashMap<usize, Vec<RelationId>> = HashMap::new();
        for slot in 0..n {
            let stem = &self.words.all[self.words.slots[slot]].stem;
            let mut of = self.schema.classes_with(stem, self.lang);
            of.extend(self.schema.classes_said(stem, self.lang));
            of.extend(self.schema.classes_ending(stem));
            of.sort_unstable();
            of.dedup();
            classes.insert(slot, of);
            let mut of = self.schema.relations_with(stem, self.lang);
            of.extend(self.schema.relations_said(stem, self.lang));
            of.sort_unstable();
            of.dedup();
            relations.insert(slot, of);
        }
        for from in 0..n {
            for to in from + 1..=n.min(from + MAX_PHRASE) {
                let words = (self.words.slots[from], self.words.slots[to - 1] + 1);
                let stems: Vec<String> = (from..to)
                    .map(|slot| self.words.all[self.words.slots[slot]].stem.clone())
                    .collect();
                let slots = (from, to);
                for &class in &classes[&from] {
                    let Class { stems: of, .. } = &self.schema.classes[class as usize];
                    let Some(said) = self.matched(&stems, of) else {
                        continue;
                    };
                    if said.missing * 2 > of.len() {
                        continue;
                    }
                    let own = vec![
                        (F::class, 1.0),
                        (F::class_group, said.group as f32),
                        (F::class_said, said.otherwise as f32),
                        (F::class_missing, said.missing as f32),
                    ];
                    let cat = Cat::set(self.arena.add(Node::Class(class))?);
                    found.push(Anchor {
                        slots,
                        words,
                        cat,
                        own,
                    });
                }
                for &relation in &relations[&from] {
                    if !self.is_within_reach(relation) {
                        continue;
                    }
                    let of = self.schema.relation(relation);
                    let Some(said) = self.matched(&stems, &of.stems) else {
                        continue;
                    };
                    // what is said for one word of three hardly says them all
                    if said.otherwise > 0 && said.missing * 2 > of.stems.len() {
                        continue;
                    }
                    // `under 8 euros` is no `trained under`
                    if said.missing > 0 && self.is_compared((from, to)) {
                        continue;
                    }
                    // `taller` compares heights, and is not the height
                    if said.group + said.otherwise > 0 && self.is_comparative(words) {
                        continue;
                    }
                    let mut own = vec![
                        (F::relation, 1.0),
                        (F::relation_group, said.group as f32),
                        (F::relation_said, said.otherwise as f32),
                        (F::relation_missing, said.missing as f32),
                        (F::relation_fits, self.relation_fits(relation)),
                    ];
                    own.extend(self.preposition(relation, words.1));
                    let extreme = |word: &&String| {
                        let said = self.lang.operators(&[word]);
                        said.iter().any(|(_, op)| matches!(op, Op::Best(..)))
                    };
                    if let Some(word) = of.words.iter().find(extreme) {
                        let stem = crate::words::stem(word);
                        let is_said = |s: &String| *s == stem || self.lang.same_group(s, &stem);
                        if of.stems.len() > 1 && stems.iter().all(is_said) {
                            own.push((F::relation_only_extreme, 1.0));
                        }
                        if !stems.iter().any(is_said) {
                            own.push((F::relation_missing_extreme, 1.0));
                        }
                    }
                    if let Some([yes, _]) = &of.flag {
                        if said.otherwise > 0 {
                            continue;
                        }
                        self.flag_anchor(relation, yes, slots, words, own, found)?;
                        continue;
                    }
                    let cat = Cat::Relation(relation);
                    found.push(Anchor {
                        slots,
                        words,
                        cat,
                        own: own.clone(),
                    });
                    // what is only said for a relation is no name of what it leads to
                    if said.otherwise == 0 {
                        self.relation_as_set(relation, slots, words, own, found)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The things of which a relation to yes and no says so: `restored`, `with a lift`.
    fn flag_anchor(
        &mut self,
        relation: RelationId,
        says: &[EntityId],
        slots: (usize, usize),
        words: (usize, usize),
        own: Vec<(F, f32)>,
        found: &mut Vec<Anchor>,
    ) -> Result<()> {
        let says = self.arena.add(Node::Ents(sorted(says.to_vec())))?;
        let node = self.arena.add(Node::Join((relation, false), says))?;
        found.push(Anchor {
            slots,
            words,
            cat: Cat::set(node),
            own,
        });
        Ok(())
    }

    /// Words that say that something is not so: `unsold`, where the graph says what is sold.
    fn unlike_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        for slot in 0..self.words.slots.len() {
            let at = self.words.slots[slot];
            let lower = &self.words.all[at].lower;
            let rests = self
                .lang
                .unlike
                .iter()
                .filter_map(|un| lower.strip_prefix(un.as_str()));
            let stems: Vec<String> = rests
                .filter(|rest| rest.len() > 2)
                .map(|rest| crate::words::stem(rest).into_owned())
                .collect();
            for stem in stems {
                for relation in self.schema.relations_with(&stem, self.lang) {
                    let of = self.schema.relation(relation);
                    if let Some([_, no]) = &of.flag
                        && of.stems == [stem.as_str()]
                    {
                        let own = vec![(F::relation, 1.0)];
                        let words = (at, at + 1);
                        self.flag_anchor(relation, no, (slot, slot + 1), words, own, found)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Nouns for whatever there is (`items`): the largest classes.
    fn generic_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        for slot in 0..self.words.slots.len() {
            let at = self.words.slots[slot];
            let known = |a: &Anchor| (a.slots.0..a.slots.1).contains(&slot) && !is_otherwise(a);
            if !self.lang.generic.contains(&self.words.all[at].lower) || found.iter().any(known) {
                continue;
            }
            let mut classes: Vec<ClassIx> = (0..self.schema.classes.len() as ClassIx).collect();
            let of = |class: &ClassIx| self.schema.classes[*class as usize].instances;
            classes.retain(|class| of(class) > 0);
            classes.sort_by_key(|class| std::cmp::Reverse(of(class)));
            for &class in classes.iter().take(GENERIC) {
                let node = self.arena.add(Node::Class(class))?;
                found.push(Anchor {
                    slots: (slot, slot + 1),
                    words: (at, at + 1),
                    cat: Cat::set(node),
                    own: vec![(F::class, 1.0), (F::class_said, 1.0)],
                });
            }
        }
        Ok(())
    }

    /// Whether all of these slots are a word that compares with a number: `under`.
    fn is_compared(&self, slots: (usize, usize)) -> bool {
        let words = (self.words.slots[slots.0], self.words.slots[slots.1 - 1] + 1);
        let mut phrases = self.words.phrases.iter();
        phrases.any(|p| (p.from, p.to) == words && matches!(p.op, Op::Compare(_)))
    }

    /// Whether all of these words are one that compares: `taller`.
    fn is_comparative(&self, (from, to): (usize, usize)) -> bool {
        let mut phrases = self.words.phrases.iter();
        phrases.any(|p| (p.from, p.to) == (from, to) && matches!(p.op, Op::More(..)))
    }

    /// Words whose first letters are a relation's label, or a word that is the first letters of
    /// one: `miles per gallon`, `GDP`.
    fn initial_anchors(&self, found: &mut Vec<Anchor>) {
        let first = |word: &str| word.chars().next();
        let n = self.words.all.len();
        for id in 0..self.schema.relations.len() {
            let relation = RelationId(id as u32);
            let label = &self.schema.relation(relation).words;
            let initials: String = label.iter().filter_map(|w| first(w)).collect();
            for from in 0..n {
                let to = match &label[..] {
                    [short] if (3..=5).contains(&short.chars().count()) => {
                        let to = from + short.chars().count();
                        let said = self.words.all.get(from..to).unwrap_or_default();
                        let said = said.iter().filter_map(|w| first(&w.lower));
                        if !said.eq(short.chars()) {
                            continue;
                        }
                        to
                    }
                    [_, _, ..] if self.words.all[from].lower == initials => from + 1,
                    _ => continue,
                };
                if let Some(slots) = self.words.slots_of(from, to) {
                    found.push(Anchor {
                        slots,
                        words: (from, to),
                        cat: Cat::Relation(relation),
                        own: vec![(F::relation, 1.0), (F::relation_group, 1.0)],
                    });
                }
            }
        }
    }

    /// Words that mean several steps: `grandmother`.
    fn chain_anchors(&self, found: &mut Vec<Anchor>) {
        for slot in 0..self.words.slots.len() {
            let at = self.words.slots[slot];
            let steps = self.lang.chain(&self.words.all[at].stem);
            let relation = |step: &String| {
                let all = self.schema.relations_with(step, self.lang).into_iter();
                let whole = |r: &RelationId| self.schema.relation(*r).stems.len() == 1;
                all.filter(whole).min()
            };
            // a child is who has somebody as a parent, where the graph says it so
            let known = |step: &String| {
                let along = relation(step).map(|r| (r, true));
                along.or_else(|| Some((relation(self.lang.inverse(step)?)?, false)))
            };
            let steps: Option<Rc<[Step]>> = steps.iter().map(known).collect();
            // one step along is the relation itself
            let steps = steps.filter(|steps| !matches!(steps[..], [(_, true)]));
            if let Some(steps) = steps.filter(|s| !s.is_empty()) {
                found.push(Anchor {
                    slots: (slot, slot + 1),
                    words: (at, at + 1),
                    cat: Cat::Chain(steps),
                    own: vec![(F::relation, 1.0)],
                });
            }
        }
    }

    /// Whether a word says what somebody does: `who plays`.
    pub(super) fn is_done(&self, at: usize) -> bool {
        at > 0 && self.lang.person.contains(&self.words.all[at - 1].lower)
    }

    /// Classes and relations that words come near to, where nothing else is known of the words.
    fn near_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        for slot in 0..self.words.slots.len() {
            let at = self.words.slots[slot];
            let word = &self.words.all[at];
            let known = |a: &Anchor| (a.slots.0..a.slots.1).contains(&slot) && !is_otherwise(a);
            if word.is_silent || found.iter().any(known) {
                continue;
            }
            for relation in self.measures_of_superlative(&word.lower) {
                let by = Measure::of(relation);
                found.push(Anchor {
                    slots: (slot, slot + 1),
                    words: (at, at + 1),
                    cat: Cat::Top(true, by, Ranked::Nth(1)),
                    own: vec![(F::top_relation, 1.0)],
                });
            }
            let classes = match self.is_done(at) {
                true => Vec::new(),
                false => self.near.classes(&word.lower)?,
            };
            for (class, cosine) in classes {
                let node = self.arena.add(Node::Class(class))?;
                found.push(Anchor {
                    slots: (slot, slot + 1),
                    words: (at, at + 1),
                    cat: Cat::set(node),
                    own: vec![(F::class, 1.0), (F::class_soft, 1.0 - cosine)],
                });
            }
            for (relation, cosine) in self.near.relations(&word.lower, self.schema)? {
                let ranks = self.lang.is_superlative(&self.words.all[at].lower)
                    && self.schema.relation(relation).kind.is_measure();
                let is_flag = self.schema.relation(relation).flag.is_some();
                if ranks || is_flag || !self.is_within_reach(relation) {
                    continue;
                }
                found.push(Anchor {
                    slots: (slot, slot + 1),
                    words: (at, at + 1),
                    cat: Cat::Relation(relation),
                    own: vec![
                        (F::relation, 1.0),
                        (F::relation_soft, 1.0 - cosine),
                        (F::relation_fits, self.relation_fits(relation)),
                    ],
                });
            }
        }
        Ok(())
    }

    /// The measures that are called after the adjective of a superlative that no degree names:
    /// `cleanliness` for `cleanest`.
    fn measures_of_superlative(&self, word: &str) -> Vec<RelationId> {
        let Some(adjective) = self.lang.adjective(word) else {
            return Vec::new();
        };
        let is_called = |of: &Relation| of.words.iter().any(|w| w.starts_with(adjective));
        (0..)
            .zip(&self.schema.relations)
            .filter(|(_, of)| of.kind.is_measure() && is_called(of))
            .map(|(id, _)| RelationId(id))
            .filter(|id| self.is_within_reach(*id))
            .collect()
    }

    /// `year`, `the highest point`: all that the relation leads to.
    fn relation_as_set(
        &mut self,
        relation: RelationId,
        slots: (usize, usize),
        words: (usize, usize),
        mut own: Vec<(F, f32)>,
        found: &mut Vec<Anchor>,
    ) -> Result<()> {
        let last = &self.words.all[words.1 - 1].lower;
        let is_verb = self.schema.is_untyped && self.lang.is_participle(last);
        if self.schema.relation(relation).is_noun || is_verb {
            return Ok(());
        }
        own.push((F::relation_named_as_class, 1.0));
        if let Some((greatest, by)) = self.extreme_of(relation)
            && let Some(&(class, _)) = self.schema.relation(relation).domain.first()
        {
            let by = Measure::of(by);
            let class = self.arena.add(Node::Class(class))?;
            let top = self
                .arena
                .add(Node::Top(class, by, greatest, Ranked::Nth(1)))?;
            let node = self.arena.add(Node::Join((relation, true), top))?;
            own.push((F::top_all, 1.0));
            found.push(Anchor {
                slots,
                words,
                cat: Cat::set(node),
                own,
            });
        } else {
            if matches!(self.schema.relation(relation).kind, Kind::Number) {
                own.push((F::value_named_as_class, 1.0));
            }
            // `members`, where it is said when they joined
            let stem = &self.words.all[words.1 - 1].stem;
            let is_time = self.schema.relation(relation).kind == Kind::Time;
            let is_person = self.lang.people.classes.contains(stem);
            let node = Node::Side(relation, !(is_time && is_person));
            let node = self.arena.add(node)?;
            found.push(Anchor {
                slots,
                words,
                cat: Cat::set(node),
                own,
            });
        }
        Ok(())
    }

    /// Whether what follows in the question is what follows in the label: `flow into`.
    fn preposition(&self, relation: RelationId, next: usize) -> Option<(F, f32)> {
        let of = &self.schema.relation(relation).prepositions;
        let next = &self.words.all.get(next)?.lower;
        if of.contains(next) {
            return Some((F::preposition, 1.0));
        }
        let other = self.lang.between(next).is_some() && !of.is_empty();
        other.then_some((F::preposition_differs, 1.0))
    }

    /// How these stems say a label; none where one of them does not.
    fn matched(&self, stems: &[String], label: &[String]) -> Option<Said> {
        let mut said = vec![false; label.len()];
        let (mut group, mut otherwise) = (0, 0);
        for stem in stems {
            let place = label.iter().position(|l| l == stem);
            let place = place.or_else(|| {
                let place = label.iter().position(|l| self.lang.same_group(l, stem))?;
                group += 1;
                Some(place)
            });
            let place = place.or_else(|| {
                let place = label.iter().position(|l| is_end_of(stem, l))?;
                group += 1;
                Some(place)
            });
            let place = place.or_else(|| {
                let means = |l: &String| self.lang.wording.may_mean(stem, l);
                let place = label.iter().position(means)?;
                otherwise += 1;
                Some(place)
            })?;
            if said[place] {
                return None;
            }
            said[place] = true;
        }
        Some(Said {
            group,
            otherwise,
            missing: said.iter().filter(|s| !**s).count(),
        })
    }

    /// Relations that a phrase of several words is said for: `who looks after` for the keeper.
    fn wording_anchors(&self, found: &mut Vec<Anchor>) {
        let stems: Vec<&str> = self.words.all.iter().map(|w| w.stem.as_str()).collect();
        for from in 0..stems.len() {
            let mut by_length: BTreeMap<usize, Vec<Sense>> = BTreeMap::new();
            for (length, sense) in self.lang.wording.of_phrase(&stems[from..]) {
                by_length.entry(length).or_default().push(sense);
            }
            for (length, senses) in by_length {
                let words = (from, from + length);
                let Some(slots) = self.words.slots_of(words.0, words.1) else {
                    continue;
                };
                for relation in self.schema.relations_meaning(&senses) {
                    let of = self.schema.relation(relation);
                    if !self.is_within_reach(relation) || of.flag.is_some() {
                        continue;
                    }
                    let missing = of.stems.len() - 1;
                    if missing * 2 > of.stems.len() {
                        continue;
                    }
                    found.push(Anchor {
                        slots,
                        words,
                        cat: Cat::Relation(relation),
                        own: vec![
                            (F::relation, 1.0),
                            (F::relation_said, 1.0),
                            (F::relation_missing, missing as f32),
                            (F::relation_fits, self.relation_fits(relation)),
                        ],
                    });
                }
            }
        }
    }

    /// Relations to times with the word for what they are: `service date`, where the graph says when
    /// something was last serviced.
    fn dated_anchors(&self, found: &mut Vec<Anchor>) {
        let mut dated = Vec::new();
        for anchor in found.iter() {
            let Cat::Relation(relation) = anchor.cat else {
                continue;
            };
            let of = self.schema.relation(relation);
            let says = |w: &super::tokens::Word| {
                self.lang.years.contains(&w.stem) && !of.stems.contains(&w.stem)
            };
            let (words, next) = (anchor.words, anchor.words.1);
            if of.kind == Kind::Time
                && self.words.all.get(next).is_some_and(says)
                && let Some(slots) = self.words.slots_of(words.0, next + 1)
            {
                dated.push(Anchor {
                    slots,
                    words: (words.0, next + 1),
                    ..anchor.clone()
                });
            }
        }
        found.extend(dated);
    }

    /// What costs nothing, where something has a price: `free`. Elsewhere the word is none.
    fn zero_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        for phrase in self.words.phrases.clone() {
            let Op::Zero(n) = phrase.op else {
                continue;
            };
            let words = (phrase.from, phrase.to);
            let Some(slots) = self.words.slots_of(words.0, words.1) else {
                continue;
            };
            let zero = self.arena.add(Node::Const(0f64.to_bits()))?;
            let measures = &self.lang.zeros[usize::from(n)];
            for (id, of) in (0..).map(RelationId).zip(&self.schema.relations) {
                let says = of.stems.iter().any(|stem| measures.contains(stem));
                if says && of.kind == Kind::Number && !of.is_silent {
                    let cat = Cat::Filter(Measure::of(id), Comparison::Equal, zero);
                    let own = vec![(F::relation, 1.0), (F::relation_group, 1.0)];
                    found.push(Anchor {
                        slots,
                        words,
                        cat,
                        own,
                    });
                }
            }
        }
        Ok(())
    }

    fn operator_anchors(&self, found: &mut Vec<Anchor>) {
        for phrase in &self.words.phrases {
            let Some(slots) = self.words.slots_of(phrase.from, phrase.to) else {
                continue;
            };
            if matches!(phrase.op, Op::Zero(_)) {
                continue;
            }
            let cat = match phrase.op {
                op @ (Op::Best(..) | Op::Extreme(_)) => Cat::Superlative(op, Ranked::Nth(1)),
                op @ Op::Order(first) => {
                    let last = &self.words.all[phrase.to - 1].lower;
                    if self.lang.between(last).is_some() {
                        found.push(Anchor {
                            slots,
                            words: (phrase.from, phrase.to),
                            cat: Cat::Op(op),
                            own: Vec::new(),
                        });
                        continue;
                    }
                    found.push(Anchor {
                        slots,
                        words: (phrase.from, phrase.to),
                        cat: Cat::Ordered(None, first),
                        own: Vec::new(),
                    });
                    Cat::Op(op)
                }
                op => Cat::Op(op),
            };
            found.push(Anchor {
                slots,
                words: (phrase.from, phrase.to),
                cat,
                own: Vec::new(),
            });
        }
    }

    fn number_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        for at in 0..self.words.all.len() {
            if let Some(said) = self.single_unit(at) {
                self.quantity_anchor(at, &said, found)?;
                continue;
            }
            let is_slot = self.words.slots.binary_search(&at).is_ok();
            if !is_slot || self.words.all[at].is_silent && self.date_from(at).is_none() {
                continue;
            }
            if let Some(date) = self.date_from(at) {
                let said = SaidNumber {
                    lasts: Some(date.lasts),
                    ..SaidNumber::default()
                };
                let node = self.arena.add_said(date.from, said)?;
                if let Some(slots) = self.words.slots_of(at, date.to) {
                    found.push(Anchor {
                        slots,
                        words: (at, date.to),
                        cat: Cat::Number(node),
                        own: Vec::new(),
                    });
                }
            }
            if let Some((low, high, to)) = self.years_from(at) {
                let low = self.arena.add(Node::Const(low.to_bits()))?;
                let high = self.arena.add(Node::Const(high.to_bits()))?;
                if let Some(slots) = self.words.slots_of(at, to) {
                    found.push(Anchor {
                        slots,
                        words: (at, to),
                        cat: Cat::Range(low, high),
                        own: Vec::new(),
                    });
                }
            }
            let Some(said) = self.number_from(at) else {
                continue;
            };
            let (number, to) = (said.number, said.to);
            self.quantity_anchor(at, &said, found)?;
            // `between 3 and 5`, `1990 to 1995`
            let before = at.checked_sub(1).map(|i| self.words.all[i].lower.as_str());
            if let Some(between) = self.words.all.get(to)
                && let Some(high) = self.number_from(to + 1)
                && self.lang.is_range(before, &between.lower)
            {
                // `between 5 and 10 million`
                let low = match number * high.scale <= high.number {
                    true => number * high.scale,
                    false => number,
                };
                let end = high.to;
                let said = SaidNumber {
                    unit: high.unit.or(said.unit),
                    ..SaidNumber::default()
                };
                let low = self.arena.add_said(low, said)?;
                let high = self.arena.add_said(high.number, said)?;
                if let Some(slots) = self.words.slots_of(at, end) {
                    found.push(Anchor {
                        slots,
                        words: (at, end),
                        cat: Cat::Range(low, high),
                        own: Vec::new(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The years from and to that begin at a word, and the word after them: `19th century`,
    /// `1990s`, `nineties`.
    fn years_from(&self, at: usize) -> Option<(f64, f64, usize)> {
        let word = &self.words.all[at].lower;
        let next = self.words.all.get(at + 1);
        if next.is_some_and(|next| self.lang.century.contains(&next.lower)) {
            let is_end = |c: char| c.is_ascii_digit();
            let written = word.trim_end_matches(|c| !is_end(c)).parse().ok();
            let said = self.lang.operators(&[word]).into_iter();
            let mut said = said.filter_map(|(_, op)| match op {
                Op::Ordinal(n) => Some(f64::from(n)),
                _ => None,
            });
            let n: f64 = written.or_else(|| said.next())?;
            return Some((100.0 * n - 99.0, 100.0 * n, at + 2));
        }
        if let Some(tens) = self.lang.decades.get(word) {
            return Some((1900.0 + tens, 1909.0 + tens, at + 1));
        }
        let year: f64 = word.strip_suffix('s')?.parse().ok()?;
        let first = match word.len() {
            5 => year,
            3 => 1900.0 + year,
            _ => return None,
        };
        let long = if first % 100.0 == 0.0 && first < 2000.0 {
            99.0
        } else {
            9.0
        };
        (first % 10.0 == 0.0).then_some((first, first + long, at + 1))
    }

    fn quantity_anchor(
        &mut self,
        at: usize,
        said: &Quantity,
        found: &mut Vec<Anchor>,
    ) -> Result<()> {
        let unit = said.unit;
        let node = self
            .arena
            .add_said(said.number, SaidNumber { unit, lasts: None })?;
        let mut ends = vec![said.to];
        if unit.is_some() {
            // the unit may be a relation's own word: `more than 350 calories`
            ends.push(said.to - 1);
        }
        let mut all: Vec<_> = (ends.into_iter())
            .filter(|to| *to > at)
            .filter_map(|to| Some((self.words.slots_of(at, to)?, to)))
            .collect();
        all.dedup_by_key(|(slots, _)| *slots);
        for (slots, to) in all {
            found.push(Anchor {
                slots,
                words: (at, to),
                cat: Cat::Number(node),
                own: Vec::new(),
            });
        }
        Ok(())
    }

    /// One of a unit, or half of one, where an amount is compared: `less than an hour`, `over half
    /// an hour`.
    fn single_unit(&self, at: usize) -> Option<Quantity> {
        let word = |at: usize| self.words.all.get(at).map(|w| w.lower.as_str());
        let compares = |p: &super::tokens::Phrase| {
            p.to == at && matches!(p.op, Op::Compare(_)) || p.to + 1 == at && is_more(p.op)
        };
        let than = at > 0 && self.lang.is_than(&self.words.all[at - 1].lower);
        let before = than || self.words.phrases.iter().any(compares);
        let (mut number, mut to) = (1.0, at);
        if self.lang.is_half(word(to)?) {
            (number, to) = (0.5, to + 1);
        }
        if self.lang.is_single(word(to)?) {
            to += 1;
        } else if number == 1.0 {
            return None;
        }
        let unit = self.lang.unit(word(to)?)?;
        to += 1;
        if number == 1.0 {
            (number, to) = self.and_a_half(number, to);
        }
        // `an hour or less`
        let after = |p: &super::tokens::Phrase| p.from == to && matches!(p.op, Op::Compare(_));
        if !before && !self.words.phrases.iter().any(after) {
            return None;
        }
        self.words.slots_of(at, to)?;
        Some(Quantity {
            number,
            scale: 1.0,
            unit: Some(unit),
            to,
        })
    }

    /// A number that `and a half` may follow, and the word after it.
    fn and_a_half(&self, number: f64, to: usize) -> (f64, usize) {
        let says = |at: usize, is: &dyn Fn(&str) -> bool| {
            self.words.all.get(at).is_some_and(|w| is(&w.lower))
        };
        let half = says(to, &|w| self.lang.is_plus(w))
            && says(to + 1, &|w| self.lang.is_single(w))
            && says(to + 2, &|w| self.lang.is_half(w));
        if half {
            (number + 0.5, to + 3)
        } else {
            (number, to)
        }
    }

    /// The number that begins at a word: `5 million`, `two and a half hours`, `10km`.
    fn number_from(&self, at: usize) -> Option<Quantity> {
        let word = self.words.all.get(at)?;
        let mut to = at + 1;
        let Some(number) = self.words.number_at(at, self.lang) else {
            // `10km`
            let end = word.lower.find(|c: char| c.is_alphabetic())?;
            let (number, unit) = word.lower.split_at(end);
            return Some(Quantity {
                number: number_of(number)?,
                scale: 1.0,
                unit: Some(self.lang.unit(unit)?),
                to,
            });
        };
        let mut scale = 1.0;
        while let Some(next) = self.words.all.get(to)
            && let Some(times) = self.lang.number(&next.lower)
            && times >= 100.0
        {
            scale *= times;
            to += 1;
        }
        let (number, mut to) = self.and_a_half(number * scale, to);
        let next = self.words.all.get(to);
        let unit = next.and_then(|next| self.lang.unit(&next.lower));
        if unit.is_some() {
            to += 1;
        }
        Some(Quantity {
            number,
            scale,
            unit,
            to,
        })
    }

    /// Whether a word says what an amount is for one of: `12 euros a bottle`.
    fn is_per(&self, slot: usize) -> bool {
        let at = self.words.slots[slot];
        let lower = |at: usize| self.words.all[at].lower.as_str();
        let is_amount = |at: usize| {
            self.lang.unit(lower(at)).is_some() || self.words.number_at(at, self.lang).is_some()
        };
        let is_one = |word: &str| self.lang.is_single(word) || self.lang.is_rate(word);
        at > 1 && is_one(lower(at - 1)) && is_amount(at - 2)
    }

    /// What an amount is for one of names no relation but one that says so: `price_per_bottle`.
    fn rate_anchors(&self, found: &mut Vec<Anchor>) {
        for slot in 0..self.words.slots.len() {
            if !self.is_per(slot) {
                continue;
            }
            found.retain(|anchor| {
                let says_so = match anchor.cat {
                    Cat::Relation(relation) => {
                        let label = &self.schema.relation(relation).words;
                        label.iter().any(|word| self.lang.is_rate(word))
                    }
                    _ => false,
                };
                anchor.slots != (slot, slot + 1) || says_so
            });
        }
    }

    /// Parts of a label that the question has in full say less than the whole of it.
    fn longest_first(&self, found: &mut [Anchor]) {
        let says = |a: &Anchor, all: &[F]| a.own.iter().any(|(f, v)| *v > 0.0 && all.contains(f));
        let is_label = |a: &Anchor| says(a, &[F::relation, F::class]);
        let differs = [
            F::relation_group,
            F::relation_said,
            F::relation_missing,
            F::class_group,
            F::class_said,
            F::class_missing,
        ];
        let whole = |a: &&Anchor| is_label(a) && a.slots.1 > a.slots.0 + 1 && !says(a, &differs);
        let whole: Vec<(usize, usize)> = found.iter().filter(whole).map(|a| a.slots).collect();
        for anchor in found {
            let (from, to) = anchor.slots;
            let inside = |w: &(usize, usize)| w.0 <= from && to <= w.1 && to - from < w.1 - w.0;
            if is_label(anchor) && whole.iter().any(inside) {
                anchor.own.push((F::inside_label, 1.0));
            }
        }
    }

    fn price_of_passing_over(&mut self, found: &[Anchor]) -> Result<()> {
        for slot in 0..self.words.slots.len() {
            let word = &self.words.all[self.words.slots[slot]];
            let here = found
                .iter()
                .filter(|a| (a.slots.0..a.slots.1).contains(&slot));
            let mut price = F::skip_unknown;
            let (mut named, mut maybe_named) = (false, false);
            let asks = |a: &&Anchor| {
                matches!(a.cat, Cat::Op(Op::Where | Op::When))
                    && (a.slots.0..a.slots.1).contains(&slot)
            };
            if found.iter().any(|a| asks(&a)) {
                self.skip[slot] = F::skip_asking;
                continue;
            }
            for anchor in here {
                match &anchor.cat {
                    Cat::Op(Op::Share) => price = F::skip_light,
                    Cat::Op(Op::Event) if price == F::skip_unknown => price = F::skip_word,
                    Cat::Op(Op::Event) => {}
                    Cat::Op(_) | Cat::Superlative(..) => price = F::skip_operator,
                    Cat::Number(_) => price = F::skip_number,
                    Cat::Set { node, .. } if self.is_named(*node) || self.is_carried(*node) => {
                        named |= !(self.schema.is_untyped && is_doubtful(anchor))
                            || self.linked.contains(&anchor.words);
                        maybe_named = true;
                    }
                    _ if price == F::skip_unknown => price = F::skip_word,
                    _ => {}
                }
            }
            if named && !matches!(price, F::skip_number | F::skip_operator) {
                price = F::skip_name;
            }
            if price == F::skip_unknown
                && !maybe_named
                && self.schema.is_untyped
                && self.describes(slot)
                && self.near.knows(&word.lower)?
            {
                price = F::skip_modifier;
            }
            if matches!(price, F::skip_unknown | F::skip_modifier)
                && self.is_rest_of_name(slot, found)
            {
                price = F::skip_name;
            }
            if word.is_light && matches!(price, F::skip_unknown | F::skip_word) {
                price = self.price_of_light(slot, found);
            }
            if word.is_silent || self.lang.whose.contains(&word.lower) {
                price = F::skip_silent;
            }
            if price != F::skip_silent && self.is_of_the_same(slot, found) {
                price = F::skip_operator;
            }
            if self.is_scope(slot, found) || self.is_per(slot) || self.is_start_of_year(slot) {
                price = F::skip_light;
            }
            self.skip[slot] = price;
        }
        Ok(())
    }

    /// Whether a relation is said of what the same leads to: `the boss of her boss`.
    fn is_of_the_same(&self, slot: usize, found: &[Anchor]) -> bool {
        let at = self.words.slots[slot];
        let stem = &self.words.all[at].stem;
        let names = |slot: usize| {
            let here = found.iter().filter(move |a| a.slots == (slot, slot + 1));
            here.filter_map(|a| match a.cat {
                Cat::Relation(relation) => Some(relation),
                _ => None,
            })
        };
        let joins = |between: &[super::tokens::Word]| {
            let mut lower = between.iter().map(|w| &w.lower);
            lower.any(|w| self.lang.is_possessive(w) || self.lang.between(w) == Some(Gap::Of))
        };
        (0..self.words.slots.len()).any(|other| {
            let there = self.words.slots[other];
            let (first, last) = (at.min(there), at.max(there));
            other != slot
                && self.words.all[there].stem == *stem
                && joins(&self.words.all[first..last])
                && names(slot).any(|relation| names(other).any(|r| r == relation))
        })
    }

    /// Whether a word stands before a year and says that it begins: `since the start of 2015`.
    fn is_start_of_year(&self, slot: usize) -> bool {
        let at = self.words.slots[slot];
        let lower = |at: usize| self.words.all.get(at).map(|w| w.lower.as_str());
        let of = lower(at + 1).is_some_and(|w| self.lang.between(w) == Some(Gap::Of));
        let is_start = lower(at).is_some_and(|w| self.lang.is_begin(w));
        is_start && of && lower(at + 2).is_some_and(is_year)
    }

    /// Whether a word at the end of the question means all that the graph holds: `in the fleet`.
    fn is_scope(&self, slot: usize, found: &[Anchor]) -> bool {
        let at = self.words.slots[slot];
        if at < 2 {
            return false;
        }
        let all = &self.words.all;
        let is_known = |a: &Anchor| {
            (a.slots.0..a.slots.1).contains(&slot) && !is_doubtful(a) && !is_otherwise(a)
        };
        let in_it =
            |at: usize| matches!(self.lang.between(&all[at].lower), Some(Gap::In | Gap::Of));
        // `who joined the company most recently`
        let ranks = |p: &super::tokens::Phrase| {
            p.from == at + 1 && p.to == all.len() && matches!(p.op, Op::Best(..))
        };
        let is_last = at + 1 == all.len();
        let is_ranked = self.words.phrases.iter().any(ranks) && all[at - 1].is_silent;
        self.lang.scopes.contains(&all[at].lower)
            && (is_ranked || is_last && (in_it(at - 2) && all[at - 1].is_silent || in_it(at - 1)))
            && !found.iter().any(is_known)
    }

    /// A word of little meaning may be the graph's own word for a relation, or part of it.
    fn price_of_light(&self, slot: usize, found: &[Anchor]) -> F {
        let mut price = F::skip_light;
        for anchor in found {
            if anchor.slots == (slot, slot + 1)
                && matches!(anchor.cat, Cat::Relation(_))
                && !says(anchor, F::relation_group)
                && !says(anchor, F::relation_said)
                && !says(anchor, F::relation_soft)
            {
                if !says(anchor, F::relation_missing) {
                    return F::skip_word;
                }
                price = F::skip_light_said;
            }
        }
        price
    }

    /// Whether a word is written like a name and stands in or beside one that is only a part of the
    /// name that it was taken for: `Jamey Sheridan`, where the graph has an Ann Sheridan, or `Ferme des
    /// Hautes Pierres`, where it has another Ferme.
    pub(super) fn is_rest_of_name(&self, slot: usize, found: &[Anchor]) -> bool {
        let at = self.words.slots[slot];
        let is_between = |at: usize| {
            let word = &self.words.all[at].lower;
            let is_particle = word.len() <= PARTICLE
                && !matches!(self.lang.between(word), Some(Gap::In | Gap::By | Gap::With))
                && self.lang.operators(&[word]).is_empty();
            self.is_upper(at) || is_particle
        };
        let is_part = |a: &Anchor| {
            let (from, to) = a.words;
            let mut between = match at >= to {
                true => to..at,
                false => at + 1..from,
            };
            is_part_of_name(a) && between.all(is_between)
        };
        self.is_capital(slot) && found.iter().any(is_part)
    }

    fn is_upper(&self, at: usize) -> bool {
        let word = &self.words.all[at];
        self.words.text[word.start..].starts_with(char::is_uppercase)
    }

    /// Whether a word is written like a name, in a question that is not written so throughout.
    pub(super) fn is_capital(&self, slot: usize) -> bool {
        let at = self.words.slots[slot];
        at > 0 && self.is_upper(at) && !(0..self.words.all.len()).all(|at| self.is_upper(at))
    }

    /// Whether a word stands right before another that says something.
    fn describes(&self, slot: usize) -> bool {
        self.words.slots.get(slot + 1) == Some(&(self.words.slots[slot] + 1))
    }
}

/// A word that is the name of one relation is less likely said for another.
fn named_first(found: &mut [Anchor]) {
    let otherwise = [
        F::relation_group,
        F::relation_missing,
        F::relation_soft,
        F::relation_said,
    ];
    let is_name = |a: &&Anchor| {
        matches!(a.cat, Cat::Relation(_)) && !otherwise.iter().any(|feature| says(a, *feature))
    };
    let names: Vec<(usize, usize)> = found.iter().filter(is_name).map(|a| a.slots).collect();
    for anchor in found {
        if says(anchor, F::relation_said) && names.contains(&anchor.slots) {
            anchor.own.push((F::relation_said, 1.0));
        }
    }
}

/// What somebody does who is called so: plumbing, for `plumbers`.
fn doing(word: &str) -> Option<String> {
    let one = word.strip_suffix('s').unwrap_or(word);
    let verb = one.strip_suffix("er").filter(|verb| verb.len() > 2)?;
    Some(format!("{verb}ing"))
}

/// Whether an operator compares two things: `longer`.
fn is_more(op: Op) -> bool {
    matches!(op, Op::More(..))
}

/// Whether a part was taken for a name of which it has some words alone.
pub(super) fn is_part_of_name(anchor: &Anchor) -> bool {
    let unsure = |(f, v): &(F, f32)| *f == F::name_unsure && *v > PART;
    anchor.own.iter().any(unsure)
}

/// Whether words are said for a relation or class, and are none of its label's.
pub(super) fn is_otherwise(anchor: &Anchor) -> bool {
    says(anchor, F::relation_said) || says(anchor, F::class_said)
}

/// Whether a text is a year alone.
fn is_year(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit())
}

/// A plural without its *s*.
fn one_of_many(text: &str) -> Option<&str> {
    text.strip_suffix('s').filter(|one| one.len() > 3)
}
