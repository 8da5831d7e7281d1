//! `What about Uganda?`: the last question, with another part in the place of one of its kind.
//!
//! A name takes the place of the name of the nearest class in the last form. Whatever else is said
//! anew takes the place of the words for its kind in the last question, which is then read anew: the
//! rivers *of* a country are found by another relation than its lakes.

use wherefore_graph::EntityId;

use super::form_parts::{named, names, with};
use super::referents::{last_form, told};
use super::spoken::{At, Part, Spoken};
use super::{Follower, Following, is_good};
use crate::error::Result;
use crate::logic::{Form, Moment, Outcome, Plan, RunLimits, Runner, relation_called};
use crate::question::MAX_QUESTION_BYTES;
use crate::read::vocabulary::ClassIx;
use crate::read::{Came, Proposal};

/// Most entities of a set of a form with another name.
const ROWS: usize = 200_000;

/// What is put in the place of what.
struct Change {
    /// Bytes of the last question.
    from: usize,
    to: usize,
    by: String,
}

impl Follower<'_> {
    /// Readings of the last question with the parts that are said anew.
    pub(super) fn replaced(&self, spoken: &Spoken) -> Result<Option<Following>> {
        let Some(pieces) = spoken.pieces().filter(|pieces| !pieces.is_empty()) else {
            return Ok(None);
        };
        let names = pieces
            .iter()
            .filter(|at| matches!(at.part, Part::Name(..)))
            .count();
        let others = pieces.len() - names;
        let last = match self.last.question.len() <= MAX_QUESTION_BYTES {
            true => self.spoken(&self.last.question, &[])?,
            false => None,
        };
        match (names, others) {
            (1, 0) => self.another_name(spoken, pieces[0], last.as_ref()),
            (0, _) => match last {
                Some(last) => self.other_words(spoken, &pieces, &last, None),
                None => Ok(None),
            },
            // `and the capital of Uganda`
            _ => Ok(None),
        }
    }

    /// The last form with another name.
    fn another_name(
        &self,
        spoken: &Spoken,
        piece: &At,
        last: Option<&Spoken>,
    ) -> Result<Option<Following>> {
        let form = last_form(self.last);
        let named_before = match &form {
            Some(form) => names(form, self.graph)?,
            None => Vec::new(),
        };
        let mut groups: Vec<&At> = (spoken.parts.iter())
            .filter(|at| at.words == piece.words && matches!(at.part, Part::Name(..)))
            .collect();
        groups.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        // the name of the nearest class, the last of several
        let mut nearest: Option<(&str, &[EntityId], &[EntityId], usize)> = None;
        for group in &groups {
            let Part::Name(things, types) = &group.part else {
                continue;
            };
            for (name, old) in &named_before {
                let common = self.common(types, old)?;
                let better = nearest.is_none_or(|(.., most)| common >= most);
                if (common > 0 || named_before.len() == 1 && nearest.is_none()) && better {
                    nearest = Some((name, old, things, common));
                }
            }
            if nearest.is_some_and(|(.., common)| common > 0) {
                break;
            }
        }
        let by_form = match (&form, nearest) {
            (Some(form), Some((name, old, things, common))) => {
                let new = match named(things, self.graph)? {
                    Form::Or(mut one) if one.len() == 1 => one.remove(0),
                    several => several,
                };
                let carried = format!(
                    "as before, with {} for {}",
                    told(things, self.graph)?,
                    told(&old[..1], self.graph)?
                );
                let proposal = self.proposed(with(form, name, &new))?;
                proposal.map(|proposal| {
                    let found = Following {
                        readings: vec![proposal],
                        carried: Some(carried),
                        topics: things.to_vec(),
                    };
                    (found, common > 0)
                })
            }
            _ => None,
        };
        let by_words = match last {
            Some(last) => {
                let old = nearest.map(|(_, old, ..)| old);
                self.other_words(spoken, &[piece], last, old)?
            }
            None => None,
        };
        Ok(match (by_form, by_words) {
            (Some((form, true)), Some(words)) => {
                let came = |f: &Following| f.readings.first().map(|r| r.came.clone());
                // the same, and how likely that is against other readings
                let same = came(&form) == came(&words);
                match is_good(&words.readings) && (same || !form.is_good()) {
                    true => Some(words),
                    false => Some(form),
                }
            }
            (Some((form, false)), Some(words)) => match words.is_good() || !form.is_good() {
                true => Some(words),
                false => Some(form),
            },
            (form, words) => form.map(|(form, _)| form).or(words),
        })
    }

    /// How many of some classes things are of.
    fn common(&self, types: &[ClassIx], things: &[EntityId]) -> Result<usize> {
        let mut most = 0;
        for &thing in things.iter().take(8) {
            let of = self.known.schema.types_of(self.graph, thing)?;
            most = most.max(of.iter().filter(|class| types.contains(class)).count());
        }
        Ok(most)
    }

    /// The last question with other words for parts of it, read anew.
    fn other_words(
        &self,
        spoken: &Spoken,
        pieces: &[&At],
        last: &Spoken,
        old: Option<&[EntityId]>,
    ) -> Result<Option<Following>> {
        let mut changes: Vec<Change> = Vec::new();
        let mut carried = Vec::new();
        for piece in pieces {
            let Some(words) = self.counterpart(&piece.part, last, old)? else {
                return Ok(None);
            };
            let (from, to) = (
                last.words.all[words.0].start,
                last.words.all[words.1 - 1].end,
            );
            if changes.iter().any(|c| c.from < to && from < c.to) {
                return Ok(None);
            }
            let by = spoken.text(piece.words).to_owned();
            carried.push(format!("{by} for {}", last.text(words)));
            changes.push(Change { from, to, by });
        }
        changes.sort_by_key(|change| std::cmp::Reverse(change.from));
        let mut text = self.last.question.clone();
        for change in &changes {
            text.replace_range(change.from..change.to, &change.by);
        }
        if text.len() > MAX_QUESTION_BYTES {
            return Ok(None);
        }
        let mut readings = self.read(&text, &[], &[], None)?;
        // its words are not those of the question
        readings.iter_mut().for_each(|r| r.understood.clear());
        Ok(Some(Following {
            readings,
            carried: Some(format!("as before, with {}", carried.join(" and "))),
            topics: Vec::new(),
        }))
    }

    /// The words of the last question that are of the same kind as a part.
    fn counterpart(
        &self,
        part: &Part,
        last: &Spoken,
        old: Option<&[EntityId]>,
    ) -> Result<Option<(usize, usize)>> {
        let is_of = |at: &&At| match (part, &at.part) {
            (Part::Name(..), Part::Name(things, _)) => match old {
                Some(old) => things.iter().any(|thing| old.contains(thing)),
                None => !at.is_doubtful,
            },
            (Part::Operator(_), _) => false,
            (part, other) => std::mem::discriminant(part) == std::mem::discriminant(other),
        };
        let overlaps = |a: &At, b: &At| a.words.0 < b.words.1 && b.words.0 < a.words.1;
        let is_name = matches!(part, Part::Name(..));
        let is_free = |at: &&At| is_name || !last.names().any(|name| overlaps(name, at));
        let mut found: Vec<&At> = (last.parts.iter().filter(is_of)).filter(is_free).collect();
        if let Part::Relation(_) = part {
            let used = self.relations_before()?;
            let is_used = |at: &&At| matches!(at.part, Part::Relation(r) if used.contains(&r));
            if found.iter().any(is_used) {
                found.retain(is_used);
            }
        }
        // the last name and number, and the first of all else
        let place = |at: &At| match part {
            Part::Name(..) | Part::Number => last.words.all.len() - at.words.1,
            _ => at.words.0,
        };
        let longest = |at: &At| std::cmp::Reverse(at.words.1 - at.words.0);
        let best = found.into_iter().min_by_key(|at| (place(at), longest(at)));
        Ok(best.map(|at| at.words))
    }

    /// The relations of the last form.
    fn relations_before(&self) -> Result<Vec<wherefore_graph::RelationId>> {
        let Some(form) = last_form(self.last) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        // whatever in its text is a relation's name
        let text = form.to_string();
        for word in text.split(|c: char| c.is_whitespace() || "()".contains(c)) {
            if !word.is_empty()
                && let Some(relation) = relation_called(word, self.graph)?
            {
                found.push(relation);
            }
        }
        Ok(found)
    }

    /// A form as a reading, with what it comes to; none where it cannot be run.
    fn proposed(&self, form: Form) -> Result<Option<Proposal>> {
        let Ok(plan) = Plan::new(&form, self.graph, Moment::now()) else {
            return Ok(None);
        };
        let limits = RunLimits {
            time: self.left(),
            rows: ROWS,
            ..RunLimits::default()
        };
        let Ok(mut runner) = Runner::new(&plan, self.graph, &limits) else {
            return Ok(None);
        };
        let came = match runner.run_within_limits()? {
            Some(Outcome::Entities(all)) => Came::Entities(all),
            Some(Outcome::Truth(truth, _)) => Came::Truth(truth),
            Some(Outcome::Number(number, all)) => match number {
                None => Came::Number(None),
                Some(_) if all.is_empty() => Came::Number(Some(0.0)),
                Some(_) => Came::Unknown,
            },
            Some(Outcome::Table(rows)) => Came::Entities(rows.members),
            None => Came::Unknown,
        };
        Ok(Some(Proposal::of(form, came)))
    }
}
