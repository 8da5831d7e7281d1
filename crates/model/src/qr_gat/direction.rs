//! One question through one direction of the network: its layers, then its products for the triples.

use std::collections::BTreeMap;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::parameters::{Direction, name};
use super::pass::{Pass, Weights};
use super::plan::{Grouped, Layer, Places, number};
use super::{Ablation, Config, Rows, Subgraph};
use crate::tensor::lanes::dot;
use crate::tensor::panels::Panels;
use crate::tensor::{add_to, vectorise};

/// Rows that one thread takes at a time.
const ROWS: usize = 16;

/// The weights of one direction.
pub(super) struct Stack {
    /// In the first layer, q's part of W_s and W_t; none with `no-query-init`.
    query: Option<[Panels; 2]>,
    /// p's part of W_s and W_t for other entities and for topics.
    flag: [[Vec<f32>; 2]; 2],
    layers: Vec<Weights>,
    /// This direction's part of W_1, for heads and for tails.
    head: Panels,
    tail: Panels,
}

/// Room for one direction.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) edges: Grouped,
    layers: Vec<Layer>,
    places: Places,
    relations: Vec<f32>, // [relations, hidden]: W_e·r
    plus: Vec<f32>,      // [relations, heads]
    hearers: Vec<f32>,   // [hearers, hidden]: z_i
    heard: Vec<f32>,     // [heard, hidden]: z_j
    steps: Vec<f32>,     // [steps, hidden]: z_j + W_e·r
    states: Vec<f32>,    // [rows, hidden]: h
    pub(super) head: End,
    pub(super) tail: End,
}

/// Products of W_1 with the states of the nodes at one end of the triples.
#[derive(Debug, Default)]
pub(super) struct End {
    rows: Vec<u32>,
    /// For each triple, the place of its node in `rows`.
    place: Vec<u32>,
    products: Vec<f32>, // [rows, hidden]
}

impl Stack {
    /// Takes this direction's tensors, and adds what it needs of labels to `entity` and `relation`.
    pub(super) fn new(
        config: &Config,
        weights: &BTreeMap<String, Vec<f32>>,
        direction: Direction,
        [head, tail]: [Panels; 2],
        entity: &mut Vec<Panels>,
        relation: &mut Vec<Panels>,
    ) -> Self {
        let (dim, hidden) = (config.dim, config.hidden);
        let get = |layer: usize, tensor: &str| weights[&name(direction, layer, tensor)].as_slice();
        let inputs = config.first_inputs();
        let roles = [get(0, "w_s"), get(0, "w_t")];
        entity.extend(roles.map(|w| Panels::new(w, inputs, 0..dim)));
        let query =
            (config.query_init() > 0).then(|| roles.map(|w| Panels::new(w, inputs, dim..2 * dim)));
        let column = |w: &[f32], column: usize| -> Vec<f32> {
            w.chunks_exact(inputs).map(|row| row[column]).collect()
        };
        let flag = roles.map(|w| [column(w, inputs - 2), column(w, inputs - 1)]);
        let plus = config.keeps(Ablation::NoQueryAttn);
        let mut layers = vec![];
        for layer in 0..config.layers {
            let of_label = |tensor| Panels::new(get(layer, tensor), dim, 0..dim);
            relation.push(of_label("w_e"));
            if plus {
                relation.push(of_label("w_r"));
            }
            layers.push(Weights {
                roles: (layer > 0).then(|| {
                    ["w_s", "w_t"].map(|tensor| Panels::new(get(layer, tensor), hidden, 0..hidden))
                }),
                w_q: plus.then(|| of_label("w_q")),
                a: get(layer, "a").to_vec(),
                scale: get(layer, "norm.scale").to_vec(),
                shift: get(layer, "norm.shift").to_vec(),
            });
        }
        Self {
            query,
            flag,
            layers,
            head,
            tail,
        }
    }
}

/// `a_plus = (W_q·q)·(W_r·r)` of all relations, head by head.
struct Plus<'a> {
    width: usize,
    of_question: &'a [f32],
    of_relation: &'a [f32],
    plus: &'a mut [f32],
}

impl WithSimd for Plus<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let heads = self.of_relation.chunks_exact(self.width);
        let of_question = self.of_question.chunks_exact(self.width).cycle();
        for ((plus, r), q) in self.plus.iter_mut().zip(heads).zip(of_question) {
            *plus = dot(simd, q, r);
        }
    }
}

/// One question on its way through the network.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) config: &'a Config,
    pub(super) subgraph: &'a Subgraph<'a>,
    pub(super) entities: &'a dyn Rows,
    pub(super) relations: &'a dyn Rows,
}

impl Question<'_> {
    /// The states of one direction, and their products for the triples.
    pub(super) fn run(&self, direction: Direction, stack: &Stack, way: &mut Way) {
        let nodes = self.subgraph.entities.len();
        let relations = self.subgraph.relations.len();
        let both_ways = self.config.steps.then_some(relations as u32);
        let triples = self.subgraph.triples;
        let topics = self.subgraph.topics;
        way.edges.build(triples, topics, direction, both_ways);
        way.layers.resize_with(self.config.layers, Layer::default);
        let identity: Vec<u32> = (0..nodes as u32).collect();
        for (index, weights) in stack.layers.iter().enumerate() {
            let (done, open) = way.layers.split_at_mut(index);
            let layer = &mut open[0];
            let (row_of, rows) = match done.last() {
                Some(last) => (&last.row, last.rows()),
                None => (&identity, nodes),
            };
            let steps = self.config.steps.then_some(2 * relations + 1);
            layer.build(&way.edges, row_of, rows, steps, &mut way.places);
            self.relation_parts(direction, index, weights, &mut way.relations, &mut way.plus);
            let hidden = self.config.hidden;
            resize(&mut way.hearers, layer.hearers.len() * hidden);
            resize(&mut way.heard, layer.heard.len() * hidden);
            match &weights.roles {
                None => {
                    self.first(direction, stack, 0, &layer.hearers, &mut way.hearers);
                    self.first(direction, stack, 1, &layer.heard, &mut way.heard);
                }
                Some([w_s, w_t]) => {
                    let states = &way.states;
                    let row =
                        |rows: &[u32], i: usize| &states[rows[i] as usize * hidden..][..hidden];
                    w_s.product(|i| row(&layer.hearers, i), &mut way.hearers);
                    w_t.product(|i| row(&layer.heard, i), &mut way.heard);
                }
            }
            let mut heard = &way.heard;
            if self.config.steps {
                steps_of(
                    layer,
                    &way.heard,
                    &mut way.relations,
                    &mut way.steps,
                    hidden,
                );
                heard = &way.steps;
            }
            resize(&mut way.states, layer.rows() * hidden);
            let pass = Pass {
                heads: self.config.heads,
                weights,
                edges: &way.edges,
                layer,
                relations: &way.relations,
                plus: &way.plus,
                hearers: &way.hearers,
                heard,
            };
            pass.run(&mut way.states);
        }
        self.ends(stack, way);
    }

    /// `W_e·r` and `a_plus` of each relation.
    fn relation_parts(
        &self,
        direction: Direction,
        layer: usize,
        weights: &Weights,
        relations: &mut Vec<f32>,
        plus: &mut Vec<f32>,
    ) {
        let Config {
            hidden,
            layers,
            heads,
            ..
        } = *self.config;
        let ids = self.subgraph.relations;
        let kinds = 1 + usize::from(weights.w_q.is_some());
        let before = match direction {
            Direction::Forward => layer,
            Direction::Backward => layers + layer,
        };
        let columns = |kind: usize| -> Range<usize> {
            let part = before * kinds + kind;
            part * hidden..(part + 1) * hidden
        };
        let rows = match self.config.steps {
            true => 2 * ids.len() + 1,
            false => ids.len(),
        };
        resize(plus, rows * heads);
        resize(relations, rows * hidden);
        let (along, against) = plus.split_at_mut(ids.len() * heads);
        let relations_along = &mut relations[..ids.len() * hidden];
        along.fill(0.0);
        if let Some(w_q) = &weights.w_q {
            self.relations.read(ids, columns(1), relations_along);
            let mut of_question = vec![0.0; hidden];
            w_q.of_row(self.subgraph.question, &mut of_question);
            Arch::new().dispatch(Plus {
                width: hidden / heads,
                of_question: &of_question,
                of_relation: relations_along,
                plus: along,
            });
        }
        negate(along, against);
        let (along, against) = relations.split_at_mut(ids.len() * hidden);
        self.relations.read(ids, columns(0), along);
        negate(along, against);
    }

    /// First-layer products of `nodes` in one role (0: hearer, 1: heard).
    fn first(
        &self,
        direction: Direction,
        stack: &Stack,
        role: usize,
        nodes: &[u32],
        out: &mut [f32],
    ) {
        let hidden = self.config.hidden;
        let part = role
            + match direction {
                Direction::Forward => 0,
                Direction::Backward => 2,
            };
        // what the question and the topic flag add, for other entities and for topics
        let mut both = stack.flag[role].clone();
        if let Some(query) = &stack.query {
            let mut of_question = vec![0.0; hidden];
            query[role].of_row(self.subgraph.question, &mut of_question);
            both.iter_mut().for_each(|sum| add_to(sum, &of_question));
        }
        let arch = Arch::new();
        out.par_chunks_mut(ROWS * hidden)
            .zip(nodes.par_chunks(ROWS))
            .for_each(|(out, nodes)| {
                let mut rows = [0; ROWS];
                for (row, node) in rows.iter_mut().zip(nodes) {
                    *row = self.subgraph.entities[*node as usize];
                }
                let columns = part * hidden..(part + 1) * hidden;
                self.entities.read(&rows[..nodes.len()], columns, out);
                vectorise(
                    arch,
                    #[inline(always)]
                    || {
                        for (out, node) in out.chunks_exact_mut(hidden).zip(nodes) {
                            let topic = self.subgraph.topics[*node as usize];
                            add_to(out, &both[usize::from(topic)]);
                        }
                    },
                );
            });
    }

    /// W_1's products with the last states, for the nodes at either end of triples.
    fn ends(&self, stack: &Stack, way: &mut Way) {
        let hidden = self.config.hidden;
        let Some(last) = way.layers.last() else {
            return;
        };
        let states = &way.states;
        let triples = self.subgraph.triples;
        for (end, weights, column) in [
            (&mut way.head, &stack.head, 0),
            (&mut way.tail, &stack.tail, 2),
        ] {
            let rows = triples
                .iter()
                .map(|triple| last.row[triple[column] as usize]);
            number(
                rows,
                last.rows(),
                &mut way.places,
                &mut end.rows,
                &mut end.place,
            );
            resize(&mut end.products, end.rows.len() * hidden);
            let row = |i: usize| &states[end.rows[i] as usize * hidden..][..hidden];
            weights.product(row, &mut end.products);
        }
    }
}

/// Against its direction, a relation is −r, and what comes after them is no relation. There is
/// nothing to write where edges are not walked both ways.
fn negate(along: &[f32], against: &mut [f32]) {
    let along = along.iter().chain(std::iter::repeat(&0.0));
    against.iter_mut().zip(along).for_each(|(x, y)| *x = -y);
}

/// Writes `z_j + W_e·r` of each step; the relations are done with then, and zero.
fn steps_of(
    layer: &Layer,
    heard: &[f32],
    relations: &mut [f32],
    steps: &mut Vec<f32>,
    hidden: usize,
) {
    resize(steps, layer.steps.len() * hidden);
    for (step, (place, relation)) in steps.chunks_exact_mut(hidden).zip(&layer.steps) {
        step.copy_from_slice(&heard[*place as usize * hidden..][..hidden]);
        add_to(step, &relations[*relation as usize * hidden..][..hidden]);
    }
    relations.fill(0.0);
}

impl End {
    /// The products of the node at this end of a triple.
    #[inline(always)]
    pub(super) fn row(&self, triple: u32, hidden: usize) -> &[f32] {
        &self.products[self.place[triple as usize] as usize * hidden..][..hidden]
    }
}

pub(super) fn resize(values: &mut Vec<f32>, len: usize) {
    values.resize(len, 0.0);
}
