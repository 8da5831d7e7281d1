//! Vectors of phrases, kept in the graph's folder so that each is computed once, or learned for a
//! graph and kept with the weights.
//!
//! File `index/phrases`, little-endian: `WFPHRASE`, length of the header (u32), header (JSON: the
//! encoder, the number of phrases), xxh3 of each phrase (u64), rows (`[phrases, dim]` f32), xxh3
//! of all before it (u64). It is written aside and renamed. One that is damaged or of another
//! encoder counts as none; where the folder cannot be written, nothing is kept.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use wherefore_model::Encoder;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::index::{EncoderMark, FOLDER};

const MAGIC: &[u8; 8] = b"WFPHRASE";
const FILE: &str = "phrases";
/// A file beyond this is not read.
const MAX_BYTES: u64 = 1 << 30;
/// Fewer phrases than this are not worth a file.
const WORTH_KEEPING: usize = 8;

#[derive(Serialize, Deserialize)]
struct Header {
    encoder: EncoderMark,
    phrases: usize,
}

/// One row for each phrase, one after the other: those that lie in the graph's folder, and the
/// others made now.
pub(super) fn vectors(
    phrases: &[String],
    encoder: &dyn Encoder,
    graph: Option<&Path>,
) -> Result<Vec<f32>> {
    let texts: Vec<&str> = phrases.iter().map(String::as_str).collect();
    let Some(folder) = graph.filter(|_| phrases.len() >= WORTH_KEEPING) else {
        return Ok(encoder.encode(&texts)?.into_values());
    };
    let (path, dim) = (folder.join(FOLDER).join(FILE), encoder.dim());
    let mark = EncoderMark::of(encoder)?;
    let mut known = read(&path, &mark).unwrap_or_default();
    let mut missing: Vec<&str> = texts.clone();
    missing.retain(|text| !known.contains_key(&xxh3_64(text.as_bytes())));
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        let rows = encoder.encode(&missing)?;
        for (text, row) in missing.iter().zip(rows.rows()) {
            known.insert(xxh3_64(text.as_bytes()), row.to_vec());
        }
    }
    let keys: Vec<u64> = texts.iter().map(|t| xxh3_64(t.as_bytes())).collect();
    let mut all = Vec::with_capacity(keys.len() * dim);
    keys.iter()
        .for_each(|key| all.extend_from_slice(&known[key]));
    if !missing.is_empty() {
        // a folder that cannot be written costs time and nothing else
        write(&path, mark, &keys, &all).ok();
    }
    Ok(all)
}

/// Vectors that some phrases have instead of those that a matcher gives them.
#[derive(Clone, Debug)]
pub struct LearnedPhrases {
    encoder: EncoderMark,
    keys: Vec<u64>,
    rows: Vec<f32>,
}

impl LearnedPhrases {
    /// One row for each phrase.
    pub(super) fn new(phrases: &[String], rows: Vec<f32>, encoder: &dyn Encoder) -> Result<Self> {
        Ok(Self {
            encoder: EncoderMark::of(encoder)?,
            keys: phrases.iter().map(|p| xxh3_64(p.as_bytes())).collect(),
            rows,
        })
    }

    /// Writes them into a file.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        write(path, self.encoder.clone(), &self.keys, &self.rows)
    }

    /// Reads a file; the matcher has to be the one that they were learned with.
    pub fn load(path: &Path, matcher: &dyn Encoder) -> Result<Self> {
        let encoder = EncoderMark::of(matcher)?;
        let Some(known) = read(path, &encoder) else {
            return Err(Error::Config(format!(
                "`{}` does not hold phrases that were learned with the matcher `{}`: it is damaged, or of another matcher; make it again with `wherefore adapt`",
                path.display(),
                matcher.name()
            )));
        };
        let (keys, rows): (Vec<u64>, Vec<Vec<f32>>) = known.into_iter().unzip();
        let rows = rows.concat();
        Ok(Self {
            encoder,
            keys,
            rows,
        })
    }

    /// Puts the learned rows in place of others.
    pub(super) fn replace(&self, phrases: &[String], rows: &mut [f32]) {
        let dim = self.encoder.dim.max(1);
        let own = self.keys.iter().copied().zip(self.rows.chunks(dim));
        let own: HashMap<u64, &[f32]> = own.collect();
        for (phrase, row) in phrases.iter().zip(rows.chunks_mut(dim)) {
            if let Some(learned) = own.get(&xxh3_64(phrase.as_bytes())) {
                row.copy_from_slice(learned);
            }
        }
    }
}

/// The rows of a file by their phrases; none where it is not whole or of another encoder.
fn read(path: &Path, mark: &EncoderMark) -> Option<HashMap<u64, Vec<f32>>> {
    if fs::metadata(path).ok()?.len() > MAX_BYTES {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    if xxh3_64(body) != u64::from_le_bytes(sum.try_into().ok()?) {
        return None;
    }
    let rest = body.strip_prefix(MAGIC)?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (header, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let header: Header = serde_json::from_slice(header).ok()?;
    let width = header.encoder.dim.checked_mul(4)?;
    if !header.encoder.same(mark) || width == 0 {
        return None;
    }
    let (keys, rows) = rest.split_at_checked(header.phrases.checked_mul(8)?)?;
    if rows.len() != header.phrases.checked_mul(width)? {
        return None;
    }
    let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let keys = keys
        .as_chunks::<8>()
        .0
        .iter()
        .map(|k| u64::from_le_bytes(*k));
    let rows = rows.chunks_exact(width);
    let rows = rows.map(|row| row.chunks_exact(4).map(number).collect());
    Some(keys.zip(rows).collect())
}

fn write(path: &Path, encoder: EncoderMark, keys: &[u64], rows: &[f32]) -> std::io::Result<()> {
    let phrases = keys.len();
    let header = serde_json::to_vec(&Header { encoder, phrases })?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    bytes.extend(keys.iter().flat_map(|key| key.to_le_bytes()));
    bytes.extend(rows.iter().flat_map(|x| x.to_le_bytes()));
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    let aside = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create(&aside)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    let written = written.and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // nothing half-written stays
        fs::remove_file(&aside).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use wherefore_model::Embeddings;
    use wherefore_model::encode::HashingEncoder;

    use super::*;

    /// Counts the texts that it is given.
    struct Counting(HashingEncoder, AtomicUsize);

    impl Encoder for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn dim(&self) -> usize {
            self.0.dim()
        }

        fn encode(&self, texts: &[&str]) -> wherefore_model::Result<Embeddings> {
            self.1.fetch_add(texts.len(), Ordering::Relaxed);
            self.0.encode(texts)
        }
    }

    #[test]
    fn phrases_are_encoded_once_and_a_damaged_file_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let encoder = Counting(HashingEncoder::default(), AtomicUsize::new(0));
        let mut phrases: Vec<String> = (0..20).map(|i| format!("phrase {}", i % 15)).collect();
        let plain = vectors(&phrases, &encoder, None).unwrap();
        let count = |texts: usize| assert_eq!(encoder.1.swap(0, Ordering::Relaxed), texts);
        count(20);
        let of_folder = |phrases: &[String]| vectors(phrases, &encoder, Some(folder.path()));
        assert_eq!(of_folder(&phrases).unwrap(), plain);
        count(16); // fifteen phrases, and the probe
        assert_eq!(of_folder(&phrases).unwrap(), plain);
        count(1);
        phrases.push("another".into());
        of_folder(&phrases).unwrap();
        count(2);
        let path = folder.path().join(FOLDER).join(FILE);
        let whole = fs::read(&path).unwrap();
        let mark = EncoderMark::of(&encoder).unwrap();
        for at in (0..whole.len()).step_by(37) {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            fs::write(&path, &flipped).unwrap();
            assert!(read(&path, &mark).is_none(), "{at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(read(&path, &mark).is_none(), "{at}");
        }
        encoder.1.store(0, Ordering::Relaxed);
        of_folder(&phrases).unwrap();
        count(17);
    }
}
