//! What a service counts for us: how often each relation occurs, what classes there are, and
//! between which of them a relation stands.
//!
//! A relation is summarised by its first triples, because reading all of them is a burden on a
//! public service. With a label index the counts are stored beside it (`summary.json`), and the
//! service is not queried again until `wherefore index` rebuilds the index.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::{Service, lock};
use crate::error::{Error, Result};
use crate::file::atomic_write;
use crate::graph::{EntityId, Graph, RelationId, Term};
use crate::key;

/// Triples per relation whose tails are sampled (guess).
const TAILS_OF: usize = 100;
/// Relations that are summarised, those with the most triples, and classes (guesses).
const MAX_RELATIONS: usize = 400;
const CLASSES_READ: usize = 200;
/// Instances per class that are sampled (guess).
const THINGS_OF: u64 = 40;
/// Classes that are listed (guess).
const MAX_CLASSES: usize = 20_000;
/// Relations of a graph without classes whose sides are looked at; with more, none is (guess).
const SIDES_OF: usize = 300;
/// Triples per relation whose heads and tails count, and how many of these are sampled, as in a store.
const SIDE_TRIPLES: usize = 4000;
const SIDE_THINGS: usize = 64;
/// Maximum bytes of the summary file.
const LONGEST_FILE: u64 = 64 << 20;
/// The file beside a label index.
pub(super) const FILE: &str = "summary.json";

/// What a service counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The day when it was counted, as `2026-11-18`.
    #[serde(default)]
    pub date: String,
    /// Classes with how many things are of each, by the relation that says so; all by their IRIs.
    pub classes: BTreeMap<String, Vec<(String, u64)>>,
    /// The relations, by their IRIs.
    pub relations: BTreeMap<String, RelationSummary>,
    /// The largest classes, by their IRIs: what some things of each have to do with.
    pub around: BTreeMap<String, Vec<Around>>,
}

/// A relation of some things of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Around {
    /// The relation, by its IRI.
    pub relation: String,
    /// Whether they are heads of it.
    pub forward: bool,
    /// The class at the other end, by its IRI.
    pub class: Option<String>,
    /// How many triples each has of it, on average.
    pub each: f32,
}

/// What a service counted of one relation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationSummary {
    /// Its triples; none where the service does not count them.
    pub triples: Option<u64>,
    /// Tails of the first of them, as N-Triples writes them.
    pub tails: Vec<String>,
    /// Classes of head and tail, by their IRIs, with how many of the first triples join such.
    pub joined: Vec<ClassPair>,
    /// Where things have no classes: what the heads have in common, and the tails.
    #[serde(default)]
    pub sides: Option<[SideSummary; 2]>,
}

/// What things on one side of a relation have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideSummary {
    /// How many things there are among the first triples.
    pub things: usize,
    /// Relations of some of them by their IRIs, whether they are heads of it, and the share that has it.
    pub steps: Vec<(String, bool, f32)>,
    /// The names of these.
    pub names: Vec<String>,
}

/// Classes of head and tail, where these have some, and a number of triples.
type ClassPair = (Option<String>, Option<String>, u64);

impl Summary {
    /// Triples of a relation whose classes are looked at.
    pub const LOOKED_AT: usize = 2000;

    /// Whether most things have a class: the heads of the triples that were looked at.
    pub fn has_classes(&self) -> bool {
        let (mut typed, mut all) = (0u64, 0u64);
        for (head, _, triples) in self.joined() {
            all = all.saturating_add(*triples);
            typed = typed.saturating_add(if head.is_some() { *triples } else { 0 });
        }
        typed > all / 2
    }

    /// Classes of head and tail, of every relation.
    pub fn joined(&self) -> impl Iterator<Item = &ClassPair> {
        self.relations.values().flat_map(|of| &of.joined)
    }
}

impl Service {
    /// Counts classes and relations, or reads what was counted before; `typed_by` are the
    /// relations that join a thing to its class, `today` is kept as its date.
    pub fn summary(&self, typed_by: &[RelationId], today: &str) -> Result<Summary> {
        let file = self.summary_file();
        if let Some(summary) = file.as_deref().map(read).transpose()?.flatten() {
            return Ok(summary);
        }
        let missed = AtomicBool::new(false);
        // done once, and not a question's cost
        let counted = self.outside_budget(|service| service.summarise(typed_by, &missed))?;
        let summary = Summary {
            date: today.to_owned(),
            ..counted
        };
        if let Some(path) = file.filter(|_| !missed.load(Ordering::Relaxed)) {
            // who may only read the index counts each time
            let _ = write(&path, &summary);
        }
        Ok(summary)
    }

    fn summary_file(&self) -> Option<PathBuf> {
        Some(self.names.as_ref()?.path().join(FILE))
    }

    /// The number of an IRI.
    pub fn entity_iri(&self, iri: &str) -> Result<EntityId> {
        let mut bytes = Vec::new();
        key::push_iri(&mut bytes, iri);
        self.intern(&bytes)
    }

    /// `missed` says whether the service was silent once, so that the next time is worth a try.
    fn summarise(&self, typed_by: &[RelationId], missed: &AtomicBool) -> Result<Summary> {
        let counts = self.count_relations(missed)?;
        let types: Vec<&str> = (typed_by.iter())
            .filter_map(|r| self.relations.iris.get(r.index()))
            .map(String::as_str)
            .collect();
        let mut classes = BTreeMap::new();
        for iri in &types {
            classes.insert((*iri).to_owned(), self.count_classes(iri, missed)?);
        }
        let says = |id: &usize| {
            let relation = RelationId(*id as u32);
            !self.relations.naming.contains(&relation) && !typed_by.contains(&relation)
        };
        let mut summarised: Vec<usize> = (0..self.relations.iris.len()).filter(says).collect();
        summarised
            .sort_by_key(|&id| std::cmp::Reverse(counts.get(self.relations.iris[id].as_str())));
        summarised.truncate(MAX_RELATIONS);
        let found = Mutex::new(BTreeMap::new());
        self.each_task(&summarised, |&id| {
            let iri = &self.relations.iris[id];
            let summary = RelationSummary {
                triples: None,
                tails: self.some_tails(iri)?,
                joined: match types.is_empty() {
                    true => Vec::new(),
                    false => self.joined_classes(iri, &types, missed)?,
                },
                sides: None,
            };
            lock(&found).insert(iri.clone(), summary);
            Ok(())
        })?;
        let mut relations = std::mem::take(&mut *lock(&found));
        for iri in &self.relations.iris {
            let known = relations.entry(iri.clone()).or_default();
            known.triples = counts.get(iri.as_str()).copied();
        }
        let mut largest: Vec<(&str, &(String, u64))> = (classes.iter())
            .flat_map(|(by, of)| of.iter().map(|class| (by.as_str(), class)))
            .collect();
        largest.sort_by_key(|(_, (iri, things))| (std::cmp::Reverse(*things), iri));
        largest.truncate(CLASSES_READ);
        let found = Mutex::new(BTreeMap::new());
        self.each_task(&largest, |(by, (class, things))| {
            let looked_at = things.clamp(&1, &THINGS_OF);
            let mut around = self.around(class, by, &types, true, missed)?;
            around.extend(self.around(class, by, &types, false, missed)?);
            for of in &mut around {
                of.each /= *looked_at as f32;
            }
            lock(&found).insert(class.clone(), around);
            Ok(())
        })?;
        let around = std::mem::take(&mut *lock(&found));
        let mut summary = Summary {
            classes,
            relations,
            around,
            ..Summary::default()
        };
        if !summary.has_classes() && summarised.len() <= SIDES_OF {
            self.add_sides(&summarised, &mut summary, missed)?;
        }
        Ok(summary)
    }

    fn add_sides(
        &self,
        relations: &[usize],
        summary: &mut Summary,
        missed: &AtomicBool,
    ) -> Result<()> {
        let found = Mutex::new(Vec::new());
        self.each_task(relations, |&id| {
            let iri = &self.relations.iris[id];
            let sides = [
                self.side(iri, true, missed)?,
                self.side(iri, false, missed)?,
            ];
            lock(&found).push((iri, sides));
            Ok(())
        })?;
        for (iri, sides) in std::mem::take(&mut *lock(&found)) {
            summary.relations.entry(iri.clone()).or_default().sides = Some(sides);
        }
        Ok(())
    }

    /// What the heads of a relation have in common, or its tails.
    fn side(&self, relation: &str, heads: bool, missed: &AtomicBool) -> Result<SideSummary> {
        let pattern = match heads {
            true => format!("?x <{relation}> ?y"),
            false => format!("?y <{relation}> ?x"),
        };
        let query = format!(
            "SELECT DISTINCT ?x WHERE {{ \
             {{ SELECT ?x WHERE {{ {pattern} FILTER(isIRI(?x)) }} LIMIT {SIDE_TRIPLES} }} }}"
        );
        let mut things: Vec<String> = Vec::new();
        for mut row in self.replied(&query, SIDE_TRIPLES, missed)? {
            if let Some(Some(oxrdf::Term::NamedNode(node))) = row.pop() {
                things.push(node.into_string());
            }
        }
        things.sort_unstable();
        let stride = things.len().div_ceil(SIDE_THINGS).max(1);
        let some: Vec<&String> = things.iter().step_by(stride).collect();
        if some.is_empty() {
            return Ok(SideSummary::default());
        }
        let values: String = some.iter().map(|iri| format!("<{iri}> ")).collect();
        let mut steps = Vec::new();
        for (forward, pattern) in [(true, "?s ?p ?o"), (false, "?o ?p ?s")] {
            let query = format!(
                "SELECT ?p (COUNT(DISTINCT ?s) AS ?n) WHERE {{ VALUES ?s {{ {values}}} {pattern} {} }} \
                 GROUP BY ?p",
                self.seen("?o"),
            );
            let rows = self.counted(&query, self.relations.iris.len().max(1), missed)?;
            let share = |n: u64| n as f32 / some.len() as f32;
            steps.extend(each(rows).map(|(iri, n)| (iri, forward, share(n))));
        }
        let ids: Vec<EntityId> = (some.iter())
            .map(|iri| self.entity_iri(iri))
            .collect::<Result<_>>()?;
        let names = match self.fetch_all(&[], &ids) {
            Err(error) if gave_up(&error, missed) => Vec::new(),
            fetched => {
                fetched?;
                let name = |&id: &EntityId| self.entity_label(id).map(Cow::into_owned);
                ids.iter().map(name).collect::<Result<_>>()?
            }
        };
        Ok(SideSummary {
            things: things.len(),
            steps,
            names,
        })
    }

    /// What some things of a class have to do with, as heads or as tails, all of them together.
    fn around(
        &self,
        class: &str,
        typed_by: &str,
        types: &[&str],
        forward: bool,
        missed: &AtomicBool,
    ) -> Result<Vec<Around>> {
        let pattern = match forward {
            true => "?s ?p ?o",
            false => "?o ?p ?s",
        };
        let query = format!(
            "SELECT ?p ?b (COUNT(*) AS ?n) WHERE {{ \
             {{ SELECT ?s WHERE {{ ?s <{typed_by}> <{class}> FILTER(!isBlank(?s)) }} LIMIT {THINGS_OF} }} \
             {pattern} {} {} }} GROUP BY ?p ?b",
            self.seen("?o"),
            class_of("?o", "?b", types),
        );
        let rows = self.counted(&query, 8000, missed)?;
        Ok(rows
            .into_iter()
            .filter_map(|(terms, n)| {
                let [relation, class] = terms.try_into().ok()?;
                Some(Around {
                    relation: relation?,
                    forward,
                    class,
                    each: n as f32,
                })
            })
            .collect())
    }

    /// Triples of each relation; none where the service finds that too much to count.
    fn count_relations(&self, missed: &AtomicBool) -> Result<HashMap<String, u64>> {
        let query = "SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p";
        let rows = self.counted(query, self.relations.iris.len().max(1), missed)?;
        Ok(each(rows).collect())
    }

    fn count_classes(&self, relation: &str, missed: &AtomicBool) -> Result<Vec<(String, u64)>> {
        let query = format!(
            "SELECT ?c (COUNT(*) AS ?n) WHERE {{ ?s <{relation}> ?c FILTER(isIRI(?c)) }} \
             GROUP BY ?c LIMIT {MAX_CLASSES}"
        );
        let rows = self.counted(&query, MAX_CLASSES, missed)?;
        Ok(each(rows).collect())
    }

    fn joined_classes(
        &self,
        relation: &str,
        types: &[&str],
        missed: &AtomicBool,
    ) -> Result<Vec<ClassPair>> {
        let query = format!(
            "SELECT ?a ?b (COUNT(*) AS ?n) WHERE {{ \
             {{ SELECT ?s ?o WHERE {{ ?s <{relation}> ?o FILTER(!isBlank(?s) && !isBlank(?o)) }} LIMIT {} }} \
             {} {} }} GROUP BY ?a ?b",
            Summary::LOOKED_AT,
            class_of("?s", "?a", types),
            class_of("?o", "?b", types),
        );
        let rows = self.counted(&query, 4 * Summary::LOOKED_AT, missed)?;
        Ok(rows
            .into_iter()
            .filter_map(|(terms, n)| {
                let [a, b] = terms.try_into().ok()?;
                Some((a, b, n))
            })
            .collect())
    }

    fn some_tails(&self, relation: &str) -> Result<Vec<String>> {
        let query = format!(
            "SELECT ?o WHERE {{ ?s <{relation}> ?o FILTER(!isBlank(?o) && (isIRI(?o) || STRLEN(STR(?o)) <= 200)) }} LIMIT {TAILS_OF}"
        );
        let rows = match self.client.select(&query, TAILS_OF) {
            Err(Error::ServiceGaveUp { .. }) => Vec::new(),
            reply => reply?.rows,
        };
        let tails = rows.iter().filter_map(|row| row.first()?.as_ref());
        Ok(tails.map(ToString::to_string).collect())
    }

    /// The rows of a query; none of one that is too much for the service, or not answered in time.
    fn replied(
        &self,
        query: &str,
        limit: usize,
        missed: &AtomicBool,
    ) -> Result<Vec<Vec<Option<oxrdf::Term>>>> {
        match self.client.select(query, limit) {
            Err(error) if gave_up(&error, missed) => Ok(Vec::new()),
            reply => Ok(reply?.rows),
        }
    }

    /// Rows whose last column is a number and whose others are IRIs or nothing.
    fn counted(&self, query: &str, limit: usize, missed: &AtomicBool) -> Result<Vec<CountRow>> {
        let replied = self.replied(query, limit, missed)?;
        let mut rows = Vec::with_capacity(replied.len());
        for mut row in replied {
            let Some(Some(oxrdf::Term::Literal(n))) = row.pop() else {
                // a group of nothing
                continue;
            };
            let Ok(n) = n.value().parse::<u64>() else {
                return Err(self.client.bad_reply("a count is not a number"));
            };
            let iri = |term: Option<oxrdf::Term>| match term {
                Some(oxrdf::Term::NamedNode(node)) => Some(node.into_string()),
                _ => None,
            };
            rows.push((row.into_iter().map(iri).collect(), n));
        }
        Ok(rows)
    }
}

/// Whether a service was asked for too much or did not answer; `missed` says that it may another time.
fn gave_up(error: &Error, missed: &AtomicBool) -> bool {
    match error {
        // silent or busy
        Error::ServiceUnreachable { .. }
        | Error::ServiceRefused {
            status: 408 | 429 | 502..=504,
            ..
        } => {
            missed.store(true, Ordering::Relaxed);
            true
        }
        Error::ServiceRefused { status: 500.., .. } | Error::ServiceGaveUp { .. } => true,
        _ => false,
    }
}

/// A row of IRIs, where it has some, and its number.
type CountRow = (Vec<Option<String>>, u64);

/// Rows of one IRI.
fn each(rows: Vec<CountRow>) -> impl Iterator<Item = (String, u64)> {
    let rows = rows.into_iter();
    rows.filter_map(|(mut terms, n)| Some((terms.pop()??, n)))
}

/// The classes of something, where it has some.
fn class_of(of: &str, class: &str, types: &[&str]) -> String {
    let any = types.iter().map(|t| format!("{{ {of} <{t}> {class} }}"));
    let any: Vec<String> = any.collect();
    format!("OPTIONAL {{ {} }}", any.join(" UNION "))
}

fn read(path: &Path) -> Result<Option<Summary>> {
    let Ok(about) = std::fs::metadata(path) else {
        return Ok(None);
    };
    if about.len() > LONGEST_FILE {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
    // what cannot be read is counted again
    Ok(serde_json::from_str(&text).ok())
}

fn write(path: &Path, summary: &Summary) -> Result<()> {
    let text = serde_json::to_string(summary).unwrap_or_default();
    let temporary = path.with_extension(format!("json.{}", std::process::id()));
    atomic_write(path, &temporary, text.as_bytes())
}

impl RelationSummary {
    /// Its tails as terms.
    pub fn terms(&self) -> impl Iterator<Item = Term> + '_ {
        self.tails.iter().filter_map(|text| {
            let term = oxrdf::Term::from_str(text).ok()?;
            let mut bytes = Vec::new();
            key::push_object(&mut bytes, term.as_ref(), 0);
            key::decode(&bytes)
        })
    }
}
