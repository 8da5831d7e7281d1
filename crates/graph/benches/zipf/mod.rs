//! Random graphs with Zipf degrees: the same number and seed give the same graph.

use std::io::{self, Write};

/// How triples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Nt,
    Tsv,
}

impl Format {
    #[allow(dead_code, reason = "only the example is told the format")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "nt" => Some(Format::Nt),
            "tsv" => Some(Format::Tsv),
            _ => None,
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Evenly between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A rank below `count`, lower ones more often: density k^-0.75.
    fn rank(&mut self, count: u64) -> u64 {
        ((self.unit().powi(4) * count as f64) as u64).min(count - 1)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const SYLLABLES: [&str; 32] = [
    "ba", "be", "bo", "da", "den", "do", "fa", "fe", "ga", "gol", "ha", "hi", "ja", "ka", "ki",
    "lan", "le", "ma", "mi", "mo", "na", "ni", "or", "pa", "per", "ra", "ri", "sa", "si", "ta",
    "to", "vel",
];

/// The name of entity `id`: two made-up words and the number.
pub(crate) fn entity(id: u64, out: &mut String) {
    let mut bits = mix(id ^ 0x5eed);
    for word in 0..2 {
        if word > 0 {
            out.push('_');
        }
        let from = out.len();
        for _ in 0..3 {
            out.push_str(SYLLABLES[(bits & 31) as usize]);
            bits >>= 5;
        }
        out[from..from + 1].make_ascii_uppercase();
    }
    out.push_str(&format!("_{id}"));
}

pub(crate) fn entities(triples: u64) -> u64 {
    (triples / 6).max(4)
}

/// Writes `triples` lines, some of which repeat earlier ones.
pub(crate) fn write(
    triples: u64,
    format: Format,
    seed: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut random = Random(seed);
    let count = entities(triples);
    let (mut head, mut tail) = (String::new(), String::new());
    for _ in 0..triples {
        head.clear();
        tail.clear();
        entity(random.rank(count), &mut head);
        let relation = random.rank(200);
        // tails have hubs of their own
        entity(count - 1 - random.rank(count), &mut tail);
        match format {
            Format::Nt => writeln!(
                out,
                "<http://example.org/entity/{head}> <http://example.org/relation/r{relation}> <http://example.org/entity/{tail}> ."
            )?,
            Format::Tsv => writeln!(out, "{head}\tr{relation}\t{tail}")?,
        }
    }
    out.flush()
}
