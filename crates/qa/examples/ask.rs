//! A table becomes a graph, and a question over it an answer with its proof.
//!
//! ```sh
//! cargo run -p wherefore --example ask
//! ```

use wherefore::graph::{Input, LoadOptions, Store, load};
use wherefore::{PipelineConfig, Question};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let (file, graph) = (folder.path().join("films.tsv"), folder.path().join("films"));
    std::fs::write(
        &file,
        "Heat\tdirected_by\tMichael Mann\nAli\tdirected_by\tMichael Mann\n",
    )?;
    load(
        &[Input::File(file)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )?;

    let store = Store::open(&graph)?;
    let pipeline = PipelineConfig::default().build()?;
    let question = Question::new("Which films did Michael Mann direct?");
    let answer = pipeline.answer(&question, &store, &mut ())?;
    let mut out = String::new();
    for entity in &answer.answers {
        out += &format!("{} ({:.0}%)\n", entity.name, 100.0 * entity.confidence);
        for triple in entity.rationale.iter().map(|at| &answer.evidence[*at]) {
            out += &format!(
                "  {} -> {} -> {}\n",
                triple.head, triple.relation, triple.tail
            );
        }
    }
    std::io::Write::write_all(&mut std::io::stdout(), out.as_bytes())?;
    assert_eq!(answer.answers.len(), 2);
    Ok(())
}
