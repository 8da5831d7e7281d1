//! How many readings of a question have to be answered so that the right one is among them as often
//! as was promised: split conformal prediction, over questions of the graph itself.
//!
//! ```text
//! s_q = 1 − share of the right reading of question q;  0 where it is the first, ∞ where it is none
//! q̂   = the ⌈(n + 1) · coverage⌉-th smallest of the n scores
//! set = the first reading, and all whose share is at least 1 − q̂
//! ```
//!
//! The promise holds on average over questions that are like those it was made with, whatever the
//! shares are worth (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005).
//! File `index/conformal.json` in the graph's folder.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::{FOLDER, write_aside};

const FILE: &str = "conformal.json";
/// The longest file that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Readings of a question that are answered at most.
pub const MOST_READINGS: usize = 10;

/// What was seen over questions of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conformal {
    /// Whether the questions were drafted from the graph.
    pub drafted: bool,
    /// Questions none of whose readings is right.
    pub missed: usize,
    /// The scores of the others, smallest first.
    pub scores: Vec<f32>,
}

impl Conformal {
    /// Takes the scores of questions; none for those without a right reading.
    pub fn new(scores: impl IntoIterator<Item = Option<f32>>, drafted: bool) -> Self {
        let (mut known, mut missed) = (Vec::new(), 0);
        for score in scores {
            match score {
                Some(score) => known.push(score),
                None => missed += 1,
            }
        }
        known.sort_by(f32::total_cmp);
        Self {
            drafted,
            missed,
            scores: known,
        }
    }

    /// Questions it was made with.
    pub fn questions(&self) -> usize {
        self.scores.len() + self.missed
    }

    /// The highest coverage that can be promised.
    pub fn most(&self) -> f32 {
        self.scores.len() as f32 / (self.questions() + 1) as f32
    }

    /// q̂.
    pub fn threshold(&self, coverage: f32) -> Result<f32> {
        let place = ((self.questions() + 1) as f64 * f64::from(coverage) - 1e-6).ceil() as usize;
        let found = self.scores.get(place.max(1) - 1).copied();
        found.ok_or_else(|| Error::NoSuchCoverage {
            wished: coverage,
            // rounded down: what is told can be asked for
            most: (self.most() * 100.0).floor() / 100.0,
            questions: self.questions(),
        })
    }

    /// What is known of a graph; none where nothing was kept.
    pub fn load(graph: &Path) -> Result<Option<Self>> {
        let path = graph.join(FOLDER).join(FILE);
        let bad = |reason: String| {
            Error::Config(format!(
                "`{}`: {reason}; make it again with `wherefore conformal`",
                path.display()
            ))
        };
        let length = match std::fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        if length > MAX_BYTES {
            return Err(bad(format!("{length} bytes are too many")));
        }
        let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let read: Self = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        let rises = read.scores.is_sorted() && read.scores.iter().all(|s| (0.0..=1.0).contains(s));
        let known = rises.then_some(read);
        known
            .map(Some)
            .ok_or_else(|| bad("scores are damaged".into()))
    }

    /// Keeps it in a graph's folder.
    pub fn save(&self, graph: &Path) -> Result<()> {
        let folder = graph.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(Error::io("write", &folder))?;
        let text = serde_json::to_vec(self).expect("numbers are JSON");
        write_aside(&folder.join(FILE), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // nine questions: six at once, one each at 0.3 and 0.8, one never
        let mut scores = vec![Some(0.0); 6];
        scores.extend([Some(0.8), None, Some(0.3)]);
        let known = Conformal::new(scores, false);
        assert_eq!((known.questions(), known.missed), (9, 1));
        // ⌈10 · 0.6⌉ = 6, ⌈10 · 0.61⌉ = 7, ⌈10 · 0.75⌉ = 8, ⌈10 · 0.81⌉ = 9, which is the missed one
        for (coverage, wanted) in [(0.0, 0.0), (0.6, 0.0), (0.61, 0.3), (0.75, 0.8), (0.8, 0.8)] {
            assert_eq!(known.threshold(coverage).unwrap(), wanted, "{coverage}");
        }
        let told = known.threshold(0.81).unwrap_err().to_string();
        assert!(told.contains("0.8"), "{told}");
        assert!(Conformal::default().threshold(0.5).is_err());
    }

    #[test]
    fn the_promise_holds_over_draws() {
        // scores from a fixed sequence: coverage over the rest is what was promised, to a few points
        let draw = |i: usize| {
            let x = (i as f64 * 0.618_033_988_749_895).fract() as f32;
            (x < 0.95).then_some(x * x)
        };
        for coverage in [0.5f32, 0.8, 0.9] {
            let known = Conformal::new((0..500).map(draw), true);
            let threshold = known.threshold(coverage).unwrap();
            let kept = (500..5000).filter_map(draw).filter(|s| *s <= threshold);
            let share = kept.count() as f32 / 4500.0;
            assert!((share - coverage).abs() < 0.01, "{coverage}: {share}");
        }
    }

    #[test]
    fn files_are_read_and_what_is_none_is_refused() {
        let graph = tempfile::tempdir().unwrap();
        assert_eq!(Conformal::load(graph.path()).unwrap(), None);
        let known = Conformal::new([Some(0.25), None, Some(0.0)], true);
        known.save(graph.path()).unwrap();
        assert_eq!(Conformal::load(graph.path()).unwrap(), Some(known));
        let path = graph.path().join(FOLDER).join(FILE);
        for bad in [
            "",
            "{}",
            r#"{"drafted":true,"missed":0,"scores":[0.5,0.25]}"#,
            r#"{"drafted":true,"missed":0,"scores":[2]}"#,
        ] {
            std::fs::write(&path, bad).unwrap();
            let told = Conformal::load(graph.path()).unwrap_err().to_string();
            assert!(told.contains("wherefore conformal"), "{bad}: {told}");
        }
    }
}
