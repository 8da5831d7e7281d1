//! How sure an answer is: a probability, computed from what speaks for it.
//!
//! ```text
//! p = 1 / (1 + exp(−(b + Σ w_s · x_s)))          the best answer; others keep their share of it
//! ```
//!
//! | signal | what it is |
//! |---|---|
//! | `confidence` | ln(c / (1 − c)) of what the method itself says of its best answer |
//! | `answers` | ln of how many answers there are |
//! | `score` | how well the reading fits the words of the question, from −3 to 12, where the graph does not say what things are ([`crate::read`]) |
//! | `matched` | 1 where no word of the question names the relation |
//! | `against` | how far words name another relation than the one that was followed then, at most 1 |
//! | `untyped` | 1 where the graph does not say what things are |
//! | `few` | how few relations such a graph has, from 0 (200 and more) to 1 |
//! | `matched_few` | the same, where no word of the question names the relation |
//! | `grouped` | 1 where such a graph's things were found by what their noun usually has; then the four before are 0 |
//! | `said` | 1 where a word stands for what is called otherwise, and the graph says what things are |
//!
//! Weights come from questions with answers (`wherefore calibrate`): the reader's are built in,
//! those of a checkpoint lie in its folder as `confidence.toml`. A signal that a calibration does
//! not name counts for nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::error::{Error, Result};

/// The file's name in a checkpoint.
pub const CONFIDENCE_FILE: &str = "confidence.toml";

/// The longest file that is read.
const MAX_BYTES: u64 = 64 << 10;
/// Confidences are no nearer to 0 and 1 than this.
const NEAREST: f32 = 1e-4;

/// Weights of signals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// b.
    pub bias: f32,
    /// w by the names of signals.
    pub weights: BTreeMap<String, f32>,
    /// Answers are refused below this where nobody wishes for a precision.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least: f32,
    /// Precisions, rising, each with the least confidence that answers need to come to it together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precision: Vec<[f32; 2]>,
}

fn is_zero(x: &f32) -> bool {
    *x == 0.0
}

static READER: LazyLock<Calibration> = LazyLock::new(|| {
    let read = toml::from_str(include_str!("read/confidence.toml"));
    read.expect("a test reads the file")
});

impl Calibration {
    /// That of the built-in reader.
    pub fn of_reader() -> &'static Self {
        &READER
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self> {
        let bad = |reason: String| Error::Config(format!("`{}`: {reason}", path.display()));
        let length = std::fs::metadata(path)
            .map_err(Error::io("read", path))?
            .len();
        if length > MAX_BYTES {
            return Err(bad(format!("{length} bytes are no calibration")));
        }
        let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
        let read: Self =
            toml::from_str(&text).map_err(|e| bad(crate::toml_fault::toml_fault(&text, &e)))?;
        let is_finite = [read.bias, read.least]
            .iter()
            .chain(read.weights.values())
            .chain(read.precision.iter().flatten())
            .all(|x| x.is_finite());
        is_finite
            .then_some(read)
            .ok_or_else(|| bad("a weight is no number".into()))
    }

    /// The file's text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a table of numbers is TOML")
    }

    /// p.
    pub fn probability(&self, signals: &BTreeMap<String, f32>) -> f32 {
        let of = |(name, weight): (&String, &f32)| signals.get(name).map_or(0.0, |x| weight * x);
        let logit = self.bias + self.weights.iter().map(of).sum::<f32>();
        wherefore_model::vector::sigmoid(logit)
    }

    /// The least confidence of an answer, by the precision that is wished for.
    pub(crate) fn least(&self, precision: Option<f32>) -> Result<f32> {
        match precision {
            None => Ok(self.least),
            Some(0.0) => Ok(0.0),
            Some(wished) => {
                let found = self.precision.iter().find(|[p, _]| *p >= wished);
                found.map(|[_, least]| *least).ok_or_else(|| {
                    let most = self.precision.last().map_or(0.0, |[p, _]| *p);
                    Error::NoSuchPrecision { wished, most }
                })
            }
        }
    }

    pub(crate) fn apply(&self, answer: &mut Answer) {
        let Some(best) = best(answer).filter(|best| *best > 0.0) else {
            return;
        };
        let sure = self.probability(&answer.signals);
        for one in &mut answer.answers {
            one.confidence = (one.confidence / best * sure).clamp(0.0, 1.0);
        }
    }
}

/// What the method says of its best answer.
pub(crate) fn best(answer: &Answer) -> Option<f32> {
    let given = answer.answers.iter().map(|a| a.confidence);
    given.reduce(f32::max)
}

/// ln(p / (1 − p)), finite also for 0 and 1.
pub(crate) fn odds(p: f32) -> f32 {
    let p = p.clamp(NEAREST, 1.0 - NEAREST);
    (p / (1.0 - p)).ln()
}

/// The signals of an answer: what every method has, and what this one adds.
pub(crate) fn signals(answer: &Answer, own: &[(&'static str, f32)]) -> BTreeMap<String, f32> {
    let Some(best) = best(answer) else {
        return BTreeMap::new();
    };
    let all = [
        ("confidence", odds(best)),
        ("answers", (answer.answers.len() as f32).ln()),
    ];
    let all = all.iter().chain(own);
    all.map(|(name, x)| ((*name).to_owned(), *x)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::AnswerEntity;

    #[test]
    fn the_best_has_the_probability_and_others_their_share() {
        let mut answer = Answer::default();
        assert!(signals(&answer, &[("matched", 1.0)]).is_empty());
        for confidence in [0.8, 0.4] {
            answer.answers.push(AnswerEntity {
                confidence,
                ..AnswerEntity::default()
            });
        }
        answer.signals = signals(&answer, &[("matched", 1.0)]);
        // ln 4, ln 2 and 1
        let weights = [("confidence", 1.0), ("answers", -2.0), ("unknown", 9.0)];
        let calibration = Calibration {
            bias: 0.5,
            weights: weights.map(|(name, w)| (name.to_owned(), w)).into(),
            least: 0.25,
            precision: vec![[0.5, 0.1], [0.9, 0.6]],
        };
        assert_eq!(calibration.least(None).unwrap(), 0.25);
        assert_eq!(calibration.least(Some(0.0)).unwrap(), 0.0);
        assert_eq!(calibration.least(Some(0.51)).unwrap(), 0.6);
        assert_eq!(calibration.least(Some(0.9)).unwrap(), 0.6);
        let told = calibration.least(Some(0.95)).unwrap_err().to_string();
        assert!(told.contains("0.9"), "{told}");
        calibration.apply(&mut answer);
        // 0.5 + 1.386294 − 1.386294, and e^0.5 / (1 + e^0.5)
        assert!((answer.answers[0].confidence - 0.622_459).abs() < 1e-5);
        assert!((answer.answers[1].confidence - 0.311_230).abs() < 1e-5);
        Calibration::of_reader().apply(&mut Answer::default());
    }

    #[test]
    fn files_are_read_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONFIDENCE_FILE);
        std::fs::write(&path, Calibration::of_reader().to_toml()).unwrap();
        assert_eq!(&Calibration::load(&path).unwrap(), Calibration::of_reader());
        for bad in [
            "",
            "bias = 1",
            "bias = nan\nweights = {}",
            "bias = 0\nweights = {}\nx = 1",
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(Calibration::load(&path).is_err(), "{bad}");
        }
        std::fs::write(&path, vec![b'#'; 1 << 17]).unwrap();
        let told = Calibration::load(&path).unwrap_err().to_string();
        assert!(told.contains("no calibration"), "{told}");
    }
}
