//! The text of a questions file: its lines, its JSON records, and errors that say where.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::format::Format;
use crate::error::{Error, Result};

/// A text file on its way to being questions.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self> {
        Ok(Self {
            path,
            text: utf8(path, bytes)?,
        })
    }

    /// The lines that hold something, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        (1..)
            .zip(self.text.lines())
            .filter(|(_, line)| !line.trim().is_empty())
    }

    /// Whether it begins like JSON.
    pub(crate) fn is_json(&self) -> bool {
        // MetaQA questions may begin with a `[topic]`; JSON arrays of records go on with `{`
        let text = self.text.trim_start();
        text.starts_with('{')
            || text
                .strip_prefix('[')
                .is_some_and(|rest| rest.trim_start().starts_with('{'))
    }

    /// The keys of the first JSON record.
    pub(crate) fn first_keys(&self) -> Result<Vec<String>> {
        let text = self.text.trim_start();
        let text = text.strip_prefix('[').unwrap_or(text);
        let first = serde_json::Deserializer::from_str(text)
            .into_iter::<serde_json::Map<String, Value>>()
            .next();
        match first {
            Some(Ok(record)) => Ok(record.into_iter().map(|(key, _)| key).collect()),
            Some(Err(e)) => Err(Error::UnknownFormat {
                path: self.path.into(),
                found: format!("its first record is no JSON object ({e})"),
            }),
            None => Err(Error::Empty {
                path: self.path.into(),
            }),
        }
    }

    /// The records of a JSON-lines file or of one JSON array, numbered by line or by place.
    pub(crate) fn records<T: DeserializeOwned + Send>(
        &self,
        format: Format,
    ) -> Result<Vec<(usize, T)>> {
        json_records(self.path, self.text, format.name())
    }

    /// For `ok_or_else` and `map_err`: a line that does not parse.
    pub(crate) fn bad_line(&self, line: usize, format: Format, reason: impl Into<String>) -> Error {
        Error::BadLine {
            path: self.path.into(),
            line,
            format: format.name().into(),
            reason: reason.into(),
        }
    }
}

/// The longest file that is read, in bytes: benchmarks that bring a graph for each question have
/// ten gigabytes.
const LONGEST_FILE: u64 = 32 << 30;
/// The most that is read of what has no length of its own, such as a pipe.
const LONGEST_STREAM: u64 = 1 << 30;
/// The beginning, by which a text is told from what is none.
const BEGINNING: usize = 64 << 10;

/// The bytes of a file that may be anything: a device that has no end, or no text, is an error and
/// does not fill the memory.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let io = || Error::io("read", path);
    let mut file = File::open(path).map_err(io())?;
    let meta = file.metadata().map_err(io())?;
    let most = match meta.is_file() {
        true => LONGEST_FILE,
        false => LONGEST_STREAM,
    };
    let too_long = || Error::TooLong {
        path: path.into(),
        limit: most,
    };
    if meta.is_file() && meta.len() > most {
        return Err(too_long());
    }
    let known = usize::try_from(meta.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(known + 1);
    (&mut file)
        .take(BEGINNING as u64)
        .read_to_end(&mut bytes)
        .map_err(io())?;
    // Parquet is the one format that is no text
    if !bytes.starts_with(b"PAR1") && bytes.contains(&0) {
        let at = bytes.iter().position(|&b| b == 0).unwrap_or_default();
        return Err(Error::NotUtf8 {
            path: path.into(),
            line: 1 + bytes[..at].iter().filter(|&&b| b == b'\n').count(),
        });
    }
    let rest = most - bytes.len() as u64;
    let read = file.take(rest + 1).read_to_end(&mut bytes).map_err(io())?;
    if read as u64 > rest {
        return Err(too_long());
    }
    Ok(bytes)
}

/// The bytes as text, without a byte order mark.
pub(crate) fn utf8<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str> {
    let text = std::str::from_utf8(bytes).map_err(|e| Error::NotUtf8 {
        path: path.into(),
        line: 1 + bytes[..e.valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count(),
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The records of a JSON-lines text or of one JSON array, numbered by line or by place.
pub(crate) fn json_records<T: DeserializeOwned + Send>(
    path: &Path,
    text: &str,
    format: &str,
) -> Result<Vec<(usize, T)>> {
    let bad = |line: usize, e: &serde_json::Error| Error::BadLine {
        path: path.into(),
        line,
        format: format.into(),
        reason: e.to_string(),
    };
    if text.trim_start().starts_with('[') {
        let records: Vec<T> = serde_json::from_str(text).map_err(|e| bad(e.line(), &e))?;
        return Ok((1..).zip(records).collect());
    }
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .collect();
    let parsed: Vec<Result<(usize, T)>> = (lines.par_iter())
        .map(|&(number, line)| match serde_json::from_str(line) {
            Ok(record) => Ok((number, record)),
            Err(e) => Err(bad(number, &e)),
        })
        .collect();
    // in order, so that the first bad line of the file is the one reported
    parsed.into_iter().collect()
}

/// An id that some files write as text and some as a number; absent is empty.
pub(crate) fn id_text<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Id {
        Text(String),
        Number(i64),
        Absent,
    }
    use serde::Deserialize as _;
    Ok(match Id::deserialize(deserializer)? {
        Id::Text(text) => text,
        Id::Number(number) => number.to_string(),
        Id::Absent => String::new(),
    })
}

/// A list that some files write as `null` when it is empty.
pub(crate) fn list_or_null<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    use serde::Deserialize as _;
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lines_keep_their_order_and_the_first_bad_one_is_reported() {
        let mut text: String = (0..5000).map(|i| format!("{i}\n")).collect();
        let read = json_records::<u32>("f".as_ref(), &text, "numbers").unwrap();
        assert_eq!(read.len(), 5000);
        assert!(
            read.iter()
                .all(|&(line, number)| line == number as usize + 1)
        );
        text = text
            .replace("\n4000\n", "\nx\n")
            .replace("\n3000\n", "\ny\n");
        let error = json_records::<u32>("f".as_ref(), &text, "numbers").unwrap_err();
        assert!(error.to_string().contains("line 3001 "), "{error}");
    }
}
