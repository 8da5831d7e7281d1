//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use wherefore_graph::Trust;

/// Answers plain-language questions over your own knowledge graph, and proves each answer with
/// triples that were looked up in the graph again.
#[derive(Debug, Parser)]
#[command(
    name = "wherefore",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Exit status: 0 done; 1 done, and the answer is no; 2 something is wrong with what was given;
3 wherefore itself failed. Results go to standard output, all else to standard error.

Try it:
  wherefore demo"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Global {
    /// Write the result, and errors, as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Write nothing but the result and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// Options of the commands that can ask a language model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Language model")]
pub(crate) struct Llm {
    /// Let a language model answer from the evidence, with one call: a GGUF file, or URL#MODEL of
    /// an OpenAI-compatible server (its key comes from the environment, `WHEREFORE_API_KEY`)
    #[arg(long, value_name = "MODEL")]
    pub(crate) llm: Option<String>,
    /// Make at most so many calls for a question
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u32>,
    /// Read and write at most so many tokens for a question
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Stop a language model after so many milliseconds on a question
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_ms: Option<u64>,
    /// Neither use nor keep completions on disk
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Append every completion to a file, which `--llm script:FILE` replays
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Give answers that nothing in the graph proves too, marked as such
    #[arg(long)]
    pub(crate) keep_ungrounded: bool,
}

/// Options of the commands that open a graph.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Consent {
    /// Trust the service file that the graph names or holds, for this once
    #[arg(long)]
    pub(crate) trust: bool,
}

impl Consent {
    pub(crate) fn trust(self) -> Trust {
        match self.trust {
            true => Trust::Given,
            false => Trust::Recorded,
        }
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Ask(Ask),
    Load(Load),
    /// Add triples to a graph, at once and for good
    ///
    /// The change is on the disk when the command ends, and whoever asks after it sees it.
    Add(crate::commands::change::Change),
    /// Remove triples from a graph, at once and for good
    ///
    /// The change is on the disk when the command ends, and whoever asks after it sees it.
    Remove(crate::commands::change::Change),
    Compact(crate::commands::compact::Compact),
    Repair(crate::commands::repair::Repair),
    Diff(crate::commands::diff::Diff),
    Index(Index),
    Info(Info),
    Sparql(Sparql),
    #[command(hide = true)]
    SparqlWorker(SparqlWorker),
    Trust(TrustService),
    Logic(Logic),
    Link(Link),
    Questions(Questions),
    Train(Train),
    Adapt(crate::commands::adapt::Adapt),
    Label(Label),
    Eval(Eval),
    Score(Score),
    Report(Report),
    Calibrate(crate::commands::calibrate::Calibrate),
    Conformal(crate::commands::conformal::Conformal),
    Verify(Verify),
    Keygen(Keygen),
    Model(Model),
    Serve(Serve),
    Mcp(Mcp),
    Completions(Completions),
    Man(Man),
}

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

/// Draft training questions for a graph from its own paths and relation names
///
/// For those who have a graph and no questions: what comes out, `wherefore train` reads. Written
/// by hand, or asked by people, questions are better; mix them in as you get them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore questions movies --out drafts.jsonl
  wherefore train qr-gat --graph movies --questions drafts.jsonl --out ckpt")]
pub(crate) struct Questions {
    /// A graph folder, `@world` or `@toy`
    pub(crate) graph: String,
    /// The file to write; standard output if none is given
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// The longest path, in relations
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub(crate) hops: u32,
    /// Leave out questions with more answers
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_answers: u32,
    /// Seed of what is asked about and in which words
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Write the completions of a shell to standard output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore completions bash > ~/.local/share/bash-completion/completions/wherefore")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages, one for each command, into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder; without one the main page goes to standard output
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// Answer a question, with the triples that prove the answer
///
/// Exit status 1 means that there is no answer: nothing in the graph bears on the question.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore ask @toy 'Where was the coach of the San Francisco Giants born?'
  wherefore ask movies 'Who directed it?' --topic 'The Matrix' --json
  wherefore ask @world 'Which countries border Kenya?' --json > kenya.json
  wherefore ask @world 'Which of these border Uganda?' --follow kenya.json
  wherefore ask movies 'Who directed The Matrix?' --llm qwen2.5-1.5b.gguf
  wherefore ask movies 'Who directed The Matrix?' --llm http://localhost:8080/v1#qwen2.5
  echo 'Whose mascot is Lou Seal?' | wherefore ask @toy -")]
pub(crate) struct Ask {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: String,
    /// The question, or `-` to read it from standard input
    pub(crate) question: String,
    /// An entity that the question is about, instead of looking for names in it; repeatable
    #[arg(long = "topic", value_name = "NAME")]
    pub(crate) topics: Vec<String>,
    /// Take this reading of the question, as the answer numbers them (read)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reading: Option<u32>,
    /// Read the question after the one that this file answers, saved with `--json` (read): `it`,
    /// `these`, `What about …?`
    #[arg(long, value_name = "ANSWER")]
    pub(crate) follow: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wished: Wished,
    /// Answer as many readings as it takes to have the right one among them this often, from 0 to 1,
    /// by what `wherefore conformal` has seen of the graph (read)
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["reading", "precision"])]
    pub(crate) coverage: Option<f32>,
    /// A file of words and the entities that they mean, between tabs; `-` for none
    #[arg(long, value_name = "FILE")]
    pub(crate) aliases: Option<PathBuf>,
    /// The method, with its usual settings
    #[arg(long, value_name = "NAME", value_parser = methods(), conflicts_with = "config")]
    pub(crate) method: Option<String>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A checkpoint made by `wherefore train`
    #[arg(long, value_name = "CKPT")]
    pub(crate) model: Option<PathBuf>,
    /// Read at most this many triples as evidence
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top_k: Option<u32>,
    /// Follow chains of evidence for at most this many steps; 0 means any number (`organize = chains`)
    #[arg(long, value_name = "N")]
    pub(crate) max_length: Option<usize>,
    /// Write a page with the evidence as a picture: topics purple, answers green
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also tell what each layer of the network did (gnn2r)
    #[arg(long)]
    pub(crate) explain: bool,
    /// Maximum requests for the question, where a SPARQL service holds the graph
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,
    /// Sign the answer with this key, made by `wherefore keygen`
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) llm: Llm,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// How sure answers have to be.
#[derive(Debug, clap::Args)]
pub(crate) struct Wished {
    /// Refuse what is not sure enough for this share of answers to be right, from 0 to 1; 0 refuses
    /// nothing that is found
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<f32>,
}

/// Build a graph folder from files
///
/// Reads N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD, TSV, CSV, `head|relation|tail` lines,
/// JSON lines and JSON arrays, plain or packed with gzip, zstd or xz, and SQLite databases and Excel
/// workbooks. The folder appears when all is done; a graph that is replaced stays whole until then.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore load movies.nt.gz --out movies
  wherefore load kb.txt --format pipe --out metaqa
  wherefore load train.txt valid.txt --names entity_names.tsv --out fb15k
  wherefore load staff.csv --wide --split ';' --out company
  wherefore load shop.sqlite --out shop
  zcat dump.nq.gz | wherefore load - --format nq --memory 8G --out dump")]
pub(crate) struct Load {
    /// Files to load together, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The graph folder to make
    #[arg(long, value_name = "GRAPH")]
    pub(crate) out: PathBuf,
    /// Put the new graph into the place of the one that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// The format, where names do not tell: nt, nq, ttl, trig, rdf, jsonld, tsv, csv, pipe, jsonl,
    /// json, sqlite, xlsx
    #[arg(long, value_parser = crate::commands::load::parse_format)]
    pub(crate) format: Option<wherefore_graph::Format>,
    /// Columns of a table that hold head, relation and tail, by number or header name
    #[arg(long, value_name = "H,R,T")]
    pub(crate) columns: Option<String>,
    /// Make numbers, dates and quoted texts among a table's tails literals instead of names
    #[arg(long)]
    pub(crate) typed: bool,
    /// A table, or JSON, in which each row is one thing and its columns are relations; numbers and
    /// dates become literals
    #[arg(long, conflicts_with_all = ["columns", "typed"])]
    pub(crate) wide: bool,
    /// With `--wide`: the column that names the thing, by number or header name; the first if none
    /// is given
    #[arg(long, value_name = "COLUMN", requires = "wide")]
    pub(crate) name_column: Option<String>,
    /// With `--wide`: what stands between several values in one cell
    #[arg(long, value_name = "SEPARATOR", requires = "wide")]
    pub(crate) split: Option<String>,
    /// With `--wide`: the class of the rows; what the file is called if none is given, unless a
    /// column `type` says it; `--class ''` for none
    #[arg(long, value_name = "CLASS", requires = "wide")]
    pub(crate) class: Option<String>,
    /// A predicate that gives labels, before rdfs:label, skos:prefLabel, schema:name and foaf:name;
    /// repeatable
    #[arg(long = "label", value_name = "PREDICATE")]
    pub(crate) labels: Vec<String>,
    /// A predicate that gives further names, beside skos:altLabel and schema:alternateName;
    /// repeatable
    #[arg(long = "alias", value_name = "PREDICATE")]
    pub(crate) aliases: Vec<String>,
    /// A table of entities and their names, between tabs; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) names: Vec<PathBuf>,
    /// The language in which labels are preferred
    #[arg(long, value_name = "TAG", default_value = "en")]
    pub(crate) language: String,
    /// What relative IRIs in Turtle, TriG, RDF/XML and JSON-LD are relative to, until a file says it
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Memory to keep to, more or less; beyond it, sorting goes through the disk
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = crate::commands::load::parse_memory)]
    pub(crate) memory: usize,
    /// Threads to work with; 0 means one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Stop at the first malformed line
    #[arg(long, conflicts_with = "max_errors")]
    pub(crate) strict: bool,
    /// Stop when more lines than this are malformed
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) max_errors: u64,
}

/// Make a graph searchable by meaning and by words
///
/// Writes vectors of its labels, and a full-text index, into the graph folder. When the graph
/// was loaded again, only new and changed labels are encoded. A build that was stopped goes on
/// where it was when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore index movies
  wherefore index movies --encoder models/all-MiniLM-L6-v2 --triples")]
pub(crate) struct Index {
    /// A graph folder made by `wherefore load`, or `@world`
    pub(crate) graph: PathBuf,
    /// What turns texts into vectors: `static`, `hashing`, a model folder or an added model
    #[arg(long, value_name = "E", default_value = "static")]
    pub(crate) encoder: String,
    /// Also make a vector for each triple
    #[arg(long)]
    pub(crate) triples: bool,
    /// Leave the full-text index out
    #[arg(long)]
    pub(crate) no_text: bool,
    /// For a SPARQL service: the folder of its label index, by which it is then asked
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// For a SPARQL service: put the new label index into the place of the one that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Instead, compute what this checkpoint needs of the graph whatever is asked
    #[arg(long, value_name = "CKPT", conflicts_with_all = ["triples", "no_text", "encoder"])]
    pub(crate) model: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Show what a graph holds: counts, relations with examples, degrees, sizes
#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: PathBuf,
    /// Show instead what it speaks of: its classes, and which relations join them; of a SPARQL
    /// service too
    #[arg(long, conflicts_with = "check")]
    pub(crate) schema: bool,
    /// Read all files, the change log and the index, and verify their checksums
    #[arg(long)]
    pub(crate) check: bool,
    /// Show this many relations, the most frequent first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) relations: usize,
    /// Show all relations
    #[arg(long, conflicts_with = "relations")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Run a SPARQL 1.1 query over a graph, or write the one that answers a question
///
/// Names that are not IRIs are written `<name:Forrest%20Gump>`, or `:starred_actors` for short.
/// `ASK` that finds nothing ends with exit status 1, and so does a question that is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore sparql movies 'SELECT ?film WHERE { ?film :directed_by <name:Robert%20Zemeckis> }'
  wherefore sparql movies --file query.rq --results csv > films.csv
  wherefore sparql movies --question 'who directed The Matrix?'
  wherefore sparql movies --question 'who directed The Matrix?' --run")]
pub(crate) struct Sparql {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: PathBuf,
    /// The query, or `-` to read it from standard input
    #[arg(required_unless_present_any = ["file", "question"])]
    pub(crate) query: Option<String>,
    /// Read the query from a file
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    pub(crate) file: Option<PathBuf>,
    /// Print the query that answers this question
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["query", "file"])]
    pub(crate) question: Option<String>,
    /// With `--question`: run the query instead of printing it
    #[arg(long, requires = "question", conflicts_with_all = ["query", "file"])]
    pub(crate) run: bool,
    /// How results are written; a table unless `--json` is given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) results: Option<crate::commands::sparql::Results>,
    /// Stop after so many seconds; 0 means never
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Stop when the query needs more memory than this; the graph itself does not count
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = crate::commands::load::parse_memory)]
    pub(crate) memory: usize,
    /// Give at most this many rows
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Trust the service file of a graph folder, or list those that are trusted
///
/// A service file says where questions are sent, and which environment variables go along; it may
/// lie in a folder that somebody else made. It counts once it is trusted, until it is changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore trust films
  wherefore trust films.toml
  wherefore trust films --revoke
  wherefore trust")]
pub(crate) struct TrustService {
    /// A folder with a `service.toml`, or a service file; without one, the list is shown
    pub(crate) graph: Option<PathBuf>,
    /// Trust it no longer
    #[arg(long, requires = "graph")]
    pub(crate) revoke: bool,
}

/// Run the SPARQL queries that another process sends, within limits that hold for this one
#[derive(Debug, clap::Args)]
pub(crate) struct SparqlWorker {
    /// Bytes that a query may allocate
    pub(crate) memory: u64,
}

/// Read, explain and run a logical form
///
/// The form's normal form, its English, its SPARQL, and the entities that it stands for with the
/// triples that made them match. Exit status 1 means that nothing matches.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore logic @toy '(JOIN (R won) [San Francisco Giants])'
  wherefore logic @toy '(COUNT (JOIN (R won) (JOIN (R mascot_of) [Lou Seal])))' --json
  wherefore logic freebase --questions webqsp_test.jsonl
  wherefore logic freebase --aspects 'who coaches the giants' --model relations")]
pub(crate) struct Logic {
    /// A graph folder made by `wherefore load`, or `@toy`, the built-in sample
    pub(crate) graph: String,
    /// The form, or `-` to read it from standard input
    pub(crate) form: Option<String>,
    /// Run the gold forms of a file of questions instead, and count what becomes of them
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    pub(crate) questions: Option<PathBuf>,
    /// The format of the questions, where it is not told by their content
    #[arg(long, value_name = "FORMAT", requires = "questions")]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// Retrieve what a form of this question would be written from: entities, relations, documents
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["form", "questions"])]
    pub(crate) aspects: Option<String>,
    /// With `--questions`: how well the aspects are retrieved
    #[arg(long, requires = "questions")]
    pub(crate) recall: bool,
    /// The checkpoint of `wherefore train relations` that ranks relations; the built-in matcher
    /// does without one. With `--questions` a checkpoint of `wherefore train amar`: forms are
    /// written by it, and counted
    #[arg(long, value_name = "CKPT")]
    pub(crate) model: Option<PathBuf>,
    /// With a checkpoint of `amar`: its language model, where it lies elsewhere than in training
    #[arg(long, value_name = "FILE", requires = "model")]
    pub(crate) llm: Option<PathBuf>,
    /// With a checkpoint of `amar`: where to compute: `cpu`, `cuda` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// With a checkpoint of `amar`: tell it the gold topics instead of linking the question
    #[arg(long, requires = "model")]
    pub(crate) gold_entities: bool,
    /// With a checkpoint of `amar`: forms kept at each step
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) beams: u32,
    /// With a checkpoint of `amar`: questions that are written for at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) batch: u32,
    /// What `NOW` means, as a date; today unless given
    #[arg(long, value_name = "DATE")]
    pub(crate) now: Option<String>,
    /// Stop a form after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Largest set that a form may lead to
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) max_rows: usize,
    /// Show at most so many answers, or run so many questions
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// `pna` with relations in its messages.
pub(crate) const PNA_RELATIONS: &str = "pna-relations";

/// Train a retriever from questions and their answers
///
/// The best network so far is always in `--out`. A training that was stopped goes on where it was
/// when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore train qr-gat --graph metaqa --questions qa_train.txt --valid qa_dev.txt --out ckpt
  wherefore train qr-gat --graph movies --questions mine.jsonl --out ckpt --set neighbourhood.hops=3
  wherefore train qr-gat --questions rog_webqsp_train.parquet --out ckpt --encoder minilm
  wherefore train gnn2r --graph 2h-kb --questions PQ-2H.train.txt --valid PQ-2H.valid.txt --out ckpt
  wherefore train relation-plan --graph metaqa --questions qa_dev.txt --out ckpt
  wherefore train amar --graph freebase --questions train.jsonl --llm smollm2.gguf --out ckpt
  wherefore train distance-mlp --graph freebase --questions train.jsonl --labels labels.jsonl --out ckpt
  wherefore train read --on geo geo.jsonl --on films films.jsonl --out weights.toml")]
pub(crate) struct Train {
    /// The method
    #[arg(value_name = "METHOD", value_parser = trained())]
    pub(crate) method: String,
    /// A graph folder, or `@toy`; none where each question brings its own graph
    #[arg(long)]
    pub(crate) graph: Option<String>,
    /// Questions to learn from, in any format of `wherefore eval`; repeatable
    #[arg(long, value_name = "FILE", required_unless_present = "on", num_args = 1..)]
    pub(crate) questions: Vec<PathBuf>,
    /// For `read`: a graph and questions over it; repeatable
    #[arg(long, num_args = 2, value_names = ["GRAPH", "FILE"], conflicts_with_all = ["graph", "questions"])]
    pub(crate) on: Vec<String>,
    /// Questions to judge by; a tenth of the others, drawn by the seed, if none are given
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) valid: Vec<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = crate::commands::eval::parse_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// Labels to learn instead of shortest paths, as `wherefore label` writes them: JSON lines with
    /// `id` and `paths`
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// The checkpoint's folder; for `read` a file of weights
    #[arg(long, value_name = "CKPT")]
    pub(crate) out: PathBuf,
    /// Settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Change a setting, as in `sizes.hidden=128`; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = crate::commands::train::parse_setting)]
    pub(crate) set: Vec<(String, String)>,
    /// The encoder: `static`, `hashing`, a model folder or an added model
    #[arg(long, value_name = "E")]
    pub(crate) encoder: Option<String>,
    /// The language model that `amar` is trained around, a GGUF file
    #[arg(long, value_name = "FILE")]
    pub(crate) llm: Option<PathBuf>,
    /// Seed of weights, order and dropout
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Where to compute: `cpu`, `cuda` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// Begin with the weights of this checkpoint, or of this file for `read`
    #[arg(long, value_name = "CKPT")]
    pub(crate) init: Option<PathBuf>,
    /// Begin anew, whatever a stopped training left
    #[arg(long)]
    pub(crate) restart: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Let a language model pick the paths that are evidence, as labels to train on
///
/// For each question, shortest paths to its answer and what lies around topics and answer are shown,
/// merged by their relations; what the model picks is written to a label file, which `wherefore
/// train --labels` takes. Where it picks nothing, shortest paths count, and the file says so. A run
/// that was stopped goes on where it was when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore label --graph freebase --questions train.jsonl --sample 500 --llm qwen.gguf --out labels.jsonl
  wherefore label --combine union a.jsonl b.jsonl --out labels.jsonl
  wherefore label --judge --graph freebase --questions test.jsonl --out labels.jsonl")]
pub(crate) struct Label {
    /// With `--combine`, the two label files
    #[arg(value_name = "LABELS", num_args = 2, requires = "combine", conflicts_with_all = ["questions", "llm"])]
    pub(crate) files: Vec<PathBuf>,
    /// Make one label file of two: the paths that either has, or those that both have
    #[arg(long, value_name = "HOW", requires = "files")]
    pub(crate) combine: Option<Combine>,
    /// A graph folder, or `@toy`; none where each question brings its own graph
    #[arg(long)]
    pub(crate) graph: Option<String>,
    /// Questions with their answers, in any format of `wherefore eval`
    #[arg(long, value_name = "FILE", required_unless_present = "combine")]
    pub(crate) questions: Option<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = crate::commands::eval::parse_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// The label file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The language model: a GGUF file, or URL#MODEL of an OpenAI-compatible server
    #[arg(long, value_name = "MODEL", required_unless_present_any = ["combine", "judge"])]
    pub(crate) llm: Option<String>,
    /// Ask nothing: only hold the labels that `--out` has against the questions' relevant triples
    #[arg(long, conflicts_with_all = ["combine", "llm"])]
    pub(crate) judge: bool,
    /// Label only the first questions
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Label only so many questions, drawn by the seed
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Seed of the sample
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Questions that are asked at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Neither use nor keep completions on disk
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Append every completion to a file, which `--llm script:FILE` replays
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// How two label files become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Combine {
    Union,
    Intersection,
}

/// Answer a benchmark's questions and measure how well
///
/// The run folder keeps the settings, every answer with its evidence, all metrics, and a page to
/// look at. A run that was stopped goes on where it was when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore eval --graph metaqa --questions qa_test.txt --out runs/read
  wherefore eval --graph metaqa --questions qa_test.txt --sample 500 --linked --out runs/linked
  wherefore eval --graph metaqa --questions qa_dev.txt --sweep hops.toml --out runs/hops")]
pub(crate) struct Eval {
    /// A graph folder, or `@toy`; none where each question brings its own graph
    #[arg(long)]
    pub(crate) graph: Option<String>,
    /// The questions: MetaQA, PathQuestion, WC2014, WebQSP, CWQ, GrailQA, RoG, NSM or our JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: PathBuf,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = crate::commands::eval::parse_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// The run folder
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,
    /// The method, with its usual settings
    #[arg(long, value_name = "NAME", value_parser = methods(), conflicts_with_all = ["config", "sweep"])]
    pub(crate) method: Option<String>,
    /// A checkpoint made by `wherefore train`
    #[arg(long, value_name = "CKPT", conflicts_with = "sweep")]
    pub(crate) model: Option<PathBuf>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Run every combination that a TOML file lists, each into a folder under `--out`
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) sweep: Option<PathBuf>,
    /// Hide the gold topics: entities are to be found in the question
    #[arg(long)]
    pub(crate) linked: bool,
    #[command(flatten)]
    pub(crate) wished: Wished,
    /// Ask only the first questions
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Ask only so many questions, drawn by the seed
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Questions answered at the same time; 0 means one for each core, 1 gives the times of a question
    /// that has the machine to itself
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Seed of samples and of bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The k at which retrieval is measured
    #[arg(long = "k", value_name = "K,…", value_delimiter = ',', default_values_t = [50, 100, 200, 500])]
    pub(crate) ks: Vec<usize>,
    /// End with status 1 if a metric is below a value, as in `lenient.hit@1=0.9`; repeatable
    #[arg(long, value_name = "METRIC=VALUE", value_parser = crate::commands::eval::parse_requirement)]
    pub(crate) require: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) llm: Llm,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Score another system's predictions with the same metrics
#[derive(Debug, clap::Args)]
pub(crate) struct Score {
    /// JSON lines with `id` and `answers`, or RoG's or SubgraphRAG's output
    pub(crate) predictions: PathBuf,
    /// The questions that were asked
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: PathBuf,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = crate::commands::eval::parse_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// The predictions' format, where it is not told by their content: answers, rog, subgraphrag
    #[arg(long, value_parser = crate::commands::score::parse_format)]
    pub(crate) prediction_format: Option<wherefore_lab::score::PredictionFormat>,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The k at which retrieval is measured
    #[arg(long = "k", value_name = "K,…", value_delimiter = ',', default_values_t = [50, 100, 200, 500])]
    pub(crate) ks: Vec<usize>,
}

/// Write one HTML page for one or several runs side by side
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Run folders made by `wherefore eval`; the others are compared with the first
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// The page to write; `report.html` in the first run folder if none is given
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Check a saved answer against a graph: all that it shows, and that nobody changed it
///
/// Every triple is looked up, every name is compared with its identity, what was counted or ranked
/// is computed again. A digest shows whether the file was changed; only a signature shows who wrote
/// it. Exit status 1 means that an answer does not hold.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore ask @toy 'Whose mascot is Lou Seal?' --json > answer.json
  wherefore verify answer.json --graph @toy
  wherefore verify signed.json --graph @toy --key answers.key.pub")]
pub(crate) struct Verify {
    /// An answer saved from `wherefore ask --json`, or `-` to read it from standard input
    pub(crate) answer: PathBuf,
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    #[arg(long)]
    pub(crate) graph: String,
    /// The public key that must have signed the answer
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Make a key that signs answers, and the public key that verifies them
///
/// `FILE` is the key, for `ask --sign` and `serve --sign`: keep it secret. `FILE.pub` is for
/// everybody who verifies. Both are PEM files (Ed25519).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore keygen answers.key
  wherefore ask @toy 'Whose mascot is Lou Seal?' --json --sign answers.key > answer.json
  wherefore verify answer.json --graph @toy --key answers.key.pub")]
pub(crate) struct Keygen {
    /// The file to write; a file that is there stays
    pub(crate) file: PathBuf,
}

/// Show which entities a question is about, or measure it over benchmark questions
///
/// Each mention is shown with its candidates, their scores and how the name was recognised. With
/// `--questions`, the gold topics are hidden and recall is measured. Exit status 1 means that
/// nothing in the question is a name of the graph; the nearest names are then shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore link @toy 'who is the mascot of the giants?'
  wherefore link movies --questions qa_test.txt
  wherefore link movies 'who directed it?' --aliases aliases.tsv")]
pub(crate) struct Link {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: String,
    /// The question
    #[arg(conflicts_with = "questions")]
    pub(crate) question: Option<String>,
    /// An entity that the question is about, instead of looking for names in it; repeatable
    #[arg(long = "topic", value_name = "NAME")]
    pub(crate) topics: Vec<String>,
    /// A file of words and the entities that they mean, between tabs; `-` for none
    #[arg(long, value_name = "FILE")]
    pub(crate) aliases: Option<PathBuf>,
    /// The encoder that weighs namesakes by what is asked
    #[arg(long, value_name = "NAME")]
    pub(crate) encoder: Option<String>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Benchmark questions to measure over
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: Option<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = crate::commands::eval::parse_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// Take only the first questions
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// The k at which recall is measured
    #[arg(long = "k", value_name = "K,…", value_delimiter = ',', default_values_t = [1, 5])]
    pub(crate) ks: Vec<usize>,
    /// Show this many topics that were not found
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) misses: usize,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// List encoders, add one, or distil a table
#[derive(Debug, clap::Args)]
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the encoders that are built in, were added, or can be added by a short name
    List,
    Add(ModelAdd),
    Distill(ModelDistill),
}

/// Add an encoder from a folder or from the model hub
///
/// Models go to `$WHEREFORE_MODELS`, or else to `wherefore-models` in the user's cache folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore model add minilm
  wherefore model add intfloat/e5-small-v2
  wherefore model add downloads/my-encoder")]
pub(crate) struct ModelAdd {
    /// A model folder, a short name of `wherefore model list`, or `owner/name` on the hub
    pub(crate) source: String,
    /// Put the new one into the place of one of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Press a transformer encoder into a static table
///
/// The built-in encoder was made so; `experiments/distill.md` has the texts and the figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore model distill minilm --texts texts.txt --out mine.table
  wherefore index movies --encoder mine.table")]
pub(crate) struct ModelDistill {
    /// The encoder to learn from, with an uncased WordPiece vocabulary: a folder or an added model
    pub(crate) teacher: String,
    /// Short texts of the kind it will meet, one a line; without them only token vectors are taken
    #[arg(long, value_name = "FILE")]
    pub(crate) texts: Option<PathBuf>,
    /// The table to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The table's name
    #[arg(long, default_value = "static")]
    pub(crate) name: String,
    /// Numbers for each token
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) dim: usize,
    /// Passes over the texts
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) epochs: usize,
    /// Step of the passes
    #[arg(long, value_name = "X", default_value_t = 0.003, value_parser = positive)]
    pub(crate) learning_rate: f32,
    /// How flat the frequency weight is; larger is flatter
    #[arg(long, value_name = "X", default_value_t = 0.001, value_parser = positive)]
    pub(crate) weight: f32,
}

/// What `serve` and `mcp` open.
#[derive(Debug, clap::Args)]
pub(crate) struct Served {
    /// A graph folder, or `@toy`; repeatable. Without a name it goes by the last part of its path
    #[arg(long = "graph", value_name = "NAME=GRAPH")]
    pub(crate) graphs: Vec<String>,
    /// Graphs, methods, keys and limits, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A method to offer; repeatable, the first is the default. All that need no training, if none
    /// are given
    #[arg(long = "method", value_name = "NAME", value_parser = methods())]
    pub(crate) methods: Vec<String>,
    /// A checkpoint made by `wherefore train`, offered as the methods `trained` and `auto`
    #[arg(long, value_name = "CKPT")]
    pub(crate) model: Option<PathBuf>,
    /// Let a language model answer from the evidence: a GGUF file, or URL#MODEL
    #[arg(long, value_name = "MODEL")]
    pub(crate) llm: Option<String>,
    /// Sign every answer with this key, made by `wherefore keygen`
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Serve graphs: a web page, an HTTP API, an OpenAI-compatible door and MCP
///
/// Only this machine can reach the server unless `--listen` says otherwise. It ends in order on
/// Ctrl-C: requests that run come to their end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore serve --graph @toy
  wherefore serve --graph movies --graph sports=data/sports --model ckpt --runs runs
  wherefore serve --config serve.toml
  wherefore serve --new-key alice

`docs/serving.md` describes the API, the configuration and what keeps it safe.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) served: Served,
    /// Where to listen; 127.0.0.1:7878 if neither this nor the configuration says it
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// A name that the server is called by, beside localhost and those of the configuration;
    /// repeatable, or with commas in between
    #[arg(
        long = "host",
        value_name = "NAME",
        env = "WHEREFORE_HOSTS",
        value_delimiter = ','
    )]
    pub(crate) hosts: Vec<String>,
    /// A run folder of `wherefore eval`, or a folder of such, to browse
    #[arg(long, value_name = "FOLDER")]
    pub(crate) runs: Option<PathBuf>,
    /// Keep thumbs up and down as question files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) feedback: Option<PathBuf>,
    /// Load graphs that are sent over HTTP into this folder, and serve those that lie there. Without
    /// it, only this machine may send some, and they go when the server ends
    #[arg(long, value_name = "FOLDER")]
    pub(crate) loads: Option<PathBuf>,
    /// Threads that answer questions; 0 means one for each core
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Requests that may wait; those beyond are told to come back later
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<usize>,
    /// Make an API key, show it and what belongs into the configuration, and end
    #[arg(long, value_name = "NAME")]
    pub(crate) new_key: Option<String>,
}

/// Offer graphs to agents: the Model Context Protocol over standard input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, as an agent's settings have it:
  { \"command\": \"wherefore\", \"args\": [\"mcp\", \"--graph\", \"movies\"] }")]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) served: Served,
}

/// For clap: a number of seconds. No number at all, and one without an end, are refused.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "write it like `2.5`")?;
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(seconds)
    } else {
        Err("seconds are a number from 0 on".into())
    }
}

/// For clap: a number above 0.
fn positive(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| "write it like `0.01`")?;
    if number.is_finite() && number > 0.0 {
        Ok(number)
    } else {
        Err("it must be a number above 0".into())
    }
}

/// The names of methods; former ones are taken and not shown.
pub(crate) fn methods() -> clap::builder::PossibleValuesParser {
    use clap::builder::PossibleValue;
    use wherefore::method::{FORMER_NAMES, Method};
    let former = FORMER_NAMES.map(|name| PossibleValue::new(name).hide(true));
    clap::builder::PossibleValuesParser::new(
        Method::ALL
            .map(|method| PossibleValue::new(method.name()))
            .into_iter()
            .chain(former),
    )
}

/// What can be trained: checkpoints' names, and PNA with relations in its messages.
fn trained() -> clap::builder::PossibleValuesParser {
    use wherefore::method::Trained;
    Trained::ALL
        .map(Trained::name)
        .into_iter()
        .chain([PNA_RELATIONS])
        .collect::<Vec<_>>()
        .into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{positive, seconds};

    #[test]
    fn numbers_that_are_none_are_refused() {
        for bad in ["nan", "inf", "-inf", "-1", "1e999", "", "soon"] {
            assert!(seconds(bad).is_err(), "{bad}");
            assert!(positive(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0"), Ok(0.0));
        assert_eq!(seconds("1e300"), Ok(1e300));
        assert!(positive("0").is_err());
        assert_eq!(positive("0.5"), Ok(0.5));
    }

    #[test]
    fn arguments_are_well_formed() {
        super::Args::command().debug_assert();
    }
}
