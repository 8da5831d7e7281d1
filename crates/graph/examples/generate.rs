//! Writes a random graph with Zipf degrees, for trying sizes that no benchmark has.
//!
//! ```text
//! cargo run --release -p wherefore-graph --example generate -- 50000000 nt > big.nt
//! ```
//!
//! Arguments: number of triples, `nt` or `tsv`, seed (1 if none). One entity for six triples, 200
//! relations. Of entities of rank k the degree falls as k^-0.75: the first alone holds about one
//! edge in fifty of a graph of this size.

#[path = "../benches/zipf/mod.rs"]
mod zipf;

use std::io::{self, BufWriter};

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = || io::Error::other("arguments: NUMBER nt|tsv [SEED]");
    let triples = args.next().and_then(|n| n.parse().ok()).ok_or_else(usage)?;
    let format = args
        .next()
        .and_then(|f| zipf::Format::named(&f))
        .ok_or_else(usage)?;
    let seed = args
        .next()
        .map_or(Ok(1), |s| s.parse().map_err(|_| usage()))?;
    zipf::write(
        triples,
        format,
        seed,
        &mut BufWriter::new(io::stdout().lock()),
    )
}
