//! Query-relational attention of one layer and direction as one operation with its gradient.
//!
//! ```text
//! s_e = a·LeakyReLU(u_e) + (W_q q)·(W_r r_e)        u_e = z_i + z_j + W_e r_e      head by head
//! α_e = softmax of s_e over the edges e into i      o_i = Σ_e α_e·z_j
//!
//! ∂α_e = ∂o_i·z_j                     ∂s_e = α_e·(∂α_e − Σ_f α_f·∂α_f)
//! ∂u_e = ∂s_e·a·LeakyReLU'(u_e)       ∂a = Σ_e ∂s_e·LeakyReLU(u_e)
//! ∂z_i = Σ_e ∂u_e      ∂z_j = Σ_e (∂u_e + α_e·∂o_i)      ∂(W_e r) = Σ_e ∂u_e
//! ```
//!
//! z is `[nodes, 2·hidden]`, z_i (what a node says of itself as the hearer) before z_j (as the
//! heard). The relation's rows are `[W_e r ‖ W_r r]`, or only `W_e r` without a_plus. The last of
//! the question's rows is a. Where nodes hear steps, `z_j + W_e r_e` stands for z_j in o_i and ∂α_e,
//! and ∂(W_e r) also has the sum of α_e·∂o_i.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp3, Device, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::SLOPE;
use super::batch::Edges;
use crate::tensor::lanes::{dot, exp_all, leaky_dot};
use crate::tensor::{
    Floats, ROWS, add_to, floats, gather, leaky_relu, on_cpu, segment_softmax, segment_sum,
    vectorise,
};

/// `z` `[nodes, 2·hidden]`, `relations` `[relations, hidden or 2·hidden]`, `questions`
/// `[questions + 1 or 1, hidden]` to `[nodes, hidden]`.
pub(super) fn attention(
    edges: &Arc<Edges>,
    (heads, steps): (usize, bool),
    z: &Tensor,
    relations: &Tensor,
    questions: &Tensor,
) -> Result<Tensor> {
    if !on_cpu(z) {
        return composed(edges, (heads, steps), z, relations, questions);
    }
    let hidden = questions.dim(1)?;
    z.contiguous()?.apply_op3(
        &relations.contiguous()?,
        &questions.contiguous()?,
        Attention {
            edges: edges.clone(),
            heads,
            steps,
            hidden,
            query: relations.dim(1)? > hidden,
            alpha: OnceLock::new(),
        },
    )
}

fn composed(
    edges: &Edges,
    (heads, steps): (usize, bool),
    z: &Tensor,
    relations: &Tensor,
    questions: &Tensor,
) -> Result<Tensor> {
    let hidden = questions.dim(1)?;
    let count = questions.dim(0)? - 1;
    let by_head = (edges.pair.len(), heads, hidden / heads);
    let a = questions.narrow(0, count, 1)?;
    let heard = gather(&z.narrow(1, hidden, hidden)?, &edges.source)?;
    let step = (&heard + gather(&relations.narrow(1, 0, hidden)?, &edges.relation)?)?;
    let u = (gather(&z.narrow(1, 0, hidden)?, &edges.target)? + &step)?;
    let base = leaky_relu(&u, f64::from(SLOPE))?.broadcast_mul(&a)?;
    let mut score = base.reshape(by_head)?.sum(2)?;
    if relations.dim(1)? > hidden {
        let of_question = gather(&questions.narrow(0, 0, count)?, &edges.question)?;
        let of_relation = gather(&relations.narrow(1, hidden, hidden)?, &edges.relation)?;
        score = (score + (of_question * of_relation)?.reshape(by_head)?.sum(2)?)?;
    }
    let alpha = segment_softmax(&score, &edges.target)?;
    let messages = if steps { step } else { heard };
    let messages = messages
        .reshape(by_head)?
        .broadcast_mul(&alpha.unsqueeze(2)?)?;
    segment_sum(
        &messages.reshape((edges.pair.len(), hidden))?,
        &edges.target,
    )
}

struct Attention {
    edges: Arc<Edges>,
    heads: usize,
    steps: bool,
    hidden: usize,
    query: bool,
    /// `[edges, heads]`, kept from the forward pass.
    alpha: OnceLock<Vec<f32>>,
}

/// The numbers an edge needs, found by its index.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    z: &'a [f32],
    relations: &'a [f32],
    a: &'a [f32],
    edges: &'a Edges,
    hidden: usize,
    relation_width: usize,
}

impl<'a> Inputs<'a> {
    #[inline(always)]
    fn hearer(&self, node: usize) -> &'a [f32] {
        &self.z[2 * node * self.hidden..][..self.hidden]
    }

    #[inline(always)]
    fn heard(&self, edge: usize) -> &'a [f32] {
        let node = self.edges.source.ids()[edge] as usize;
        &self.z[(2 * node + 1) * self.hidden..][..self.hidden]
    }

    #[inline(always)]
    fn relation(&self, edge: usize) -> &'a [f32] {
        let relation = self.edges.relation.ids()[edge] as usize;
        &self.relations[relation * self.relation_width..][..self.hidden]
    }
}

impl Attention {
    fn inputs<'a>(
        &'a self,
        z: &'a [f32],
        relations: &'a [f32],
        questions: &'a [f32],
    ) -> Inputs<'a> {
        Inputs {
            z,
            relations,
            a: &questions[questions.len() - self.hidden..],
            edges: &self.edges,
            hidden: self.hidden,
            relation_width: self.hidden * (1 + usize::from(self.query)),
        }
    }

    /// `a_plus` of every pair of question and relation, `[pairs, heads]`.
    fn plus(&self, relations: &[f32], questions: &[f32]) -> Vec<f32> {
        let (hidden, heads) = (self.hidden, self.heads);
        let width = hidden / heads;
        if !self.query {
            return vec![0.0; self.edges.pairs.len() * heads];
        }
        let mut plus = Vec::with_capacity(self.edges.pairs.len() * heads);
        for pair in self.edges.pairs.iter() {
            let q = &questions[pair.question as usize * hidden..][..hidden];
            let r = &relations[(2 * pair.relation as usize + 1) * hidden..][..hidden];
            for (q, r) in q.chunks_exact(width).zip(r.chunks_exact(width)) {
                plus.push(q.iter().zip(r).map(|(q, r)| q * r).sum());
            }
        }
        plus
    }

    /// `values` (`width` numbers an edge) cut where blocks of `ROWS` target nodes end.
    fn by_block<'v>(&self, mut values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        let target = &self.edges.target;
        let mut blocks = vec![];
        let mut start = 0;
        for first in (0..target.count()).step_by(ROWS) {
            let last = (first + ROWS).min(target.count()) - 1;
            let end = target.range(last).end;
            let (block, rest) = values.split_at_mut((end - start) * width);
            blocks.push(block);
            values = rest;
            start = end;
        }
        blocks
    }
}

/// Weights and sums of the nodes `first..`, whose edges begin with `alpha`.
struct Forward<'a> {
    op: &'a Attention,
    inputs: Inputs<'a>,
    plus: &'a [f32],
    first: usize,
    out: &'a mut [f32],
    alpha: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (hidden, heads) = (self.op.hidden, self.op.heads);
        let width = hidden / heads;
        let (inputs, edges) = (self.inputs, &*self.op.edges);
        let start = edges.target.range(self.first).start;
        let mut top = vec![0.0; heads];
        let mut sum = vec![0.0; heads];
        for (i, out) in self.out.chunks_exact_mut(hidden).enumerate() {
            let range = edges.target.range(self.first + i);
            let zi = inputs.hearer(self.first + i);
            let own = (range.start - start) * heads..(range.end - start) * heads;
            let alpha = &mut self.alpha[own];
            top.fill(f32::NEG_INFINITY);
            for (edge, alpha) in range.clone().zip(alpha.chunks_exact_mut(heads)) {
                let (zj, we) = (inputs.heard(edge), inputs.relation(edge));
                let plus = &self.plus[edges.pair[edge] as usize * heads..][..heads];
                for head in 0..heads {
                    let at = head * width;
                    let (a, zi) = (&inputs.a[at..][..width], &zi[at..][..width]);
                    let (zj, we) = (&zj[at..][..width], &we[at..][..width]);
                    alpha[head] = plus[head] + leaky_dot(simd, SLOPE, a, zi, zj, we);
                    top[head] = top[head].max(alpha[head]);
                }
            }
            sum.fill(0.0);
            for alpha in alpha.chunks_exact_mut(heads) {
                alpha
                    .iter_mut()
                    .zip(&top)
                    .for_each(|(alpha, top)| *alpha -= top);
            }
            exp_all(alpha);
            for alpha in alpha.chunks_exact(heads) {
                add_to(&mut sum, alpha);
            }
            for (edge, alpha) in range.zip(alpha.chunks_exact_mut(heads)) {
                let (zj, we) = (inputs.heard(edge), inputs.relation(edge));
                for (head, alpha) in alpha.iter_mut().enumerate() {
                    *alpha /= sum[head];
                    let at = head * width;
                    let out = &mut out[at..][..width];
                    for (o, z) in out.iter_mut().zip(&zj[at..][..width]) {
                        *o += *alpha * z;
                    }
                    if self.op.steps {
                        for (o, r) in out.iter_mut().zip(&we[at..][..width]) {
                            *o += *alpha * r;
                        }
                    }
                }
            }
        }
    }
}

/// Gradients of the nodes `first..`: of their z_i (first half of `dz`), of their edges' u and s,
/// and of a.
struct Back<'a> {
    op: &'a Attention,
    inputs: Inputs<'a>,
    alpha: &'a [f32],
    grad: &'a [f32],
    first: usize,
    dz: &'a mut [f32],
    du: &'a mut [f32],
    ds: &'a mut [f32],
    da: &'a mut [f32],
}

impl WithSimd for Back<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (hidden, heads) = (self.op.hidden, self.op.heads);
        let width = hidden / heads;
        let (inputs, target) = (self.inputs, &self.op.edges.target);
        let start = target.range(self.first).start;
        let mut dot_of = vec![0.0; heads];
        for (i, dz) in self.dz.chunks_exact_mut(2 * hidden).enumerate() {
            let range = target.range(self.first + i);
            let grad = &self.grad[(self.first + i) * hidden..][..hidden];
            let zi = inputs.hearer(self.first + i);
            dot_of.fill(0.0);
            for edge in range.clone() {
                let (zj, we) = (inputs.heard(edge), inputs.relation(edge));
                let ds = &mut self.ds[(edge - start) * heads..][..heads];
                let alpha = &self.alpha[edge * heads..][..heads];
                for head in 0..heads {
                    let at = head * width;
                    let grad = &grad[at..][..width];
                    ds[head] = dot(simd, grad, &zj[at..][..width]);
                    if self.op.steps {
                        ds[head] += dot(simd, grad, &we[at..][..width]);
                    }
                    dot_of[head] += alpha[head] * ds[head];
                }
            }
            for edge in range {
                let (zj, we) = (inputs.heard(edge), inputs.relation(edge));
                let ds = &mut self.ds[(edge - start) * heads..][..heads];
                let alpha = &self.alpha[edge * heads..][..heads];
                let du = &mut self.du[(edge - start) * hidden..][..hidden];
                for head in 0..heads {
                    ds[head] = alpha[head] * (ds[head] - dot_of[head]);
                    let (at, ds) = (head * width, ds[head]);
                    let (zi, zj) = (&zi[at..][..width], &zj[at..][..width]);
                    let (we, a) = (&we[at..][..width], &inputs.a[at..][..width]);
                    let du = &mut du[at..][..width];
                    let da = &mut self.da[at..][..width];
                    let dz = &mut dz[at..][..width];
                    for c in 0..width {
                        let u = zi[c] + zj[c] + we[c];
                        let slope = if u > 0.0 { 1.0 } else { SLOPE };
                        du[c] = ds * a[c] * slope;
                        da[c] += ds * u * slope;
                        dz[c] += du[c];
                    }
                }
            }
        }
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "query-relational-attention"
    }

    fn cpu_fwd(
        &self,
        z: &CpuStorage,
        z_layout: &Layout,
        relations: &CpuStorage,
        relations_layout: &Layout,
        questions: &CpuStorage,
        questions_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let relations = floats(relations, relations_layout)?;
        let questions = floats(questions, questions_layout)?;
        let inputs = self.inputs(floats(z, z_layout)?, relations, questions);
        let plus = self.plus(relations, questions);
        let nodes = z_layout.dims()[0];
        let mut out = vec![0.0; nodes * self.hidden];
        let mut alpha = vec![0.0; self.edges.pair.len() * self.heads];
        let arch = Arch::new();
        out.par_chunks_mut(ROWS * self.hidden)
            .zip(self.by_block(&mut alpha, self.heads))
            .enumerate()
            .for_each(|(block, (out, alpha))| {
                arch.dispatch(Forward {
                    op: self,
                    inputs,
                    plus: &plus,
                    first: block * ROWS,
                    out,
                    alpha,
                });
            });
        // a second forward pass through the same operation would give the same weights
        let _ = self.alpha.set(alpha);
        Ok((CpuStorage::F32(out), (nodes, self.hidden).into()))
    }

    fn bwd(
        &self,
        z: &Tensor,
        relations: &Tensor,
        questions: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (hidden, heads) = (self.hidden, self.heads);
        let Some(alpha) = self.alpha.get() else {
            candle_core::bail!("attention runs forward before it runs back");
        };
        let shapes = (
            z.shape().clone(),
            relations.shape().clone(),
            questions.shape().clone(),
        );
        let grad = grad.contiguous()?;
        let (z, relations) = (Floats::of(z), Floats::of(relations));
        let (questions, grad) = (Floats::of(questions), Floats::of(&grad));
        let (relations, questions) = (relations.values()?, questions.values()?);
        let grad = grad.values()?;
        let inputs = self.inputs(z.values()?, relations, questions);
        let edges = &*self.edges;
        let count = edges.pair.len();
        let arch = Arch::new();

        let mut dz = vec![0.0; shapes.0.elem_count()];
        let mut du = vec![0.0; count * hidden];
        let mut ds = vec![0.0; count * heads];
        let partial: Vec<Vec<f32>> = dz
            .par_chunks_mut(ROWS * 2 * hidden)
            .zip(self.by_block(&mut du, hidden))
            .zip(self.by_block(&mut ds, heads))
            .enumerate()
            .map(|(block, ((dz, du), ds))| {
                let mut da = vec![0.0; hidden];
                arch.dispatch(Back {
                    op: self,
                    inputs,
                    alpha,
                    grad,
                    first: block * ROWS,
                    dz,
                    du,
                    ds,
                    da: &mut da,
                });
                da
            })
            .collect();

        dz.par_chunks_mut(ROWS * 2 * hidden)
            .enumerate()
            .for_each(|(block, dz)| {
                vectorise(
                    arch,
                    #[inline(always)]
                    || {
                        for (i, dz) in dz.chunks_exact_mut(2 * hidden).enumerate() {
                            for &edge in edges.source.entries(block * ROWS + i) {
                                self.heard_back(edge as usize, &du, alpha, grad, &mut dz[hidden..]);
                            }
                        }
                    },
                );
            });

        let mut drelations = vec![0.0; shapes.1.elem_count()];
        let relation_width = inputs.relation_width;
        drelations
            .par_chunks_mut(4 * relation_width)
            .enumerate()
            .for_each(|(block, rows)| {
                vectorise(
                    arch,
                    #[inline(always)]
                    || {
                        for (i, row) in rows.chunks_exact_mut(relation_width).enumerate() {
                            for &edge in edges.relation.entries(4 * block + i) {
                                let (edge, row) = (edge as usize, &mut row[..hidden]);
                                match self.steps {
                                    true => self.heard_back(edge, &du, alpha, grad, row),
                                    false => add_to(row, &du[edge * hidden..][..hidden]),
                                }
                            }
                        }
                    },
                );
            });

        let mut dquestions = vec![0.0; shapes.2.elem_count()];
        let last = dquestions.len() - hidden;
        let (of_questions, da) = dquestions.split_at_mut(last);
        partial.iter().for_each(|part| add_to(da, part));
        if self.query {
            let mut dplus = vec![0.0; edges.pairs.len() * heads];
            for (pair, ds) in edges.pair.iter().zip(ds.chunks_exact(heads)) {
                add_to(&mut dplus[*pair as usize * heads..][..heads], ds);
            }
            self.plus_back(&dplus, relations, questions, &mut drelations, of_questions);
        }
        let tensor = |values, shape: Shape| Tensor::from_vec(values, shape, &Device::Cpu);
        Ok((
            Some(tensor(dz, shapes.0)?),
            Some(tensor(drelations, shapes.1)?),
            Some(tensor(dquestions, shapes.2)?),
        ))
    }
}

impl Attention {
    /// Adds `∂u_e + α_e·∂o_i` to the gradient of z_j.
    #[inline(always)]
    fn heard_back(&self, edge: usize, du: &[f32], alpha: &[f32], grad: &[f32], dzj: &mut [f32]) {
        let (hidden, heads) = (self.hidden, self.heads);
        let width = hidden / heads;
        let target = self.edges.target.ids()[edge] as usize;
        let grad = &grad[target * hidden..][..hidden];
        let du = &du[edge * hidden..][..hidden];
        for (head, alpha) in alpha[edge * heads..][..heads].iter().enumerate() {
            let at = head * width;
            let dzj = &mut dzj[at..][..width];
            let (du, grad) = (&du[at..][..width], &grad[at..][..width]);
            for c in 0..width {
                dzj[c] += du[c] + alpha * grad[c];
            }
        }
    }

    /// Gradient of `a_plus`: of `W_q q` and of `W_r r`.
    fn plus_back(
        &self,
        dplus: &[f32],
        relations: &[f32],
        questions: &[f32],
        drelations: &mut [f32],
        dquestions: &mut [f32],
    ) {
        let (hidden, heads) = (self.hidden, self.heads);
        let width = hidden / heads;
        for (pair, dplus) in self.edges.pairs.iter().zip(dplus.chunks_exact(heads)) {
            let q_at = pair.question as usize * hidden;
            let r_at = (2 * pair.relation as usize + 1) * hidden;
            for (head, dplus) in dplus.iter().enumerate() {
                for c in head * width..(head + 1) * width {
                    dquestions[q_at + c] += dplus * relations[r_at + c];
                    drelations[r_at + c] += dplus * questions[q_at + c];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qr_gat::{Batch, Config, Subgraph, Table};
    use crate::tensor::Var;
    use crate::tensor::gradient::{spread, worst_error};

    /// Two questions over five and three nodes, 2 relations; node 4 hears nobody.
    fn edges() -> Arc<Edges> {
        let config = Config {
            dim: 1,
            ..Config::default()
        };
        let vectors = [0.0f32; 8];
        let first = Subgraph {
            question: &[0.0],
            entities: &[0, 1, 2, 3, 4],
            topics: &[false; 5],
            relations: &[0, 1],
            triples: &[
                [0, 0, 1],
                [2, 1, 1],
                [3, 0, 1],
                [1, 1, 0],
                [4, 0, 3],
                [4, 1, 3],
                [0, 0, 2],
            ],
        };
        let second = Subgraph {
            question: &[0.0],
            entities: &[0, 1, 2],
            topics: &[false; 3],
            relations: &[1],
            triples: &[[0, 0, 2], [1, 0, 2], [2, 0, 2]],
        };
        let table = Table::new(&vectors, 1).unwrap();
        let batch = Batch::new(&config, &[first, second], &table, &table, &Device::Cpu).unwrap();
        batch.forward.clone()
    }

    #[test]
    fn one_head_has_its_hand_made_values() -> Result<()> {
        // second question of `edges`: node 7 hears 5, 6 and itself through relation 1
        let edges = edges();
        let mut z = [[0.0f32; 2]; 8];
        z[7] = [1.0, -1.0];
        z[5][1] = 0.5;
        z[6][1] = -3.0;
        let z = Tensor::new(&z, &Device::Cpu)?;
        // W_e r = 1, W_r r = 2 for relation 1; W_q q = 0.5; a = 2
        let relations = Tensor::new(&[[0.0f32, 0.0], [1.0, 2.0]], &Device::Cpu)?;
        let questions = Tensor::new(&[[0.0f32], [0.5], [2.0]], &Device::Cpu)?;
        let out = attention(&edges, (1, false), &z, &relations, &questions)?.to_vec2::<f32>()?;
        // u = 1 + 0.5 + 1 = 2.5 → 5;  1 − 3 + 1 = −1 → −0.4;  1 − 1 + 1 = 1 → 2;  plus 1 each
        let powers = [6f32.exp(), 0.6f32.exp(), 3f32.exp()];
        let sum: f32 = powers.iter().sum();
        let wanted = (powers[0] * 0.5 - powers[1] * 3.0 - powers[2]) / sum;
        assert!((out[7][0] - wanted).abs() < 1e-5, "{} {wanted}", out[7][0]);
        assert_eq!(out[4], [0.0]); // nobody to hear
        // a step has W_e r = 1 added to what is heard, and weights sum to 1
        let steps = attention(&edges, (1, true), &z, &relations, &questions)?.to_vec2::<f32>()?;
        assert!((steps[7][0] - wanted - 1.0).abs() < 1e-5);
        Ok(())
    }

    fn inputs(query: bool) -> [Var; 3] {
        let relation_width = if query { 12 } else { 6 };
        [
            spread((8, 12), 1),
            spread((2, relation_width), 2),
            spread((3, 6), 3),
        ]
    }

    #[test]
    fn fused_and_composed_agree() -> Result<()> {
        for (query, steps) in [(true, false), (false, false), (true, true)] {
            let how = (2, steps);
            let [z, relations, questions] = inputs(query);
            let edges = edges();
            let weight = spread((8, 6), 9).as_tensor().detach();
            let fused =
                (attention(&edges, how, &z, &relations, &questions)? * &weight)?.sum_all()?;
            let plain =
                (composed(&edges, how, &z, &relations, &questions)? * &weight)?.sum_all()?;
            assert!((fused.to_scalar::<f32>()? - plain.to_scalar::<f32>()?).abs() < 1e-5);
            let (fused, plain) = (fused.backward()?, plain.backward()?);
            for input in [&z, &relations, &questions] {
                let (Some(a), Some(b)) = (fused.get(input), plain.get(input)) else {
                    panic!("a gradient is missing");
                };
                let worst = (a - b)?.abs()?.max_all()?.to_scalar::<f32>()?;
                assert!(worst < 1e-5, "{worst}");
            }
        }
        Ok(())
    }

    #[test]
    fn gradient_is_the_finite_difference() -> Result<()> {
        let all = inputs(true);
        let [z, relations, questions] = &all;
        let edges = edges();
        let weight = spread((8, 6), 9).as_tensor().detach();
        for steps in [false, true] {
            let error = worst_error(&all, 1e-3, || {
                (attention(&edges, (2, steps), z, relations, questions)? * &weight)?.sum_all()
            })?;
            assert!(error < 5e-3, "{error}");
        }
        Ok(())
    }
}
