//! Lets the job on this thread hear what a language model writes, and stop it. A model that says
//! nothing is stopped at the job's deadline.
//!
//! Models are shared by all requests, and a request runs on one thread: so who listens is a
//! matter of the thread.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Instant;

use wherefore::model::language::{Completion, Decoding, Progress, Prompt, Watch};
use wherefore::model::{self, LanguageModel};

type Listener = Box<dyn FnMut(&str) -> ControlFlow<()>>;

thread_local! {
    static LISTENER: RefCell<Option<(Instant, Listener)>> = const { RefCell::new(None) };
}

/// Runs `work`, whose models are stopped at the deadline; meanwhile `listener` hears what models write on this thread. Nobody writes while
/// a prompt is read, and yet the asker may have gone: then it is called with an empty text.
pub(super) fn overhearing<T>(
    deadline: Instant,
    listener: impl FnMut(&str) -> ControlFlow<()> + 'static,
    work: impl FnOnce() -> T,
) -> T {
    /// Takes the listener away, also after a panic.
    struct Gone;
    impl Drop for Gone {
        fn drop(&mut self) {
            LISTENER.with_borrow_mut(Option::take);
        }
    }
    LISTENER.set(Some((deadline, Box::new(listener))));
    let _gone = Gone;
    work()
}

/// A model that the job on the calling thread listens to.
pub(super) struct Overheard<M>(pub(super) M);

impl<M: LanguageModel> LanguageModel for Overheard<M> {
    fn identity(&self) -> &str {
        self.0.identity()
    }

    fn context(&self) -> usize {
        self.0.context()
    }

    fn count_tokens(&self, text: &str) -> model::Result<usize> {
        self.0.count_tokens(text)
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> model::Result<Completion> {
        let left = LISTENER.with_borrow(|listener| {
            let (deadline, _) = listener.as_ref()?;
            Some(deadline.saturating_duration_since(Instant::now()))
        });
        let mut decoding = decoding.clone();
        decoding.time_limit = left.into_iter().chain(decoding.time_limit).min();
        self.0.complete(prompt, &decoding, &mut |progress| {
            let text = match progress {
                Progress::Text(text) => text,
                Progress::Reading { .. } => "",
            };
            LISTENER.with_borrow_mut(|listener| match listener {
                Some((_, listener)) => listener(text),
                None => ControlFlow::Continue(()),
            })?;
            watch(progress)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use wherefore::model::Result;
    use wherefore::model::language::{Finish, unwatched};

    use super::*;

    struct Words;

    impl LanguageModel for Words {
        fn identity(&self) -> &str {
            "words"
        }

        fn context(&self) -> usize {
            10
        }

        fn count_tokens(&self, _: &str) -> Result<usize> {
            Ok(1)
        }

        fn complete(
            &self,
            _: &Prompt,
            how: &Decoding,
            watch: &mut Watch<'_>,
        ) -> Result<Completion> {
            let mut text = String::new();
            if how.time_limit.is_some_and(|limit| limit.is_zero()) {
                text += "late ";
            }
            for word in ["one ", "two ", "three "] {
                text += word;
                if watch(Progress::Text(word)).is_break() {
                    break;
                }
            }
            Ok(Completion {
                text,
                prompt_tokens: 1,
                completion_tokens: 1,
                finish: Finish::Stop,
                cached: false,
            })
        }
    }

    #[test]
    fn the_job_hears_its_model_and_can_stop_it() {
        let ask = || {
            let prompt = Prompt::Plain(String::new());
            let model = Overheard(Words);
            model.complete(&prompt, &Decoding::default(), &mut unwatched)
        };
        let heard = Rc::new(RefCell::new(String::new()));
        let ear = Rc::clone(&heard);
        let later = Instant::now() + std::time::Duration::from_secs(60);
        let stopped = overhearing(
            later,
            move |text| {
                ear.borrow_mut().push_str(text);
                match text {
                    "two " => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            },
            ask,
        );
        assert_eq!(stopped.unwrap().text, "one two ");
        assert_eq!(*heard.borrow(), "one two ");
        assert_eq!(ask().unwrap().text, "one two three ");
        let late = overhearing(Instant::now(), |_| ControlFlow::Continue(()), ask);
        assert_eq!(late.unwrap().text, "late one two three ");
    }
}
