//! Inputs: files and stdin, plain or compressed, and what format they are in.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::format::Format;
use super::sqlite;
use crate::error::{Error, Result};

/// Where triples come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// Its name in messages.
    pub fn path(&self) -> PathBuf {
        match self {
            Input::File(path) => path.clone(),
            Input::Stdin => PathBuf::from("<stdin>"),
        }
    }

    /// Its size on disk, where known.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Input::File(path) => std::fs::metadata(path)
                .ok()
                .filter(std::fs::Metadata::is_file)
                .map(|m| m.len()),
            Input::Stdin => None,
        }
    }
}

/// An opened input: decompressed text and its format.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) text: Box<dyn BufRead + Send>,
}

/// Counts the bytes read from the file, before decompression.
struct CountingReader<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A reader with a size limit: a few compressed bytes can expand to very many.
struct LimitedReader<R> {
    inner: R,
    left: u64,
    max_text: u64,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = match self.left.checked_sub(read as u64) {
            Some(left) => left,
            None => {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    TooLong(self.max_text),
                ));
            }
        };
        Ok(read)
    }
}

/// A text is longer than this many bytes.
#[derive(Debug)]
struct TooLong(u64);

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it has more than {} bytes of text when unpacked", self.0)
    }
}

impl std::error::Error for TooLong {}

/// First bytes of compressed files.
const PACKED: [(&[u8], &str); 8] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "rar"),
];

/// File name extensions of compressed files.
const ENDINGS: [(&str, &str); 4] = [
    ("gz", "gzip"),
    ("zst", "zstd"),
    ("zstd", "zstd"),
    ("xz", "xz"),
];

/// A file that is not read as a text from its beginning to its end.
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) file: File,
}

/// The input as a database or a workbook; none if it is neither.
///
/// # Errors
/// If its name or `format` says that it is one, and its first bytes do not.
pub(crate) fn database(input: &Input, format: Option<Format>) -> Result<Option<Database>> {
    let path = input.path();
    let bad = |reason: &str, hint: Option<&str>| Error::BadInput {
        path: path.clone(),
        reason: reason.to_owned(),
        hint: hint.map(str::to_owned),
    };
    let by_name = path
        .extension()
        .and_then(|e| Format::named(&e.to_string_lossy()));
    let named = format.or(by_name);
    let is_named = matches!(named, Some(Format::Sqlite | Format::Xlsx));
    let Input::File(file) = input else {
        let hint = Some("save it as a file, and name that");
        return match is_named {
            true => Err(bad("it cannot be read from standard input", hint)),
            false => Ok(None),
        };
    };
    if file.is_dir() || (format.is_some() && !is_named) {
        return Ok(None);
    }
    let mut opened = File::open(file).map_err(Error::io("open", file))?;
    let mut head = [0; 16];
    let mut filled = 0;
    while filled < head.len() {
        match opened
            .read(&mut head[filled..])
            .map_err(Error::io("read", file))?
        {
            0 => break,
            read => filled += read,
        }
    }
    let format = match named {
        _ if head == *sqlite::MAGIC => Format::Sqlite,
        Some(Format::Xlsx) if head.starts_with(b"PK\x03\x04") => Format::Xlsx,
        Some(Format::Sqlite) => return Err(bad("it is no SQLite database", None)),
        Some(Format::Xlsx) => {
            let hint = Some("save an older `.xls` as `.xlsx`, or as CSV");
            return Err(bad("it is no Excel workbook (.xlsx)", hint));
        }
        _ => return Ok(None),
    };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if format == Format::Sqlite && std::fs::metadata(&log).is_ok_and(|m| m.len() > 0) {
        return Err(bad(
            "its last changes are not in it yet, but in the file beside it that ends in `-wal`",
            Some(
                "close what writes to it, or run `sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'`",
            ),
        ));
    }
    Ok(Some(Database {
        path,
        format,
        file: opened,
    }))
}

/// Opens an input; `read` counts its bytes as they are consumed.
///
/// # Errors
/// If it cannot be read, or its format cannot be told. Where its text, unpacked, has more than
/// `most` bytes, reading on is one.
pub(crate) fn open(
    input: &Input,
    format: Option<Format>,
    read: Arc<AtomicU64>,
    max_text: u64,
) -> Result<Source> {
    let path = input.path();
    let bad = |reason: String, hint: Option<&str>| Error::BadInput {
        path: path.clone(),
        reason,
        hint: hint.map(str::to_owned),
    };
    let raw: Box<dyn Read + Send> = match input {
        Input::File(file) => {
            let meta = std::fs::metadata(file).map_err(Error::io("open", file))?;
            if meta.is_dir() {
                return Err(bad(
                    "it is a folder".into(),
                    Some("name the files in it, for example `wherefore load FOLDER/* --out GRAPH`"),
                ));
            }
            Box::new(File::open(file).map_err(Error::io("open", file))?)
        }
        Input::Stdin => Box::new(io::stdin()),
    };
    let mut raw = BufReader::with_capacity(1 << 18, CountingReader { inner: raw, read });
    let head = raw.fill_buf().map_err(Error::io("read", &path))?;
    if head.is_empty() {
        let ending = path.extension().map(|e| e.to_string_lossy());
        return match format.or_else(|| Format::named(&ending?)) {
            // a document without a triple is one
            Some(format) if format.may_be_empty() => Ok(Source {
                path,
                format,
                text: Box::new(io::empty()),
            }),
            _ => Err(bad("it is empty".into(), None)),
        };
    }
    let packed = PACKED
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, name)| *name);
    let mut stem = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let ending = |stem: &str| {
        Path::new(stem)
            .extension()
            .map(|e| e.to_string_lossy().to_ascii_lowercase())
    };
    if let Some((_, promised)) = ENDINGS
        .iter()
        .find(|(e, _)| ending(&stem).as_deref() == Some(*e))
    {
        if packed != Some(promised) {
            return Err(bad(
                format!("its name says {promised}, but its content is not {promised}"),
                None,
            ));
        }
        stem.truncate(stem.rfind('.').unwrap_or(stem.len()));
    }
    let mut text: Box<dyn BufRead + Send> = match packed {
        None => Box::new(raw),
        Some("gzip") => buffered(flate2::bufread::MultiGzDecoder::new(raw)),
        Some("zstd") => {
            buffered(zstd::Decoder::with_buffer(raw).map_err(Error::io("read", &path))?)
        }
        Some("xz") => buffered(liblzma::bufread::XzDecoder::new_multi_decoder(raw)),
        Some(other) => {
            return Err(bad(
                format!("{other} archives are not supported"),
                Some("decompress it first, or use gzip, zstd or xz"),
            ));
        }
    };
    if max_text < u64::MAX {
        text = buffered(LimitedReader {
            inner: text,
            left: max_text,
            max_text,
        });
    }
    let by_name = ending(&stem).and_then(|e| Format::named(&e));
    let format = match format.or(by_name) {
        Some(format) => format,
        None => {
            let (begin, rest) = peek(text).map_err(|e| unpack_error(&path, e))?;
            text = rest;
            sniff(&begin).ok_or_else(|| {
                bad(
                    "its format cannot be detected from its name or first line".into(),
                    Some(
                        "set it with `--format nt|nq|ttl|trig|rdf|jsonld|tsv|csv|pipe|jsonl|json|sqlite|xlsx`",
                    ),
                )
            })?
        }
    };
    Ok(Source { path, format, text })
}

fn buffered(read: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(1 << 18, read))
}

/// The error for a failed read of compressed text.
pub(crate) fn unpack_error(path: &Path, e: io::Error) -> Error {
    let reason = match e.kind() {
        io::ErrorKind::FileTooLarge => e.to_string(),
        io::ErrorKind::UnexpectedEof => "its compressed data is truncated".to_owned(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            format!("its compressed data is damaged: {e}")
        }
        _ => {
            return Error::Io {
                action: "read",
                path: path.to_owned(),
                source: e,
            };
        }
    };
    Error::BadInput {
        path: path.to_owned(),
        reason,
        hint: None,
    }
}

/// The first bytes, and a reader that still has them.
fn peek(mut text: Box<dyn BufRead + Send>) -> io::Result<(Vec<u8>, Box<dyn BufRead + Send>)> {
    let mut begin = vec![0; 1 << 14];
    let mut filled = 0;
    while filled < begin.len() {
        let read = text.read(&mut begin[filled..])?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    begin.truncate(filled);
    let again = Cursor::new(begin.clone()).chain(text);
    Ok((begin, Box::new(again)))
}

/// Detects the format from the first line.
fn sniff(begin: &[u8]) -> Option<Format> {
    let text = String::from_utf8_lossy(begin);
    let line = text
        .lines()
        .find(|l| !l.trim().is_empty() && !l.starts_with('#'))?
        .trim();
    if line.contains('\0') {
        None
    } else if line.starts_with("@prefix") || line.starts_with("PREFIX") || line.starts_with("@base")
    {
        Some(Format::Turtle)
    } else if line.starts_with("<?xml") || line.starts_with("<rdf:RDF") {
        Some(Format::RdfXml)
    } else if line.matches('\t').count() >= 2 {
        Some(Format::Tsv)
    } else if (line.starts_with('<') || line.starts_with("_:")) && line.ends_with('.') {
        Some(Format::NQuads)
    } else if line.matches('|').count() == 2 {
        Some(Format::Pipe)
    } else if line == "[" || ["[{", "[["].iter().any(|begin| line.starts_with(begin)) {
        Some(Format::Json)
    } else if line.starts_with('{') || line.starts_with('[') {
        Some(Format::JsonLines)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_tell_formats() {
        assert_eq!(
            sniff(b"\nKismet|directed_by|William Dieterle\n"),
            Some(Format::Pipe)
        );
        assert_eq!(sniff(b"a\tb\tc\textra\n"), Some(Format::Tsv));
        assert_eq!(sniff(b"<a:b> <a:c> \"d\" .\n"), Some(Format::NQuads));
        assert_eq!(sniff(b"# no\n@prefix a: <a:> .\n"), Some(Format::Turtle));
        assert_eq!(sniff(b"{\"head\":1}\n"), Some(Format::JsonLines));
        assert_eq!(sniff(b"[\n  {\"head\":1}\n]"), Some(Format::Json));
        assert_eq!(sniff(b"[[\"a\",\"r\",\"b\"]]"), Some(Format::Json));
        assert_eq!(sniff(b"[\"a\",\"r\",\"b\"]\n"), Some(Format::JsonLines));
        assert_eq!(sniff(b"<?xml version='1.0'?>"), Some(Format::RdfXml));
        assert_eq!(sniff(b"Dear all,\nplease\n"), None);
        assert_eq!(sniff(b"\x89PNG\r\n\x1a\n\0\0\0"), None);
        assert_eq!(sniff(b""), None);
    }

    #[test]
    fn every_format_is_found_by_its_name() {
        for (format, names) in Format::NAMES {
            for name in names {
                assert_eq!(Format::named(&name.to_uppercase()), Some(format));
            }
        }
        assert_eq!(Format::named("png"), None);
    }
}
