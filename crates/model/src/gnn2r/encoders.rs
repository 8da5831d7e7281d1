//! Texts read from both ends by gated recurrent units.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Result, Tensor, Var};

use crate::encode::TokenStates;
use crate::tensor::{Order, Segments, Sequences, gather, gru, product_with_constant};

/// Both directions, with the name they have among tensors.
pub(super) const ORDERS: [(&str, Order); 2] =
    [("forward", Order::Forward), ("backward", Order::Backward)];

/// Token vectors on a device.
pub(super) struct Tokens {
    rows: Tensor, // [rows, dim]
    places: Arc<Segments>,
    sequences: Arc<Sequences>,
}

impl Tokens {
    pub(super) fn new(states: &TokenStates, device: &Device) -> Result<Self> {
        let dim = states.dim();
        // a table without rows cannot be multiplied
        let rows = match states.rows() {
            [] => vec![0.0; dim],
            rows => rows.to_vec(),
        };
        let count = rows.len() / dim;
        Ok(Self {
            rows: Tensor::from_vec(rows, (count, dim), &Device::Cpu)?.to_device(device)?,
            places: Arc::new(Segments::new(states.tokens().to_vec(), count)),
            sequences: Arc::new(states.sequences()),
        })
    }

    pub(super) fn texts(&self) -> usize {
        self.sequences.len()
    }
}

/// Names and shapes of the tensors of an encoder called `name`.
pub(super) fn shapes(name: &str, dim: usize, hidden: usize) -> Vec<(String, Vec<usize>)> {
    let mut shapes = Vec::new();
    for (order, _) in ORDERS {
        for (tensor, shape) in [
            ("w_i", vec![3 * hidden, dim]),
            ("b_i", vec![3 * hidden]),
            ("w_h", vec![3 * hidden, hidden]),
            ("b_h", vec![3 * hidden]),
        ] {
            shapes.push((format!("{name}.{order}.{tensor}"), shape));
        }
    }
    shapes
}

/// The last states of both directions, each `[texts, hidden]`, begun with `first` or with zeros.
pub(super) fn read(
    parameters: &BTreeMap<String, Var>,
    name: &str,
    tokens: &Tokens,
    first: Option<&[Tensor; 2]>,
) -> Result<[Tensor; 2]> {
    let one = |at: usize| -> Result<Tensor> {
        let (direction, order) = ORDERS[at];
        let get = |tensor: &str| parameters[&format!("{name}.{direction}.{tensor}")].as_tensor();
        let gates = product_with_constant(&tokens.rows, get("w_i"))?;
        let gates = gates.broadcast_add(&get("b_i").unsqueeze(0)?)?;
        let gates = gather(&gates, &tokens.places)?;
        let weights = Tensor::cat(&[get("w_h"), &get("b_h").unsqueeze(1)?], 1)?;
        let hidden = get("w_h").dim(1)?;
        let begin = match first {
            Some(first) => first[at].clone(),
            None => Tensor::zeros((tokens.texts(), hidden), gates.dtype(), gates.device())?,
        };
        gru(&gates, &weights, &begin, &tokens.sequences, order)
    };
    Ok([one(0)?, one(1)?])
}

/// The mean of both directions.
pub(super) fn mean([forward, backward]: &[Tensor; 2]) -> Result<Tensor> {
    (forward + backward)? * 0.5
}
