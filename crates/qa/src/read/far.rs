//! The schema of a graph that a service holds, by what the service counted.

use hashbrown::HashMap;
use wherefore_graph::{EntityId, Graph, RelationId, Service, Summary, Term};

use super::lang::Lang;
use super::schema::{ClassIx, Schema, Seen, kind_of};
use crate::error::Result;

/// Whether most things have a class: the heads of the triples that were looked at.
pub(super) fn has_classes(summary: &Summary) -> bool {
    let joined = summary.relations.values().flat_map(|of| &of.joined);
    let (mut typed, mut all) = (0, 0);
    for (head, _, triples) in joined {
        all += triples;
        typed += if head.is_some() { *triples } else { 0 };
    }
    typed * 2 > all
}

impl Schema {
    /// The classes that the service listed.
    pub(super) fn counted_classes(
        &mut self,
        summary: &Summary,
        graph: &dyn Graph,
        lang: &Lang,
    ) -> Result<()> {
        let Some(service) = graph.service() else {
            return Ok(());
        };
        for (iri, things) in summary.classes.values().flatten() {
            if let Some(ix) = self.class_named(iri, service, graph, lang)? {
                self.classes[ix as usize].instances += *things as usize;
            }
        }
        // where it was too much to list them: those that relations join
        for (head, tail, triples) in summary.relations.values().flat_map(|of| &of.joined) {
            for iri in [head, tail].into_iter().flatten() {
                if let Some(ix) = self.class_named(iri, service, graph, lang)?
                    && summary.classes.values().all(Vec::is_empty)
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
        service: &Service,
        graph: &dyn Graph,
        lang: &Lang,
    ) -> Result<Option<ClassIx>> {
        let entity: EntityId = service.entity_iri(iri)?;
        self.class(entity, graph, lang)
    }

    /// What the service counted of a relation.
    pub(super) fn counted(
        &mut self,
        id: RelationId,
        summary: &Summary,
        graph: &dyn Graph,
        lang: &Lang,
    ) -> Result<Seen> {
        let mut seen = Seen::default();
        let (Some(service), Term::Iri(iri)) = (graph.service(), graph.relation_term(id)?) else {
            return Ok(seen);
        };
        let Some(of) = summary.relations.get(&iri) else {
            return Ok(seen);
        };
        for tail in of.terms() {
            seen.kinds[kind_of(&tail) as usize] += 1;
        }
        for (head, tail, triples) in &of.joined {
            let mut sides = [Vec::new(), Vec::new()];
            for (side, class) in sides.iter_mut().zip([head, tail]) {
                if let Some(class) = class
                    && let Some(ix) = self.class_named(class, service, graph, lang)?
                {
                    side.push(ix);
                    self.add_wider(side);
                }
            }
            seen.triples += *triples as usize;
            seen.add(&sides[0], &sides[1], *triples as usize);
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
    pub(super) fn counted_around(
        &mut self,
        summary: &Summary,
        graph: &dyn Graph,
        lang: &Lang,
    ) -> Result<()> {
        let Some(service) = graph.service() else {
            return Ok(());
        };
        for (iri, all) in &summary.around {
            let Some(class) = self.class_named(iri, service, graph, lang)? else {
                continue;
            };
            let things = self.classes[class as usize].instances as f32;
            let mut sides: HashMap<(RelationId, bool), f32> = HashMap::new();
            for of in all {
                let Some(relation) = graph.relation_named(&of.relation)? else {
                    continue;
                };
                if self.relations[relation.index()].is_silent {
                    continue;
                }
                let count = of.each * things;
                *sides.entry((relation, of.forward)).or_insert(0.0) += count;
                let mut others = Vec::new();
                if let Some(other) = &of.class
                    && let Some(ix) = self.class_named(other, service, graph, lang)?
                {
                    others.push(ix);
                    self.add_wider(&mut others);
                }
                for other in others {
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
