//! Parts of the whole question as readings.

use wherefore_graph::RelationId;

use super::arena::{Id, Meaning, Measure, Node};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::{Gap, Op};
use super::numbers::comparative;
use super::search::{Item, Search, Weighed, sorted};
use super::tokens::Word;
use super::vocabulary::{ClassIx, Kind};
use crate::error::Result;
use crate::logic::Aggregate;

/// Classes that a number may be compared with the members of, where no class is said.
const LARGEST: usize = 8;

impl Search<'_> {
    /// A part of the whole question as readings.
    pub(super) fn close(&mut self, item: &Item) -> Result<Weighed> {
        let mut closed = Vec::new();
        match &item.cat {
            Cat::Set { open: None, .. } if self.is_unnamed(&item.cat) => {}
            Cat::Set { node, open, .. } => {
                let mut own = Vec::new();
                let mut node = *node;
                if let Some(relation) = open {
                    node = self.that_has(node, *relation)?;
                    own.push((F::exists, 1.0));
                }
                if self.is_yes_no && !self.is_chosen(node) {
                    own.push((F::truth, 1.0));
                    closed.push((self.arena.add(Node::Any(node))?, own));
                    return Ok(closed);
                }
                let leads = match self.is_named(node) || self.is_choice(node) {
                    true if self.schema.is_untyped => true,
                    // `what is on Tuesday or Friday`, where only one thing is said of them
                    true => self.is_in(item) && self.ways_from(node)?.len() == 1,
                    false => false,
                };
                if leads {
                    // `who is from France`
                    for &(step, rarity) in self.ways_from(node)?.iter() {
                        let join = self.arena.add(Node::Join(step, node))?;
                        let mut own = vec![
                            (F::bridge, 1.0),
                            (F::bridge_rare, rarity),
                            (F::bridge_fits, self.step_fits(step)),
                        ];
                        own.push((F::answer_is_around, 1.0));
                        self.fit_to_asking(join, &mut own)?;
                        closed.push((join, own));
                    }
                }
                self.fit_to_asking(node, &mut own)?;
                // `how many tracks are on the albums of X`: all together
                if let Node::Join((relation, true), of) = *self.arena.node(node)
                    && own.iter().any(|(f, _)| *f == F::many_values)
                    && (self.asks_amount() || self.asked_values.contains(&relation))
                {
                    let sum = Node::Of(Aggregate::Sum, of, Measure::of(relation));
                    let added = [(F::aggregate, 1.0), (F::many_values, 0.5)];
                    closed.push((self.arena.add(sum)?, added.to_vec()));
                }
                if let Some(both) = self.of_both(node)? {
                    let mut of_both = vec![(F::pair_and, 1.0)];
                    self.fit_to_asking(both, &mut of_both)?;
                    closed.push((both, of_both));
                    own.push((F::either_for_both, 1.0));
                }
                let leads_back = self.leads_back(node)?;
                match self.arena.node(node) {
                    _ if self.is_named(node) || self.is_choice(node) => {
                        own.push((F::answer_is_name, 1.0));
                    }
                    Node::Class(_) | Node::Side(..) => own.push((F::answer_is_class, 1.0)),
                    _ if leads_back => own.push((F::answer_is_name, 1.0)),
                    _ => {}
                }
                match self.arena.meaning(node)? {
                    Meaning::Set(members) if members.is_empty() => {
                        own.push((F::empty_answer, 1.0));
                    }
                    Meaning::Set(members) if !self.graph.is_named(members[0])? => {
                        own.push((F::nameless_answer, 1.0));
                    }
                    Meaning::Unknown => own.push((F::unknown_answer, 1.0)),
                    _ => {}
                }
                closed.push((node, own));
            }
            Cat::Number(node) => {
                let mut own = Vec::new();
                if matches!(self.arena.node(*node), Node::Const(_)) {
                    return Ok(closed);
                }
                if self.is_yes_no {
                    own.push((F::truth_missed, 1.0));
                }
                if let Node::Count(of) = *self.arena.node(*node) {
                    self.fit_to_group(of, &mut own)?;
                    // nothing is seldom what was to be counted
                    if self.arena.members(of)?.is_some_and(|all| all.is_empty()) {
                        own.push((F::empty_answer, 0.5));
                    }
                    let types = self.arena.types(of);
                    if !self.asked.is_empty() && !self.asked.iter().any(|c| types.contains(c)) {
                        own.push((F::asked_for_another, 1.0));
                    }
                }
                if let Meaning::Number(None) = self.arena.meaning(*node)? {
                    own.push((F::empty_answer, 1.0));
                }
                closed.push((*node, own));
            }
            // `drawn by whom`, where the caller says of what
            Cat::Relation(relation) if !self.given.is_empty() => {
                let given = self.arena.add(Node::Ents(sorted(self.given.clone())))?;
                for forward in [true, false] {
                    if self.arena.has_step(given, (*relation, forward))? {
                        let join = self.arena.add(Node::Join((*relation, forward), given))?;
                        closed.push((join, Vec::new()));
                    }
                }
            }
            // `who earns more than 50000`, `who is the oldest`: whatever has that
            Cat::Filter(by, is, than) if !self.is_yes_no => {
                if let Some(of) = self.whoever(by)? {
                    let node = self.arena.filtered(of, by.clone(), *is, *than)?;
                    closed.push((node, vec![(F::subject_unsaid, 1.0)]));
                }
            }
            // `what costs between 3 and 5 euros`
            Cat::FilterRange(by, low, high) if !self.is_yes_no => {
                if let Some(of) = self.whoever(by)? {
                    let node = self.between(of, by, *low, *high)?;
                    closed.push((node, vec![(F::subject_unsaid, 1.0)]));
                }
            }
            // `who is older than Ines`, `who is older than 60`
            Cat::FilterDegree {
                greater,
                degree,
                than,
                is_number,
            } if !self.is_yes_no => {
                let is = comparative(*greater);
                for (relation, rank) in self.degree_of_whoever(*degree, *than, *is_number)? {
                    let by = Measure::of(relation);
                    // what is higher than a mountain is a mountain
                    let alike = self.arena.types(*than).first().copied();
                    let of = match alike.filter(|_| !is_number) {
                        Some(class) => Some(self.arena.add(Node::Class(class))?),
                        None => self.whoever(&by)?,
                    };
                    let Some(of) = of else {
                        continue;
                    };
                    let value = match is_number {
                        true => *than,
                        false => {
                            let of = Node::Of(Aggregate::Only, *than, by.clone());
                            self.arena.add(of)?
                        }
                    };
                    let node = self.arena.filtered(of, by, is, value)?;
                    let own = [F::subject_unsaid, F::compare_degree].map(|f| (f, 1.0));
                    closed.push((node, [&own[..], &[(F::top_rank, rank)]].concat()));
                }
            }
            // `what is the average crew size`
            Cat::Aggregated(aggregate, relation) if !self.is_yes_no => {
                let by = Measure::of(*relation);
                if let Some(of) = self.whoever(&by)? {
                    let value = self.arena.add(Node::Of(*aggregate, of, by))?;
                    closed.push((value, vec![(F::subject_unsaid, 1.0)]));
                }
            }
            Cat::Top(greatest, by, ranked) if !self.is_yes_no => {
                if let Some(of) = self.whoever(by)? {
                    let node = Node::Top(of, by.clone(), *greatest, *ranked);
                    closed.push((self.arena.add(node)?, vec![(F::subject_unsaid, 1.0)]));
                }
            }
            // `who has done the most repairs`
            Cat::TopCount {
                greatest,
                of,
                via,
                ranked,
            } if self.asks_for_people() => {
                for class in self.schema.kind_steps.person_classes().to_vec() {
                    let who = self.arena.add(Node::Class(class))?;
                    for (by, mut own) in self.counts(who, *of, *via)? {
                        own.extend([(F::subject_unsaid, 1.0), (F::top_count, 1.0)]);
                        let top = Node::Top(who, by, *greatest, *ranked);
                        closed.push((self.arena.add(top)?, own));
                    }
                }
            }
            // `what is the cheapest`: whatever has a price
            Cat::Superlative(Op::Best(greatest, degree), ranked) if !self.is_yes_no => {
                for (relation, rank) in self.degree_of_anything(*degree)? {
                    let by = Measure::of(relation);
                    let Some(of) = self.whoever(&by)?.filter(|of| self.may_be_asked(*of)) else {
                        continue;
                    };
                    let own = vec![
                        (F::subject_unsaid, 1.0),
                        (F::top_measure, 1.0),
                        (F::top_rank, rank),
                        (F::measure_fits, self.step_fits((relation, true))),
                    ];
                    let top = Node::Top(of, by, *greatest, *ranked);
                    closed.push((self.arena.add(top)?, own));
                }
            }
            // `what is there for under 200 euros`
            Cat::Than(is, than) if !self.is_yes_no => {
                let Some(unit) = self.arena.unit_of(*than) else {
                    return Ok(closed);
                };
                for id in 0..self.schema.relations.len() {
                    let relation = RelationId(id as u32);
                    let of = self.schema.relation(relation);
                    let fits = match of.unit {
                        Some(own) => own.kind == unit.kind,
                        None => of.stems.iter().any(|s| self.lang.is_measured_in(s, unit)),
                    };
                    if !fits || !of.kind.is_measure() {
                        continue;
                    }
                    let by = Measure::of(relation);
                    if let Some(of) = self.whoever(&by)? {
                        let node = self.arena.filtered(of, by, *is, *than)?;
                        let own = vec![(F::subject_unsaid, 1.0), (F::compare_unspoken, 1.0)];
                        closed.push((node, own));
                    }
                }
            }
            _ => {}
        }
        Ok(closed)
    }

    /// Whether a set may be what is asked for by the word alone: `who` asks for people, where classes
    /// tell who they are.
    fn may_be_asked(&self, of: Id) -> bool {
        let is_person = self.asks_for_people();
        let people = self.schema.kind_steps.person_classes();
        let types = self.arena.types(of);
        !is_person || people.is_empty() || types.iter().any(|class| people.contains(class))
    }

    /// Whether the question asks *who*.
    fn asks_for_people(&self) -> bool {
        let asked = self.words.all.iter().find(|w| self.lang.asks(&w.lower));
        asked.is_some_and(|w| self.lang.person.contains(&w.lower))
    }

    /// The relations that a degree may mean where nothing says of what.
    pub(super) fn degree_of_anything(&mut self, degree: u8) -> Result<Vec<(RelationId, f32)>> {
        if !self.schema.classes.is_empty() {
            return self.degree_of_largest(degree);
        }
        let mut found: Vec<(RelationId, f32)> = Vec::new();
        for (rank, measure) in self.lang.measures[usize::from(degree)].iter().enumerate() {
            for relation in self.schema.relations_with(measure, self.lang) {
                let of = self.schema.relation(relation);
                let is_known = found.iter().any(|(r, _)| *r == relation);
                if of.kind.is_measure() && !is_known {
                    let exact = if of.stems.contains(measure) { 0.0 } else { 0.5 };
                    let extra = (of.stems.len() - 1) as f32;
                    found.push((relation, rank as f32 + extra + exact));
                }
            }
        }
        Ok(found)
    }

    /// Whether `in`, `on` or the like stands right before a part.
    fn is_in(&self, item: &Item) -> bool {
        let before = &self.words.all[..item.words.0];
        let mut before = before
            .iter()
            .rev()
            .skip_while(|w| self.lang.is_beside(&w.lower));
        before
            .next()
            .is_some_and(|w| self.lang.between(&w.lower) == Some(Gap::In))
    }

    /// Of several things, numbers are no answer where one number is asked for.
    pub(super) fn fit_to_one_number(&mut self, node: Id, own: &mut Vec<(F, f32)>) -> Result<()> {
        if self.arena.kind(node) == Kind::Number
            && (self.asks_how_many() || self.asks_amount())
            && let Meaning::Set(members) = self.arena.meaning(node)?
            && members.len() > 1
        {
            own.push((F::many_values, 1.0));
        }
        Ok(())
    }

    /// The second word of what asks for an amount.
    pub(super) fn amount_word(&self) -> Option<String> {
        let mut pairs = self.words.all.windows(2);
        let asks = |pair: &&[Word]| self.lang.is_amount([&pair[0].lower, &pair[1].lower]);
        let word = &pairs.find(asks)?[1];
        Some(self.words.text[word.start..word.end].to_owned())
    }

    /// The noun after `which` where it is the name of a class or a kind, and members of a set are
    /// none of it.
    pub(super) fn picked_otherwise(&self, of: Id) -> Option<usize> {
        let asks = self.words.all.iter().find(|w| self.lang.asks(&w.lower))?;
        if !self.lang.picks(&asks.lower) {
            return None;
        }
        let types = self.arena.types(of);
        let is_other = match self.arena.kind(of).is_measure() {
            true => self.asks_things,
            false => {
                self.asked_by_name
                    && !types.is_empty()
                    && !self.asked.iter().any(|c| types.contains(c))
            }
        };
        self.asked_noun().filter(|_| is_other)
    }

    /// Whether an amount is asked for: *how much*.
    pub(super) fn asks_amount(&self) -> bool {
        self.amount_word().is_some()
    }

    /// Whether *how many* or the like is a question word, and no part of `the number of`.
    pub(super) fn asks_how(&self) -> bool {
        let phrases = &self.words.phrases;
        let mut counts = phrases.iter().filter(|p| p.op == Op::Count);
        counts.any(|p| self.lang.asks(&self.words.all[p.from].lower))
    }

    /// Whether one number is asked for: *how many*, *number of*.
    fn asks_how_many(&self) -> bool {
        self.words.all.windows(2).any(|pair| {
            let said = [pair[0].lower.as_str(), pair[1].lower.as_str()];
            self.lang.operators(&said).contains(&(2, Op::Count))
        })
    }

    /// The relations that a degree may mean where nothing says of what: those of what is compared
    /// with, for a number those of the largest classes.
    fn degree_of_whoever(
        &mut self,
        degree: u8,
        than: Id,
        is_number: bool,
    ) -> Result<Vec<(RelationId, f32)>> {
        match is_number {
            true => self.degree_of_largest(degree),
            false => self.degree(degree, than),
        }
    }

    /// The relations that a degree may mean for the things of the largest classes.
    fn degree_of_largest(&mut self, degree: u8) -> Result<Vec<(RelationId, f32)>> {
        let mut classes: Vec<ClassIx> = (0..self.schema.classes.len() as ClassIx).collect();
        let size = |class: &ClassIx| self.schema.classes[*class as usize].instances;
        classes.sort_by_key(|class| std::cmp::Reverse(size(class)));
        let mut found: Vec<(RelationId, f32)> = Vec::new();
        for &class in classes.iter().take(LARGEST) {
            let node = self.arena.add(Node::Class(class))?;
            for (relation, rank) in self.degree(degree, node)? {
                if !found.iter().any(|(r, _)| *r == relation) {
                    found.push((relation, rank));
                }
            }
        }
        Ok(found)
    }

    /// What may be meant by nothing but `who` or `what`: the things that are measured so.
    pub(super) fn whoever(&mut self, by: &Measure) -> Result<Option<Id>> {
        let (Measure::Path(path) | Measure::HowMany(path, _)) = by;
        let Some(&(relation, true)) = path.first() else {
            return Ok(None);
        };
        match self.schema.relation(relation).domain.first() {
            Some(&(class, _)) => self.arena.add(Node::Class(class)).map(Some),
            None => self.measured_by(by).map(Some),
        }
    }

    /// Whether it is one of those that the question names: `Kenya or Uganda`.
    fn is_chosen(&self, node: Id) -> bool {
        match self.arena.node(node) {
            Node::Top(of, ..) => self.is_choice(*of),
            _ => false,
        }
    }

    /// Whether the question says nothing but names.
    fn is_all_named(&self) -> bool {
        let words = self.words.all.iter().zip(&self.named);
        let mut said = words.filter(|(word, _)| !word.is_silent && !self.lang.asks(&word.lower));
        said.all(|(_, named)| *named)
    }

    /// Whether a set may be times: also as texts, where the relation says so.
    pub(super) fn may_be_time(&self, node: Id) -> bool {
        let said = match *self.arena.node(node) {
            Node::Join((relation, true), _) => self.schema.relation(relation).says_when(self.lang),
            _ => false,
        };
        said || self.arena.kind(node).is_measure()
    }

    /// Answers are of the things that are asked for, where only their noun says what they are.
    fn fit_to_group(&mut self, node: Id, own: &mut Vec<(F, f32)>) -> Result<()> {
        let Some(group) = self.asked_group else {
            return Ok(());
        };
        match self.within(node, group)? {
            None | Some((_, 0)) => {}
            Some((of, all)) if of == all => own.push((F::noun_fits, 1.0)),
            Some((of, all)) if of * 2 < all => own.push((F::asked_for_another, 1.0)),
            Some(_) => {}
        }
        Ok(())
    }

    /// Whether several conditions leave nothing but names that they begin at: `which club did he
    /// leave to join Belmora` is not answered by Belmora.
    fn leads_back(&mut self, node: Id) -> Result<bool> {
        let is_led = matches!(self.arena.node(node), Node::Join(..) | Node::And(..));
        let mut names = Vec::new();
        if !is_led || self.is_yes_no || self.arena.names_below(node, &mut names) < 2 {
            return Ok(false);
        }
        let members = self.arena.members(node)?;
        Ok(members.is_some_and(|all| !all.is_empty() && all.iter().all(|m| names.contains(m))))
    }

    /// `authors with something in both the Papers and the Maps`: those of the one that are of the
    /// other too, where a set is made from either.
    fn of_both(&mut self, node: Id) -> Result<Option<Id>> {
        let is_said = |w: &super::tokens::Word| self.lang.both.contains(&w.lower);
        if !self.words.all.iter().any(is_said) {
            return Ok(None);
        }
        let Some((either, one, other)) = self.arena.union_in(node) else {
            return Ok(None);
        };
        // of two names themselves nothing is both
        if either == node && self.is_choice(node) {
            return Ok(None);
        }
        let one = self.arena.replaced(node, either, one)?;
        let other = self.arena.replaced(node, either, other)?;
        self.arena.add(Node::And(one, other)).map(Some)
    }

    pub(super) fn fit_to_asking(&mut self, node: Id, own: &mut Vec<(F, f32)>) -> Result<()> {
        let by = self.is_other_than_asked(node)?;
        if by > 0.0 {
            own.push((F::asked_for_another, by));
        }
        self.fit_to_group(node, own)?;
        let kind = self.arena.kind(node);
        self.fit_to_one_number(node, own)?;
        let asked = self.words.all.iter().find(|w| self.lang.asks(&w.lower));
        let Some(asked) = asked else {
            return Ok(());
        };
        let said = self.lang.operators(&[&asked.lower]);
        let ops: Vec<Op> = said.into_iter().map(|(_, op)| op).collect();
        if ops.contains(&Op::Where) && kind.is_measure() {
            own.push((F::place_mismatch, 1.0));
        }
        if ops.contains(&Op::When) && !self.may_be_time(node) {
            own.push((F::time_mismatch, 1.0));
        }
        let is_person = self.lang.person.contains(&asked.lower);
        if is_person && kind.is_measure() {
            own.push((F::person_mismatch, 1.0));
        }
        // `who is James Dean` asks what he does, not for another
        let is_asked_about = is_person && self.is_all_named();
        let asks_kind = is_person && !is_asked_about || ops.contains(&Op::Where);
        if asks_kind && kind == Kind::Thing && !self.is_chosen(node) {
            let kinds = self.kinds(node)?;
            own.extend(match is_person {
                true => [
                    (F::person_fits, kinds.people),
                    (F::person_of_place, kinds.places),
                ],
                false => [
                    (F::place_fits, kinds.places),
                    (F::place_of_person, kinds.people),
                ],
            });
        }
        Ok(())
    }
}
