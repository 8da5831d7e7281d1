//! The network as it learns: candle tensors, gradients, any device.
//!
//! ```text
//! w_x [hidden, dim]     p [2·reach + 1, hidden]
//! w_l, w_c, w_r [hidden, hidden]    b_c [hidden]
//! w_s, w_a [hidden, hidden]         b_s [hidden]
//! w_u [hidden, 2·hidden]   columns s, g        b_u [hidden]
//! w_n [hidden, 3·hidden]   columns s, g, v     b_n [hidden]
//! w_v [hidden, dim]     d [2, hidden]   along, against
//! stop [1, hidden]      m [1, dim]
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use super::Config;
use crate::checkpoint::checkpointable;
use crate::gnn2r::network::drawn;
use crate::qr_gat::Rows;
use crate::tensor::{
    Segments, dropout, gather, product_with_constant, segment_mean, segment_softmax, segment_sum,
};
use crate::{Error, Random, Result};

/// Keeps the logarithm of a probability finite.
const TINY: f64 = 1e-9;
/// Share of the tokens' numbers that is dropped in training.
const DROPOUT: f32 = 0.1;

/// A question's token vectors, `[tokens, dim]`, before and behind the mention of its topic.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// Those before it, or all where it has none.
    pub before: &'a [f32],
    /// Those behind it.
    pub behind: &'a [f32],
}

/// A path to learn: a question and, for each of its steps and the stop after them, what there was
/// to choose from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// The question's place among those of the batch.
    pub question: usize,
    /// How much it counts.
    pub weight: f32,
    /// The steps that the graph has at each point: a relation's row and whether it is walked
    /// along its direction.
    pub choices: Vec<Vec<(u32, bool)>>,
    /// The one that was taken, by its place; none where the path stops.
    pub taken: Vec<Option<usize>>,
}

/// The path writer with its learned tensors.
pub struct Network {
    config: Config,
    parameters: BTreeMap<String, Var>,
}

impl Network {
    /// A network that has learned nothing yet.
    pub fn new(config: Config, random: &mut Random, device: &Device) -> Result<Self> {
        config.check()?;
        let parameters = drawn(shapes(&config), random, device)?;
        let m = &parameters["m"];
        m.set(&m.ones_like()?)?;
        Ok(Self { config, parameters })
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// `w·x + b` of every row.
    fn affine(&self, x: &Tensor, w: &str, b: &str) -> candle_core::Result<Tensor> {
        x.matmul(&self.get(w).t()?)?.broadcast_add(self.get(b))
    }

    /// The loss of some paths over some questions; `relations` has the vectors of all relations. With a
    /// generator, token vectors go through dropout.
    pub fn loss(
        &self,
        questions: &[Tokens<'_>],
        items: &[Item],
        relations: &dyn Rows,
        training: Option<&mut Random>,
        device: &Device,
    ) -> Result<Tensor> {
        let dim = self.config.dim;
        if relations.width() != dim {
            return Err(Error::Dimension {
                what: "relation vector",
                wanted: dim,
                given: relations.width(),
            });
        }
        let mut used: Vec<u32> = (items.iter())
            .flat_map(|item| item.choices.iter().flatten().map(|(r, _)| *r))
            .collect();
        used.sort_unstable();
        used.dedup();
        // at least one row, for paths without a choice
        let mut rows = vec![0.0; used.len().max(1) * dim];
        relations.read(&used, 0..dim, &mut rows[..used.len() * dim]);
        let count = used.len().max(1);
        let r = Tensor::from_vec(rows, (count, dim), device)?;
        let of_r = product_with_constant(&r, self.get("w_v"))?;
        let d = self.get("d");
        // rows: along, against, stop
        let v = Tensor::cat(
            &[
                of_r.broadcast_add(&d.narrow(0, 0, 1)?)?,
                of_r.broadcast_add(&d.narrow(0, 1, 1)?)?,
                self.get("stop").clone(),
            ],
            0,
        )?;
        let none = Tensor::zeros((1, dim), candle_core::DType::F32, device)?;
        let r = Tensor::cat(&[&r, &r, &none], 0)?;
        let row = |(relation, along): (u32, bool)| {
            let place = used.partition_point(|u| *u < relation);
            (place + usize::from(!along) * count) as u32
        };

        let batch = Batch::new(&self.config, questions, device)?;
        let x = match training {
            Some(random) => dropout(&batch.x, DROPOUT, random)?,
            None => batch.x.clone(),
        };
        let c = self.read(&batch, &x)?;
        let mean = segment_mean(&c, &batch.question)?;
        let first = self.affine(&mean, "w_s", "b_s")?.tanh()?;
        let owners = items.iter().map(|item| item.question as u32).collect();
        let owners = Arc::new(Segments::new(owners, questions.len()));
        let mut s = gather(&first, &owners)?; // [alive, hidden]
        let mut alive: Vec<&Item> = items.iter().collect();
        let mut total: Option<Tensor> = None;
        let longest = items.iter().map(|i| i.choices.len()).max().unwrap_or(0);
        for k in 0..longest {
            let keep: Vec<u32> = (0u32..)
                .zip(&alive)
                .filter(|(_, item)| item.choices.len() > k)
                .map(|(i, _)| i)
                .collect();
            if keep.len() < alive.len() {
                let kept = Arc::new(Segments::new(keep.clone(), alive.len()));
                s = gather(&s, &kept)?;
                alive = keep.iter().map(|i| alive[*i as usize]).collect();
            }
            // attention over the tokens of each path's question
            let (mut token, mut path) = (Vec::new(), Vec::new());
            for (i, item) in (0u32..).zip(&alive) {
                for t in batch.question.entries(item.question) {
                    token.push(*t);
                    path.push(i);
                }
            }
            let token = Arc::new(Segments::new(token, batch.question.len()));
            let path = Arc::new(Segments::new(path, alive.len()));
            let asked = gather(&s.matmul(&self.get("w_a").t()?)?, &path)?;
            let own = gather(&c, &token)?;
            let alpha = segment_softmax(&(&own * asked)?.sum_keepdim(1)?, &path)?;
            let g = segment_sum(&own.broadcast_mul(&alpha)?, &path)?;
            let x_bar = segment_sum(&gather(&x, &token)?.broadcast_mul(&alpha)?, &path)?;
            let both = Tensor::cat(&[&s, &g], 1)?;
            let u = self.affine(&both, "w_u", "b_u")?.tanh()?;

            let (mut choice, mut path, mut gold) = (Vec::new(), Vec::new(), Vec::new());
            for (i, item) in (0u32..).zip(&alive) {
                let offered = &item.choices[k];
                let from = choice.len();
                choice.extend(offered.iter().map(|step| row(*step)));
                // to stop comes last; there is nothing to stop before the first step
                if k > 0 {
                    choice.push(2 * count as u32);
                }
                path.resize(choice.len(), i);
                gold.push((from + item.taken[k].unwrap_or(offered.len())) as u32);
            }
            let entries = choice.len();
            let choice = Arc::new(Segments::new(choice, 2 * count + 1));
            let path = Arc::new(Segments::new(path, alive.len()));
            let gold = Arc::new(Segments::new(gold, entries));
            let offered = gather(&v, &choice)?;
            let by_state = (gather(&u, &path)? * &offered)?.sum_keepdim(1)?;
            let like = x_bar.broadcast_mul(self.get("m"))?;
            let by_words = (gather(&like, &path)? * gather(&r, &choice)?)?.sum_keepdim(1)?;
            let logits = (by_state + (by_words * (1.0 / (dim as f64).sqrt()))?)?;
            let chosen = gather(&segment_softmax(&logits, &path)?, &gold)?;
            let weights: Vec<f32> = alive.iter().map(|item| item.weight).collect();
            let weights = Tensor::from_vec(weights, (alive.len(), 1), device)?;
            let part = ((chosen + TINY)?.log()? * weights)?.sum_all()?.neg()?;
            total = Some(match total {
                Some(total) => (total + part)?,
                None => part,
            });
            let v_taken = gather(&offered, &gold)?;
            let all = Tensor::cat(&[&s, &g, &v_taken], 1)?;
            s = self.affine(&all, "w_n", "b_n")?.tanh()?;
        }
        let weight: f32 = items.iter().map(|item| item.weight).sum();
        let total = total.ok_or(Error::EmptySubgraph)?;
        Ok((total * (1.0 / f64::from(weight.max(f32::MIN_POSITIVE))))?)
    }

    /// c of every token.
    fn read(&self, batch: &Batch, x: &Tensor) -> candle_core::Result<Tensor> {
        let p = gather(self.get("p"), &batch.position)?;
        let z = (x.matmul(&self.get("w_x").t()?)? + p)?;
        let left = gather(&z, &batch.left)?.broadcast_mul(&batch.has_left)?;
        let right = gather(&z, &batch.right)?.broadcast_mul(&batch.has_right)?;
        (left.matmul(&self.get("w_l").t()?)?
            + z.matmul(&self.get("w_c").t()?)?
            + right.matmul(&self.get("w_r").t()?)?)?
        .broadcast_add(self.get("b_c"))?
        .relu()
    }
}

/// The tokens of several questions.
struct Batch {
    x: Tensor, // [tokens, dim], zeros for a topic
    position: Arc<Segments>,
    question: Arc<Segments>,
    /// The token before each, and whether there is one.
    left: Arc<Segments>,
    has_left: Tensor, // [tokens, 1]
    right: Arc<Segments>,
    has_right: Tensor,
}

impl Batch {
    fn new(config: &Config, questions: &[Tokens<'_>], device: &Device) -> Result<Self> {
        let dim = config.dim;
        let mut x = Vec::new();
        let (mut position, mut owner) = (Vec::new(), Vec::new());
        for (question, tokens) in (0u32..).zip(questions) {
            let before = (tokens.before.len() / dim) as i64;
            let behind = (tokens.behind.len() / dim) as i64;
            x.extend_from_slice(tokens.before);
            x.resize(x.len() + dim, 0.0);
            x.extend_from_slice(tokens.behind);
            for distance in -before..=behind {
                position.push(config.position(distance) as u32);
                owner.push(question);
            }
        }
        if !x.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "token vector".into(),
            });
        }
        let tokens = owner.len();
        let beside = |step: i64| -> Result<(Arc<Segments>, Tensor)> {
            let other = |i: usize| {
                let at = i as i64 + step;
                let inside = (0..tokens as i64).contains(&at);
                (inside && owner[at as usize] == owner[i]).then_some(at as u32)
            };
            let places = (0..tokens).map(|i| other(i).unwrap_or(0)).collect();
            let there: Vec<f32> = (0..tokens)
                .map(|i| f32::from(u8::from(other(i).is_some())))
                .collect();
            Ok((
                Arc::new(Segments::new(places, tokens)),
                Tensor::from_vec(there, (tokens, 1), device)?,
            ))
        };
        let (left, has_left) = beside(-1)?;
        let (right, has_right) = beside(1)?;
        Ok(Self {
            x: Tensor::from_vec(x, (tokens, dim), device)?,
            position: Arc::new(Segments::new(position, 2 * config.reach + 1)),
            left,
            has_left,
            right,
            has_right,
            question: Arc::new(Segments::new(owner, questions.len())),
        })
    }
}

fn shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let Config { dim, hidden, reach } = *config;
    let square = vec![hidden, hidden];
    let mut all = vec![
        ("w_x".to_owned(), vec![hidden, dim]),
        ("p".to_owned(), vec![2 * reach + 1, hidden]),
        ("w_u".to_owned(), vec![hidden, 2 * hidden]),
        ("w_n".to_owned(), vec![hidden, 3 * hidden]),
        ("w_v".to_owned(), vec![hidden, dim]),
        ("d".to_owned(), vec![2, hidden]),
        ("stop".to_owned(), vec![1, hidden]),
        ("m".to_owned(), vec![1, dim]),
    ];
    for name in ["w_l", "w_c", "w_r", "w_s", "w_a"] {
        all.push((name.to_owned(), square.clone()));
    }
    for name in ["b_c", "b_s", "b_u", "b_n"] {
        all.push((name.to_owned(), vec![hidden]));
    }
    all
}

checkpointable!(Network, "relation-plan", config: Config, dim);

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::checkpoint::Checkpointable;
    use crate::distance_mlp::tests::numbers;
    use crate::qr_gat::Table;
    use crate::tensor::gradient::worst_error;

    pub(in crate::relation_plan) fn small(seed: u64) -> Network {
        let config = Config {
            dim: 3,
            hidden: 4,
            reach: 2,
        };
        Network::new(config, &mut Random::new(seed), &Device::Cpu).unwrap()
    }

    /// Paths over two questions, four relations.
    pub(in crate::relation_plan) fn items() -> Vec<Item> {
        vec![
            Item {
                question: 0,
                weight: 1.0,
                choices: vec![
                    vec![(0, true), (1, false), (3, true)],
                    vec![(2, true), (1, true)],
                    vec![(2, false)],
                ],
                taken: vec![Some(1), Some(0), None],
            },
            Item {
                question: 1,
                weight: 0.5,
                choices: vec![vec![(3, true), (1, true)], vec![]],
                taken: vec![Some(0), None],
            },
            Item {
                question: 1,
                weight: 0.5,
                choices: vec![vec![(3, true), (1, true)], vec![(0, false)]],
                taken: vec![Some(1), None],
            },
        ]
    }

    #[test]
    fn gradient_of_the_whole_network_is_the_finite_difference() -> Result<()> {
        let network = small(3);
        let relations = numbers(12, 1);
        let relations = Table::new(&relations, 3)?;
        let [a, b, c] = [numbers(9, 2), numbers(6, 3), numbers(3, 4)];
        let questions = [
            Tokens {
                before: &a,
                behind: &b,
            },
            Tokens {
                before: &[],
                behind: &c,
            },
        ];
        let all: Vec<Var> = network.parameters().values().cloned().collect();
        let error = worst_error(&all, 2e-3, || {
            Ok(network
                .loss(&questions, &items(), &relations, None, &Device::Cpu)
                .unwrap())
        })?;
        assert!(error < 2e-3, "{error}");
        Ok(())
    }
}
