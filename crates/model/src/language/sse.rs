//! Server-sent events: the `data` of each event, out of a stream of bytes.
//!
//! WHATWG, "HTML Living Standard", 9.2: fields are lines, an empty line ends an event, several
//! `data` lines of one event are joined. Comments and other fields are skipped.

use std::io::{self, Read};

/// The longest event, in bytes.
const MAX_EVENT: usize = 1 << 20;

/// Why a stream of events broke off.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection failed.
    Io(io::Error),
    /// What came is no such stream.
    Malformed(String),
}

/// Reads events one by one.
pub(super) struct Events<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where in `buffer` the unread bytes begin.
    at: usize,
    ended: bool,
    /// Bytes that may still come.
    left: u64,
}

impl<R: Read> Events<R> {
    /// Reads at most `limit` bytes.
    pub(super) fn new(reader: R, limit: u64) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            at: 0,
            ended: false,
            left: limit,
        }
    }

    /// The data of the next event; none where the stream ends.
    pub(super) fn next(&mut self) -> Result<Option<String>, Broken> {
        let mut data: Option<String> = None;
        loop {
            let Some(line) = self.line()? else {
                return Ok(data);
            };
            if line.is_empty() {
                if data.is_some() {
                    return Ok(data);
                }
                continue;
            }
            let line = String::from_utf8(line)
                .map_err(|_| Broken::Malformed("it sent bytes that are no UTF-8".into()))?;
            let Some(value) = line.strip_prefix("data:") else {
                continue;
            };
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                None => data = Some(value.to_owned()),
                Some(data) if data.len() + value.len() <= MAX_EVENT => {
                    data.push('\n');
                    data.push_str(value);
                }
                Some(_) => return Err(too_long()),
            }
        }
    }

    /// The next line without its end, which is `\n`, `\r\n` or `\r`.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let mut looked = 0;
        loop {
            let unread = &self.buffer[self.at..];
            if let Some(i) = unread[looked..]
                .iter()
                .position(|b| matches!(b, b'\n' | b'\r'))
                .map(|i| i + looked)
            {
                let pair_may_follow = unread[i] == b'\r' && i + 1 == unread.len() && !self.ended;
                if !pair_may_follow {
                    let line = unread[..i].to_vec();
                    let pair = unread[i..].starts_with(b"\r\n");
                    self.at += i + 1 + usize::from(pair);
                    return Ok(Some(line));
                }
                looked = i;
            } else {
                looked = unread.len();
            }
            if looked > MAX_EVENT {
                return Err(too_long());
            }
            if self.ended {
                let rest = unread.to_vec();
                self.at = self.buffer.len();
                return Ok((!rest.is_empty()).then_some(rest));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), Broken> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let mut bytes = [0; 8192];
        let count = loop {
            match self.reader.read(&mut bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(Broken::Io)?,
            }
        };
        self.ended = count == 0;
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| Broken::Malformed("it sent more than any completion has".into()))?;
        self.buffer.extend_from_slice(&bytes[..count]);
        Ok(())
    }
}

fn too_long() -> Broken {
    Broken::Malformed(format!("it sent a line of more than {MAX_EVENT} bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands out a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn events(bytes: &[u8], step: usize) -> Result<Vec<String>, Broken> {
        let mut events = Events::new(Slow(bytes, step), 1 << 24);
        let mut all = Vec::new();
        while let Some(event) = events.next()? {
            all.push(event);
        }
        Ok(all)
    }

    #[test]
    fn events_are_told_apart_however_the_bytes_come() {
        let bytes = b": hello\n\ndata: one\r\n\r\nid: 7\rdata:two\rdata: lines\r\rdata: last";
        for step in 1..10 {
            assert_eq!(events(bytes, step).unwrap(), ["one", "two\nlines", "last"]);
        }
    }

    #[test]
    fn what_is_no_text_or_has_no_end_is_an_error() {
        let malformed = |bytes: &[u8]| match events(bytes, 8192) {
            Err(Broken::Malformed(reason)) => reason,
            other => format!("{other:?}"),
        };
        assert!(malformed(b"data: \xff\n\n").contains("no UTF-8"));
        assert!(malformed(&vec![b'x'; 2 * MAX_EVENT]).contains("a line of more"));
        let mut limited = Events::new(&b"data: 123456789\n\n"[..], 5);
        assert!(matches!(limited.next(), Err(Broken::Malformed(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_events_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
            let whole = events(&bytes, 8192);
            let parts = events(&bytes, step);
            prop_assert_eq!(whole.ok(), parts.ok());
        }
    }
}
