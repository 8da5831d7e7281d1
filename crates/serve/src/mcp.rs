//! The Model Context Protocol: what agents may call, over standard input and output or over HTTP.
//!
//! The protocol is JSON-RPC 2.0; each message is answered by itself, so there are no sessions to
//! keep. The calls of a batch, which one version of the protocol knows, have one deadline together
//! and count one by one against the caller's rate. Tools: `ask`, `retrieve`, `link`, `sparql`, `describe_entity`, `verify`. Resources: the
//! relations of each graph.
//!
//! Kept by hand: tools run as jobs of this server's pools, behind its keys and rates, and the schemas
//! of six tools are shorter than the types that one would derive them from; an SDK (rmcp) brings a
//! runtime, transports and sessions of its own.

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wherefore::graph::sparql::ResultFormat;
use wherefore::verify::Saved;
use wherefore::{Follow, Question};

use crate::app::{App, Work, out_of_time};
use crate::config::Scope;
use crate::engine::{Asked, clipped};
use crate::exchange::{json_bytes, read_json, to_json};
use crate::keys::Access;
use crate::openai::written;
use crate::pool::Wanted;
use crate::problem::Problem;

/// Versions that are spoken, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Messages in one batch.
const MOST_MESSAGES: usize = 8;
/// How much of a request's time a batch over HTTP may take: what was answered must still reach the
/// caller.
const BATCH_SHARE: f64 = 0.9;
/// The longest line on standard input.
const MOST_BYTES: u64 = 16 << 20;
const MOST_TRIPLES: usize = 500;
const MOST_RELATIONS: usize = 1000;

/// What JSON-RPC calls an error.
struct Fault {
    code: i32,
    message: String,
}

impl Fault {
    fn params(message: impl Into<String>) -> Self {
        Self {
            code: -32602,
            message: message.into(),
        }
    }
}

/// Who calls, and until when.
struct Caller {
    access: Arc<Access>,
    /// For all calls of a batch together.
    deadline: Instant,
    /// Says whether anybody waits; somebody does where there is none.
    wanted: Option<Wanted>,
}

impl Caller {
    fn is_there(&self) -> bool {
        self.wanted.as_ref().is_none_or(Wanted::is_wanted)
    }

    /// Refuses a call beyond the time, or for somebody who has gone.
    fn check_time(&self, app: &App) -> Result<(), Problem> {
        if !self.is_there() || Instant::now() >= self.deadline {
            let limit = Duration::from_secs_f64(app.config.limits.seconds);
            return Err(out_of_time(limit));
        }
        Ok(())
    }

    /// Refuses what is not allowed on a graph, or on the default one.
    fn allow(&self, app: &App, scope: Scope, graph: Option<&str>) -> Result<(), Problem> {
        let graph = graph.unwrap_or_else(|| app.engine.default_graph());
        self.access.check(scope, graph)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArguments {
    question: String,
    graph: Option<String>,
    method: Option<String>,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    reading: usize,
    precision: Option<f32>,
    coverage: Option<f32>,
    follow: Option<Follow>,
    top_k: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SparqlArguments {
    query: String,
    graph: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeArguments {
    entity: String,
    graph: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyArguments {
    answer: Saved,
    graph: Option<String>,
}

/// What a tool gives: text for the model, and the same for programs.
struct Given {
    text: String,
    value: Value,
}

impl App {
    /// The kind of work that a message is; of a batch, the slowest.
    fn mcp_work(&self, message: &Value) -> Work {
        if let Value::Array(messages) = message {
            let works = messages.iter().take(MOST_MESSAGES);
            let slowest = works.map(|message| self.mcp_work(message)).max();
            return slowest.unwrap_or(Work::Ask);
        }
        let given = &message["params"]["arguments"];
        match message["params"]["name"].as_str() {
            Some("sparql") => Work::Sparql,
            Some("ask" | "retrieve") => {
                let (graph, method) = (given["graph"].as_str(), given["method"].as_str());
                self.work_of(graph, method)
            }
            _ => Work::Ask,
        }
    }

    /// Answers a message, or a batch of them; nothing for what needs no answer.
    fn mcp(&self, message: &Value, caller: &Caller) -> Option<Value> {
        let Value::Array(messages) = message else {
            return self.mcp_one(message, caller);
        };
        if !(1..=MOST_MESSAGES).contains(&messages.len()) {
            let message = format!("a batch has 1 to {MOST_MESSAGES} messages");
            return Some(error(None, -32600, &message));
        }
        let replies: Vec<Value> = (messages.iter().enumerate())
            .filter_map(|(number, message)| {
                let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
                    return self.mcp_one(message, caller);
                };
                // the request that brought the batch was counted when it came in
                let counted = match number {
                    0 => Ok(()),
                    _ => self.guard.count(&caller.access),
                };
                match counted.and_then(|()| caller.check_time(self)) {
                    Ok(()) => self.mcp_one(message, caller),
                    Err(problem) => Some(error(Some(id), -32000, &told(&problem))),
                }
            })
            .collect();
        (!replies.is_empty()).then(|| replies.into())
    }

    fn mcp_one(&self, message: &Value, caller: &Caller) -> Option<Value> {
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // a reply to something that we never asked needs no answer
            let is_reply = message.get("result").is_some() || message.get("error").is_some();
            return (!is_reply).then(|| error(id.as_ref(), -32600, "this is no request"));
        };
        // what has no id is a notification
        let id = id.filter(|id| !id.is_null())?;
        let params = message.get("params").cloned().unwrap_or(json!({}));
        Some(match self.mcp_call(method, &params, caller) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(fault) => error(Some(&id), fault.code, &fault.message),
        })
    }

    fn mcp_call(&self, method: &str, params: &Value, caller: &Caller) -> Result<Value, Fault> {
        match method {
            "initialize" => Ok(self.mcp_initialize(params, caller)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": tools() })),
            "tools/call" => self.mcp_tool(params, caller),
            "resources/list" => Ok(json!({ "resources": self.mcp_resources(caller) })),
            "resources/templates/list" => Ok(json!({ "resourceTemplates": [{
                "uriTemplate": "wherefore://graphs/{graph}/relations",
                "name": "relations",
                "description": "The relations of a graph, the most frequent first",
                "mimeType": "application/json",
            }] })),
            "resources/read" => self.mcp_read(params, caller),
            other => Err(Fault {
                code: -32601,
                message: format!("there is no method `{}`", clipped(other)),
            }),
        }
    }

    fn mcp_initialize(&self, params: &Value, caller: &Caller) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = VERSIONS
            .iter()
            .find(|v| **v == asked)
            .unwrap_or(&VERSIONS[0]);
        let graphs: Vec<String> = (self.engine.graphs().iter())
            .filter(|graph| caller.access.sees(&graph.name))
            .map(|g| match g.current() {
                Ok(current) => match current.store() {
                    Some(store) => format!("{} ({} triples)", g.name, store.counts().triples),
                    None => format!("{} (a SPARQL service)", g.name),
                },
                Err(_) => format!("{} (damaged)", g.name),
            })
            .collect();
        json!({
            "protocolVersion": version,
            "capabilities": { "tools": {}, "resources": {} },
            "serverInfo": {
                "name": "wherefore",
                "title": "Wherefore",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "instructions": format!(
                "Answers questions over knowledge graphs, each answer with the triples that prove \
                 it. Graphs: {}. Begin with `ask`; `describe_entity`, `link` and `sparql` look \
                 further.",
                graphs.join(", ")
            ),
        })
    }

    fn mcp_resources(&self, caller: &Caller) -> Vec<Value> {
        self.engine
            .graphs()
            .iter()
            .filter(|graph| caller.access.sees(&graph.name))
            .map(|graph| {
                json!({
                    "uri": format!("wherefore://graphs/{}/relations", graph.name),
                    "name": format!("relations of {}", graph.name),
                    "description": "The relations, the most frequent first, each with an example",
                    "mimeType": "application/json",
                })
            })
            .collect()
    }

    fn mcp_read(&self, params: &Value, caller: &Caller) -> Result<Value, Fault> {
        let uri = params["uri"].as_str().unwrap_or_default();
        let name = uri
            .strip_prefix("wherefore://graphs/")
            .and_then(|rest| rest.strip_suffix("/relations"));
        let missing = || Fault {
            code: -32002,
            message: format!("there is no resource `{}`", clipped(uri)),
        };
        if let Some(name) = name {
            let allowed = caller.allow(self, Scope::Ask, Some(name));
            allowed.map_err(|problem| self.mcp_fault(problem))?;
        }
        let graph = name.and_then(|name| self.engine.graph(Some(name)).ok());
        let relations = (graph.ok_or_else(missing)?)
            .relations(MOST_RELATIONS)
            .map_err(|error| self.mcp_fault(error.into()))?;
        let text = serde_json::to_string(&relations).expect("texts and numbers are JSON");
        Ok(json!({ "contents": [{ "uri": uri, "mimeType": "application/json", "text": text }] }))
    }

    fn mcp_tool(&self, params: &Value, caller: &Caller) -> Result<Value, Fault> {
        let name = params["name"].as_str().unwrap_or_default();
        let given = params.get("arguments").cloned().unwrap_or(json!({}));
        let done = match name {
            "ask" => self.mcp_ask(arguments(given)?, caller),
            "retrieve" => self.mcp_retrieve(arguments(given)?, caller),
            "link" => self.mcp_link(arguments(given)?, caller),
            "sparql" => self.mcp_sparql(&arguments(given)?, caller),
            "describe_entity" => self.mcp_describe(&arguments(given)?, caller),
            "verify" => self.mcp_verify(&arguments(given)?, caller),
            other => {
                let message = format!("there is no tool `{}`", clipped(other));
                return Err(Fault::params(message));
            }
        };
        // what went wrong with the call is for the model to read, and to mend
        Ok(match done {
            Ok(Given { text, value }) => json!({
                "content": [{ "type": "text", "text": text }],
                "structuredContent": value,
                "isError": false,
            }),
            Err(problem) => {
                let text = told(&problem);
                self.mcp_fault(problem);
                json!({ "content": [{ "type": "text", "text": text }], "isError": true })
            }
        })
    }

    /// Writes what is ours to the log.
    fn mcp_fault(&self, problem: Problem) -> Fault {
        if let Some(line) = problem.log_line() {
            (self.log)(&line);
        }
        Fault {
            code: -32603,
            message: problem.message,
        }
    }

    fn mcp_asked(&self, arguments: AskArguments, caller: &Caller) -> Result<Asked, Problem> {
        caller.allow(self, Scope::Ask, arguments.graph.as_deref())?;
        let mut question = Question::new(arguments.question).about(arguments.topics);
        question.reading = arguments.reading;
        question.precision = arguments.precision;
        question.coverage = arguments.coverage;
        question.follow = arguments.follow;
        self.check_question(&question)?;
        Ok(Asked {
            question,
            graph: arguments.graph,
            method: arguments.method,
        })
    }

    fn mcp_ask(&self, arguments: AskArguments, caller: &Caller) -> Result<Given, Problem> {
        let asked = self.mcp_asked(arguments, caller)?;
        let answer = (self.engine).ask(&asked, caller.deadline, |_| ControlFlow::Continue(()))?;
        self.metrics.answer(&answer);
        Ok(Given {
            text: written(&answer),
            value: json!(answer),
        })
    }

    fn mcp_retrieve(&self, arguments: AskArguments, caller: &Caller) -> Result<Given, Problem> {
        let top_k = arguments.top_k.map(|k| k.clamp(1, MOST_TRIPLES));
        let asked = self.mcp_asked(arguments, caller)?;
        Ok(as_json(&self.engine.retrieve(&asked, top_k)?))
    }

    fn mcp_link(&self, arguments: AskArguments, caller: &Caller) -> Result<Given, Problem> {
        let asked = self.mcp_asked(arguments, caller)?;
        Ok(as_json(&self.engine.link(&asked)?))
    }

    fn mcp_sparql(&self, arguments: &SparqlArguments, caller: &Caller) -> Result<Given, Problem> {
        caller.allow(self, Scope::Sparql, arguments.graph.as_deref())?;
        let graph = self.engine.graph(arguments.graph.as_deref())?;
        let mut options = self.config.limits.sparql();
        let left = (caller.deadline).saturating_duration_since(Instant::now());
        options.timeout = options.timeout.map(|limit| limit.min(left));
        let format = ResultFormat::Json;
        let (bytes, written) =
            graph.sparql(&arguments.query, &options, format, &|| caller.is_there())?;
        let results: Value = serde_json::from_slice(&bytes)
            .map_err(|e| Problem::internal(format!("results are no JSON: {e}")))?;
        Ok(as_json(
            &json!({ "results": results, "cut": written.is_cut }),
        ))
    }

    fn mcp_describe(
        &self,
        arguments: &DescribeArguments,
        caller: &Caller,
    ) -> Result<Given, Problem> {
        caller.allow(self, Scope::Ask, arguments.graph.as_deref())?;
        let graph = self.engine.graph(arguments.graph.as_deref())?;
        let limit = arguments.limit.unwrap_or(50).clamp(1, MOST_TRIPLES);
        Ok(as_json(&graph.neighbourhood(&arguments.entity, limit)?))
    }

    fn mcp_verify(&self, arguments: &VerifyArguments, caller: &Caller) -> Result<Given, Problem> {
        caller.allow(self, Scope::Ask, arguments.graph.as_deref())?;
        let graph = arguments.graph.as_deref();
        Ok(as_json(&self.engine.verify(graph, &arguments.answer)?))
    }
}

fn arguments<T: DeserializeOwned>(given: Value) -> Result<T, Fault> {
    serde_json::from_value(given).map_err(|e| Fault::params(e.to_string()))
}

fn as_json(value: &impl serde::Serialize) -> Given {
    let value = serde_json::to_value(value).expect("texts, numbers and lists are JSON");
    Given {
        text: value.to_string(),
        value,
    }
}

/// A problem as text, with what to do about it.
fn told(problem: &Problem) -> String {
    let hint = problem.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
    let hint = hint.unwrap_or_default();
    format!("{}: {}{hint}", problem.code, problem.message)
}

fn error(id: Option<&Value>, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn tools() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let graph = text("The graph's name; the default one if left out");
    let asked = |more: &[(&str, Value)]| {
        let mut properties = json!({
            "question": text("The question, in plain words"),
            "graph": graph,
            "method": text("How to answer; the default method if left out"),
            "topics": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Names of the entities it is about, where they are known",
            },
            "reading": {
                "type": "integer",
                "minimum": 1,
                "description": "Which of the question's readings is meant, as `alternatives` of an earlier answer number them",
            },
            "follow": {
                "type": "object",
                "properties": {
                    "question": text("The last question"),
                    "logical_form": text("Its `logical_form`"),
                    "answers": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": { "id": text("Its `id`"), "name": text("Its `name`") },
                            "required": ["id"],
                        },
                        "description": "Its `answers`; the first 100 are read",
                    },
                },
                "required": ["question"],
                "description": "The question before it in a conversation: `And its population?`, `What about Uganda?` are read after it",
            },
        });
        for (name, about) in [
            (
                "precision",
                "Share of answers that are to be right: less sure ones are refused; 0 has all answered",
            ),
            (
                "coverage",
                "How often the right reading is to be among those that are answered, after `wherefore conformal`",
            ),
        ] {
            properties[name] = json!({
                "type": "number",
                "minimum": 0,
                "exclusiveMaximum": 1,
                "description": about,
            });
        }
        for (name, schema) in more {
            properties[*name] = schema.clone();
        }
        object(&properties, &["question"])
    };
    let top_k = json!({ "type": "integer", "minimum": 1, "maximum": MOST_TRIPLES });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MOST_TRIPLES });
    let tool = |name: &str, title: &str, about: &str, schema: Value| {
        json!({
            "name": name,
            "title": title,
            "description": about,
            "inputSchema": schema,
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    };
    json!([
        tool(
            "ask",
            "Ask",
            "Answers a question over a knowledge graph, with the triples that prove each answer",
            asked(&[]),
        ),
        tool(
            "retrieve",
            "Retrieve evidence",
            "Finds the triples that bear on a question, with scores, without answering it",
            asked(&[("top_k", top_k)]),
        ),
        tool(
            "link",
            "Link",
            "Finds the entities that a question is about, with candidates",
            asked(&[]),
        ),
        tool(
            "sparql",
            "SPARQL",
            "Runs a SPARQL 1.1 query. Names that are no IRIs are written <name:Forrest%20Gump>, \
             or :relation_name for short",
            object(
                &json!({ "query": text("The query; SELECT, ASK, CONSTRUCT or DESCRIBE"), "graph": graph }),
                &["query"],
            ),
        ),
        tool(
            "describe_entity",
            "Describe an entity",
            "Tells what the graph says of an entity: some triples of every relation",
            object(
                &json!({ "entity": text("Its name or its identity"), "graph": graph, "limit": limit }),
                &["entity"],
            ),
        ),
        tool(
            "verify",
            "Verify an answer",
            "Looks an answer of `ask` up in the graph again: is its evidence there?",
            object(
                &json!({
                    "answer": { "type": "object", "description": "The structured answer of `ask`" },
                    "graph": graph,
                }),
                &["answer"],
            ),
        ),
    ])
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// `POST /mcp`.
pub(crate) async fn over_http(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let version = request.headers().get("mcp-protocol-version");
    let known = version.is_none_or(|v| VERSIONS.iter().any(|known| v == known));
    if !known {
        let problem = Problem::bad_request("bad-version", "this version of MCP is not spoken");
        return Err(problem.hint(format!("there are: {}", VERSIONS.join(", "))));
    }
    let message: Value = read_json(&app, request).await?;
    if !message.is_object() && !message.is_array() {
        return Err(Problem::bad_request("bad-body", "this is no request"));
    }
    let share = if message.is_array() { BATCH_SHARE } else { 1.0 };
    let limit = Duration::from_secs_f64(app.config.limits.seconds * share);
    let (access, deadline) = (Access::current(), Instant::now() + limit);
    let work = app.mcp_work(&message);
    let job = move |app: &App, wanted: &Wanted| {
        let caller = Caller {
            access,
            deadline,
            wanted: Some(wanted.clone()),
        };
        Ok(app.mcp(&message, &caller).map(|reply| to_json(&reply)))
    };
    let reply = app.run(work, job).await?;
    Ok(match reply {
        Some(reply) => json_bytes(reply),
        None => StatusCode::ACCEPTED.into_response(),
    })
}

/// Speaks MCP line by line until `input` ends.
pub(crate) fn over_lines(
    app: &App,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<()> {
    // whoever started us may do what they like, at any rate
    let access = Arc::new(Access::local());
    loop {
        let mut line = Vec::new();
        let read = io::Read::take(&mut *input, MOST_BYTES).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == MOST_BYTES && line.last() != Some(&b'\n') {
            skip_line(input)?;
            let text = format!("a message has at most {MOST_BYTES} bytes");
            let mut bytes = to_json(&error(None, -32700, &text));
            bytes.push(b'\n');
            output.write_all(&bytes)?;
            output.flush()?;
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let reply = match serde_json::from_slice(&line) {
            Ok(message) => {
                let caller = Caller {
                    access: Arc::clone(&access),
                    deadline: app.deadline(),
                    wanted: None,
                };
                app.mcp(&message, &caller)
            }
            Err(_) => Some(error(None, -32700, "this is no JSON")),
        };
        if let Some(reply) = reply {
            let mut bytes = to_json(&reply);
            bytes.push(b'\n');
            output.write_all(&bytes)?;
            output.flush()?;
        }
    }
}

/// Reads to the end of a line and keeps nothing of it.
fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|&b| b == b'\n');
        let length = end.map_or(buffer.len(), |at| at + 1);
        let over = end.is_some() || buffer.is_empty();
        input.consume(length);
        if over {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{GraphConfig, ServeConfig};

    fn app() -> App {
        let mut config = ServeConfig::default();
        let toy = GraphConfig {
            path: "@toy".into(),
            ..GraphConfig::default()
        };
        config.graphs.insert("toy".into(), toy);
        App::open(config, Arc::new(|_| {})).unwrap()
    }

    fn spoken(lines: &[Value]) -> Vec<Value> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut output = Vec::new();
        over_lines(&app(), &mut text.as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        let value = |line: &str| serde_json::from_str(line).unwrap();
        output.lines().map(value).collect()
    }

    fn call(id: u32, tool: &str, arguments: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": tool, "arguments": arguments } })
    }

    #[test]
    fn a_conversation_from_greeting_to_proof() {
        let question = "Who is the mascot of the San Francisco Giants?";
        let replies = spoken(&[
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
                    "params": { "protocolVersion": "2025-06-18" } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": "two", "method": "tools/list" }),
            call(3, "ask", json!({ "question": question })),
            call(4, "describe_entity", json!({ "entity": "Lou Seal" })),
            call(5, "sparql", json!({ "query": "ASK { ?x :mascot_of ?y }" })),
            json!({ "jsonrpc": "2.0", "id": 6, "method": "resources/list" }),
            json!({ "jsonrpc": "2.0", "id": 7, "method": "resources/read",
                    "params": { "uri": "wherefore://graphs/toy/relations" } }),
        ]);
        assert_eq!(replies.len(), 7);
        assert_eq!(replies[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(replies[1]["id"], "two");
        let tools = replies[1]["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 6);
        let answer = &replies[2]["result"];
        assert_eq!(answer["isError"], false);
        assert_eq!(
            answer["structuredContent"]["answers"][0]["name"],
            "Lou Seal"
        );
        assert!(
            answer["content"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with("Lou Seal (")
        );
        assert_eq!(replies[3]["result"]["structuredContent"]["total"], 1);
        assert_eq!(
            replies[4]["result"]["structuredContent"]["results"]["boolean"],
            true
        );
        assert_eq!(
            replies[5]["result"]["resources"].as_array().unwrap().len(),
            1
        );
        let text = replies[6]["result"]["contents"][0]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains("located in"));

        let saved = answer["structuredContent"].clone();
        let replies = spoken(&[call(1, "verify", json!({ "answer": saved }))]);
        assert_eq!(replies[0]["result"]["structuredContent"]["holds"], true);
    }

    #[test]
    fn a_batch_is_small_and_its_calls_share_one_deadline() {
        let list = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        let batch = |count| Value::from_iter((0..count).map(list));
        let replies = spoken(&[batch(0), batch(MOST_MESSAGES + 1), batch(MOST_MESSAGES)]);
        for refused in &replies[..2] {
            assert_eq!(refused["error"]["code"], -32600, "{refused}");
            let text = refused["error"]["message"].as_str().unwrap();
            assert!(text.contains("1 to 8 messages"), "{text}");
        }
        assert_eq!(replies[2].as_array().unwrap().len(), MOST_MESSAGES);

        // each of them would run until its time is over
        let mut app = app();
        app.config.limits.seconds = 0.3;
        app.config.limits.sparql_seconds = 0.2;
        let endless = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . \
                       ?m ?o ?p . ?q ?r ?s . ?t ?u ?v }";
        let slow = |id| call(id, "sparql", json!({ "query": endless }));
        let line = Value::from_iter((0..8).map(slow)).to_string();
        let mut output = Vec::new();
        let begun = Instant::now();
        over_lines(&app, &mut line.as_bytes(), &mut output).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
        let replies: Vec<Value> = serde_json::from_slice(&output).unwrap();
        assert_eq!(replies.len(), 8);
        let text = |reply: &Value| reply["result"]["content"][0]["text"].to_string();
        assert!(text(&replies[0]).contains("out-of-time"), "{}", replies[0]);
        for (id, late) in replies.iter().enumerate().skip(2) {
            assert_eq!(
                (&late["id"], &late["error"]["code"]),
                (&json!(id), &json!(-32000))
            );
            let text = late["error"]["message"].as_str().unwrap();
            assert!(text.starts_with("out-of-time: "), "{text}");
        }
    }

    #[test]
    fn calls_for_nobody_are_not_begun() {
        let app = app();
        let asker = Arc::new(());
        let caller = Caller {
            access: Arc::new(Access::local()),
            deadline: app.deadline(),
            wanted: Some(Wanted::by(&asker)),
        };
        let batch = json!([call(1, "link", json!({ "question": "Who?" }))]);
        let answered = app.mcp(&batch, &caller).unwrap();
        assert_eq!(answered[0]["result"]["isError"], false, "{answered}");
        drop(asker);
        let skipped = app.mcp(&batch, &caller).unwrap();
        assert_eq!(skipped[0]["error"]["code"], -32000, "{skipped}");
    }

    #[test]
    fn what_is_wrong_is_told_to_whoever_can_mend_it() {
        let mut lines = "this is no JSON\n\n{\"id\":8}\n".to_owned();
        for message in [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such" }),
            call(2, "no_tool", json!({})),
            call(3, "ask", json!({ "quest": "?" })),
            call(
                4,
                "ask",
                json!({ "question": "Who?", "topics": ["Nobody at all"] }),
            ),
            call(5, "sparql", json!({ "query": "SELECT" })),
            call(6, "ask", json!({ "question": "?".repeat(100_000) })),
        ] {
            lines += &format!("{message}\n");
        }
        let mut output = Vec::new();
        over_lines(&app(), &mut lines.as_bytes(), &mut output).unwrap();
        let replies: Vec<Value> = String::from_utf8(output)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let codes: Vec<_> = replies.iter().map(|r| r["error"]["code"].clone()).collect();
        assert_eq!(
            codes[..5],
            [-32700, -32600, -32601, -32602, -32602].map(Value::from)
        );
        for reply in &replies[5..] {
            assert_eq!(reply["result"]["isError"], true, "{reply}");
        }
        assert_eq!(replies.len(), 8);
    }

    #[test]
    fn a_line_without_end_is_one_mistake_and_what_it_holds_is_not_run() {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
        // what follows the longest line looks like a message by itself
        let mut lines = vec![b'x'; MOST_BYTES as usize];
        lines.extend(format!("{ping} {}\n{ping}\n", "y".repeat(1 << 20)).bytes());
        let mut output = Vec::new();
        over_lines(&app(), &mut lines.as_slice(), &mut output).unwrap();
        let replies = String::from_utf8(output).unwrap();
        let replies: Vec<&str> = replies.lines().collect();
        assert_eq!(replies.len(), 2, "{replies:?}");
        assert!(replies[0].contains("at most 16777216 bytes"));
        assert!(replies[1].contains("\"id\":1"));
    }
}
