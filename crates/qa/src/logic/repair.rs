//! Repairs the names of a form that a model wrote: the structure stays, names become the graph's.
//!
//! AMAR, section on execution:
//!
//! ```text
//! entity    → labels of the graph that are like it: cosine ≥ θ, best first
//! relation  → relations within two steps of those entities, by cosine, best first
//! form      → all combinations, best mean of cosines first; the first that comes to something
//! ```
//!
//! θ is `threshold`. A name that the graph has stays the first choice. Entities are looked for by
//! the linker, which knows misspelt and partial names, and among those given (the retrieved
//! ones); relations everywhere where no entity is known.

use std::cmp::Ordering;

use wherefore_graph::{EntityId, Graph, NameMatch, RelationId};
use wherefore_model::Encoder;
use wherefore_model::vector::dot;

use super::aspects::near;
use super::called::{entity_name, relation_name};
use super::form::Form;
use super::plan::{Plan, relation_called};
use super::run::{Outcome, RunLimits, run};
use super::value::Moment;
use crate::error::{Error, Result};
use crate::link::{Link, Linker};
use crate::question::Question;
use crate::words::opened;

/// Settings of [`Repairer::repaired`].
#[derive(Clone, Debug, PartialEq)]
pub struct RepairConfig {
    /// Least cosine of an entity's name and its label.
    pub threshold: f32,
    /// Labels tried for one name.
    pub entities: usize,
    /// Relations tried for one name.
    pub relations: usize,
    /// Forms given, at most.
    pub forms: usize,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self {
            threshold: 0.6,
            entities: 3,
            relations: 5,
            forms: 32,
        }
    }
}

/// What names are matched with.
pub struct Repairer<'a> {
    /// Finds names that are nearly right.
    pub linker: &'a dyn Linker,
    /// Compares names.
    pub encoder: &'a dyn Encoder,
    /// Entities that were retrieved for the question.
    pub entities: &'a [EntityId],
    /// How far it goes.
    pub config: RepairConfig,
}

/// A choice for each name of a form, and how like the names they are.
type Choices = Vec<(String, f32)>;

impl Repairer<'_> {
    /// The form with names of the graph, best first. Empty where a name has no counterpart.
    pub fn repaired(&self, form: &Form, graph: &dyn Graph) -> Result<Vec<(Form, f32)>> {
        let mut names: Vec<&str> = form.names();
        names.sort_unstable();
        names.dedup();
        let mut around: Vec<EntityId> = Vec::new();
        let mut entities: Vec<(String, Choices)> = Vec::new();
        for name in names {
            let found = self.entity(name, graph)?;
            around.extend(found.iter().map(|(e, _)| *e));
            let mut choices = Choices::new();
            for (entity, score) in found {
                choices.push((entity_name(entity, graph)?, score));
            }
            entities.push((name.to_owned(), choices));
        }
        if around.is_empty() {
            around.extend(self.entities);
        }
        let mut relations: Vec<(String, Choices)> = Vec::new();
        let mut named: Vec<&str> = form.relations().iter().map(|r| r.name.as_str()).collect();
        named.sort_unstable();
        named.dedup();
        for name in named {
            relations.push((name.to_owned(), self.relation(name, &around, graph)?));
        }
        Ok(self.combined(form, &entities, &relations))
    }

    /// The first of some forms, repaired where they must be, that comes to something.
    pub fn first_that_runs(
        &self,
        forms: &[Form],
        graph: &dyn Graph,
        now: Moment,
        limits: &RunLimits,
    ) -> Result<Option<(Form, Plan, Outcome)>> {
        for form in forms {
            for (repaired, _) in self.repaired(form, graph)? {
                let plan = Plan::new(&repaired, graph, now)?;
                match run(&plan, graph, limits) {
                    Ok(outcome) if !outcome.is_empty() => {
                        return Ok(Some((repaired, plan, outcome)));
                    }
                    Ok(_) | Err(Error::FormTooLarge { .. } | Error::FormNames { .. }) => {}
                    Err(error) if error.code() == "out-of-time" => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }

    fn entity(&self, name: &str, graph: &dyn Graph) -> Result<Vec<(EntityId, f32)>> {
        let mut found: Vec<(EntityId, f32)> = Vec::new();
        for how in [NameMatch::Exact, NameMatch::Normalised] {
            if found.is_empty() {
                let same = graph.entities_named(name, how)?;
                found.extend(same.into_iter().map(|entity| (entity, 1.0)));
            }
        }
        if found.is_empty() {
            let mut candidates = self.entities.to_vec();
            let question = Question::new(name);
            if question.check().is_ok() {
                for mention in self.linker.mentions(&question, graph)? {
                    candidates.extend(mention.candidates.iter().map(|c| c.entity));
                }
            }
            candidates.sort_unstable();
            candidates.dedup();
            let mut labels = vec![name.to_owned()];
            for &candidate in &candidates {
                labels.push(graph.entity_label(candidate)?.into_owned());
            }
            let similar = self.similar(&labels)?;
            found.extend(candidates.into_iter().zip(similar));
            found.retain(|(_, score)| *score >= self.config.threshold);
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(self.config.entities);
        Ok(found)
    }

    fn relation(&self, name: &str, around: &[EntityId], graph: &dyn Graph) -> Result<Choices> {
        let links: Vec<Link> = around
            .iter()
            .map(|&entity| Link {
                entity,
                mention: String::new(),
                span: None,
                score: 1.0,
            })
            .collect();
        let mut candidates: Vec<RelationId> = match links.is_empty() {
            true => (0..graph.relation_bound() as u32).map(RelationId).collect(),
            false => near(0, &links, graph)?
                .into_iter()
                .map(|(_, relation, _)| RelationId(relation))
                .collect(),
        };
        let own = relation_called(name, graph)?;
        candidates.retain(|r| Some(*r) != own && !graph.naming_relations().contains(r));
        let mut labels = vec![opened(name)];
        for &candidate in &candidates {
            labels.push(opened(&graph.relation_label(candidate)?));
        }
        let mut rated: Vec<(RelationId, f32)> =
            candidates.into_iter().zip(self.similar(&labels)?).collect();
        rated.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rated.truncate(
            self.config
                .relations
                .saturating_sub(usize::from(own.is_some())),
        );
        let mut choices = Choices::new();
        for (relation, score) in own.map(|own| (own, 1.0)).into_iter().chain(rated) {
            choices.push((relation_name(relation, graph)?, score));
        }
        Ok(choices)
    }

    /// The cosines of the first text with all others.
    fn similar(&self, texts: &[String]) -> Result<Vec<f32>> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let rows = self.encoder.encode(&texts)?;
        Ok((1..rows.len())
            .map(|i| dot(rows.row(0), rows.row(i)))
            .collect())
    }

    fn combined(
        &self,
        form: &Form,
        entities: &[(String, Choices)],
        relations: &[(String, Choices)],
    ) -> Vec<(Form, f32)> {
        // the best few combinations of the names so far, by their sums
        let mut open: Vec<(Vec<usize>, f32)> = vec![(Vec::new(), 0.0)];
        let all: Vec<&(String, Choices)> = entities.iter().chain(relations).collect();
        for (_, choices) in &all {
            let mut next = Vec::new();
            for (chosen, sum) in &open {
                for (i, (_, score)) in choices.iter().enumerate() {
                    let mut chosen = chosen.clone();
                    chosen.push(i);
                    next.push((chosen, sum + score));
                }
            }
            next.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal));
            next.truncate(self.config.forms);
            open = next;
        }
        let count = all.len().max(1) as f32;
        open.into_iter()
            .map(|(chosen, sum)| {
                let pick = |from: usize, table: &[(String, Choices)], name: &str| {
                    let place = table.iter().position(|(n, _)| n == name);
                    let picked = place.and_then(|p| table[p].1.get(chosen[from + p]));
                    picked.map_or_else(|| name.to_owned(), |(name, _)| name.clone())
                };
                let new = form.renamed(&mut |name| pick(0, entities, name), &mut |name| {
                    pick(entities.len(), relations, name)
                });
                (new, sum / count)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::toy;
    use wherefore_model::encode;

    use super::*;
    use crate::link::{Names, NamesConfig};

    fn first(text: &str) -> Option<String> {
        let graph = toy::graph();
        let linker = Names::new(NamesConfig::default()).unwrap();
        let encoder = encode::open("static").unwrap();
        let repairer = Repairer {
            linker: &linker,
            encoder: &*encoder,
            entities: &[],
            config: RepairConfig::default(),
        };
        let form: Form = text.parse().unwrap();
        let limits = RunLimits::default();
        let found = repairer
            .first_that_runs(&[form], &graph, Moment::now(), &limits)
            .unwrap();
        found.map(|(form, ..)| form.to_string())
    }

    #[test]
    fn names_are_mended_and_the_structure_stays() {
        // a form that is right stays as it is
        let right = "(JOIN (R plays_in) [San Francisco Giants])";
        assert_eq!(first(right).as_deref(), Some(right));
        // misspelt, and a relation that the graph calls otherwise
        assert_eq!(
            first("(JOIN (R coach) [San Fransisco Giants])").as_deref(),
            Some("(JOIN (R coached_by) [San Francisco Giants])")
        );
        // the relation is there, but leads nowhere from here: one within two steps does
        assert!(
            first("(JOIN (R lost) [Lou Seal])").is_some_and(|f| f != "(JOIN (R lost) [Lou Seal])")
        );
        assert_eq!(first("(JOIN (R won) [Quetzalcoatl])"), None);
    }
}
