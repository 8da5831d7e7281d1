//! A trained network on disk: a folder with its description, its tensors and, if training is to go
//! on, the optimiser's.
//!
//! ```text
//! config.json           Description: method, sizes, encoder, data, seed, metrics
//! model.safetensors     the network's tensors, named as its equations name them
//! training.safetensors  the optimiser's memory; only needed to train on
//! ```
//!
//! The folder is written aside and renamed, so that a killed run leaves the last good one. What
//! the tensors mean is told in `docs/checkpoints.md`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor, Var};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use crate::optimise::AdamW;
use crate::{Encoder, Error, Result};

/// The format this code writes, and the only one it reads.
pub const FORMAT: u32 = 1;

const CONFIG: &str = "config.json";
const MODEL: &str = "model.safetensors";
const TRAINING: &str = "training.safetensors";

/// A network that a checkpoint can hold.
pub trait Checkpointable: Sized {
    /// The method, as `config.json` names it.
    const METHOD: &'static str;
    /// Sizes of the network.
    type Sizes: Clone + PartialEq + Serialize + DeserializeOwned;

    /// Refuses sizes of which no network can be made.
    fn check(sizes: &Self::Sizes) -> Result<()>;

    /// Numbers in the vectors that the network takes.
    fn dim(sizes: &Self::Sizes) -> usize;

    /// Name and shape of every tensor of a network of these sizes.
    fn shapes(sizes: &Self::Sizes) -> Vec<(String, Vec<usize>)>;

    /// The network of these parameters, which have the shapes of these sizes.
    fn from_parameters(sizes: Self::Sizes, parameters: BTreeMap<String, Var>) -> Self;

    /// The network of these tensors; they must be those of a network of these sizes, and no more.
    fn from_tensors(
        sizes: Self::Sizes,
        tensors: HashMap<String, Tensor>,
        device: &Device,
    ) -> Result<Self> {
        Self::check(&sizes)?;
        let parameters = variables(Self::shapes(&sizes), tensors, device)?;
        Ok(Self::from_parameters(sizes, parameters))
    }

    /// What it learns, by name.
    fn parameters(&self) -> &BTreeMap<String, Var>;
}

/// The numbers of a network's parameters, by name.
pub(crate) fn numbers(parameters: &BTreeMap<String, Var>) -> Result<BTreeMap<String, Vec<f32>>> {
    let read = |(name, var): (&String, &Var)| {
        let flat = var.to_device(&Device::Cpu)?.flatten_all()?;
        let numbers = flat.to_vec1::<f32>()?;
        match numbers.iter().all(|x| x.is_finite()) {
            true => Ok((name.clone(), numbers)),
            false => Err(Error::NotFinite {
                what: format!("tensor `{name}`"),
            }),
        }
    };
    parameters.iter().map(read).collect()
}

/// Makes a network of two fields, its sizes and its parameters by name, [`Checkpointable`]. The
/// module has the function `shapes`; the sizes check themselves, and `dim` is a field of theirs.
macro_rules! checkpointable {
    ($network:ty, $method:literal, $field:ident: $sizes:ty, $($dim:ident).+) => {
        impl $crate::checkpoint::Checkpointable for $network {
            const METHOD: &'static str = $method;
            type Sizes = $sizes;

            fn check(sizes: &$sizes) -> $crate::Result<()> {
                sizes.check()
            }

            fn dim(sizes: &$sizes) -> usize {
                sizes.$($dim).+
            }

            fn shapes(sizes: &$sizes) -> Vec<(String, Vec<usize>)> {
                shapes(sizes)
            }

            fn from_parameters(
                $field: $sizes,
                parameters: std::collections::BTreeMap<String, candle_core::Var>,
            ) -> Self {
                Self { $field, parameters }
            }

            fn parameters(&self) -> &std::collections::BTreeMap<String, candle_core::Var> {
                &self.parameters
            }
        }

        impl $network {
            /// The tensor of this name, one of its shapes.
            fn get(&self, name: &str) -> &candle_core::Tensor {
                self.parameters[name].as_tensor()
            }
        }
    };
}
pub(crate) use checkpointable;

/// What a checkpoint says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description<S> {
    /// Version of this format.
    pub format: u32,
    /// The method, such as `qr-gat`.
    pub method: String,
    /// Sizes of its network.
    pub sizes: S,
    /// The encoder whose vectors it was trained on.
    pub encoder: EncoderName,
    /// The seed of weights, order and dropout.
    pub seed: u64,
    /// What it was trained on, as the trainer tells it.
    #[serde(default)]
    pub data: Map<String, Value>,
    /// How it was trained, as the trainer tells it.
    #[serde(default)]
    pub training: Map<String, Value>,
    /// How good it was when it was written.
    #[serde(default)]
    pub metrics: Map<String, Value>,
}

/// An encoder, and the length of its vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderName {
    /// The name under which `encode::open` finds it.
    pub name: String,
    /// Numbers in its vectors.
    pub dim: usize,
}

impl<S> Description<S> {
    /// Describes a network of these sizes.
    pub fn of<N: Checkpointable<Sizes = S>>(sizes: S, encoder: &str, seed: u64) -> Self {
        Self {
            format: FORMAT,
            method: N::METHOD.into(),
            encoder: EncoderName {
                name: encoder.into(),
                dim: N::dim(&sizes),
            },
            sizes,
            seed,
            data: Map::new(),
            training: Map::new(),
            metrics: Map::new(),
        }
    }
}

/// A checkpoint that was read and found whole.
pub struct Checkpoint<N: Checkpointable> {
    /// What it says of itself.
    pub description: Description<N::Sizes>,
    /// The network.
    pub network: N,
    folder: PathBuf,
    identity: String,
}

/// Writes a checkpoint to `folder`, in place of what is there. With an optimiser, training can go
/// on from it.
pub fn save<N: Checkpointable>(
    folder: &Path,
    description: &Description<N::Sizes>,
    network: &N,
    optimiser: Option<&AdamW>,
) -> Result<()> {
    replace(folder, |aside| {
        write_into(aside, description, network)?;
        if let Some(optimiser) = optimiser {
            let taken = ("steps".to_owned(), optimiser.taken().to_string());
            write(
                &aside.join(TRAINING),
                optimiser.state(),
                Some([taken].into()),
            )?;
        }
        Ok(())
    })
}

/// Writes description and network into a folder that [`replace`] is filling.
pub fn write_into<N: Checkpointable>(
    folder: &Path,
    description: &Description<N::Sizes>,
    network: &N,
) -> Result<()> {
    let config = folder.join(CONFIG);
    let text = serde_json::to_string_pretty(description);
    let text = text.map_err(|error| Error::BadCheckpoint {
        path: config.clone(),
        reason: error.to_string(),
    })?;
    fs::write(&config, text + "\n").map_err(Error::io("write", &config))?;
    let tensors: HashMap<String, Tensor> = network
        .parameters()
        .iter()
        .map(|(name, var)| (name.clone(), var.as_tensor().clone()))
        .collect();
    write(&folder.join(MODEL), tensors, None)
}

/// Puts a folder that `write` fills in place of what is there, if anything: aside first, so that a
/// killed run leaves the old one or the new one.
pub fn replace(folder: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let aside = beside(folder, "new");
    remove(&aside)?;
    fs::create_dir_all(&aside).map_err(Error::io("create", &aside))?;
    write(&aside)?;
    // the old one is moved out of the way first: a folder cannot be renamed onto a full one
    let old = beside(folder, "old");
    remove(&old)?;
    if folder.exists() {
        fs::rename(folder, &old).map_err(Error::io("rename", folder))?;
    }
    fs::rename(&aside, folder).map_err(Error::io("rename", &aside))?;
    remove(&old)
}

/// Refuses a folder that a training of `method` must not replace: one that holds anything but a
/// checkpoint of that method.
pub fn check_free(folder: &Path, method: &str) -> Result<()> {
    let mut entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", folder)(error)),
    };
    let holds = match describe::<Value>(&folder.join(CONFIG)) {
        Ok(found) if found.method == method => return Ok(()),
        Ok(found) => format!("a checkpoint of the method `{}`", found.method),
        Err(_) if entries.next().is_none() => return Ok(()),
        Err(_) => "something else than a checkpoint".into(),
    };
    Err(Error::FolderTaken {
        path: folder.to_path_buf(),
        holds,
    })
}

/// Whether there is a checkpoint in `folder`, or was until a killed run moved it out of the way.
pub fn exists(folder: &Path) -> bool {
    in_place(folder).exists()
}

/// The folder to read: a run killed between the two renames of [`replace`] left only the old one.
pub fn in_place(folder: &Path) -> PathBuf {
    let kept = beside(folder, "old");
    match !folder.exists() && kept.exists() {
        true => kept,
        false => folder.to_path_buf(),
    }
}

impl<N: Checkpointable> Checkpoint<N> {
    /// Reads the network in `folder`, and checks every tensor's name, shape and numbers.
    pub fn load(folder: &Path, device: &Device) -> Result<Self> {
        let folder = &in_place(folder);
        let path = folder.join(CONFIG);
        let found: Description<Value> = describe(&path)?;
        if found.method != N::METHOD {
            return Err(Error::OtherMethod {
                path,
                wanted: N::METHOD.into(),
                found: found.method,
            });
        }
        let description: Description<N::Sizes> = describe(&path)?;
        let unusable = |reason| Error::BadCheckpoint {
            path: path.clone(),
            reason,
        };
        let sizes = &description.sizes;
        N::check(sizes).map_err(|error| unusable(error.to_string()))?;
        if description.encoder.dim != N::dim(sizes) {
            let reason = format!(
                "its encoder gives {} numbers and its network takes {}",
                description.encoder.dim,
                N::dim(sizes)
            );
            return Err(unusable(reason));
        }
        let path = folder.join(MODEL);
        let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
        let (tensors, _) = parse(&path, &bytes, &N::shapes(sizes))?;
        let name = description.encoder.name.as_bytes();
        Ok(Self {
            identity: format!("{:032x}", xxh3_128(&[&bytes, name].concat())),
            network: N::from_tensors(sizes.clone(), tensors, device)?,
            description,
            folder: folder.to_path_buf(),
        })
    }

    /// What tells its weights and encoder from all others, in hexadecimal digits.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Refuses an encoder other than the one it was trained with.
    pub fn check_encoder(&self, encoder: &dyn Encoder) -> Result<()> {
        let wanted = &self.description.encoder;
        if wanted.name == encoder.name() && wanted.dim == encoder.dim() {
            return Ok(());
        }
        Err(Error::OtherEncoder {
            path: self.folder.join(CONFIG),
            wanted: wanted.name.clone(),
            wanted_dim: wanted.dim,
            given: encoder.name().to_owned(),
            given_dim: encoder.dim(),
        })
    }

    /// Gives `optimiser`, made for this checkpoint's network, the memory that was saved with it.
    pub fn resume(&self, optimiser: &mut AdamW) -> Result<()> {
        let path = self.folder.join(TRAINING);
        let shapes: Vec<_> = N::shapes(&self.description.sizes)
            .into_iter()
            .flat_map(|(name, shape)| {
                ["first", "second"].map(|moment| (format!("{moment}.{name}"), shape.clone()))
            })
            .collect();
        let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
        let (state, notes) = parse(&path, &bytes, &shapes)?;
        let steps = notes.get("steps").and_then(|steps| steps.parse().ok());
        let steps = steps.ok_or_else(|| Error::BadCheckpoint {
            path,
            reason: "it does not say how many steps were taken".into(),
        })?;
        optimiser.restore(state, steps)
    }
}

/// Reads what the checkpoint in `folder` says of itself, whatever its method.
pub fn read_description(folder: &Path) -> Result<Description<Value>> {
    describe(&in_place(folder).join(CONFIG))
}

fn describe<S: DeserializeOwned>(path: &Path) -> Result<Description<S>> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let unusable = |reason: String| Error::BadCheckpoint {
        path: path.to_path_buf(),
        reason,
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
    match value.get("format").and_then(Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            return Err(unusable(format!(
                "it is of format {format}, and this program reads {FORMAT}"
            )));
        }
        None => return Err(unusable("it has no format version".into())),
    }
    serde_json::from_value(value).map_err(|error| unusable(error.to_string()))
}

/// `folder` with `.suffix` after its name.
fn beside(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{suffix}"));
    folder.with_file_name(name)
}

fn remove(folder: &Path) -> Result<()> {
    match folder.exists() {
        true => fs::remove_dir_all(folder).map_err(Error::io("remove", folder)),
        false => Ok(()),
    }
}

fn write(
    path: &Path,
    tensors: HashMap<String, Tensor>,
    notes: Option<HashMap<String, String>>,
) -> Result<()> {
    let tensors: BTreeMap<String, Tensor> = tensors
        .into_iter()
        .map(|(name, tensor)| Ok((name, tensor.to_device(&Device::Cpu)?.contiguous()?)))
        .collect::<Result<_>>()?;
    safetensors::serialize_to_file(&tensors, notes, path).map_err(|error| Error::BadWeights {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })
}

/// The variables of a network that has exactly the tensors `wanted`.
fn variables(
    wanted: Vec<(String, Vec<usize>)>,
    mut tensors: HashMap<String, Tensor>,
    device: &Device,
) -> Result<BTreeMap<String, Var>> {
    let mut variables = BTreeMap::new();
    for (name, wanted) in wanted {
        let missing = || Error::Parameter {
            tensor: name.clone(),
            reason: format!("there is none of shape {wanted:?}"),
        };
        let tensor = tensors.remove(&name).ok_or_else(missing)?;
        if tensor.dims() != wanted {
            let reason = format!("its shape is {:?} and not {wanted:?}", tensor.dims());
            return Err(Error::Parameter {
                tensor: name,
                reason,
            });
        }
        variables.insert(name, Var::from_tensor(&tensor.to_device(device)?)?);
    }
    match tensors.into_keys().min() {
        Some(tensor) => Err(Error::Parameter {
            tensor,
            reason: "the network has no such tensor".into(),
        }),
        None => Ok(variables),
    }
}

type Tensors = (HashMap<String, Tensor>, HashMap<String, String>);

/// Tensors and notes of a file that holds exactly `wanted`, all numbers finite.
fn parse(path: &Path, bytes: &[u8], wanted: &[(String, Vec<usize>)]) -> Result<Tensors> {
    let path = path.to_path_buf();
    let damaged = |reason: String| Error::BadWeights {
        path: path.clone(),
        reason,
    };
    let (_, header) = safetensors::SafeTensors::read_metadata(bytes)
        .map_err(|error| damaged(error.to_string()))?;
    let notes = header.metadata().clone().unwrap_or_default();
    let tensors = candle_core::safetensors::load_buffer(bytes, &Device::Cpu)
        .map_err(|error| damaged(error.to_string()))?;
    for (name, shape) in wanted {
        let Some(tensor) = tensors.get(name) else {
            return Err(Error::MissingTensor {
                path,
                tensor: name.clone(),
                wanted: shape.clone(),
            });
        };
        if tensor.dims() != shape {
            return Err(Error::TensorShape {
                path,
                tensor: name.clone(),
                wanted: shape.clone(),
                found: tensor.dims().to_vec(),
            });
        }
        if tensor.dtype() != DType::F32 {
            return Err(damaged(format!(
                "`{name}` is {:?} and not F32",
                tensor.dtype()
            )));
        }
        let numbers = tensor.flatten_all()?.to_vec1::<f32>()?;
        if !numbers.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: format!("tensor `{name}` of `{}`", path.display()),
            });
        }
    }
    let known = |name: &String| wanted.iter().any(|(wanted, _)| wanted == name);
    if let Some(name) = tensors.keys().filter(|name| !known(name)).min() {
        return Err(damaged(format!(
            "there is no place for its tensor `{name}`"
        )));
    }
    Ok((tensors, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::encode::HashingEncoder;
    use crate::optimise::{AdamWConfig, Schedule};
    use crate::qr_gat::{Config, Network};
    use serde_json::json;

    fn sizes() -> Config {
        Config {
            dim: 3,
            hidden: 4,
            heads: 2,
            ..Config::default()
        }
    }

    fn network(seed: u64) -> Network {
        Network::new(sizes(), &mut Random::new(seed), &Device::Cpu).unwrap()
    }

    fn adam(network: &Network) -> AdamW {
        let schedule = Schedule {
            warm_up: 0,
            total: 10,
            floor: 0.0,
        };
        AdamW::new(network.parameters(), AdamWConfig::default(), schedule).unwrap()
    }

    fn says(folder: &Path) -> String {
        match Checkpoint::<Network>::load(folder, &Device::Cpu) {
            Err(error) => {
                let place = folder.display().to_string();
                error.to_string().replace(&place, "FOLDER")
            }
            Ok(_) => panic!("accepted"),
        }
    }

    #[test]
    fn only_a_checkpoint_of_the_same_method_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        check_free(&place, "qr-gat").unwrap();
        fs::create_dir(&place).unwrap();
        check_free(&place, "qr-gat").unwrap();
        let description = Description::of::<Network>(sizes(), "hashing", 1);
        save(&place, &description, &network(1), None).unwrap();
        check_free(&place, "qr-gat").unwrap();
        let refused =
            |place: &Path, method: &str| check_free(place, method).unwrap_err().to_string();
        assert!(refused(&place, "gnn2r").contains("a checkpoint of the method `qr-gat`"));
        fs::remove_file(place.join(CONFIG)).unwrap();
        assert!(refused(&place, "qr-gat").contains("something else than a checkpoint"));
        assert!(place.join(MODEL).exists());
        assert!(refused(&place.join(MODEL), "qr-gat").contains("cannot read"));
    }

    fn weights(network: &Network) -> Vec<f32> {
        let weights = |var: &candle_core::Var| var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        network.parameters().values().flat_map(weights).collect()
    }

    #[test]
    fn what_was_saved_comes_back_and_replaces_what_was_there() -> Result<()> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        let mut description = Description::of::<Network>(sizes(), "static", 7);
        save(&folder, &description, &network(1), None)?;
        description.metrics.insert("recall".into(), json!(0.9));
        let second = network(2);
        let mut optimiser = adam(&second);
        let loss = second.parameters()["w_1"].sqr()?.sum_all()?;
        optimiser.step(&loss)?;
        save(&folder, &description, &second, Some(&optimiser))?;
        let back = Checkpoint::<Network>::load(&folder, &Device::Cpu)?;
        assert_eq!(back.description, description);
        assert_eq!(weights(&back.network), weights(&second));
        let mut resumed = adam(&back.network);
        back.resume(&mut resumed)?;
        assert_eq!(resumed.taken(), 1);
        let first = |adam: &AdamW| adam.state()["first.w_1"].flatten_all()?.to_vec1::<f32>();
        assert_eq!(first(&resumed)?, first(&optimiser)?);
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left aside");
        Ok(())
    }

    #[test]
    fn a_run_killed_while_renaming_leaves_the_old_one() -> Result<()> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        save(
            &folder,
            &Description::of::<Network>(sizes(), "static", 7),
            &network(1),
            None,
        )?;
        fs::rename(&folder, beside(&folder, "old")).unwrap();
        assert!(Checkpoint::<Network>::load(&folder, &Device::Cpu).is_ok());
        Ok(())
    }

    #[test]
    fn damage_is_named() -> Result<()> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        let description = Description::of::<Network>(sizes(), "static", 7);
        assert_eq!(says(&folder), "cannot read `FOLDER/config.json`");
        let store = |change: &dyn Fn(&mut HashMap<String, Tensor>)| {
            save(&folder, &description, &network(1), None).unwrap();
            let mut tensors =
                candle_core::safetensors::load(folder.join(MODEL), &Device::Cpu).unwrap();
            change(&mut tensors);
            write(&folder.join(MODEL), tensors, None).unwrap();
            says(&folder)
        };
        let said = store(&|tensors| {
            tensors.remove("b_1");
        });
        assert_eq!(
            said,
            "weights `FOLDER/model.safetensors` have no tensor `b_1` of shape [4]"
        );
        let put = |name: &str, values: &[f32]| {
            let tensor = Tensor::from_slice(values, values.len(), &Device::Cpu).unwrap();
            store(&|tensors| {
                tensors.insert(name.into(), tensor.clone());
            })
        };
        assert_eq!(
            put("b_1", &[0.0; 3]),
            "tensor `b_1` of `FOLDER/model.safetensors` has shape [3], and [4] was expected"
        );
        assert_eq!(
            put("b_2", &[f32::NAN]),
            "the tensor `b_2` of `FOLDER/model.safetensors` holds a number that is not finite"
        );
        assert_eq!(
            put("b_9", &[0.0]),
            "weights `FOLDER/model.safetensors` are damaged or of another kind: \
             there is no place for its tensor `b_9`"
        );
        fs::write(folder.join(MODEL), b"short").unwrap();
        assert!(says(&folder).contains("damaged or of another kind"));
        Ok(())
    }

    #[test]
    fn another_format_method_or_encoder_is_refused() -> Result<()> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        let description = Description::of::<Network>(sizes(), "static", 7);
        save(&folder, &description, &network(1), None)?;
        let loaded = Checkpoint::<Network>::load(&folder, &Device::Cpu)?;
        let encoder = HashingEncoder::default();
        let error = loaded.check_encoder(&encoder).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("was trained with `static` (3 numbers), and `hashing` gives"));
        assert!(error.hint().unwrap().contains("--encoder static"));

        let rewrite = |key: &str, value: Value| {
            let mut config = serde_json::to_value(&description).unwrap();
            config[key] = value;
            fs::write(folder.join(CONFIG), config.to_string()).unwrap();
            says(&folder)
        };
        assert_eq!(
            rewrite("format", json!(2)),
            "checkpoint `FOLDER/config.json` is not usable: \
             it is of format 2, and this program reads 1"
        );
        assert_eq!(
            rewrite("method", json!("pna")),
            "checkpoint `FOLDER/config.json` is of the method `pna`, and `qr-gat` was asked for"
        );
        assert!(rewrite("encoder", json!({"name": "static", "dim": 9})).contains("takes 3"));
        let mut wrong = serde_json::to_value(sizes()).unwrap();
        wrong["heads"] = json!(3);
        assert!(rewrite("sizes", wrong).contains("`heads` is 3"));
        Ok(())
    }
}
