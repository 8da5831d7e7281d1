//! The search: parts over ranges of slots, the best of each range kept.
//!
//! ```text
//! cell(i, j) = anchors of slots i..j
//!            ∪ { combine(a, b) : a ∈ cell(i, k), b ∈ cell(k, j) }
//!            ∪ cell(i, j−1) with slot j−1 passed over ∪ cell(i+1, j) with slot i passed over
//! ```
//!
//! A cell keeps the [`SETS`] best sets and the [`OTHERS`] best of each other category.

use std::mem::Discriminant;
use std::rc::Rc;
use std::time::Instant;

use hashbrown::HashMap;

use super::arena::{Id, Meaning, Node};
use super::cat::Cat;
use super::features::{Derivation, Feature};
use super::search::{Anchor, Item, Reading, Search};
use crate::error::Result;

/// Sets that a range of words keeps.
const SETS: usize = 24;
/// Parts of each other category that it keeps.
const OTHERS: usize = 8;
/// Readings that are handed on.
const READINGS: usize = 100;
/// Parts of one question.
const MAX_NODES: usize = 60_000;

impl Search<'_> {
    fn anchored(&self, anchor: &Anchor) -> Item {
        Item {
            cat: anchor.cat.clone(),
            score: self.weigh(&anchor.own),
            derivation: Rc::new(Derivation {
                parts: [None, None],
                own: anchor.own.clone(),
                anchor: Some((anchor.words, anchor.cat.clone())),
            }),
            words: anchor.words,
            is_headed: self.is_unnamed(&anchor.cat),
            skipped: 0,
        }
    }

    fn passed_over(&self, item: &Item, slot: usize) -> Item {
        let own = vec![(self.skip[slot], 1.0)];
        Item {
            score: item.score + self.weigh(&own),
            derivation: Rc::new(Derivation {
                parts: [Some(Rc::clone(&item.derivation)), None],
                own,
                anchor: None,
            }),
            skipped: item.skipped | 1 << slot,
            ..item.clone()
        }
    }

    /// Readings of the whole question, best first.
    pub(super) fn readings(&mut self, anchors: &[Anchor]) -> Result<Vec<Reading>> {
        let n = self.words.slots.len();
        let mut cells: HashMap<(usize, usize), Vec<Item>> = HashMap::new();
        for length in 1..=n {
            for from in 0..=n - length {
                let to = from + length;
                let mut found: Vec<Item> = anchors
                    .iter()
                    .filter(|a| a.slots == (from, to))
                    .map(|a| self.anchored(a))
                    .collect();
                for middle in from + 1..to {
                    let (Some(left), Some(right)) =
                        (cells.get(&(from, middle)), cells.get(&(middle, to)))
                    else {
                        continue;
                    };
                    let (left, right) = (left.clone(), right.clone());
                    for a in &left {
                        for b in &right {
                            self.combined(a, b, &mut found)?;
                        }
                    }
                }
                if length > 1 {
                    if let Some(rest) = cells.get(&(from, to - 1)) {
                        found.extend(rest.iter().map(|item| self.passed_over(item, to - 1)));
                    }
                    if let Some(rest) = cells.get(&(from + 1, to)) {
                        let begun = |item: &&Item| item.skipped & 1 << (to - 1) == 0;
                        let rest = rest.iter().filter(begun);
                        found.extend(rest.map(|item| self.passed_over(item, from)));
                    }
                }
                let kept = self.kept(found)?;
                if !kept.is_empty() {
                    cells.insert((from, to), kept);
                }
            }
        }
        let whole = cells.remove(&(0, n)).unwrap_or_default();
        let mut readings = self.by_ways(anchors)?;
        self.finished(whole, &mut readings)?;
        readings.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = hashbrown::HashSet::new();
        readings.retain(|r| seen.insert(r.node));
        self.compare_wholes(&mut readings, anchors)?;
        readings.truncate(READINGS);
        Ok(readings)
    }

    fn is_spent(&self) -> bool {
        self.arena.len() > MAX_NODES || Instant::now() > self.until
    }

    fn combined(&mut self, a: &Item, b: &Item, found: &mut Vec<Item>) -> Result<()> {
        if self.is_spent() {
            return Ok(());
        }
        let headed = self.is_unnamed(&a.cat) || self.is_unnamed(&b.cat);
        for (cat, own) in self.combine(a, b)? {
            let is_set = matches!(cat, Cat::Set { .. });
            found.push(Item {
                cat,
                score: a.score + b.score + self.weigh(&own),
                derivation: Rc::new(Derivation {
                    parts: [
                        Some(Rc::clone(&a.derivation)),
                        Some(Rc::clone(&b.derivation)),
                    ],
                    own,
                    anchor: None,
                }),
                words: (a.words.0.min(b.words.0), a.words.1.max(b.words.1)),
                is_headed: headed && is_set,
                skipped: a.skipped | b.skipped,
            });
        }
        Ok(())
    }

    /// The best of a cell, each once; sets that come to nothing weigh less.
    fn kept(&mut self, mut found: Vec<Item>) -> Result<Vec<Item>> {
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen: hashbrown::HashSet<(Cat, bool)> = hashbrown::HashSet::new();
        found.retain(|item| seen.insert((item.cat.clone(), item.is_headed)));
        let mut counts: HashMap<Discriminant<Cat>, usize> = HashMap::new();
        let mut kept = Vec::new();
        for mut item in found {
            let count = counts.entry(std::mem::discriminant(&item.cat)).or_default();
            let most = match item.cat {
                Cat::Set { .. } => SETS,
                _ => OTHERS,
            };
            if *count >= most {
                continue;
            }
            *count += 1;
            if let Cat::Set { node, .. } = item.cat
                && !self.is_spent()
                && let Some(feature) = self.comes_to_little(node)?
                && item.derivation.own.iter().all(|(f, _)| *f != feature)
            {
                let own = vec![(feature, 1.0)];
                item.score += self.weigh(&own);
                item.derivation = Rc::new(Derivation {
                    parts: [Some(Rc::clone(&item.derivation)), None],
                    own,
                    anchor: None,
                });
            }
            kept.push(item);
        }
        kept.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(kept)
    }

    /// Whether a set is empty, or a comparison in it leaves nothing out.
    fn comes_to_little(&mut self, node: Id) -> Result<Option<Feature>> {
        let of = match *self.arena.node(node) {
            Node::Class(_) | Node::Side(..) => return Ok(None),
            Node::And(..) if self.is_yes_no => return Ok(None),
            Node::Where(of, ..) if self.is_yes_no => return self.leaves_all(node, of),
            Node::Where(of, ..) => Some(of),
            _ => None,
        };
        if let Meaning::Set(members) = self.arena.meaning(node)?
            && members.is_empty()
        {
            return Ok(Some(Feature::empty));
        }
        match of {
            Some(of) => self.leaves_all(node, of),
            None => Ok(None),
        }
    }

    /// Whether a comparison leaves out no member of a set.
    pub(super) fn leaves_all(&mut self, node: Id, of: Id) -> Result<Option<Feature>> {
        let (kept, all) = (self.arena.members(node)?, self.arena.members(of)?);
        let (Some(kept), Some(all)) = (kept, all) else {
            return Ok(None);
        };
        let same = all.len() > 1 && kept.len() == all.len();
        Ok(same.then_some(Feature::idle_comparison))
    }

    fn finished(&mut self, whole: Vec<Item>, readings: &mut Vec<Reading>) -> Result<()> {
        for item in whole {
            for (node, own) in self.close(&item)? {
                readings.push(Reading {
                    node,
                    score: item.score + self.weigh(&own),
                    derivation: Rc::new(Derivation {
                        parts: [Some(Rc::clone(&item.derivation)), None],
                        own,
                        anchor: None,
                    }),
                    skipped: item.skipped,
                });
            }
        }
        Ok(())
    }
}
