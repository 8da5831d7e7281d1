//! Checks answers against the graph: at once when they are given, and again at any later time.
//!
//! [`settle`] turns a reasoner's conclusion into an [`Answer`] (`settle.rs`). [`verify`] looks a saved
//! answer up again, and believes nothing that it says of itself:
//!
//! ```text
//! evidence     every triple is in the graph, under the names that are shown       triples.rs
//! links        every name belongs to the identity beside it                       names.rs
//! answers      likewise; the rationale joins each to a topic, or what was         computed.rs
//!              computed is computed again and comes to the same
//! form         runs; `sparql` and `reading` are what it is in SPARQL and in words  computed.rs
//! text         sentences that the evidence does not bear out are marked as such    prose.rs
//! ```
//!
//! [`verify_saved`] also checks the seal of a file: its digest, so that no field can be changed
//! unseen, and its signature, so that nobody else can have written it (`seal.rs`, `signature.rs`).
//! Neither tells that an answer is the right one for its question: only that it is what was given,
//! and that the graph states what it rests on.

mod check;
pub(crate) mod computed;
pub(crate) mod names;
mod prose;
mod seal;
mod settle;
mod signature;
mod triples;

use serde::{Deserialize, Serialize};
use wherefore_graph::{Graph, Triple};

use self::computed::{Recomputed, recomputed};
use self::names::Names;
use self::triples::look_up;
use crate::answer::{Answer, AnswerEntity, Evidence, Status};
use crate::error::Result;
use crate::rationale::{Step, leads};

pub use check::{Check, CheckOutcome, Subject};
pub use seal::{Saved, seal};
pub use settle::{Rules, Ungrounded, evidence, link_reports, settle};
pub use signature::{PublicKey, SigningKey};
pub use triples::EvidenceState;

/// Other answers that one can have.
const MOST_OTHERS: usize = 16;

/// What became of a saved answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether all that the answer shows holds. An answer that abstained gives none, and can hold.
    pub holds: bool,
    /// One for each answer.
    pub answers: Vec<AnswerCheck>,
    /// One for each triple of the evidence.
    pub evidence: Vec<EvidenceState>,
    /// What was checked beside each answer.
    pub checks: Vec<Check>,
}

/// What became of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerCheck {
    /// Its name, as saved.
    pub name: String,
    /// Whether the graph still proves it: its rationale is found and joins it to a link, or it is
    /// computed again, and it is still called so.
    pub holds: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Looks an answer up in the graph again, by the identities in it; what it says of itself
/// (`verified`, labels, `computed`) is not believed.
///
/// ```
/// use wherefore::{Pipeline, PipelineConfig, Question, graph::toy, verify::verify};
/// let graph = toy::graph();
/// let question = Question::new("Who is the mascot of the San Francisco Giants?");
/// let answer = PipelineConfig::default().build()?.answer(&question, &graph, &mut ())?;
/// assert!(verify(&answer, &graph)?.holds);
/// # Ok::<(), wherefore::Error>(())
/// ```
pub fn verify(answer: &Answer, graph: &dyn Graph) -> Result<Verification> {
    let mut checks = vec![status(answer)];
    let mut evidence = Vec::with_capacity(answer.evidence.len());
    let mut triples = Vec::with_capacity(answer.evidence.len());
    for saved in &answer.evidence {
        let (state, triple) = look_up(saved, graph)?;
        evidence.push(state);
        triples.push(triple.filter(|_| state == EvidenceState::Found));
    }
    let found = answer.evidence.iter().zip(&triples);
    let found = found.filter_map(|(saved, triple)| triple.map(|_| saved));
    let names = Names::new(graph, found.collect());
    checks.push(all_found(answer, &evidence));
    checks.push(links(answer, &names)?);
    checks.extend(trace(answer));
    checks.extend(text(answer));
    checks.extend(others(answer, graph)?);
    let proof = Proof {
        answer,
        topics: answer.links.iter().map(|l| l.id.as_str()).collect(),
        steps: steps(answer, &triples),
        triples,
        names,
        recomputed: recomputed(answer, graph, &mut checks)?,
    };
    let mut answers = Vec::with_capacity(answer.answers.len());
    for saved in &answer.answers {
        let reason = proof.objection(saved)?;
        answers.push(AnswerCheck {
            name: saved.name.clone(),
            holds: reason.is_none(),
            reason,
        });
    }
    Ok(Verification {
        holds: answers.iter().all(|a| a.holds) && checks.iter().all(Check::holds),
        answers,
        evidence,
        checks,
    })
}

/// Verifies an answer that was saved: as [`verify`] does, and by its seal. With a key, an answer
/// that the key did not sign does not hold.
pub fn verify_saved(
    saved: &Saved,
    graph: &dyn Graph,
    key: Option<&PublicKey>,
) -> Result<Verification> {
    let mut verification = verify(&saved.answer, graph)?;
    let checks = seal::check(saved, graph, key);
    verification.holds &= checks.iter().all(Check::holds);
    verification.checks.extend(checks);
    Ok(verification)
}

/// Who abstains gives no answer, and who answers gives one.
fn status(answer: &Answer) -> Check {
    match (answer.status, answer.answers.len()) {
        (Status::Answered, 0) => Check::failed(Subject::Status, "it has no answers"),
        (Status::Answered, _) => Check::passed(Subject::Status, "it has answers"),
        (Status::Abstained, 0) => Check::passed(Subject::Status, "it abstained, and gives none"),
        (Status::Abstained, _) => Check::failed(
            Subject::Status,
            "it says that it abstained, and has answers",
        ),
    }
}

/// Each of the other answers has to hold by itself.
fn others(answer: &Answer, graph: &dyn Graph) -> Result<Option<Check>> {
    if answer.others.is_empty() {
        return Ok(None);
    }
    let failed = |detail: &str| Ok(Some(Check::failed(Subject::Others, detail)));
    if answer.others.len() > MOST_OTHERS {
        return failed("there are more of them than are ever given");
    }
    for other in &answer.others {
        if !other.others.is_empty() || other.question != answer.question {
            return failed("one of them is no answer to this question");
        }
        if other.status == Status::Abstained || !verify(other, graph)?.holds {
            return failed("one of them does not hold");
        }
    }
    Ok(Some(Check::passed(Subject::Others, "each of them holds")))
}

/// Sentences that the evidence does not bear out are named. Whether the evidence is as it says is
/// checked by itself.
fn text(answer: &Answer) -> Option<Check> {
    answer.text.as_ref()?;
    let unproved = prose::unproved(answer);
    Some(match (unproved == answer.unproved, unproved.len()) {
        (true, 0) => Check::passed(Subject::Text, "the evidence bears out each sentence"),
        (true, some) => {
            let detail = format!("{some} of its sentences are marked as unproved");
            Check::passed(Subject::Text, &detail)
        }
        (false, _) => {
            let detail =
                "it has sentences that the evidence does not bear out, and does not say so";
            Check::failed(Subject::Text, detail)
        }
    })
}

/// The evidence is shown as verified, whether a rationale needs it or not.
fn all_found(answer: &Answer, states: &[EvidenceState]) -> Check {
    let is_as_said = |(saved, state): &(&Evidence, &EvidenceState)| match saved.verified {
        true => **state == EvidenceState::Found,
        false => **state == EvidenceState::Gone,
    };
    let saved = answer.evidence.iter().zip(states);
    let wrong = saved.filter(|pair| !is_as_said(pair)).count();
    let all = states.len();
    match wrong {
        0 => {
            let detail = format!("{all} triples, all as the file says");
            Check::passed(Subject::Evidence, &detail)
        }
        _ => {
            let detail = format!("{wrong} of {all} triples are not as the file says");
            Check::failed(Subject::Evidence, &detail)
        }
    }
}

fn links(answer: &Answer, names: &Names<'_>) -> Result<Check> {
    for link in &answer.links {
        if let Some(reason) = names.objection(&link.id, &link.name)? {
            let detail = format!("`{}`: {reason}", link.name);
            return Ok(Check::failed(Subject::Links, &detail));
        }
    }
    let detail = format!("{} names, all the graph's own", answer.links.len());
    Ok(Check::passed(Subject::Links, &detail))
}

fn trace(answer: &Answer) -> Option<Check> {
    let all = answer.evidence.len();
    let mut used = answer.trace.iter().flat_map(|t| &t.steps);
    let astray = used.find_map(|step| step.evidence.iter().find(|i| **i >= all));
    Some(match (&answer.trace, astray) {
        (None, _) => return None,
        (_, Some(i)) => {
            let detail = format!("a step names triple {i}, and there are {all}");
            Check::failed(Subject::Trace, &detail)
        }
        (_, None) => Check::passed(Subject::Trace, "every step names triples that are there"),
    })
}

fn steps<'a>(answer: &'a Answer, triples: &[Option<Triple>]) -> Vec<Step<&'a str>> {
    let evidence = answer.evidence.iter().zip(triples);
    evidence
        .map(|(saved, found)| {
            let [head, _, tail] = &saved.ids;
            found.map(|_| (head.as_str(), tail.as_str(), saved.score))
        })
        .collect()
}

/// What the answers of a file rest on.
struct Proof<'a> {
    answer: &'a Answer,
    topics: Vec<&'a str>,
    names: Names<'a>,
    /// The triples of the evidence that the graph states.
    triples: Vec<Option<Triple>>,
    /// The same by identities.
    steps: Vec<Step<&'a str>>,
    /// What the file's form gives, or why it gives nothing.
    recomputed: Option<Result<Recomputed, String>>,
}

impl Proof<'_> {
    /// Why an answer does not hold.
    fn objection(&self, saved: &AnswerEntity) -> Result<Option<String>> {
        if saved.ungrounded {
            return Ok(Some("it says itself that nothing proves it".into()));
        }
        if let Some(reason) = self.untrue(saved) {
            return Ok(Some(reason));
        }
        let reason = match &self.recomputed {
            Some(Err(reason)) => Some(reason.clone()),
            Some(Ok(given)) => self.not_given(saved, given),
            None if saved.computed => {
                let reason = "it is marked as computed, and the file does not say how";
                Some(reason.to_owned())
            }
            None => self.not_joined(saved),
        };
        if reason.is_some() || saved.computed {
            return Ok(reason);
        }
        self.names.objection(&saved.id, &saved.name)
    }

    /// Which of its triples the graph does not state.
    fn untrue(&self, saved: &AnswerEntity) -> Option<String> {
        let used = || saved.rationale.iter();
        let count = self.triples.len();
        if let Some(i) = used().find(|i| **i >= count) {
            return Some(format!(
                "its rationale names triple {i}, and there are {count}"
            ));
        }
        let gone = used().filter(|i| self.triples[**i].is_none()).count();
        (gone > 0).then(|| {
            let all = used().count();
            format!("{gone} of the {all} triples in its rationale no longer stand so in the graph")
        })
    }

    /// Why it is not what the form gives.
    fn not_given(&self, saved: &AnswerEntity, given: &Recomputed) -> Option<String> {
        if let Some((name, id)) = &given.value {
            if !(saved.computed && saved.id == *id && saved.name == *name) {
                return Some(format!("the logical form gives {name}"));
            }
            // nothing proves that there is nothing
            let proved = matches!(name.as_str(), "0" | "no") || !saved.rationale.is_empty();
            return (!proved).then(|| "it has no rationale".to_owned());
        }
        if saved.computed {
            return Some("it is marked as computed, and the logical form gives entities".into());
        }
        let Some(label) = given.entities.get(&saved.id) else {
            return Some("the logical form does not give it".into());
        };
        if *label != saved.name {
            return Some(format!("the graph calls it `{label}`"));
        }
        // the form proves it, and the rationale shows the triples that made it match
        let touches = |i: &usize| {
            let [head, _, tail] = &self.answer.evidence[*i].ids;
            *head == saved.id || *tail == saved.id
        };
        match saved.rationale.as_slice() {
            [] => Some("it has no rationale".into()),
            rationale if !rationale.iter().any(touches) => {
                Some("its rationale does not speak of it".into())
            }
            _ => None,
        }
    }

    /// Why its triples do not lead from a topic to it.
    fn not_joined(&self, saved: &AnswerEntity) -> Option<String> {
        if saved.rationale.is_empty() {
            return Some("it has no rationale".into());
        }
        let joined = leads(
            &saved.rationale,
            &self.topics,
            saved.id.as_str(),
            &self.steps,
        );
        (!joined).then(|| "its rationale does not join it to a topic".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, toy};

    use super::*;
    use crate::config::PipelineConfig;
    use crate::question::Question;

    fn asked(text: &str) -> Answer {
        PipelineConfig::default()
            .build()
            .unwrap()
            .answer(&Question::new(text), &toy::graph(), &mut ())
            .unwrap()
    }

    const BORN: &str = "Where was the coach of the San Francisco Giants born?";

    #[test]
    fn a_saved_answer_holds_as_long_as_its_triples_do() {
        let json = serde_json::to_string(&asked(BORN)).unwrap();
        let answer: Answer = serde_json::from_str(&json).unwrap();
        let verification = verify(&answer, &toy::graph()).unwrap();
        assert!(verification.holds, "{verification:?}");

        let without = MemoryGraph::from_names(toy::FACTS.into_iter().filter(|f| f.1 != "born_in"));
        let verification = verify(&answer, &without).unwrap();
        assert!(!verification.holds);
        assert!(verification.evidence.contains(&EvidenceState::Gone));
        assert_eq!(
            verification.answers[0].reason.as_deref(),
            Some("1 of the 2 triples in its rationale no longer stand so in the graph")
        );
    }

    #[test]
    fn tampering_is_noticed() {
        let graph = toy::graph();
        let similarity = PipelineConfig::of(crate::Method::Similarity);
        let question = Question::new("Who is the mascot of the San Francisco Giants?");
        let mut answer = (similarity.build().unwrap())
            .answer(&question, &graph, &mut ())
            .unwrap();
        assert!(verify(&answer, &graph).unwrap().holds);
        // proved by its paths alone
        answer.logical_form = None;
        answer.reading = None;
        answer.sparql = None;
        assert!(verify(&answer, &graph).unwrap().holds);
        let reason = |tamper: fn(&mut Answer)| {
            let mut answer = answer.clone();
            tamper(&mut answer);
            let verification = verify(&answer, &graph).unwrap();
            assert!(!verification.holds);
            verification.answers[0].reason.clone().unwrap()
        };
        let mut emptied = answer.clone();
        emptied.answers.clear();
        assert!(!verify(&emptied, &graph).unwrap().holds);
        assert_eq!(
            reason(|a| a.answers[0].name = "Paris".into()),
            "the graph calls it `Lou Seal`"
        );
        assert_eq!(
            reason(|a| a.answers[0].id = "France".into()),
            "its rationale does not join it to a topic"
        );
        assert_eq!(
            reason(|a| a.answers[0].rationale.clear()),
            "it has no rationale"
        );
        assert!(reason(|a| a.answers[0].rationale = vec![usize::MAX]).contains("names triple"));
        assert!(reason(|a| a.links.clear()).contains("does not join"));
        assert!(
            reason(|a| {
                for e in &mut a.evidence {
                    e.tail = "Paris".into();
                }
            })
            .contains("no longer stand so")
        );
    }
}
