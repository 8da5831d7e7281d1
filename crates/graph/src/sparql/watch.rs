//! The time limit of a query, and the first thing that went wrong in it.
//!
//! The evaluator drops some errors on its way (a `MINUS` skips what it cannot read, an expression
//! that fails is unbound). So the dataset files what happened here, hands the evaluator a mere
//! [`Halted`], and whoever reads the answer looks here before each row and at the end.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

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
    fn no_time_is_over_at_once() {
        let watch = Watch::new(Some(Duration::ZERO));
        assert!(watch.tick().is_err());
        assert!(matches!(
            watch.take(),
            Some(Error::OutOfTime { limit_ms: 0, .. })
        ));
    }
}
