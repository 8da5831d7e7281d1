//! Something done for each of many, on many threads and in order, while people see how far it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use rayon::prelude::*;

use crate::error::Result;

/// How many are begun together.
const AT_ONCE: usize = 32;
/// Results that may be on their way to whoever takes them before threads pause.
const AHEAD: usize = 256;

/// What `one` makes of each; `see` is told of so many more after some of them.
pub(crate) fn each<Q: Sync, T: Send>(
    all: &[Q],
    one: impl Fn(&Q) -> Result<T> + Sync,
    mut see: impl FnMut(usize),
) -> Result<Vec<T>> {
    let mut made = Vec::with_capacity(all.len());
    for some in all.chunks(AT_ONCE) {
        made.extend(some.par_iter().map(&one).collect::<Result<Vec<T>>>()?);
        see(some.len());
    }
    Ok(made)
}

/// Does `count` jobs on so many threads, and hands what came of them to `take` in their order. Ends
/// with the first error, or with false where `take` gives it.
pub(crate) fn in_order<T: Send>(
    count: usize,
    threads: usize,
    job: impl Fn(usize) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::sync_channel(AHEAD);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let (sender, next, stop, job) = (sender.clone(), &next, &stop, &job);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    // the receiver is gone only when all is being stopped
                    if at >= count || sender.send((at, job(at))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (at, done) in receiver {
            early.insert(at, done);
            while let Some(done) = early.remove(&due) {
                due += 1;
                match done.and_then(&mut take) {
                    Ok(true) => {}
                    other => {
                        stop.store(true, Ordering::Relaxed);
                        return other;
                    }
                }
            }
        }
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn jobs_are_taken_in_their_order_until_one_fails_or_nobody_wants_more() {
        let mut taken = Vec::new();
        let done = in_order(1000, 4, Ok, |i| {
            taken.push(i);
            Ok(i < 700)
        });
        assert!(!done.unwrap());
        assert!(taken.into_iter().eq(0..=700));
        let mut taken = 0;
        let job = |i| match i {
            300.. => Err(Error::BadSetting(i.to_string())),
            i => Ok(i),
        };
        let error = in_order(1000, 4, job, |_| {
            taken += 1;
            Ok(true)
        });
        assert_eq!(taken, 300);
        assert!(matches!(error, Err(Error::BadSetting(first)) if first == "300"));
    }
}
