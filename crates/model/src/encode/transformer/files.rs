//! A model folder as it is published: configuration, tokenizer, weights, pooling.
//!
//! ```text
//! config.json                        sizes and family (`model_type`)
//! tokenizer.json, or vocab.txt       the latter for uncased WordPiece models only
//! model.safetensors, or several      named by model.safetensors.index.json
//! modules.json, 1_Pooling/           sentence-transformers: how token vectors become one
//! sentence_bert_config.json          sentence-transformers: `max_seq_length`
//! config_sentence_transformers.json  sentence-transformers: prompts, the query's among them
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::safetensors::BufferedSafetensors;
use candle_core::{DType, Device, Tensor};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ops::{Linear, Norm};
use super::{Pooling, Precision};
use crate::{Error, Result};

/// Reads `folder/file` as JSON into `T`; `None` where there is no such file.
pub(crate) fn read_json<T: DeserializeOwned>(folder: &Path, file: &str) -> Result<Option<T>> {
    let path = folder.join(file);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Error::BadConfig {
            path,
            reason: error.to_string(),
        })
}

/// Reads `folder/config.json`, which every model has.
pub(super) fn read_config<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    read_json(folder, "config.json")?.ok_or_else(|| Error::MissingFile {
        folder: folder.to_owned(),
        file: "config.json",
    })
}

/// What sentence-transformers' files say about a model; empty where they are absent.
#[derive(Default)]
pub(super) struct SentenceConfig {
    pub(super) pooling: Option<Pooling>,
    pub(super) max_tokens: Option<usize>,
    pub(super) query_prefix: Option<String>,
}

impl SentenceConfig {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Module {
            path: String,
            #[serde(rename = "type")]
            kind: String,
        }
        #[derive(Deserialize)]
        struct Lengths {
            max_seq_length: Option<usize>,
        }
        #[derive(Deserialize)]
        struct TokenizerLengths {
            // "no limit" is written as 10³⁰
            model_max_length: Option<f64>,
        }
        #[derive(Deserialize)]
        struct Prompts {
            #[serde(default)]
            prompts: BTreeMap<String, Option<String>>,
        }
        let modules: Vec<Module> = read_json(folder, "modules.json")?.unwrap_or_default();
        let mut pooling_folder = "1_Pooling".to_owned();
        for module in &modules {
            match module.kind.rsplit('.').next().unwrap_or_default() {
                "Transformer" | "Normalize" => {}
                "Pooling" => pooling_folder.clone_from(&module.path),
                other => {
                    return Err(Error::BadConfig {
                        path: folder.join("modules.json"),
                        reason: format!(
                            "a module of type `{other}` follows the transformer, and only `Pooling` and `Normalize` are known"
                        ),
                    });
                }
            }
        }
        let lengths: Option<Lengths> = read_json(folder, "sentence_bert_config.json")?;
        let tokenizer: Option<TokenizerLengths> = read_json(folder, "tokenizer_config.json")?;
        let prompts: Option<Prompts> = read_json(folder, "config_sentence_transformers.json")?;
        Ok(Self {
            pooling: read_pooling(folder, &format!("{pooling_folder}/config.json"))?,
            max_tokens: lengths.and_then(|l| l.max_seq_length).or_else(|| {
                let limit = tokenizer?.model_max_length?;
                (limit < 1e9).then_some(limit as usize)
            }),
            query_prefix: prompts
                .and_then(|mut p| p.prompts.remove("query").flatten())
                .filter(|prefix| !prefix.is_empty()),
        })
    }
}

fn read_pooling(folder: &Path, file: &str) -> Result<Option<Pooling>> {
    let Some(flags) = read_json::<BTreeMap<String, serde_json::Value>>(folder, file)? else {
        return Ok(None);
    };
    let on: Vec<_> = flags
        .iter()
        .filter(|(key, value)| key.starts_with("pooling_mode_") && value.as_bool() == Some(true))
        .map(|(key, _)| key.as_str())
        .collect();
    match on[..] {
        [] => Ok(None),
        ["pooling_mode_mean_tokens"] => Ok(Some(Pooling::Mean)),
        ["pooling_mode_cls_token"] => Ok(Some(Pooling::Cls)),
        ["pooling_mode_lasttoken"] => Ok(Some(Pooling::LastToken)),
        _ => Err(Error::BadConfig {
            path: folder.join(file),
            reason: format!(
                "pooling by `{}` is not known, only by mean, CLS or last token",
                on.join("` and `")
            ),
        }),
    }
}

/// The tensors of a folder, looked up by name and checked for shape.
pub(super) struct Weights {
    files: Vec<(PathBuf, BufferedSafetensors)>,
    prefix: &'static str,
    precision: Precision,
}

impl Weights {
    /// Opens `model.safetensors`, or the files that its index names.
    pub(super) fn open(folder: &Path, precision: Precision) -> Result<Self> {
        #[derive(Deserialize)]
        struct Index {
            weight_map: BTreeMap<String, String>,
        }
        const SINGLE: &str = "model.safetensors";
        let index: Option<Index> = read_json(folder, "model.safetensors.index.json")?;
        let names: BTreeSet<String> = match index {
            Some(index) if !folder.join(SINGLE).is_file() => {
                index.weight_map.into_values().collect()
            }
            _ if folder.join(SINGLE).is_file() => BTreeSet::from([SINGLE.to_owned()]),
            _ => {
                return Err(Error::MissingFile {
                    folder: folder.to_owned(),
                    file: SINGLE,
                });
            }
        };
        let files = names
            .into_iter()
            .map(|name| open_weights(&folder.join(name)))
            .collect::<Result<_>>()?;
        Ok(Self {
            files,
            prefix: "",
            precision,
        })
    }

    /// Looks up all names behind the first of `prefixes` under which `probe` is found.
    pub(super) fn behind(mut self, prefixes: &[&'static str], probe: &str) -> Self {
        self.prefix = prefixes
            .iter()
            .find(|prefix| {
                let name = format!("{prefix}{probe}");
                self.files.iter().any(|(_, file)| file.get(&name).is_ok())
            })
            .unwrap_or(&"");
        self
    }

    fn load(&self, name: &str, wanted: &[usize]) -> Result<Tensor> {
        let name = format!("{}{name}", self.prefix);
        let found = self
            .files
            .iter()
            .find_map(|(path, file)| file.get(&name).ok().map(|view| (path, view)));
        let Some((path, view)) = found else {
            return Err(Error::MissingTensor {
                path: self.files.first().map(|f| f.0.clone()).unwrap_or_default(),
                tensor: name,
                wanted: wanted.to_owned(),
            });
        };
        if view.shape() != wanted {
            return Err(Error::TensorShape {
                path: path.clone(),
                tensor: name,
                wanted: wanted.to_owned(),
                found: view.shape().to_owned(),
            });
        }
        use candle_core::safetensors::Load;
        Ok(view.load(&Device::Cpu)?)
    }

    /// A matrix, in the precision that was asked for.
    pub(super) fn matrix(&self, name: &str, shape: [usize; 2]) -> Result<Tensor> {
        let dtype = match self.precision {
            Precision::F32 => DType::F32,
            Precision::Bf16 => DType::BF16,
        };
        Ok(self.load(name, &shape)?.to_dtype(dtype)?)
    }

    /// A vector, always in f32.
    pub(super) fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>> {
        Ok(self.load(name, &[len])?.to_dtype(DType::F32)?.to_vec1()?)
    }

    /// `{name}.weight` and `{name}.bias`.
    pub(super) fn linear(&self, name: &str, input: usize, output: usize) -> Result<Linear> {
        Ok(Linear::new(
            self.matrix(&format!("{name}.weight"), [output, input])?,
            self.vector(&format!("{name}.bias"), output)?,
        ))
    }

    /// `{name}.weight` alone.
    pub(super) fn linear_no_bias(&self, name: &str, input: usize, output: usize) -> Result<Linear> {
        let weight = self.matrix(&format!("{name}.weight"), [output, input])?;
        Ok(Linear::new(weight, vec![]))
    }

    /// `{name}.weight` and `{name}.bias` of a layer norm.
    pub(super) fn layer_norm(&self, name: &str, width: usize, epsilon: f64) -> Result<Norm> {
        Ok(Norm {
            scale: self.vector(&format!("{name}.weight"), width)?,
            shift: self.vector(&format!("{name}.bias"), width)?,
            epsilon: epsilon as f32,
        })
    }

    /// `{name}.weight` of an RMS norm.
    pub(super) fn rms_norm(&self, name: &str, width: usize, epsilon: f64) -> Result<Norm> {
        Ok(Norm {
            scale: self.vector(&format!("{name}.weight"), width)?,
            shift: vec![],
            epsilon: epsilon as f32,
        })
    }
}

pub(crate) fn open_weights(path: &Path) -> Result<(PathBuf, BufferedSafetensors)> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    let found = bytes.len();
    let file = BufferedSafetensors::new(bytes).map_err(|error| Error::BadWeights {
        path: path.to_owned(),
        reason: format!("{error} (the file has {found} bytes)"),
    })?;
    Ok((path.to_owned(), file))
}
