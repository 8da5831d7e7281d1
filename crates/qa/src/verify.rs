//! Checks answers against the graph: at once when they are given, and again at any later time.
//!
//! [`settle`] turns a reasoner's conclusion into an [`Answer`]: every triple of the evidence is
//! looked up again in the graph, and an answer that no verified triples join to a topic is
//! ungrounded, and withheld unless [`Ungrounded`] says otherwise. [`verify`] does the same for an answer that was saved, by the identities in it.

use serde::{Deserialize, Serialize};
use wherefore_graph::{Edge, EntityId, Graph, NameMatch, RelationId};

use crate::answer::{Answer, AnswerEntity, Evidence, LinkReport, Status, Withheld};
use crate::error::Result;
use crate::link::Link;
use crate::logic::{Form, Moment, Plan, RunLimits, run};
use crate::question::Question;
use crate::rationale::{Step, leads, rationales};
use crate::reason::Conclusion;
use crate::select::Selection;

/// What becomes of answers that nothing in the evidence proves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ungrounded {
    /// They are held back.
    #[default]
    Withhold,
    /// They are given, and marked.
    Mark,
}

/// The rules by which a conclusion becomes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What becomes of answers that nothing proves.
    pub ungrounded: Ungrounded,
    /// Triples that are handed out beside those of the rationales, where the reasoner knows what
    /// it drew each answer from; without that all it saw are handed out.
    pub max_evidence: usize,
}

impl Rules {
    /// Triples that are handed out beside those of the rationales unless more are asked for.
    pub const MAX_EVIDENCE: usize = 100;
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            ungrounded: Ungrounded::default(),
            max_evidence: Self::MAX_EVIDENCE,
        }
    }
}

/// The answer that the graph confirms.
///
/// The path that the reasoner followed is the rationale if the graph confirms it; otherwise the
/// shortest one inside the verified evidence is.
pub fn settle(
    question: &Question,
    links: &[Link],
    selection: &Selection,
    mut conclusion: Conclusion,
    rules: Rules,
    graph: &dyn Graph,
) -> Result<Answer> {
    let ungrounded = rules.ungrounded;
    let shorter = shortened(selection, &mut conclusion, rules.max_evidence);
    let selection = shorter.as_ref().unwrap_or(selection);
    let evidence = evidence(selection, graph)?;
    let steps: Vec<Step<EntityId>> = selection
        .triples
        .iter()
        .zip(&evidence)
        .map(|(&(t, score), e)| e.verified.then_some((t.head, t.tail, score)))
        .collect();
    let shortest = rationales(selection.topics.iter().copied(), &steps);
    let concluded =
        conclusion.answers.len() + conclusion.unmatched.len() + conclusion.computed.len();
    let by_form = conclusion.form.is_some();
    let verified = |path: &[usize]| {
        path.iter()
            .all(|&i| steps.get(i).is_some_and(Option::is_some))
    };
    let mut answers = Vec::with_capacity(concluded);
    let mut withheld = Vec::new();
    let mut without_proof = |answer: AnswerEntity, reason: &str, answers: &mut Vec<_>| {
        if ungrounded == Ungrounded::Mark {
            answers.push(AnswerEntity {
                ungrounded: true,
                ..answer
            });
        } else {
            withheld.push(Withheld {
                name: answer.name,
                reason: reason.to_owned(),
            });
        }
    };
    for candidate in conclusion.answers {
        // what a form matches is proved by the triples that made it match
        let proved = by_form && !candidate.path.is_empty() && verified(&candidate.path);
        let rationale = if proved {
            candidate.path
        } else if by_form {
            Vec::new()
        } else if leads(&candidate.path, &selection.topics, candidate.entity, &steps) {
            candidate.path
        } else {
            shortest.get(&candidate.entity).cloned().unwrap_or_default()
        };
        let answer = AnswerEntity {
            name: graph.entity_label(candidate.entity)?.into_owned(),
            id: graph.entity_term(candidate.entity)?.to_string(),
            confidence: candidate.confidence,
            rationale,
            measured: candidate.measured,
            ..AnswerEntity::default()
        };
        let is_topic = selection.topics.contains(&candidate.entity);
        let measured = is_topic && is_proved(&answer.measured, &evidence);
        if answer.rationale.is_empty() && !measured {
            let reason = if is_topic {
                "the question itself names it"
            } else {
                "no verified triples join it to a topic"
            };
            without_proof(answer, reason, &mut answers);
        } else {
            answers.push(answer);
        }
    }
    for computed in conclusion.computed {
        // that there are none is proved by nothing but a form that was run
        let proved = verified(&computed.path) && (by_form || !computed.path.is_empty());
        let answer = AnswerEntity {
            name: computed.name,
            id: computed.id,
            confidence: computed.confidence,
            computed: true,
            rationale: computed.path,
            ..AnswerEntity::default()
        };
        if proved {
            answers.push(answer);
        } else {
            without_proof(answer, "no verified triples can be counted", &mut answers);
        }
    }
    for name in conclusion.unmatched {
        let answer = AnswerEntity {
            name,
            ..AnswerEntity::default()
        };
        without_proof(answer, "the evidence does not name it", &mut answers);
    }
    let answered = !answers.is_empty();
    let reason = match (answered, concluded) {
        (true, _) => None,
        (false, 0) => Some(
            conclusion
                .reason
                .unwrap_or_else(|| "the evidence gives no answer".into()),
        ),
        (false, _) => Some(
            conclusion
                .reason
                .unwrap_or_else(|| "the graph does not confirm the evidence of any answer".into()),
        ),
    };
    let mut links = link_reports(links, graph)?;
    for &topic in &selection.topics {
        // a kind of thing can be a topic that no words were linked to
        let id = graph.entity_term(topic)?.to_string();
        if answered && links.iter().all(|link| link.id != id) {
            let name = graph.entity_label(topic)?.into_owned();
            links.push(LinkReport {
                mention: name.clone(),
                name,
                id,
                score: 1.0,
            });
        }
    }
    Ok(Answer {
        question: question.text.clone(),
        status: if answered {
            Status::Answered
        } else {
            Status::Abstained
        },
        reason,
        answers,
        // prose may speak of answers that were withheld
        text: conclusion.text.filter(|_| answered),
        evidence,
        links,
        llm: conclusion.llm,
        withheld,
        notes: conclusion.notes,
        trace: conclusion.trace,
        logical_form: conclusion.form.as_ref().map(|f| f.form.clone()),
        reading: conclusion.form.as_ref().map(|f| f.english.clone()),
        table: (conclusion.form.as_ref()).and_then(|f| f.table.clone()),
        sparql: conclusion.form.map(|f| f.sparql),
        written_forms: conclusion.written_forms,
        retrieved: conclusion.retrieved,
        ..Answer::default()
    })
}

/// Whether there are triples, and all of them were found.
fn is_proved(triples: &[usize], evidence: &[Evidence]) -> bool {
    let found = |&i: &usize| evidence.get(i).is_some_and(|e| e.verified);
    !triples.is_empty() && triples.iter().all(found)
}

/// Everything in a conclusion that points into its selection.
fn pointers(conclusion: &mut Conclusion) -> impl Iterator<Item = &mut usize> {
    let answers = conclusion.answers.iter_mut();
    let paths = answers.flat_map(|a| a.path.iter_mut().chain(&mut a.measured));
    let computed = conclusion.computed.iter_mut();
    paths.chain(computed.flat_map(|c| c.path.iter_mut()))
}

/// The best `most` triples and those of the paths; none where all stay. Paths point into it then.
fn shortened(selection: &Selection, conclusion: &mut Conclusion, most: usize) -> Option<Selection> {
    let count = selection.triples.len();
    let known = |path: &[usize]| !path.is_empty() && path.iter().all(|i| *i < count);
    let all_known = conclusion.answers.iter().all(|a| known(&a.path));
    if count <= most || !all_known || conclusion.trace.is_some() {
        return None;
    }
    let mut kept: Vec<bool> = (0..count).map(|i| i < most).collect();
    for i in pointers(conclusion) {
        kept.get_mut(*i).into_iter().for_each(|k| *k = true);
    }
    let mut place = Vec::with_capacity(count);
    let mut triples = Vec::new();
    for (triple, kept) in selection.triples.iter().zip(kept) {
        place.push(triples.len());
        if kept {
            triples.push(*triple);
        }
    }
    for i in pointers(conclusion) {
        *i = place.get(*i).copied().unwrap_or(usize::MAX);
    }
    Some(Selection {
        triples,
        topics: selection.topics.clone(),
        ..Selection::default()
    })
}

/// The selected triples by their names, each looked up in the graph again.
pub fn evidence(selection: &Selection, graph: &dyn Graph) -> Result<Vec<Evidence>> {
    let mut evidence = Vec::with_capacity(selection.triples.len());
    for &(triple, score) in &selection.triples {
        evidence.push(Evidence {
            head: graph.entity_label(triple.head)?.into_owned(),
            relation: graph.relation_label(triple.relation)?.into_owned(),
            tail: graph.entity_label(triple.tail)?.into_owned(),
            ids: [
                graph.entity_term(triple.head)?.to_string(),
                graph.relation_term(triple.relation)?.to_string(),
                graph.entity_term(triple.tail)?.to_string(),
            ],
            score,
            verified: graph.contains(triple)?,
        });
    }
    Ok(evidence)
}

/// The links by their names.
pub fn link_reports(links: &[Link], graph: &dyn Graph) -> Result<Vec<LinkReport>> {
    let mut reports = Vec::with_capacity(links.len());
    for link in links {
        reports.push(LinkReport {
            mention: link.mention.clone(),
            name: graph.entity_label(link.entity)?.into_owned(),
            id: graph.entity_term(link.entity)?.to_string(),
            score: link.score,
        });
    }
    Ok(reports)
}

/// What became of one triple of a saved answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceState {
    /// The graph states it.
    Found,
    /// The graph states it, but head, relation or tail are called otherwise.
    Renamed,
    /// The graph does not state it.
    Gone,
}

/// What became of a saved answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether all answers hold. An answer that abstained claims nothing, and holds.
    pub holds: bool,
    /// One for each answer.
    pub answers: Vec<AnswerCheck>,
    /// One for each triple of the evidence.
    pub evidence: Vec<EvidenceState>,
}

/// What became of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerCheck {
    /// Its name, as saved.
    pub name: String,
    /// Whether the graph still proves it: its rationale is found and joins it to a link, and
    /// it is still called so.
    pub holds: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Looks a saved answer up in the graph again, by the identities in it; what it says of itself
/// (`verified`, labels) is not believed.
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
    let mut evidence = Vec::with_capacity(answer.evidence.len());
    for saved in &answer.evidence {
        evidence.push(look_up(saved, graph)?);
    }
    let steps: Vec<Step<&str>> = answer
        .evidence
        .iter()
        .zip(&evidence)
        .map(|(saved, state)| {
            let [head, _, tail] = &saved.ids;
            (*state == EvidenceState::Found).then_some((head.as_str(), tail.as_str(), saved.score))
        })
        .collect();
    let topics: Vec<&str> = answer.links.iter().map(|l| l.id.as_str()).collect();
    if let Some(form) = &answer.logical_form {
        return by_running(form, answer, evidence, graph);
    }
    let mut answers = Vec::with_capacity(answer.answers.len());
    for saved in &answer.answers {
        let reason = objection(saved, answer, &topics, &evidence, &steps);
        answers.push(AnswerCheck {
            name: saved.name.clone(),
            holds: reason.is_none(),
            reason,
        });
    }
    let claims_nothing = answer.status == Status::Abstained;
    Ok(Verification {
        holds: answers.iter().all(|a| a.holds) && (claims_nothing || !answers.is_empty()),
        answers,
        evidence,
    })
}

/// Runs the saved form again: an answer holds if the form still gives it, and its triples still
/// stand so.
fn by_running(
    form: &str,
    answer: &Answer,
    evidence: Vec<EvidenceState>,
    graph: &dyn Graph,
) -> Result<Verification> {
    let form: Form = form.parse()?;
    let plan = Plan::new(&form, graph, Moment::now())?;
    let outcome = match plan.missing() {
        [] => Some(run(&plan, graph, &RunLimits::default())?),
        _ => None,
    };
    let mut given = match &outcome {
        Some(outcome) => outcome.claims(graph)?,
        None => Vec::new(),
    };
    given.sort_unstable();
    let mut answers = Vec::with_capacity(answer.answers.len());
    for saved in &answer.answers {
        let stands = |&i: &usize| evidence.get(i) == Some(&EvidenceState::Found);
        let reason = if outcome.is_none() {
            Some(format!("the graph has no {}", plan.missing().join(", no ")))
        } else if given.binary_search(&saved.id).is_err() {
            Some("the logical form does not give it".to_owned())
        } else if !saved.rationale.iter().all(stands) {
            Some("triples in its rationale no longer stand so in the graph".to_owned())
        } else {
            None
        };
        answers.push(AnswerCheck {
            name: saved.name.clone(),
            holds: reason.is_none(),
            reason,
        });
    }
    let claims_nothing = answer.status == Status::Abstained;
    Ok(Verification {
        holds: answers.iter().all(|a| a.holds) && (claims_nothing || !answers.is_empty()),
        answers,
        evidence,
    })
}

/// A count as a literal.
pub(crate) fn count_id(number: usize) -> String {
    format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>")
}

fn objection(
    saved: &AnswerEntity,
    answer: &Answer,
    topics: &[&str],
    evidence: &[EvidenceState],
    steps: &[Step<&str>],
) -> Option<String> {
    let is_topic = topics.contains(&saved.id.as_str());
    let chosen = is_topic && !saved.measured.is_empty();
    if saved.rationale.is_empty() && !chosen {
        return Some("it has no rationale".into());
    }
    let mut gone = 0;
    for &i in saved.rationale.iter().chain(&saved.measured) {
        match evidence.get(i) {
            None => {
                return Some(format!(
                    "its rationale names triple {i}, and there are {}",
                    evidence.len()
                ));
            }
            Some(EvidenceState::Found) => {}
            Some(EvidenceState::Renamed | EvidenceState::Gone) => gone += 1,
        }
    }
    if gone > 0 {
        return Some(format!(
            "{gone} of the {} triples in its rationale no longer stand so in the graph",
            saved.rationale.len() + saved.measured.len()
        ));
    }
    if saved.computed || chosen && saved.rationale.is_empty() {
        return None;
    }
    if !leads(&saved.rationale, topics, saved.id.as_str(), steps) {
        return Some("its rationale does not join it to a topic".into());
    }
    // labels of found evidence are the graph's own
    let label = saved.rationale.last().and_then(|&i| {
        let last = answer.evidence.get(i)?;
        let [head, _, tail] = &last.ids;
        [(head, &last.head), (tail, &last.tail)]
            .into_iter()
            .find_map(|(id, label)| (*id == saved.id).then_some(label))
    });
    label
        .filter(|label| **label != saved.name)
        .map(|label| format!("the graph calls it `{label}`"))
}

/// Looks for the triple from its head, or from its tail where the head has no name to find it by.
fn look_up(saved: &Evidence, graph: &dyn Graph) -> Result<EvidenceState> {
    let [head_id, relation_id, tail_id] = &saved.ids;
    let Some(relation) = graph.relation_named(relation_id)? else {
        return Ok(EvidenceState::Gone);
    };
    // by identity only: another relation may have this one's label
    if graph.relation_term(relation)?.to_string() != *relation_id {
        return Ok(EvidenceState::Gone);
    }
    for head in entities_with_id(head_id, graph)? {
        let edges = graph.outgoing(head)?;
        if let Some(tail) = end_with_id(&edges, relation, tail_id, graph)? {
            return state(saved, head, relation, tail, graph);
        }
    }
    for tail in entities_with_id(tail_id, graph)? {
        let edges = graph.incoming(tail)?;
        if let Some(head) = end_with_id(&edges, relation, head_id, graph)? {
            return state(saved, head, relation, tail, graph);
        }
    }
    Ok(EvidenceState::Gone)
}

fn state(
    saved: &Evidence,
    head: EntityId,
    relation: RelationId,
    tail: EntityId,
    graph: &dyn Graph,
) -> Result<EvidenceState> {
    let same = graph.entity_label(head)? == saved.head
        && graph.relation_label(relation)? == saved.relation
        && graph.entity_label(tail)? == saved.tail;
    Ok(if same {
        EvidenceState::Found
    } else {
        EvidenceState::Renamed
    })
}

fn entities_with_id(id: &str, graph: &dyn Graph) -> Result<Vec<EntityId>> {
    let mut entities = Vec::new();
    for entity in graph.entities_named(id, NameMatch::Exact)? {
        if graph.entity_term(entity)?.to_string() == id {
            entities.push(entity);
        }
    }
    Ok(entities)
}

/// Among edges sorted by relation, the end with this identity.
fn end_with_id(
    edges: &[Edge],
    relation: RelationId,
    id: &str,
    graph: &dyn Graph,
) -> Result<Option<EntityId>> {
    let from = edges.partition_point(|e| e.relation < relation);
    for edge in edges[from..].iter().take_while(|e| e.relation == relation) {
        if graph.entity_term(edge.entity)?.to_string() == id {
            return Ok(Some(edge.entity));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, Triple, toy};

    use super::*;
    use crate::config::PipelineConfig;
    use crate::reason::Candidate;

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
        let reason = |tamper: fn(&mut Answer)| {
            let mut answer = asked(BORN);
            tamper(&mut answer);
            let verification = verify(&answer, &graph).unwrap();
            assert!(!verification.holds);
            verification.answers[0].reason.clone().unwrap()
        };
        let mut emptied = asked(BORN);
        emptied.answers.clear();
        assert!(!verify(&emptied, &graph).unwrap().holds);
        assert_eq!(
            reason(|a| a.answers[0].name = "Paris".into()),
            "the graph calls it `Landes de Bussac`"
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

    #[test]
    fn evidence_that_the_graph_does_not_state_is_not_verified_and_proves_nothing() {
        let graph = MemoryGraph::from_names([("a", "r", "b"), ("b", "r", "c")]);
        // a is 0, b is 1, c is 2; the graph does not say (a, r, c)
        let selection = Selection {
            triples: vec![(Triple::new(0, 0, 2), 0.9), (Triple::new(0, 0, 1), 0.8)],
            topics: vec![EntityId(0)],
            candidates: vec![(EntityId(2), 0.9), (EntityId(1), 0.8)],
            ..Selection::default()
        };
        let candidate = |id, path: &[usize]| Candidate {
            entity: EntityId(id),
            confidence: 1.0,
            path: path.to_vec(),
            ..Candidate::default()
        };
        let settled = |answers| {
            let conclusion = Conclusion {
                answers,
                ..Conclusion::default()
            };
            let rules = Rules::default();
            let question = Question::new("?");
            settle(&question, &[], &selection, conclusion, rules, &graph).unwrap()
        };
        let answer = settled(vec![candidate(2, &[0]), candidate(1, &[])]);
        assert!(!answer.evidence[0].verified && answer.evidence[1].verified);
        assert_eq!(answer.answers.len(), 1);
        assert_eq!(answer.answers[0].name, "b");
        assert_eq!(answer.answers[0].rationale, [1]);

        let answer = settled(vec![candidate(2, &[0])]);
        assert_eq!(answer.status, Status::Abstained);
        assert!(answer.reason.unwrap().contains("does not confirm"));
    }
    #[test]
    fn beside_the_rationales_only_the_best_evidence_is_handed_out() {
        let names: Vec<String> = (0..6).map(|i| format!("n{i}")).collect();
        let triples = (1..6).map(|i| (names[0].as_str(), "r", names[i].as_str()));
        let graph = MemoryGraph::from_names(triples);
        let selection = Selection {
            triples: (1..6).map(|i| (Triple::new(0, 0, i), 0.9)).collect(),
            topics: vec![EntityId(0)],
            ..Selection::default()
        };
        let settled = |path: &[usize], max_evidence| {
            let answer = Candidate {
                entity: EntityId(5),
                confidence: 1.0,
                path: path.to_vec(),
                ..Candidate::default()
            };
            let conclusion = Conclusion {
                answers: vec![answer],
                ..Conclusion::default()
            };
            let rules = Rules {
                max_evidence,
                ..Rules::default()
            };
            let question = Question::new("?");
            settle(&question, &[], &selection, conclusion, rules, &graph).unwrap()
        };
        // the best two, and the fifth, which proves the answer
        let answer = settled(&[4], 2);
        let tails: Vec<&str> = answer.evidence.iter().map(|e| e.tail.as_str()).collect();
        assert_eq!(tails, ["n1", "n2", "n5"]);
        assert_eq!(answer.answers[0].rationale, [2]);
        // nobody knows what it was drawn from: all that was seen
        let answer = settled(&[], 2);
        assert_eq!(answer.evidence.len(), 5);
        assert_eq!(answer.answers[0].rationale, [4]);
    }
}
