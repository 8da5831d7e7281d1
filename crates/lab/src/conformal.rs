//! How readings over a graph fare, so that a coverage can be promised ([`wherefore::conformal`]).

use serde::Serialize;
use wherefore::Question;
use wherefore::conformal::Conformal;
use wherefore::graph::Graph;
use wherefore::link::Linker;
use wherefore::retrieve::Read;

use crate::each::each;
use crate::error::Result;
use crate::questions::GoldQuestion;
use crate::train::reading::agreement;

/// The first readings of a question that come to different things.
#[derive(Clone, Debug)]
pub struct Readings {
    /// The share of each.
    pub shares: Vec<f32>,
    /// The place of the one that is exactly right.
    pub right: Option<usize>,
}

/// How a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CoverageCheck {
    /// What was promised.
    pub coverage: f64,
    /// How often the right reading was among those that are answered.
    pub covered: f64,
    /// Readings that are answered, on average.
    pub readings: f64,
}

/// Reads questions; `see` is told of so many more after some of them.
pub fn readings(
    questions: &[GoldQuestion],
    graph: &dyn Graph,
    linker: &dyn Linker,
    reader: &Read,
    see: impl FnMut(usize),
) -> Result<Vec<Readings>> {
    let one = |question: &GoldQuestion| -> Result<Readings> {
        let asked: Question = question.without_topics();
        let links = linker.link(&asked, graph)?;
        let mut found = Readings {
            shares: Vec::new(),
            right: None,
        };
        for (place, (reading, share)) in reader
            .shares(&asked, &links, graph)?
            .into_iter()
            .enumerate()
        {
            found.shares.push(share);
            if found.right.is_none()
                && reading.is_answer()
                && agreement(&reading, &question.answers, graph)? >= 1.0
            {
                found.right = Some(place);
            }
        }
        Ok(found)
    };
    each(questions, one, see)
}

impl Readings {
    /// s: 0 where the first is right, otherwise what its share lacks to 1.
    pub fn score(&self) -> Option<f32> {
        self.right.map(|place| match place {
            0 => 0.0,
            place => (1.0 - self.shares[place]).clamp(0.0, 1.0),
        })
    }
}

/// How a promise is kept over other questions.
pub fn kept(known: &Conformal, coverage: f64, over: &[Readings]) -> Result<CoverageCheck> {
    let threshold = known.threshold(coverage as f32)?;
    let covered = over
        .iter()
        .filter(|r| r.score().is_some_and(|s| s <= threshold));
    let size = |r: &Readings| {
        let others = r.shares.iter().skip(1);
        let others = others.filter(|share| **share >= 1.0 - threshold).count();
        others + usize::from(!r.shares.is_empty())
    };
    let n = over.len().max(1) as f64;
    Ok(CoverageCheck {
        coverage,
        covered: covered.count() as f64 / n,
        readings: over.iter().map(size).sum::<usize>() as f64 / n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_sets_by_hand() {
        let of = |shares: &[f32], right| Readings {
            shares: shares.to_vec(),
            right,
        };
        let over = [
            of(&[0.9, 0.1], Some(0)),
            of(&[0.5, 0.3, 0.2], Some(1)),
            of(&[0.6, 0.4], None),
            of(&[], None),
        ];
        let scores: Vec<Option<f32>> = over.iter().map(Readings::score).collect();
        assert_eq!(scores, [Some(0.0), Some(0.7), None, None]);
        // ⌈5 · 0.4⌉ = 2: the threshold is 0.7, and shares from 0.3 on are answered
        let known = Conformal::new(scores, false);
        let told = kept(&known, 0.4, &over).unwrap();
        assert_eq!((told.covered, told.readings), (0.5, 5.0 / 4.0));
        assert!(kept(&known, 0.5, &over).is_err());
    }
}
