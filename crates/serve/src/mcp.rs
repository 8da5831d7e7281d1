//! The Model Context Protocol: what agents may call, over standard input and output or over HTTP.
//!
//! The protocol is JSON-RPC 2.0; each message is answered by itself, so there are no sessions to
//! keep. Tools: `ask`, `retrieve`, `link`, `sparql`, `describe_entity`, `verify`. Resources: the
//! relations of each graph.

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wherefore::graph::sparql::{ResultFormat, SparqlOptions};
use wherefore::{Answer, Question};

use crate::api::{json_bytes, read_json, to_json};
use crate::app::App;
use crate::engine::{Asked, clipped};
use crate::openai::written;
use crate::problem::Problem;

/// Versions that are spoken, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Messages in one batch.
const MOST_MESSAGES: usize = 32;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArguments {
    question: String,
    graph: Option<String>,
    method: Option<String>,
    #[serde(default)]
    topics: Vec<String>,
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
    answer: Answer,
    graph: Option<String>,
}

/// What a tool gives: text for the model, and the same for programs.
struct Given {
    text: String,
    value: Value,
}

impl App {
    /// Answers a message, or a batch of them; nothing for what needs no answer.
    fn mcp(&self, message: &Value) -> Option<Value> {
        match message {
            Value::Array(messages) if (1..=MOST_MESSAGES).contains(&messages.len()) => {
                let replies: Vec<Value> = messages.iter().filter_map(|m| self.mcp_one(m)).collect();
                (!replies.is_empty()).then(|| replies.into())
            }
            message => self.mcp_one(message),
        }
    }

    fn mcp_one(&self, message: &Value) -> Option<Value> {
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // a reply to something that we never asked needs no answer
            let is_reply = message.get("result").is_some() || message.get("error").is_some();
            return (!is_reply).then(|| error(id.as_ref(), -32600, "this is no request"));
        };
        // what has no id is a notification
        let id = id.filter(|id| !id.is_null())?;
        let params = message.get("params").cloned().unwrap_or(json!({}));
        Some(match self.mcp_call(method, &params) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(fault) => error(Some(&id), fault.code, &fault.message),
        })
    }

    fn mcp_call(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        match method {
            "initialize" => Ok(self.mcp_initialize(params)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": tools() })),
            "tools/call" => self.mcp_tool(params),
            "resources/list" => Ok(json!({ "resources": self.mcp_resources() })),
            "resources/templates/list" => Ok(json!({ "resourceTemplates": [{
                "uriTemplate": "wherefore://graphs/{graph}/relations",
                "name": "relations",
                "description": "The relations of a graph, the most frequent first",
                "mimeType": "application/json",
            }] })),
            "resources/read" => self.mcp_read(params),
            other => Err(Fault {
                code: -32601,
                message: format!("there is no method `{}`", clipped(other)),
            }),
        }
    }

    fn mcp_initialize(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = VERSIONS
            .iter()
            .find(|v| **v == asked)
            .unwrap_or(&VERSIONS[0]);
        let graphs: Vec<String> = (self.engine.graphs())
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

    fn mcp_resources(&self) -> Vec<Value> {
        self.engine
            .graphs()
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

    fn mcp_read(&self, params: &Value) -> Result<Value, Fault> {
        let uri = params["uri"].as_str().unwrap_or_default();
        let name = uri
            .strip_prefix("wherefore://graphs/")
            .and_then(|rest| rest.strip_suffix("/relations"));
        let missing = || Fault {
            code: -32002,
            message: format!("there is no resource `{}`", clipped(uri)),
        };
        let graph = name.and_then(|name| self.engine.graph(Some(name)).ok());
        let relations = (graph.ok_or_else(missing)?)
            .relations(MOST_RELATIONS)
            .map_err(|error| self.mcp_fault(error.into()))?;
        let text = serde_json::to_string(&relations).expect("texts and numbers are JSON");
        Ok(json!({ "contents": [{ "uri": uri, "mimeType": "application/json", "text": text }] }))
    }

    fn mcp_tool(&self, params: &Value) -> Result<Value, Fault> {
        let name = params["name"].as_str().unwrap_or_default();
        let given = params.get("arguments").cloned().unwrap_or(json!({}));
        let done = match name {
            "ask" => self.mcp_ask(arguments(given)?),
            "retrieve" => self.mcp_retrieve(arguments(given)?),
            "link" => self.mcp_link(arguments(given)?),
            "sparql" => self.mcp_sparql(&arguments(given)?),
            "describe_entity" => self.mcp_describe(&arguments(given)?),
            "verify" => self.mcp_verify(&arguments(given)?),
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
                let hint = problem.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
                let hint = hint.unwrap_or_default();
                let text = format!("{}: {}{hint}", problem.code, problem.message);
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

    fn mcp_asked(&self, arguments: AskArguments) -> Result<Asked, Problem> {
        let question = Question::new(arguments.question).about(arguments.topics);
        self.check_question(&question)?;
        Ok(Asked {
            question,
            graph: arguments.graph,
            method: arguments.method,
        })
    }

    fn mcp_ask(&self, arguments: AskArguments) -> Result<Given, Problem> {
        let asked = self.mcp_asked(arguments)?;
        let deadline = self.deadline();
        let answer = (self.engine).ask(&asked, deadline, |_| ControlFlow::Continue(()))?;
        self.metrics.answer(&answer);
        Ok(Given {
            text: written(&answer),
            value: json!(answer),
        })
    }

    fn mcp_retrieve(&self, arguments: AskArguments) -> Result<Given, Problem> {
        let top_k = arguments.top_k.map(|k| k.clamp(1, MOST_TRIPLES));
        let asked = self.mcp_asked(arguments)?;
        Ok(as_json(&self.engine.retrieve(&asked, top_k)?))
    }

    fn mcp_link(&self, arguments: AskArguments) -> Result<Given, Problem> {
        let asked = self.mcp_asked(arguments)?;
        Ok(as_json(&self.engine.link(&asked)?))
    }

    fn mcp_sparql(&self, arguments: &SparqlArguments) -> Result<Given, Problem> {
        let graph = self.engine.graph(arguments.graph.as_deref())?;
        let limits = &self.config.limits;
        let options = SparqlOptions {
            timeout: Some(Duration::from_secs_f64(limits.sparql_seconds)),
            max_rows: Some(limits.rows),
        };
        let (bytes, written) = graph.sparql(&arguments.query, &options, ResultFormat::Json)?;
        let results: Value = serde_json::from_slice(&bytes)
            .map_err(|e| Problem::internal(format!("results are no JSON: {e}")))?;
        Ok(as_json(
            &json!({ "results": results, "cut": written.is_cut }),
        ))
    }

    fn mcp_describe(&self, arguments: &DescribeArguments) -> Result<Given, Problem> {
        let graph = self.engine.graph(arguments.graph.as_deref())?;
        let limit = arguments.limit.unwrap_or(50).clamp(1, MOST_TRIPLES);
        Ok(as_json(&graph.neighbourhood(&arguments.entity, limit)?))
    }

    fn mcp_verify(&self, arguments: &VerifyArguments) -> Result<Given, Problem> {
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
        });
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
    let reply = app
        .answer(move |app| Ok(app.mcp(&message).map(|reply| to_json(&reply))))
        .await?;
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
    loop {
        let mut line = Vec::new();
        let read = io::Read::take(&mut *input, MOST_BYTES).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let reply = match serde_json::from_slice(&line) {
            Ok(message) => app.mcp(&message),
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
}
