//! The time limit of a query, and the first thing that went wrong in it.
//!
//! Reading triples and showing terms looks at the clock ([`Watch::tick`]). But the evaluator also
//! joins what it holds in memory (`VALUES`, closures of paths, groups), for hours if it must, and
//! asks nobody. All it does then is to clone terms. So cloning one looks at the clock too, now and
//! then ([`breathe`]), and unwinds the evaluator when time is over: there is no other way out of
//! it. [`Watch::run`] is where that ends; no panic hook sees it, and nothing of the evaluator is
//! used again.
//!
//! The evaluator drops some errors on its way (a `MINUS` skips what it cannot read, an expression
//! that fails is unbound). So the dataset files what happened here, hands the evaluator a mere
//! [`Halted`], and whoever reads the answer looks here before each row and at the end.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Terms that are cloned between two looks at the clock: some microseconds of them.
const BREATH: u32 = 1024;

thread_local! {
    /// When the query of this thread must end.
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Looks at the clock every [`BREATH`] calls, and unwinds when time is over.
pub(super) fn breathe() {
    let left = LEFT.get();
    if left > 0 {
        LEFT.set(left - 1);
        return;
    }
    LEFT.set(BREATH);
    if END.get().is_some_and(|end| Instant::now() >= end) && !std::thread::panicking() {
        resume_unwind(Box::new(Halted));
    }
}

/// The query stopped; the reason is filed in its [`Watch`].
#[derive(Debug, thiserror::Error)]
#[error("the query stopped")]
pub(super) struct Halted;

#[derive(Debug)]
pub(super) struct Watch {
    limit: Option<(Instant, Duration)>,
    /// The first fault. Stays filed: a query that failed once gives nothing more.
    fault: RefCell<Fault>,
}

#[derive(Debug)]
enum Fault {
    None,
    Filed(Error),
    Told,
}

impl Watch {
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            limit: timeout.and_then(|limit| Some((now.checked_add(limit)?, limit))),
            fault: RefCell::new(Fault::None),
        }
    }

    /// Runs a piece of the evaluator; `None` if it was unwound because time is over.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        END.set(self.limit.map(|(end, _)| end));
        let result = catch_unwind(AssertUnwindSafe(work));
        END.set(None);
        match result {
            Ok(value) => Some(value),
            Err(panic) if panic.is::<Halted>() => {
                let _ = self.tick();
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Whether the query may go on.
    ///
    /// The clock is read each time. Reading it every so many steps would be cheaper, but one step
    /// of a cross product can take as long as thousands of others.
    pub(super) fn tick(&self) -> Result<(), Halted> {
        if !matches!(*self.fault.borrow(), Fault::None) {
            return Err(Halted);
        }
        match self.limit {
            Some((end, limit)) if Instant::now() >= end => Err(self.file(Error::OutOfTime {
                what: "the SPARQL query",
                limit_ms: limit.as_millis(),
            })),
            _ => Ok(()),
        }
    }

    /// Files an error, unless there is one already.
    pub(super) fn file(&self, error: Error) -> Halted {
        let mut fault = self.fault.borrow_mut();
        if matches!(*fault, Fault::None) {
            *fault = Fault::Filed(error);
        }
        Halted
    }

    /// The filed error, once.
    pub(super) fn take(&self) -> Option<Error> {
        let mut fault = self.fault.borrow_mut();
        match std::mem::replace(&mut *fault, Fault::Told) {
            Fault::Filed(error) => Some(error),
            Fault::Told => None,
            Fault::None => {
                *fault = Fault::None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_told_once_and_stays() {
        let watch = Watch::new(None);
        assert!(watch.tick().is_ok());
        assert!(watch.take().is_none());
        assert!(watch.tick().is_ok());
        watch.file(Error::Empty);
        watch.file(Error::Stopped);
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
                breathe();
            }
        });
        assert_eq!(ended, None);
        assert!(matches!(watch.take(), Some(Error::OutOfTime { .. })));
        // outside of a query, nothing is ended
        for _ in 0..10 * BREATH {
            breathe();
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
