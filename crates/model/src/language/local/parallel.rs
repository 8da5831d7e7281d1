//! Work on parts of a buffer, on all cores.
//!
//! The threads are candle's own: its matrix products run between ours, and two pools would fight
//! over the cores.

use std::sync::{Mutex, PoisonError};

use candle_core::utils::barrier_pool;

/// Cuts `out` into parts of `part` numbers and hands each to `work` with its place.
pub(super) fn in_parts(out: &mut [f32], part: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    if out.len() <= part {
        if !out.is_empty() {
            work(0, out);
        }
        return;
    }
    // each lock is taken once: it only proves to the compiler that parts are apart
    let parts: Vec<Mutex<&mut [f32]>> = out.chunks_mut(part).map(Mutex::new).collect();
    barrier_pool().execute_chunked(parts.len(), |range| {
        for i in range {
            let mut out = parts[i].lock().unwrap_or_else(PoisonError::into_inner);
            work(i, &mut out);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_worked_on_once() {
        for length in [0, 1, 5, 64, 1000] {
            let mut out = vec![0.0; length];
            in_parts(&mut out, 7, |i, part| {
                part.iter_mut().for_each(|x| *x += i as f32 + 1.0);
            });
            let want: Vec<f32> = (0..length).map(|i| (i / 7) as f32 + 1.0).collect();
            assert_eq!(out, want);
        }
    }
}
