//! Questions that follow another in a conversation.
//!
//! ```text
//! whole       What is the capital of France?    read as if nothing had been asked before
//! refers      And its population?               `its` is what was answered, or what that was about
//! replaces    What about Uganda?                the last question, with Uganda for Kenya
//! leaves out  How many are there?               … of them
//! ```
//!
//! What was asked before comes from outside: names are looked up in the graph, the last form is only
//! run within the question's own limits, and what is read is a form of its own, in which nothing
//! refers to anything.

mod cues;
mod form_parts;
mod referents;
mod replaced;
mod spoken;

use std::rc::Rc;
use std::time::{Duration, Instant};

use wherefore_graph::{EntityId, Graph};

use self::cues::{Cues, Reference};
use self::referents::{Referent, referents};
use self::spoken::Spoken;
use super::arena::Node;
use super::lang::{Lang, english};
use super::tokens::{MAX_SLOTS, Words};
use super::{Known, Proposal, Understood, Weights, read_words};
use crate::at_hand::with_rows_at_hand;
use crate::error::Result;
use crate::link::Link;
use crate::question::{Follow, Question};

/// What the words that refer are tried as.
const TRIED: usize = 5;

/// Readings of a question that follows another, best first.
#[derive(Debug)]
pub(crate) struct Following {
    pub(crate) readings: Vec<Proposal>,
    /// What was taken over from the last question, in plain English.
    pub(crate) carried: Option<String>,
    /// Things that it is about.
    pub(crate) topics: Vec<EntityId>,
}

impl Following {
    /// Whether the best reading is answered.
    fn is_good(&self) -> bool {
        is_good(&self.readings)
    }
}

fn is_good(readings: &[Proposal]) -> bool {
    let best = readings.first();
    best.is_some_and(|best| best.is_answer() && best.unused.is_empty())
}

/// Whether a question may leave out what another said, by its words alone: a question of which this
/// is not so is read alike after any other.
pub fn may_follow(text: &str) -> bool {
    cues::may_follow(text, english())
}

/// Readings of a question that leaves out what the last one says; none where it is whole in itself.
pub(crate) fn follow(
    question: &Question,
    last: &Follow,
    links: &[Link],
    graph: &dyn Graph,
    known: &Known,
    weights: &Weights,
    time: Duration,
) -> Result<Option<Following>> {
    let follower = Follower {
        last,
        graph,
        known,
        weights,
        lang: english(),
        until: Instant::now() + time,
    };
    follower.follow(&question.text, links)
}

/// One question after another.
struct Follower<'a> {
    last: &'a Follow,
    graph: &'a dyn Graph,
    known: &'a Known,
    weights: &'a Weights,
    lang: &'static Lang,
    until: Instant,
}

impl Follower<'_> {
    fn follow(&self, text: &str, links: &[Link]) -> Result<Option<Following>> {
        let cues = Cues::begin(text, self.lang);
        let mut found = self.after(text, &cues, links)?;
        // where the words stand in the whole text
        let readings = found.iter_mut().flat_map(|f| &mut f.readings);
        for reading in readings {
            moved(reading, |u| u.moved(cues.from as isize));
        }
        Ok(found)
    }

    fn after(&self, text: &str, cues: &Cues, links: &[Link]) -> Result<Option<Following>> {
        if !cues::may_follow(text, self.lang) {
            return Ok(None);
        }
        let rest = &text[cues.from..];
        let links: Vec<Link> = links.iter().filter_map(|l| after(l, cues.from)).collect();
        let Some(spoken) = self.spoken(rest, &links)? else {
            return Ok(None);
        };
        let alone = |readings| match cues.from {
            0 => None,
            _ => Some(Following {
                readings,
                carried: None,
                topics: Vec::new(),
            }),
        };
        let references = cues::references(&spoken, self.lang);
        if !references.is_empty() {
            if references.iter().all(|r| r.is_weak) {
                let readings = self.read(rest, &links, &[], None)?;
                if is_good(&readings) {
                    return Ok(alone(readings));
                }
            }
            if let Some(found) = self.referring(rest, &links, &references)? {
                return Ok(Some(found));
            }
        } else {
            if cues.from > 0
                && let Some(found) = self.replaced(&spoken)?
                && found.is_good()
            {
                return Ok(Some(found));
            }
            if let Some(at) = cues::left_out(&spoken, self.lang)
                && let Some(found) = self.left_out(rest, at, &links)?
            {
                return Ok(Some(found));
            }
        }
        match cues.from {
            0 => Ok(None),
            _ => Ok(alone(self.read(rest, &links, &[], None)?)),
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What the parts of a text stand for.
    fn spoken(&self, text: &str, links: &[Link]) -> Result<Option<Spoken>> {
        with_rows_at_hand(self.graph, |graph| {
            Spoken::new(text, links, graph, self.known, self.weights, self.left())
        })
    }

    /// Readings of a text in which some words stand for what was answered before.
    fn read(
        &self,
        text: &str,
        links: &[Link],
        references: &[(usize, usize)],
        referent: Option<&(Node, Referent)>,
    ) -> Result<Vec<Proposal>> {
        with_rows_at_hand(self.graph, |graph| {
            let words = Words::referring(text, self.lang, references);
            if self.left().is_zero() || words.slots.len() > MAX_SLOTS {
                return Ok(Vec::new());
            }
            read_words(
                words,
                links,
                referent.map(|(node, referent)| {
                    let members = Rc::clone(&referent.members);
                    (node.clone(), members, referent.form.clone())
                }),
                graph,
                self.known,
                self.weights,
                self.left(),
            )
        })
    }

    /// `And its population?`: the first that the words may stand for and that comes to an answer.
    fn referring(
        &self,
        text: &str,
        links: &[Link],
        references: &[Reference],
    ) -> Result<Option<Following>> {
        let spans: Vec<(usize, usize)> = references.iter().map(|r| r.words).collect();
        let wanted = references[0].wanted;
        let mut first = None;
        for referent in (referents(self.last, wanted, self.graph, self.left())?)
            .into_iter()
            .take(TRIED)
        {
            let carried = format!("{} = {}", references[0].text, referent.told);
            let topics = referent.members.iter().take(1).copied().collect();
            let is_part = references.iter().any(|r| r.is_partitive);
            let node = match (&*referent.members, is_part) {
                ([_], false) => Node::Ents(Rc::clone(&referent.members)),
                _ => Node::Carried,
            };
            let mut readings = self.read(text, links, &spans, Some(&(node, referent)))?;
            // names alone are counted and compared without the graph, and nothing proves it
            readings.retain(|reading| form_parts::rests_on_graph(&reading.form));
            if readings.is_empty() {
                continue;
            }
            let found = Following {
                readings,
                carried: Some(carried),
                topics,
            };
            if found.is_good() {
                return Ok(Some(found));
            }
            if self.left().is_zero() {
                break;
            }
            first.get_or_insert(found);
        }
        Ok(first)
    }

    /// `How many are there?`: of what was answered.
    fn left_out(&self, text: &str, at: usize, links: &[Link]) -> Result<Option<Following>> {
        let put_in = &self.lang.follow.left_out;
        let (before, behind) = text.split_at(at);
        let whole = format!("{before} {put_in}{behind}");
        let links: Vec<Link> = (links.iter().cloned())
            .map(|mut link| {
                link.span = link.span.map(|(from, to)| match from >= at {
                    true => (from + put_in.len() + 1, to + put_in.len() + 1),
                    false => (from, to),
                });
                link
            })
            .collect();
        let words = Words::new(&whole, self.lang);
        let end = at + 1 + put_in.len();
        let Some(place) = words.all.iter().position(|w| w.end == end) else {
            return Ok(None);
        };
        let them = words.text_of(place, place + 1).to_owned();
        let reference = Reference::left_out((place, place + 1), them, at < text.len());
        let mut found = self.referring(&whole, &links, &[reference])?;
        let back = put_in.len() + 1;
        for reading in found.iter_mut().flat_map(|f| &mut f.readings) {
            moved(reading, |u| match u.bytes() {
                (_, to) if to <= at => Some(u),
                (from, _) if from >= end => u.moved(-(back as isize)),
                _ => None,
            });
        }
        Ok(found)
    }
}

/// Tells for words of a reading where they stand in another text.
fn moved(reading: &mut Proposal, by: impl Fn(Understood) -> Option<Understood>) {
    let all = std::mem::take(&mut reading.understood);
    reading.understood = all.into_iter().filter_map(by).collect();
}

/// A link of a text, for the text from some place on.
fn after(link: &Link, from: usize) -> Option<Link> {
    let mut link = link.clone();
    if let Some((start, end)) = link.span {
        link.span = Some((start.checked_sub(from)?, end - from));
    }
    Some(link)
}
