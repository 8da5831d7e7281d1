//! Queries in worker processes, so that limits hold whatever the evaluator does.
//!
//! The evaluator cannot be interrupted while it sorts, groups, compiles an expression or joins
//! texts, and if it runs out of memory the whole process ends. So untrusted queries go to
//! [`Workers`]: each runs in a process of this same program that does nothing else
//! ([`run_worker`]). The system limits its memory, it ends itself when its time is over, and it is
//! killed if it does not, or when the client has gone. A process whose query succeeded is reused.
//!
//! ```text
//! parent → worker   one line of JSON for each query
//! worker → parent   frames: kind (1 byte), length (4 bytes, little endian), bytes
//!                   D a piece of the answer · E end, JSON of `Written` · X error, JSON of `WorkerError`
//! ```
//!
//! The memory limit is `RLIMIT_DATA`: what a process allocates, without the mapped graph. Linux
//! enforces it; on other systems only the time limit holds.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{MAX_TEXT, ResultFormat, STACK, SparqlOptions, Written, write};
use crate::error::{Error, Result};
use crate::store::Store;

/// Memory of a worker beside the query: threads, buffers, open graphs.
const OWN_MEMORY: u64 = STACK as u64 + (64 << 20);
/// Time for the worker to report a timeout before it ends itself.
const GRACE: Duration = Duration::from_millis(200);
/// Additional time before the parent kills the worker.
const LAST_GRACE: Duration = Duration::from_millis(800);
/// How often a waiting parent checks whether the query is cancelled.
const PULSE: Duration = Duration::from_millis(50);
/// The longest request line: a text of escaped characters, and a path.
const MAX_LINE: u64 = 6 * MAX_TEXT as u64 + (1 << 16);
/// The largest piece of an answer.
const PIECE: usize = 64 << 10;
/// Pieces that may wait for the parent.
const PIECES_AHEAD: usize = 16;
/// Queries after which a worker is replaced, because of memory fragmentation (guess).
const MOST_QUERIES: u32 = 1000;
/// Maximum open graphs of a worker (guess).
const MOST_GRAPHS: usize = 16;
/// Niceness of workers (guess).
const NICE: i32 = 5;

const DATA: u8 = b'D';
const END: u8 = b'E';
const ERROR: u8 = b'X';

/// A request of the parent.
#[derive(Serialize, Deserialize)]
struct Request {
    graph: PathBuf,
    query: String,
    format: ResultFormat,
    timeout_ms: Option<u64>,
    max_rows: Option<usize>,
    max_bytes: Option<u64>,
}

/// An error as it is sent to the parent.
#[derive(Serialize, Deserialize)]
enum WorkerError {
    Syntax(String),
    Refused {
        reason: String,
        hint: Option<String>,
    },
    Evaluation(String),
    OutOfTime(u64),
    TooLarge(u64),
    Other(String),
}

impl From<Error> for WorkerError {
    fn from(error: Error) -> Self {
        match error {
            Error::SparqlSyntax(text) => WorkerError::Syntax(text),
            Error::SparqlRefused { reason, hint } => WorkerError::Refused { reason, hint },
            Error::SparqlEvaluation(text) => WorkerError::Evaluation(text),
            Error::OutOfTime { limit_ms, .. } => {
                WorkerError::OutOfTime(u64::try_from(limit_ms).unwrap_or(u64::MAX))
            }
            Error::AnswerTooLarge { limit } => WorkerError::TooLarge(limit),
            other => {
                let mut text = other.to_string();
                let mut cause = std::error::Error::source(&other);
                while let Some(error) = cause {
                    text += &format!(": {error}");
                    cause = error.source();
                }
                WorkerError::Other(text)
            }
        }
    }
}

impl WorkerError {
    fn into_error(self) -> Error {
        match self {
            WorkerError::Syntax(text) => Error::SparqlSyntax(text),
            WorkerError::Refused { reason, hint } => Error::SparqlRefused { reason, hint },
            WorkerError::Evaluation(text) => Error::SparqlEvaluation(text),
            WorkerError::OutOfTime(limit_ms) => out_of_time(Duration::from_millis(limit_ms)),
            WorkerError::TooLarge(limit) => Error::AnswerTooLarge { limit },
            WorkerError::Other(text) => Error::WorkerFailed(text),
        }
    }
}

fn out_of_time(limit: Duration) -> Error {
    Error::OutOfTime {
        what: "the SPARQL query",
        limit_ms: limit.as_millis(),
    }
}

/// Processes that run queries. Each call of [`Workers::write`] has one for itself, so there are as
/// many as there are calls at a time.
#[derive(Debug)]
pub struct Workers {
    program: PathBuf,
    arguments: Vec<OsString>,
    max_memory: u64,
    idle: Mutex<Vec<Worker>>,
}

impl Workers {
    /// Workers that are started as `program arguments… BYTES`, which must call [`run_worker`] with
    /// that number. A query may allocate `max_memory` bytes.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        max_memory: u64,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            max_memory,
            idle: Mutex::default(),
        }
    }

    /// Runs a query over the graph in this folder and writes its answer, as [`write()`] does.
    ///
    /// `is_wanted` is called regularly; when it returns false the query ends with
    /// [`Error::Stopped`].
    pub fn write(
        &self,
        graph: &Path,
        text: &str,
        options: &SparqlOptions,
        format: ResultFormat,
        out: &mut dyn Write,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Written> {
        super::guard::check(text)?;
        let request = Request {
            graph: graph.to_owned(),
            query: text.to_owned(),
            format,
            timeout_ms: (options.timeout)
                .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            max_rows: options.max_rows,
            max_bytes: options.max_bytes,
        };
        let mut line = serde_json::to_vec(&request)
            .map_err(|e| Error::WorkerFailed(format!("the request cannot be written: {e}")))?;
        line.push(b'\n');
        let mut worker = self.send(&line)?;
        let answered = worker.answer(options.timeout, out, is_wanted);
        match answered {
            Ok(answer) => {
                worker.queries += 1;
                if worker.queries < MOST_QUERIES {
                    self.idle().push(worker);
                }
                answer
            }
            Err(Ended::Time(limit)) => Err(out_of_time(limit)),
            Err(Ended::Unwanted) => Err(Error::Stopped),
            Err(Ended::Write(error)) => Err(error),
            Err(Ended::Died) => Err(self.failure_reason(worker, options.timeout)),
        }
    }

    /// Sends the request to an idle worker, or to a new one.
    fn send(&self, line: &[u8]) -> Result<Worker> {
        loop {
            let waiting = self.idle().pop();
            let is_new = waiting.is_none();
            let mut worker = match waiting {
                Some(worker) => worker,
                None => self.start()?,
            };
            match worker
                .input
                .write_all(line)
                .and_then(|()| worker.input.flush())
            {
                Ok(()) => return Ok(worker),
                // it may have been ended from outside while it waited
                Err(_) if !is_new => {}
                Err(_) => return Err(self.failure_reason(worker, None)),
            }
        }
    }

    fn start(&self) -> Result<Worker> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg(self.max_memory.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // keys and tokens of this process are no business of a stranger's query
            .env_clear();
        for name in ["LD_LIBRARY_PATH", "SYSTEMROOT"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let failed = |source| Error::Io {
            action: "start",
            path: self.program.clone(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::WorkerFailed("it has no standard input".into()));
        };
        let (send, frames) = sync_channel(PIECES_AHEAD);
        thread::Builder::new()
            .name("sparql-answers".into())
            .spawn(move || read_frames(output, &send))
            .map_err(failed)?;
        Ok(Worker {
            child,
            input,
            frames,
            queries: 0,
        })
    }

    /// Why a worker ended, from its exit status and standard error.
    fn failure_reason(&self, mut worker: Worker, timeout: Option<Duration>) -> Error {
        // if it lives on in spite of its closed output, it says nothing more
        let _ = worker.child.kill();
        let mut stderr = Vec::new();
        if let Some(errors) = worker.child.stderr.take() {
            let _ = errors.take(PIECE as u64).read_to_end(&mut stderr);
        }
        let stderr = String::from_utf8_lossy(&stderr);
        let status = worker.child.wait().ok();
        match (status.and_then(|status| status.code()), timeout) {
            (Some(OUT_OF_TIME), Some(limit)) => return out_of_time(limit),
            _ if stderr.contains("memory allocation of") => {
                return Error::OutOfMemory {
                    what: "the SPARQL query",
                    limit: self.max_memory,
                };
            }
            _ => {}
        }
        let status = status.map_or_else(|| "no status".into(), |s| s.to_string());
        let last = stderr.trim().lines().last().unwrap_or("no error message");
        Error::WorkerFailed(format!("{status}: {last}"))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process, which lives no longer than this.
#[derive(Debug)]
struct Worker {
    child: Child,
    input: ChildStdin,
    frames: Receiver<(u8, Vec<u8>)>,
    queries: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // one that is gone already cannot be killed, and need not be
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why a worker cannot be used again.
enum Ended {
    Time(Duration),
    Unwanted,
    Write(Error),
    Died,
}

impl Worker {
    /// Passes the answer on. The inner result is the query's, the outer one the worker's.
    fn answer(
        &mut self,
        timeout: Option<Duration>,
        out: &mut dyn Write,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Result<Written>, Ended> {
        let end = timeout.and_then(|limit| {
            let last = limit.checked_add(GRACE)?.checked_add(LAST_GRACE)?;
            Some((Instant::now().checked_add(last)?, limit))
        });
        loop {
            if !is_wanted() {
                return Err(Ended::Unwanted);
            }
            let (kind, bytes) = match self.frames.recv_timeout(PULSE) {
                Ok(frame) => frame,
                Err(RecvTimeoutError::Disconnected) => return Err(Ended::Died),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((end, limit)) = end
                        && Instant::now() >= end
                    {
                        return Err(Ended::Time(limit));
                    }
                    continue;
                }
            };
            match kind {
                DATA => out.write_all(&bytes).map_err(|source| {
                    Ended::Write(Error::Io {
                        action: "write",
                        path: "the answer".into(),
                        source,
                    })
                })?,
                END => {
                    let written = serde_json::from_slice(&bytes).map_err(|_| Ended::Died)?;
                    return Ok(Ok(written));
                }
                _ => {
                    let fault: WorkerError =
                        serde_json::from_slice(&bytes).map_err(|_| Ended::Died)?;
                    return Ok(Err(fault.into_error()));
                }
            }
        }
    }
}

/// Hands frames on until the output ends, is no frame, or nobody takes them.
fn read_frames(output: impl Read, send: &SyncSender<(u8, Vec<u8>)>) {
    let mut output = BufReader::with_capacity(PIECE, output);
    loop {
        let mut head = [0; 5];
        if output.read_exact(&mut head).is_err() {
            return;
        }
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if !matches!(kind, DATA | END | ERROR) || length > (MAX_TEXT + PIECE) * 2 {
            return;
        }
        let mut bytes = vec![0; length];
        if output.read_exact(&mut bytes).is_err() || send.send((kind, bytes)).is_err() {
            return;
        }
    }
}

/// Exit status of a worker whose query went on after its time.
const OUT_OF_TIME: i32 = 75;

/// Answers the queries that come in from a [`Workers`] until there are no more. Limits this whole
/// process: it must do nothing else.
pub fn run_worker(
    max_memory: u64,
    input: &mut dyn BufRead,
    output: impl Write + Send,
) -> Result<()> {
    limit_process(max_memory);
    let alarm = Alarm::start()?;
    let mut output = Frames { output };
    let mut graphs: HashMap<PathBuf, Store> = HashMap::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut *input)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .map_err(Error::io("read", "standard input"))?;
        if length == 0 {
            return Ok(());
        }
        let request: Request = serde_json::from_slice(&line)
            .map_err(|e| Error::WorkerFailed(format!("invalid request: {e}")))?;
        alarm.set(request.timeout_ms);
        let answered = answer(&request, &mut graphs, &mut output);
        alarm.set(None);
        let sent = match answered {
            Ok(written) => output.send(END, &serde_json::to_vec(&written).unwrap_or_default()),
            Err(error) => {
                let fault = WorkerError::from(error);
                output.send(ERROR, &serde_json::to_vec(&fault).unwrap_or_default())
            }
        };
        sent.map_err(Error::io("write", "standard output"))?;
    }
}

fn answer(
    request: &Request,
    graphs: &mut HashMap<PathBuf, Store>,
    output: &mut (impl Write + Send),
) -> Result<Written> {
    let store = match graphs.get(&request.graph) {
        Some(store) => store.refreshed()?.unwrap_or_else(|| store.clone()),
        None => Store::open(&request.graph)?,
    };
    if graphs.len() >= MOST_GRAPHS && !graphs.contains_key(&request.graph) {
        graphs.clear();
    }
    graphs.insert(request.graph.clone(), store.clone());
    let options = SparqlOptions {
        timeout: request.timeout_ms.map(Duration::from_millis),
        max_rows: request.max_rows,
        max_bytes: request.max_bytes,
    };
    let mut buffered = io::BufWriter::with_capacity(PIECE, output);
    let written = write(
        &store,
        &request.query,
        &options,
        request.format,
        &mut buffered,
    )?;
    buffered
        .flush()
        .map_err(Error::io("write", "standard output"))?;
    Ok(written)
}

/// Writes pieces of an answer as frames.
struct Frames<W> {
    output: W,
}

impl<W: Write> Frames<W> {
    fn send(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.output.write_all(&[kind])?;
        self.output.write_all(&length.to_le_bytes())?;
        self.output.write_all(bytes)?;
        self.output.flush()
    }
}

impl<W: Write> Write for Frames<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.send(DATA, piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Ends this process when a query runs past its time limit.
struct Alarm {
    due: Arc<(Mutex<Option<Instant>>, Condvar)>,
}

impl Alarm {
    fn start() -> Result<Self> {
        let due: Arc<(Mutex<Option<Instant>>, Condvar)> = Arc::default();
        let watched = Arc::clone(&due);
        thread::Builder::new()
            .name("sparql-alarm".into())
            .spawn(move || {
                let (due, changed) = &*watched;
                let mut held = due.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    let left = held.map(|due| due.saturating_duration_since(Instant::now()));
                    held = match left {
                        Some(Duration::ZERO) => std::process::exit(OUT_OF_TIME),
                        Some(left) => {
                            let woken = changed.wait_timeout(held, left);
                            woken.unwrap_or_else(PoisonError::into_inner).0
                        }
                        None => (changed.wait(held)).unwrap_or_else(PoisonError::into_inner),
                    };
                }
            })
            .map_err(Error::io("start", "the thread that watches the time"))?;
        Ok(Self { due })
    }

    /// When the query must have ended; `None` when it has.
    fn set(&self, timeout_ms: Option<u64>) {
        let (due, changed) = &*self.due;
        *due.lock().unwrap_or_else(PoisonError::into_inner) = timeout_ms.and_then(|limit| {
            let limit = Duration::from_millis(limit).checked_add(GRACE)?;
            Instant::now().checked_add(limit)
        });
        changed.notify_one();
    }
}

#[cfg(unix)]
fn limit_process(max_memory: u64) {
    use rustix::process::{Resource, Rlimit, nice, setrlimit};
    let at_most = |bytes| Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    // a system that knows no such limit has only the limit of time
    let _ = setrlimit(
        Resource::Data,
        at_most(max_memory.saturating_add(OWN_MEMORY)),
    );
    let _ = setrlimit(Resource::Core, at_most(0));
    let _ = nice(NICE);
}

#[cfg(not(unix))]
fn limit_process(_: u64) {}
