//! Texts read by gated recurrent units without gradients: weights packed once, nothing kept.
//!
//! The same numbers as `encoders.rs`. Texts go side by side, the longest first, so that those that
//! still go on are one block; the first step needs no product, for its state is 0.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::encoders::ORDERS;
use crate::encode::TokenStates;
use crate::tensor::gru::{KEPT, advance};
use crate::tensor::panels::Panels;
use crate::tensor::{Order, ROWS};

/// The numbers of tensors, by name.
pub(super) type Values = BTreeMap<String, Vec<f32>>;

/// A GRU in one direction.
pub(super) struct OneWay {
    w_i: Panels,
    b_i: Vec<f32>,
    w_h: Panels,
    b_h: Vec<f32>,
    hidden: usize,
    order: Order,
}

/// A GRU from either end.
pub(super) struct BothWays([OneWay; 2]);

impl BothWays {
    /// The encoder called `name` among the tensors of a network.
    pub(super) fn new(values: &Values, name: &str, dim: usize, hidden: usize) -> Self {
        Self(ORDERS.map(|(direction, order)| {
            let get = |tensor: &str| &values[&format!("{name}.{direction}.{tensor}")];
            OneWay {
                w_i: Panels::new(get("w_i"), dim, 0..dim),
                b_i: get("b_i").clone(),
                w_h: Panels::new(get("w_h"), hidden, 0..hidden),
                b_h: get("b_h").clone(),
                hidden,
                order,
            }
        }))
    }

    /// Forward and backward.
    pub(super) fn ways(&self) -> &[OneWay; 2] {
        &self.0
    }

    /// The mean of the last states of both directions, `[texts, hidden]`.
    pub(super) fn read(&self, texts: &TokenStates) -> Vec<f32> {
        let [forward, backward] = &self.0;
        let (mut a, b) = rayon::join(|| forward.read_all(texts), || backward.read_all(texts));
        a.iter_mut().zip(b).for_each(|(a, b)| *a = 0.5 * (*a + b));
        a
    }
}

impl OneWay {
    /// What each row of tokens brings to the gates.
    fn gates(&self, texts: &TokenStates) -> Vec<f32> {
        let dim = texts.dim();
        let mut gates = vec![0.0; texts.rows().len() / dim * 3 * self.hidden];
        self.w_i
            .product(|row| &texts.rows()[row * dim..][..dim], &mut gates);
        for row in gates.chunks_exact_mut(3 * self.hidden) {
            row.iter_mut().zip(&self.b_i).for_each(|(g, b)| *g += b);
        }
        gates
    }

    /// The last state after the tokens of one text.
    pub(super) fn read_one(&self, text: &TokenStates, mut h: Vec<f32>) -> Vec<f32> {
        let hidden = self.hidden;
        let gates = self.gates(text);
        let mut inner = vec![0.0; 3 * hidden];
        let mut kept = vec![0.0; KEPT * hidden];
        let mut step = |token: &u32| {
            self.w_h.of_row(&h, &mut inner);
            let x = &gates[*token as usize * 3 * hidden..][..3 * hidden];
            advance(x, &inner, &self.b_h, &mut h, &mut kept);
        };
        match self.order {
            Order::Forward => text.tokens().iter().for_each(&mut step),
            Order::Backward => text.tokens().iter().rev().for_each(&mut step),
        }
        h
    }

    /// The last states after many texts, `[texts, hidden]`.
    fn read_all(&self, texts: &TokenStates) -> Vec<f32> {
        let hidden = self.hidden;
        let gates = self.gates(texts);
        let sequences = texts.sequences();
        // the text of each row of h
        let order: Vec<usize> = sequences.at(0, self.order).map(|(text, _)| text).collect();
        let mut h = vec![0.0; order.len() * hidden];
        let mut inner = vec![0.0; order.len() * 3 * hidden];
        for step in 0..sequences.longest() {
            let tokens = sequences.at(step, self.order);
            let tokens: Vec<usize> = tokens.map(|(_, token)| token).collect();
            let inner = &mut inner[..tokens.len() * 3 * hidden];
            if step > 0 {
                self.w_h.product(|row| &h[row * hidden..][..hidden], inner);
            }
            let going = &mut h[..tokens.len() * hidden];
            going
                .par_chunks_mut(ROWS * hidden)
                .zip(inner.par_chunks(ROWS * 3 * hidden))
                .zip(tokens.par_chunks(ROWS))
                .for_each(|((h, inner), tokens)| {
                    let mut kept = vec![0.0; KEPT * hidden];
                    let rows = h.chunks_exact_mut(hidden);
                    for ((h, y), &token) in rows.zip(inner.chunks_exact(3 * hidden)).zip(tokens) {
                        let row = texts.tokens()[token] as usize;
                        let x = &gates[row * 3 * hidden..][..3 * hidden];
                        advance(x, y, &self.b_h, h, &mut kept);
                    }
                });
        }
        // texts without tokens stay at 0
        let mut last = vec![0.0; texts.len() * hidden];
        for (row, text) in h.chunks_exact(hidden).zip(order) {
            last[text * hidden..][..hidden].copy_from_slice(row);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::super::encoders::{self, Tokens, mean};
    use super::super::network::drawn;
    use super::super::network::tests::texts;
    use super::*;
    use crate::Random;
    use crate::checkpoint::numbers;
    use crate::tensor::Device;

    #[test]
    fn texts_side_by_side_are_read_as_with_gradients() {
        let texts = texts(&[3, 0, 1, 7, 3, 2], 5);
        let (dim, hidden) = (texts.dim(), 4);
        let shapes = encoders::shapes("t", dim, hidden);
        let parameters = drawn(shapes, &mut Random::new(3), &Device::Cpu).unwrap();
        let tokens = Tokens::new(&texts, &Device::Cpu).unwrap();
        let wanted = mean(&encoders::read(&parameters, "t", &tokens, None).unwrap()).unwrap();
        let wanted: Vec<f32> = wanted.flatten_all().unwrap().to_vec1().unwrap();
        let both = BothWays::new(&numbers(&parameters).unwrap(), "t", dim, hidden);
        let found = both.read(&texts);
        assert_eq!(found.len(), wanted.len());
        for (a, b) in found.iter().zip(&wanted) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        assert_eq!(found[hidden..2 * hidden], [0.0; 4]);
        assert!(wanted.iter().any(|x| x.abs() > 1e-2));
    }
}
