//! How well a path of relations tells what the question says.
//!
//! The words, in the order in which they are told from the topic on, are cut into one piece for
//! each step of the path; the best cut counts:
//!
//! ```text
//! score = max over cuts  Σ_j ( max_{w ∈ piece j} a(w, s_j) − λ_j ) − μ Σ_{w ∈ piece j} max(0, i(w) − a(w, s_j))
//!         − τ·[the last step does not lead to what is asked for] + τ·[its ends are called so]
//!         + κ·[its ends are of the kind that is asked for] − ν·[they are of another]
//! ```
//!
//! i(w) is the affinity of w to the relation it names best, if it names any (at least
//! [`STRONG`]): a word that names a relation should find it on the path. λ is what a step costs,
//! and little where it only passes a node without a name. A step is also told by
//!
//! - a word that names no relation, if the step goes against its relation: relations are named
//!   after what they lead to, so `films` is what they come from (those that end in `of`, such as
//!   `mascot of`, are named after what they come from);
//! - the word for the kind of thing that is asked for, if it leads to things of that kind (`rivers
//!   in Austria`); other words for kinds may tell a step, but need not (`the countries that …`);
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
/// κ
const KIND: f32 = 0.3;
/// ν
const OTHER_KIND: f32 = 1.2;
/// What the word for the kind is worth to the step that leads to it.
const TOLD_BY_KIND: f32 = 0.6;
/// Words that ask for the value of whatever is named beside them: `the length of the coastline`.
const VALUES: [&str; 8] = [
    "amount", "extent", "height", "length", "name", "size", "value", "width",
];
/// The least affinity at which a step is what a word asks for.
const ASKED: f32 = 0.5;
/// The least worth of a word that tells a step.
const TOLD: f32 = 0.3;
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

/// What the ends of a path are to what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Nothing is known of it.
    Open,
    /// They are called so.
    Called,
    /// They are of that kind.
    Kind,
    /// They are of another kind.
    OtherKind,
}

/// A question, ready to score paths.
pub(super) struct Aligner<'a> {
    reading: &'a Reading,
    affinity: &'a Affinity<'a>,
    /// The words that mean a kind of thing.
    kinds: Vec<bool>,
    orders: Vec<Vec<usize>>,
}

impl<'a> Aligner<'a> {
    /// `kinds` says for each word of the reading whether it means a kind of thing.
    pub(super) fn new(reading: &'a Reading, affinity: &'a Affinity<'a>, kinds: Vec<bool>) -> Self {
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
            kinds,
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

    /// Whether it is asked who or where: never a number or a date.
    pub(super) fn asks_who(&self) -> bool {
        let target = self.reading.target.map(|t| &*self.reading.words[t].text);
        matches!(target, Some("who" | "whom" | "where"))
    }

    /// Whether every step is told by a word of its own, as far as words tell steps at all.
    pub(super) fn tells_every_step(&self, steps: &[Step], fit: Fit) -> bool {
        let mut used = vec![false; self.reading.words.len()];
        // `lakes in Africa`: from the continent to its countries, and on to theirs
        let within = fit == Fit::Kind && steps.iter().all(|step| !step.hop.forward);
        (0..steps.len()).all(|j| {
            let worth = |w: usize| self.told(steps, j, w, fit).0;
            // `when` asks for what the last step leads to, and `become` for nothing
            let silent = |w: usize| match &*self.reading.words[w].text {
                "when" => j + 1 < steps.len(),
                word => matches!(word, "became" | "become"),
            };
            let free = (0..used.len()).filter(|&w| !used[w] && !silent(w));
            let best = free.max_by(|&a, &b| worth(a).total_cmp(&worth(b)));
            match best.filter(|&w| worth(w) >= TOLD) {
                Some(w) => {
                    used[w] = true;
                    true
                }
                None => steps[j].through || within,
            }
        })
    }

    /// The word for what is asked for, if it is a word for a kind of thing.
    pub(super) fn target(&self) -> Option<&str> {
        let word = &self.reading.words[self.reading.target?];
        (word.kind == Kind::Plain).then_some(word.text.as_str())
    }

    /// The score of a path; see the module.
    pub(super) fn score(&self, steps: &[Step], fit: Fit) -> f32 {
        let best = self
            .orders
            .iter()
            .map(|order| self.cut(steps, order, fit))
            .fold(f32::NEG_INFINITY, f32::max);
        match fit {
            Fit::Open => best - self.off_target(steps),
            Fit::Called => best + TARGET,
            Fit::Kind => best + KIND,
            Fit::OtherKind => best - OTHER_KIND,
        }
    }

    /// The score of paths that lead to the same things: each step by the word that tells it best
    /// and that tells no other step of the path, each word by the step that tells it best, in any
    /// order. What things have in common is what the paths lead to, and no step.
    pub(super) fn score_together(&self, paths: &[&[Step]], fit: Fit) -> f32 {
        let words = || {
            let plain = |w: &usize| self.reading.words[*w].kind != Kind::Same;
            (0..self.reading.words.len()).filter(plain)
        };
        let mut score = 0.0;
        let mut least = vec![f32::INFINITY; self.reading.words.len()];
        for steps in paths {
            let mut used = vec![false; self.reading.words.len()];
            for j in 0..steps.len() {
                let mut best: Option<(f32, usize)> = None;
                for w in words() {
                    let (worth, lost) = self.told(steps, j, w, fit);
                    least[w] = least[w].min(lost);
                    if !used[w] && worth > best.map_or(0.0, |(b, _)| b) {
                        best = Some((worth, w));
                    }
                }
                score -= if steps[j].through { THROUGH } else { STEP };
                if let Some((worth, word)) = best {
                    used[word] = true;
                    score += worth;
                }
            }
        }
        score -= UNTOLD * least.iter().filter(|l| l.is_finite()).sum::<f32>();
        match fit {
            Fit::Kind => score + KIND,
            Fit::OtherKind => score - OTHER_KIND,
            Fit::Open | Fit::Called => score,
        }
    }

    /// Whether a path leads to what is asked for, as far as the words tell.
    pub(super) fn is_answer(&self, steps: &[Step], fit: Fit) -> bool {
        let Some(last) = steps.last() else {
            return false;
        };
        let told = |word: usize, step: &Step| self.affinity.of(word, step.hop.relation) >= ASKED;
        match self.reading.target {
            Some(target) if self.reading.words[target].kind == Kind::Plain => match fit {
                Fit::Kind | Fit::Called => true,
                Fit::OtherKind => false,
                Fit::Open => {
                    let word = self.reading.words[target].text.as_str();
                    let any = || (0..self.reading.words.len()).any(|w| told(w, last));
                    told(target, last) || VALUES.contains(&word) && any()
                }
            },
            _ => (0..self.reading.words.len()).any(|w| steps.iter().any(|step| told(w, step))),
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

    fn cut(&self, steps: &[Step], order: &[usize], fit: Fit) -> f32 {
        let count = order.len();
        let mut before = vec![f32::NEG_INFINITY; count + 1];
        before[0] = 0.0;
        for j in 0..steps.len() {
            let told: Vec<(f32, f32)> =
                order.iter().map(|&w| self.told(steps, j, w, fit)).collect();
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
    fn told(&self, steps: &[Step], j: usize, w: usize, fit: Fit) -> (f32, f32) {
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
                let leads_to_name = self.affinity.leads_to_name(hop);
                let is_kind = self.kinds.get(w).copied().unwrap_or(false);
                // `the countries that …` are led to by `country`, not from
                let mut worth = if is_kind && !leads_to_name { 0.0 } else { own };
                if kind == Kind::Plain && named < STRONG && !leads_to_name {
                    worth = worth.max(UNNAMED);
                }
                if self.reading.target == Some(w) && kind == Kind::Plain {
                    // what is asked for is what the relation leads to, or comes from
                    if (named >= STRONG) != leads_to_name {
                        worth = 0.0;
                    }
                }
                let reached = self.reading.target == Some(w) && fit == Fit::Kind;
                if reached && j + 1 == steps.len() {
                    worth = worth.max(TOLD_BY_KIND);
                }
                let off = self.reading.target == Some(w) && !reached;
                // `where` may stand for a relation, but need not
                let must = kind == Kind::Plain && named >= STRONG && (!is_kind || off);
                let lost = if must { named - worth } else { 0.0 };
                (worth, lost.max(0.0))
            }
        }
    }
}

/// Two words side by side that one relation is named best by tell one step: `release year`, `flows
/// through`. Of these the word stands for both that fewer relations are named by.
fn merge(order: &mut Vec<usize>, reading: &Reading, affinity: &Affinity<'_>) {
    let mut merged: Vec<usize> = Vec::with_capacity(order.len());
    for &w in order.iter() {
        if let Some(last) = merged.last_mut() {
            let (a, b) = (&reading.words[*last], &reading.words[w]);
            let plain = a.kind == Kind::Plain && b.kind == Kind::Plain;
            let both = affinity.best[*last] >= STRONG && affinity.best[w] >= STRONG;
            let beside = a.place.abs_diff(b.place) == 1;
            if plain && both && beside && affinity.name_the_same(*last, w) {
                let fewer = affinity.named_by(w).count() < affinity.named_by(*last).count();
                if reading.target == Some(w) || reading.target != Some(*last) && fewer {
                    *last = w;
                }
                continue;
            }
        }
        merged.push(w);
    }
    *order = merged;
}
