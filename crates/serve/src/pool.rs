//! A fixed number of threads with a bounded queue: the bridge from async requests to the sync
//! engine.
//!
//! A request that finds the queue full is refused at once. One whose asker is gone by the time it
//! is due is skipped, so that a dropped connection costs nothing but its place in the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::problem::Problem;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that take work from one queue.
pub(crate) struct Pool {
    sender: Mutex<Option<SyncSender<Job>>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    waiting: AtomicUsize,
    running: AtomicUsize,
}

impl Pool {
    /// `workers` threads, and a queue of `queue` jobs before them.
    pub(crate) fn start(name: &str, workers: usize, queue: usize) -> Result<Self> {
        let (sender, receiver) = sync_channel::<Job>(queue);
        let receiver = Arc::new(Mutex::new(receiver));
        let state = Arc::new(State::default());
        let mut handles = Vec::with_capacity(workers);
        for number in 0..workers {
            let (receiver, state) = (Arc::clone(&receiver), Arc::clone(&state));
            let handle = thread::Builder::new()
                .name(format!("{name}-{number}"))
                // stages recurse little, but a question's words come from anywhere
                .stack_size(8 << 20)
                .spawn(move || work(&receiver, &state))
                .map_err(|source| Error::System {
                    action: "start a thread",
                    source,
                })?;
            handles.push(handle);
        }
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            workers: Mutex::new(handles),
            state,
        })
    }

    /// Puts a job into the queue. What it returns comes out of the receiver; nobody has to wait
    /// for it.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, Problem>>, Problem> {
        let (done, result) = oneshot::channel();
        let work = move || {
            if done.is_closed() {
                return;
            }
            // the engine keeps nothing half-changed: what it caches is replaced whole
            let outcome = catch_unwind(AssertUnwindSafe(job))
                .unwrap_or_else(|panic| Err(Problem::internal(panic_text(panic.as_ref()))));
            // the asker may have gone meanwhile
            let _ = done.send(outcome);
        };
        self.push(Box::new(work))?;
        Ok(result)
    }

    fn push(&self, job: Job) -> Result<(), Problem> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = sender.as_ref() else {
            return Err(stopping());
        };
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        sender.try_send(job).map_err(|error| {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => {
                    Problem::busy("busy", "more requests are waiting than the queue holds", 1)
                }
                TrySendError::Disconnected(_) => stopping(),
            }
        })
    }

    /// Submits a job and waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let result = self.submit(job)?;
        // the sender is only dropped unsent if the worker was
        result.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Jobs in the queue.
    pub(crate) fn waiting(&self) -> usize {
        self.state.waiting.load(Ordering::Relaxed)
    }

    /// Jobs on a thread.
    pub(crate) fn running(&self) -> usize {
        self.state.running.load(Ordering::Relaxed)
    }

    /// Takes no more jobs and waits until those that are there have ended.
    pub(crate) fn finish(&self) {
        let lock = |mutex: &Mutex<Option<SyncSender<Job>>>| {
            drop(mutex.lock().unwrap_or_else(PoisonError::into_inner).take());
        };
        lock(&self.sender);
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in workers.drain(..) {
            // panics of jobs are caught; there is nothing else to tell
            let _ = worker.join();
        }
    }
}

fn stopping() -> Problem {
    let mut problem = Problem::new(
        axum::http::StatusCode::SERVICE_UNAVAILABLE,
        "stopping",
        "the server is being stopped",
    );
    problem.retry_after = Some(5);
    problem
}

fn work(receiver: &Mutex<Receiver<Job>>, state: &State) {
    loop {
        let next = receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(job) = next else { return };
        state.running.fetch_add(1, Ordering::Relaxed);
        state.waiting.fetch_sub(1, Ordering::Relaxed);
        job();
        state.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = (panic.downcast_ref::<&str>().copied())
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn beyond_the_queue_jobs_are_refused_and_those_inside_end() {
        let pool = Pool::start("test", 1, 1).unwrap();
        let (go, wait) = channel::<()>();
        let (started, begun) = channel::<()>();
        let first = pool
            .submit(move || {
                started.send(()).unwrap();
                wait.recv().unwrap();
                Ok(1)
            })
            .unwrap();
        begun.recv().unwrap();
        let second = pool.submit(|| Ok(2)).unwrap();
        let refused = pool.submit(|| Ok(3)).unwrap_err();
        assert_eq!((refused.status, refused.retry_after), (429, Some(1)));
        assert_eq!((pool.running(), pool.waiting()), (1, 1));
        go.send(()).unwrap();
        pool.finish();
        assert_eq!(first.blocking_recv().unwrap().unwrap(), 1);
        assert_eq!(second.blocking_recv().unwrap().unwrap(), 2);
        assert_eq!(pool.submit(|| Ok(4)).unwrap_err().status, 503);
    }

    #[test]
    fn a_job_whose_asker_is_gone_is_skipped() {
        let pool = Pool::start("test", 1, 8).unwrap();
        let (go, wait) = channel::<()>();
        let held = pool
            .submit(move || {
                wait.recv().unwrap();
                Ok(())
            })
            .unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ran);
        let add = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        drop(pool.submit(add.clone()).unwrap());
        let kept = pool.submit(add).unwrap();
        go.send(()).unwrap();
        pool.finish();
        held.blocking_recv().unwrap().unwrap();
        kept.blocking_recv().unwrap().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_panic_is_a_problem_with_an_id_and_the_thread_goes_on() {
        let pool = Pool::start("test", 1, 8).unwrap();
        let broken = pool
            .submit(|| -> Result<(), Problem> { std::panic::panic_any("a test") })
            .unwrap();
        let problem = broken.blocking_recv().unwrap().unwrap_err();
        assert_eq!(problem.status, 500);
        assert!(!problem.message.contains("a test"));
        assert!(problem.log_line().unwrap().contains("a test"));
        let next = pool.submit(|| Ok(5)).unwrap();
        assert_eq!(next.blocking_recv().unwrap().unwrap(), 5);
    }
}
