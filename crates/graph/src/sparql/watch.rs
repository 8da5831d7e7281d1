//! The time limit of a query, and its first error.
//!
//! Reading triples and converting terms checks the clock ([`Watch::tick`]). But the evaluator also
//! joins what it has in memory (`VALUES`, closures of paths, groups), perhaps for hours, without
//! reading anything. It only clones terms then. So cloning one checks the clock too, now and then
//! ([`check_deadline`]), and unwinds the evaluator when time is over: there is no other way out of
//! it. [`Watch::run`] is where that ends; no panic hook sees it, and nothing of the evaluator is
//! used again.
//!
//! The evaluator drops some errors on its way (a `MINUS` skips what it cannot read, an expression
//! that fails is unbound). So the dataset records the error here, returns a mere
//! [`Interrupted`], and the reader of the answer checks here before each row and at the end.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Terms that are cloned between two checks of the clock: some microseconds.
const CLONES_PER_CHECK: u32 = 1024;

thread_local! {
    /// When the query of this thread must end.
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Checks the clock every [`CLONES_PER_CHECK`] calls, and unwinds after the deadline.
pub(super) fn check_deadline() {
    let left = LEFT.get();
    if left > 0 {
        LEFT.set(left - 1);
        return;
    }
    LEFT.set(CLONES_PER_CHECK);
    if END.get().is_some_and(|end| Instant::now() >= end) && !std::thread::panicking() {
        resume_unwind(Box::new(Interrupted));
    }
}

/// The query was interrupted; the reason is in its [`Watch`].
#[derive(Debug, thiserror::Error)]
#[error("the query stopped")]
pub(super) struct Interrupted;

#[derive(Debug)]
pub(super) struct Watch {
    limit: Option<(Instant, Duration)>,
    /// The first error. A query that has failed returns nothing more.
    error: RefCell<FirstError>,
}

#[derive(Debug)]
enum FirstError {
    None,
    Stored(Error),
    Taken,
}

impl Watch {
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            limit: timeout.and_then(|limit| Some((now.checked_add(limit)?, limit))),
            error: RefCell::new(FirstError::None),
        }
    }

    /// Runs a piece of the evaluator; `None` if it was unwound because time is over.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        END.set(self.limit.map(|(end, _)| end));
        let result = catch_unwind(AssertUnwindSafe(work));
        END.set(None);
        match result {
            Ok(value) => Some(value),
            Err(panic) if panic.is::<Interrupted>() => {
                let _ = self.tick();
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    /// An error if the query must stop.
    ///
    /// The clock is read each time. Reading it every so many steps would be cheaper, but one step
    /// of a cross product can take as long as thousands of others.
    pub(super) fn tick(&self) -> Result<(), Interrupted> {
        if !matches!(*self.error.borrow(), FirstError::None) {
            return Err(Interrupted);
        }
        match self.limit {
            Some((end, limit)) if Instant::now() >= end => Err(self.record(Error::OutOfTime {
                what: "the SPARQL query",
                limit_ms: limit.as_millis(),
            })),
            _ => Ok(()),
        }
    }

    /// Records an error, unless there is one already.
    pub(super) fn record(&self, error: Error) -> Interrupted {
        let mut first = self.error.borrow_mut();
        if matches!(*first, FirstError::None) {
            *first = FirstError::Stored(error);
        }
        Interrupted
    }

    /// Takes the recorded error.
    pub(super) fn take(&self) -> Option<Error> {
        let mut error = self.error.borrow_mut();
        match std::mem::replace(&mut *error, FirstError::Taken) {
            FirstError::Stored(error) => Some(error),
            FirstError::Taken => None,
            FirstError::None => {
                *error = FirstError::None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_taken_once_and_the_query_stays_interrupted() {
        let watch = Watch::new(None);
        assert!(watch.tick().is_ok());
        assert!(watch.take().is_none());
        assert!(watch.tick().is_ok());
        watch.record(Error::Empty);
        watch.record(Error::Stopped);
        assert!(matches!(watch.take(), Some(Error::Empty)));
        assert!(watch.take().is_none());
        assert!(watch.tick().is_err());
    }

    #[test]
    fn work_that_only_clones_is_ended() {
        let watch = Watch::new(Some(Duration::from_millis(20)));
        assert_eq!(watch.run(|| 1), Some(1));
        let ended = watch.run(|| {
            for _ in 0..u64::MAX {
                check_deadline();
            }
        });
        assert_eq!(ended, None);
        assert!(matches!(watch.take(), Some(Error::OutOfTime { .. })));
        // outside of a query, nothing is ended
        for _ in 0..10 * CLONES_PER_CHECK {
            check_deadline();
        }
    }

    #[test]
    fn no_time_is_over_at_once() {
        let watch = Watch::new(Some(Duration::ZERO));
        assert!(watch.tick().is_err());
        assert!(matches!(
            watch.take(),
            Some(Error::OutOfTime { limit_ms: 0, .. })
        ));
    }
}
