//! Something done for each of many, on all cores and in order, some at a time so that people see how
//! far it is.

use rayon::prelude::*;

use crate::error::Result;

/// How many are begun together.
const AT_ONCE: usize = 32;

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
