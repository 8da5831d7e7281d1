//! `wherefore demo`: the sample graph, three questions with their proofs, and then yours.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use wherefore::answer::{Answer, Status};
use wherefore::{Follow, Method, Pipeline, PipelineConfig, Question};
use wherefore_graph::{Graph, RelationId, Trust};

use super::ask::written;
use super::serve::{self, Serve, Served};
use crate::args::Consent;
use crate::errors::{self, Exit};
use crate::open::open;
use crate::output::{Arrows, Output, counted, shown};
use crate::prompt::{Completions, Prompt, Typed};
use crate::world;

/// Ask a sample graph of the world at once: no data, no download, no language model
///
/// Answers three questions with their evidence, then yours, as long as you like; on a terminal with
/// history and completion of names, otherwise line by line from standard input.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore demo
  wherefore demo --serve
  echo 'Which rivers flow through Austria?' | wherefore demo")]
pub(crate) struct Demo {
    /// Open the web page over the sample graph instead
    #[arg(long)]
    pub(crate) serve: bool,
    /// Where to listen; 127.0.0.1:7878 if this is not given
    #[arg(long, value_name = "ADDRESS:PORT", requires = "serve")]
    pub(crate) listen: Option<SocketAddr>,
}

/// What is asked first, to show what can be asked.
const FIRST: [&str; 3] = [
    "What is the currency of the country whose capital is Nairobi?",
    "Which countries border both France and Germany?",
    "What is the highest mountain in Africa?",
];

/// Methods that need neither a language model nor training.
const METHODS: [Method; 2] = [Method::Read, Method::Similarity];

/// Names offered for what was typed.
const OFFERED: usize = 12;

/// Words of the longest name that is completed.
const MOST_WORDS: usize = 5;

/// Triples shown by `:why`.
const SHOWN_TRIPLES: usize = 40;

const HELP: &str = "\
Ask anything about the graph, in plain English, also after the last answer (`And its population?`), or:
  :why           all the evidence of the last answer
  :graph         what the graph holds; `:graph FOLDER` opens another
  :method        the methods; `:method NAME` changes it
  :help          this
  :quit          the end; Ctrl-D does as well
Tab completes names.
";

pub(crate) fn run(args: &Demo, output: &Output) -> anyhow::Result<Exit> {
    if args.serve {
        return serve::serve(&served(args), output);
    }
    let mut session = Session::new(world::NAME)?;
    output.note(
        "graph",
        "countries, cities, rivers, mountains and more, compiled in; `:help` tells what you can type",
    );
    for question in FIRST {
        say(&format!("\n{} {question}\n", output.dim("?")), output)?;
        session.ask(question, output)?;
    }
    say("\n", output)?;
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        typed(&mut session, output)?;
    } else {
        for line in io::stdin().lock().lines() {
            let line = line.context("cannot read standard input")?;
            if !session.line(&line, output)? {
                break;
            }
        }
    }
    Ok(Exit::Done)
}

/// The server over the sample graph.
fn served(args: &Demo) -> Serve {
    Serve {
        served: Served {
            graphs: vec![world::NAME.into()],
            config: None,
            methods: Vec::new(),
            model: None,
            llm: None,
            sign: None,
            consent: Consent::default(),
        },
        listen: args.listen,
        hosts: Vec::new(),
        runs: None,
        feedback: None,
        loads: None,
        workers: None,
        queue: None,
        new_key: None,
    }
}

/// A graph, a method, the last answer, and what the next question follows.
struct Session {
    graph: Arc<dyn Graph>,
    method: Method,
    pipeline: Pipeline,
    last: Option<Answer>,
    follow: Option<Follow>,
}

impl Session {
    fn new(graph: &str) -> anyhow::Result<Self> {
        let graph: Arc<dyn Graph> = Arc::from(open(graph, Trust::Recorded)?);
        let method = PipelineConfig::USUAL;
        let config = PipelineConfig::of(method);
        Ok(Self {
            graph,
            method,
            pipeline: config.build()?,
            last: None,
            follow: None,
        })
    }

    /// Does what a line says. False at the end.
    fn line(&mut self, line: &str, output: &Output) -> anyhow::Result<bool> {
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let done = match word {
            "" => Ok(()),
            ":quit" | ":q" | ":exit" => return Ok(false),
            ":help" | ":h" | "help" => say(HELP, output),
            ":why" => self.why(output),
            ":graph" => self.graph(rest.trim(), output),
            ":method" => self.method(rest.trim(), output),
            word if word.starts_with(':') => say(
                &format!(
                    "there is no `{}`; `:help` lists what there is\n",
                    shown(word)
                ),
                output,
            ),
            _ => self.ask(line, output),
        };
        // a question that cannot be read is no end of the talk
        match done {
            Err(error) if output.json => {
                errors::report(&error, output);
            }
            Err(error) => output.note("error", &format!("{error:#}")),
            Ok(()) => {}
        }
        Ok(true)
    }

    fn ask(&mut self, question: &str, output: &Output) -> anyhow::Result<()> {
        let question = Question::new(question).after(self.follow.clone());
        let answer = self
            .pipeline
            .answer(&question, self.graph.as_ref(), &mut ())?;
        match output.json {
            true => output.print_json(&answer)?,
            false => output.print(&written(&answer, output))?,
        }
        // what was not answered is not followed
        self.follow = Follow::of(&answer).or(self.follow.take());
        self.last = Some(answer);
        Ok(())
    }

    fn why(&self, output: &Output) -> anyhow::Result<()> {
        let Some(answer) = &self.last else {
            return say("nothing was asked yet\n", output);
        };
        let mut text = String::new();
        if answer.status == Status::Abstained {
            let reason = answer.reason.as_deref().unwrap_or("nothing was found");
            text += &format!("no answer was given: {}\n", shown(reason));
        }
        for link in &answer.links {
            text += &format!(
                "`{}` is {} ({:.0}%)\n",
                shown(&link.mention),
                shown(&link.name),
                link.score * 100.0
            );
        }
        let mut arrows = Arrows::default();
        for triple in answer.evidence.iter().take(SHOWN_TRIPLES) {
            let mark = if triple.verified {
                output.green("✓")
            } else {
                output.red("✗")
            };
            text += &format!(
                "  {mark} {:>3.0}%  {}\n",
                triple.score * 100.0,
                arrows.arrow(triple, output)
            );
        }
        let more = answer.evidence.len().saturating_sub(SHOWN_TRIPLES);
        if more > 0 {
            text += &format!("  … and {more} more\n");
        }
        for (stage, ms) in &answer.timings_ms {
            text += &output.dim(&format!("  {stage} {ms:.2} ms\n"));
        }
        say(&text, output)
    }

    fn graph(&mut self, name: &str, output: &Output) -> anyhow::Result<()> {
        if !name.is_empty() {
            self.graph = Arc::from(open(name, Trust::Recorded)?);
            self.last = None;
            self.follow = None;
        }
        let entities = counted(self.graph.entity_bound(), "entity", "entities");
        let mut relations = Vec::new();
        for id in 0..u32::try_from(self.graph.relation_bound()).context("too many relations")? {
            let relation = RelationId(id);
            if !self.graph.naming_relations().contains(&relation) {
                relations.push(shown(&self.graph.relation_label(relation)?).into_owned());
            }
        }
        relations.sort();
        let count = relations.len();
        relations.truncate(60);
        let text = format!(
            "{entities}, values included; {}: {}{}\n",
            counted(count, "relation", "relations"),
            relations.join(", "),
            if count > 60 { ", …" } else { "" }
        );
        say(&text, output)
    }

    fn method(&mut self, name: &str, output: &Output) -> anyhow::Result<()> {
        let all = METHODS.map(Method::name).join(", ");
        if name.is_empty() {
            return say(&format!("{}; there are {all}\n", self.method), output);
        }
        match METHODS.into_iter().find(|method| method.name() == name) {
            Some(method) => {
                self.pipeline = PipelineConfig::of(method).build()?;
                self.method = method;
                say(&format!("{name} answers from now on\n"), output)
            }
            None => {
                let text = format!(
                    "there is no method `{}` here; there are {all}\n",
                    shown(name)
                );
                say(&text, output)
            }
        }
    }
}

/// Writes what is no answer: to people, for with `--json` standard output has answers only.
fn say(text: &str, output: &Output) -> anyhow::Result<()> {
    if !output.json {
        return output.print(text);
    }
    if !output.quiet {
        // nobody is left to tell if this fails
        let _ = io::stderr().write_all(text.as_bytes());
    }
    Ok(())
}

/// Reads lines as they are typed, with history and completion.
fn typed(session: &mut Session, output: &Output) -> anyhow::Result<()> {
    let mut prompt = Prompt::new("? ");
    loop {
        let graph = Arc::clone(&session.graph);
        let complete = |line: &str| completions(line, graph.as_ref());
        match prompt
            .read(&complete)
            .context("cannot read from the terminal")?
        {
            Typed::Line(line) => {
                if !session.line(&line, output)? {
                    return Ok(());
                }
            }
            // Ctrl-C leaves the line, not the talk
            Typed::GivenUp => {}
            Typed::End => return Ok(()),
        }
    }
}

/// What the end of a line may become, and where that end begins: the longest run of its last words
/// that some names begin with.
fn completions(line: &str, graph: &dyn Graph) -> Completions {
    if line.starts_with(':') {
        let commands = [":graph", ":help", ":method", ":quit", ":why"];
        let fitting = commands.iter().filter(|c| c.starts_with(line));
        return (0, fitting.map(|c| (*c).to_owned()).collect());
    }
    let starts: Vec<usize> = (line.char_indices())
        .filter(|&(i, c)| {
            !c.is_whitespace() && (i == 0 || line[..i].ends_with(char::is_whitespace))
        })
        .map(|(i, _)| i)
        .collect();
    let last = starts.len().saturating_sub(MOST_WORDS);
    for &from in &starts[last..] {
        let typed = &line[from..];
        if typed.chars().count() < 2 {
            continue;
        }
        // a graph that cannot be read offers nothing; asking will say why
        let found = graph
            .entities_with_prefix(typed, OFFERED)
            .unwrap_or_default();
        let labels: BTreeSet<String> = (found.into_iter())
            .filter_map(|e| Some(graph.entity_label(e).ok()?.into_owned()))
            .collect();
        if !labels.is_empty() {
            return (from, labels.into_iter().collect());
        }
    }
    (line.len(), Vec::new())
}

#[cfg(test)]
mod tests {
    use wherefore_graph::toy;

    use super::*;

    #[test]
    fn the_longest_beginning_of_a_name_is_completed() {
        let graph = toy::graph();
        let complete = |line: &str| completions(line, &graph);
        let (from, names) = complete("where are the San Fran");
        assert_eq!(from, 14);
        assert_eq!(names, ["San Francisco", "San Francisco Giants"]);
        assert_eq!(complete(":w"), (0, vec![":why".to_owned()]));
        assert_eq!(complete("xyzzy").1, [""; 0]);
        assert_eq!(complete(""), (0, Vec::new()));
        assert_eq!(complete("wo é").1, [""; 0]);
    }
}
