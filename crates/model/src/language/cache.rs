//! Completions kept on disk: (model, prompt, decoding) → completion.
//!
//! Each is a file of its own, named by a hash of its key, that holds the key too: what is handed
//! out was asked for in the same words. Files are written aside and renamed. A file that does
//! not read is as good as none, and is written anew.

use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Completion, Decoding, Finish, LanguageModel, Progress, Prompt, Watch};
use crate::{Error, Result};

/// Where completions are kept unless another folder is named: `$WHEREFORE_COMPLETIONS`, or else
/// `wherefore-completions` in the user's cache folder.
pub fn cache_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("WHEREFORE_COMPLETIONS") {
        return folder.into();
    }
    crate::models::user_cache().join("wherefore-completions")
}

/// A model whose completions are kept in a folder.
#[derive(Debug)]
pub struct Cached<M> {
    model: M,
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    model: String,
    prompt: Prompt,
    decoding: Decoding,
    completion: Completion,
}

impl<M: LanguageModel> Cached<M> {
    /// Keeps completions in `folder`, which is made when the first one comes.
    pub fn new(model: M, folder: impl Into<PathBuf>) -> Self {
        Self {
            model,
            folder: folder.into(),
        }
    }

    fn file(&self, prompt: &Prompt, decoding: &Decoding) -> PathBuf {
        let key = serde_json::to_vec(&(self.model.identity(), prompt, decoding))
            .expect("texts and numbers are JSON");
        let hash = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&key));
        self.folder
            .join(&hash[..2])
            .join(format!("{}.json", &hash[2..]))
    }

    fn kept(&self, file: &Path, prompt: &Prompt, decoding: &Decoding) -> Option<Completion> {
        let entry: Entry = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        let same = entry.model == self.model.identity()
            && entry.prompt == *prompt
            && entry.decoding
                == Decoding {
                    time_limit: None,
                    ..decoding.clone()
                };
        same.then_some(Completion {
            cached: true,
            ..entry.completion
        })
    }

    fn keep(&self, file: &Path, entry: &Entry) -> Result<()> {
        let folder = file.parent().expect("the file lies in a folder of ours");
        create_private_folder(folder).map_err(Error::io("create", folder))?;
        let json = serde_json::to_vec(entry).expect("texts and numbers are JSON");
        let aside = file.with_extension(format!("{}.{}.part", std::process::id(), unique()));
        let written = create_private_file(&aside)
            .and_then(|mut new| new.write_all(&json))
            .and_then(|()| fs::rename(&aside, file));
        written.map_err(|e| {
            // what is half-made is of no use; the first error is the one to tell
            fs::remove_file(&aside).ok();
            Error::io("write", file)(e)
        })
    }
}

/// Makes a folder, and those above it, for its owner alone: prompts hold what was asked.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn create_private_file(file: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

/// A number that no other call in this process gets.
fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<M: LanguageModel> LanguageModel for Cached<M> {
    fn identity(&self) -> &str {
        self.model.identity()
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn count_tokens(&self, text: &str) -> Result<usize> {
        self.model.count_tokens(text)
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion> {
        let file = self.file(prompt, decoding);
        if let Some(mut kept) = self.kept(&file, prompt, decoding) {
            if watch(Progress::Text(&kept.text)) == ControlFlow::Break(()) {
                kept.finish = Finish::Stopped;
            }
            return Ok(kept);
        }
        let completion = self.model.complete(prompt, decoding, watch)?;
        // one that was stopped says more about who looked on than about the model
        if completion.finish != Finish::Stopped {
            let entry = Entry {
                model: self.model.identity().to_owned(),
                prompt: prompt.clone(),
                decoding: decoding.clone(),
                completion: completion.clone(),
            };
            self.keep(&file, &entry)?;
        }
        Ok(completion)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::unwatched;
    use super::*;

    /// Says how often it was called.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl LanguageModel for Counting {
        fn identity(&self) -> &str {
            "counting"
        }

        fn context(&self) -> usize {
            100
        }

        fn count_tokens(&self, text: &str) -> Result<usize> {
            Ok(text.len())
        }

        fn complete(
            &self,
            _prompt: &Prompt,
            _decoding: &Decoding,
            watch: &mut Watch<'_>,
        ) -> Result<Completion> {
            let text = self.0.fetch_add(1, Ordering::Relaxed).to_string();
            let stopped = watch(Progress::Text(&text)).is_break();
            Ok(Completion {
                text,
                prompt_tokens: 1,
                completion_tokens: 1,
                finish: if stopped {
                    Finish::Stopped
                } else {
                    Finish::Stop
                },
                cached: false,
            })
        }
    }

    #[test]
    fn the_same_call_is_computed_once() {
        let folder = tempfile::tempdir().unwrap();
        let model = Cached::new(Counting::default(), folder.path().join("kept"));
        let ask = |text: &str, seed| {
            let decoding = Decoding {
                seed,
                ..Decoding::default()
            };
            let prompt = Prompt::Plain(text.into());
            let said = model.complete(&prompt, &decoding, &mut unwatched).unwrap();
            (said.text, said.cached)
        };
        assert_eq!(ask("a", 1), ("0".into(), false));
        assert_eq!(ask("a", 1), ("0".into(), true));
        assert_eq!(ask("a", 2), ("1".into(), false));
        assert_eq!(ask("b", 1), ("2".into(), false));
        assert_eq!(ask("a", 2), ("1".into(), true));
    }

    #[test]
    fn damaged_files_are_written_anew_and_stopped_completions_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let model = Cached::new(Counting::default(), folder.path());
        let prompt = Prompt::Plain("a".into());
        let decoding = Decoding::default();
        let mut stop = |_: Progress<'_>| ControlFlow::Break(());
        let first = model.complete(&prompt, &decoding, &mut stop).unwrap();
        assert_eq!(first.finish, Finish::Stopped);
        let again = || model.complete(&prompt, &decoding, &mut unwatched).unwrap();
        assert_eq!(again().text, "1");
        fs::write(model.file(&prompt, &decoding), "{\"model\":").unwrap();
        assert_eq!(again().text, "2");
        assert_eq!(again().text, "2");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            let file = model.file(&prompt, &decoding);
            assert_eq!(mode(&file), 0o600);
            assert_eq!(mode(file.parent().unwrap()), 0o700);
        }
    }
}
