//! Text cut into blocks of whole records, for workers to parse side by side.

use std::io::BufRead;

use super::csv;

/// The longest record that is read; a longer one is malformed and passed over.
pub(crate) const LONGEST_RECORD: usize = 16 << 20;

/// Bytes read at a time: enough lines for a worker, few enough for the memory (guess).
const BLOCK: usize = 2 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Some whole records of one input.
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// Line number of its first line, from 1.
    pub(crate) first_line: u64,
}

/// Cuts a text into blocks.
pub(crate) struct Blocks<R> {
    text: R,
    /// Quoted fields may hold line ends.
    quoted: bool,
    /// Whether nothing has been read yet.
    is_first: bool,
    rest: Vec<u8>,
    line: u64,
    /// Lines of records that were too long.
    pub(crate) too_long: Vec<u64>,
}

impl<R: BufRead> Blocks<R> {
    pub(crate) fn new(text: R, quoted: bool) -> Self {
        Self {
            text,
            quoted,
            is_first: true,
            rest: Vec::new(),
            line: 1,
            too_long: Vec::new(),
        }
    }

    /// The next block; none at the end.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let target = if bytes.len() < BLOCK {
                BLOCK
            } else {
                bytes.len() + BLOCK
            };
            let ended = fill(&mut self.text, &mut bytes, target)?;
            if std::mem::take(&mut self.is_first) && bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            let cut = if ended {
                Some(bytes.len())
            } else {
                self.last_end(&bytes)
            };
            match cut {
                Some(0) => return Ok(None),
                Some(cut) => {
                    self.rest = bytes.split_off(cut);
                    let block = Block {
                        first_line: self.line,
                        bytes,
                    };
                    self.line += count_lines(&block.bytes);
                    return Ok(Some(block));
                }
                None if bytes.len() > LONGEST_RECORD => {
                    self.too_long.push(self.line);
                    let ended = self.skip_line(&mut bytes)?;
                    if ended {
                        return Ok(None);
                    }
                }
                None => {}
            }
        }
    }

    /// Where the last whole record ends.
    fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        if self.quoted {
            csv::last_record_end(bytes)
        } else {
            memchr::memrchr(b'\n', bytes).map(|at| at + 1)
        }
    }

    /// Drops the line at the front of `bytes`, however long it is; true at the end of the text.
    fn skip_line(&mut self, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
        self.line += 1;
        loop {
            if let Some(at) = memchr::memchr(b'\n', bytes) {
                bytes.drain(..=at);
                return Ok(false);
            }
            bytes.clear();
            if fill(&mut self.text, bytes, BLOCK)? && bytes.is_empty() {
                return Ok(true);
            }
        }
    }
}

/// Reads until `bytes` has `target` bytes; true if the text ended before.
fn fill(text: &mut impl BufRead, bytes: &mut Vec<u8>, target: usize) -> std::io::Result<bool> {
    while bytes.len() < target {
        let from = bytes.len();
        bytes.resize(target, 0);
        let read = text.read(&mut bytes[from..]);
        bytes.truncate(from + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(false)
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn all(text: &[u8], quoted: bool) -> (Vec<(u64, usize)>, Vec<u8>, Vec<u64>) {
        let mut blocks = Blocks::new(Cursor::new(text), quoted);
        let (mut starts, mut joined) = (Vec::new(), Vec::new());
        while let Some(block) = blocks.next().unwrap() {
            starts.push((block.first_line, block.bytes.len()));
            joined.extend(block.bytes);
        }
        (starts, joined, blocks.too_long)
    }

    #[test]
    fn blocks_hold_whole_lines_and_know_their_number() {
        let line = "x".repeat(999) + "\n";
        let text = line.repeat(5000);
        let (starts, joined, too_long) = all(text.as_bytes(), false);
        assert_eq!(joined, text.as_bytes());
        assert!(starts.len() > 1 && starts.iter().all(|(_, length)| length % 1000 == 0));
        assert_eq!(starts[1].0, 1 + starts[0].1 as u64 / 1000);
        assert!(too_long.is_empty());
        assert!(all(b"", false).0.is_empty());
        assert_eq!(all(b"no end", false).1, b"no end");
    }

    #[test]
    fn a_record_that_is_too_long_is_passed_over_and_named() {
        let mut text = b"first\n".to_vec();
        text.extend(vec![b'y'; LONGEST_RECORD + (5 << 20)]);
        text.extend(b"\nlast\n");
        let (_, joined, too_long) = all(&text, false);
        assert_eq!(joined, b"first\nlast\n");
        assert_eq!(too_long, [2]);
    }

    #[test]
    fn a_byte_order_mark_is_left_out() {
        assert_eq!(
            all("\u{feff}\"a\nb\",c\n".as_bytes(), true).1,
            b"\"a\nb\",c\n"
        );
    }

    #[test]
    fn blocks_end_at_record_ends_where_quotes_stand_inside_fields() {
        let record = format!("6\" pipe,\"{}\n\",c\n", "x".repeat(500));
        let text = record.repeat(6000);
        let (starts, joined, _) = all(text.as_bytes(), true);
        assert_eq!(joined, text.as_bytes());
        assert!(starts.len() > 1 && starts.iter().all(|(_, length)| length % record.len() == 0));
    }

    #[test]
    fn quoted_line_ends_do_not_cut() {
        let record = format!("a,\"{}\n{}\",c\n", "x".repeat(500), "y".repeat(500));
        let text = record.repeat(6000);
        let (starts, joined, _) = all(text.as_bytes(), true);
        assert_eq!(joined, text.as_bytes());
        assert!(starts.len() > 1 && starts.iter().all(|(_, length)| length % record.len() == 0));
    }
}
