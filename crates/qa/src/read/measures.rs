//! What is measured: superlatives and rankings.

#![allow(
    clippy::collapsible_match,
    reason = "an arm whose condition fails makes nothing, and must not fall to the next"
)]

use wherefore_graph::RelationId;

use super::arena::{Id, Measure, Node, Ranked};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::{Gap, Op, Unit};
use super::search::{Made, Search};
use super::vocabulary::Kind;
use crate::error::Result;
use crate::logic::Aggregate;

/// Measures that a superlative may mean.
const MEASURES: usize = 4;
/// The rank of a time that no measure names: as likely as a third measure.
const TIMED: f32 = 2.0;

impl Search<'_> {
    /// The relations that a degree may mean for some classes, the likeliest first.
    pub(super) fn degree(&mut self, degree: u8, node: Id) -> Result<Vec<(RelationId, f32)>> {
        let measures = &self.lang.measures[degree as usize];
        let mut found: Vec<(RelationId, f32)> = Vec::new();
        for (rank, measure) in measures.iter().enumerate() {
            for relation in self.schema.relations_with(measure, self.lang) {
                let of = self.schema.relation(relation);
                let exact = of.stems.contains(measure);
                if !of.kind.is_measure()
                    || found.iter().any(|(r, _)| *r == relation)
                    || !self.has(node, relation)?
                {
                    continue;
                }
                let extra = (of.stems.len() - 1) as f32;
                let rank = rank as f32 + extra + if exact { 0.0 } else { 0.5 };
                found.push((relation, rank));
            }
        }
        // `walking_hours`, where something is longest
        let unit_rank = |unit: Unit| {
            let of = |stem: &String| self.lang.is_measured_in(stem, unit);
            measures.iter().position(of).map(|rank| rank as f32 + 0.5)
        };
        for id in 0..self.schema.relations.len() {
            let relation = RelationId(id as u32);
            let of = self.schema.relation(relation);
            if of.kind.is_measure()
                && let Some(rank) = of.unit.and_then(unit_rank)
                && !found.iter().any(|(r, _)| *r == relation)
                && self.has(node, relation)?
            {
                found.push((relation, rank));
            }
        }
        if found.is_empty() && self.lang.timed[degree as usize] {
            // `older`, where all that is known is when it was planted
            for id in 0..self.schema.relations.len() {
                let relation = RelationId(id as u32);
                let of = self.schema.relation(relation);
                let is_event = of.words.iter().any(|w| self.lang.is_participle(w));
                let is_timed = of.is_time(self.lang) || of.kind == Kind::Number && is_event;
                if is_timed && self.has(node, relation)? {
                    found.push((relation, TIMED));
                }
            }
        }
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found.truncate(MEASURES);
        Ok(found)
    }

    /// Whether members of a set may have a relation to numbers or times.
    pub(super) fn is_measured(&mut self, node: Id, relation: RelationId) -> Result<bool> {
        let kind = self.schema.relation(relation).kind;
        Ok(kind.is_measure() && self.has(node, relation)?)
    }

    /// Whether members of a set may have a relation.
    pub(super) fn has(&mut self, node: Id, relation: RelationId) -> Result<bool> {
        let types = self.arena.types(node);
        match types.is_empty() {
            false => Ok(self.schema.fits(&types, (relation, true))),
            true => self.arena.has_step(node, (relation, true)),
        }
    }

    pub(super) fn measures(&self, node: Id, by: &Measure) -> bool {
        let (Measure::Path(path) | Measure::HowMany(path, _)) = by;
        let types = self.arena.types(node);
        path.first()
            .is_some_and(|step| self.schema.fits(&types, *step))
    }

    pub(super) fn superlative(
        &mut self,
        op: Op,
        ranked: Ranked,
        other: &Cat,
        made: &mut Made,
    ) -> Result<()> {
        match (op, other) {
            (
                Op::Best(greatest, degree),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if self.arena.kind(*node) != Kind::Thing || self.is_named(*node) {
                    return Ok(());
                }
                for (relation, rank) in self.degree(degree, *node)? {
                    let by = Measure::of(relation);
                    let top = self.arena.add(Node::Top(*node, by, greatest, ranked))?;
                    let fits = self.step_fits((relation, true));
                    let own = vec![
                        (F::top_measure, 1.0),
                        (F::top_rank, rank),
                        (F::measure_fits, fits),
                    ];
                    made.push((Cat::set(top), own));
                }
            }
            (Op::Best(greatest, degree), Cat::Relation(r)) => {
                let of = self.schema.relation(*r);
                if !of.kind.is_measure() {
                    return Ok(());
                }
                let measures = &self.lang.measures[degree as usize];
                let said = of.stems.iter().any(|s| measures.contains(s));
                let own = match said {
                    true => vec![(F::top_relation, 1.0)],
                    false => vec![(F::top_other, 1.0)],
                };
                let by = Measure::of(*r);
                made.push((Cat::Top(greatest, by, ranked), own));
            }
            (Op::Extreme(greatest), Cat::Relation(r)) => {
                let by = match self.schema.relation(*r).kind {
                    Kind::Number | Kind::Time => Measure::of(*r),
                    _ => Measure::how_many(*r),
                };
                made.push((Cat::Top(greatest, by, ranked), vec![(F::top_relation, 1.0)]));
            }
            (Op::Extreme(greatest), Cat::Set { node, open, .. }) => {
                if self.arena.kind(*node) == Kind::Thing {
                    let (of, via) = (*node, *open);
                    made.push((
                        Cat::TopCount {
                            greatest,
                            of,
                            via,
                            ranked,
                        },
                        Vec::new(),
                    ));
                }
            }
            (Op::Extreme(_), Cat::Number(n)) => self.first_of(op, *n, made),
            _ => {}
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a ranking")]
    pub(super) fn ranked(
        &mut self,
        node: Id,
        greatest: bool,
        by: &Measure,
        ranked: Ranked,
        set_first: bool,
        gap: Gap,
        made: &mut Made,
    ) -> Result<()> {
        if self.arena.kind(node) != Kind::Thing || self.is_named(node) {
            return Ok(());
        }
        if self.measures(node, by) {
            let top = self
                .arena
                .add(Node::Top(node, by.clone(), greatest, ranked))?;
            made.push((Cat::set(top), vec![(F::top_measure, 1.0)]));
            if let (false, Gap::Of | Gap::In | Gap::With, Ranked::Nth(1), Measure::Path(_)) =
                (set_first, gap, ranked, by)
            {
                // `the smallest weight of the cars`
                let aggregate = match greatest {
                    true => Aggregate::Largest,
                    false => Aggregate::Smallest,
                };
                let value = self.arena.add(Node::Of(aggregate, node, by.clone()))?;
                made.push((Cat::Number(value), vec![(F::value_extreme, 1.0)]));
            }
        }
        Ok(())
    }

    pub(super) fn first_of(&mut self, op: Op, number: Id, made: &mut Made) {
        if let Node::Const(bits) = *self.arena.node(number) {
            let n = f64::from_bits(bits);
            if n.fract() == 0.0 && (1.0..=1000.0).contains(&n) {
                let ranked = Ranked::First(n as u32);
                made.push((Cat::Superlative(op, ranked), vec![(F::ordinal, 1.0)]));
            }
        }
    }
}
