//! The two-layer triple score as one operation with its gradient.
//!
//! ```text
//! s_e = W_2·ReLU(u_e)         u_e = Q[question] + H[head] + R[relation] + T[tail]
//! ∂u_e = W_2ᵀ·∂s_e where u_e > 0                 ∂W_2 = Σ_e ∂s_e·ReLU(u_e)ᵀ
//! ∂H[h] = Σ over triples with head h of ∂u_e     and so for R, T and Q
//! ```
//!
//! H, R and T are the products of W_1 with each entity as head, each relation and each entity as
//! tail; Q is that of the question, b_1 included. H and T come side by side, `[nodes, 2·hidden]`;
//! W_2 are the last rows of the questions.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Device, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::batch::{Meetings, Triples};
use crate::tensor::lanes::relu_dot;
use crate::tensor::{
    Floats, ROWS, Segments, add_to, floats, gather, on_cpu, product_with_constant, vectorise,
};

/// `nodes` `[nodes, 2·hidden]`, `relations` `[relations, hidden]`, `questions`
/// `[questions + outputs, hidden]` to `[triples, outputs]`.
pub(crate) fn score(
    triples: &Arc<Triples>,
    outputs: usize,
    nodes: &Tensor,
    relations: &Tensor,
    questions: &Tensor,
) -> Result<Tensor> {
    if !on_cpu(nodes) {
        return composed(triples, outputs, nodes, relations, questions);
    }
    nodes.contiguous()?.apply_op3(
        &relations.contiguous()?,
        &questions.contiguous()?,
        Score {
            triples: triples.clone(),
            hidden: questions.dim(1)?,
            outputs,
        },
    )
}

/// The weights of the score, however the nodes are made.
pub(crate) struct Readout<'a> {
    /// W_1's part of the question, `[hidden, dim]`; none where the question is left out.
    pub(crate) w_q: Option<Tensor>,
    /// W_1's part of the relation, `[hidden, dim]`.
    pub(crate) w_r: Tensor,
    pub(crate) b_1: &'a Tensor,
    /// `[outputs, hidden]`
    pub(crate) w_2: &'a Tensor,
    pub(crate) b_2: &'a Tensor,
    /// M_q and M_r, where question and relation meet in a product.
    pub(crate) meeting: Option<[&'a Tensor; 2]>,
}

impl Readout<'_> {
    /// The logits of all triples, `[triples, outputs]`, from W_1's products with each entity as
    /// head and as tail, `[nodes, 2·hidden]`.
    pub(crate) fn logits(
        &self,
        nodes: &Tensor,
        (q, r): (&Tensor, &Tensor),
        triples: &Arc<Triples>,
        meetings: Option<&Meetings>,
    ) -> Result<Tensor> {
        let mut relations = product_with_constant(r, &self.w_r)?;
        if let (Some([m_q, m_r]), Some(Meetings { question, relation })) = (self.meeting, meetings)
        {
            let m_q = product_with_constant(q, m_q)?;
            let m_r = product_with_constant(r, m_r)?;
            let product = (gather(&m_q, question)? * gather(&m_r, relation)?)?;
            relations = (gather(&relations, relation)? + product)?;
        }
        let (outputs, hidden) = self.w_2.dims2()?;
        let b_1 = self.b_1.unsqueeze(0)?;
        let of_question = match &self.w_q {
            Some(w_q) => product_with_constant(q, w_q)?.broadcast_add(&b_1)?,
            None => b_1.broadcast_as((q.dim(0)?, hidden))?.contiguous()?,
        };
        let questions = Tensor::cat(&[&of_question, self.w_2], 0)?;
        score(triples, outputs, nodes, &relations, &questions)?.broadcast_add(self.b_2)
    }
}

fn composed(
    triples: &Triples,
    outputs: usize,
    nodes: &Tensor,
    relations: &Tensor,
    questions: &Tensor,
) -> Result<Tensor> {
    let (rows, hidden) = questions.dims2()?;
    let u = (gather(&nodes.narrow(1, 0, hidden)?, &triples.head)?
        + gather(&nodes.narrow(1, hidden, hidden)?, &triples.tail)?
        + gather(relations, &triples.relation)?
        + gather(&questions.narrow(0, 0, rows - outputs)?, &triples.question)?)?;
    let w_2 = questions.narrow(0, rows - outputs, outputs)?;
    u.relu()?.matmul(&w_2.t()?)
}

struct Score {
    triples: Arc<Triples>,
    hidden: usize,
    outputs: usize,
}

#[derive(Clone, Copy)]
struct Inputs<'a> {
    nodes: &'a [f32],
    relations: &'a [f32],
    questions: &'a [f32],
    w_2: &'a [f32],
    triples: &'a Triples,
    hidden: usize,
}

impl<'a> Inputs<'a> {
    fn new(op: &'a Score, nodes: &'a [f32], relations: &'a [f32], questions: &'a [f32]) -> Self {
        Self {
            nodes,
            relations,
            questions,
            w_2: &questions[questions.len() - op.outputs * op.hidden..],
            triples: &op.triples,
            hidden: op.hidden,
        }
    }

    /// The four parts of u.
    #[inline(always)]
    fn parts(&self, triple: usize) -> [&'a [f32]; 4] {
        let row = |values: &'a [f32], index: usize| &values[index * self.hidden..][..self.hidden];
        let id = |segments: &Segments| segments.ids()[triple] as usize;
        [
            row(self.nodes, 2 * id(&self.triples.head)),
            row(self.relations, id(&self.triples.relation)),
            row(self.nodes, 2 * id(&self.triples.tail) + 1),
            row(self.questions, id(&self.triples.question)),
        ]
    }
}

impl CustomOp3 for Score {
    fn name(&self) -> &'static str {
        "triple-score"
    }

    fn cpu_fwd(
        &self,
        nodes: &CpuStorage,
        nodes_layout: &Layout,
        relations: &CpuStorage,
        relations_layout: &Layout,
        questions: &CpuStorage,
        questions_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let inputs = Inputs::new(
            self,
            floats(nodes, nodes_layout)?,
            floats(relations, relations_layout)?,
            floats(questions, questions_layout)?,
        );
        let count = self.triples.head.len();
        let mut scores = vec![0.0; count * self.outputs];
        let arch = Arch::new();
        scores
            .par_chunks_mut(ROWS * self.outputs)
            .enumerate()
            .for_each(|(block, scores)| {
                arch.dispatch(Forward {
                    inputs,
                    first: block * ROWS,
                    outputs: self.outputs,
                    scores,
                });
            });
        Ok((CpuStorage::F32(scores), (count, self.outputs).into()))
    }

    fn bwd(
        &self,
        nodes: &Tensor,
        relations: &Tensor,
        questions: &Tensor,
        _scores: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (hidden, outputs) = (self.hidden, self.outputs);
        let shapes = (
            nodes.shape().clone(),
            relations.shape().clone(),
            questions.shape().clone(),
        );
        let grad = grad.contiguous()?;
        let (nodes, relations) = (Floats::of(nodes), Floats::of(relations));
        let (questions, grad) = (Floats::of(questions), Floats::of(&grad));
        let inputs = Inputs::new(
            self,
            nodes.values()?,
            relations.values()?,
            questions.values()?,
        );
        let arch = Arch::new();
        let triples = &*self.triples;

        let mut du = vec![0.0; triples.head.len() * hidden];
        let partial: Vec<Vec<f32>> = du
            .par_chunks_mut(ROWS * hidden)
            .zip(grad.values()?.par_chunks(ROWS * outputs))
            .enumerate()
            .map(|(block, (du, grad))| {
                let mut dw = vec![0.0; outputs * hidden];
                vectorise(
                    arch,
                    #[inline(always)]
                    || {
                        let rows = du.chunks_exact_mut(hidden).zip(grad.chunks_exact(outputs));
                        for (i, (du, grad)) in rows.enumerate() {
                            triple_back(inputs, block * ROWS + i, grad, du, &mut dw);
                        }
                    },
                );
                dw
            })
            .collect();

        let mut dnodes = vec![0.0; shapes.0.elem_count()];
        sum_rows(&du, hidden, &triples.head, &mut dnodes, 2 * hidden, 0);
        sum_rows(&du, hidden, &triples.tail, &mut dnodes, 2 * hidden, hidden);
        let mut drelations = vec![0.0; shapes.1.elem_count()];
        sum_rows(&du, hidden, &triples.relation, &mut drelations, hidden, 0);
        let mut dquestions = vec![0.0; shapes.2.elem_count()];
        let last = dquestions.len() - outputs * hidden;
        let (of_questions, dw) = dquestions.split_at_mut(last);
        // every triple of a question has a head: summing the heads' sums spares a pass over du
        let heads = dnodes.chunks_exact(2 * hidden).zip(node_questions(triples));
        for (node, question) in heads {
            add_to(
                &mut of_questions[question as usize * hidden..][..hidden],
                &node[..hidden],
            );
        }
        partial.iter().for_each(|part| add_to(dw, part));
        let tensor = |values, shape: Shape| Tensor::from_vec(values, shape, &Device::Cpu);
        Ok((
            Some(tensor(dnodes, shapes.0)?),
            Some(tensor(drelations, shapes.1)?),
            Some(tensor(dquestions, shapes.2)?),
        ))
    }
}

/// Scores of the triples `first..`.
struct Forward<'a> {
    inputs: Inputs<'a>,
    first: usize,
    outputs: usize,
    scores: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let hidden = self.inputs.hidden;
        for (i, scores) in self.scores.chunks_exact_mut(self.outputs).enumerate() {
            let parts = self.inputs.parts(self.first + i);
            for (score, w_2) in scores.iter_mut().zip(self.inputs.w_2.chunks_exact(hidden)) {
                *score = relu_dot(simd, w_2, parts);
            }
        }
    }
}

/// The question of each node; any, for nodes that are no head and so add nothing.
fn node_questions(triples: &Triples) -> impl Iterator<Item = u32> {
    (0..triples.head.count()).map(|node| match triples.head.entries(node) {
        [triple, ..] => triples.question.ids()[*triple as usize],
        [] => 0,
    })
}

#[inline(always)]
fn triple_back(inputs: Inputs<'_>, triple: usize, grad: &[f32], du: &mut [f32], dw: &mut [f32]) {
    let [h, r, t, q] = inputs.parts(triple);
    let hidden = du.len();
    let rows = inputs.w_2.chunks_exact(hidden);
    for ((grad, w), dw) in grad.iter().zip(rows).zip(dw.chunks_exact_mut(hidden)) {
        for c in 0..hidden {
            let u = h[c] + r[c] + t[c] + q[c];
            let on = if u > 0.0 { *grad } else { 0.0 };
            du[c] += on * w[c];
            dw[c] += on * u;
        }
    }
}

/// Sums rows of `x` by segment into columns `at..at + width` of rows of `stride`.
fn sum_rows(
    x: &[f32],
    width: usize,
    segments: &Segments,
    out: &mut [f32],
    stride: usize,
    at: usize,
) {
    let arch = Arch::new();
    out.par_chunks_mut(ROWS * stride)
        .enumerate()
        .for_each(|(block, rows)| {
            vectorise(
                arch,
                #[inline(always)]
                || {
                    for (i, row) in rows.chunks_exact_mut(stride).enumerate() {
                        let row = &mut row[at..at + width];
                        for &entry in segments.entries(block * ROWS + i) {
                            add_to(row, &x[entry as usize * width..][..width]);
                        }
                    }
                },
            );
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::gradient::{spread, worst_error};

    /// Question 0: triples 0, 1 over nodes 0, 1; question 1: triples 2, 3 over nodes 2, 3.
    fn triples() -> Arc<Triples> {
        let segments = |ids: &[u32], count| Arc::new(Segments::new(ids.to_vec(), count));
        Arc::new(Triples {
            head: segments(&[0, 1, 2, 2], 4),
            relation: segments(&[0, 1, 1, 0], 2),
            tail: segments(&[1, 1, 3, 2], 4),
            question: segments(&[0, 0, 1, 1], 2),
        })
    }

    #[test]
    fn scores_have_their_hand_made_values() -> Result<()> {
        // one hidden number; H 1 2 3 4, T 10 20 30 40, R −25 −32, Q 1 −1, w_2 = 2
        let nodes = Tensor::new(
            &[[1.0f32, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]],
            &Device::Cpu,
        )?;
        let relations = Tensor::new(&[[-25.0f32], [-32.0]], &Device::Cpu)?;
        let questions = Tensor::new(&[[1.0f32], [-1.0], [2.0]], &Device::Cpu)?;
        let scores = score(&triples(), 1, &nodes, &relations, &questions)?
            .flatten_all()?
            .to_vec1::<f32>()?;
        // 1−25+20+1 = −3 → 0;  2−32+20+1 = −9 → 0;  3−32+40−1 = 10 → 20;  3−25+30−1 = 7 → 14
        assert_eq!(scores, [0.0, 0.0, 20.0, 14.0]);
        Ok(())
    }

    #[test]
    fn fused_and_composed_agree_and_gradients_are_finite_differences() -> Result<()> {
        for outputs in [1, 3] {
            let questions = spread((2 + outputs, 5), 3);
            let all = [spread((4, 10), 1), spread((2, 5), 2), questions];
            let [nodes, relations, questions] = &all;
            let weight = spread((4, outputs), 9);
            let weight = weight.as_detached_tensor();
            let weighed = |scores: Tensor| (scores * &weight)?.sum_all();
            let fused = || weighed(score(&triples(), outputs, nodes, relations, questions)?);
            let plain = || weighed(composed(&triples(), outputs, nodes, relations, questions)?);
            assert!((fused()?.to_scalar::<f32>()? - plain()?.to_scalar::<f32>()?).abs() < 1e-5);
            for error in [
                worst_error(&all, 1e-3, fused)?,
                worst_error(&all, 1e-3, plain)?,
            ] {
                assert!(error < 5e-3, "{error}");
            }
        }
        Ok(())
    }
}
