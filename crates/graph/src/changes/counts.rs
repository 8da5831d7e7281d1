//! What a changed graph holds: the counts of its files, and what came and went since.

use std::collections::BTreeSet;

use super::Changes;
use crate::base::Base;
use crate::error::Result;
use crate::graph::EntityId;
use crate::manifest::Counts;
use crate::shape::is_unnamed_key;

impl Changes {
    /// What the graph holds.
    pub(crate) fn counts<'a>(&'a self, base: &'a Base) -> &'a Counts {
        if self.is_empty() {
            return &base.manifest.counts;
        }
        // a file that cannot be read is told by whoever reads it for its content
        self.counts.get_or_init(|| {
            self.count(base)
                .unwrap_or_else(|_| base.manifest.counts.clone())
        })
    }

    fn count(&self, base: &Base) -> Result<Counts> {
        let mut counts = base.manifest.counts.clone();
        let (added, removed) = self.balance();
        counts.triples = balanced(counts.triples, added, removed);
        let changed: BTreeSet<EntityId> =
            (self.outgoing.keys().chain(self.incoming.keys()).copied())
                .chain(self.naming.relabelled())
                .collect();
        let mut bytes = Vec::new();
        for &entity in &changed {
            let in_files = entity.index() < base.entities();
            let is_there = self.degree(base, entity)? > 0;
            self.key(base, entity, &mut bytes)?;
            let unnamed = is_unnamed_key(&bytes);
            let was_unnamed = in_files && unnamed && base.label(entity)?.is_none();
            let now_unnamed = is_there && unnamed && self.label(base, entity)?.is_none();
            let step = |count: &mut u64, was: bool, now: bool| {
                *count = balanced(*count, now.into(), was.into());
            };
            step(&mut counts.entities, in_files, is_there);
            step(&mut counts.unnamed, was_unnamed, now_unnamed);
            if self.is_literal(base, entity) {
                step(&mut counts.literals, in_files, is_there);
            }
            if self.is_blank(base, entity) {
                step(&mut counts.blanks, in_files, is_there);
            }
        }
        for (&relation, patch) in &self.by_relation {
            let in_files = match relation.index() < base.relations() {
                true => base.shape.places(relation)?.len(),
                false => 0,
            };
            let in_files = in_files as u64;
            let (added, removed) = (patch.added.len() as u64, patch.removed.len() as u64);
            let now = balanced(in_files, added, removed);
            counts.relations = balanced(counts.relations, (now > 0).into(), (in_files > 0).into());
            if self.naming.relations.binary_search(&relation).is_ok() {
                counts.naming = balanced(counts.naming, now, in_files);
            }
        }
        Ok(counts)
    }
}

/// A count with what came and went. Files that were tampered with may have fewer than went.
fn balanced(count: u64, came: u64, went: u64) -> u64 {
    count.saturating_add(came).saturating_sub(went)
}

#[cfg(test)]
mod tests {
    use super::balanced;

    #[test]
    fn a_count_goes_neither_below_nothing_nor_beyond_the_most() {
        assert_eq!(balanced(5, 2, 3), 4);
        assert_eq!(balanced(1, 0, 2), 0);
        assert_eq!(balanced(u64::MAX, 1, 1), u64::MAX - 1);
    }
}
