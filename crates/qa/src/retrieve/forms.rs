//! Writes the question as logical forms without a trained network, and runs the best.
//!
//! The candidates of AMAR's generator come from rules here: where the walk along the relations
//! that the question tells leads ([`RelationWalk`]), what joins a topic to the class that is asked
//! for, and what the words say of counts, extremes and comparisons ([`Cues`]):
//!
//! ```text
//! sets       (JOIN r_n … (JOIN r_1 topic))      the walk's plans, and pairs of them by AND
//!            (AND class (JOIN r topic))         what joins a topic to a class
//!            class                              where no topic is named
//! bounds     (AND set (gt value 5))             for each comparison
//! extremes   (ARGMAX set value)
//! measures   (JOIN (R value) set)               how high, how many people
//! count      (COUNT set)
//! score      = product of the parts' scores, within 0 and 1
//! ```
//!
//! Candidates are run in order of their scores; the first that comes to something answers. A
//! count of nothing is an answer where nothing else is found.

mod vocabulary;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, NameMatch, RelationId, Subgraph, Triple};
use wherefore_model::{Encoder, encode};

use self::vocabulary::{ClassMention, Vocabulary, Words};
use super::{FormAnswer, FormedAnswer, RelationWalk, RelationWalkConfig, Retriever, ScoredTriples};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::logic::{
    Best, Cues, Form, Moment, Outcome, Plan, Relation, RunLimits, Runner, Sense, relation_called,
};
use crate::per_graph::PerGraph;
use crate::question::Question;

/// Relations with values that are tried for one cue.
const ATTRIBUTES: usize = 4;
/// Least score of a relation with values.
const LEAST_ATTRIBUTE: f32 = 0.2;
/// Edges of a topic that are looked at for what joins it to a class.
const MAX_EDGES: usize = 20_000;

/// Settings of [`Forms`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FormsConfig {
    /// Candidates that are run at most.
    pub candidates: usize,
    /// Answers that are given with their evidence at most.
    pub answers: usize,
    /// All candidates together run for at most so many milliseconds.
    pub time_limit_ms: u64,
    /// Most entities of a set.
    pub max_rows: usize,
    /// How plans are found.
    pub walk: RelationWalkConfig,
}

impl Default for FormsConfig {
    fn default() -> Self {
        Self {
            candidates: 60,
            answers: 200,
            time_limit_ms: 3000,
            max_rows: 200_000,
            walk: RelationWalkConfig {
                plans: 8,
                ..RelationWalkConfig::default()
            },
        }
    }
}

/// Retrieves what the best logical form matches.
pub struct Forms {
    config: FormsConfig,
    walk: RelationWalk,
    encoder: Arc<dyn Encoder>,
    vocabulary: PerGraph<Vocabulary>,
}

impl Forms {
    /// A retriever with these settings; opens the encoder.
    pub fn new(config: FormsConfig) -> Result<Self> {
        for (name, value) in [
            ("retrieve.candidates", config.candidates),
            ("retrieve.answers", config.answers),
            ("retrieve.max_rows", config.max_rows),
        ] {
            if value == 0 {
                return Err(Error::BadSetting {
                    name,
                    value: "0".into(),
                    wanted: "at least 1",
                });
            }
        }
        Ok(Self {
            walk: RelationWalk::new(config.walk.clone())?,
            encoder: encode::open(&config.walk.encoder)?,
            vocabulary: PerGraph::default(),
            config,
        })
    }
}

impl Retriever for Forms {
    fn needs_links(&self) -> bool {
        false
    }

    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let vocabulary = self
            .vocabulary
            .get(graph, || Vocabulary::new(graph, &*self.encoder))?;
        let search = Search::new(self, &vocabulary, question, links, graph)?;
        let candidates = search.candidates()?;
        self.first_that_runs(candidates, &search.topics, graph)
    }
}

/// A form with its score.
#[derive(Clone, Debug)]
struct Candidate {
    form: Form,
    score: f32,
}

impl Forms {
    fn first_that_runs(
        &self,
        candidates: Vec<Candidate>,
        topics: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let begun = Instant::now();
        let limit = Duration::from_millis(self.config.time_limit_ms);
        let mut notes = Vec::new();
        let mut zero = None;
        for candidate in candidates {
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                notes.push("not all logical forms could be tried in time".into());
                break;
            }
            let plan = Plan::new(&candidate.form, graph, Moment::now())?;
            let limits = RunLimits {
                time: left,
                rows: self.config.max_rows,
                ..RunLimits::default()
            };
            let mut runner = Runner::new(&plan, graph, &limits)?;
            let outcome = match runner.run() {
                Ok(outcome) => outcome,
                // too large or too slow: another one may do
                Err(Error::FormTooLarge { .. }) => continue,
                Err(error) if error.code() == "out-of-time" => continue,
                Err(error) => return Err(error),
            };
            let named = plan.entities();
            let fresh = |e: &&EntityId| {
                !matches!(candidate.form, Form::Join(..)) || named.binary_search(e).is_err()
            };
            if outcome.entities().iter().filter(fresh).next().is_none() {
                if matches!(outcome, Outcome::Number(..)) && zero.is_none() {
                    zero = Some((candidate, plan));
                }
                continue;
            }
            let mut given = Vec::new();
            for &entity in outcome
                .entities()
                .iter()
                .filter(fresh)
                .take(self.config.answers)
            {
                given.push(FormedAnswer {
                    entity,
                    evidence: runner.evidence(entity)?,
                });
            }
            let total = outcome.entities().iter().filter(fresh).count();
            if total > given.len() && !matches!(outcome, Outcome::Number(..)) {
                notes.push(format!("{} of {total} answers are given", given.len()));
            }
            let count = match outcome {
                Outcome::Number(number, _) => Some(number),
                Outcome::Entities(_) => None,
            };
            return answered(&candidate, &plan, count, given, topics, notes, graph);
        }
        match zero {
            Some((candidate, plan)) => {
                answered(&candidate, &plan, Some(0), Vec::new(), topics, notes, graph)
            }
            None => Ok(ScoredTriples {
                notes,
                ..ScoredTriples::default()
            }),
        }
    }
}

/// The evidence of a form as a subgraph.
fn answered(
    candidate: &Candidate,
    plan: &Plan,
    count: Option<usize>,
    answers: Vec<FormedAnswer>,
    topics: &[EntityId],
    notes: Vec<String>,
    graph: &dyn Graph,
) -> Result<ScoredTriples> {
    let mut roots: Vec<EntityId> = plan.entities();
    roots.extend(topics);
    roots.sort_unstable();
    roots.dedup();
    let mut triples: Vec<Triple> = answers.iter().flat_map(|a| a.evidence.clone()).collect();
    triples.sort_unstable();
    triples.dedup();
    let subgraph = Subgraph::from_triples(&roots, &triples);
    let score = candidate.score.clamp(0.0, 1.0);
    let mut entity_scores = vec![0.0; subgraph.entities().len()];
    for answer in &answers {
        if let Some(place) = subgraph.entities().iter().position(|e| *e == answer.entity) {
            entity_scores[place] = score;
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
            count,
            answers,
        }),
        subgraph,
        notes,
        ..ScoredTriples::default()
    })
}

/// One question on its way to forms.
struct Search<'a> {
    forms: &'a Forms,
    vocabulary: &'a Vocabulary,
    question: &'a Question,
    graph: &'a dyn Graph,
    links: Vec<Link>,
    topics: Vec<EntityId>,
    class: Option<ClassMention>,
    cues: Cues,
}

impl<'a> Search<'a> {
    fn new(
        forms: &'a Forms,
        vocabulary: &'a Vocabulary,
        question: &'a Question,
        links: &[Link],
        graph: &'a dyn Graph,
    ) -> Result<Self> {
        let asked_class = |link: &Link| link.span.is_some() && vocabulary.is_class(link.entity);
        // a class that is linked is no topic, unless there is nothing else and nothing to count
        let mut kept: Vec<Link> = links.iter().filter(|l| !asked_class(l)).cloned().collect();
        let spans = |links: &[Link]| -> Vec<(usize, usize)> {
            links.iter().filter_map(|l| l.span).collect()
        };
        let mut cues = Cues::read(&question.text, &spans(&kept));
        let class = vocabulary.class_in(&cues.rest, &spans(&kept));
        // numbers and words of a cue are no topics
        let blanked = |link: &Link| {
            link.span.is_some_and(|(s, e)| {
                cues.rest
                    .as_bytes()
                    .get(s..e)
                    .is_some_and(|bytes| bytes.iter().all(|b| *b == b' '))
            })
        };
        kept.retain(|link| !blanked(link));
        if kept.is_empty() && class.is_none() {
            kept = links.to_vec();
            cues = Cues::read(&question.text, &spans(&kept));
        }
        let mut topics: Vec<EntityId> = kept.iter().map(|l| l.entity).collect();
        topics.sort_unstable();
        topics.dedup();
        Ok(Self {
            forms,
            vocabulary,
            question,
            graph,
            links: kept,
            topics,
            class,
            cues,
        })
    }

    fn encoder(&self) -> &dyn Encoder {
        &*self.forms.encoder
    }

    /// All candidates, best first.
    fn candidates(&self) -> Result<Vec<Candidate>> {
        let sets = self.sets()?;
        let bounded = self.bounded(sets)?;
        let mut all = self.finished(bounded)?;
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = hashbrown::HashSet::new();
        all.retain(|candidate| seen.insert(candidate.form.normal()));
        all.truncate(self.forms.config.candidates);
        Ok(all)
    }

    /// The sets that the question may be about, before values come in.
    fn sets(&self) -> Result<Vec<Candidate>> {
        let mut sets = Vec::new();
        let best = self.cues.best.as_ref();
        if best.is_some_and(|b| b.between) && self.topics.len() > 1 {
            let mut names = Vec::new();
            for link in &self.links {
                let name = Form::Name(self.entity_name(link.entity)?);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            sets.push(Candidate {
                form: Form::Or(names),
                score: 1.0,
            });
            return Ok(sets);
        }
        let plans = self.plans()?;
        let class = match self.class {
            Some(mention) => Some(Form::Name(self.entity_name(mention.class)?)),
            None => None,
        };
        if let Some(class) = &class {
            for candidate in self.joined_to_class()? {
                sets.push(Candidate {
                    form: Form::And(vec![class.clone(), candidate.form]),
                    score: candidate.score,
                });
            }
            if self.topics.is_empty() {
                let bare = !self.cues.is_plain();
                sets.push(Candidate {
                    form: class.clone(),
                    score: if bare { 0.8 } else { 0.1 },
                });
            }
        }
        for (i, one) in plans.iter().enumerate() {
            if let Some(class) = &class {
                sets.push(Candidate {
                    form: Form::And(vec![class.clone(), one.1.form.clone()]),
                    score: (one.1.score * 1.1).min(1.0),
                });
            }
            for two in &plans[i + 1..] {
                if one.0 != two.0 {
                    sets.push(Candidate {
                        form: Form::And(vec![one.1.form.clone(), two.1.form.clone()]),
                        score: (one.1.score * two.1.score).sqrt().min(1.0),
                    });
                }
            }
            sets.push(one.1.clone());
        }
        if sets.is_empty() {
            self.unanchored(&mut sets)?;
        }
        Ok(sets)
    }

    /// Where the walk leads, each with the topic it begins at.
    fn plans(&self) -> Result<Vec<(EntityId, Candidate)>> {
        if self.links.is_empty() {
            return Ok(Vec::new());
        }
        // the class says what is asked for, not by which relation
        let spans = self.class.iter().map(|mention| mention.span);
        let left = Question {
            text: blanked(&self.cues.rest, spans),
            ..self.question.clone()
        };
        let names = self.links.iter().filter_map(|l| l.span);
        let told = Words::new(&blanked(&left.text, names), self.encoder())?.is_some();
        let trust = if told || self.class.is_none() {
            1.0
        } else {
            0.5
        };
        // where only cues were left, all words are better than none
        let left = match left.check() {
            Ok(()) => left,
            Err(_) => self.question.clone(),
        };
        let walked = self.forms.walk.retrieve(&left, &self.links, self.graph)?;
        let mut plans = Vec::with_capacity(walked.plans.len());
        for plan in &walked.plans {
            let mut form = Form::Name(self.entity_name(plan.topic)?);
            for hop in &plan.hops {
                let relation = Relation::new(self.relation_name(hop.relation)?);
                // a hop forward leads from head to tail, which `JOIN` reads the other way
                form = form.joined(match hop.forward {
                    true => relation.reverse(),
                    false => relation,
                });
            }
            let score = trust * plan.score;
            plans.push((plan.topic, Candidate { form, score }));
        }
        Ok(plans)
    }

    /// What joins a topic to members of the class: one relation, or two where one does not.
    fn joined_to_class(&self) -> Result<Vec<Candidate>> {
        let Some(mention) = self.class else {
            return Ok(Vec::new());
        };
        let spans = self.links.iter().filter_map(|l| l.span);
        let text = blanked(&self.cues.rest, spans.chain([mention.span]));
        let words = Words::new(&text, self.encoder())?;
        let mut found = Vec::new();
        for link in &self.links {
            let mut near = Vec::new();
            let mut direct = false;
            for (relation, reversed, ends) in self.ways(link.entity)? {
                let inside = self.share_in_class(&ends, mention.class)?;
                if inside > 0.0 {
                    direct = true;
                    // of relations that nothing tells apart, the one with more members is meant
                    let many = (inside * ends.len() as f32).ln_1p().min(4.0);
                    let affinity =
                        self.vocabulary
                            .affinity(words.as_ref(), relation, self.graph)?;
                    let form = Form::Name(self.entity_name(link.entity)?)
                        .joined(self.relation(relation, reversed)?);
                    found.push(Candidate {
                        form,
                        score: (0.4 + 0.5 * affinity + 0.03 * many) * link.score.max(0.1).sqrt(),
                    });
                } else {
                    near.push((relation, reversed, ends));
                }
            }
            if direct {
                continue;
            }
            for (first, turned, ends) in near {
                let mut seen = hashbrown::HashSet::new();
                for &end in ends.iter().take(16) {
                    for (second, reversed, far) in self.ways(end)? {
                        if seen.contains(&(second, reversed))
                            || self.share_in_class(&far, mention.class)? == 0.0
                        {
                            continue;
                        }
                        seen.insert((second, reversed));
                        let affinity =
                            (self
                                .vocabulary
                                .affinity(words.as_ref(), first, self.graph)?
                                + self
                                    .vocabulary
                                    .affinity(words.as_ref(), second, self.graph)?)
                                / 2.0;
                        let form = Form::Name(self.entity_name(link.entity)?)
                            .joined(self.relation(first, turned)?)
                            .joined(self.relation(second, reversed)?);
                        found.push(Candidate {
                            form,
                            score: (0.35 + 0.45 * affinity) * link.score.max(0.1).sqrt(),
                        });
                    }
                }
            }
        }
        Ok(found)
    }

    /// The relations of an entity with their ends, and whether `JOIN` reads them reversed.
    fn ways(&self, entity: EntityId) -> Result<Vec<(RelationId, bool, Vec<EntityId>)>> {
        let mut ways: Vec<(RelationId, bool, Vec<EntityId>)> = Vec::new();
        for reversed in [true, false] {
            let row = match reversed {
                true => self.graph.outgoing(entity)?,
                false => self.graph.incoming(entity)?,
            };
            for edge in row.iter().take(MAX_EDGES) {
                match ways.last_mut() {
                    Some((r, t, ends)) if *r == edge.relation && *t == reversed => {
                        ends.push(edge.entity);
                    }
                    _ => ways.push((edge.relation, reversed, vec![edge.entity])),
                }
            }
        }
        ways.retain(|(r, ..)| {
            !self.graph.naming_relations().contains(r) && !self.vocabulary.typed_by.contains(r)
        });
        Ok(ways)
    }

    /// About how many of some entities are instances of a class.
    fn share_in_class(&self, entities: &[EntityId], class: EntityId) -> Result<f32> {
        const SAMPLE: usize = 64;
        let step = entities.len().div_ceil(SAMPLE).max(1);
        let (mut inside, mut looked) = (0usize, 0usize);
        for &entity in entities.iter().step_by(step) {
            looked += 1;
            for &relation in &self.vocabulary.typed_by {
                let triple = Triple {
                    head: entity,
                    relation,
                    tail: class,
                };
                if self.graph.contains(triple)? {
                    inside += 1;
                    break;
                }
            }
        }
        Ok(inside as f32 / looked.max(1) as f32)
    }

    /// Bounds and extremes without any set: over whatever has the value.
    fn unanchored(&self, sets: &mut Vec<Candidate>) -> Result<()> {
        if let Some(best) = &self.cues.best {
            for (relation, score) in self.attributes(&best.hints, None)? {
                let by = vec![Relation::new(self.relation_name(relation)?)];
                let all = Form::Compare(
                    crate::logic::Comparison::AtLeast,
                    by,
                    crate::logic::Constant::Bare("0".into()),
                );
                sets.push(Candidate {
                    form: all,
                    score: 0.3 * score,
                });
            }
        }
        Ok(())
    }

    fn attributes(&self, hints: &[String], sense: Option<Sense>) -> Result<Vec<(RelationId, f32)>> {
        let spans = self.links.iter().filter_map(|l| l.span);
        let text = blanked(&self.question.text, spans);
        let mut found = self
            .vocabulary
            .attributes_for(&text, hints, sense, self.encoder())?;
        found.retain(|(_, score)| *score >= LEAST_ATTRIBUTE);
        found.truncate(ATTRIBUTES);
        Ok(found)
    }

    /// Each set within the bounds of the question.
    fn bounded(&self, sets: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let bounds = &self.cues.bounds;
        let Some(first) = bounds.first() else {
            return Ok(sets);
        };
        let value = first.than.value(Moment::now());
        let is_time = value.number.is_none() || first.hints.iter().any(|h| h == "birth");
        let sense = if is_time { Sense::Time } else { Sense::Number };
        let mut attributes = self.attributes(&first.hints, Some(sense))?;
        if attributes.is_empty() {
            // years may be plain numbers
            attributes = self.attributes(&first.hints, None)?;
        }
        let mut found = Vec::new();
        for (relation, score) in attributes {
            let by = vec![Relation::new(self.relation_name(relation)?)];
            let compared: Vec<Form> = bounds
                .iter()
                .map(|bound| Form::Compare(bound.is, by.clone(), bound.than.clone()))
                .collect();
            for set in &sets {
                let mut all = match &set.form {
                    Form::And(all) => all.clone(),
                    other => vec![other.clone()],
                };
                all.extend(compared.iter().cloned());
                found.push(Candidate {
                    form: Form::And(all),
                    score: set.score * score,
                });
            }
            if sets.is_empty() {
                found.push(Candidate {
                    form: match compared.as_slice() {
                        [one] => one.clone(),
                        _ => Form::And(compared),
                    },
                    score: 0.5 * score,
                });
            }
        }
        if found.is_empty() {
            // nothing here has such a value: the words meant something else
            return Ok(sets);
        }
        Ok(found)
    }

    /// Extremes, measures and counts.
    fn finished(&self, sets: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let mut found = match &self.cues.best {
            Some(best) => self.extremes(best, sets)?,
            None => sets,
        };
        if !self.cues.measure.is_empty() {
            let mut measured = self.measured(&found)?;
            if self.cues.count {
                measured.extend(counted(&found, 0.5));
            }
            return Ok(measured);
        }
        if let Some((from, to)) = self.cues.outer {
            found = self.outer(&found, &self.question.text[from..to])?;
        }
        if self.cues.count {
            let mut all = counted(&found, 1.0);
            // a number that the graph states needs no counting: `how many seats does it have`
            for set in &found {
                if self.ends_in_numbers(&set.form)? {
                    all.push(Candidate {
                        form: set.form.clone(),
                        score: (set.score * 1.05).min(1.0),
                    });
                }
            }
            return Ok(all);
        }
        Ok(found)
    }

    fn ends_in_numbers(&self, form: &Form) -> Result<bool> {
        let Form::Join(relation, _) = form else {
            return Ok(false);
        };
        let Some(id) = relation_called(&relation.name, self.graph)? else {
            return Ok(false);
        };
        let numbers = |a: &vocabulary::Attribute| a.relation == id && a.sense == Sense::Number;
        Ok(relation.reversed && self.vocabulary.attributes.iter().any(numbers))
    }

    fn extremes(&self, best: &Best, sets: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for (relation, score) in self.attributes(&best.hints, None)? {
            let by = Relation::new(self.relation_name(relation)?);
            for set in &sets {
                // a value alone has no extreme
                found.push(Candidate {
                    form: Form::Best(best.extreme, Box::new(set.form.clone()), vec![by.clone()]),
                    score: set.score * score,
                });
            }
        }
        if found.is_empty() {
            return Ok(sets);
        }
        Ok(found)
    }

    /// The value that is asked for, of each set, or of the topics.
    fn measured(&self, sets: &[Candidate]) -> Result<Vec<Candidate>> {
        let hints: Vec<String> = self.cues.measure.iter().map(|h| (*h).to_owned()).collect();
        let mut found = Vec::new();
        for (relation, score) in self.attributes(&hints, None)? {
            let relation = Relation::new(self.relation_name(relation)?).reverse();
            if self.cues.best.is_none() {
                for link in &self.links {
                    found.push(Candidate {
                        form: Form::Name(self.entity_name(link.entity)?).joined(relation.clone()),
                        score: score * link.score.max(0.1),
                    });
                }
            }
            for set in sets {
                found.push(Candidate {
                    form: set.form.clone().joined(relation.clone()),
                    score: 0.8 * score * set.score,
                });
            }
        }
        if found.is_empty() {
            return Ok(sets.to_vec());
        }
        Ok(found)
    }

    /// What the words before `of the largest …` ask of it.
    fn outer(&self, sets: &[Candidate], words: &str) -> Result<Vec<Candidate>> {
        let Some(words) = Words::new(words, self.encoder())? else {
            return Ok(sets.to_vec());
        };
        let mut rated = Vec::new();
        for id in 0..self.graph.relation_bound() {
            let relation = RelationId(id as u32);
            if self.graph.naming_relations().contains(&relation)
                || self.vocabulary.typed_by.contains(&relation)
            {
                continue;
            }
            let affinity = self
                .vocabulary
                .affinity(Some(&words), relation, self.graph)?;
            rated.push((relation, affinity));
        }
        rated.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut found = Vec::new();
        for set in sets {
            for &(relation, affinity) in rated.iter().take(5) {
                for reversed in [true, false] {
                    let favour = if reversed { 1.0 } else { 0.9 };
                    found.push(Candidate {
                        form: set.form.clone().joined(self.relation(relation, reversed)?),
                        score: set.score * affinity * favour,
                    });
                }
            }
        }
        Ok(found)
    }

    fn relation(&self, relation: RelationId, reversed: bool) -> Result<Relation> {
        Ok(Relation {
            name: self.relation_name(relation)?,
            reversed,
        })
    }

    /// The label of a relation where it means this one alone, else its identity.
    fn relation_name(&self, relation: RelationId) -> Result<String> {
        relation_name(relation, self.graph)
    }

    fn entity_name(&self, entity: EntityId) -> Result<String> {
        entity_name(entity, self.graph)
    }
}

/// A text with some byte ranges as spaces.
fn blanked(text: &str, spans: impl Iterator<Item = (usize, usize)>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (start, end) in spans {
        if let Some(part) = bytes.get_mut(start..end) {
            part.fill(b' ');
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// What a relation is called in a form: its identity where that is short, or its label where it
/// means this one alone.
pub(crate) fn relation_name(relation: RelationId, graph: &dyn Graph) -> Result<String> {
    let term = graph.relation_term(relation)?.to_string();
    if !term.contains("://") {
        return Ok(term);
    }
    let label = graph.relation_label(relation)?;
    Ok(match relation_called(&label, graph)? {
        Some(found) if found == relation => label.into_owned(),
        _ => term,
    })
}

/// What an entity is called in a form: its label where it means this one alone, else its identity.
pub(crate) fn entity_name(entity: EntityId, graph: &dyn Graph) -> Result<String> {
    let label = graph.entity_label(entity)?;
    Ok(
        match graph.entities_named(&label, NameMatch::Exact)?.as_slice() {
            [one] if *one == entity => label.into_owned(),
            _ => graph.entity_term(entity)?.to_string(),
        },
    )
}

fn counted(sets: &[Candidate], factor: f32) -> Vec<Candidate> {
    sets.iter()
        .map(|set| Candidate {
            form: Form::Count(Box::new(set.form.clone())),
            score: set.score * factor,
        })
        .collect()
}
