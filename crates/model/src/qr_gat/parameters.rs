//! Names, shapes and initial values of what the network learns.
//!
//! ```text
//! DIRECTION.LAYER.w_s, .w_t   [hidden, inputs]    inputs: [e ‖ q ‖ p] in layer 1, then hidden
//! DIRECTION.LAYER.w_e         [hidden, dim]
//! DIRECTION.LAYER.w_q, .w_r   [hidden, dim]       absent with `no-query-attn`
//! DIRECTION.LAYER.a           [heads, hidden/heads]
//! DIRECTION.LAYER.norm.scale, .norm.shift         [hidden]
//! w_1 [hidden, q + 2·hidden + dim + 2·hidden]     b_1 [hidden]    w_2 [outputs, hidden]    b_2 [outputs]
//! m_q, m_r [hidden, dim]                          only with `matching`
//! ```
//!
//! outputs is 1, or 3 with `answers`: of the triple, of its head, of its tail. DIRECTION is `forward`
//! or `backward`, LAYER counts from 1. Matrices begin as Glorot and Bengio
//! (2010) have it, uniform in `±√(6/(in + out))`; biases and β at 0, γ at 1. With `matching`, w_r
//! begins as w_q and m_r as m_q, and these uniform in ±1: their inputs have length 1, and products of
//! small numbers would be lost among the other sums.

use std::collections::BTreeMap;

use candle_core::{Device, Result, Tensor, Var};

use super::{Ablation, Config};
use crate::Random;

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From heads to tails.
    Forward,
    /// From tails to heads.
    Backward,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Forward, Self::Backward];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

/// The name of a tensor of layer `layer` (from 0).
pub(crate) fn name(direction: Direction, layer: usize, tensor: &str) -> String {
    format!("{}.{}.{tensor}", direction.name(), layer + 1)
}

/// Name and shape of every tensor, in the order in which they are drawn.
pub(crate) fn shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let Config {
        dim,
        hidden,
        layers,
        heads,
        ..
    } = *config;
    let mut shapes = vec![];
    for direction in Direction::BOTH {
        for layer in 0..layers {
            let inputs = match layer {
                0 => config.first_inputs(),
                _ => hidden,
            };
            let mut add = |tensor: &str, shape: &[usize]| {
                shapes.push((name(direction, layer, tensor), shape.to_vec()));
            };
            add("w_s", &[hidden, inputs]);
            add("w_t", &[hidden, inputs]);
            add("w_e", &[hidden, dim]);
            if config.keeps(Ablation::NoQueryAttn) {
                add("w_q", &[hidden, dim]);
                add("w_r", &[hidden, dim]);
            }
            add("a", &[heads, hidden / heads]);
            add("norm.scale", &[hidden]);
            add("norm.shift", &[hidden]);
        }
    }
    shapes.push((
        "w_1".into(),
        vec![hidden, config.query_score() + 4 * hidden + dim],
    ));
    if config.meets() {
        shapes.push(("m_q".into(), vec![hidden, dim]));
        shapes.push(("m_r".into(), vec![hidden, dim]));
    }
    shapes.push(("b_1".into(), vec![hidden]));
    shapes.push(("w_2".into(), vec![config.outputs(), hidden]));
    shapes.push(("b_2".into(), vec![config.outputs()]));
    shapes
}

/// Every parameter at its initial value.
pub(crate) fn initial(
    config: &Config,
    random: &mut Random,
    device: &Device,
) -> Result<BTreeMap<String, Var>> {
    let draw = |(name, shape): (String, Vec<usize>)| {
        let count = shape.iter().product();
        let values = if name.ends_with("norm.scale") {
            vec![1.0; count]
        } else if shape.len() == 1 {
            vec![0.0; count]
        } else {
            match name.as_str() {
                "m_q" | "m_r" => random.within(1.0, count),
                _ => random.glorot(shape[0], shape[1]),
            }
        };
        let values = Tensor::from_vec(values, shape, &Device::Cpu)?.to_device(device)?;
        Ok((name, Var::from_tensor(&values)?))
    };
    let parameters: BTreeMap<String, Var> = shapes(config)
        .into_iter()
        .map(draw)
        .collect::<Result<_>>()?;
    if config.meets() {
        for (name, var) in &parameters {
            let twin = match name.strip_suffix("w_r").or(name.strip_suffix("m_r")) {
                Some(stem) => format!("{stem}{}_q", &name[stem.len()..stem.len() + 1]),
                None => continue,
            };
            if let Some(twin) = parameters.get(&twin) {
                var.set(&twin.as_tensor().copy()?)?;
            }
        }
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_equations() {
        let config = Config {
            dim: 5,
            hidden: 4,
            layers: 2,
            heads: 2,
            ..Config::default()
        };
        let all: BTreeMap<_, _> = shapes(&config).into_iter().collect();
        assert_eq!(all["forward.1.w_s"], [4, 12]); // 5 + 5 + 2
        assert_eq!(all["backward.2.w_t"], [4, 4]);
        assert_eq!(all["forward.2.a"], [2, 2]);
        assert_eq!(all["w_1"], [4, 26]); // 5 + 8 + 5 + 8
        assert_eq!(all.len(), 2 * 2 * 8 + 4);
        let ablations = [
            Ablation::NoQueryInit,
            Ablation::NoQueryAttn,
            Ablation::NoQueryScore,
        ];
        let config = Config {
            ablations: ablations.into(),
            ..config
        };
        let all: BTreeMap<_, _> = shapes(&config).into_iter().collect();
        assert_eq!(all["forward.1.w_s"], [4, 7]);
        assert_eq!(all["w_1"], [4, 21]);
        assert!(!all.contains_key("forward.1.w_q"));
    }

    #[test]
    fn initial_weights_keep_their_bound_and_their_seed() -> Result<()> {
        let config = Config {
            dim: 6,
            hidden: 8,
            ..Config::default()
        };
        let draw = |seed| initial(&config, &mut Random::new(seed), &Device::Cpu);
        let first = draw(1)?;
        let w = first["forward.1.w_e"].flatten_all()?.to_vec1::<f32>()?;
        let bound = (6.0f32 / 14.0).sqrt();
        assert!(w.iter().all(|x| x.abs() <= bound));
        assert!(w.iter().any(|x| x.abs() > bound / 2.0));
        assert_eq!(
            w,
            draw(1)?["forward.1.w_e"].flatten_all()?.to_vec1::<f32>()?
        );
        assert_ne!(
            w,
            draw(2)?["forward.1.w_e"].flatten_all()?.to_vec1::<f32>()?
        );
        assert_eq!(first["backward.2.norm.scale"].to_vec1::<f32>()?, [1.0; 8]);
        Ok(())
    }
}
