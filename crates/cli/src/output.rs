//! How results look: colour, arrows, and text that cannot steer a terminal.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use serde::Serialize;
use wherefore::answer::Evidence;
use wherefore_graph::names::is_machine_id;

use crate::args::{Color, Global};

/// Where and how a command writes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// Results and errors as JSON.
    pub(crate) json: bool,
    /// Nothing for people on standard error but errors.
    pub(crate) quiet: bool,
    /// Whether results have colour.
    pub(crate) color: bool,
    /// Whether errors have colour.
    pub(crate) color_errors: bool,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let color = |terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain,
        };
        Self {
            json: global.json,
            quiet: global.quiet,
            color: color(io::stdout().is_terminal()),
            color_errors: color(io::stderr().is_terminal()),
        }
    }

    /// Writes a result to standard output.
    pub(crate) fn print(&self, text: &str) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .context("cannot write to standard output")
    }

    /// Writes a result to standard output as JSON.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
        text.push('\n');
        let mut shielded = Shielded::json(Vec::new());
        let written = shielded.write_all(text.as_bytes());
        written.context("cannot write JSON")?;
        self.print(&String::from_utf8_lossy(&shielded.inner))
    }

    /// Tells people something, unless they asked for quiet.
    pub(crate) fn note(&self, kind: &str, text: &str) {
        if !self.quiet && !self.json {
            // nobody is left to tell if this fails
            let _ = writeln!(io::stderr(), "{kind}: {}", shown(text));
        }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(crate) fn green(&self, text: &str) -> String {
        self.painted("32", text)
    }

    pub(crate) fn red(&self, text: &str) -> String {
        self.painted("31", text)
    }

    fn painted(&self, style: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Whether a sign can steer a terminal, or turns the direction of writing around.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A writer of results that may go to a terminal: what would steer it is escaped.
pub(crate) struct Shielded<W> {
    inner: W,
    shield: Shield,
    /// The beginning of a sign whose rest comes with the next bytes.
    rest: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shield {
    /// As JSON escapes it, wherever it goes: it means the same.
    Json,
    /// In words, for it is people who look at a terminal.
    Terminal,
    /// Formats for programs have no escapes of their own: they stay as they are.
    None,
}

impl<W: Write> Shielded<W> {
    pub(crate) fn json(inner: W) -> Self {
        Self::new(inner, Shield::Json)
    }

    pub(crate) fn terminal(inner: W) -> Self {
        Self::new(inner, Shield::Terminal)
    }

    pub(crate) fn none(inner: W) -> Self {
        Self::new(inner, Shield::None)
    }

    fn new(inner: W, shield: Shield) -> Self {
        Self {
            inner,
            shield,
            rest: Vec::new(),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        // a line may end with both
        let stays = |c: char| !steers(c) || matches!(c, '\n' | '\t');
        let mut from = 0;
        for (at, c) in text.char_indices() {
            if stays(c) || (c == '\r' && text[at + 1..].starts_with('\n')) {
                continue;
            }
            self.inner.write_all(&text.as_bytes()[from..at])?;
            match self.shield {
                Shield::Json => write!(self.inner, "\\u{:04x}", u32::from(c))?,
                _ => write!(self.inner, "{}", c.escape_default())?,
            }
            from = at + c.len_utf8();
        }
        self.inner.write_all(&text.as_bytes()[from..])
    }
}

impl<W: Write> Write for Shielded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shield == Shield::None {
            return self.inner.write(bytes);
        }
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        // a `\r` waits for what follows it
        let wait = usize::from(all.last() == Some(&b'\r'));
        let mut left = &all[..all.len() - wait];
        loop {
            match std::str::from_utf8(left) {
                Ok(text) => {
                    self.text(text)?;
                    left = &[];
                }
                Err(e) => {
                    let (good, bad) = left.split_at(e.valid_up_to());
                    self.text(&String::from_utf8_lossy(good))?;
                    left = bad;
                    match e.error_len() {
                        // the rest of a sign is to come
                        None => {}
                        Some(length) => {
                            self.text("\u{fffd}")?;
                            left = &bad[length..];
                            continue;
                        }
                    }
                }
            }
            break;
        }
        self.rest = left.to_vec();
        self.rest.extend_from_slice(&all[all.len() - wait..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.text(&String::from_utf8_lossy(&rest))?;
        }
        self.inner.flush()
    }
}

/// A text on one line that cannot steer the terminal: labels and questions come from anywhere.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\n' | '\r' | '\t' => ' ',
                c if steers(c) => '\u{fffd}',
                c => c,
            })
            .collect(),
    )
}

/// Writes triples as arrows. Nodes without a name become `◦`, `◦2`, …, each always the same, so
/// that two triples through one node are seen to be joined.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    unnamed: HashMap<String, usize>,
}

impl Arrows {
    pub(crate) fn arrow(&mut self, triple: &Evidence, output: &Output) -> String {
        let [head, _, tail] = &triple.ids;
        format!(
            "{} {} {} {} {}",
            self.node(&triple.head, head),
            output.dim("──"),
            shown(&triple.relation),
            output.dim("─▶"),
            self.node(&triple.tail, tail),
        )
    }

    fn node(&mut self, label: &str, id: &str) -> String {
        if !is_machine_id(label) && !label.starts_with("_:") {
            return shown(label).into_owned();
        }
        let next = self.unnamed.len() + 1;
        match *self.unnamed.entry(id.to_owned()).or_insert(next) {
            1 => "◦".into(),
            n => format!("◦{n}"),
        }
    }
}

/// `1 triple`, `2 triples`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(shown("Café 東京 🎉"), "Café 東京 🎉");
        assert_eq!(shown("a\tb\x1b[31m\u{9b}\u{202e}c\0"), "a b�[31m��c�");
    }

    #[test]
    fn results_cannot_steer_the_terminal_however_they_are_cut() {
        let text = "a\u{9b}31m\u{202e}b\x1b]0;x\x07\r\nc\rd\té\n";
        let written = |mut shielded: Shielded<Vec<u8>>, piece: usize| {
            for bytes in text.as_bytes().chunks(piece) {
                shielded.write_all(bytes).unwrap();
            }
            shielded.flush().unwrap();
            String::from_utf8(shielded.inner).unwrap()
        };
        for piece in [1, 2, 3, 100] {
            assert_eq!(
                written(Shielded::terminal(Vec::new()), piece),
                "a\\u{9b}31m\\u{202e}b\\u{1b}]0;x\\u{7}\r\nc\\rd\té\n"
            );
            assert_eq!(written(Shielded::none(Vec::new()), piece), text);
        }
        let json = "{\"a\":\"\u{9b}\u{2066}\u{7f}\"}";
        let mut shielded = Shielded::json(Vec::new());
        shielded.write_all(json.as_bytes()).unwrap();
        assert_eq!(
            String::from_utf8(shielded.inner).unwrap(),
            "{\"a\":\"\\u009b\\u2066\\u007f\"}"
        );
    }

    #[test]
    fn unnamed_nodes_keep_arrows_joined() {
        let output = Output {
            json: false,
            quiet: false,
            color: false,
            color_errors: false,
        };
        let triple = |head: &str, tail: &str| Evidence {
            head: head.into(),
            relation: "r".into(),
            tail: tail.into(),
            ids: [head.into(), "r".into(), tail.into()],
            ..Evidence::default()
        };
        let mut arrows = Arrows::default();
        assert_eq!(
            arrows.arrow(&triple("Park", "m.0seat"), &output),
            "Park ── r ─▶ ◦"
        );
        assert_eq!(
            arrows.arrow(&triple("m.0seat", "_:b1"), &output),
            "◦ ── r ─▶ ◦2"
        );
    }
}
