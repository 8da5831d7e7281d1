//! From a question to plans: what it asks to count, compare or rank is read first, the rest is told
//! by paths.
//!
//! - One topic: the best paths from it, as `align.rs` scores them.
//! - Two topics: the paths from both that lead to the same things (`border both France and
//!   Germany`), if together they tell no less than the best path of one, given that it leaves a
//!   topic out ([`LEFT_OUT`]).
//! - No topic but a kind of thing (`the longest river`): all things of that kind.
//! - Two things to choose from (`which is longer, the Rhine or the Elbe`): these.
//!
//! Where the graph says of what kind things are, a path has to lead to what is asked for, by kind,
//! by name or by a relation called so; otherwise there is no plan, and thus no answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wherefore_graph::{EntityId, Graph, Hop};

use super::super::follow::follow;
use super::super::label_span;
use super::affinity::{Affinity, RelationWords};
use super::align::{Aligner, Fit, STRONG};
use super::kinds::Kinds;
use super::reading::Reading;
use super::{Plan, RelationWalk, Scored, sigmoid};
use crate::error::Result;
use crate::link::Link;
use crate::measure::{Asked, Attributes, Operation, value};
use crate::question::Question;

/// The affinity of a word that is asked for by its name.
const NAMED: f32 = 0.95;

/// What it costs to leave a topic of the question out.
const LEFT_OUT: f32 = 0.8;

/// Paths from each of two topics that are tried together.
const TOGETHER: usize = 24;

/// Things that a path may lead to while it is tried.
const MAX_ENDS: usize = 2000;

/// The score of a plan that takes all things of a kind.
const ALL_OF_KIND: f32 = 0.5;

/// What is computed once for a graph.
pub(super) struct Known {
    words: Arc<RelationWords>,
    pub(super) kinds: Arc<Kinds>,
    attributes: Arc<Attributes>,
}

/// A question from one topic, with its best paths.
struct Told<'l> {
    link: &'l Link,
    reading: Reading,
    /// The kind of thing that is asked for.
    kind: Option<EntityId>,
    paths: Vec<Scored>,
}

impl RelationWalk {
    /// The plans of a question, best first, and whether there was time for all.
    pub(super) fn plans(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<(Vec<Plan>, bool)> {
        let known = Known {
            words: self
                .words
                .get(graph, || RelationWords::build(graph, &*self.encoder))?,
            kinds: self
                .kinds
                .get(graph, || Kinds::build(graph, &*self.encoder))?,
            attributes: self.attributes.get(graph, || Attributes::build(graph))?,
        };
        let mut spanned: Vec<Link> = links.to_vec();
        if links.iter().any(|link| !known.kinds.has(link.entity)) {
            // a kind is no topic where something else is
            spanned.retain(|link| !known.kinds.has(link.entity));
        }
        for link in &mut spanned {
            if link.span.is_none() {
                link.span = label_span(&question.text, &graph.entity_label(link.entity)?);
            }
        }
        let names: Vec<(usize, usize)> = (spanned.iter().filter(|l| !is_weak(l, &question.text)))
            .filter_map(|l| l.span)
            .collect();
        let asked = Asked::read(&question.text, &names, &known.attributes);
        let search = Search {
            walk: self,
            known: &known,
            graph,
            deadline: Instant::now() + Duration::from_millis(self.config.time_limit_ms),
        };
        if asked.is_plain() {
            return search.told(&question.text, &spanned, false);
        }
        let left: Vec<Link> = (spanned.iter())
            .filter(|link| !overlaps(link.span, &asked.taken))
            .cloned()
            .collect();
        if asked.versus
            && let Some(plan) = search.versus(&asked, &left, &question.text)?
        {
            return Ok((vec![plan], true));
        }
        let (plans, in_time) = search.told(&asked.text, &left, true)?;
        let mut measured = Vec::new();
        for plan in plans {
            measured.extend(search.measured(plan, &asked)?);
        }
        if measured.is_empty() && !known.kinds.are_known() {
            // `first` and `most` may mean other things where nothing can be ranked
            return search.told(&question.text, &spanned, false);
        }
        Ok((measured, in_time))
    }
}

/// Where plans are looked for.
struct Search<'a> {
    walk: &'a RelationWalk,
    known: &'a Known,
    graph: &'a dyn Graph,
    deadline: Instant,
}

impl Search<'_> {
    /// The plans that tell a text; `any` says that all things of a kind may be meant.
    fn told(&self, text: &str, links: &[Link], any: bool) -> Result<(Vec<Plan>, bool)> {
        let weak = links.iter().all(|link| is_weak(link, text));
        if any
            && weak
            && let Some(plan) = self.all_of_kind(text)?
        {
            return Ok((vec![plan], true));
        }
        let mut tellings = Vec::new();
        let mut in_time = true;
        for link in links {
            let (telling, whole) = self.telling(text, link, links)?;
            in_time &= whole;
            tellings.extend(telling);
        }
        let mut plans = Vec::new();
        for telling in &tellings {
            let paths = telling.paths.iter().filter(|path| path.answers);
            for path in paths.take(self.walk.config.plans) {
                plans.push(self.plan(telling, path)?);
            }
        }
        plans.sort_by(|a, b| b.score.total_cmp(&a.score));
        plans.truncate(self.walk.config.plans);
        if let Some(joint) = self.joint(&tellings, plans.first())? {
            plans.insert(0, joint);
        }
        Ok((plans, in_time))
    }

    /// The question told from one topic; none where its words say nothing.
    fn telling<'l>(
        &self,
        text: &str,
        link: &'l Link,
        links: &[Link],
    ) -> Result<(Option<Told<'l>>, bool)> {
        let others: Vec<(usize, usize)> = links
            .iter()
            .filter_map(|other| other.span)
            .filter(|&other| Some(other) != link.span)
            .collect();
        let mut reading = Reading::new(text, link.span, &others);
        let affinity = self.affinity(&reading)?;
        let kind = self.kind(&mut reading, &affinity)?;
        let aligner = self.aligner(&reading, &affinity);
        if !aligner.says_anything() && kind.is_none() {
            return Ok((None, true));
        }
        let (mut paths, in_time) = self.walk.grow(
            link.entity,
            kind,
            &aligner,
            &self.known.kinds,
            self.graph,
            self.deadline,
        )?;
        if self.known.kinds.are_known() {
            for path in &mut paths {
                path.answers = aligner.is_answer(&path.steps, path.fit)
                    && aligner.tells_every_step(&path.steps, path.fit);
            }
        }
        let telling = Told {
            link,
            kind,
            paths,
            reading,
        };
        Ok((Some(telling), in_time))
    }

    fn affinity<'w>(&'w self, reading: &Reading) -> Result<Affinity<'w>> {
        Affinity::new(&reading.words, &self.known.words, &*self.walk.encoder)
    }

    fn aligner<'r>(&self, reading: &'r Reading, affinity: &'r Affinity<'r>) -> Aligner<'r> {
        let kinds = (0..reading.words.len())
            .map(|i| self.named_kind(reading, i).is_some())
            .collect();
        Aligner::new(reading, affinity, kinds)
    }

    /// The kind that a word of the reading names.
    fn named_kind(&self, reading: &Reading, i: usize) -> Option<EntityId> {
        let before = i.checked_sub(1).map(|b| reading.words[b].text.as_str());
        self.known.kinds.named(&reading.words[i].text, before)
    }

    /// The kind of thing that is asked for. Where a word of the phrase names one, that is the word
    /// for what is asked for: `rivers`, and not `flow`.
    fn kind(&self, reading: &mut Reading, affinity: &Affinity<'_>) -> Result<Option<EntityId>> {
        let Some(target) = reading.target else {
            return Ok(None);
        };
        for &i in reading.phrase.iter().rev() {
            if let Some(kind) = self.named_kind(reading, i)
                && !self.is_part(reading, i, affinity)
            {
                reading.target = Some(i);
                return Ok(Some(kind));
            }
        }
        // `people` and not `live`, `capitals` and not `lie`
        let named = |i: &&usize| affinity.best[**i] >= STRONG;
        if let Some(&i) = reading.phrase.iter().rev().find(named) {
            reading.target = Some(i);
        }
        let target = reading.target.unwrap_or(target);
        // a word that names a relation is asked for by that name
        if affinity.best[target] >= NAMED {
            return Ok(None);
        }
        let word = &reading.words[target].text;
        self.known.kinds.near(word, &*self.walk.encoder)
    }

    /// Whether the word for a kind is part of the name of a relation: `airport code`, but neither
    /// `countries speak` nor `country borders`.
    fn is_part(&self, reading: &Reading, i: usize, affinity: &Affinity<'_>) -> bool {
        let singular = |w: usize| !reading.words[w].text.ends_with('s');
        let next = i + 1;
        reading.phrase.contains(&next)
            && singular(i)
            && singular(next)
            && affinity.best[next] >= NAMED
    }

    fn plan(&self, telling: &Told<'_>, path: &Scored) -> Result<Plan> {
        Ok(Plan {
            topic: telling.link.entity,
            hops: path.hops(),
            // a doubtful topic makes a doubtful plan
            score: sigmoid(2.0 * path.score) * telling.link.score.clamp(0.0, 1.0).sqrt(),
            kind: self.kind_test(telling.kind.filter(|_| path.fit == Fit::Kind))?,
            ..Plan::default()
        })
    }

    fn kind_test(
        &self,
        kind: Option<EntityId>,
    ) -> Result<Option<(wherefore_graph::RelationId, EntityId)>> {
        let Some(kind) = kind else { return Ok(None) };
        let relation = self.known.kinds.relation_to(kind, self.graph)?;
        Ok(relation.map(|relation| (relation, kind)))
    }

    /// All things of the kind that is asked for.
    fn all_of_kind(&self, text: &str) -> Result<Option<Plan>> {
        let mut reading = Reading::new(text, None, &[]);
        let affinity = self.affinity(&reading)?;
        let Some(kind) = self.kind(&mut reading, &affinity)? else {
            return Ok(None);
        };
        let relation = self.known.kinds.relation_to(kind, self.graph)?;
        Ok(relation.map(|relation| Plan {
            topic: kind,
            hops: vec![Hop {
                relation,
                forward: false,
            }],
            score: ALL_OF_KIND,
            ..Plan::default()
        }))
    }

    /// The best paths from two topics to the same things.
    fn joint(&self, tellings: &[Told<'_>], alone: Option<&Plan>) -> Result<Option<Plan>> {
        let mut mentions: Vec<&Told<'_>> = Vec::new();
        for telling in tellings {
            // `War` is no second topic beside `Lord of War`
            let taken: Vec<_> = mentions.iter().filter_map(|t| t.link.span).collect();
            if telling.link.span.is_some() && !overlaps(telling.link.span, &taken) {
                mentions.push(telling);
            }
        }
        let [first, second, ..] = mentions.as_slice() else {
            return Ok(None);
        };
        let affinity = self.affinity(&first.reading)?;
        let aligner = self.aligner(&first.reading, &affinity);
        let mut ends = Vec::new();
        for (telling, other) in [(first, second), (second, first)] {
            let other = other.link.entity;
            let mut of = Vec::new();
            for path in telling.paths.iter().take(TOGETHER) {
                let plan = self.plan(telling, path)?;
                let (triples, ends, _) = follow(&plan, self.graph, MAX_ENDS)?;
                // a way over the other topic says nothing that the other does not
                let over = triples.iter().any(|t| t.head == other || t.tail == other);
                if !over || ends.contains(&other) {
                    of.push((path, ends));
                }
            }
            ends.push(of);
        }
        let mut best: Option<(f32, Plan)> = None;
        for (a, ends_a) in &ends[0] {
            for (b, ends_b) in &ends[1] {
                let mut both = ends_a.iter().filter(|e| ends_b.contains(e));
                // one of them may say no more than where: `OPEC members in South America`
                if !(a.answers || b.answers) || both.next().is_none() {
                    continue;
                }
                let fit = match (a.fit, b.fit) {
                    (Fit::Kind, Fit::Kind) => Fit::Kind,
                    (Fit::OtherKind, _) | (_, Fit::OtherKind) => Fit::OtherKind,
                    _ => Fit::Open,
                };
                let score = aligner.score_together(&[&a.steps, &b.steps], fit);
                if best.as_ref().is_some_and(|(top, _)| *top >= score) {
                    continue;
                }
                let plan = Plan {
                    also: vec![(second.link.entity, b.hops())],
                    score: sigmoid(2.0 * score),
                    ..self.plan(first, a)?
                };
                best = Some((score, plan));
            }
        }
        let least = alone.map_or(f32::NEG_INFINITY, |plan| {
            let told = first.paths.iter().chain(&second.paths);
            let single = told
                .filter(|path| path.hops() == plan.hops)
                .map(|path| aligner.score_together(&[&path.steps], path.fit));
            single.fold(f32::NEG_INFINITY, f32::max) - LEFT_OUT
        });
        Ok(best
            .filter(|(score, _)| *score >= least)
            .map(|(_, plan)| plan))
    }

    /// One of the things that the question names.
    fn versus(&self, asked: &Asked, links: &[Link], text: &str) -> Result<Option<Plan>> {
        let Some(most) = asked.extreme else {
            return Ok(None);
        };
        let mut among: Vec<(&Link, EntityId)> = Vec::new();
        for link in links.iter().filter(|link| !is_weak(link, text)) {
            let taken: Vec<_> = among.iter().filter_map(|(other, _)| other.span).collect();
            if link.span.is_some() && !overlaps(link.span, &taken) {
                among.push((link, link.entity));
            }
        }
        let things: Vec<EntityId> = among.iter().map(|(_, entity)| *entity).collect();
        let relation = self
            .known
            .attributes
            .choose(&asked.hints, &things, self.graph)?;
        let (Some(relation), [first, _, ..]) = (relation, things.as_slice()) else {
            return Ok(None);
        };
        let sure = among.iter().map(|(link, _)| link.score).fold(1.0, f32::min);
        Ok(Some(Plan {
            topic: *first,
            score: sure.clamp(0.0, 1.0),
            then: vec![Operation::Extreme {
                relation,
                most,
                places: asked.places,
            }],
            among: things,
            ..Plan::default()
        }))
    }

    /// The plan with what is then done; none where nothing can be compared as asked.
    fn measured(&self, mut plan: Plan, asked: &Asked) -> Result<Option<Plan>> {
        let (_, ends, _) = follow(&plan, self.graph, self.walk.config.max_triples)?;
        if asked.extreme.is_some() || !asked.bounds.is_empty() {
            let relation = self
                .known
                .attributes
                .choose(&asked.hints, &ends, self.graph)?;
            let Some(relation) = relation else {
                return Ok(None);
            };
            plan.then
                .extend(asked.bounds.iter().map(|bound| Operation::Keep {
                    relation,
                    comparison: bound.comparison,
                    bound: bound.number,
                }));
            plan.then
                .extend(asked.extreme.map(|most| Operation::Extreme {
                    relation,
                    most,
                    places: asked.places,
                }));
        }
        if asked.count {
            let mut values = 0;
            for &end in &ends {
                values += usize::from(value(&self.graph.entity_label(end)?).is_some());
            }
            // `how many people live in Osaka` asks for a number that the graph has
            if values * 2 <= ends.len() {
                plan.then.push(Operation::Count);
            }
        }
        Ok(Some(plan))
    }
}

/// Whether a link is a single lower-case word, which may as well be no name.
fn is_weak(link: &Link, text: &str) -> bool {
    let mention = match link.span {
        Some((from, to)) => text.get(from..to).unwrap_or(&link.mention),
        None => return false,
    };
    !mention.trim().contains(' ') && !mention.contains(|c: char| c.is_uppercase())
}

fn overlaps(span: Option<(usize, usize)>, taken: &[(usize, usize)]) -> bool {
    span.is_some_and(|(from, to)| taken.iter().any(|&(a, b)| from < b && to > a))
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;
    use crate::PipelineConfig;

    /// Five countries, three rivers, two continents, one king nowhere.
    fn world() -> MemoryGraph {
        let mut facts: Vec<(String, String, String)> = Vec::new();
        let mut add = |head: &str, relation: &str, tail: &str| {
            facts.push((head.into(), relation.into(), tail.into()));
        };
        for (name, continent, population, area, day) in [
            ("France", "Europe", "67000000", "643801", "0843-08-10"),
            ("Germany", "Europe", "83000000", "357022", "1871-01-18"),
            ("Austria", "Europe", "8800000", "83871", "1918-11-12"),
            ("Switzerland", "Europe", "8500000", "41277", "1291-08-01"),
            ("Kenya", "Africa", "51000000", "580367", "1963-12-12"),
        ] {
            add(name, "type", "country");
            add(name, "continent", continent);
            add(name, "population", population);
            add(name, "area", area);
            add(name, "independence_date", day);
        }
        for (a, b) in [
            ("France", "Germany"),
            ("France", "Switzerland"),
            ("Germany", "Switzerland"),
            ("Germany", "Austria"),
            ("Austria", "Switzerland"),
        ] {
            add(a, "borders", b);
            add(b, "borders", a);
        }
        for (river, length, through) in [
            ("Rhine", "1230", "Germany"),
            ("Danube", "2850", "Germany"),
            ("Seine", "777", "France"),
        ] {
            add(river, "type", "river");
            add(river, "length", length);
            add(river, "flows_through", through);
        }
        add("Danube", "flows_through", "Austria");
        add("Nairobi", "type", "city");
        add("Nairobi", "country", "Kenya");
        add("Kenya", "capital", "Nairobi");
        for continent in ["Europe", "Africa"] {
            add(continent, "type", "continent");
        }
        MemoryGraph::from_names(facts)
    }

    fn answers(question: &str) -> Vec<String> {
        let pipeline = PipelineConfig::default().build().unwrap();
        let answer = pipeline
            .answer(&Question::new(question), &world(), &mut ())
            .unwrap();
        let mut names: Vec<String> = answer.answers.into_iter().map(|a| a.name).collect();
        names.sort();
        names
    }

    #[test]
    fn kinds_topics_and_relations_lead_to_what_is_asked_for() {
        for (question, names) in [
            (
                "Which rivers flow through Germany?",
                vec!["Danube", "Rhine"],
            ),
            ("What is the capital of Kenya?", vec!["Nairobi"]),
            (
                "Which countries border both France and Austria?",
                vec!["Germany", "Switzerland"],
            ),
            (
                "Which rivers flow through Germany and Austria?",
                vec!["Danube"],
            ),
        ] {
            assert_eq!(answers(question), names, "{question}");
        }
    }

    #[test]
    fn things_are_counted_compared_and_ranked() {
        for (question, names) in [
            ("How many countries are in Europe?", vec!["4"]),
            ("How many rivers are there?", vec!["3"]),
            ("How many people live in Kenya?", vec!["51000000"]),
            ("What is the longest river in Germany?", vec!["Danube"]),
            (
                "Which country in Europe has the smallest area?",
                vec!["Switzerland"],
            ),
            ("Which is longer, the Rhine or the Seine?", vec!["Rhine"]),
            (
                "Which countries in Europe have more than 50 million inhabitants?",
                vec!["France", "Germany"],
            ),
            (
                "Which countries became independent after 1900?",
                vec!["Austria", "Kenya"],
            ),
        ] {
            assert_eq!(answers(question), names, "{question}");
        }
    }

    #[test]
    fn what_no_path_leads_to_is_refused() {
        for question in [
            "Who is the king of Kenya?",
            "What is the unemployment rate of Germany?",
            "Which volcanoes are in Germany?",
            "What is the deepest river in Germany?",
        ] {
            assert_eq!(answers(question), [""; 0], "{question}");
        }
    }
}
