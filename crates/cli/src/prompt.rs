//! A line as it is typed on a terminal: history, completion and the usual keys, and no more.
//!
//! Kept by hand: `console`, which the command has for its colours, reads the keys; a line editor of
//! its own (rustyline) would be a second terminal library for one prompt.

use std::io;

use console::{Key, Term, measure_text_width};

/// Lines that are remembered.
const MAX_HISTORY: usize = 200;

/// What a line became.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It was ended.
    Line(String),
    /// It was given up.
    GivenUp,
    /// There will be no more.
    End,
}

/// What the end of a line may become, and the byte where that end begins.
pub(crate) type Completions = (usize, Vec<String>);

/// Reads lines from a terminal.
pub(crate) struct Prompt {
    term: Term,
    mark: &'static str,
    history: Vec<String>,
}

impl Prompt {
    pub(crate) fn new(mark: &'static str) -> Self {
        Self {
            term: Term::stdout(),
            mark,
            history: Vec::new(),
        }
    }

    /// Reads one line; Tab asks `complete` for what the text before the cursor may become.
    pub(crate) fn read(&mut self, complete: &dyn Fn(&str) -> Completions) -> io::Result<Typed> {
        let mut line = Line::new(&self.history);
        loop {
            self.draw(&line)?;
            match line.press(&self.term.read_key_raw()?, complete) {
                Pressed::Goes => {}
                Pressed::Offers(names) => {
                    self.term.write_str("\r\n")?;
                    self.term.write_line(&names.join("   "))?;
                }
                Pressed::Ends(typed) => {
                    self.term.write_str("\r\n")?;
                    if let Typed::Line(text) = &typed
                        && !text.trim().is_empty()
                        && self.history.last() != Some(text)
                    {
                        self.history.push(text.clone());
                        let old = self.history.len().saturating_sub(MAX_HISTORY);
                        self.history.drain(..old);
                    }
                    return Ok(typed);
                }
            }
        }
    }

    /// The line, or of a long one what stands around the cursor.
    fn draw(&self, line: &Line<'_>) -> io::Result<()> {
        let (_, columns) = self.term.size();
        let room = usize::from(columns)
            .saturating_sub(self.mark.len() + 2)
            .max(8);
        let mut from = 0;
        let shown = |from: usize, to: usize| line.text[from..to].iter().collect::<String>();
        while measure_text_width(&shown(from, line.at)) > room {
            from += 1;
        }
        let mut to = line.text.len();
        while measure_text_width(&shown(from, to)) > room {
            to -= 1;
        }
        self.term.write_str("\r")?;
        self.term.clear_line()?;
        self.term.write_str(self.mark)?;
        self.term.write_str(&shown(from, to))?;
        let behind = measure_text_width(&shown(line.at.min(to), to));
        if behind > 0 {
            self.term.move_cursor_left(behind)?;
        }
        self.term.flush()
    }
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Goes,
    Offers(Vec<String>),
    Ends(Typed),
}

/// A line that is being typed.
struct Line<'h> {
    text: Vec<char>,
    /// The cursor.
    at: usize,
    history: &'h [String],
    /// The line of the history that is shown; behind its end it is the new one.
    place: usize,
    /// The new line while another is shown.
    kept: Vec<char>,
}

impl<'h> Line<'h> {
    fn new(history: &'h [String]) -> Self {
        Self {
            text: Vec::new(),
            at: 0,
            history,
            place: history.len(),
            kept: Vec::new(),
        }
    }

    fn press(&mut self, key: &Key, complete: &dyn Fn(&str) -> Completions) -> Pressed {
        match key {
            Key::Enter => return Pressed::Ends(Typed::Line(self.text.iter().collect())),
            Key::CtrlC => return Pressed::Ends(Typed::GivenUp),
            Key::Char('\u{4}') if self.text.is_empty() => return Pressed::Ends(Typed::End),
            Key::Char('\u{4}') | Key::Del if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            Key::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            Key::ArrowLeft => self.at = self.at.saturating_sub(1),
            Key::ArrowRight => self.at = (self.at + 1).min(self.text.len()),
            Key::Home | Key::Char('\u{1}') => self.at = 0,
            Key::End | Key::Char('\u{5}') => self.at = self.text.len(),
            // all before the cursor, all behind it, the word before it
            Key::Char('\u{15}') => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            Key::Char('\u{b}') => self.text.truncate(self.at),
            Key::Char('\u{17}') => self.drop_word(),
            Key::ArrowUp if self.place > 0 => self.turn(self.place - 1),
            Key::ArrowDown if self.place < self.history.len() => self.turn(self.place + 1),
            Key::Tab => return self.complete(complete),
            Key::Char(c) if !c.is_control() => {
                self.text.insert(self.at, *c);
                self.at += 1;
            }
            _ => {}
        }
        Pressed::Goes
    }

    fn drop_word(&mut self) {
        let before = &self.text[..self.at];
        let end = before.iter().rposition(|c| !c.is_whitespace());
        let from = end.and_then(|end| before[..end].iter().rposition(|c| c.is_whitespace()));
        let from = from.map_or(0, |space| space + 1);
        self.text.drain(from..self.at);
        self.at = from;
    }

    /// Shows a line of the history, or the new one.
    fn turn(&mut self, place: usize) {
        if self.place == self.history.len() {
            self.kept.clone_from(&self.text);
        }
        self.place = place;
        self.text = match self.history.get(place) {
            Some(line) => line.chars().collect(),
            None => std::mem::take(&mut self.kept),
        };
        self.at = self.text.len();
    }

    /// Types what all completions have in common; offers them if that is nothing new.
    fn complete(&mut self, complete: &dyn Fn(&str) -> Completions) -> Pressed {
        let before: String = self.text[..self.at].iter().collect();
        let (from, names) = complete(&before);
        let Some(shared) = common(&names) else {
            return Pressed::Goes;
        };
        let typed = before[from..].chars().count();
        if names.len() > 1 && shared.chars().count() <= typed {
            return Pressed::Offers(names);
        }
        let shared: Vec<char> = shared.chars().collect();
        let begin = self.at - typed;
        self.text.splice(begin..self.at, shared.iter().copied());
        self.at = begin + shared.len();
        Pressed::Goes
    }
}

/// The longest beginning that all names share; none of no names.
fn common(names: &[String]) -> Option<String> {
    let mut shared: Vec<char> = names.first()?.chars().collect();
    for name in names {
        let same = shared
            .iter()
            .zip(name.chars())
            .take_while(|(a, b)| **a == *b);
        let same = same.count();
        shared.truncate(same);
    }
    Some(shared.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(line: &str) -> Completions {
        (line.len(), Vec::new())
    }

    fn typed(line: &mut Line<'_>, text: &str) {
        for c in text.chars() {
            assert_eq!(line.press(&Key::Char(c), &none), Pressed::Goes);
        }
    }

    fn shown(line: &Line<'_>) -> String {
        let mut text: Vec<char> = line.text.clone();
        text.insert(line.at, '|');
        text.into_iter().collect()
    }

    #[test]
    fn keys_edit_the_line() {
        let mut line = Line::new(&[]);
        typed(&mut line, "où est Lyon");
        for (key, after) in [
            (Key::ArrowLeft, "où est Lyo|n"),
            (Key::Backspace, "où est Ly|n"),
            (Key::Del, "où est Ly|"),
            (Key::Del, "où est Ly|"),
            (Key::Char('\u{17}'), "où est |"),
            (Key::Home, "|où est "),
            (Key::Backspace, "|où est "),
            (Key::ArrowRight, "o|ù est "),
            (Key::Char('\u{b}'), "o|"),
            (Key::Char('\u{7}'), "o|"),
            (Key::Char('\u{15}'), "|"),
        ] {
            line.press(&key, &none);
            assert_eq!(shown(&line), after, "{key:?}");
        }
        let end = line.press(&Key::Char('\u{4}'), &none);
        assert_eq!(end, Pressed::Ends(Typed::End));
    }

    #[test]
    fn the_history_is_turned_and_the_new_line_kept() {
        let history = ["one".to_owned(), "two".to_owned()];
        let mut line = Line::new(&history);
        typed(&mut line, "new");
        for (key, after) in [
            (Key::ArrowUp, "two|"),
            (Key::ArrowUp, "one|"),
            (Key::ArrowUp, "one|"),
            (Key::ArrowDown, "two|"),
            (Key::ArrowDown, "new|"),
            (Key::ArrowDown, "new|"),
        ] {
            line.press(&key, &none);
            assert_eq!(shown(&line), after);
        }
    }

    #[test]
    fn what_completions_share_is_typed_and_then_they_are_offered() {
        let names = [
            "San Francisco".to_owned(),
            "San Francisco Giants".to_owned(),
        ];
        let complete = |line: &str| (line.find("San").unwrap(), names.to_vec());
        let mut line = Line::new(&[]);
        typed(&mut line, "who are the San");
        assert_eq!(line.press(&Key::Tab, &complete), Pressed::Goes);
        assert_eq!(shown(&line), "who are the San Francisco|");
        let offered = line.press(&Key::Tab, &complete);
        assert_eq!(offered, Pressed::Offers(names.to_vec()));
        assert_eq!(line.press(&Key::Tab, &none), Pressed::Goes);
    }
}
