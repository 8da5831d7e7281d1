//! Many questions on all cores, while the interpreter watches for Ctrl-C and shows how far it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::raised;

/// How often the interpreter is asked whether somebody pressed Ctrl-C.
const WATCH: Duration = Duration::from_millis(50);

struct Far {
    done: usize,
    is_over: bool,
}

/// What `one` makes of each; `progress` is called with how many are done.
pub(crate) fn each<Q: Sync, T: Send>(
    py: Python<'_>,
    all: &[Q],
    one: impl Fn(&Q) -> anyhow::Result<T> + Sync,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<T>> {
    let far = Mutex::new(Far {
        done: 0,
        is_over: false,
    });
    let (moved, stop) = (Condvar::new(), AtomicBool::new(false));
    let lock = || far.lock().unwrap_or_else(PoisonError::into_inner);
    let mut made = None;
    let watched = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let each = all.par_iter().map(|question| {
                if stop.load(Ordering::Relaxed) {
                    return None;
                }
                let answer = one(question);
                lock().done += 1;
                Some(answer)
            });
            // ends at the first error, and where somebody stopped it
            let all: Option<anyhow::Result<Vec<T>>> = each
                .map(|found| match found {
                    None => Err(None),
                    Some(Err(error)) => Err(Some(error)),
                    Some(Ok(answer)) => Ok(answer),
                })
                .collect::<Result<Vec<T>, Option<anyhow::Error>>>()
                .map_or_else(|error| error.map(Err), |all| Some(Ok(all)));
            lock().is_over = true;
            moved.notify_all();
            all
        });
        let mut told = 0;
        let watched = loop {
            let (done, is_over) = py.detach(|| {
                let far = lock();
                let waited = moved.wait_timeout_while(far, WATCH, |far| !far.is_over);
                let (far, _) = waited.unwrap_or_else(PoisonError::into_inner);
                (far.done, far.is_over)
            });
            let seen = match progress {
                Some(progress) if done > told => progress.call1((done,)).map(|_| ()),
                _ => Ok(()),
            };
            told = done;
            if let Err(error) = seen.and_then(|()| py.check_signals()) {
                stop.store(true, Ordering::Relaxed);
                break Err(error);
            }
            if is_over {
                break Ok(());
            }
        };
        // those that were begun are still answered
        made = py.detach(|| worker.join().ok()).flatten();
        watched
    });
    watched?;
    match made {
        Some(all) => all.map_err(|error| raised(&error)),
        None => Err(pyo3::exceptions::PyRuntimeError::new_err(
            "a question could not be answered, and the fault is ours",
        )),
    }
}
