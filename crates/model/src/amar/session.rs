//! Runs questions through the network and the frozen model: the loss of forms that are known, how
//! well they are written, and the writing of new ones, token by token.

use candle_core::{D, Tensor};

use super::network::{Gated, Padded};
use super::prepared::Asked;
use super::{Aspect, Base, Network, Prepared};
use crate::language::local::frozen::Cache;
use crate::{Random, Result};

/// Prompts of several questions, each followed by what is to be written.
struct Batch {
    /// `[questions, longest, width]`.
    embeddings: Tensor,
    /// Length of each prompt.
    prompts: Vec<usize>,
    /// Gates of each aspect, `[questions, most]`.
    gates: [Option<Tensor>; 3],
}

/// Rows of a batch's texts or tokens, padded.
fn padded(rows: &Tensor, counts: &[usize]) -> Result<Padded> {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let there: Vec<f32> = counts
        .iter()
        .flat_map(|&n| (0..most).map(move |i| f32::from(u8::from(i < n))))
        .collect();
    let there = Tensor::from_vec(there, (counts.len(), most), rows.device())?;
    let rows = rows.reshape((counts.len(), most, rows.dim(1)?))?;
    Ok(Padded {
        rows: rows.broadcast_mul(&there.unsqueeze(2)?)?,
        there,
    })
}

fn flat(ids: &[&[u32]]) -> (Vec<u32>, Vec<usize>) {
    let most = ids.iter().map(|ids| ids.len()).max().unwrap_or(0).max(1);
    let mut all = Vec::with_capacity(ids.len() * most);
    for ids in ids {
        all.extend_from_slice(ids);
        all.resize(all.len() + most - ids.len(), 0);
    }
    (all, ids.iter().map(|ids| ids.len()).collect())
}

impl Batch {
    /// `written` says whether what is to be written follows, but for the end.
    fn new(
        base: &Base,
        network: &Network,
        prepared: &Prepared,
        batch: &[usize],
        written: bool,
    ) -> Result<Self> {
        let asked: Vec<&Asked> = batch.iter().map(|&i| &prepared.asked[i]).collect();
        let device = base.device();
        let width = base.model().width;
        let mut means: [Option<Padded>; 3] = [None, None, None];
        let mut counts: [Vec<usize>; 3] = Default::default();
        for aspect in Aspect::ALL {
            let ids: Vec<&[u32]> = asked
                .iter()
                .map(|a| a.texts[aspect as usize].as_slice())
                .collect();
            let (rows, lengths) = flat(&ids);
            if lengths.iter().any(|&n| n > 0) {
                let count = rows.len();
                let rows = Tensor::from_vec(rows, count, device)?;
                let rows = prepared.means.index_select(&rows, 0)?;
                means[aspect as usize] = Some(padded(&rows, &lengths)?);
            }
            counts[aspect as usize] = lengths;
        }
        let questions: Vec<&[u32]> = asked.iter().map(|a| a.question.as_slice()).collect();
        let (ids, lengths) = flat(&questions);
        let question = padded(&base.frozen.embed(&ids)?, &lengths)?;
        let gated = network.tokens(means, &question)?;

        // all rows that any text is made of, then for each place of each text one of them
        let mut pool: Vec<Tensor> = Vec::new();
        let mut size = 0u32;
        let mut put = |rows: Tensor| -> Result<u32> {
            let from = size;
            size += rows.dim(0)? as u32;
            pool.push(rows);
            Ok(from)
        };
        let prompt_at = match network.prompt() {
            Some(rows) => Some((put(rows.clone())?, rows.dim(0)? as u32)),
            None => None,
        };
        let mut aspect_at = [(0u32, 0u32); 3];
        let mut gates: [Option<Tensor>; 3] = [None, None, None];
        for (i, gated) in gated.into_iter().enumerate() {
            if let Some(Gated { tokens, gates: own }) = gated {
                let most = tokens.dim(1)?;
                aspect_at[i] = (put(tokens.reshape(((), width))?)?, most as u32);
                gates[i] = own;
            }
        }
        let begin: Vec<u32> = base.begin().into_iter().collect();
        let mut tokens = begin.clone();
        for asked in &asked {
            tokens.extend_from_slice(&asked.question);
            if written && !asked.target.is_empty() {
                tokens.extend_from_slice(&asked.target[..asked.target.len() - 1]);
            }
        }
        let mut token_at = put(base.frozen.embed(&tokens)?)?;
        let begin_at = token_at;
        token_at += begin.len() as u32;
        let mut places: Vec<Vec<u32>> = Vec::with_capacity(asked.len());
        let mut prompts = Vec::with_capacity(asked.len());
        for (row, asked) in asked.iter().enumerate() {
            let mut own: Vec<u32> = (begin_at..begin_at + begin.len() as u32).collect();
            if let Some((from, count)) = prompt_at {
                own.extend(from..from + count);
            }
            for (counts, (from, most)) in counts.iter().zip(aspect_at) {
                let from = from + row as u32 * most;
                own.extend(from..from + counts[row] as u32);
            }
            prompts.push(own.len() + asked.question.len());
            let more = match written {
                true => asked.target.len().saturating_sub(1),
                false => 0,
            };
            let count = (asked.question.len() + more) as u32;
            own.extend(token_at..token_at + count);
            token_at += count;
            places.push(own);
        }
        let places: Vec<&[u32]> = places.iter().map(Vec::as_slice).collect();
        let (ids, _) = flat(&places);
        let longest = ids.len() / asked.len().max(1);
        let count = ids.len();
        let ids = Tensor::from_vec(ids, count, device)?;
        let embeddings =
            Tensor::cat(&pool, 0)?
                .index_select(&ids, 0)?
                .reshape((asked.len(), longest, width))?;
        Ok(Self {
            embeddings,
            prompts,
            gates,
        })
    }

    fn longest(&self) -> Result<usize> {
        Ok(self.embeddings.dim(1)?)
    }
}

/// Logits of the places before each token that is to be written, `[tokens, vocabulary]`, and those
/// tokens.
fn written(
    base: &Base,
    network: &Network,
    prepared: &Prepared,
    batch: &[usize],
    mut random: Option<&mut Random>,
) -> Result<(Tensor, Vec<u32>)> {
    let made = Batch::new(base, network, prepared, batch, true)?;
    let longest = made.longest()?;
    let places = base.frozen.places_at_the_start(longest)?;
    let embeddings = match random.is_some() {
        true => made.embeddings.clone(),
        false => made.embeddings.detach(),
    };
    let rows = base
        .frozen
        .run(&embeddings, &places, None, &mut |layer, product, x| {
            let random = random.as_deref_mut();
            network.adapted(layer, product, x, random).map(Some)
        })?;
    let (mut ids, mut wanted) = (Vec::new(), Vec::new());
    for (row, (&i, prompt)) in batch.iter().zip(&made.prompts).enumerate() {
        let target = &prepared.asked[i].target;
        let from = row * longest + prompt - 1;
        ids.extend((from..from + target.len()).map(|at| at as u32));
        wanted.extend_from_slice(target);
    }
    let count = ids.len();
    let ids = Tensor::from_vec(ids, count, base.device())?;
    let rows = rows
        .reshape(((), base.model().width))?
        .index_select(&ids, 0)?;
    Ok((base.frozen.logits(&rows)?, wanted))
}

/// −log p of each token, `[tokens]`.
fn surprise(logits: &Tensor, tokens: &[u32]) -> Result<Tensor> {
    let ids = Tensor::from_slice(tokens, (tokens.len(), 1), logits.device())?;
    let highest = logits.max_keepdim(D::Minus1)?.detach();
    let shifted = logits.broadcast_sub(&highest)?;
    let sums = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    Ok((sums - shifted.gather(&ids, 1)?)?.squeeze(1)?)
}

/// The mean loss of the tokens that are to be written for some questions, a scalar. Numbers are
/// dropped by `random`.
pub fn loss(
    base: &Base,
    network: &Network,
    prepared: &Prepared,
    batch: &[usize],
    random: &mut Random,
) -> Result<Tensor> {
    let (logits, wanted) = written(base, network, prepared, batch, Some(random))?;
    Ok(surprise(&logits, &wanted)?.mean_all()?)
}

/// How well one form is written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Mean of −log p over its tokens.
    pub loss: f32,
    /// Whether each token is the likeliest behind those before it: to always take the likeliest
    /// token writes exactly this form.
    pub exact: bool,
}

/// How well the known forms of some questions are written, without dropping anything.
pub fn judge(
    base: &Base,
    network: &Network,
    prepared: &Prepared,
    batch: &[usize],
) -> Result<Vec<Judgement>> {
    let (logits, wanted) = written(base, network, prepared, batch, None)?;
    let losses = surprise(&logits, &wanted)?.to_vec1::<f32>()?;
    let likeliest = logits.argmax(D::Minus1)?.to_vec1::<u32>()?;
    let mut at = 0;
    let mut judged = Vec::with_capacity(batch.len());
    for &i in batch {
        let length = prepared.asked[i].target.len();
        let own = at..at + length;
        judged.push(Judgement {
            loss: losses[own.clone()].iter().sum::<f32>() / length.max(1) as f32,
            exact: likeliest[own.clone()] == wanted[own],
        });
        at += length;
    }
    Ok(judged)
}

/// Forms on their way: what the model remembers of each.
pub struct Session<'a> {
    base: &'a Base,
    network: &'a Network,
    caches: Vec<Cache>,
    /// Prompt length of each text that is being written.
    prompts: Vec<usize>,
    longest: usize,
    steps: usize,
    gates: [Option<Vec<Vec<f32>>>; 3],
    counts: Vec<[usize; 3]>,
}

impl<'a> Session<'a> {
    /// Reads the prompts of some questions; the logarithms of the probabilities of each one's first
    /// token.
    pub fn begin(
        base: &'a Base,
        network: &'a Network,
        prepared: &Prepared,
        batch: &[usize],
    ) -> Result<(Self, Vec<Vec<f32>>)> {
        let made = Batch::new(base, network, prepared, batch, false)?;
        let longest = made.longest()?;
        let places = base.frozen.places_at_the_start(longest)?;
        let mut caches = Vec::new();
        let rows = base.frozen.run(
            &made.embeddings.detach(),
            &places,
            Some(&mut caches),
            &mut |layer, product, x| network.adapted(layer, product, x, None).map(Some),
        )?;
        let ends: Vec<u32> = (made.prompts.iter().enumerate())
            .map(|(row, prompt)| (row * longest + prompt - 1) as u32)
            .collect();
        let count = ends.len();
        let ends = Tensor::from_vec(ends, count, base.device())?;
        let rows = rows
            .reshape(((), base.model().width))?
            .index_select(&ends, 0)?;
        let mut gates: [Option<Vec<Vec<f32>>>; 3] = [None, None, None];
        for (place, tensor) in gates.iter_mut().zip(&made.gates) {
            *place = match tensor {
                Some(tensor) => Some(tensor.to_vec2()?),
                None => None,
            };
        }
        let counts = batch.iter().map(|&i| {
            let texts = &prepared.asked[i].texts;
            [texts[0].len(), texts[1].len(), texts[2].len()]
        });
        let session = Self {
            base,
            network,
            caches,
            prompts: made.prompts,
            longest,
            steps: 0,
            gates,
            counts: counts.collect(),
        };
        let scores = session.scores(&rows)?;
        Ok((session, scores))
    }

    /// How much each text of an aspect counts in the prompt of question `question` of the batch;
    /// none where the network has no gate, or read no tokens.
    pub fn gates(&self, question: usize, aspect: Aspect) -> Option<&[f32]> {
        let rows = self.gates[aspect as usize].as_ref()?;
        let count = self.counts.get(question)?[aspect as usize];
        rows.get(question)?.get(..count)
    }

    /// Goes on with texts that are one of the former ones (`parents`) and one token more; the
    /// logarithms of the probabilities of what follows each.
    pub fn advance(&mut self, parents: &[u32], tokens: &[u32]) -> Result<Vec<Vec<f32>>> {
        if parents.is_empty() {
            return Ok(Vec::new());
        }
        let order = Tensor::from_slice(parents, parents.len(), self.base.device())?;
        for cache in &mut self.caches {
            *cache = cache.of(&order)?;
        }
        self.prompts = (parents.iter())
            .map(|&parent| self.prompts[parent as usize])
            .collect();
        let frozen = &self.base.frozen;
        let x = frozen.embed(tokens)?.unsqueeze(1)?;
        let places = frozen.one_further(&self.prompts, self.longest, self.steps)?;
        let network = self.network;
        let rows = frozen.run(&x, &places, Some(&mut self.caches), &mut |l, p, x| {
            network.adapted(l, p, x, None).map(Some)
        })?;
        self.steps += 1;
        self.scores(&rows.squeeze(1)?)
    }

    fn scores(&self, rows: &Tensor) -> Result<Vec<Vec<f32>>> {
        let logits = self.base.frozen.logits(rows)?;
        let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?)?;
        let sums = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
        Ok(shifted.broadcast_sub(&sums)?.to_vec2()?)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::super::{Ablation, Asking, Config};
    use super::*;
    use crate::checkpoint::Checkpointable;
    use crate::language::local::reference::make_case;
    use crate::tensor::gradient::worst_error;

    fn base(family: &str) -> Base {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        make_case(&path, family);
        Base::open(&path, &Device::Cpu).unwrap()
    }

    fn config(base: &Base, ablations: &[Ablation]) -> Config {
        Config {
            base: base.model().clone(),
            rank: 2,
            bottleneck: 4,
            attention: 4,
            gate: 4,
            soft_prompt: 2,
            dropout: 0.0,
            ablations: ablations.to_vec(),
            ..Config::default()
        }
    }

    fn asking() -> [Asking; 2] {
        let texts = |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>();
        [
            Asking {
                question: "who won the other?".into(),
                texts: [
                    texts(&["the fox", "ox"]),
                    texts(&["won", "lost", "plays_in"]),
                    texts(&["the fox won the quiz"]),
                ],
            },
            Asking {
                question: "where?".into(),
                texts: [texts(&["the ox"]), texts(&["plays_in"]), Vec::new()],
            },
        ]
    }

    const TARGETS: [&str; 2] = ["(JOIN (R won) [fox])", "(JOIN plays_in [the ox])"];

    fn targets() -> Vec<String> {
        TARGETS.map(str::to_owned).to_vec()
    }

    #[test]
    fn the_loss_of_the_whole_has_its_gradient() -> Result<()> {
        let base = base("qwen2");
        for ablations in [&[][..], &[Ablation::ContextPrompt]] {
            let config = config(&base, ablations);
            let prepared = Prepared::new(&base, &config, &asking(), &targets(), 100)?;
            let network = Network::new(config, 0.3, &mut Random::new(3), &Device::Cpu)?;
            let mut random = Random::new(8);
            let mut learned: Vec<Var> = Vec::new();
            for (name, var) in network.parameters() {
                let shaken: Vec<f32> = (0..var.elem_count())
                    .map(|_| random.normal() * 0.1)
                    .collect();
                var.set(
                    &(var.as_tensor() + Tensor::from_vec(shaken, var.shape(), &Device::Cpu)?)?,
                )?;
                // some of every kind: all of them would take long
                if name.starts_with("gate.relations.second")
                    || name == "projector.down_bias"
                    || name == "lora.1.down.a"
                    || name == "align.subgraphs.entities.query"
                {
                    learned.push(var.clone());
                }
            }
            let error = worst_error(&learned, 2e-2, || {
                let mut random = Random::new(1);
                Ok(loss(&base, &network, &prepared, &[0, 1], &mut random).expect("sizes fit"))
            })?;
            assert!(error < 2e-2, "{ablations:?}: {error}");
        }
        Ok(())
    }

    #[test]
    fn forms_that_are_learned_are_written_and_judged_exact() -> Result<()> {
        for family in ["llama", "qwen2", "llama-pieces"] {
            let base = base(family);
            let config = config(&base, &[]);
            let prepared = Prepared::new(&base, &config, &asking(), &targets(), 100)?;
            let network = Network::new(config, 0.3, &mut Random::new(3), &Device::Cpu)?;
            let first = judge(&base, &network, &prepared, &[0, 1])?;
            let mean = (loss(&base, &network, &prepared, &[0], &mut Random::new(1))?)
                .to_scalar::<f32>()?;
            assert!((first[0].loss - mean).abs() < 1e-4);
            let mut optimiser = crate::optimise::AdamW::new(
                network.parameters(),
                crate::optimise::AdamWConfig {
                    learning_rate: 2e-2,
                    weight_decay: 0.0,
                    ..Default::default()
                },
                crate::optimise::Schedule {
                    warm_up: 5,
                    total: 1000,
                    floor: 0.1,
                },
            )?;
            let mut judged = first;
            for step in 0..400 {
                optimiser.step(&loss(
                    &base,
                    &network,
                    &prepared,
                    &[0, 1],
                    &mut Random::new(step),
                )?)?;
                judged = judge(&base, &network, &prepared, &[0, 1])?;
                if judged.iter().all(|j| j.exact) {
                    break;
                }
            }
            assert!(judged.iter().all(|j| j.exact), "{family}: {judged:?}");
            // both are written at once, always with the likeliest token
            let (mut session, mut scores) = Session::begin(&base, &network, &prepared, &[0, 1])?;
            let relations = session.gates(0, Aspect::Relations).unwrap();
            assert!(relations.len() == 3 && relations.iter().all(|g| (0.0..=1.0).contains(g)));
            assert_eq!(session.gates(1, Aspect::Subgraphs).unwrap(), [0f32; 0]);
            let mut texts = [Vec::new(), Vec::new()];
            for _ in 0..40 {
                let best: Vec<u32> = scores
                    .iter()
                    .map(|row| {
                        (0..row.len())
                            .max_by(|&a, &b| row[a].total_cmp(&row[b]))
                            .unwrap() as u32
                    })
                    .collect();
                for (text, token) in texts.iter_mut().zip(&best) {
                    text.push(*token);
                }
                scores = session.advance(&[0, 1], &best)?;
            }
            for (i, text) in texts.iter().enumerate() {
                let target = &prepared.asked[i].target;
                assert_eq!(&text[..target.len()], target.as_slice(), "{family}");
            }
        }
        Ok(())
    }

    #[test]
    fn an_adapter_for_another_model_is_refused() {
        let (llama, qwen) = (base("llama"), base("qwen2"));
        let path = std::path::Path::new("ckpt");
        assert!(llama.check(llama.model(), path).is_ok());
        let error = qwen.check(llama.model(), path).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("`ckpt`") && text.contains(&llama.model().identity),
            "{text}"
        );
        assert!(error.hint().is_some());
    }
}
