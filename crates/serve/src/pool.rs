//! A number of threads with a bounded queue: the bridge from async requests to the sync engine.
//!
//! A request that finds the queue full is refused at once. One whose asker is gone is skipped when
//! it is due, and gives its place away to whoever finds the queue full before that.
//!
//! Nothing can end a thread that does not come back. Such a thread is found by its time, given up
//! and replaced ([`Pool::replace_stuck`]), as often as there are threads; a pool that has none left
//! to work says so ([`Health::is_working`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::problem::Problem;

/// Threads that take work from one queue.
pub(crate) struct Pool {
    name: &'static str,
    /// How many there are to be.
    workers: usize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Told when a job comes or when no more will.
    changed: Condvar,
    most: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    busy: Vec<Busy>,
    /// Jobs that were begun so far.
    begun: u64,
    /// Threads that were given up and have not come back.
    given_up: usize,
    closed: bool,
}

/// A job on a thread.
struct Busy {
    number: u64,
    since: Instant,
}

/// How a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    pub(crate) workers: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// Threads that do not come back.
    pub(crate) stuck: usize,
}

impl Health {
    /// Whether there is a thread that can take a job some time.
    pub(crate) fn is_working(&self) -> bool {
        self.stuck < 2 * self.workers
    }
}

/// Says whether somebody still waits for a job's result.
#[derive(Clone, Debug)]
pub(crate) struct Wanted(Weak<()>);

impl Wanted {
    /// As long as the asker lives.
    pub(crate) fn by(asker: &Arc<()>) -> Self {
        Self(Arc::downgrade(asker))
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }
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
                if !job.is_wanted() {
                    continue;
                }
                queue.begun += 1;
                let number = queue.begun;
                let since = Instant::now();
                queue.busy.push(Busy { number, since });
                drop(queue);
                job.run();
                queue = self.queue();
                let Some(place) = queue.busy.iter().position(|busy| busy.number == number) else {
                    // this thread was given up, and another has its place
                    queue.given_up -= 1;
                    return;
                };
                queue.busy.swap_remove(place);
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
    pub(crate) fn start(name: &'static str, workers: usize, queue: usize) -> Result<Self> {
        let pool = Self {
            name,
            workers,
            handles: Mutex::default(),
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                changed: Condvar::new(),
                most: queue + workers,
            }),
        };
        for _ in 0..workers {
            pool.add_thread()?;
        }
        Ok(pool)
    }

    fn add_thread(&self) -> Result<()> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = Arc::clone(&self.shared);
        let handle = thread::Builder::new()
            .name(format!("{}-{}", self.name, handles.len()))
            // stages recurse little, but a question's words come from anywhere
            .stack_size(8 << 20)
            .spawn(move || shared.work())
            .map_err(|source| Error::System {
                action: "start a thread",
                source,
            })?;
        handles.push(handle);
        Ok(())
    }

    /// What it is for.
    pub(crate) fn name(&self) -> &'static str {
        self.name
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
        let most = self.shared.most - queue.busy.len();
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

    /// Submits a job and waits for it. The job can ask whether anybody still does.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Wanted) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        // lives as long as this future, and with it the asker
        let asker = Arc::new(());
        let wanted = Wanted::by(&asker);
        let result = self.submit(move || job(&wanted))?;
        // the sender is only dropped unsent if the worker was
        let result = result.await.unwrap_or_else(|_| Err(stopping()));
        drop(asker);
        result
    }

    /// Gives up the threads that have been at one job for longer than `limit`, and starts others in
    /// their place, as long as no more are given up than there are to be. Returns how many.
    pub(crate) fn replace_stuck(&self, limit: Duration) -> Result<usize> {
        let mut replaced = 0;
        loop {
            let mut queue = self.shared.queue();
            let stuck = queue.busy.iter().position(|b| b.since.elapsed() > limit);
            let Some(place) = stuck else {
                return Ok(replaced);
            };
            if queue.given_up >= self.workers || queue.closed {
                return Ok(replaced);
            }
            queue.busy.swap_remove(place);
            queue.given_up += 1;
            drop(queue);
            self.add_thread()?;
            replaced += 1;
        }
    }

    /// How it is; a thread is stuck that has been at one job for longer than `limit`.
    pub(crate) fn health(&self, limit: Duration) -> Health {
        let queue = self.shared.queue();
        let late = queue.busy.iter().filter(|b| b.since.elapsed() > limit);
        Health {
            workers: self.workers,
            running: queue.busy.len(),
            waiting: queue.jobs.len(),
            stuck: queue.given_up + late.count(),
        }
    }

    /// Takes no more jobs and waits until those that are there have ended.
    pub(crate) fn finish(&self) {
        self.shared.queue().closed = true;
        self.shared.changed.notify_all();
        let handles = {
            let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *handles)
        };
        for handle in handles {
            // panics of jobs are caught; there is nothing else to tell
            let _ = handle.join();
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
    use std::sync::atomic::{AtomicUsize, Ordering};
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
        let health = pool.health(Duration::from_secs(60));
        assert_eq!((health.running, health.waiting, health.stuck), (1, 1, 0));
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
    #[test]
    fn a_stuck_thread_is_replaced_as_often_as_there_are_threads() {
        let pool = Pool::start("test", 1, 8).unwrap();
        let limit = Duration::ZERO;
        let mut held = Vec::new();
        for stuck in 1..=2 {
            let (go, wait) = channel::<()>();
            let (started, begun) = channel::<()>();
            let job = move || {
                started.send(()).unwrap();
                // until the test lets go
                let _ = wait.recv();
                Ok(())
            };
            held.push((go, pool.submit(job).unwrap()));
            begun.recv().unwrap();
            let health = pool.health(limit);
            assert_eq!((health.stuck, health.is_working()), (stuck, stuck < 2));
            // the first is replaced, the second is one too many
            assert_eq!(pool.replace_stuck(limit).unwrap(), usize::from(stuck == 1));
        }
        for (go, done) in held {
            drop(go);
            done.blocking_recv().unwrap().unwrap();
        }
        // the thread that was given up has gone, the other works on
        let next = pool.submit(|| Ok(5)).unwrap();
        assert_eq!(next.blocking_recv().unwrap().unwrap(), 5);
        pool.finish();
        assert_eq!(pool.health(limit).stuck, 0);
    }

    #[tokio::test]
    async fn a_job_hears_that_its_asker_has_gone() {
        let pool = Pool::start("test", 1, 8).unwrap();
        let (started, begun) = channel::<()>();
        let (told, heard) = channel::<()>();
        let waited = pool.run(move |wanted| {
            assert!(wanted.is_wanted());
            started.send(()).unwrap();
            while wanted.is_wanted() {
                thread::yield_now();
            }
            told.send(()).unwrap();
            Ok(())
        });
        let soon = Duration::from_millis(1);
        assert!(tokio::time::timeout(soon, waited).await.is_err());
        // begun or not when the asker went, it ends
        if begun.recv_timeout(Duration::from_secs(5)).is_ok() {
            heard.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }
}
