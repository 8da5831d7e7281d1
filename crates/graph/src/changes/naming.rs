//! Names that changed: which entities have another label than in the files, and which are filed
//! under other names.
//!
//! An entity is filed under its own text if it has no label and its text tells people something;
//! a literal is filed if it is short, or if something is called so. Its text never changes, so all
//! that a change can do is to file an entity that the files do not file, or to hide one that they
//! do.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Changes;
use crate::base::{Base, LONGEST_VALUE};
use crate::error::Result;
use crate::graph::{EntityId, RelationId};
use crate::key;
use crate::load::naming::{ALIASES, LABELS, label_rank};
use crate::names::normalise;
use crate::shape::{is_unnamed_key, readable_key};

/// What differs from the files in names.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    /// Relations that give labels, best first.
    pub(crate) labels: Vec<RelationId>,
    /// Those and the ones that give aliases, sorted.
    pub(crate) relations: Vec<RelationId>,
    /// The labels of entities that a change touched.
    relabelled: HashMap<EntityId, Option<EntityId>>,
    /// Filed here and not in the files, by normalised name.
    pub(crate) filed: BTreeMap<String, BTreeSet<EntityId>>,
    /// Filed in the files, and not any more.
    pub(crate) hidden: HashSet<EntityId>,
}

impl Naming {
    pub(super) fn of(base: &Base) -> Self {
        Self {
            labels: base.label_relations.clone(),
            relations: base.naming_relations.clone(),
            relabelled: HashMap::new(),
            filed: BTreeMap::new(),
            hidden: HashSet::new(),
        }
    }

    /// A relation that is new: perhaps it is one of those that give names.
    pub(super) fn add_relation(
        &mut self,
        base: &Base,
        relation: RelationId,
        key: &[u8],
        new: &[Arc<[u8]>],
    ) -> Result<()> {
        let known = |key: &[u8], list: &[&str]| {
            let iri = key.strip_prefix(&[key::IRI])?;
            list.iter().position(|known| known.as_bytes() == iri)
        };
        if let Some(rank) = known(key, &LABELS) {
            // where a load would put it: after those that were given, in the order of the list
            let mut place = self.labels.len();
            let mut bytes = Vec::new();
            for (i, other) in self.labels.iter().enumerate().rev() {
                match new.get(other.index().wrapping_sub(base.relations())) {
                    Some(key) => bytes = key.to_vec(),
                    None => base.shape.relation_key(*other, &mut bytes)?,
                }
                if known(&bytes, &LABELS).is_some_and(|other| other > rank) {
                    place = i;
                }
            }
            self.labels.insert(place, relation);
        } else if known(key, &ALIASES).is_none() {
            return Ok(());
        }
        if let Err(place) = self.relations.binary_search(&relation) {
            self.relations.insert(place, relation);
        }
        Ok(())
    }

    /// Entities whose labels were looked up again.
    pub(crate) fn relabelled(&self) -> impl Iterator<Item = EntityId> + '_ {
        self.relabelled.keys().copied()
    }
}

impl Changes {
    /// The entity that is the label of this one.
    pub(crate) fn label(&self, base: &Base, entity: EntityId) -> Result<Option<EntityId>> {
        match self.naming.relabelled.get(&entity) {
            Some(label) => Ok(*label),
            None => base.label(entity),
        }
    }

    /// The text of an entity without its label, made readable.
    pub(crate) fn own_name(&self, base: &Base, entity: EntityId) -> Result<String> {
        let mut bytes = Vec::new();
        self.key(base, entity, &mut bytes)?;
        readable_key(&bytes).ok_or_else(|| base.shape.damaged_text())
    }

    /// Whether the entity stands in the index of names.
    fn is_filed(&self, base: &Base, entity: EntityId) -> Result<bool> {
        if self.degree(base, entity)? == 0 {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        self.key(base, entity, &mut bytes)?;
        if !self.is_literal(base, entity) {
            return Ok(self.label(base, entity)?.is_none() && !is_unnamed_key(&bytes));
        }
        if bytes.len() <= LONGEST_VALUE {
            return Ok(true);
        }
        for &relation in &self.naming.relations {
            if !(self.run(base, entity, relation, false)?).is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The best label of an entity: by language, then by relation, then in order of the labels.
    fn best_label(&self, base: &Base, entity: EntityId) -> Result<Option<EntityId>> {
        let mut best: Option<(u8, Vec<u8>, EntityId)> = None;
        for &relation in &self.naming.labels {
            let mut of_relation: Option<(u8, Vec<u8>, EntityId)> = None;
            for edge in self.run(base, entity, relation, true)?.iter() {
                let mut bytes = Vec::new();
                self.key(base, edge.entity, &mut bytes)?;
                if let Some(rank) = label_rank(&bytes, &base.manifest.language) {
                    let found = (rank, bytes, edge.entity);
                    if of_relation.as_ref().is_none_or(|known| found < *known) {
                        of_relation = Some(found);
                    }
                }
            }
            if let Some(found) = of_relation
                && best.as_ref().is_none_or(|known| found.0 < known.0)
            {
                best = Some(found);
            }
        }
        Ok(best.map(|(.., entity)| entity))
    }

    /// Looks the names of entities up again whose triples changed.
    pub(super) fn rename(&mut self, base: &Base, touched: &[EntityId]) -> Result<()> {
        for &entity in touched {
            let label = self.best_label(base, entity)?;
            self.naming.relabelled.insert(entity, label);
        }
        for &entity in touched {
            let in_files = entity.index() < base.entities();
            let was = in_files && base.is_filed(entity)?;
            let now = self.is_filed(base, entity)?;
            let name = normalise(&self.own_name(base, entity)?);
            if now && !was {
                self.naming.filed.entry(name).or_default().insert(entity);
            } else if let Some(same) = self.naming.filed.get_mut(&name) {
                same.remove(&entity);
                if same.is_empty() {
                    self.naming.filed.remove(&name);
                }
            }
            match was && !now {
                true => self.naming.hidden.insert(entity),
                false => self.naming.hidden.remove(&entity),
            };
        }
        Ok(())
    }
}
