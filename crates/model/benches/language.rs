//! How fast does a GGUF file read and write, and which tokens does it choose?
//!
//! Measured on a real file, greedy, alone on the machine:
//!
//! ```text
//! WHEREFORE_GGUF=FILE.gguf cargo bench --bench language -- [PROMPTS.json [OUT.json]]
//! ```
//!
//! PROMPTS.json is a list of texts, taken as they are. Each is read from nothing and 32 tokens are
//! written; then the rates of reading (`prefill`) and writing (`decode`) are printed.
//! `experiments/language-models.py` runs llama.cpp over the same prompts in the same run.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use wherefore_model::LanguageModel;
use wherefore_model::language::{Decoding, Local, Progress, Prompt};

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let Ok(file) = std::env::var("WHEREFORE_GGUF") else {
        println!("skipped: set WHEREFORE_GGUF to a GGUF file");
        return;
    };
    let prompts: Vec<String> = match arguments.first() {
        Some(path) => serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
        None => vec!["The capital of France is".into()],
    };
    let begun = Instant::now();
    let model = Local::open(Path::new(&file)).unwrap();
    println!("opened in {:.2} s", begun.elapsed().as_secs_f64());
    let decoding = Decoding {
        max_tokens: 32,
        ..Decoding::default()
    };
    let (mut read, mut written) = ((0.0, 0.0), (0.0, 0.0));
    let mut results = Vec::new();
    // weights are laid out anew for long and for short reading when they are first used
    if let Some(longest) = prompts.iter().max_by_key(|p| p.len()) {
        let warm_up = Prompt::Plain(longest.clone());
        let two = Decoding {
            max_tokens: 2,
            ..Decoding::default()
        };
        let quiet = &mut |_: Progress<'_>| ControlFlow::Continue(());
        model.complete(&warm_up, &two, quiet).unwrap();
    }
    for (i, prompt) in prompts.iter().enumerate() {
        // another beginning empties the memory
        let empty = Prompt::Plain(format!("{i}"));
        let one = Decoding {
            max_tokens: 1,
            ..Decoding::default()
        };
        let quiet = &mut |_: Progress<'_>| ControlFlow::Continue(());
        model.complete(&empty, &one, quiet).unwrap();
        let prompt = Prompt::Plain(prompt.clone());
        let begun = Instant::now();
        let mut read_at = None;
        let completion = model
            .complete(&prompt, &decoding, &mut |progress| {
                if matches!(progress, Progress::Reading { done, total } if done == total) {
                    read_at = Some(begun.elapsed().as_secs_f64());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        let read_at = read_at.unwrap();
        let all = begun.elapsed().as_secs_f64();
        read.0 += completion.prompt_tokens as f64;
        read.1 += read_at;
        // the first token written comes out of the reading
        written.0 += completion.completion_tokens as f64 - 1.0;
        written.1 += all - read_at;
        results.push(serde_json::json!({
            "text": completion.text,
            "prompt_tokens": model.tokens(&prompt).unwrap(),
        }));
    }
    println!("prefill {:.1} tokens/s", read.0 / read.1);
    println!("decode {:.1} tokens/s", written.0 / written.1);
    if let Some(out) = arguments.get(1) {
        let json = serde_json::json!({
            "prefill": read.0 / read.1,
            "decode": written.0 / written.1,
            "completions": results,
        });
        std::fs::write(out, json.to_string()).unwrap();
    }
}
