//! The triples that made an entity match, a number what it is, or an answer a yes or a no.
//!
//! A `no` is proved by what the graph says instead. Of a conjunction that nothing satisfies, these
//! are the largest parts that something does satisfy: the triples of their members, with the
//! values that were compared. For *Is Berlin the capital of France?* that is
//! `France capital Paris`; for *Does Berlin have more than 5 million inhabitants?* it is
//! `Berlin population 3755251`.

use std::sync::Arc;

use wherefore_graph::{EntityId, Triple};

use super::evaluate::is_equal;
use super::plan::{Domain, Measure, Root, Set};
use super::run::Runner;
use super::value::Quantity;
use crate::error::{Error, Result};

/// Members of each part that are told where a whole has none.
const INSTEAD: usize = 3;

impl Runner<'_> {
    /// Triples that make an entity match: from the form's names to the entity, each part of an
    /// `AND` after the other, then what was compared, added up, or stands in its row. Empty if it
    /// does not match, or if nothing but its name makes it match.
    pub fn evidence(&mut self, entity: EntityId) -> Result<Vec<Triple>> {
        let plan = self.plan;
        let mut found = Vec::new();
        match &plan.root {
            Root::Set(set) | Root::Any(set) => {
                if self.holds(entity, set, &[])? {
                    self.tell(entity, set, &mut found)?;
                }
            }
            Root::Number(number) => self.tell_part(entity, number, &mut found)?,
            Root::Is(_, a, b) => {
                for number in [a, b] {
                    self.tell_part(entity, number, &mut found)?;
                }
            }
            Root::Table(table) => {
                if self.holds(entity, &table.of, &[])? {
                    self.tell(entity, &table.of, &mut found)?;
                    let columns = table.columns.iter().map(|column| &column.measure);
                    for measure in columns.chain(table.order.as_ref().map(|(by, _)| by)) {
                        self.tell_values(entity, measure, &mut found)?;
                    }
                }
            }
        }
        Ok(self.cut(found))
    }

    /// Triples that prove the whole: those that were counted or added up, those of one witness of a
    /// yes, for a no what the graph says instead, those of each row.
    pub fn grounds(&mut self) -> Result<Vec<Triple>> {
        let plan = self.plan;
        let mut found = Vec::new();
        match &plan.root {
            Root::Set(_) | Root::Table(_) => {
                for &entity in self.run()?.entities() {
                    if self.is_told(&found) {
                        break;
                    }
                    found.extend(self.evidence(entity)?);
                }
            }
            Root::Number(number) => self.tell_number(number, &mut found)?,
            Root::Any(set) => match self.extension(set)?.first() {
                Some(&witness) => self.tell(witness, set, &mut found)?,
                None => self.instead(set, &mut found)?,
            },
            Root::Is(_, a, b) => {
                self.tell_number(a, &mut found)?;
                // both have their share
                found.truncate(self.limits.evidence.div_ceil(2));
                self.tell_number(b, &mut found)?;
            }
        }
        Ok(self.cut(found))
    }

    fn cut(&self, mut found: Vec<Triple>) -> Vec<Triple> {
        let mut seen = std::collections::HashSet::new();
        found.retain(|triple| seen.insert(*triple));
        found.truncate(self.limits.evidence);
        found
    }

    /// Whether enough is told.
    fn is_told(&self, found: &[Triple]) -> bool {
        found.len() >= self.limits.evidence
    }

    /// Adds the triples that make a member one. Every step that is taken adds some, and enough are
    /// told soon.
    fn tell(&mut self, entity: EntityId, set: &Set, found: &mut Vec<Triple>) -> Result<()> {
        if self.is_told(found) {
            return Ok(());
        }
        match set {
            Set::Of(_) => {}
            Set::Instances(ways, class) => {
                for way in ways {
                    for (end, triple) in self.steps_within(set, entity, way)? {
                        if class.ids.binary_search(&end).is_ok() {
                            found.push(triple);
                            return Ok(());
                        }
                    }
                }
            }
            Set::Join(way, of) => {
                for (end, triple) in self.steps_within(set, entity, way)? {
                    if self.holds(end, of, &[])? {
                        self.tell(end, of, found)?;
                        found.push(triple);
                        if self.is_told(found) {
                            break;
                        }
                    }
                }
            }
            Set::And(all) => {
                for set in all {
                    self.tell(entity, set, found)?;
                }
            }
            Set::Or(all) => {
                for set in all {
                    if self.holds(entity, set, &[])? {
                        return self.tell(entity, set, found);
                    }
                }
            }
            Set::Except(of, _) => self.tell(entity, of, found)?,
            Set::Compare { is, by, than } => {
                if let Some((a, b)) = self.passing(entity, *is, by, than)? {
                    self.tell_value(Some(entity), by, a, found)?;
                    self.tell_value(Some(entity), than, b, found)?;
                }
            }
            Set::Best { among, by, .. } => {
                self.tell(entity, among, found)?;
                let best = self.best_of(set)?;
                if let Ok(place) = best.binary_search_by_key(&entity, |(e, _)| *e) {
                    self.tell_value(Some(entity), by, best[place].1, found)?;
                }
            }
            Set::At { set: of, .. } => {
                self.tell(entity, of, found)?;
                found.extend(self.period(entity, set)?.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Adds what gives a number; where there is none, what there is instead.
    fn tell_number(&mut self, number: &Measure, found: &mut Vec<Triple>) -> Result<()> {
        match (self.number(number)?, number) {
            (None, Measure::Of(_, Domain::Members(set), _)) => self.instead(set, found),
            (None, Measure::Arithmetic(_, a, b)) => {
                self.tell_number(a, found)?;
                self.tell_number(b, found)
            }
            (None, _) => Ok(()),
            (Some(value), number) => self.tell_value(None, number, value, found),
        }
    }

    /// Adds the triples that make an entity a part of a number.
    fn tell_part(
        &mut self,
        entity: EntityId,
        number: &Measure,
        found: &mut Vec<Triple>,
    ) -> Result<()> {
        match number {
            Measure::Count(Domain::Members(set)) if self.holds(entity, set, &[])? => {
                self.tell(entity, set, found)
            }
            Measure::Of(aggregate, Domain::Members(set), by) if self.holds(entity, set, &[])? => {
                let Some(whole) = self.number(number)? else {
                    return Ok(());
                };
                self.tell(entity, set, found)?;
                for value in self.values(Some(entity), by)? {
                    if aggregate.adds() || is_equal(&value, &whole) {
                        self.tell_value(Some(entity), by, value, found)?;
                    }
                }
                Ok(())
            }
            Measure::Arithmetic(_, a, b) => {
                self.tell_part(entity, a, found)?;
                self.tell_part(entity, b, found)
            }
            _ => Ok(()),
        }
    }

    /// Adds the triples of all values of an entity; of a path, those of all its ends.
    fn tell_values(
        &mut self,
        entity: EntityId,
        measure: &Measure,
        found: &mut Vec<Triple>,
    ) -> Result<()> {
        if let Measure::Path(ways, _) = measure {
            for (_, path) in self.ends(entity, ways)? {
                found.extend(path);
            }
            return Ok(());
        }
        for value in self.values(Some(entity), measure)? {
            self.tell_value(Some(entity), measure, value, found)?;
        }
        Ok(())
    }

    /// Adds the triples that give a thing this value by a measure.
    fn tell_value(
        &mut self,
        of: Option<EntityId>,
        measure: &Measure,
        value: Quantity,
        found: &mut Vec<Triple>,
    ) -> Result<()> {
        if self.is_told(found) {
            return Ok(());
        }
        match measure {
            Measure::Constant(_) => {}
            Measure::Path(ways, sense) => {
                let Some(of) = of else { return Ok(()) };
                for (end, path) in self.ends(of, ways)? {
                    let own = self.quantity(end, *sense)?;
                    if own.is_some_and(|own| is_equal(&own, &value)) {
                        found.extend(path);
                        return Ok(());
                    }
                }
            }
            Measure::Count(domain) => {
                for &thing in self.domain(of, domain)?.iter() {
                    self.tell_thing(of, domain, thing, found)?;
                }
            }
            Measure::Of(aggregate, domain, by) => {
                for &thing in self.domain(of, domain)?.iter() {
                    if self.is_told(found) {
                        break;
                    }
                    for own in self.values(Some(thing), by)? {
                        if aggregate.adds() || is_equal(&own, &value) {
                            self.tell_thing(of, domain, thing, found)?;
                            self.tell_value(Some(thing), by, own, found)?;
                        }
                    }
                }
            }
            Measure::Arithmetic(operator, a, b) => {
                let [left, right] = [self.values(of, a)?, self.values(of, b)?];
                for &x in &left {
                    for &y in &right {
                        let made = x.number().zip(y.number());
                        let made = made.and_then(|(x, y)| operator.of(x, y));
                        if made.is_some_and(|n| is_equal(&Quantity::Number(n), &value)) {
                            self.tell_value(of, a, x, found)?;
                            return self.tell_value(of, b, y, found);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the triples by which something is counted or aggregated.
    fn tell_thing(
        &mut self,
        of: Option<EntityId>,
        domain: &Domain,
        thing: EntityId,
        found: &mut Vec<Triple>,
    ) -> Result<()> {
        if self.is_told(found) {
            return Ok(());
        }
        let (ways, set) = match domain {
            Domain::Members(set) => (None, Some(set)),
            Domain::Reached(ways, set) => (Some(ways), set.as_ref()),
        };
        if let (Some(ways), Some(of)) = (ways, of) {
            let ends = self.ends(of, ways)?;
            if let Ok(place) = ends.binary_search_by_key(&thing, |(end, _)| *end) {
                found.extend(&ends[place].1);
            }
        }
        match set {
            Some(set) => self.tell(thing, set, found),
            None => Ok(()),
        }
    }

    /// Adds what the graph says instead of a set that has no members.
    fn instead(&mut self, set: &Set, found: &mut Vec<Triple>) -> Result<()> {
        if self.is_told(found) {
            return Ok(());
        }
        match set {
            Set::Of(_) | Set::Instances(..) | Set::Compare { .. } => {}
            Set::And(all) => self.instead_of_all(all, found)?,
            Set::Or(all) => {
                for set in all {
                    self.instead(set, found)?;
                }
            }
            Set::Join(_, of)
            | Set::Except(of, _)
            | Set::Best { among: of, .. }
            | Set::At { set: of, .. } => {
                let members = self.part(of)?;
                if members.is_empty() {
                    return self.instead(of, found);
                }
                for &member in members.iter().take(INSTEAD) {
                    self.tell(member, of, found)?;
                    match set {
                        Set::Except(_, not) => self.tell(member, not, found)?,
                        Set::At { start, end, .. } => {
                            for way in [start, end].into_iter().flatten() {
                                let steps = self.steps_from(member, way)?;
                                found.extend(steps.into_iter().map(|(_, triple)| triple));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The largest parts of a conjunction that have members, and what their members are compared by.
    fn instead_of_all(&mut self, all: &[Set], found: &mut Vec<Triple>) -> Result<()> {
        let (conditions, parts): (Vec<&Set>, Vec<&Set>) =
            (all.iter()).partition(|set| matches!(set, Set::Compare { .. }));
        let mut members = Vec::new();
        for part in &parts {
            members.push(self.part(part)?);
        }
        // from each part as many others as go together with it
        let mut groups: Vec<(Vec<usize>, Vec<EntityId>)> = Vec::new();
        for first in 0..parts.len() {
            let (mut group, mut common) = (vec![first], members[first].to_vec());
            for other in (0..parts.len()).filter(|other| *other != first) {
                let mut both = common.clone();
                both.retain(|entity| members[other].binary_search(entity).is_ok());
                if !both.is_empty() {
                    group.push(other);
                    common = both;
                }
            }
            group.sort_unstable();
            if !common.is_empty() && groups.iter().all(|(known, _)| *known != group) {
                groups.push((group, common));
            }
        }
        let Some(most) = groups.iter().map(|(group, _)| group.len()).max() else {
            for part in parts {
                self.instead(part, found)?;
            }
            return Ok(());
        };
        for (group, common) in groups.iter().filter(|(group, _)| group.len() == most) {
            for &member in common.iter().take(INSTEAD) {
                for &part in group {
                    self.tell(member, parts[part], found)?;
                }
                for condition in &conditions {
                    if let Set::Compare { by, than, .. } = condition {
                        self.tell_values(member, by, found)?;
                        self.tell_values(member, than, found)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The members of a part; none where they are too many to be looked through.
    fn part(&mut self, set: &Set) -> Result<Arc<[EntityId]>> {
        match self.extension(set) {
            Err(Error::FormTooLarge { .. }) => Ok(Arc::default()),
            members => members,
        }
    }
}
