//! What all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wherefore::Question;

use crate::config::{Scope, ServeConfig};
use crate::engine::Engine;
use crate::error::Result;
use crate::feedback::Feedback;
use crate::guard::Guard;
use crate::keys::Access;
use crate::loads::{Loads, found_before};
use crate::log::Log;
use crate::metrics::{Gauges, Metrics};
use crate::pool::{Health, Pool, Wanted};
use crate::problem::Problem;
use crate::runs::Runs;

/// Topics that a question may come with.
const MOST_TOPICS: usize = 16;
/// Threads for what takes no thought: completion, entities.
const LOOKUP_WORKERS: usize = 2;
/// How long after its time a job is taken for stuck.
const STUCK_AFTER: Duration = Duration::from_secs(10);
/// How often stuck threads are looked for.
const ROUND: Duration = Duration::from_secs(1);

/// Kinds of work. Each has threads and a queue of its own, so that none keeps another waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Questions without a language model.
    Ask,
    /// SPARQL.
    Sparql,
    /// Questions with a language model, which takes seconds.
    Model,
    /// What is looked up, so that typing is smooth.
    Look,
}

/// The engine with everything around it.
pub(crate) struct App {
    pub(crate) config: ServeConfig,
    pub(crate) engine: Engine,
    /// By [`Work`], in its order.
    pools: [Pool; 4],
    pub(crate) guard: Guard,
    pub(crate) metrics: Metrics,
    pub(crate) runs: Runs,
    pub(crate) feedback: Feedback,
    pub(crate) loads: Loads,
    pub(crate) log: Log,
    ready: AtomicBool,
    pub(crate) connections: AtomicUsize,
}

impl App {
    /// Opens everything that the configuration names.
    pub(crate) fn open(mut config: ServeConfig, log: Log) -> Result<Self> {
        let loaded = found_before(&mut config, &*log);
        let config = config.resolve()?;
        let guard = Guard::new(&config)?;
        let loads = Loads::new(&config)?;
        let engine = Engine::open(&config)?;
        engine.mark_loaded(loaded);
        let limits = &config.limits;
        let workers = |given| match given {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            given => given,
        };
        Ok(Self {
            pools: [
                Pool::start("ask", workers(limits.workers), limits.queue)?,
                Pool::start("sparql", workers(limits.sparql_workers), limits.queue)?,
                Pool::start("model", workers(limits.model_workers), limits.queue)?,
                Pool::start("look", LOOKUP_WORKERS, limits.queue)?,
            ],
            runs: Runs::open(config.runs.clone())?,
            feedback: Feedback::open(config.feedback.clone())?,
            metrics: Metrics::new(),
            ready: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            loads,
            guard,
            engine,
            config,
            log,
        })
    }

    /// Has every method compute what it keeps for its graph; afterwards the server is ready. From
    /// now on, stuck threads are looked for.
    pub(crate) fn warm_up(self: &Arc<Self>) {
        let app = Arc::clone(self);
        // it may take longer than any request may
        let warming = std::thread::Builder::new().name("warm-up".into());
        let started = warming.spawn(move || {
            if let Err(problem) = app.engine.warm() {
                // the method will say the same to whoever asks it
                let line = problem.log_line().unwrap_or(problem.message);
                (app.log)(&format!("while warming up: {line}"));
            }
            app.ready.store(true, Ordering::Release);
        });
        if let Err(error) = started {
            (self.log)(&format!("cannot warm up: {error}"));
            self.ready.store(true, Ordering::Release);
        }
        let app = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(ROUND).await;
                let Some(app) = app.upgrade() else {
                    return;
                };
                app.replace_stuck();
            }
        });
    }

    fn replace_stuck(&self) {
        let limit = self.stuck_after();
        for pool in &self.pools {
            match pool.replace_stuck(limit) {
                Ok(0) => {}
                Ok(count) => (self.log)(&format!(
                    "{count} of the threads for `{}` did not come back within {} s and were replaced",
                    pool.name(),
                    limit.as_secs()
                )),
                Err(error) => (self.log)(&format!("cannot replace a stuck thread: {error}")),
            }
        }
    }

    fn stuck_after(&self) -> Duration {
        let limits = &self.config.limits;
        Duration::from_secs_f64(limits.seconds.max(limits.sparql_seconds)) + STUCK_AFTER
    }

    /// Whether everything is warmed up.
    pub(crate) fn is_warm(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// How the pools are, by name.
    pub(crate) fn health(&self) -> BTreeMap<&'static str, Health> {
        let limit = self.stuck_after();
        (self.pools.iter())
            .map(|pool| (pool.name(), pool.health(limit)))
            .collect()
    }

    /// The kind of work that a question to this graph by this method is.
    pub(crate) fn work_of(&self, graph: Option<&str>, method: Option<&str>) -> Work {
        if self.engine.uses_llm(graph, method) {
            Work::Model
        } else {
            Work::Ask
        }
    }

    /// When a request that begins now must be done.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs_f64(self.config.limits.seconds)
    }

    /// Refuses what whoever sent this request may not do on a graph, or on the default one.
    pub(crate) fn allow(&self, scope: Scope, graph: Option<&str>) -> Result<(), Problem> {
        let graph = graph.unwrap_or_else(|| self.engine.default_graph());
        Access::current().check(scope, graph)
    }

    /// Refuses questions beyond the limits.
    pub(crate) fn check_question(&self, question: &Question) -> Result<(), Problem> {
        let limit = self.config.limits.question_bytes;
        let too_long = |length| wherefore::Error::QuestionTooLong { length, limit };
        let last = question.follow.as_ref().map(|follow| &follow.question);
        for text in question.topics.iter().chain([&question.text]).chain(last) {
            if text.len() > limit {
                return Err(too_long(text.len()).into());
            }
        }
        if question.topics.len() > MOST_TOPICS {
            let message = format!("a question has at most {MOST_TOPICS} topics");
            return Err(Problem::unprocessable("too-many-topics", message));
        }
        Ok(question.check()?)
    }

    /// Puts work into its queue.
    pub(crate) fn submit<T: Send + 'static>(
        self: &Arc<Self>,
        work: Work,
        job: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<tokio::sync::oneshot::Receiver<Result<T, Problem>>, Problem> {
        let app = Arc::clone(self);
        self.pools[work as usize].submit(move || job(&app))
    }

    /// Does work within its time, waiting included.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: Work,
        job: impl FnOnce(&App, &Wanted) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        let pool = &self.pools[work as usize];
        self.within_time(pool.run(move |wanted| job(&app, wanted)))
            .await
    }

    /// Looks something up, within its time.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.run(Work::Look, |app, _| job(app)).await
    }

    async fn within_time<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let limit = Duration::from_secs_f64(self.config.limits.seconds);
        let ended = tokio::time::timeout(limit, work).await;
        ended.unwrap_or_else(|_| Err(out_of_time(limit)))
    }

    /// What is true right now.
    pub(crate) fn gauges(&self) -> Gauges {
        let health = self.health();
        let sum = |count: fn(&Health) -> usize| health.values().map(count).sum();
        Gauges {
            waiting: sum(|h| h.waiting),
            running: sum(|h| h.running),
            stuck: sum(|h| h.stuck),
            connections: self.connections.load(Ordering::Relaxed),
            ready: self.is_warm() && health.values().all(Health::is_working),
        }
    }

    /// Lets what runs come to its end.
    pub(crate) fn finish(&self) {
        for pool in &self.pools {
            pool.finish();
        }
    }
}

/// The limit passed, waiting included.
pub(crate) fn out_of_time(limit: Duration) -> Problem {
    let mut problem = Problem::new(
        axum::http::StatusCode::SERVICE_UNAVAILABLE,
        "out-of-time",
        format!("there was no answer within {} s", limit.as_secs_f64()),
    )
    .hint("try again later, or ask something simpler");
    problem.retry_after = Some(5);
    problem
}
