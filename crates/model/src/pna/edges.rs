//! Who hears whom: triples between the same entities merged into one edge.

/// The edges of a neighbourhood, by the entity that hears.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// The entity that hears, ascending.
    pub(super) hearer: Vec<u32>,
    /// The entity that is heard.
    pub(super) source: Vec<u32>,
    /// Where each edge's triples begin among `triples`, and where the last ones end.
    pub(super) starts: Vec<u32>,
    /// The triples of each edge, and whether they are walked along their direction.
    pub(super) triples: Vec<(u32, bool)>,
}

impl Edges {
    /// Edges over `triples`; where relations do not count, directions do not either.
    pub(super) fn new(triples: &[[u32; 3]], relations: bool) -> Self {
        let mut all: Vec<(u32, u32, bool, u32)> = Vec::with_capacity(2 * triples.len());
        for (i, [head, _, tail]) in (0u32..).zip(triples) {
            all.push((*tail, *head, true, i));
            all.push((*head, *tail, false, i));
        }
        all.sort_unstable();
        let mut edges = Self::default();
        let mut last = None;
        for (hearer, source, along, triple) in all {
            let key = (hearer, source, relations && along);
            if last != Some(key) {
                last = Some(key);
                edges.hearer.push(hearer);
                edges.source.push(source);
                edges.starts.push(edges.triples.len() as u32);
            }
            edges.triples.push((triple, along));
        }
        edges.starts.push(edges.triples.len() as u32);
        edges
    }

    pub(super) fn len(&self) -> usize {
        self.hearer.len()
    }

    /// The triples of one edge.
    pub(super) fn triples_of(&self, edge: usize) -> &[(u32, bool)] {
        &self.triples[self.starts[edge] as usize..self.starts[edge + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_triples_are_one_edge() {
        let triples = [[0, 0, 1], [0, 1, 1], [1, 2, 0], [2, 0, 1]];
        let plain = Edges::new(&triples, false);
        // 0 hears 1; 1 hears 0 and 2; 2 hears 1
        assert_eq!(plain.hearer, [0, 1, 1, 2]);
        assert_eq!(plain.source, [1, 0, 2, 1]);
        assert_eq!(plain.triples_of(0).len(), 3);
        // with relations, 0 and 1 hear each other along and against
        let by_relation = Edges::new(&triples, true);
        assert_eq!(by_relation.hearer, [0, 0, 1, 1, 1, 2]);
        assert_eq!(by_relation.triples_of(0), [(0, false), (1, false)]);
        assert_eq!(by_relation.triples_of(1), [(2, true)]);
        assert_eq!(by_relation.len(), 6);
    }
}
