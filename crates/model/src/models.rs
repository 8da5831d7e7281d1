//! The folder of models that were added, and the ones known by a short name.
//!
//! It is `$WHEREFORE_MODELS`, or else `wherefore-models` in the user's cache folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiError};

use crate::{Error, Result};

/// A model that can be added by its short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// Short name, and its folder's.
    pub name: &'static str,
    /// `owner/name` on the hub.
    pub repository: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
}

/// Models that can be added by a short name; `docs/encoders.md` says which families were checked
/// with real weights.
pub const KNOWN: &[KnownModel] = &[
    known(
        "minilm",
        "sentence-transformers/all-MiniLM-L6-v2",
        "BERT, 384 numbers, small and fast",
    ),
    known(
        "mpnet",
        "sentence-transformers/all-mpnet-base-v2",
        "MPNet, 768 numbers",
    ),
    known("gte-small", "thenlper/gte-small", "BERT, 384 numbers"),
    known(
        "gte-base-v1.5",
        "Alibaba-NLP/gte-base-en-v1.5",
        "gte, 768 numbers, long texts",
    ),
    known(
        "gte-large-v1.5",
        "Alibaba-NLP/gte-large-en-v1.5",
        "gte, 1024 numbers, long texts",
    ),
    known(
        "qwen3-0.6b",
        "Qwen/Qwen3-Embedding-0.6B",
        "Qwen3, 1024 numbers, many languages",
    ),
    known(
        "potion-8m",
        "minishlab/potion-base-8M",
        "Model2Vec table, 256 numbers",
    ),
];

const fn known(name: &'static str, repository: &'static str, summary: &'static str) -> KnownModel {
    KnownModel {
        name,
        repository,
        summary,
    }
}

/// Files of a repository that a model may need; the first two it must have.
const FILES: &[&str] = &[
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "vocab.txt",
    "tokenizer_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
];

/// A model in the models folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedModel {
    /// The name under which it opens.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Bytes of its files.
    pub bytes: u64,
}

/// The folder of models that were added; it need not exist.
pub fn models_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("WHEREFORE_MODELS") {
        return folder.into();
    }
    user_cache().join("wherefore-models")
}

/// The user's cache folder; a folder for what need not last, where the user has none.
pub fn user_cache() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(std::env::home_dir()?.join(".cache")))
        .filter(|path| path.is_absolute())
        .unwrap_or_else(std::env::temp_dir)
}

/// Where the model `name` lies: a path as given, or a model of the models folder.
///
/// # Errors
/// [`Error::UnknownModel`], whose hint says how to get it.
pub fn locate(name: &str) -> Result<PathBuf> {
    locate_in(name, &models_folder())
}

fn locate_in(name: &str, folder: &Path) -> Result<PathBuf> {
    let given = PathBuf::from(name);
    if !name.is_empty() && given.exists() {
        return Ok(given);
    }
    let added = folder.join(short_name(name));
    if check_name(&short_name(name)).is_ok() && added.exists() {
        return Ok(added);
    }
    Err(Error::UnknownModel {
        name: name.to_owned(),
    })
}

/// The folder name of a short name or of `owner/name` on the hub.
fn short_name(name: &str) -> String {
    KNOWN
        .iter()
        .find(|known| known.repository == name)
        .map_or_else(|| name.replace('/', "--"), |known| known.name.to_owned())
}

/// The models in `folder`, by name; none where there is no such folder.
pub fn added(folder: &Path) -> Result<Vec<AddedModel>> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let mut models = vec![];
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let is_table = path.extension().is_some_and(|ending| ending == "table");
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !is_hidden(&name) && (path.join("config.json").is_file() || is_table) {
            models.push(AddedModel {
                name,
                bytes: size_of(&path)?,
                path,
            });
        }
    }
    models.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(models)
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn size_of(path: &Path) -> Result<u64> {
    let about = fs::metadata(path).map_err(Error::io("read", path))?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path).map_err(Error::io("read", path))? {
        bytes += size_of(&entry.map_err(Error::io("read", path))?.path())?;
    }
    Ok(bytes)
}

/// Adds a model to `folder`: `source` is a folder, a short name of [`KNOWN`], or `owner/name` on
/// the hub. Tells each file before it is fetched. Returns where it lies.
///
/// The files are put aside first and renamed when all are there.
pub fn add(
    source: &str,
    folder: &Path,
    replace: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf> {
    let from = Path::new(source);
    let name = if from.is_dir() {
        let name = from.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    } else {
        short_name(source)
    };
    check_name(&name)?;
    let target = folder.join(&name);
    if target.exists() && !replace {
        return Err(Error::ModelExists { name, path: target });
    }
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let aside = folder.join(format!(".{name}.{}.part", std::process::id()));
    let filled = if from.is_dir() {
        copy_files(from, &aside, progress)
    } else {
        let known = KNOWN.iter().find(|known| known.name == source);
        let repository = known.map_or(source, |known| known.repository);
        fetch(repository, &aside, progress)
    };
    let moved = filled.and_then(|()| {
        if target.exists() {
            fs::remove_dir_all(&target).map_err(Error::io("replace", &target))?;
        }
        fs::rename(&aside, &target).map_err(Error::io("create", &target))
    });
    if moved.is_err() {
        // what is half-made is of no use; the first error is the one to tell
        fs::remove_dir_all(&aside).ok();
    }
    moved.map(|()| target)
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || is_hidden(name) || !name.chars().all(plain) {
        return Err(Error::BadName {
            name: name.to_owned(),
        });
    }
    Ok(())
}

fn copy_files(from: &Path, to: &Path, progress: &mut dyn FnMut(&str)) -> Result<()> {
    let shards = fs::read_dir(from)
        .map_err(Error::io("read", from))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("model") && name.contains(".safetensors"));
    let names: BTreeSet<String> = FILES.iter().map(|&f| f.to_owned()).chain(shards).collect();
    for name in names {
        let path = from.join(&name);
        if path.is_file() {
            progress(&name);
            copy(&path, &to.join(&name))?;
        } else if name == "config.json" {
            return Err(Error::MissingFile {
                folder: from.to_owned(),
                file: "config.json",
            });
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    fs::copy(from, to).map_err(Error::io("write", to))?;
    Ok(())
}

/// Fetches what `repository` has of [`FILES`], or the parts of its weights.
fn fetch(repository: &str, to: &Path, progress: &mut dyn FnMut(&str)) -> Result<()> {
    let hub = |reason: String| Error::Hub {
        repository: repository.to_owned(),
        reason,
    };
    if !matches!(repository.split_once('/'), Some((owner, name)) if !owner.is_empty() && !name.is_empty() && !name.contains('/'))
    {
        return Err(Error::UnknownModel {
            name: repository.to_owned(),
        });
    }
    let api = ApiBuilder::from_env()
        .with_progress(false)
        .build()
        .map_err(|error| hub(reason(&error)))?;
    let api = api.model(repository.to_owned());
    let info = api.info().map_err(|error| hub(reason(&error)))?;
    let names: Vec<String> = info
        .siblings
        .into_iter()
        .map(|sibling| sibling.rfilename)
        .filter(|name| {
            FILES.contains(&name.as_str())
                || (name.starts_with("model") && name.contains(".safetensors"))
        })
        .collect();
    if !names.iter().any(|name| name.contains(".safetensors")) {
        return Err(hub("it has no `model.safetensors`".into()));
    }
    for name in names {
        progress(&name);
        let path = api
            .get(&name)
            .map_err(|error| hub(format!("{name}: {}", reason(&error))))?;
        copy(&path, &to.join(&name))?;
    }
    Ok(())
}

/// An error and its causes in one line.
fn reason(error: &ApiError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let next = inner.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        folder
    }

    #[test]
    fn folder_is_added_listed_found_and_only_replaced_when_asked() {
        let source = folder_with(&[
            "mine/config.json",
            "mine/model.safetensors",
            "mine/notes.md",
        ]);
        let models = tempfile::tempdir().unwrap();
        let from = source.path().join("mine");
        let add = |replace| add(from.to_str().unwrap(), models.path(), replace, &mut |_| {});
        let path = add(false).unwrap();
        assert!(path.join("config.json").is_file() && !path.join("notes.md").exists());
        let listed = added(models.path()).unwrap();
        assert_eq!(
            (listed.len(), listed[0].name.as_str(), listed[0].bytes),
            (1, "mine", 4)
        );
        assert_eq!(locate_in("mine", models.path()).unwrap(), path);
        assert!(matches!(add(false), Err(Error::ModelExists { .. })));
        assert_eq!(add(true).unwrap(), path);
    }

    #[test]
    fn missing_model_says_how_to_get_it() {
        let models = tempfile::tempdir().unwrap();
        let error = locate_in("minilm", models.path()).unwrap_err();
        assert_eq!(error.to_string(), "there is no model `minilm` here");
        assert!(error.hint().unwrap().contains("wherefore model add minilm"));
        assert!(
            locate_in("../..", models.path().join("x").as_path())
                .is_ok_and(|p| p == Path::new("../.."))
        );
        assert!(locate_in("", models.path()).is_err());
    }

    #[test]
    fn folder_that_is_no_model_leaves_nothing_behind() {
        let source = folder_with(&["mine/notes.md"]);
        let models = tempfile::tempdir().unwrap();
        let from = source.path().join("mine");
        let result = add(from.to_str().unwrap(), models.path(), false, &mut |_| {});
        assert!(matches!(result, Err(Error::MissingFile { .. })));
        assert_eq!(fs::read_dir(models.path()).unwrap().count(), 0);
    }

    #[test]
    fn unknown_short_name_never_reaches_the_hub() {
        let models = tempfile::tempdir().unwrap();
        let result = add("nosuchmodel", models.path(), false, &mut |_| {});
        assert!(matches!(result, Err(Error::UnknownModel { .. })));
    }
}
