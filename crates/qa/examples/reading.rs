use std::time::{Duration, Instant};
use serde_json::Value;
use wherefore::graph::{Graph, Store};
use wherefore::Question;
#[allow(dead_code)] #[path = "../src/read/mod.rs"] mod read;
#[allow(dead_code)] #[path = "../src/words.rs"] mod words;
mod logic { pub use wherefore::logic::*; }
mod link { pub use wherefore::link::Link; #[path = "/work/main/crates/qa/src/link/nationalities.rs"] pub mod nationalities; }
mod error { pub type Result<T, E = wherefore::Error> = std::result::Result<T, E>; }
mod question { pub use wherefore::Question; }
use read::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let store = Store::open(&args[1]).unwrap();
    let known = Known::new(&store).unwrap();
    let w = match std::env::var("WEIGHTS") { Ok(p) => Weights::read(&std::fs::read_to_string(p).unwrap()).unwrap(), _ => Weights::shipped().clone() };
    let name = |e| store.entity_term(e).map(|t| match t { wherefore::graph::Term::Literal(l) => l.value, _ => store.entity_label(e).unwrap().into_owned() }).unwrap();
    if args[2] == "-q" {
        for q in &args[3..] {
            let t = Instant::now();
            let r = read(&Question::new(q.as_str()), &[], &store, &known, &w, Duration::from_secs(5)).unwrap();
            println!("## {q}  {} readings {:?}", r.len(), t.elapsed());
            for p in r.iter().take(8) { println!("{:7.2} {} {:?} unused {:?}", p.score, p.form, match &p.came { Came::Entities(e) => format!("{:?}{}", e.iter().take(5).map(|e| name(*e)).collect::<Vec<_>>(), e.len()), c => format!("{c:?}") }, p.unused);
              if std::env::var("F").is_ok() { println!("   {}", p.told()); } }
        }
        return;
    }
    let verbose = std::env::var("V").is_ok();
    let (mut n, mut right, mut refused, mut wrong, mut beam) = (0, 0, 0, 0, 0);
    let mut kinds: std::collections::BTreeMap<String, [usize; 4]> = Default::default();
    let mut times = vec![];
    for line in std::fs::read_to_string(&args[2]).unwrap().lines() {
        let q: Value = serde_json::from_str(line).unwrap();
        let text = q["question"].as_str().unwrap();
        let kind = q["kind"].as_str().unwrap_or("").to_owned();
        let gold: Vec<Vec<String>> = q["answers"].as_array().unwrap().iter().map(|a| { let mut v: Vec<String> = a["aliases"].as_array().into_iter().flatten().map(|x| x.as_str().unwrap().to_owned()).collect(); v.push(a["name"].as_str().or(a.as_str()).unwrap().to_owned()); v }).collect();
        let t = Instant::now();
        let r = read(&Question::new(text), &[], &store, &known, &w, Duration::from_secs(5)).unwrap();
        times.push(t.elapsed().as_secs_f64() * 1e3);
        let ok = |p: &Proposal| -> bool {
            let got: Vec<Vec<String>> = match &p.came {
                Came::Entities(e) => e.iter().map(|e| vec![name(*e), store.entity_term(*e).unwrap().to_string()]).collect(),
                Came::Number(Some(x)) => vec![vec![format!("{x}"), format!("{x:.2}")]],
                Came::Truth(b) => vec![vec![if *b { "yes".into() } else { "no".into() }]],
                _ => vec![] };
            let m = |a: &[String], b: &[String]| a.iter().any(|x| b.iter().any(|y| x == y || matches!((x.parse::<f64>(), y.parse::<f64>()), (Ok(a), Ok(b)) if (a-b).abs() <= 1e-9*a.abs().max(1.0))));
            !gold.is_empty() && gold.iter().all(|g| got.iter().any(|h| m(g, h))) && got.iter().all(|h| gold.iter().any(|g| m(g, h)))
        };
        n += 1;
        let k = kinds.entry(kind.clone()).or_default();
        k[0] += 1;
        let inb = r.iter().position(|p| ok(p));
        if inb.is_some() { beam += 1; k[2] += 1; }
        let answered = r.first().is_some_and(|p| p.unused.is_empty() && p.is_answer());
        let good = answered && inb == Some(0);
        if good { right += 1; k[1] += 1; } else if answered { wrong += 1; k[3] += 1; } else { refused += 1; }
        if verbose && !good {
            println!("{} [{}] {text} | gold {:?}", if answered { "WRONG" } else { "REFUSED" }, kind, gold.iter().take(4).map(|g| g.last().unwrap()).collect::<Vec<_>>());
            if let Some(p) = r.first() { println!("     {:.2} {} {:?} unused {:?}", p.score, p.form, match &p.came { Came::Entities(e) => format!("{:?}{}", e.iter().take(4).map(|e| name(*e)).collect::<Vec<_>>(), e.len()), c => format!("{c:?}") }, p.unused); }
            if let Some(i) = inb { println!("  ok@{i} {:.2} {} unused {:?}", r[i].score, r[i].form, r[i].unused); }
        }
    }
    times.sort_by(f64::total_cmp);
    for (k, v) in kinds { println!("{:40} n {:4} right {:4} beam {:4} wrong {:4}", k, v[0], v[1], v[2], v[3]); }
    println!("{} n {n} strict {:.3} wrong {:.3} refused {:.3} beam {:.3}  ms p50 {:.1} p95 {:.1} max {:.1}", args[2], right as f64/n as f64, wrong as f64/n as f64, refused as f64/n as f64, beam as f64/n as f64, times[times.len()/2], times[times.len()*95/100], times.last().unwrap());
}
