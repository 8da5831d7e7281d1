//! Runs logical forms, best first: the first that comes to something answers.
//!
//! A count of nothing is an answer where nothing else is found.

use std::time::{Duration, Instant};

use wherefore_graph::{EntityId, Graph, Subgraph, Triple};

use super::{FormAnswer, FormedAnswer, ScoredTriples};
use crate::error::Result;
use crate::logic::{Form, Moment, Outcome, Plan, RunLimits, Runner};

/// How sure an answer is that is reached through the form's own entities alone, against others: the
/// year of the film itself is seldom meant where years of its director's films are asked for.
const COMES_BACK: f32 = 0.5;

/// A form with its score.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) form: Form,
    pub(crate) score: f32,
}

/// How far forms are run.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Answers that are given with their evidence at most.
    pub(crate) answers: usize,
    /// All forms together run for at most so long.
    pub(crate) time: Duration,
    /// Most entities of a set.
    pub(crate) max_rows: usize,
    /// Whether entities that a form names are its answers where it gives no others.
    pub(crate) own_names: bool,
}

impl Running {
    /// What the first form that comes to something matches.
    pub(crate) fn first(
        &self,
        candidates: impl IntoIterator<Item = Result<Candidate>>,
        topics: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let begun = Instant::now();
        let mut notes = Vec::new();
        let (mut zero, mut is_spent) = (None, false);
        for candidate in candidates {
            let candidate = candidate?;
            let left = self.time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                notes.push("not all logical forms could be tried in time".into());
                is_spent = true;
                break;
            }
            // `30 February` is no day: another form may do
            let Ok(plan) = Plan::new(&candidate.form, graph, Moment::now()) else {
                continue;
            };
            let limits = RunLimits {
                time: left,
                rows: self.max_rows,
                ..RunLimits::default()
            };
            // a topic without a name that leads back to it, such as a literal
            let Ok(mut runner) = Runner::new(&plan, graph, &limits) else {
                continue;
            };
            // too large or too slow: another one may do
            let Some(outcome) = runner.run_within_limits()? else {
                is_spent = true;
                continue;
            };
            let mut came_to = CameTo {
                computed: outcome.computed(),
                ..CameTo::default()
            };
            if let Outcome::Truth(..) = outcome {
                came_to.grounds = match runner.grounds() {
                    Ok(grounds) => grounds,
                    Err(error) if error.code() == "out-of-time" => continue,
                    Err(error) => return Err(error),
                };
                return answered(&candidate, &plan, came_to, topics, notes, graph);
            }
            let named = plan.entities();
            let is_set = !matches!(candidate.form, Form::Join(..));
            let mut kept: Vec<EntityId> = (outcome.entities().iter().copied())
                .filter(|entity| is_set || named.binary_search(entity).is_err())
                .collect();
            if kept.is_empty() && self.own_names {
                kept.extend(outcome.entities());
            }
            if kept.is_empty() {
                if came_to.computed.is_some() && zero.is_none() {
                    zero = Some((candidate, plan, came_to));
                }
                continue;
            }
            let counts = matches!(outcome, Outcome::Number(..));
            let (mut given, mut back) = (Vec::new(), Vec::new());
            for &entity in kept.iter().take(self.answers) {
                let found = runner.evidence(entity).and_then(|evidence| {
                    Ok((evidence, counts || runner.leads_on(entity, &named)?))
                });
                let (evidence, leads_on) = match found {
                    Ok(found) => found,
                    Err(error) if error.code() == "out-of-time" => break,
                    Err(error) => return Err(error),
                };
                let list = if leads_on { &mut given } else { &mut back };
                list.push(FormedAnswer {
                    entity,
                    confidence: candidate.score.clamp(0.0, 1.0),
                    evidence,
                });
            }
            if !given.is_empty() {
                back.iter_mut().for_each(|a| a.confidence *= COMES_BACK);
            }
            given.extend(back);
            if kept.len() > given.len() && !counts {
                let left = format!("{} of {} answers are given", given.len(), kept.len());
                notes.push(left);
            }
            if let Outcome::Table(rows) = &outcome {
                came_to.table = Some(rows.told(graph, self.answers)?);
            }
            came_to.answers = given;
            return answered(&candidate, &plan, came_to, topics, notes, graph);
        }
        match zero {
            Some((candidate, plan, came_to)) => {
                answered(&candidate, &plan, came_to, topics, notes, graph)
            }
            None => Ok(ScoredTriples {
                notes,
                is_spent,
                ..ScoredTriples::default()
            }),
        }
    }
}

/// What a form came to, as [`FormAnswer`] has it.
#[derive(Default)]
struct CameTo {
    computed: Option<(String, String)>,
    grounds: Vec<Triple>,
    table: Option<crate::answer::Table>,
    answers: Vec<FormedAnswer>,
}

/// The evidence of a form as a subgraph.
fn answered(
    candidate: &Candidate,
    plan: &Plan,
    came_to: CameTo,
    topics: &[EntityId],
    notes: Vec<String>,
    graph: &dyn Graph,
) -> Result<ScoredTriples> {
    let mut roots: Vec<EntityId> = plan.entities();
    roots.extend(topics);
    roots.sort_unstable();
    roots.dedup();
    let CameTo {
        computed,
        grounds,
        table,
        answers,
    } = came_to;
    let told = answers.iter().flat_map(|a| &a.evidence).chain(&grounds);
    let mut triples: Vec<Triple> = told.copied().collect();
    triples.sort_unstable();
    triples.dedup();
    let subgraph = Subgraph::from_triples(&roots, &triples);
    let score = candidate.score.clamp(0.0, 1.0);
    let mut entity_scores = vec![0.0; subgraph.entities().len()];
    for answer in &answers {
        if let Some(place) = subgraph.entities().iter().position(|e| *e == answer.entity) {
            entity_scores[place] = answer.confidence;
        }
    }
    let count_of = subgraph.triples().len();
    let topics = (0..subgraph.entities().len() as u32)
        .map(EntityId)
        .filter(|&local| roots.binary_search(&subgraph.entity(local)).is_ok())
        .collect();
    Ok(ScoredTriples {
        topics,
        triple_scores: vec![score; count_of],
        entity_scores,
        form: Some(FormAnswer {
            form: candidate.form.to_string(),
            english: candidate.form.english(graph)?,
            sparql: plan.sparql(),
            confidence: score,
            computed,
            grounds,
            table,
            answers,
            ..FormAnswer::default()
        }),
        subgraph,
        notes,
        ..ScoredTriples::default()
    })
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;

    #[test]
    fn what_comes_back_through_the_topic_is_told_last() {
        let graph = MemoryGraph::from_names([
            ("A Day", "year", "1999"),
            ("A Day", "director", "Ann"),
            ("By Night", "director", "Ann"),
            ("By Night", "year", "2001"),
            ("Coda", "director", "Ann"),
            ("Coda", "year", "1999"),
            ("Dawn", "director", "Bob"),
            ("Dawn", "year", "1980"),
            ("By Night", "director", "Bob"),
            ("Eve", "twin", "Flo"),
            ("Flo", "twin", "Eve"),
            ("Eve", "year", "1970"),
        ]);
        let running = Running {
            answers: 10,
            time: Duration::from_secs(5),
            max_rows: 100,
            own_names: false,
        };
        let answers = |form: &str| -> Vec<String> {
            let candidate = Candidate {
                form: form.parse().unwrap(),
                score: 1.0,
            };
            let found = running.first([Ok(candidate)], &[], &graph).unwrap();
            (found.form.unwrap().answers.iter())
                .map(|a| {
                    let label = graph.entity_label(a.entity).unwrap();
                    format!("{label} {}", a.confidence)
                })
                .collect()
        };
        // 1980 is the year of Dawn alone, which was asked about
        assert_eq!(
            answers("(JOIN (R year) (JOIN director (JOIN (R director) Dawn)))"),
            ["2001 1", "1980 0.5"]
        );
        // 1999 is also the year of Coda
        assert_eq!(
            answers("(JOIN (R year) (JOIN director (JOIN (R director) [A Day])))"),
            ["1999 1", "2001 1"]
        );
        assert_eq!(answers("(JOIN (R year) Dawn)"), ["1980 1"]);
        // nothing else is there to be meant
        assert_eq!(
            answers("(JOIN (R year) (JOIN (R twin) (JOIN (R twin) Eve)))"),
            ["1970 1"]
        );
    }
}
