//! What has to be computed for a question, and what is the same for many entities.
//!
//! A node that hears nobody sums to zero; one that hears the same state from all its neighbours
//! takes over that state, whatever the weights, because they sum to 1. Only a node that hears
//! different states needs attention. All the leaves of a hub are one row of the hub's direction
//! this way, layer after layer, and every product is made for rows and not for nodes. On WebQSP's
//! neighbourhoods that leaves a third of the products and two thirds of the attention, with the
//! same scores. Where nodes hear steps, the same holds of the same state by the same relation.

use std::ops::Range;

use super::parameters::Direction;

const NONE: u32 = u32::MAX;
const COPY: u32 = 1 << 31;

/// The edges of one direction, sorted by the node that hears.
#[derive(Debug, Default)]
pub(super) struct Grouped {
    offsets: Vec<u32>, // [nodes + 1]
    pub(super) target: Vec<u32>,
    pub(super) source: Vec<u32>,
    pub(super) relation: Vec<u32>,
    /// The place of each edge in the list of triples.
    pub(super) triple: Vec<u32>,
}

impl Grouped {
    /// With a number of relations, edges are also walked against their direction, as relations
    /// from that number on, and topics hear themselves, as the relation after these.
    pub(super) fn build(
        &mut self,
        triples: &[[u32; 3]],
        topics: &[bool],
        direction: Direction,
        both_ways: Option<u32>,
    ) {
        let nodes = topics.len();
        let (from, to) = match direction {
            Direction::Forward => (0, 2),
            Direction::Backward => (2, 0),
        };
        refill(&mut self.offsets, nodes + 2, 0);
        for triple in triples {
            self.offsets[triple[to] as usize + 2] += 1;
            if both_ways.is_some() {
                self.offsets[triple[from] as usize + 2] += 1;
            }
        }
        let mut edges = triples.len();
        if both_ways.is_some() {
            edges *= 2;
            for (node, _) in topics.iter().enumerate().filter(|(_, topic)| **topic) {
                self.offsets[node + 2] += 1;
                edges += 1;
            }
        }
        for i in 2..self.offsets.len() {
            self.offsets[i] += self.offsets[i - 1];
        }
        let ends = [&mut self.target, &mut self.source];
        for column in ends
            .into_iter()
            .chain([&mut self.relation, &mut self.triple])
        {
            refill(column, edges, 0);
        }
        // offsets[n + 1] is where the next edge of n goes, and ends as where n's edges end
        let mut put = |index: usize, target: u32, source: u32, relation: u32| {
            let at = &mut self.offsets[target as usize + 1];
            self.target[*at as usize] = target;
            self.source[*at as usize] = source;
            self.relation[*at as usize] = relation;
            self.triple[*at as usize] = index as u32;
            *at += 1;
        };
        for (index, triple) in triples.iter().enumerate() {
            put(index, triple[to], triple[from], triple[1]);
            if let Some(relations) = both_ways {
                put(index, triple[from], triple[to], relations + triple[1]);
            }
        }
        if let Some(relations) = both_ways {
            for (node, _) in (0u32..).zip(topics).filter(|(_, topic)| **topic) {
                put(0, node, node, 2 * relations);
            }
        }
        self.offsets.pop();
    }

    #[inline(always)]
    pub(super) fn range(&self, node: usize) -> Range<usize> {
        self.offsets[node] as usize..self.offsets[node + 1] as usize
    }
}

/// One layer of one direction: rows of states in, rows of states out.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// Rows that somebody hears. Their place here is their slot, unless there are steps.
    pub(super) heard: Vec<u32>,
    /// Place in `heard` and relation of each step; their place here is their slot.
    pub(super) steps: Vec<(u32, u32)>,
    /// The slot that each edge brings.
    pub(super) slot: Vec<u32>,
    /// Nodes that hear different states: the first rows of the result.
    pub(super) own: Vec<u32>,
    /// Rows of those nodes themselves, each once.
    pub(super) hearers: Vec<u32>,
    /// For each of `own`, its place in `hearers`.
    pub(super) hearer: Vec<u32>,
    /// Slots that some node hears alone: the next rows of the result.
    pub(super) copies: Vec<u32>,
    /// Whether some node hears nobody: the last row of the result.
    pub(super) silent: bool,
    /// The row of each node in the result.
    pub(super) row: Vec<u32>,
}

impl Layer {
    /// Plans the layer whose input has `rows` rows, `row_of` for each node. With a number of
    /// relations, steps are heard.
    pub(super) fn build(
        &mut self,
        edges: &Grouped,
        row_of: &[u32],
        rows: usize,
        relations: Option<usize>,
        places: &mut Places,
    ) {
        number(
            edges.source.iter().map(|node| row_of[*node as usize]),
            rows,
            places,
            &mut self.heard,
            &mut self.slot,
        );
        self.steps.clear();
        let mut slots = self.heard.len();
        if let Some(relations) = relations {
            self.number_steps(edges, relations, places);
            slots = self.steps.len();
        }
        self.own.clear();
        self.copies.clear();
        self.silent = false;
        refill(&mut self.row, row_of.len(), NONE);
        refill(&mut places.0, slots, NONE);
        for node in 0..row_of.len() {
            let slots = &self.slot[edges.range(node)];
            match slots {
                [] => self.silent = true,
                [first, rest @ ..] if rest.iter().all(|slot| slot == first) => {
                    let copy = &mut places.0[*first as usize];
                    if *copy == NONE {
                        *copy = self.copies.len() as u32;
                        self.copies.push(*first);
                    }
                    self.row[node] = COPY | *copy;
                }
                _ => {
                    self.row[node] = self.own.len() as u32;
                    self.own.push(node as u32);
                }
            }
        }
        let (own, copies) = (self.own.len() as u32, self.copies.len() as u32);
        for row in &mut self.row {
            if *row == NONE {
                *row = own + copies;
            } else if *row & COPY != 0 {
                *row = own + (*row & !COPY);
            }
        }
        number(
            self.own.iter().map(|node| row_of[*node as usize]),
            rows,
            places,
            &mut self.hearers,
            &mut self.hearer,
        );
    }

    /// Numbers the distinct steps; `slot` has the place of what each edge brings, and gets its
    /// step.
    fn number_steps(&mut self, edges: &Grouped, relations: usize, places: &mut Places) {
        // edges in the order of what they bring
        let mut next = vec![0u32; self.heard.len() + 1];
        for &place in &self.slot {
            next[place as usize + 1] += 1;
        }
        for i in 1..next.len() {
            next[i] += next[i - 1];
        }
        let mut order = vec![0u32; self.slot.len()];
        for (edge, &place) in self.slot.iter().enumerate() {
            let at = &mut next[place as usize];
            order[*at as usize] = edge as u32;
            *at += 1;
        }
        // the last step by each relation: it is new if another place brought it
        refill(&mut places.0, relations, NONE);
        for edge in order {
            let (place, relation) = (self.slot[edge as usize], edges.relation[edge as usize]);
            let last = &mut places.0[relation as usize];
            if *last == NONE || self.steps[*last as usize].0 != place {
                *last = self.steps.len() as u32;
                self.steps.push((place, relation));
            }
            self.slot[edge as usize] = *last;
        }
    }

    /// Rows of the result.
    pub(super) fn rows(&self) -> usize {
        self.own.len() + self.copies.len() + usize::from(self.silent)
    }
}

/// Room in which ids are looked up by array index.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<u32>);

/// Numbers distinct ids below `bound` in the order in which they come: `distinct` lists them, and
/// `number` has the number of each.
pub(super) fn number(
    ids: impl Iterator<Item = u32>,
    bound: usize,
    places: &mut Places,
    distinct: &mut Vec<u32>,
    number: &mut Vec<u32>,
) {
    refill(&mut places.0, bound, NONE);
    distinct.clear();
    number.clear();
    number.extend(ids.map(|id| {
        let place = &mut places.0[id as usize];
        if *place == NONE {
            *place = distinct.len() as u32;
            distinct.push(id);
        }
        *place
    }));
}

fn refill(values: &mut Vec<u32>, len: usize, value: u32) {
    values.clear();
    values.resize(len, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_of_a_hub_become_one_row() {
        // 0 → 1, 2, 3 (leaves); 0 → 4 and 5 → 4; 5 hears nobody
        let triples = [[0, 0, 1], [0, 1, 2], [0, 0, 3], [0, 0, 4], [5, 0, 4]];
        let mut edges = Grouped::default();
        edges.build(&triples, &[false; 6], Direction::Forward, None);
        assert_eq!(edges.range(4), 3..5);
        assert_eq!(edges.source, [0, 0, 0, 0, 5]);
        let mut layer = Layer::default();
        let nodes: Vec<u32> = (0..6).collect();
        layer.build(&edges, &nodes, 6, None, &mut Places::default());
        assert_eq!(layer.heard, [0, 5]);
        assert_eq!(layer.own, [4]); // the only one that hears two
        assert_eq!(layer.copies, [0]); // slot 0 is node 0, for all three leaves
        assert!(layer.silent); // 0 and 5
        assert_eq!(layer.row, [2, 1, 1, 1, 0, 2]);
        assert_eq!(layer.rows(), 3);

        // in the next layer 0 and 5 have the same state, so 4 hears one state only
        let mut next = Layer::default();
        next.build(&edges, &layer.row, 3, None, &mut Places::default());
        assert!(next.own.is_empty());
        assert_eq!(next.row, [1, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn leaves_by_one_relation_hear_one_step() {
        // 0 → 1, 3 by relation 0 and → 2 by relation 1; back again by 2 and 3; the topic 0 itself
        let triples = [[0, 0, 1], [0, 1, 2], [0, 0, 3]];
        let topics = [true, false, false, false];
        let mut edges = Grouped::default();
        edges.build(&triples, &topics, Direction::Forward, Some(2));
        assert_eq!(edges.source, [1, 2, 3, 0, 0, 0, 0]);
        assert_eq!(edges.relation, [2, 3, 2, 4, 0, 1, 0]);
        let mut layer = Layer::default();
        let nodes: Vec<u32> = (0..4).collect();
        layer.build(&edges, &nodes, 4, Some(5), &mut Places::default());
        assert_eq!(layer.heard, [1, 2, 3, 0]);
        assert_eq!(
            layer.steps,
            [(0, 2), (1, 3), (2, 2), (3, 4), (3, 0), (3, 1)]
        );
        assert_eq!(layer.slot, [0, 1, 2, 3, 4, 5, 4]);
        assert_eq!(layer.own, [0]);
        assert_eq!(layer.copies, [4, 5]);
        assert_eq!(layer.row, [0, 1, 2, 1]);
    }

    #[test]
    fn backward_edges_are_grouped_by_head() {
        let mut edges = Grouped::default();
        let triples = [[2, 5, 0], [1, 6, 2], [2, 7, 1]];
        edges.build(&triples, &[false; 3], Direction::Backward, None);
        assert_eq!(edges.range(0), 0..0);
        assert_eq!(edges.range(2), 1..3);
        assert_eq!(edges.source, [2, 0, 1]);
        assert_eq!(edges.relation, [6, 5, 7]);
        assert_eq!(edges.triple, [1, 0, 2]);
    }
}
