//! How well a path of relations tells what the question says.
//!
//! The words, in the order in which they are told from the topic on, are cut into one piece for
//! each step of the path; the best cut counts:
//!
//! ```text
//! score = max over cuts  Σ_j ( max_{w ∈ piece j} a(w, s_j) − λ_j ) − μ Σ_{w ∈ piece j} max(0, i(w) − a(w, s_j))
//!         − τ·[the last step does not lead to what is asked for] + τ·[its ends are called so]
//! ```
//!
//! i(w) is the affinity of w to the relation it names best, if it names any (at least
//! [`STRONG`]): a word that names a relation should find it on the path. λ is what a step costs,
//! and little where it only passes a node without a name. A step is also told by
//!
//! - a word that names no relation, if the step goes against its relation: relations are named
//!   after what they lead to, so `films` is what they come from (those that end in `of`, such as
//!   `mascot of`, are named after what they come from);
//! - a word like `same` or `together`, if the step and its neighbour go there and back.

use wherefore_graph::Hop;

use super::affinity::Affinity;
use super::reading::{Kind, Reading};

/// λ
const STEP: f32 = 0.65;
/// λ of a step into a node without a name.
const THROUGH: f32 = 0.1;
/// μ
const UNTOLD: f32 = 0.5;
/// τ
const TARGET: f32 = 0.5;
/// Words with less affinity name no relation.
pub(super) const STRONG: f32 = 0.55;
/// What a word that names no relation is worth to a step against its relation.
const UNNAMED: f32 = 0.5;
/// What `same` is worth to a step there or back.
const SAME: f32 = 0.8;

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) hop: Hop,
    /// Whether it leads to nodes without a name.
    pub(super) through: bool,
}

/// A question, ready to score paths.
pub(super) struct Aligner<'a> {
    reading: &'a Reading,
    affinity: &'a Affinity<'a>,
    orders: Vec<Vec<usize>>,
}

impl<'a> Aligner<'a> {
    pub(super) fn new(reading: &'a Reading, affinity: &'a Affinity<'a>) -> Self {
        let mut reading_orders = reading.orders();
        // `the film Alien`: the word says what the topic is, and no step
        let kind_of_topic = reading.left.first().copied().filter(|&w| {
            reading.touching
                && reading.words[w].kind == Kind::Plain
                && affinity.best[w] < STRONG
                && reading.target != Some(w)
        });
        for order in &mut reading_orders {
            order.retain(|&w| Some(w) != kind_of_topic);
            merge(order, reading, affinity);
        }
        Self {
            reading,
            affinity,
            orders: reading_orders,
        }
    }

    /// Whether any word of the question names a relation.
    pub(super) fn says_anything(&self) -> bool {
        self.affinity.best.iter().any(|&best| best > 0.0)
    }

    /// Whether it is asked when something was.
    pub(super) fn asks_when(&self) -> bool {
        let target = self.reading.target.map(|t| &self.reading.words[t].text);
        target.is_some_and(|word| word == "when")
    }

    /// The word for what is asked for, if it is a word for a kind of thing.
    pub(super) fn target(&self) -> Option<&str> {
        let word = &self.reading.words[self.reading.target?];
        (word.kind == Kind::Plain).then_some(word.text.as_str())
    }

    /// The score of a path; see the module. `labelled` says that the labels of its ends hold the
    /// word for what is asked for.
    pub(super) fn score(&self, steps: &[Step], labelled: bool) -> f32 {
        let best = self
            .orders
            .iter()
            .map(|order| self.cut(steps, order))
            .fold(f32::NEG_INFINITY, f32::max);
        if labelled {
            best + TARGET
        } else {
            best - self.off_target(steps)
        }
    }

    fn off_target(&self, steps: &[Step]) -> f32 {
        let (Some(target), Some(last)) = (self.reading.target, steps.last()) else {
            return 0.0;
        };
        if self.reading.words[target].kind == Kind::Asking {
            return 0.0;
        }
        let best = self.affinity.best[target];
        let named = self.affinity.leads_to_name(last.hop);
        let reached = if best >= STRONG {
            named && self.affinity.of(target, last.hop.relation) >= best - 0.15
        } else {
            !named
        };
        if reached { 0.0 } else { TARGET }
    }

    fn cut(&self, steps: &[Step], order: &[usize]) -> f32 {
        let count = order.len();
        let mut before = vec![f32::NEG_INFINITY; count + 1];
        before[0] = 0.0;
        for j in 0..steps.len() {
            let told: Vec<(f32, f32)> = order.iter().map(|&w| self.told(steps, j, w)).collect();
            let cost = if steps[j].through { THROUGH } else { STEP };
            let mut after = vec![f32::NEG_INFINITY; count + 1];
            for (from, &so_far) in before.iter().enumerate() {
                if so_far == f32::NEG_INFINITY {
                    continue;
                }
                let (mut best, mut untold) = (0.0f32, 0.0);
                for to in from..=count {
                    if to > from {
                        best = best.max(told[to - 1].0);
                        untold += told[to - 1].1;
                    }
                    let value = so_far + best - UNTOLD * untold - cost;
                    after[to] = after[to].max(value);
                }
            }
            before = after;
        }
        before[count]
    }

    /// What word w is worth to step j, and what is lost if it stands in its piece.
    fn told(&self, steps: &[Step], j: usize, w: usize) -> (f32, f32) {
        let hop = steps[j].hop;
        let named = self.affinity.best[w];
        let own = self.affinity.of(w, hop.relation);
        match self.reading.words[w].kind {
            Kind::Same => {
                let back = |other: Option<&Step>| other.is_some_and(|o| o.hop.undoes(&hop));
                let pair = back(steps.get(j + 1)) || j > 0 && back(steps.get(j - 1));
                let worth = if pair { SAME } else { own };
                (worth, 0.5 * (SAME - worth).max(0.0))
            }
            kind => {
                let mut worth = own;
                let leads_to_name = self.affinity.leads_to_name(hop);
                if kind == Kind::Plain && named < STRONG && !leads_to_name {
                    worth = worth.max(UNNAMED);
                }
                if self.reading.target == Some(w) && kind == Kind::Plain {
                    // what is asked for is what the relation leads to, or comes from
                    if (named >= STRONG) != leads_to_name {
                        worth = 0.0;
                    }
                }
                // `where` may stand for a relation, but need not
                let must = kind == Kind::Plain && named >= STRONG;
                let lost = if must { named - worth } else { 0.0 };
                (worth, lost.max(0.0))
            }
        }
    }
}

/// Two words side by side that name the same relation tell one step: `release year`.
fn merge(order: &mut Vec<usize>, reading: &Reading, affinity: &Affinity<'_>) {
    let mut merged: Vec<usize> = Vec::with_capacity(order.len());
    for &w in order.iter() {
        if let Some(last) = merged.last_mut() {
            let (a, b) = (&reading.words[*last], &reading.words[w]);
            let plain = a.kind == Kind::Plain && b.kind == Kind::Plain;
            let both = affinity.best[*last] >= STRONG && affinity.best[w] >= STRONG;
            let same = affinity.nearest[*last] == affinity.nearest[w];
            if plain && both && same && a.place.abs_diff(b.place) == 1 {
                if reading.target == Some(w) {
                    *last = w;
                }
                continue;
            }
        }
        merged.push(w);
    }
    *order = merged;
}
