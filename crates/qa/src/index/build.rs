//! Building the vectors of one part: which texts there are, which of them are new, their rows.
//!
//! 1. Every label is read and hashed; pairs of hash and id are sorted, so that equal texts come
//!    together, and joined with the hashes of the vectors that are there already.
//! 2. Sorted again by their first id, the texts get their numbers: the plan, a list of (first
//!    id, vector to take over) that stands in `plan`.
//! 3. The plan is carried out in batches. `progress.json` says how many rows are safely on the
//!    disk; a build that was stopped goes on from there.
//! 4. Many vectors are linked ([`super::hnsw`]).
//!
//! Memory: two sorts of 32 MB, one batch of texts and rows, and while vectors are linked, 140
//! bytes for each vector. Two texts with one 64-bit hash would share a vector: at 100 million
//! labels the odds of a single such pair are 1 in 3,700.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use serde::{Deserialize, Serialize};
use wherefore_graph::{Mapped, Store, Verified};
use wherefore_model::{Embeddings, Encoder};
use xxhash_rust::xxh3::xxh3_64;

use super::dot::to_f16;
use super::hnsw::{self, NONE, Rows};
use super::labels::Labels;
use super::manifest::{
    EncoderMark, FORMAT, HnswMark, Manifest, bytes_in, folder_of, map, told, write_aside,
    write_sums,
};
use super::options::IndexOptions;
use super::part::Part;
use super::report::{IndexProgress, IndexStep, PartReport};
use super::sort::{IN_MEMORY, Sorter};
use crate::error::{Error, Result};

/// Texts that are hashed at a time.
const READ: u32 = 16 << 10;
/// Texts that are encoded at a time.
const BATCH: usize = 2048;
/// How often finished rows are made safe.
const SAFE_EVERY: Duration = Duration::from_millis(250);

/// What a half-made folder was made for. It is taken up again only for the same.
#[derive(Debug, Serialize, Deserialize)]
struct Purpose {
    format: u32,
    graph: String,
    encoder: EncoderMark,
    /// The folder from which vectors are taken over.
    old: Option<String>,
    named: u64,
    vectors: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Done {
    vectors: u64,
}

/// Builds, resumes or confirms one part.
pub(crate) struct Build<'a> {
    pub(crate) graph: &'a Store,
    pub(crate) encoder: &'a dyn Encoder,
    pub(crate) mark: &'a EncoderMark,
    pub(crate) part: Part,
    pub(crate) options: &'a IndexOptions,
    pub(crate) tell: &'a (dyn Fn(IndexProgress) + Sync),
}

/// The vectors that are there already.
struct Old {
    folder: String,
    vectors: Verified<u16>,
    hashes: Verified<u64>,
    mend: String,
}

impl Old {
    /// A vector that is taken over, and the hash of its text.
    fn row(&self, number: u32, dim: usize) -> Result<(&[u16], u64)> {
        let (place, from) = (number as usize, number as usize * dim);
        let row = self.vectors.slice(from..from + dim);
        let hash = self.hashes.at(place);
        match (row, hash) {
            (Ok(Some(row)), Ok(Some(hash))) => Ok((row, hash)),
            (Err(e), _) | (_, Err(e)) => Err(told(e, &self.mend)),
            _ => Err(Error::DamagedIndex {
                path: PathBuf::from(&self.folder),
                reason: "its plan names a vector that it does not have".into(),
                mend: self.mend.clone(),
            }),
        }
    }
}

impl Build<'_> {
    pub(crate) fn run(&self) -> Result<PartReport> {
        let began = Instant::now();
        // a manifest that does not parse is as good as none: what it led to is built anew
        let there = Manifest::read(self.graph.path(), self.part).unwrap_or(None);
        if let Some(manifest) = &there
            && self.is_current(manifest)
        {
            return Ok(PartReport::current(manifest));
        }
        let old = there.and_then(|manifest| self.old(&manifest));
        let aside = folder_of(self.graph.path()).join(format!("{}.part", self.part.name()));
        let (purpose, resumed) = match self.resumable(&aside, old.as_ref()) {
            Some(found) => found,
            None => {
                if aside.exists() {
                    std::fs::remove_dir_all(&aside).map_err(Error::io("remove", &aside))?;
                }
                std::fs::create_dir(&aside).map_err(Error::io("create", &aside))?;
                (self.plan(&aside, old.as_ref())?, 0)
            }
        };
        let encoded = self.encode(&aside, old.as_ref(), &purpose, resumed)?;
        let hnsw = self.link(&aside, purpose.vectors)?;
        for name in ["plan", "plan.json", "progress.json"] {
            let path = aside.join(name);
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        let manifest = Manifest {
            format: FORMAT,
            written_by: env!("CARGO_PKG_VERSION").into(),
            part: self.part,
            folder: String::new(),
            graph: self.graph.checksum().to_owned(),
            encoder: Some(self.mark.clone()),
            rows: self.labels().len().into(),
            named: purpose.named,
            vectors: purpose.vectors,
            hnsw,
            sums: Some(write_sums(&aside)?),
            bytes: bytes_in(&aside)?,
        };
        let manifest = manifest.publish(self.graph.path(), &aside)?;
        Ok(PartReport {
            built: true,
            encoded,
            resumed,
            kept: purpose.vectors - encoded - resumed,
            seconds: began.elapsed().as_secs_f64(),
            ..PartReport::current(&manifest)
        })
    }

    fn labels(&self) -> Labels<'_> {
        Labels::new(self.graph, self.part)
    }

    fn say(&self, step: IndexStep, done: u64, total: u64) {
        (self.tell)(IndexProgress {
            part: self.part,
            step,
            done,
            total,
        });
    }

    fn is_current(&self, manifest: &Manifest) -> bool {
        let same_encoder = |e: &EncoderMark| e.same(self.mark);
        manifest.graph == self.graph.checksum()
            && manifest.encoder.as_ref().is_some_and(same_encoder)
            // a file that is gone, cut short or damaged is built anew
            && super::Vectors::open(self.graph, self.encoder, self.part).is_ok()
            && manifest.files(self.graph.path()).is_ok_and(|files| files.check_all().is_ok())
    }

    /// The vectors that can be taken over: of the same encoder, and whole.
    fn old(&self, manifest: &Manifest) -> Option<Old> {
        manifest.encoder.as_ref().filter(|e| e.same(self.mark))?;
        let path = self.graph.path();
        let numbers = manifest.vectors.checked_mul(self.mark.dim as u64)?;
        let files = manifest.files(path).ok()?;
        files.check(["vectors", "hashes"]).ok()?;
        Some(Old {
            folder: manifest.folder.clone(),
            vectors: files.map("vectors", numbers).ok()?,
            hashes: files.map("hashes", manifest.vectors).ok()?,
            mend: files.mend,
        })
    }

    /// A half-made folder that can be taken up, and its finished rows.
    fn resumable(&self, aside: &Path, old: Option<&Old>) -> Option<(Purpose, u64)> {
        let purpose: Purpose =
            serde_json::from_slice(&std::fs::read(aside.join("plan.json")).ok()?).ok()?;
        let fits = purpose.format == FORMAT
            && purpose.graph == self.graph.checksum()
            && purpose.encoder.same(self.mark)
            && purpose.old.as_deref() == old.map(|o| o.folder.as_str());
        let length = |name: &str| Some(std::fs::metadata(aside.join(name)).ok()?.len());
        let plan_fits = length("plan")? == purpose.vectors * 8;
        let done = std::fs::read(aside.join("progress.json")).ok();
        let done: Done = done
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        // rows that were promised and are not there: none are believed
        let there = length("vectors").unwrap_or(0) >= done.vectors * self.mark.dim as u64 * 2
            && length("hashes").unwrap_or(0) >= done.vectors * 8
            && done.vectors <= purpose.vectors;
        (fits && plan_fits).then_some((purpose, if there { done.vectors } else { 0 }))
    }

    /// Numbers the distinct texts and says where their rows come from.
    fn plan(&self, aside: &Path, old: Option<&Old>) -> Result<Purpose> {
        let mut labels = self.labels();
        let len = labels.len();
        let sorter = |name: &str| Sorter::new(aside.join(name), IN_MEMORY);
        let mut by_hash = sorter("sort-hash");
        for from in (0..len).step_by(READ as usize) {
            self.say(IndexStep::Reading, from.into(), len.into());
            let ids: Vec<u32> = (from..len.min(from + READ)).collect();
            for (id, text) in ids.iter().zip(labels.texts(&ids)?) {
                if let Some(text) = text {
                    by_hash.push([xxh3_64(text.as_bytes()), u64::from(*id)])?;
                }
            }
        }
        let mut old_by_hash = sorter("sort-old");
        if let Some(old) = old {
            let hashes = old.hashes.slice(0..old.hashes.len());
            let hashes = hashes.map_err(|e| told(e, &old.mend))?.unwrap_or_default();
            for (number, &hash) in hashes.iter().enumerate() {
                old_by_hash.push([hash, number as u64])?;
            }
        }
        let mut olds = old_by_hash.sorted()?.peekable();

        // equal hashes are together: the first id stands for all of them
        let mut by_first = sorter("sort-first");
        let mut run: Option<(u64, u64, u64)> = None; // hash, first id, old vector
        for pair in by_hash.sorted()? {
            let [hash, id] = pair?;
            let (first, taken) = match run {
                Some((same, first, taken)) if same == hash => (first, taken),
                _ => {
                    let mut taken = u64::from(NONE);
                    while let Some([found, number]) = next_up_to(&mut olds, hash)? {
                        if found == hash {
                            taken = number;
                        }
                    }
                    run = Some((hash, id, taken));
                    (id, taken)
                }
            };
            by_first.push([first << 32 | id, taken])?;
        }

        let (mut plan, mut starts) = (Out::create(aside, "plan")?, Out::create(aside, "starts")?);
        let mut ids = Out::create(aside, "ids")?;
        let mut by_id = sorter("sort-id");
        let (mut vectors, mut members, mut last) = (0u64, 0u32, None);
        for pair in by_first.sorted()? {
            let [key, taken] = pair?;
            let (first, id) = ((key >> 32) as u32, key as u32);
            if last != Some(first) {
                last = Some(first);
                vectors += 1;
                plan.put(&[[first, taken as u32]])?;
                starts.put(&[members])?;
            }
            ids.put(&[id])?;
            members += 1;
            by_id.push([id.into(), vectors - 1])?;
        }
        starts.put(&[members])?;

        let mut rows = Out::create(aside, "rows")?;
        let mut next = 0;
        for pair in by_id.sorted()? {
            let [id, number] = pair?;
            while next < id {
                rows.put(&[NONE])?;
                next += 1;
            }
            rows.put(&[number as u32])?;
            next += 1;
        }
        for _ in next..len.into() {
            rows.put(&[NONE])?;
        }
        for file in [plan, starts, ids, rows] {
            file.finish()?;
        }
        for entry in std::fs::read_dir(aside).map_err(Error::io("read", aside))? {
            let entry = entry.map_err(Error::io("read", aside))?;
            if entry.file_name().to_string_lossy().starts_with("sort-") {
                let path = entry.path();
                std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            }
        }
        let purpose = Purpose {
            format: FORMAT,
            graph: self.graph.checksum().to_owned(),
            encoder: self.mark.clone(),
            old: old.map(|o| o.folder.clone()),
            named: members.into(),
            vectors,
        };
        // last: a plan that is named is whole
        let text = serde_json::to_vec(&purpose).expect("a purpose is plain data");
        write_aside(&aside.join("plan.json"), &text)?;
        Ok(purpose)
    }

    /// Writes the rows from number `done` on; says how many of them were encoded.
    fn encode(&self, aside: &Path, old: Option<&Old>, purpose: &Purpose, done: u64) -> Result<u64> {
        let dim = self.mark.dim as u64;
        let plan: Mapped<[u32; 2]> = map(&aside.join("plan"), purpose.vectors)?;
        let mut out = RowFiles {
            progress: aside.join("progress.json"),
            vectors: Out::go_on(aside, "vectors", done * dim * 2)?,
            hashes: Out::go_on(aside, "hashes", done * 8)?,
            done,
            safe: Instant::now(),
        };
        let mut labels = self.labels();
        let mut encoded = 0;
        for batch in plan[done as usize..].chunks(BATCH) {
            self.say(IndexStep::Encoding, out.done, purpose.vectors);
            match self.encode_batch(batch, &mut labels, old, &mut out) {
                Ok(fresh) => encoded += fresh,
                Err(error) => {
                    // what was finished before stays finished
                    out.save()?;
                    return Err(error);
                }
            }
            if out.safe.elapsed() >= SAFE_EVERY {
                out.save()?;
            }
        }
        out.save()?;
        Ok(encoded)
    }

    fn encode_batch(
        &self,
        batch: &[[u32; 2]],
        labels: &mut Labels<'_>,
        old: Option<&Old>,
        out: &mut RowFiles,
    ) -> Result<u64> {
        let dim = self.mark.dim;
        let is_new = |entry: &&[u32; 2]| entry[1] == NONE;
        let firsts: Vec<u32> = batch.iter().filter(is_new).map(|entry| entry[0]).collect();
        let texts = labels.texts(&firsts)?;
        let texts: Vec<&str> = texts.iter().map(|t| t.as_deref().unwrap_or("")).collect();
        let fresh = if texts.is_empty() {
            Embeddings::new(Vec::new(), dim)
        } else {
            self.encoder.encode(&texts)?
        };
        assert!(
            fresh.len() == texts.len() && fresh.dim() == dim,
            "an encoder gives one row of its dimension for each text"
        );
        let mut bits = Vec::with_capacity(texts.len() * dim);
        to_f16(fresh.values(), &mut bits);
        let mut fresh = bits.chunks_exact(dim).zip(&texts);
        for &[_, taken] in batch {
            match old.filter(|_| taken != NONE) {
                Some(old) => {
                    let (row, hash) = old.row(taken, dim)?;
                    out.vectors.put(row)?;
                    out.hashes.put(&[hash])?;
                }
                None => {
                    let (row, text) = fresh.next().expect("every new text was encoded");
                    out.vectors.put(row)?;
                    out.hashes.put(&[xxh3_64(text.as_bytes())])?;
                }
            }
        }
        out.done += batch.len() as u64;
        Ok(texts.len() as u64)
    }

    fn link(&self, aside: &Path, vectors: u64) -> Result<Option<HnswMark>> {
        let dim = self.mark.dim;
        let numbers = vectors * dim as u64;
        if numbers <= self.options.scanned {
            return Ok(None);
        }
        let values: Mapped<u16> = map(&aside.join("vectors"), numbers)?;
        let rows = Rows {
            values: &*values,
            dim,
        };
        let tell = |done| self.say(IndexStep::Linking, done, vectors);
        match hnsw::build(rows, &self.options.hnsw, &tell)? {
            Some(built) => {
                hnsw::write(&built, aside)?;
                Ok(Some(built.mark))
            }
            None => Ok(None),
        }
    }
}

/// The next pair whose key is not above `hash`.
fn next_up_to(
    pairs: &mut std::iter::Peekable<super::sort::Sorted>,
    hash: u64,
) -> Result<Option<super::sort::Pair>> {
    let is_due = |pair: &Result<super::sort::Pair>| !matches!(pair, Ok([h, _]) if *h > hash);
    pairs.next_if(is_due).transpose()
}

/// The rows being written, and how many of them are whole.
struct RowFiles {
    progress: PathBuf,
    vectors: Out,
    hashes: Out,
    done: u64,
    /// When they were last made safe.
    safe: Instant,
}

impl RowFiles {
    /// Makes safe what is done; the record comes last, so that it never promises too much.
    fn save(&mut self) -> Result<()> {
        self.vectors.sync()?;
        self.hashes.sync()?;
        let done = Done { vectors: self.done };
        let text = serde_json::to_vec(&done).expect("a number is plain data");
        write_aside(&self.progress, &text)?;
        self.safe = Instant::now();
        Ok(())
    }
}

/// A file of numbers being written.
struct Out {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Out {
    fn create(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        Ok(Self {
            path,
            file: BufWriter::with_capacity(1 << 18, file),
        })
    }

    /// Opens a file and forgets what stands behind its first `bytes`.
    fn go_on(folder: &Path, name: &str, bytes: u64) -> Result<Self> {
        let path = folder.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut file = file.map_err(Error::io("open", &path))?;
        file.set_len(bytes)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(Error::io("write", &path))?;
        Ok(Self {
            path,
            file: BufWriter::with_capacity(1 << 20, file),
        })
    }

    fn put<T: Pod>(&mut self, values: &[T]) -> Result<()> {
        let bytes = bytemuck::cast_slice(values);
        let written = self.file.write_all(bytes);
        written.map_err(|e| Error::io("write", &self.path)(e))
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.file.flush();
        let synced = synced.and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|e| Error::io("write", &self.path)(e))
    }

    fn finish(mut self) -> Result<()> {
        self.sync()
    }
}
