//! What learns: soft prompt, projector, alignment, gate and the adapter of the language model.

use std::collections::{BTreeMap, HashMap};

use candle_core::{Device, Tensor, Var};

use super::{Ablation, Aspect, Config};
use crate::checkpoint::{Checkpointable, checkpointable};
use crate::language::local::frozen::Product;
use crate::tensor::{dropout_mask, product_with_constant, softmax};
use crate::{Random, Result};

/// Far below every score.
const HIDDEN: f64 = 1e9;

/// The learned part of AMAR.
pub struct Network {
    config: Config,
    parameters: BTreeMap<String, Var>,
}

/// Rows of several questions, as many of each as of the longest.
pub(super) struct Padded {
    /// `[questions, most, width]`, 0 where there is none.
    pub(super) rows: Tensor,
    /// 1 or 0, `[questions, most]`.
    pub(super) there: Tensor,
}

/// Tokens of an aspect, and how much each counts.
pub(super) struct Gated {
    pub(super) tokens: Tensor,        // [questions, most, width]
    pub(super) gates: Option<Tensor>, // [questions, most]
}

/// Where attention stands: its name, whose texts ask, and whose answer.
const ALIGNED: [(&str, Aspect, Aspect); 4] = [
    ("align.entities", Aspect::Entities, Aspect::Entities),
    ("align.relations", Aspect::Relations, Aspect::Relations),
    (
        "align.subgraphs.entities",
        Aspect::Subgraphs,
        Aspect::Entities,
    ),
    (
        "align.subgraphs.relations",
        Aspect::Subgraphs,
        Aspect::Relations,
    ),
];

const PRODUCTS: [(Product, &str); 3] = [
    (Product::Gate, "gate"),
    (Product::Up, "up"),
    (Product::Down, "down"),
];

fn shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let width = config.base.width;
    let mut shapes = Vec::new();
    let mut add = |name: String, shape: &[usize]| shapes.push((name, shape.to_vec()));
    if config.soft_prompt > 0 {
        add("prompt".into(), &[config.soft_prompt, width]);
    }
    for layer in 0..config.base.layers {
        for (product, name) in PRODUCTS {
            let (inner, out) = match product {
                Product::Down => (config.base.feed_forward, width),
                _ => (width, config.base.feed_forward),
            };
            add(format!("lora.{layer}.{name}.a"), &[config.rank, inner]);
            add(format!("lora.{layer}.{name}.b"), &[out, config.rank]);
        }
    }
    if config.lacks(Ablation::ContextPrompt) {
        shapes.sort();
        return shapes;
    }
    add("projector.down".into(), &[config.bottleneck, width]);
    add("projector.down_bias".into(), &[config.bottleneck]);
    add("projector.up".into(), &[width, config.bottleneck]);
    add("projector.up_bias".into(), &[width]);
    if !config.lacks(Ablation::NoSelfAlignment) {
        for (name, of, over) in ALIGNED {
            if config.has(of) && config.has(over) {
                for part in ["query", "key", "value"] {
                    add(format!("{name}.{part}"), &[config.attention, width]);
                }
                add(format!("{name}.out"), &[width, config.attention]);
            }
        }
    }
    if !config.lacks(Ablation::NoGate) && !config.lacks(Ablation::NoSiamese) {
        for aspect in Aspect::ALL {
            if config.has(aspect) {
                let name = aspect.name();
                add(format!("gate.{name}.first"), &[config.gate, width]);
                add(format!("gate.{name}.first_bias"), &[config.gate]);
                add(format!("gate.{name}.second"), &[config.gate, config.gate]);
                add(format!("gate.{name}.second_bias"), &[config.gate]);
            }
        }
    }
    shapes.sort();
    shapes
}

impl Network {
    /// A network that has learned nothing: with it the model writes as it would without, behind
    /// tokens that are the means of their texts. `spread` is that of the model's embeddings.
    pub fn new(config: Config, spread: f32, random: &mut Random, device: &Device) -> Result<Self> {
        Self::check(&config)?;
        let residual = !config.lacks(Ablation::NoResidual);
        let tensors = shapes(&config)
            .into_iter()
            .map(|(name, shape)| {
                let count = shape.iter().product();
                let adds = residual && (name == "projector.up" || name.ends_with(".out"));
                let values = if name == "prompt" {
                    (0..count).map(|_| random.normal() * spread).collect()
                } else if shape.len() == 1 || adds || name.ends_with(".b") {
                    vec![0.0; count]
                } else {
                    random.glorot(shape[0], shape[1])
                };
                Ok((name, Tensor::from_vec(values, shape, &Device::Cpu)?))
            })
            .collect::<Result<HashMap<_, _>>>()?;
        Self::from_tensors(config, tensors, device)
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The soft prompt, `[tokens, width]`.
    pub(super) fn prompt(&self) -> Option<&Tensor> {
        (self.config.soft_prompt > 0).then(|| self.get("prompt"))
    }

    /// The tokens of the three aspects with their gates; none where there are no texts.
    pub(super) fn tokens(
        &self,
        means: [Option<Padded>; 3],
        question: &Padded,
    ) -> Result<[Option<Gated>; 3]> {
        let mut projected: [Option<Padded>; 3] = [None, None, None];
        for (place, padded) in projected.iter_mut().zip(means) {
            *place = match padded {
                Some(padded) => Some(self.projected(padded)?),
                None => None,
            };
        }
        let mut gated: [Option<Gated>; 3] = [None, None, None];
        for aspect in Aspect::ALL {
            let Some(own) = &projected[aspect as usize] else {
                continue;
            };
            let tokens = self.aligned(aspect, own, &projected)?;
            gated[aspect as usize] = Some(self.gated(aspect, tokens, question)?);
        }
        Ok(gated)
    }

    fn projected(&self, means: Padded) -> Result<Padded> {
        let inner = linear(&means.rows, self.get("projector.down"))?
            .broadcast_add(self.get("projector.down_bias"))?
            .gelu()?;
        let token = linear(&inner, self.get("projector.up"))?
            .broadcast_add(self.get("projector.up_bias"))?;
        let token = match self.config.lacks(Ablation::NoResidual) {
            true => token,
            false => (token + &means.rows)?,
        };
        let there = means.there.unsqueeze(2)?;
        Ok(Padded {
            rows: token.broadcast_mul(&there)?,
            there: means.there,
        })
    }

    fn aligned(&self, aspect: Aspect, own: &Padded, all: &[Option<Padded>; 3]) -> Result<Tensor> {
        if self.config.lacks(Ablation::NoSelfAlignment) {
            return Ok(own.rows.clone());
        }
        let mut sum = match self.config.lacks(Ablation::NoResidual) {
            true => None,
            false => Some(own.rows.clone()),
        };
        for (name, of, over) in ALIGNED {
            if of == aspect
                && let Some(over) = &all[over as usize]
                && self.parameters.contains_key(&format!("{name}.out"))
            {
                let more = self.attended(name, &own.rows, over)?;
                sum = Some(match sum {
                    Some(sum) => (sum + more)?,
                    None => more,
                });
            }
        }
        // without entities and relations there is nothing that subgraphs could be aligned with
        Ok(sum.unwrap_or_else(|| own.rows.clone()))
    }

    fn attended(&self, name: &str, of: &Tensor, over: &Padded) -> Result<Tensor> {
        let part = |part: &str, x: &Tensor| linear(x, self.get(&format!("{name}.{part}")));
        let query = part("query", of)?;
        let key = part("key", &over.rows)?;
        let scores = query.matmul(&key.transpose(1, 2)?.contiguous()?)?;
        let scores = (scores / (self.config.attention as f64).sqrt())?;
        let mask = ((&over.there - 1.0)? * HIDDEN)?.unsqueeze(1)?;
        let shares = softmax(&scores.broadcast_add(&mask)?)?;
        part("out", &shares.matmul(&part("value", &over.rows)?)?)
    }

    fn gated(&self, aspect: Aspect, tokens: Tensor, question: &Padded) -> Result<Gated> {
        if self.config.lacks(Ablation::NoGate) {
            return Ok(Gated {
                tokens,
                gates: None,
            });
        }
        let compared = |x: &Tensor| -> Result<Tensor> {
            if self.config.lacks(Ablation::NoSiamese) {
                return Ok(x.clone());
            }
            let get = |part: &str| self.get(&format!("gate.{}.{part}", aspect.name()));
            let inner = linear(x, get("first"))?
                .broadcast_add(get("first_bias"))?
                .gelu()?;
            Ok(linear(&inner, get("second"))?.broadcast_add(get("second_bias"))?)
        };
        let asked = compared(&question.rows)?; // [questions, tokens, h]
        let size = asked.dim(2)?;
        let count = question.there.sum_keepdim(1)?;
        let shares = question.there.broadcast_div(&count)?.unsqueeze(1)?;
        // the mean of products is the product with the mean
        let mean = shares.matmul(&asked)?.transpose(1, 2)?.contiguous()?; // [questions, h, 1]
        let scores = (compared(&tokens)?.matmul(&mean)? / (size as f64).sqrt())?;
        let gates = sigmoid(&scores)?; // [questions, most, 1]
        Ok(Gated {
            tokens: tokens.broadcast_mul(&gates)?,
            gates: Some(gates.squeeze(2)?),
        })
    }

    /// What is added to a product of the language model for `x` `[texts, tokens, in]`. Where it
    /// learns, `random` says what is dropped.
    pub(super) fn adapted(
        &self,
        layer: usize,
        product: Product,
        x: &Tensor,
        random: Option<&mut Random>,
    ) -> Result<Tensor> {
        let name = PRODUCTS[product as usize].1;
        let (texts, tokens, inner) = x.dims3()?;
        let rate = self.config.dropout;
        let learns = random.is_some();
        // what only reads leaves no trace for gradients
        let get = |part: &str| {
            let parameter = self.get(&format!("lora.{layer}.{name}.{part}"));
            match learns {
                true => parameter.clone(),
                false => parameter.detach(),
            }
        };
        let dropped = match random {
            Some(random) if rate > 0.0 => {
                let mask = dropout_mask(texts * inner, rate, random);
                x.broadcast_mul(&Tensor::from_vec(mask, (texts, 1, inner), x.device())?)?
            }
            _ => x.clone(),
        };
        let rows = dropped.reshape((texts * tokens, inner))?;
        let low = rows.matmul(&get("a").t()?)?;
        let scale = f64::from(self.config.alpha) / self.config.rank as f64;
        Ok((low.matmul(&get("b").t()?)? * scale)?)
    }
}

/// `x·wᵀ` along the last axis of `[questions, most, in]`.
fn linear(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    let (questions, most, inner) = x.dims3()?;
    let rows = x.reshape((questions * most, inner))?;
    let y = match rows.track_op() {
        true => rows.matmul(&w.t()?)?,
        false => product_with_constant(&rows, w)?,
    };
    Ok(y.reshape((questions, most, w.dim(0)?))?)
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    // by tanh: no overflow, and a gradient on every device
    Ok((((x * 0.5)?.tanh()? * 0.5)? + 0.5)?)
}

checkpointable!(Network, "amar", config: Config, base.width);

/// The mean of all numbers, for tests of gradients.
#[cfg(test)]
fn weighed(x: &Tensor) -> Result<Tensor> {
    let weights: Vec<f32> = (0..x.elem_count())
        .map(|i| ((i * 7) % 11) as f32 / 11.0)
        .collect();
    let weights = Tensor::from_vec(weights, x.shape(), x.device())?;
    Ok((x * weights)?.sum_all()?)
}

#[cfg(test)]
mod tests {
    use super::super::BaseModel;
    use super::*;
    use crate::tensor::gradient::{spread, worst_error};

    pub(crate) fn tiny(ablations: &[Ablation]) -> Config {
        Config {
            base: BaseModel {
                identity: "tiny".into(),
                layers: 2,
                width: 4,
                feed_forward: 6,
            },
            rank: 2,
            bottleneck: 3,
            attention: 3,
            gate: 3,
            soft_prompt: 2,
            ablations: ablations.to_vec(),
            ..Config::default()
        }
    }

    /// A network whose zeros are no zeros, so that every gradient counts.
    fn shaken(config: Config) -> Network {
        let network = Network::new(config, 0.5, &mut Random::new(5), &Device::Cpu).unwrap();
        let mut random = Random::new(6);
        for var in network.parameters.values() {
            let values: Vec<f32> = (0..var.elem_count())
                .map(|_| random.normal() * 0.5)
                .collect();
            var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).unwrap())
                .unwrap();
        }
        network
    }

    fn padded(counts: &[usize], seed: u64) -> Padded {
        let most = *counts.iter().max().unwrap();
        let rows = spread((counts.len() * most, 4), seed);
        let rows = rows.reshape((counts.len(), most, 4)).unwrap().detach();
        let there: Vec<f32> = counts
            .iter()
            .flat_map(|&n| (0..most).map(move |i| f32::from(u8::from(i < n))))
            .collect();
        let there = Tensor::from_vec(there, (counts.len(), most), &Device::Cpu).unwrap();
        Padded {
            rows: rows.broadcast_mul(&there.unsqueeze(2).unwrap()).unwrap(),
            there,
        }
    }

    fn run(network: &Network) -> Result<Tensor> {
        let means = [
            Some(padded(&[2, 1], 1)),
            Some(padded(&[3, 2], 2)),
            Some(padded(&[1, 2], 3)),
        ];
        let gated = network.tokens(means, &padded(&[2, 3], 4))?;
        let mut sum = Tensor::new(0f32, &Device::Cpu)?;
        for aspect in gated.iter().flatten() {
            sum = (sum + weighed(&aspect.tokens)?)?;
        }
        Ok(sum)
    }

    #[test]
    fn gradients_are_finite_differences_whatever_is_left_out() -> Result<()> {
        for ablations in [
            &[][..],
            &[Ablation::NoResidual],
            &[Ablation::NoSiamese],
            &[Ablation::NoGate, Ablation::NoResidual],
            &[Ablation::NoSelfAlignment],
            &[Ablation::Neither],
        ] {
            let network = shaken(tiny(ablations));
            let learned: Vec<Var> = network
                .parameters
                .iter()
                .filter(|(name, _)| !name.starts_with("lora") && *name != "prompt")
                .map(|(_, var)| var.clone())
                .collect();
            let error = worst_error(&learned, 1e-2, || Ok(run(&network).expect("sizes fit")))?;
            assert!(error < 2e-2, "{ablations:?}: {error}");
        }
        Ok(())
    }

    #[test]
    fn adapters_have_their_gradients_and_begin_with_nothing() -> Result<()> {
        let x = spread((6, 4), 9).reshape((2, 3, 4))?.detach();
        let fresh = Network::new(tiny(&[]), 0.5, &mut Random::new(5), &Device::Cpu)?;
        let nothing = fresh.adapted(1, Product::Gate, &x, None)?;
        assert_eq!(nothing.abs()?.max_all()?.to_scalar::<f32>()?, 0.0);
        let network = shaken(tiny(&[]));
        let learned: Vec<Var> = ["a", "b"]
            .map(|part| network.parameters[&format!("lora.1.gate.{part}")].clone())
            .into();
        let error = worst_error(&learned, 1e-2, || {
            let y = network
                .adapted(1, Product::Gate, &x, Some(&mut Random::new(1)))
                .expect("sizes fit");
            y.sqr()?.sum_all()
        })?;
        assert!(error < 2e-2, "{error}");
        Ok(())
    }

    #[test]
    fn texts_of_one_question_do_not_touch_those_of_another() -> Result<()> {
        let network = shaken(tiny(&[]));
        let both = network.tokens([Some(padded(&[2, 1], 1)), None, None], &padded(&[2, 3], 4))?;
        let first = |padded: Padded| -> Result<Padded> {
            Ok(Padded {
                rows: padded.rows.narrow(0, 1, 1)?,
                there: padded.there.narrow(0, 1, 1)?,
            })
        };
        let alone = network.tokens(
            [Some(first(padded(&[2, 1], 1))?), None, None],
            &first(padded(&[2, 3], 4))?,
        )?;
        let (both, alone) = (both[0].as_ref().unwrap(), alone[0].as_ref().unwrap());
        let gates =
            |of: &Gated, row: usize| of.gates.as_ref().unwrap().to_vec2::<f32>().unwrap()[row][0];
        assert!((gates(both, 1) - gates(alone, 0)).abs() < 1e-6);
        assert!((0.0..=1.0).contains(&gates(both, 1)));
        Ok(())
    }

    #[test]
    fn a_gate_has_its_hand_made_value() -> Result<()> {
        // without networks: the token (1, 1, 0, 0) and question tokens (2, 0, 0, 0), (0, 4, 0, 0):
        // products 2 and 4, mean 3, by √4 it is 1.5; σ(1.5) = 0.8176
        let network = Network::new(
            tiny(&[Ablation::NoSiamese, Ablation::NoSelfAlignment]),
            0.5,
            &mut Random::new(5),
            &Device::Cpu,
        )?;
        let one = |rows: &[[f32; 4]]| -> Result<Padded> {
            Ok(Padded {
                rows: Tensor::from_slice(rows.as_flattened(), (1, rows.len(), 4), &Device::Cpu)?,
                there: Tensor::ones((1, rows.len()), candle_core::DType::F32, &Device::Cpu)?,
            })
        };
        let gated = network.tokens(
            [Some(one(&[[1.0, 1.0, 0.0, 0.0]])?), None, None],
            &one(&[[2.0, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]])?,
        )?;
        let gated = gated[0].as_ref().unwrap();
        let gate = gated.gates.as_ref().unwrap().to_vec2::<f32>()?[0][0];
        assert!((gate - 0.8176).abs() < 1e-4, "{gate}");
        // nothing is learned yet: the token is the mean of its text, times the gate
        let token = gated.tokens.to_vec3::<f32>()?[0][0].clone();
        assert!((token[0] - gate).abs() < 1e-6 && token[2] == 0.0);
        Ok(())
    }

    #[test]
    fn what_is_left_out_has_no_tensors() {
        let names = |ablations: &[Ablation]| -> Vec<String> {
            shapes(&tiny(ablations)).into_iter().map(|s| s.0).collect()
        };
        let has =
            |ablations: &[Ablation], part: &str| names(ablations).iter().any(|n| n.contains(part));
        assert!(has(&[], "align") && has(&[], "gate.entities") && has(&[], "projector"));
        assert!(!has(&[Ablation::Neither], "align") && !has(&[Ablation::Neither], "gate.entities"));
        assert!(!has(&[Ablation::NoSiamese], "gate.entities"));
        assert!(!has(&[Ablation::ContextPrompt], "projector"));
        assert!(!has(&[Ablation::WithoutEntities], "entities"));
        assert!(has(
            &[Ablation::WithoutEntities],
            "align.subgraphs.relations"
        ));
    }
}
