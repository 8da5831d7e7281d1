//! A BERT encoder whose layers learn: the same network as `encode::transformer::bert`, of operations
//! that have gradients.
//!
//! The tensors keep their published names. The embeddings stay as they are, so that what is saved
//! while it trains is the layers alone; [`Tuned::write`] writes a whole model folder that
//! `encode::open` reads like any other. Texts of about the same length are read together, padded to the
//! longest of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{D, DType, Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpointable, checkpointable};
use crate::encode::transformer::files::{open_weights, read_json};
use crate::encode::{Encoder, Pooling, TransformerEncoder, TransformerOptions};
use crate::tensor::{layer_norm, unit_rows};
use crate::{Error, Result, models};

/// Sizes of a BERT, as its `config.json` has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    model_type: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    layer_norm_eps: f64,
    hidden_act: String,
}

impl Sizes {
    /// Refuses sizes of which no network can be made.
    fn check(&self) -> Result<()> {
        let wrong = |option, given: &str, wanted| Err(Error::option(option, given, wanted));
        if self.model_type != "bert" {
            return wrong("model_type", &self.model_type, "`bert` to be fine-tuned");
        }
        if self.hidden_act != "gelu" {
            return wrong("hidden_act", &self.hidden_act, "`gelu` to be fine-tuned");
        }
        let heads = self.num_attention_heads;
        if heads == 0 || !self.hidden_size.is_multiple_of(heads) || self.hidden_size == 0 {
            let wanted = "a divisor of hidden_size";
            return wrong("num_attention_heads", &heads.to_string(), wanted);
        }
        Ok(())
    }
}

/// The layers of a BERT, in training.
pub struct Tuned {
    sizes: Sizes,
    parameters: BTreeMap<String, Var>,
}

/// What does not learn: tokenizer and embeddings.
pub struct Base {
    encoder: TransformerEncoder,
    words: Tensor,     // [vocabulary, hidden]
    positions: Tensor, // [positions, hidden]
    first_type: Tensor,
    norm: [Tensor; 2],
    epsilon: f32,
    device: Device,
}

const EMBEDDINGS: [&str; 5] = [
    "embeddings.word_embeddings.weight",
    "embeddings.position_embeddings.weight",
    "embeddings.token_type_embeddings.weight",
    "embeddings.LayerNorm.weight",
    "embeddings.LayerNorm.bias",
];

impl Tuned {
    /// The folder of the encoder of this name, if it is a BERT; those that are built in are none.
    pub fn folder(name: &str) -> Result<Option<PathBuf>> {
        #[derive(Deserialize)]
        struct Family {
            #[serde(default)]
            model_type: String,
        }
        if matches!(name, "static" | "hashing") {
            return Ok(None);
        }
        let folder = models::locate(name.split('?').next().unwrap_or(name))?;
        let family: Option<Family> = match folder.is_dir() {
            true => read_json(&folder, "config.json")?,
            false => None,
        };
        Ok(family
            .is_some_and(|family| family.model_type == "bert")
            .then_some(folder))
    }

    /// Reads the model folder of a BERT.
    pub fn open(folder: &Path, device: &Device) -> Result<(Self, Base)> {
        let encoder = TransformerEncoder::load(folder, &TransformerOptions::default())?;
        let unusable = |reason: String| Error::BadConfig {
            path: folder.join("config.json"),
            reason,
        };
        let sizes: Option<Sizes> = read_json(folder, "config.json")?;
        let sizes = sizes.ok_or_else(|| unusable("there is none".into()))?;
        sizes.check().map_err(|error| unusable(error.to_string()))?;
        if encoder.pooling() != Pooling::Mean {
            return Err(unusable(
                "only encoders with mean pooling can be fine-tuned".into(),
            ));
        }
        let path = folder.join("model.safetensors");
        let (_, file) = open_weights(&path)?;
        let load = |name: &str| -> Result<Tensor> {
            use candle_core::safetensors::Load;
            let view = file
                .get(name)
                .or_else(|_| file.get(&format!("bert.{name}")));
            let view = view.map_err(|_| Error::MissingTensor {
                path: path.clone(),
                tensor: name.to_owned(),
                wanted: Vec::new(),
            })?;
            Ok(view.load(device)?.to_dtype(DType::F32)?)
        };
        let tensors = shapes(&sizes)
            .into_iter()
            .map(|(name, _)| Ok((name.clone(), load(&name)?)))
            .collect::<Result<_>>()?;
        let [words, positions, types, scale, shift] = EMBEDDINGS.map(load);
        let base = Base {
            encoder,
            words: words?,
            positions: positions?,
            first_type: types?.narrow(0, 0, 1)?,
            norm: [scale?, shift?],
            epsilon: sizes.layer_norm_eps as f32,
            device: device.clone(),
        };
        Ok((Self::from_tensors(sizes, tensors, device)?, base))
    }

    /// Its sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// A copy that shares its tensors, and learns with it.
    pub fn shared(&self) -> Self {
        Self {
            sizes: self.sizes.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// Unit rows, `[texts, dim]`, with gradients.
    pub fn rows(&self, base: &Base, texts: &[&str]) -> Result<Tensor> {
        let tokens = base.encoder.token_ids(texts)?;
        let mut order: Vec<u32> = (0..tokens.len() as u32).collect();
        order.sort_by_key(|&i| tokens[i as usize].len());
        let mut sums = Vec::new();
        let mut rest = &order[..];
        while let Some(&shortest) = rest.first() {
            let most = tokens[shortest as usize].len() * 3 / 2;
            let count = rest.partition_point(|&i| tokens[i as usize].len() <= most);
            let alike: Vec<&[u32]> = rest[..count]
                .iter()
                .map(|&i| &*tokens[i as usize])
                .collect();
            sums.push(self.forward(base, &alike)?);
            rest = &rest[count..];
        }
        let mut places = vec![0u32; order.len()];
        for (place, &i) in (0u32..).zip(&order) {
            places[i as usize] = place;
        }
        let places = Tensor::from_vec(places, order.len(), &base.device)?;
        let sums = Tensor::cat(&sums, 0)?.index_select(&places, 0)?;
        Ok(unit_rows(&sums)?)
    }

    /// Writes a whole model folder: the files of the one that it was read from, with these layers.
    pub fn write(&self, base: &Base, folder: &Path) -> Result<()> {
        let from = base.encoder.folder();
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        copy_files(from, folder)?;
        let mut tensors: BTreeMap<String, Tensor> = BTreeMap::new();
        let [words, positions, types, scale, shift] = [
            &base.words,
            &base.positions,
            &Tensor::cat(&[&base.first_type, &base.first_type.zeros_like()?], 0)?,
            &base.norm[0],
            &base.norm[1],
        ];
        for (name, tensor) in EMBEDDINGS
            .iter()
            .zip([words, positions, types, scale, shift])
        {
            tensors.insert(
                (*name).to_owned(),
                tensor.to_device(&Device::Cpu)?.contiguous()?,
            );
        }
        for (name, var) in &self.parameters {
            let tensor = var.as_tensor().to_device(&Device::Cpu)?.contiguous()?;
            tensors.insert(name.clone(), tensor);
        }
        let path = folder.join("model.safetensors");
        safetensors::serialize_to_file(&tensors, None, &path).map_err(|error| Error::BadWeights {
            path: path.clone(),
            reason: error.to_string(),
        })
    }

    /// The sums of the last states, `[texts, hidden]`.
    fn forward(&self, base: &Base, tokens: &[&[u32]]) -> candle_core::Result<Tensor> {
        let Sizes {
            hidden_size: hidden,
            num_attention_heads: heads,
            num_hidden_layers: layers,
            ..
        } = self.sizes;
        let (count, longest) = (
            tokens.len(),
            tokens
                .iter()
                .map(|text| text.len())
                .max()
                .unwrap_or(0)
                .max(1),
        );
        let mut ids = vec![0u32; count * longest];
        let mut there = vec![0f32; count * longest];
        for (i, tokens) in tokens.iter().enumerate() {
            ids[i * longest..][..tokens.len()].copy_from_slice(tokens);
            there[i * longest..][..tokens.len()].fill(1.0);
        }
        let device = &base.device;
        let rows = count * longest;
        let there = Tensor::from_vec(there, (count, longest), device)?;
        let ids = Tensor::from_vec(ids, rows, device)?;
        let places: Vec<u32> = (0..rows).map(|i| (i % longest) as u32).collect();
        let places = Tensor::from_vec(places, rows, device)?;
        let x = (base.words.index_select(&ids, 0)? + base.positions.index_select(&places, 0)?)?;
        let x = x.broadcast_add(&base.first_type)?;
        let mut h = layer_norm(&x, &base.norm[0], &base.norm[1], base.epsilon)?;
        // padding is so far below all scores that its share is 0
        let mask = ((there.reshape((count, 1, 1, longest))? - 1.0)? * 1e9)?;
        let mask = mask
            .broadcast_as((count, heads, longest, longest))?
            .contiguous()?;
        let width = hidden / heads;
        for layer in 0..layers {
            let get = |name: &str| self.get(&format!("encoder.layer.{layer}.{name}"));
            let linear = |x: &Tensor, name: &str| {
                let y = x.matmul(&get(&format!("{name}.weight")).t()?)?;
                y.broadcast_add(&get(&format!("{name}.bias")).unsqueeze(0)?)
            };
            let norm = |x: &Tensor, name: &str| {
                let (scale, shift) = (format!("{name}.weight"), format!("{name}.bias"));
                layer_norm(x, get(&scale), get(&shift), base.epsilon)
            };
            let part = |name: &str| {
                linear(&h, &format!("attention.self.{name}"))?
                    .reshape((count, longest, heads, width))?
                    .transpose(1, 2)?
                    .contiguous()
            };
            let (q, k, v) = (part("query")?, part("key")?, part("value")?);
            let scores = (q.matmul(&k.t()?.contiguous()?)? / (width as f64).sqrt())?;
            let scores = (scores + &mask)?;
            let top = scores.detach().max_keepdim(D::Minus1)?;
            let powers = scores.broadcast_sub(&top)?.exp()?;
            let shares = powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)?;
            let attended = shares.matmul(&v)?.transpose(1, 2)?.contiguous()?;
            let attended = attended.reshape((rows, hidden))?;
            let attended = linear(&attended, "attention.output.dense")?;
            let x = norm(&(attended + &h)?, "attention.output.LayerNorm")?;
            let inner = linear(&x, "intermediate.dense")?.gelu_erf()?;
            h = norm(&(linear(&inner, "output.dense")? + &x)?, "output.LayerNorm")?;
        }
        let there = there.reshape((count, longest, 1))?;
        h.reshape((count, longest, hidden))?
            .broadcast_mul(&there)?
            .sum(1)
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).map_err(Error::io("read", from))? {
        let path = entry.map_err(Error::io("read", from))?.path();
        let name = path.file_name().unwrap_or_default();
        let target = to.join(name);
        if path.is_dir() {
            fs::create_dir_all(&target).map_err(Error::io("create", &target))?;
            copy_files(&path, &target)?;
        } else if path
            .extension()
            .is_some_and(|kind| kind == "json" || kind == "txt")
        {
            fs::copy(&path, &target).map_err(Error::io("write", &target))?;
        }
    }
    Ok(())
}

fn shapes(sizes: &Sizes) -> Vec<(String, Vec<usize>)> {
    let (hidden, inner) = (sizes.hidden_size, sizes.intermediate_size);
    let mut shapes = Vec::new();
    for layer in 0..sizes.num_hidden_layers {
        let mut linear = |name: &str, out: usize, input: usize| {
            let at = format!("encoder.layer.{layer}.{name}");
            shapes.push((format!("{at}.weight"), vec![out, input]));
            shapes.push((format!("{at}.bias"), vec![out]));
        };
        for part in ["query", "key", "value"] {
            linear(&format!("attention.self.{part}"), hidden, hidden);
        }
        linear("attention.output.dense", hidden, hidden);
        linear("intermediate.dense", inner, hidden);
        linear("output.dense", hidden, inner);
        for norm in ["attention.output.LayerNorm", "output.LayerNorm"] {
            let at = format!("encoder.layer.{layer}.{norm}");
            shapes.push((format!("{at}.weight"), vec![hidden]));
            shapes.push((format!("{at}.bias"), vec![hidden]));
        }
    }
    shapes
}

checkpointable!(Tuned, "gnn2r-bert", sizes: Sizes, hidden_size);

impl Base {
    /// The name of the model.
    pub fn name(&self) -> &str {
        self.encoder.name()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Random;
    use crate::gnn2r::sentence::{Triplet, triplet_loss};
    use crate::tensor::gradient::worst_error;

    /// A BERT of two small layers with a vocabulary of eight words.
    pub(crate) fn folder() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let config = serde_json::json!({
            "model_type": "bert", "hidden_size": 4, "intermediate_size": 6, "num_attention_heads": 2,
            "num_hidden_layers": 2, "max_position_embeddings": 12, "vocab_size": 8,
            "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"
        });
        fs::write(place.path().join("config.json"), config.to_string()).unwrap();
        let words = [
            "[UNK]", "[CLS]", "[SEP]", "who", "is", "spouse", "of", "ann",
        ];
        fs::write(place.path().join("vocab.txt"), words.join("\n")).unwrap();
        let sizes: Sizes = serde_json::from_value(config).unwrap();
        let mut random = Random::new(4);
        let mut all = shapes(&sizes);
        for (name, shape) in EMBEDDINGS
            .iter()
            .zip([[8, 4], [12, 4], [2, 4], [4, 0], [4, 0]])
        {
            let shape: Vec<usize> = shape.into_iter().filter(|n| *n > 0).collect();
            all.push(((*name).to_owned(), shape));
        }
        let tensors: BTreeMap<String, Tensor> = all
            .into_iter()
            .map(|(name, shape)| {
                let mut values = random.within(0.8, shape.iter().product());
                if name.ends_with("LayerNorm.weight") {
                    values.iter_mut().for_each(|x| *x += 1.5);
                }
                (name, Tensor::from_vec(values, shape, &Device::Cpu).unwrap())
            })
            .collect();
        let path = place.path().join("model.safetensors");
        safetensors::serialize_to_file(&tensors, None, &path).unwrap();
        place
    }

    const TEXTS: [&str; 3] = ["who is ann", "spouse of ann is who", "ann"];

    #[test]
    fn training_code_gives_the_rows_of_the_encoder_and_what_is_written_reads_back() {
        let place = folder();
        let (tuned, base) = Tuned::open(place.path(), &Device::Cpu).unwrap();
        let same = |encoder: &dyn Encoder, rows: &[Vec<f32>]| {
            let wanted = encoder.encode(&TEXTS).unwrap();
            for (row, wanted) in rows.iter().zip(wanted.rows()) {
                for (a, b) in row.iter().zip(wanted) {
                    assert!((a - b).abs() < 1e-4, "{a} {b}");
                }
            }
        };
        let rows = tuned.rows(&base, &TEXTS).unwrap().to_vec2::<f32>().unwrap();
        same(&base.encoder, &rows);
        let weight = &tuned.parameters["encoder.layer.1.output.dense.weight"];
        weight.set(&(weight.as_tensor() * 2.0).unwrap()).unwrap();
        let moved = tuned.rows(&base, &TEXTS).unwrap().to_vec2::<f32>().unwrap();
        assert_ne!(moved, rows);
        let out = tempfile::tempdir().unwrap();
        tuned.write(&base, out.path()).unwrap();
        let written = TransformerEncoder::load(out.path(), &TransformerOptions::default()).unwrap();
        same(&written, &moved);
    }

    #[test]
    fn gradients_are_finite_differences() {
        let place = folder();
        let (tuned, base) = Tuned::open(place.path(), &Device::Cpu).unwrap();
        let triplets = [Triplet {
            question: 0,
            positive: 1,
            negative: 2,
            weight: 1.0,
        }];
        let inputs: Vec<Var> = tuned.parameters.values().cloned().collect();
        let error = worst_error(&inputs, 1e-2, || {
            let vectors = tuned.rows(&base, &TEXTS).expect("sizes fit");
            Ok(triplet_loss(&vectors, &triplets, 1.0).expect("rows are inside"))
        })
        .unwrap();
        assert!(error < 1e-2, "{error}");
    }

    #[test]
    fn another_family_is_refused() {
        let place = folder();
        let path = place.path().join("config.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"gelu\"", "\"relu\"")).unwrap();
        let error = Tuned::open(place.path(), &Device::Cpu).err().unwrap();
        assert!(error.to_string().contains("hidden_act"), "{error}");
    }
}
