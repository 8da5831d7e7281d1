//! The candidates of one question: sets, bounds, extremes, measures, counts.

use wherefore_graph::{EntityId, Graph, RelationId, Triple};
use wherefore_model::Encoder;

use super::vocabulary::{Attribute, ClassMention, Vocabulary, Words};
use super::{Candidate, Forms};
use crate::error::Result;
use crate::link::Link;
use crate::logic::{
    Best, Bound, Comparison, Constant, Cues, Form, Moment, Relation, Sense, relation_called,
};
use crate::logic::{entity_name, relation_name};
use crate::question::Question;
use crate::retrieve::Retriever;

/// Relations with values that are tried for one cue.
const ATTRIBUTES: usize = 4;
/// Least score of a relation with values.
const LEAST_ATTRIBUTE: f32 = 0.2;
/// Edges of a topic that are looked at for what joins it to a class.
const MAX_EDGES: usize = 20_000;

/// One question on its way to forms.
pub(super) struct Search<'a> {
    forms: &'a Forms,
    vocabulary: &'a Vocabulary,
    question: &'a Question,
    graph: &'a dyn Graph,
    links: Vec<Link>,
    pub(super) topics: Vec<EntityId>,
    class: Option<ClassMention>,
    cues: Cues,
}

impl<'a> Search<'a> {
    pub(super) fn new(
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
    pub(super) fn candidates(&self) -> Result<Vec<Candidate>> {
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
                    Comparison::AtLeast,
                    by.into(),
                    Constant::Bare("0".into()).into(),
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

    /// Each set within the bounds of the question. Bounds with the same hints are of one relation.
    fn bounded(&self, sets: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let mut groups: Vec<Vec<&Bound>> = Vec::new();
        for bound in &self.cues.bounds {
            match groups.iter_mut().find(|g| g[0].hints == bound.hints) {
                Some(group) => group.push(bound),
                None => groups.push(vec![bound]),
            }
        }
        if groups.is_empty() || self.vocabulary.attributes.is_empty() {
            // nothing here has values: the words meant something else
            return Ok(sets);
        }
        // conditions that stand together, with their score
        let mut compared: Vec<(Vec<Form>, f32)> = vec![(Vec::new(), 1.0)];
        for group in &groups {
            let mut longer = Vec::new();
            for (relation, score) in self.bounded_by(group[0])? {
                let by = vec![Relation::new(self.relation_name(relation)?)];
                let forms = (group.iter()).map(|bound| {
                    Form::Compare(bound.is, by.clone().into(), bound.than.clone().into())
                });
                for (so_far, so_good) in &compared {
                    let all = so_far.iter().cloned().chain(forms.clone()).collect();
                    longer.push((all, so_good * score));
                }
            }
            compared = longer;
        }
        let mut found = Vec::new();
        for (conditions, score) in compared {
            for set in &sets {
                let mut all = match &set.form {
                    Form::And(all) => all.clone(),
                    other => vec![other.clone()],
                };
                all.extend(conditions.iter().cloned());
                found.push(Candidate {
                    form: Form::And(all),
                    score: set.score * score,
                });
            }
            if sets.is_empty() {
                found.push(Candidate {
                    form: match conditions.as_slice() {
                        [one] => one.clone(),
                        _ => Form::And(conditions),
                    },
                    score: 0.5 * score,
                });
            }
        }
        Ok(found)
    }

    /// The relations whose values a bound may be about.
    fn bounded_by(&self, bound: &Bound) -> Result<Vec<(RelationId, f32)>> {
        let value = bound.than.value(Moment::now());
        let is_time = value.number.is_none() || bound.hints.iter().any(|h| h == "birth");
        let sense = if is_time { Sense::Time } else { Sense::Number };
        let found = self.attributes(&bound.hints, Some(sense))?;
        match found.is_empty() {
            // years may be plain numbers
            true => self.attributes(&bound.hints, None),
            false => Ok(found),
        }
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
        let numbers = |a: &Attribute| a.relation == id && a.sense == Sense::Number;
        Ok(relation.reversed && self.vocabulary.attributes.iter().any(numbers))
    }

    fn extremes(&self, best: &Best, sets: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for (relation, score) in self.attributes(&best.hints, None)? {
            let by = Relation::new(self.relation_name(relation)?);
            for set in &sets {
                // a value alone has no extreme
                found.push(Candidate {
                    form: Form::Best(
                        best.extreme.into(),
                        Box::new(set.form.clone()),
                        vec![by.clone()].into(),
                    ),
                    score: set.score * score,
                });
            }
        }
        if found.is_empty() && self.vocabulary.attributes.is_empty() {
            // nothing here has values: the words meant something else
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

fn counted(sets: &[Candidate], factor: f32) -> Vec<Candidate> {
    sets.iter()
        .map(|set| Candidate {
            form: set.form.clone().counted(),
            score: set.score * factor,
        })
        .collect()
}
