//! The machine that knows which byte may follow.
//!
//! It accepts what [`Form`](crate::logic::Form) prints in the plain notation, with one space where
//! a space stands, of the operators that benchmarks have (`JOIN`, `AND`, `COUNT`, `ARGMAX`, `ARGMIN`,
//! `lt`, `le`, `gt`, `ge`, `TC`): a stack of what is still to come, and the name or constant that is
//! being written. Every prefix that it accepts can be finished, but for dates that no calendar has.

use std::sync::Arc;

use super::trie::Trie;
use crate::logic::form::MAX_DEPTH;
use crate::logic::pieces::is_bare_value;
use crate::logic::{bracketed_name, written_name};

/// Which names may stand in a place.
#[derive(Clone, Debug, Default)]
pub enum Lexicon {
    /// Any: relations as words of letters, digits, `.` and `_`, entities in brackets.
    #[default]
    Any,
    /// These alone, as they are written.
    Listed(Arc<Trie>),
}

impl Lexicon {
    /// These names alone, as [`written_name`] writes them.
    pub fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Listed(Arc::new(Trie::new(
            names.into_iter().map(|name| written_name(name.as_ref())),
        )))
    }

    /// These names alone, as [`bracketed_name`] writes them.
    pub fn bracketed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Listed(Arc::new(Trie::new(
            names.into_iter().map(|name| bracketed_name(name.as_ref())),
        )))
    }

    fn is_empty(&self) -> bool {
        matches!(self, Lexicon::Listed(trie) if trie.is_empty())
    }
}

/// What may be written.
#[derive(Clone, Debug)]
pub struct Grammar {
    /// Names below `JOIN`.
    pub entities: Lexicon,
    /// Names that stand alone below `AND`, `COUNT`, `ARGMAX`, `ARGMIN` and `TC`.
    pub classes: Lexicon,
    /// Relations.
    pub relations: Lexicon,
    /// Whether `COUNT`, `ARGMAX`, `ARGMIN`, `TC` and comparisons may stand.
    pub functions: bool,
    /// Whether constants may stand below `JOIN`.
    pub constants: bool,
    /// Deepest nesting.
    pub max_depth: usize,
    /// Most operands of an `AND`.
    pub max_operands: usize,
}

impl Default for Grammar {
    /// Any well-formed form of at most 8 levels.
    fn default() -> Self {
        Self {
            entities: Lexicon::Any,
            classes: Lexicon::Any,
            relations: Lexicon::Any,
            functions: true,
            constants: true,
            max_depth: 8,
            max_operands: 3,
        }
    }
}

/// Where a prefix stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// What is still to come, the next thing last.
    stack: Vec<Frame>,
    /// What is being written; several readings until one is left.
    readings: Vec<Reading>,
    /// The constant that is being written.
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Frame {
    Byte(u8),
    /// A form `depth` levels below the root; below `JOIN` or as an operand.
    Form {
        depth: u8,
        below_join: bool,
    },
    /// After `(`.
    Operator {
        depth: u8,
    },
    Relation,
    Way {
        depth: u8,
    },
    Constant,
    Time,
    /// After `(` where a relation or a way stands.
    Turn {
        depth: Option<u8>,
    },
    /// A relation's name alone.
    RelationName,
    /// More operands of an `AND`, or its end.
    More {
        depth: u8,
        operands: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reading {
    Operator {
        depth: u8,
        at: u8,
        which: u8,
    },
    Turn {
        depth: Option<u8>,
        at: u8,
        which: u8,
    },
    Entity(u32),
    Class(u32),
    Relation(u32),
    /// A word of letters, digits, `.` and `_`.
    Word,
    /// `[…]`: whether something but spaces stands in it yet, and whether it is closed.
    Bracket {
        filled: bool,
        closed: bool,
    },
    /// A number or date; whether only dates will do.
    Bare {
        time: bool,
    },
    /// `NOW`, so many letters of it.
    Now(u8),
    /// `"…"`, and whether it is closed.
    Quote {
        closed: bool,
    },
}

const OPERATORS: [&str; 9] = [
    "JOIN", "AND", "COUNT", "ARGMAX", "ARGMIN", "lt", "le", "gt", "ge",
];
const TC: &str = "TC";
const TURNS: [&str; 2] = ["R", "JOIN"];
/// The longest number or date.
const MAX_BARE: usize = 24;

fn operator(which: u8) -> &'static str {
    OPERATORS.get(usize::from(which)).copied().unwrap_or(TC)
}

impl Grammar {
    /// Before the first byte.
    pub fn start(&self) -> State {
        State {
            stack: vec![Frame::Operator { depth: 0 }, Frame::Byte(b'(')],
            readings: Vec::new(),
            text: Vec::new(),
        }
    }

    /// The state after a byte; none if it may not stand there.
    pub fn next(&self, state: &State, byte: u8) -> Option<State> {
        let mut next = state.clone();
        self.advance(&mut next, byte).then_some(next)
    }

    /// The state after some bytes.
    pub fn read(&self, state: &State, bytes: &[u8]) -> Option<State> {
        let mut next = state.clone();
        bytes
            .iter()
            .all(|&byte| self.advance(&mut next, byte))
            .then_some(next)
    }

    /// Whether a form may end here.
    pub fn is_whole(&self, state: &State) -> bool {
        state.stack.is_empty() && (state.readings.is_empty() || self.may_end(state))
    }

    fn advance(&self, state: &mut State, byte: u8) -> bool {
        if !state.readings.is_empty() {
            let mut kept = Vec::with_capacity(state.readings.len());
            let mut opened = None;
            for &reading in &state.readings {
                match self.follow(reading, &state.text, byte) {
                    Follow::Dead => {}
                    Follow::On(reading) => kept.push(reading),
                    Follow::Done(frames) => opened = Some(frames),
                }
            }
            if let Some(frames) = opened {
                // an operator is complete: none is the beginning of another
                state.readings.clear();
                state.text.clear();
                state.stack.extend(frames.into_iter().rev());
                return true;
            }
            if !kept.is_empty() {
                state.readings = kept;
                state.text.push(byte);
                return true;
            }
            if !self.may_end(state) {
                return false;
            }
            state.readings.clear();
            state.text.clear();
        }
        let Some(frame) = state.stack.pop() else {
            return false;
        };
        match frame {
            Frame::Byte(wanted) => byte == wanted,
            Frame::More { depth, operands } => match byte {
                b')' => true,
                b' ' if usize::from(operands) < self.max_operands => {
                    state.stack.push(Frame::More {
                        depth,
                        operands: operands + 1,
                    });
                    state.stack.push(Frame::Form {
                        depth,
                        below_join: false,
                    });
                    true
                }
                _ => false,
            },
            Frame::Form { depth, .. } if byte == b'(' => {
                let fits = usize::from(depth) < self.max_depth.min(MAX_DEPTH);
                state.stack.push(Frame::Operator { depth });
                fits
            }
            Frame::Relation if byte == b'(' => {
                state.stack.push(Frame::Turn { depth: None });
                true
            }
            Frame::Way { depth } if byte == b'(' => {
                state.stack.push(Frame::Turn { depth: Some(depth) });
                true
            }
            frame => {
                let begun = self.begin(frame);
                let mut kept = Vec::new();
                for reading in begun {
                    match self.follow(reading, &[], byte) {
                        Follow::Dead => {}
                        Follow::On(reading) => kept.push(reading),
                        Follow::Done(frames) => {
                            state.stack.extend(frames.into_iter().rev());
                            return true;
                        }
                    }
                }
                state.text.clear();
                state.text.push(byte);
                state.readings = kept;
                !state.readings.is_empty()
            }
        }
    }

    /// What a frame may be written as, before its first byte.
    fn begin(&self, frame: Frame) -> Vec<Reading> {
        match frame {
            Frame::Operator { depth } => (0..=OPERATORS.len() as u8)
                .filter(|&which| self.may_open(which, depth))
                .map(|which| Reading::Operator {
                    depth,
                    at: 0,
                    which,
                })
                .collect(),
            Frame::Turn { depth } => {
                let deeper = depth.is_some_and(|d| usize::from(d) + 1 < self.max_depth);
                let turns = if deeper { 2 } else { 1 };
                (0..turns)
                    .map(|which| Reading::Turn {
                        depth,
                        at: 0,
                        which,
                    })
                    .collect()
            }
            Frame::Form {
                below_join: true, ..
            } => {
                let mut readings = vec![match self.entities {
                    Lexicon::Any => Reading::Bracket {
                        filled: false,
                        closed: false,
                    },
                    Lexicon::Listed(_) => Reading::Entity(Trie::ROOT),
                }];
                if self.constants {
                    readings.push(Reading::Bare { time: false });
                    readings.push(Reading::Quote { closed: false });
                }
                readings
            }
            Frame::Form { .. } => vec![match self.classes {
                Lexicon::Any => Reading::Bracket {
                    filled: false,
                    closed: false,
                },
                Lexicon::Listed(_) => Reading::Class(Trie::ROOT),
            }],
            Frame::Relation | Frame::RelationName | Frame::Way { .. } => {
                vec![match self.relations {
                    Lexicon::Any => Reading::Word,
                    Lexicon::Listed(_) => Reading::Relation(Trie::ROOT),
                }]
            }
            Frame::Constant => vec![Reading::Bare { time: false }],
            Frame::Time => vec![Reading::Bare { time: true }, Reading::Now(0)],
            Frame::Byte(_) | Frame::More { .. } => Vec::new(),
        }
    }

    /// Whether an operator can be opened so that it can also be closed.
    fn may_open(&self, which: u8, depth: u8) -> bool {
        let below = usize::from(depth) + 1 < self.max_depth.min(MAX_DEPTH);
        // an operand is a class, or a form one level deeper
        let operand = below || !self.classes.is_empty();
        let related = !self.relations.is_empty();
        match operator(which) {
            "JOIN" => related && (below || self.constants || !self.entities.is_empty()),
            "AND" => operand,
            "COUNT" => self.functions && depth == 0 && operand,
            "ARGMAX" | "ARGMIN" | TC => self.functions && related && operand,
            _ => self.functions && related,
        }
    }

    fn follow(&self, reading: Reading, text: &[u8], byte: u8) -> Follow {
        let spelt = |word: &str, at: u8| -> Option<bool> {
            let bytes = word.as_bytes();
            (bytes.get(usize::from(at)) == Some(&byte)).then(|| usize::from(at) + 1 == bytes.len())
        };
        let listed = |lexicon: &Lexicon, node, make: fn(u32) -> Reading| match lexicon {
            Lexicon::Listed(trie) => match trie.next(node, byte) {
                Some(node) => Follow::On(make(node)),
                None => Follow::Dead,
            },
            Lexicon::Any => Follow::Dead,
        };
        match reading {
            Reading::Operator { depth, at, which } => match spelt(operator(which), at) {
                None => Follow::Dead,
                Some(false) => Follow::On(Reading::Operator {
                    depth,
                    at: at + 1,
                    which,
                }),
                Some(true) => Follow::Done(operands(which, depth)),
            },
            Reading::Turn { depth, at, which } => match spelt(TURNS[usize::from(which)], at) {
                None => Follow::Dead,
                Some(false) => Follow::On(Reading::Turn {
                    depth,
                    at: at + 1,
                    which,
                }),
                Some(true) => Follow::Done(match (which, depth) {
                    (1, Some(depth)) => vec![
                        Frame::Byte(b' '),
                        Frame::Relation,
                        Frame::Byte(b' '),
                        Frame::Way { depth: depth + 1 },
                        Frame::Byte(b')'),
                    ],
                    _ => vec![Frame::Byte(b' '), Frame::RelationName, Frame::Byte(b')')],
                }),
            },
            Reading::Entity(node) => listed(&self.entities, node, Reading::Entity),
            Reading::Class(node) => listed(&self.classes, node, Reading::Class),
            Reading::Relation(node) => listed(&self.relations, node, Reading::Relation),
            Reading::Word => {
                let fits = byte.is_ascii_alphabetic()
                    || !text.is_empty() && (byte.is_ascii_digit() || matches!(byte, b'.' | b'_'));
                Follow::on(fits, Reading::Word)
            }
            Reading::Bracket { closed: true, .. } => Follow::Dead,
            Reading::Bracket { filled, .. } => match (text.is_empty(), byte) {
                (true, b'[') => Follow::On(reading),
                (true, _) | (_, b'[' | b'\\' | 0..=31 | 127..) => Follow::Dead,
                (_, b']') => Follow::on(
                    filled,
                    Reading::Bracket {
                        filled,
                        closed: true,
                    },
                ),
                // quotes in brackets are AMAR's constants
                (_, b'"') => Follow::Dead,
                (_, byte) => Follow::On(Reading::Bracket {
                    filled: filled || byte != b' ',
                    closed: false,
                }),
            },
            Reading::Bare { time } => {
                Follow::on(text.len() < MAX_BARE && extends(text, byte, time), reading)
            }
            Reading::Now(at) => match spelt("NOW", at) {
                Some(_) => Follow::On(Reading::Now(at + 1)),
                None => Follow::Dead,
            },
            Reading::Quote { closed: true } => Follow::Dead,
            Reading::Quote { .. } => match (text.is_empty(), byte) {
                (true, b'"') => Follow::On(reading),
                (true, _) | (_, b'\\' | 0..=31 | 127..) => Follow::Dead,
                (_, b'"') => Follow::On(Reading::Quote { closed: true }),
                _ => Follow::On(reading),
            },
        }
    }

    /// Whether what is being written may end here.
    fn may_end(&self, state: &State) -> bool {
        let listed = |lexicon: &Lexicon, node| match lexicon {
            Lexicon::Listed(trie) => trie.is_end(node),
            Lexicon::Any => false,
        };
        state.readings.iter().any(|reading| match *reading {
            Reading::Operator { .. } | Reading::Turn { .. } => false,
            Reading::Entity(node) => listed(&self.entities, node),
            Reading::Class(node) => listed(&self.classes, node),
            Reading::Relation(node) => listed(&self.relations, node),
            Reading::Word => true,
            Reading::Bracket { closed, .. } | Reading::Quote { closed } => closed,
            Reading::Bare { time } => std::str::from_utf8(&state.text).is_ok_and(|text| {
                is_bare_value(text) && (!time || crate::logic::Moment::parse(text).is_some())
            }),
            Reading::Now(at) => at == 3,
        })
    }
}

enum Follow {
    Dead,
    On(Reading),
    /// An operator is complete; this is what comes then.
    Done(Vec<Frame>),
}

impl Follow {
    fn on(fits: bool, reading: Reading) -> Self {
        if fits {
            Follow::On(reading)
        } else {
            Follow::Dead
        }
    }
}

fn operands(which: u8, depth: u8) -> Vec<Frame> {
    let space = Frame::Byte(b' ');
    let close = Frame::Byte(b')');
    let below = |below_join| Frame::Form {
        depth: depth + 1,
        below_join,
    };
    let way = Frame::Way { depth: depth + 1 };
    match operator(which) {
        "JOIN" => vec![space, Frame::Relation, space, below(true), close],
        "AND" => {
            let more = Frame::More {
                depth: depth + 1,
                operands: 2,
            };
            vec![space, below(false), space, below(false), more]
        }
        "COUNT" => vec![space, below(false), close],
        "ARGMAX" | "ARGMIN" => vec![space, below(false), space, way, close],
        TC => vec![
            space,
            below(false),
            space,
            Frame::Relation,
            space,
            Frame::Time,
            close,
        ],
        _ => vec![space, way, space, Frame::Constant, close],
    }
}

/// Whether a number or a date can go on with this byte.
fn extends(text: &[u8], byte: u8, time: bool) -> bool {
    let digits = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let dashes = text.iter().skip(1).filter(|&&b| b == b'-').count();
    let is_date = dashes > 0;
    let has_dot = text.contains(&b'.');
    match byte {
        b'-' if text.is_empty() => !time,
        // the year has four digits, months and days two
        b'-' => {
            !has_dot
                && text[0] != b'-'
                && (dashes == 0 && text.len() == 4 || dashes == 1 && digits(text) == 2)
        }
        b'.' => !time && !has_dot && !is_date && digits(text) > 0,
        b'0'..=b'9' if is_date => {
            let first = text.last().filter(|b| b.is_ascii_digit());
            match (digits(text), dashes, first) {
                (0, 1, _) => byte <= b'1',
                (0, ..) => byte <= b'3',
                (1, 1, Some(b'0')) | (1, 2, Some(b'0')) => byte >= b'1',
                (1, 1, _) => byte <= b'2',
                (1, _, Some(b'3')) => byte <= b'1',
                (1, ..) => true,
                _ => false,
            }
        }
        b'0'..=b'9' => !time || text.len() < 4,
        _ => false,
    }
}
