//! Which entities have the same state, layer by layer.
//!
//! ```text
//! class⁰(v) = whether v is a topic
//! class^k(v) = (class^{k−1}(v), how often v hears each (class^{k−1}, relation))
//! ```
//!
//! Weisfeiler and Leman's refinement (1968), with relations. What an entity hears over an edge is
//! determined by class and relation, so these are the distinct messages.

use std::collections::HashMap;

use super::Shape;

/// The classes of one neighbourhood through all layers.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) layers: Vec<Layer>,
    /// The class of each entity after the last layer.
    pub(crate) last: Vec<u32>,
}

/// From the classes before a layer to those after it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Layer {
    /// Distinct messages: class before, and relation. Against its direction a relation has the
    /// number of all local ones added, if both ways differ.
    pub(crate) messages: Vec<(u32, u32)>,
    /// For each class, its class before.
    pub(crate) before: Vec<u32>,
    /// Where each class's entries begin, and one end more.
    pub(crate) offsets: Vec<u32>,
    /// Message and number of times, class by class.
    pub(crate) heard: Vec<(u32, u32)>,
}

impl Layer {
    /// Number of classes after the layer.
    pub(crate) fn classes(&self) -> usize {
        self.before.len()
    }

    /// The entries of a class.
    pub(crate) fn of(&self, class: usize) -> &[(u32, u32)] {
        &self.heard[self.offsets[class] as usize..self.offsets[class + 1] as usize]
    }
}

/// Classes before the first layer: others, topics.
pub(crate) const TOPIC: u32 = 1;

impl Plan {
    /// `both` tells whether a relation sounds different against its direction.
    pub(crate) fn new(shape: &Shape<'_>, layers: usize, both: bool) -> Self {
        let nodes = shape.topics.len();
        let against = if both {
            shape.relations.len() as u32
        } else {
            0
        };
        // edges by the node that hears
        let mut offsets = vec![0u32; nodes + 1];
        for &[head, _, tail] in shape.triples {
            offsets[head as usize + 1] += 1;
            offsets[tail as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut edges = vec![(0u32, 0u32); 2 * shape.triples.len()]; // source, relation
        let mut put = |target: u32, source: u32, relation: u32| {
            let at = &mut next[target as usize];
            edges[*at as usize] = (source, relation);
            *at += 1;
        };
        for &[head, relation, tail] in shape.triples {
            put(tail, head, relation);
            put(head, tail, relation + against);
        }
        let mut class: Vec<u32> = shape.topics.iter().map(|t| u32::from(*t)).collect();
        let layers = (0..layers)
            .map(|_| refine(&mut class, &offsets, &edges))
            .collect();
        Self {
            layers,
            last: class,
        }
    }
}

/// One layer; `class` goes from those before to those after.
fn refine(class: &mut [u32], offsets: &[u32], edges: &[(u32, u32)]) -> Layer {
    let key = |&(source, relation): &(u32, u32)| (class[source as usize], relation);
    let mut messages: Vec<(u32, u32)> = edges.iter().map(key).collect();
    messages.sort_unstable();
    messages.dedup();
    let number: HashMap<(u32, u32), u32> = messages.iter().copied().zip(0..).collect();
    let mut layer = Layer {
        messages,
        offsets: vec![0],
        ..Layer::default()
    };
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut after = Vec::with_capacity(class.len());
    let mut heard = Vec::new();
    let mut signature = Vec::new();
    for (node, &own) in class.iter().enumerate() {
        heard.clear();
        let edges = &edges[offsets[node] as usize..offsets[node + 1] as usize];
        heard.extend(edges.iter().map(|edge| number[&key(edge)]));
        heard.sort_unstable();
        signature.clear();
        signature.push(own);
        signature.extend_from_slice(&heard);
        let class = match known.get(&signature) {
            Some(class) => *class,
            None => {
                let new = layer.before.len() as u32;
                layer.before.push(own);
                for run in heard.chunk_by(|a, b| a == b) {
                    layer.heard.push((run[0], run.len() as u32));
                }
                layer.offsets.push(layer.heard.len() as u32);
                known.insert(signature.clone(), new);
                new
            }
        };
        after.push(class);
    }
    class.copy_from_slice(&after);
    layer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_of_a_hub_are_one_class_and_a_path_is_told_apart_step_by_step() {
        // topic 0 -r0-> 1, 2, 3 (leaves);  0 -r1-> 4 -r0-> 5
        let shape = Shape {
            topics: &[true, false, false, false, false, false],
            relations: &[7, 9],
            triples: &[[0, 0, 1], [0, 0, 2], [0, 0, 3], [0, 1, 4], [4, 0, 5]],
        };
        let plan = Plan::new(&shape, 2, true);
        let first = &plan.layers[0];
        // others hear: topic by r0, topic by r1, other by r0 or against r0 and r1
        assert_eq!(
            first.messages,
            [(0, 0), (0, 2), (0, 3), (TOPIC, 0), (TOPIC, 1)]
        );
        // the topic, the leaves, 4, and 5
        assert_eq!(first.before, [TOPIC, 0, 0, 0]);
        // the topic hears three leaves against r0, and 4 against r1
        assert_eq!(first.of(0), [(1, 3), (2, 1)]);
        assert_eq!(first.of(1), [(3, 1)]);
        assert_eq!(first.of(2), [(1, 1), (4, 1)]);
        assert_eq!(first.of(3), [(0, 1)]);
        assert_eq!(plan.last[1], plan.last[2]);
        assert_ne!(plan.last[1], plan.last[5]);
        // without directions the two ways are one
        let plan = Plan::new(&shape, 1, false);
        assert_eq!(plan.layers[0].of(0), [(0, 3), (1, 1)]);
    }
}
