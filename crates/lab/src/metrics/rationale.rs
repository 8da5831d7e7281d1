//! Rationales against gold paths, triple by triple.
//!
//! GNN2R, Table 7: precision, recall and F1 of the triples of the returned reasoning subgraphs
//! against the annotated ones. All rationales of a question are pooled into one set; triples are
//! compared by names in normal form, or by ids where the prediction has them. Triples are
//! directed: a gold triple and its inverse relation are two.

use std::collections::HashSet;

use wherefore_graph::names::normalise;

use crate::questions::{NamedTriple, Proof};

/// A triple of a rationale, by names and, where known, by ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownTriple {
    /// Head, relation and tail as people read them.
    pub names: NamedTriple,
    /// Their identities in the graph.
    pub ids: Option<NamedTriple>,
}

impl From<NamedTriple> for ShownTriple {
    fn from(names: NamedTriple) -> Self {
        Self { names, ids: None }
    }
}

/// Right, predicted and gold triples of one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RationaleCounts {
    /// Gold triples that were given.
    pub right: usize,
    /// Distinct triples given.
    pub given: usize,
    /// Distinct gold triples.
    pub gold: usize,
}

impl RationaleCounts {
    /// Counts the given triples against the gold paths; none where there are no gold paths.
    pub fn of(proof: &Proof, given: &[ShownTriple]) -> Option<Self> {
        let key = |triple: &NamedTriple| triple.each_ref().map(|name| normalise(name));
        let gold: HashSet<[String; 3]> = proof.paths.iter().flatten().map(key).collect();
        if gold.is_empty() {
            return None;
        }
        let mut right = HashSet::new();
        let mut wrong = HashSet::new();
        for triple in given {
            let keys = std::iter::once(&triple.names).chain(&triple.ids).map(key);
            match keys.clone().find(|k| gold.contains(k)) {
                Some(found) => right.insert(found),
                None => wrong.insert(key(&triple.names)),
            };
        }
        Some(Self {
            right: right.len(),
            given: right.len() + wrong.len(),
            gold: gold.len(),
        })
    }

    /// Share of the given triples that is gold; 0 where none was given.
    pub fn precision(&self) -> f64 {
        if self.given == 0 {
            0.0
        } else {
            self.right as f64 / self.given as f64
        }
    }

    /// Share of the gold triples that was given.
    pub fn recall(&self) -> f64 {
        self.right as f64 / self.gold as f64
    }

    /// Harmonic mean of the two.
    pub fn f1(&self) -> f64 {
        2.0 * self.right as f64 / (self.given + self.gold) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(text: &str) -> NamedTriple {
        let mut parts = text.split(' ').map(str::to_owned);
        [(); 3].map(|()| parts.next().unwrap())
    }

    #[test]
    fn triples_are_pooled_and_counted_once() {
        let proof = Proof {
            paths: vec![
                vec![triple("a r b_c"), triple("b_c s d")],
                vec![triple("a r b_c"), triple("b_c s e")],
            ],
            ..Proof::default()
        };
        let mut given: Vec<ShownTriple> = vec![
            ["a", "r", "B c"].map(str::to_owned).into(),
            triple("a r b_c").into(),
            triple("d s b_c").into(), // the wrong way round
        ];
        given.push(ShownTriple {
            names: triple("label s label"),
            ids: Some(triple("b_c s d")),
        });
        // gold 3, given 3 distinct, right 2
        let counts = RationaleCounts::of(&proof, &given).unwrap();
        assert_eq!(
            counts,
            RationaleCounts {
                right: 2,
                given: 3,
                gold: 3
            }
        );
        assert!((counts.f1() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(RationaleCounts::of(&proof, &[]).unwrap().precision(), 0.0);
        assert_eq!(RationaleCounts::of(&Proof::default(), &given), None);
    }
}
