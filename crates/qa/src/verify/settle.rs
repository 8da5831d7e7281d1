//! A reasoner's conclusion becomes an answer: every triple of the evidence is looked up again in the
//! graph, and an answer that no verified triples join to a topic is ungrounded, and withheld unless
//! [`Ungrounded`] says otherwise.

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

use super::prose;
use crate::answer::{Answer, AnswerEntity, Evidence, LinkReport, Refusal, Status, Withheld};
use crate::error::Result;
use crate::link::Link;
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
            ..AnswerEntity::default()
        };
        let is_topic = selection.topics.contains(&candidate.entity);
        if answer.rationale.is_empty() {
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
    let mut answer = Answer {
        question: question.text.clone(),
        status: if answered {
            Status::Answered
        } else {
            Status::Abstained
        },
        refusal: (!answered).then(|| conclusion.refusal.unwrap_or(Refusal::EvidenceTooWeak)),
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
    };
    answer.unproved = prose::unproved(&answer);
    Ok(answer)
}

/// Everything in a conclusion that points into its selection.
fn pointers(conclusion: &mut Conclusion) -> impl Iterator<Item = &mut usize> {
    let answers = conclusion.answers.iter_mut();
    let paths = answers.flat_map(|a| a.path.iter_mut());
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

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, Triple};

    use super::*;
    use crate::reason::Candidate;

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
