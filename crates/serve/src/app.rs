//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wherefore::Question;

use crate::config::ServeConfig;
use crate::engine::Engine;
use crate::error::Result;
use crate::feedback::Feedback;
use crate::guard::Guard;
use crate::metrics::{Gauges, Metrics};
use crate::pool::Pool;
use crate::problem::Problem;
use crate::runs::Runs;

/// Takes the lines of the log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Topics that a question may come with.
const MOST_TOPICS: usize = 16;
/// Threads for what takes no thought: completion, entities, runs.
const LOOKUP_WORKERS: usize = 2;

/// The engine with everything around it.
pub(crate) struct App {
    pub(crate) config: ServeConfig,
    pub(crate) engine: Engine,
    /// Where questions are answered.
    answers: Pool,
    /// Where things are looked up, so that typing is smooth while language models write.
    lookups: Pool,
    pub(crate) guard: Guard,
    pub(crate) metrics: Metrics,
    pub(crate) runs: Runs,
    pub(crate) feedback: Feedback,
    pub(crate) log: Log,
    ready: AtomicBool,
    pub(crate) connections: AtomicUsize,
}

impl App {
    /// Opens everything that the configuration names.
    pub(crate) fn open(config: ServeConfig, log: Log) -> Result<Self> {
        let config = config.resolve()?;
        let guard = Guard::new(&config)?;
        let engine = Engine::open(&config)?;
        let workers = match config.limits.workers {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            workers => workers,
        };
        Ok(Self {
            answers: Pool::start("answer", workers, config.limits.queue)?,
            lookups: Pool::start("lookup", LOOKUP_WORKERS, config.limits.queue)?,
            runs: Runs::new(config.runs.clone()),
            feedback: Feedback::open(config.feedback.clone())?,
            metrics: Metrics::new(),
            ready: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            guard,
            engine,
            config,
            log,
        })
    }

    /// Has every method compute what it keeps for its graph; afterwards the server is ready.
    pub(crate) fn warm_up(self: &Arc<Self>) {
        let app = Arc::clone(self);
        let warmed = self.answers.submit(move || {
            if let Err(problem) = app.engine.warm() {
                // the method will say the same to whoever asks it
                let line = problem.log_line().unwrap_or(problem.message);
                (app.log)(&format!("while warming up: {line}"));
            }
            app.ready.store(true, Ordering::Release);
            Ok(())
        });
        if let Ok(done) = warmed {
            // nobody waits for it, and a job without a listener is skipped
            tokio::spawn(done);
        }
    }

    /// Whether everything is warmed up.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// When a request that begins now must be done.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs_f64(self.config.limits.seconds)
    }

    /// Refuses questions beyond the limits.
    pub(crate) fn check_question(&self, question: &Question) -> Result<(), Problem> {
        let limit = self.config.limits.question_bytes;
        let too_long = |length| wherefore::Error::QuestionTooLong { length, limit };
        for text in question.topics.iter().chain([&question.text]) {
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

    /// Puts work that answers a question into its queue.
    pub(crate) fn submit<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<tokio::sync::oneshot::Receiver<Result<T, Problem>>, Problem> {
        let app = Arc::clone(self);
        self.answers.submit(move || job(&app))
    }

    /// Runs work that answers a question, within its time.
    pub(crate) async fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        self.within_time(self.answers.run(move || job(&app))).await
    }

    /// Runs work that looks something up, within its time.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        self.within_time(self.lookups.run(move || job(&app))).await
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
        Gauges {
            waiting: self.answers.waiting() + self.lookups.waiting(),
            running: self.answers.running() + self.lookups.running(),
            connections: self.connections.load(Ordering::Relaxed),
            ready: self.is_ready(),
        }
    }

    /// Lets what runs come to its end.
    pub(crate) fn finish(&self) {
        self.answers.finish();
        self.lookups.finish();
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
