//! A relation beside a set.

use wherefore_graph::RelationId;

use super::arena::{Id, Measure, Node, Ranked};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::{Gap, Op};
use super::search::{Item, Made, Search};
use super::vocabulary::{ClassIx, Kind, Step};
use crate::error::Result;

/// The share of a relation's ends that counts as all of them.
const ALL: f32 = 0.99;
/// From this share of a class on, its things have a relation.
const USUAL: f32 = 0.5;

/// How a relation stands beside a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) relation_first: bool,
    /// The relation's word is a plural.
    pub(super) plural: bool,
    /// Words stand between.
    pub(super) apart: bool,
    /// `which` or `what` stands before the relation: what it leads to is asked for.
    pub(super) picked: bool,
    pub(super) gap: Gap,
}

impl Search<'_> {
    pub(super) fn joined(
        &mut self,
        relation: RelationId,
        set: &Cat,
        how: Beside,
        made: &mut Made,
    ) -> Result<()> {
        let Beside {
            relation_first,
            plural,
            apart,
            picked,
            gap,
        } = how;
        let Cat::Set { node, pair, open } = set else {
            return Ok(());
        };
        if let Node::Side(r, _) = *self.arena.node(*node)
            && r == relation
        {
            return Ok(());
        }
        let (node, pair) = (*node, *pair);
        if open.is_some() {
            return Ok(());
        }
        if let Node::And(_, inside) = *self.arena.node(node)
            && let Node::Join((r, _), _) = *self.arena.node(inside)
            && r == relation
            && !relation_first
        {
            // `countries that have Spanish as an official language`
            made.push((Cat::set(node), vec![(F::confirmed, 1.0)]));
        }
        if let Node::Join((r, true), _) = *self.arena.node(node)
            && r == relation
            && relation_first
            && gap == Gap::None
            && !self.arena.has_step(node, (relation, true))?
        {
            // `what position does he play`, `the club that he plays for`
            made.push((Cat::set(node), vec![(F::said_twice, 1.0)]));
        }
        let types = self.arena.types(node);
        let kind = self.arena.kind(node);
        let mut fits_any = false;
        for forward in [true, false] {
            let step = (relation, forward);
            let fits = match (kind, forward) {
                (Kind::Thing, _) if !types.is_empty() => self.schema.fits(&types, step),
                (Kind::Thing, _) => self.arena.has_step(node, step)?,
                (_, true) => false,
                (_, false) => self.arena.has_step(node, step)?,
            };
            if !fits {
                continue;
            }
            fits_any = true;
            let cue = join_cue(how, forward);
            let mut own = vec![(cue, 1.0)];
            if !relation_first && apart {
                own.push((F::join_apart, 1.0));
            }
            let is_short = self.is_named(node) || self.is_class(node) || self.is_carried(node);
            if !relation_first && gap != Gap::Of && !is_short {
                own.push((F::join_after_phrase, 1.0));
            }
            if self.arena.last_step(node) == Some((relation, !forward)) {
                if kind != Kind::Thing {
                    continue;
                }
                let said = if gap == Gap::None {
                    F::detour
                } else {
                    F::detour_said
                };
                own.push((said, 1.0));
            }
            if !forward && relation_first && picked {
                own.push((F::picked_against, 1.0));
            }
            if !forward && self.schema.relation(relation).is_noun {
                own.push((F::noun_against, 1.0));
            }
            let join = self.join_others(step, node)?;
            if forward
                && !self.is_named(node)
                && let Some((greatest, by)) = self.extreme_of(relation)
            {
                // `the highest point of the states around`: of all of them, or of each
                let by = Measure::of(by);
                let top = self
                    .arena
                    .add(Node::Top(node, by, greatest, Ranked::Nth(1)))?;
                let best = self.arena.add(Node::Join(step, top))?;
                let mut own = own.clone();
                own.push((F::top_all, 1.0));
                if plural {
                    own.push((F::number_disagrees, 1.0));
                }
                made.push((Cat::set(best), own));
            }
            if !plural && forward && !self.is_named(node) && self.extreme_of(relation).is_some() {
                own.push((F::number_disagrees, 1.0));
            }
            made.push((Cat::set(join), own));
            if let Some((x, y)) = pair {
                let x = self.arena.add(Node::Join(step, x))?;
                let y = self.arena.add(Node::Join(step, y))?;
                let both = self.arena.add(Node::And(x, y))?;
                made.push((Cat::set(both), vec![(cue, 1.0), (F::pair_and, 1.0)]));
            }
        }
        if fits_any
            && !self.is_named(node)
            && let Some((_, greatest)) = self.extreme_word(relation)
            && self.is_measured(node, relation)?
        {
            // `the state with the highest elevation`
            let by = Measure::of(relation);
            let top = self
                .arena
                .add(Node::Top(node, by, greatest, Ranked::Nth(1)))?;
            made.push((Cat::set(top), vec![(F::top_relation, 1.0)]));
        }
        if let Node::Class(class) = *self.arena.node(node) {
            let of = self.schema.relation(relation);
            // all that it leads to, or comes from, is of the class: nothing is lost
            let all = |side: &[(ClassIx, f32)]| {
                let share = side.iter().find(|(c, _)| *c == class);
                share.is_some_and(|(_, share)| *share > ALL)
            };
            let (is_range, is_domain) = (all(&of.range), all(&of.domain));
            if is_range || is_domain && !relation_first && !apart {
                // `capital city`, `airport code`
                made.push((Cat::Relation(relation), vec![(F::merged, 1.0)]));
            }
            if !relation_first && fits_any && self.extreme_word(relation).is_none() {
                let open = Some(relation);
                made.push((
                    Cat::Set {
                        node,
                        pair: None,
                        open,
                    },
                    vec![(F::open, 1.0)],
                ));
            }
        }
        if !fits_any && kind == Kind::Thing {
            // `stored in Poland`, where they are stored in warehouses there
            let range = self.schema.relation(relation).range.first().map(|d| d.0);
            if let Some(class) = range
                && gap == Gap::In
            {
                let class = self.arena.add(Node::Class(class))?;
                for (within, mut own) in self.restricted(class, node, None, false, false)? {
                    own.push((F::join_bridge, 1.0));
                    let join = self.arena.add(Node::Join((relation, false), within))?;
                    made.push((Cat::set(join), own));
                }
            }
            // `the population of Europe`, where countries have one; but where continents have one too,
            // that of Europe is not known
            let domain = self.schema.relation(relation).domain.first().map(|d| d.0);
            if let Some(class) = domain
                && !self.is_usual(relation, node)
            {
                let class = self.arena.add(Node::Class(class))?;
                for (within, mut own) in self.restricted(class, node, None, false, false)? {
                    // the code of a mountain is not that of some airport of its country
                    let is_far = own
                        .iter()
                        .any(|(f, hops)| *f == F::bridge_hop && *hops > 0.0);
                    if is_far && self.is_named(node) {
                        continue;
                    }
                    own.push((F::join_bridge, 1.0));
                    let join = self.arena.add(Node::Join((relation, true), within))?;
                    let mut each = own.clone();
                    if !plural && self.extreme_of(relation).is_some() {
                        each.push((F::number_disagrees, 1.0));
                    }
                    made.push((Cat::set(join), each));
                    if let Some((greatest, by)) = self.extreme_of(relation) {
                        let by = Measure::of(by);
                        let top = Node::Top(within, by, greatest, Ranked::Nth(1));
                        let top = self.arena.add(top)?;
                        let join = self.arena.add(Node::Join((relation, true), top))?;
                        own.push((F::top_all, 1.0));
                        made.push((Cat::set(join), own));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether most things of a class that a name is of have a relation.
    fn is_usual(&self, relation: RelationId, named: Id) -> bool {
        let of = self.schema.relation(relation);
        let types = self.arena.types(named);
        let all = |class: ClassIx| self.schema.classes[class as usize].instances.max(1) as f32;
        let has = |(class, share): &(ClassIx, f32)| {
            types.contains(class) && share * of.count as f32 >= USUAL * all(*class)
        };
        self.is_named(named) && of.domain.iter().any(has)
    }

    /// `the director Woody Allen`, `Goalkeeper position`: the name, which the relation leads to.
    pub(super) fn in_a_role(
        &mut self,
        relation: RelationId,
        a: &Item,
        b: &Item,
        made: &mut Made,
    ) -> Result<()> {
        let ((
            Cat::Set {
                node, open: None, ..
            },
            _,
        )
        | (
            _,
            Cat::Set {
                node, open: None, ..
            },
        )) = (&a.cat, &b.cat)
        else {
            return Ok(());
        };
        let node = *node;
        if self.is_named(node)
            && a.words.1 == b.words.0
            && self.arena.has_step(node, (relation, false))?
            && !self.arena.has_step(node, (relation, true))?
        {
            made.push((Cat::set(node), vec![(F::role, 1.0)]));
        }
        Ok(())
    }

    /// What a set leads to by a step; where the step leads back to a name that the set came from,
    /// the others: `films by the director of X`.
    pub(super) fn join_others(&mut self, step: Step, set: Id) -> Result<Id> {
        let join = self.arena.add(Node::Join(step, set))?;
        let Node::Join(came, of) = *self.arena.node(set) else {
            return Ok(join);
        };
        let back = came == (step.0, !step.1) && self.is_named(of);
        // `states that border states that border X`: all have it with each other
        if !back || self.arena.has_step(of, step)? {
            return Ok(join);
        }
        self.arena.add(Node::Except(join, of))
    }

    /// What has the same at the end of a relation as a set has, but for the set itself.
    pub(super) fn sharing(&mut self, relation: RelationId, set: Id, made: &mut Made) -> Result<()> {
        if !self.is_named(set) {
            return Ok(());
        }
        for forward in [true, false] {
            if !self.arena.has_step(set, (relation, forward))? {
                continue;
            }
            let shared = self.arena.add(Node::Join((relation, forward), set))?;
            if self.arena.has_step(shared, (relation, forward))? {
                // `share a border`: both have it with each other
                continue;
            }
            let all = self.arena.add(Node::Join((relation, !forward), shared))?;
            let others = self.arena.add(Node::Except(all, set))?;
            made.push((Cat::set(others), vec![(F::sharing, 1.0)]));
        }
        Ok(())
    }

    /// Of a relation like `highest point`: whether it is the greatest, and the relation that says
    /// by what (`highest elevation`).
    pub(super) fn extreme_of(&self, relation: RelationId) -> Option<(bool, RelationId)> {
        let of = self.schema.relation(relation);
        let (word, greatest) = self.extreme_word(relation)?;
        let by = self.schema.relations.iter().position(|r| {
            r.words.iter().any(|w| w == word)
                && r.kind.is_measure()
                && r.domain.first().map(|d| d.0) == of.domain.first().map(|d| d.0)
        })?;
        (of.kind == Kind::Thing).then_some((greatest, RelationId(by as u32)))
    }

    /// The superlative in a relation's label, and whether it means the greatest.
    pub(super) fn extreme_word(&self, relation: RelationId) -> Option<(&str, bool)> {
        let words = &self.schema.relation(relation).words;
        words.iter().find_map(|word| {
            let said = self.lang.operators(&[word]);
            said.iter().find_map(|(_, op)| match op {
                Op::Best(greatest, _) => Some((word.as_str(), *greatest)),
                _ => None,
            })
        })
    }
}

/// The feature of a join: which stands first, what stands between, which way.
pub(super) fn join_cue(how: Beside, forward: bool) -> F {
    match (how.relation_first, how.gap, forward) {
        (true, Gap::None, true) => F::join_r_none_along,
        (true, Gap::None, false) => F::join_r_none_against,
        (true, Gap::Of, true) => F::join_r_of_along,
        (true, Gap::Of, false) => F::join_r_of_against,
        (true, Gap::By, true) => F::join_r_by_along,
        (true, Gap::By, false) => F::join_r_by_against,
        (true, Gap::In, true) => F::join_r_in_along,
        (true, Gap::In, false) => F::join_r_in_against,
        (true, Gap::With, true) => F::join_r_with_along,
        (true, Gap::With, false) => F::join_r_with_against,
        (false, Gap::None, true) => F::join_s_none_along,
        (false, Gap::None, false) => F::join_s_none_against,
        (false, Gap::Of, true) => F::join_s_of_along,
        (false, Gap::Of, false) => F::join_s_of_against,
        (false, Gap::By, true) => F::join_s_by_along,
        (false, Gap::By, false) => F::join_s_by_against,
        (false, Gap::In, true) => F::join_s_in_along,
        (false, Gap::In, false) => F::join_s_in_against,
        (false, Gap::With, true) => F::join_s_with_along,
        (false, Gap::With, false) => F::join_s_with_against,
    }
}
