//! Sorting more pairs than memory should hold: sorted runs on the disk, merged while they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// A key and what goes with it.
pub(crate) type Pair = [u64; 2];

/// Pairs held in memory: 32 MB.
pub(crate) const IN_MEMORY: usize = 2 << 20;

/// Takes pairs in any order.
#[derive(Debug)]
pub(crate) struct Sorter {
    /// Where runs go, as `NAME-0`, `NAME-1`, …
    place: PathBuf,
    most: usize,
    held: Vec<Pair>,
    runs: Vec<PathBuf>,
}

impl Sorter {
    /// At most `most` pairs are held at a time.
    pub(crate) fn new(place: PathBuf, most: usize) -> Self {
        Self {
            place,
            most: most.max(1),
            held: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, pair: Pair) -> Result<()> {
        if self.held.len() == self.most {
            self.spill()?;
        }
        self.held.push(pair);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.held.par_sort_unstable();
        let mut name = self.place.clone().into_os_string();
        name.push(format!("-{}", self.runs.len()));
        let path = PathBuf::from(name);
        let mut file = BufWriter::new(File::create(&path).map_err(Error::io("create", &path))?);
        file.write_all(bytemuck::cast_slice(&self.held))
            .and_then(|()| file.flush())
            .map_err(Error::io("write", &path))?;
        self.runs.push(path);
        self.held.clear();
        Ok(())
    }

    /// The pairs in their order.
    pub(crate) fn sorted(mut self) -> Result<Sorted> {
        self.held.par_sort_unstable();
        let mut sorted = Sorted {
            held: std::mem::take(&mut self.held).into_iter(),
            runs: Vec::with_capacity(self.runs.len()),
            next: BinaryHeap::new(),
        };
        for path in std::mem::take(&mut self.runs) {
            sorted.runs.push(Run::open(&path)?);
        }
        for source in 0..=sorted.runs.len() {
            sorted.refill(source)?;
        }
        Ok(sorted)
    }
}

/// Pairs coming out in order.
#[derive(Debug)]
pub(crate) struct Sorted {
    held: std::vec::IntoIter<Pair>,
    runs: Vec<Run>,
    /// The next pair of each source; the last source is `held`.
    next: BinaryHeap<Reverse<(Pair, usize)>>,
}

impl Sorted {
    fn refill(&mut self, source: usize) -> Result<()> {
        let pair = match self.runs.get_mut(source) {
            Some(run) => run.read()?,
            None => self.held.next(),
        };
        self.next.extend(pair.map(|pair| Reverse((pair, source))));
        Ok(())
    }
}

impl Iterator for Sorted {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Result<Pair>> {
        if self.runs.is_empty() {
            // all in memory: nothing to merge
            let first = self.next.pop().map(|Reverse((pair, _))| pair);
            return first.or_else(|| self.held.next()).map(Ok);
        }
        let Reverse((pair, source)) = self.next.pop()?;
        Some(self.refill(source).map(|()| pair))
    }
}

#[derive(Debug)]
struct Run {
    path: PathBuf,
    file: BufReader<File>,
    left: u64,
}

impl Run {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let bytes = file.metadata().map_err(Error::io("read", path))?.len();
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 16, file),
            left: bytes / size_of::<Pair>() as u64,
        })
    }

    fn read(&mut self) -> Result<Option<Pair>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut pair: Pair = [0; 2];
        self.file
            .read_exact(bytemuck::cast_slice_mut(&mut pair))
            .map_err(Error::io("read", &self.path))?;
        Ok(Some(pair))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_on_disk_give_the_order_of_a_sort_in_memory(
            pairs in proptest::collection::vec((0u64..20, 0u64..20), 0..200),
            most in 1usize..60,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(folder.path().join("run"), most);
            let mut naive: Vec<Pair> = pairs.iter().map(|&(a, b)| [a, b]).collect();
            for pair in &naive {
                sorter.push(*pair).unwrap();
            }
            naive.sort_unstable();
            let sorted: Vec<Pair> = sorter.sorted().unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(sorted, naive);
        }
    }
}
