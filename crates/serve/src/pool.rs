//! A fixed number of threads with a bounded queue: the bridge from async requests to the sync
//! engine.
//!
//! A request that finds the queue full is refused at once. One whose asker is gone is skipped when
//! it is due, and gives its place away to whoever finds the queue full before that.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::problem::Problem;

/// Threads that take work from one queue.
pub(crate) struct Pool {
    workers: Mutex<Vec<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Told when a job comes or when no more will.
    changed: Condvar,
    most: usize,
    running: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    closed: bool,
}

/// Work with somebody who waits for it.
trait Job: Send {
    fn is_wanted(&self) -> bool;
    fn run(self: Box<Self>);
}

struct Task<F, T> {
    work: F,
    done: oneshot::Sender<Result<T, Problem>>,
}

impl<F, T> Job for Task<F, T>
where
    F: FnOnce() -> Result<T, Problem> + Send,
    T: Send,
{
    fn is_wanted(&self) -> bool {
        !self.done.is_closed()
    }

    fn run(self: Box<Self>) {
        // the engine keeps nothing half-changed: what it caches is replaced whole
        let outcome = catch_unwind(AssertUnwindSafe(self.work))
            .unwrap_or_else(|panic| Err(Problem::internal(panic_text(panic.as_ref()))));
        // the asker may have gone meanwhile
        let _ = self.done.send(outcome);
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.queue();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                self.running.fetch_add(1, Ordering::Relaxed);
                drop(queue);
                if job.is_wanted() {
                    job.run();
                }
                self.running.fetch_sub(1, Ordering::Relaxed);
                queue = self.queue();
            } else if queue.closed {
                return;
            } else {
                let woken = self.changed.wait(queue);
                queue = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Pool {
    /// `workers` threads, and a queue of `queue` jobs before them. Jobs that run do not count.
    pub(crate) fn start(name: &str, workers: usize, queue: usize) -> Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            most: queue + workers,
            running: AtomicUsize::new(0),
        });
        let mut handles = Vec::with_capacity(workers);
        for number in 0..workers {
            let shared = Arc::clone(&shared);
            let handle = thread::Builder::new()
                .name(format!("{name}-{number}"))
                // stages recurse little, but a question's words come from anywhere
                .stack_size(8 << 20)
                .spawn(move || shared.work())
                .map_err(|source| Error::System {
                    action: "start a thread",
                    source,
                })?;
            handles.push(handle);
        }
        Ok(Self {
            workers: Mutex::new(handles),
            shared,
        })
    }

    /// Puts a job into the queue. What it returns comes out of the receiver; without a receiver
    /// it is not begun.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, Problem>>, Problem> {
        let (done, result) = oneshot::channel();
        let mut queue = self.shared.queue();
        if queue.closed {
            return Err(stopping());
        }
        let most = self.shared.most - self.running();
        if queue.jobs.len() >= most {
            queue.jobs.retain(|job| job.is_wanted());
        }
        if queue.jobs.len() >= most {
            let message = "more requests are waiting than the queue holds";
            return Err(Problem::busy("busy", message, 1));
        }
        queue.jobs.push_back(Box::new(Task { work, done }));
        drop(queue);
        self.shared.changed.notify_one();
        Ok(result)
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
        self.shared.queue().jobs.len()
    }

    /// Jobs on a thread.
    pub(crate) fn running(&self) -> usize {
        self.shared.running.load(Ordering::Relaxed)
    }

    /// Takes no more jobs and waits until those that are there have ended.
    pub(crate) fn finish(&self) {
        self.shared.queue().closed = true;
        self.shared.changed.notify_all();
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
    fn a_job_whose_asker_is_gone_is_skipped_and_gives_its_place_away() {
        let pool = Pool::start("test", 1, 1).unwrap();
        let (go, wait) = channel::<()>();
        let (started, begun) = channel::<()>();
        let held = pool
            .submit(move || {
                started.send(()).unwrap();
                wait.recv().unwrap();
                Ok(())
            })
            .unwrap();
        begun.recv().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ran);
        let add = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let dropped = pool.submit(add.clone()).unwrap();
        assert_eq!(pool.submit(add.clone()).unwrap_err().status, 429);
        drop(dropped);
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
