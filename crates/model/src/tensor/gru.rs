//! A gated recurrent unit over sequences of different lengths, laid end to end.
//!
//! Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP 2014, with the
//! reset gate where cuDNN and PyTorch have it:
//!
//! ```text
//! r = σ(g_r + W_r·h + b_r)        z = σ(g_z + W_z·h + b_z)
//! n = tanh(g_n + r∘(W_n·h + b_n))
//! h ← (1 − z)∘n + z∘h             from h⁰, token by token; the result is the last h
//! ```
//!
//! g = W·x + b of a token comes in as `gates`, three blocks of `hidden` numbers in the order r, z,
//! n: it is the same wherever a token stands, so the caller computes it once for each distinct
//! token. All sequences take a step together, the longest ones to the end; a sequence without
//! tokens keeps h⁰.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp3, Device, Layout, Result, Shape, Tensor};

use super::{Floats, floats, on_cpu};
use crate::encode::simd::exp;

/// Which end of a sequence is read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first token to the last.
    Forward,
    /// From the last token to the first.
    Backward,
}

/// Where sequences lie that are laid end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequences {
    starts: Vec<usize>,
    lengths: Vec<usize>,
    /// Sequences by length, the longest first.
    order: Vec<usize>,
    tokens: usize,
}

impl Sequences {
    /// Sequences of these lengths.
    pub fn new(lengths: &[usize]) -> Self {
        let mut tokens = 0;
        let starts = lengths.iter().map(|len| {
            let start = tokens;
            tokens += len;
            start
        });
        let starts = starts.collect();
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
        Self {
            starts,
            lengths: lengths.to_vec(),
            order,
            tokens,
        }
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Tokens of all sequences.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    pub(crate) fn longest(&self) -> usize {
        self.order.first().map_or(0, |&i| self.lengths[i])
    }

    /// The sequences that take step `step`, each with the token it reads.
    pub(crate) fn at(
        &self,
        step: usize,
        order: Order,
    ) -> impl Iterator<Item = (usize, usize)> + '_ {
        let going = self
            .order
            .iter()
            .take_while(move |&&i| self.lengths[i] > step);
        going.map(move |&i| {
            let offset = match order {
                Order::Forward => step,
                Order::Backward => self.lengths[i] - 1 - step,
            };
            (i, self.starts[i] + offset)
        })
    }
}

/// The last states, `[sequences, hidden]`: `gates` is `[tokens, 3·hidden]`, `weights` is
/// `[3·hidden, hidden + 1]`, W beside b, and `first` is h⁰, `[sequences, hidden]`.
pub fn gru(
    gates: &Tensor,
    weights: &Tensor,
    first: &Tensor,
    sequences: &Arc<Sequences>,
    order: Order,
) -> Result<Tensor> {
    let (count, hidden) = first.dims2()?;
    let wanted = [(sequences.tokens, 3 * hidden), (3 * hidden, hidden + 1)];
    let given = [gates.dims2()?, weights.dims2()?];
    if given != wanted || count != sequences.len() {
        candle_core::bail!("a GRU of {wanted:?} was given {given:?} for {count} sequences");
    }
    if !on_cpu(gates) {
        return composed(gates, weights, first, sequences, order);
    }
    gates.contiguous()?.apply_op3(
        &weights.contiguous()?,
        &first.contiguous()?,
        Gru {
            sequences: sequences.clone(),
            order,
            kept: OnceLock::new(),
        },
    )
}

/// The same of candle's own operations, step by step.
fn composed(
    gates: &Tensor,
    weights: &Tensor,
    first: &Tensor,
    sequences: &Sequences,
    order: Order,
) -> Result<Tensor> {
    let (_, hidden) = first.dims2()?;
    let device = gates.device();
    let w = weights.narrow(1, 0, hidden)?.contiguous()?.t()?;
    let b = weights.narrow(1, hidden, 1)?.reshape((1, 3 * hidden))?;
    let sigmoid = |x: &Tensor| (x.neg()?.exp()? + 1.0)?.recip();
    let mut h = first.clone();
    for step in 0..sequences.longest() {
        let (going, tokens): (Vec<u32>, Vec<u32>) = sequences
            .at(step, order)
            .map(|(i, token)| (i as u32, token as u32))
            .unzip();
        let going = Tensor::new(going, device)?;
        let own = h.index_select(&going, 0)?;
        let x = gates.index_select(&Tensor::new(tokens, device)?, 0)?;
        let y = own.matmul(&w)?.broadcast_add(&b)?;
        let part = |of: &Tensor, i: usize| of.narrow(1, i * hidden, hidden);
        let r = sigmoid(&(part(&x, 0)? + part(&y, 0)?)?)?;
        let z = sigmoid(&(part(&x, 1)? + part(&y, 1)?)?)?;
        let n = (part(&x, 2)? + (r * part(&y, 2)?)?)?.tanh()?;
        let change = ((&n - &own)? * (1.0 - z)?)?; // h ← h + (1 − z)∘(n − h)
        h = h.index_add(&going, &change, 0)?;
    }
    Ok(h)
}

struct Gru {
    sequences: Arc<Sequences>,
    order: Order,
    /// r, z, n, W_n·h + b_n and the state before, for each token.
    kept: OnceLock<Vec<f32>>,
}

/// Numbers kept for a token, in blocks of `hidden`.
pub(crate) const KEPT: usize = 5;

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (1.0 + exp(2.0 * x))
}

impl CustomOp3 for Gru {
    fn name(&self) -> &'static str {
        "gru"
    }

    fn cpu_fwd(
        &self,
        gates: &CpuStorage,
        gates_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
        first: &CpuStorage,
        first_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (count, hidden) = first_layout.shape().dims2()?;
        let gates = floats(gates, gates_layout)?;
        let weights = floats(weights, weights_layout)?;
        let (w, b) = split(weights, hidden)?;
        let w = w.t()?;
        let mut h = floats(first, first_layout)?.to_vec();
        let mut kept = vec![0.0; self.sequences.tokens * KEPT * hidden];
        let mut before = Vec::new();
        for step in 0..self.sequences.longest() {
            before.clear();
            for (i, _) in self.sequences.at(step, self.order) {
                before.extend_from_slice(&h[i * hidden..][..hidden]);
            }
            let rows = before.len() / hidden;
            let own = Tensor::from_slice(&before, (rows, hidden), &Device::Cpu)?;
            let product = own.matmul(&w)?;
            let product = Floats::of(&product);
            let going = self.sequences.at(step, self.order);
            for ((i, token), y) in going.zip(product.values()?.chunks_exact(3 * hidden)) {
                let x = &gates[token * 3 * hidden..][..3 * hidden];
                let kept = &mut kept[token * KEPT * hidden..][..KEPT * hidden];
                let h = &mut h[i * hidden..][..hidden];
                advance(x, y, &b, h, kept);
            }
        }
        let _ = self.kept.set(kept);
        Ok((CpuStorage::F32(h), (count, hidden).into()))
    }

    fn bwd(
        &self,
        gates: &Tensor,
        weights: &Tensor,
        _first: &Tensor,
        _last: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (count, hidden) = grad.dims2()?;
        let Some(kept) = self.kept.get() else {
            candle_core::bail!("a GRU goes back only after it went forward");
        };
        let weights = weights.contiguous()?;
        let values = Floats::of(&weights);
        let (w, _) = split(values.values()?, hidden)?;
        let mut dh = grad.flatten_all()?.to_vec1::<f32>()?;
        let mut d_gates = vec![0.0; gates.elem_count()];
        // what goes into W·h + b, and [h, 1] beside it, token by token
        let mut d_inner = vec![0.0; gates.elem_count()];
        let mut before = vec![1.0; self.sequences.tokens * (hidden + 1)];
        let mut inner = Vec::new();
        for step in (0..self.sequences.longest()).rev() {
            inner.clear();
            for (i, token) in self.sequences.at(step, self.order) {
                let kept = &kept[token * KEPT * hidden..][..KEPT * hidden];
                before[token * (hidden + 1)..][..hidden].copy_from_slice(&kept[4 * hidden..]);
                let block = token * 3 * hidden..(token + 1) * 3 * hidden;
                let d_inner = &mut d_inner[block.clone()];
                retreat(
                    kept,
                    &mut dh[i * hidden..][..hidden],
                    &mut d_gates[block],
                    d_inner,
                );
                inner.extend_from_slice(d_inner);
            }
            let rows = inner.len() / (3 * hidden);
            let inner = Tensor::from_slice(&inner, (rows, 3 * hidden), &Device::Cpu)?;
            let back = inner.matmul(&w)?;
            let back = Floats::of(&back);
            let going = self.sequences.at(step, self.order);
            for ((i, _), back) in going.zip(back.values()?.chunks_exact(hidden)) {
                super::add_to(&mut dh[i * hidden..][..hidden], back);
            }
        }
        let tokens = self.sequences.tokens;
        let cpu = &Device::Cpu;
        let d_inner = Tensor::from_vec(d_inner, (tokens, 3 * hidden), cpu)?;
        let before = Tensor::from_vec(before, (tokens, hidden + 1), cpu)?;
        Ok((
            Some(Tensor::from_vec(d_gates, gates.shape(), cpu)?),
            Some(d_inner.t()?.matmul(&before)?),
            Some(Tensor::from_vec(dh, (count, hidden), cpu)?),
        ))
    }
}

/// W as a tensor and b, of rows `[W | b]`.
fn split(weights: &[f32], hidden: usize) -> Result<(Tensor, Vec<f32>)> {
    let rows = weights.chunks_exact(hidden + 1);
    let w: Vec<f32> = rows
        .clone()
        .flat_map(|row| &row[..hidden])
        .copied()
        .collect();
    let b = rows.map(|row| row[hidden]).collect();
    Ok((Tensor::from_vec(w, (3 * hidden, hidden), &Device::Cpu)?, b))
}

/// One step of one sequence.
pub(crate) fn advance(x: &[f32], y: &[f32], b: &[f32], h: &mut [f32], kept: &mut [f32]) {
    let hidden = h.len();
    // parts of one known length: nothing is left to be checked in the loop
    let parts = |of: &'_ [f32], part: usize| -> std::ops::Range<usize> {
        debug_assert!((part + 1) * hidden <= of.len());
        part * hidden..(part + 1) * hidden
    };
    let [x_r, x_z, x_n] = [0, 1, 2].map(|part| &x[parts(x, part)]);
    let [y_r, y_z, y_n] = [0, 1, 2].map(|part| &y[parts(y, part)]);
    let [b_r, b_z, b_n] = [0, 1, 2].map(|part| &b[parts(b, part)]);
    let (r, rest) = kept.split_at_mut(hidden);
    let (z, rest) = rest.split_at_mut(hidden);
    let (n, rest) = rest.split_at_mut(hidden);
    let (inner, before) = rest.split_at_mut(hidden);
    before.copy_from_slice(h);
    super::vectorise(
        pulp::Arch::new(),
        #[inline(always)]
        || {
            for j in 0..hidden {
                r[j] = sigmoid(x_r[j] + y_r[j] + b_r[j]);
                z[j] = sigmoid(x_z[j] + y_z[j] + b_z[j]);
                inner[j] = y_n[j] + b_n[j];
                n[j] = tanh(x_n[j] + r[j] * inner[j]);
                h[j] = (1.0 - z[j]) * n[j] + z[j] * before[j];
            }
        },
    );
}

/// One step back of one sequence: `dh` becomes what reaches the state before through `z` alone.
fn retreat(kept: &[f32], dh: &mut [f32], d_gates: &mut [f32], d_inner: &mut [f32]) {
    let hidden = dh.len();
    let mut blocks = kept.chunks_exact(hidden);
    let mut block = || blocks.next().expect("five blocks are kept");
    let (r, z, n, inner, before) = (block(), block(), block(), block(), block());
    for j in 0..hidden {
        let dn = dh[j] * (1.0 - z[j]) * (1.0 - n[j] * n[j]);
        let dz = dh[j] * (before[j] - n[j]) * z[j] * (1.0 - z[j]);
        let dr = dn * inner[j] * r[j] * (1.0 - r[j]);
        for (part, d) in [dr, dz, dn].into_iter().enumerate() {
            d_gates[part * hidden + j] = d;
            d_inner[part * hidden + j] = d;
        }
        d_inner[2 * hidden + j] = dn * r[j];
        dh[j] *= z[j];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::gradient::{spread, worst_error};

    #[test]
    fn a_step_has_its_hand_made_value() -> Result<()> {
        // one number: h = 0.5, W = (1, −1, 2), b = (0, 0, 0.5), g = (0, 1, −1)
        let gates = Tensor::new(&[[0.0f32, 1.0, -1.0]], &Device::Cpu)?;
        let weights = Tensor::new(&[[1.0f32, 0.0], [-1.0, 0.0], [2.0, 0.5]], &Device::Cpu)?;
        let first = Tensor::new(&[[0.5f32]], &Device::Cpu)?;
        let one = Arc::new(Sequences::new(&[1]));
        let h = gru(&gates, &weights, &first, &one, Order::Forward)?.to_vec2::<f32>()?[0][0];
        // r = σ(0.5) = 0.6224593, z = σ(0.5) = 0.6224593, n = tanh(−1 + r·1.5) = tanh(−0.0663110)
        // = −0.0662140; h = 0.3775407·(−0.0662140) + 0.6224593·0.5 = 0.2862311
        assert!((h - 0.286_231).abs() < 1e-5, "{h}");
        Ok(())
    }

    #[test]
    fn fused_and_composed_agree_in_both_orders_with_their_gradients() -> Result<()> {
        let lengths = [2, 0, 4, 1];
        let sequences = Arc::new(Sequences::new(&lengths));
        let hidden = 3;
        let gates = spread((7, 9), 1);
        let weights = spread((9, 4), 2);
        let first = spread((4, hidden), 3);
        for order in [Order::Forward, Order::Backward] {
            let ours = gru(&gates, &weights, &first, &sequences, order)?;
            let plain = composed(&gates, &weights, &first, &sequences, order)?;
            let difference = (&ours - &plain)?.abs()?.max_all()?.to_scalar::<f32>()?;
            assert!(difference < 1e-5, "{difference}");
            let inputs = [gates.clone(), weights.clone(), first.clone()];
            let error = worst_error(&inputs, 1e-2, || {
                gru(&gates, &weights, &first, &sequences, order)?
                    .sqr()?
                    .sum_all()
            })?;
            assert!(error < 2e-3, "{error}");
        }
        // a sequence without tokens keeps its first state
        let last = gru(&gates, &weights, &first, &sequences, Order::Forward)?;
        assert_eq!(last.to_vec2::<f32>()?[1], first.to_vec2::<f32>()?[1]);
        Ok(())
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let sequences = Arc::new(Sequences::new(&[2]));
        let (gates, weights) = (spread((3, 6), 1), spread((6, 3), 2));
        assert!(
            gru(
                &gates,
                &weights,
                &spread((1, 2), 3),
                &sequences,
                Order::Forward
            )
            .is_err()
        );
    }
}
