//! The schema of a graph that a service holds, by what the service counted.

use hashbrown::HashMap;
use wherefore_graph::{RelationId, Summary, Term};

use super::counted::Counted;
use super::lang::Lang;
use super::schema::{Schema, Seen, kind_of};
use super::vocabulary::ClassIx;
use crate::error::Result;

impl Schema {
    /// The classes that the service listed.
    pub(super) fn counted_classes(&mut self, from: &Counted<'_>, lang: &Lang) -> Result<()> {
        for (iri, things) in from.summary.classes.values().flatten() {
            if let Some(ix) = self.class_named(iri, from, lang)? {
                let class = &mut self.classes[ix as usize];
                class.instances = class.instances.saturating_add(*things as usize);
            }
        }
        // where it was too much to list them: those that relations join
        let unlisted = from.summary.classes.values().all(Vec::is_empty);
        for (head, tail, triples) in from.summary.joined() {
            for iri in [head, tail].into_iter().flatten() {
                if let Some(ix) = self.class_named(iri, from, lang)?
                    && unlisted
                {
                    let class = &mut self.classes[ix as usize];
                    class.instances = class.instances.max(*triples as usize);
                }
            }
        }
        Ok(())
    }

    fn class_named(
        &mut self,
        iri: &str,
        from: &Counted<'_>,
        lang: &Lang,
    ) -> Result<Option<ClassIx>> {
        let entity = from.service.entity_iri(iri)?;
        self.class(entity, from.graph, lang)
    }

    /// A class and those that are wider; none where nothing is named.
    fn classes_named(
        &mut self,
        iri: Option<&str>,
        from: &Counted<'_>,
        lang: &Lang,
    ) -> Result<Vec<ClassIx>> {
        let mut found = Vec::new();
        if let Some(iri) = iri {
            found.extend(self.class_named(iri, from, lang)?);
            self.add_wider(&mut found);
        }
        Ok(found)
    }

    /// What the service counted of a relation.
    pub(super) fn counted(
        &mut self,
        id: RelationId,
        from: &Counted<'_>,
        lang: &Lang,
    ) -> Result<Seen> {
        let mut seen = Seen::default();
        let Term::Iri(iri) = from.graph.relation_term(id)? else {
            return Ok(seen);
        };
        let Some(of) = from.summary.relations.get(&iri) else {
            return Ok(seen);
        };
        for tail in of.terms() {
            seen.kinds[kind_of(&tail) as usize] += 1;
        }
        for (side, has) in of.sides.iter().flatten().zip([true, false]) {
            self.counted_sides.insert((id, has), side.clone());
        }
        for (head, tail, triples) in &of.joined {
            let heads = self.classes_named(head.as_deref(), from, lang)?;
            let tails = self.classes_named(tail.as_deref(), from, lang)?;
            seen.triples = seen.triples.saturating_add(*triples as usize);
            seen.add(&heads, &tails, *triples as usize);
        }
        // a thing of several classes is counted once for each
        let most = of.triples.map_or(Summary::LOOKED_AT, |all| all as usize);
        seen.triples = seen
            .triples
            .max(of.tails.len())
            .min(Summary::LOOKED_AT)
            .min(most);
        seen.all = of.triples.map_or(seen.triples, |all| all as usize);
        Ok(seen)
    }

    /// What some things of each class have to do with: a class of few things does not show in the
    /// first triples of a relation that many others have.
    pub(super) fn counted_around(&mut self, from: &Counted<'_>, lang: &Lang) -> Result<()> {
        for (iri, all) in &from.summary.around {
            let Some(class) = self.class_named(iri, from, lang)? else {
                continue;
            };
            let things = self.classes[class as usize].instances as f32;
            let mut sides: HashMap<(RelationId, bool), f32> = HashMap::new();
            for of in all {
                let Some(relation) = from.graph.relation_named(&of.relation)? else {
                    continue;
                };
                if self.relations[relation.index()].is_silent {
                    continue;
                }
                let count = of.each * things;
                *sides.entry((relation, of.forward)).or_insert(0.0) += count;
                for other in self.classes_named(of.class.as_deref(), from, lang)? {
                    let (head, tail) = match of.forward {
                        true => (class, other),
                        false => (other, class),
                    };
                    self.joins_at_least(head, tail, relation, count);
                }
            }
            for ((relation, heads), count) in sides {
                self.has_at_least(class, relation, heads, count);
            }
        }
        Ok(())
    }
}
