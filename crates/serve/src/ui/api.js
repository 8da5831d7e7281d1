// The server's API.

export class Problem extends Error {
  constructor(problem) {
    super(problem.message ?? "the server failed");
    this.hint = problem.hint;
    this.status = problem.status;
    this.id = problem.id;
  }
}

export function headers(more = {}) {
  const key = sessionStorage.getItem("key");
  return key ? { ...more, authorization: `Bearer ${key}` } : more;
}

// The problem that a reply without success tells of.
export function problemOf(status, text) {
  const problem = { status, message: `the server replied with status ${status}` };
  try { return new Problem({ ...problem, ...JSON.parse(text) }); } catch { return new Problem(problem); }
}

async function checked(response) {
  if (response.ok) return response;
  throw problemOf(response.status, await response.text());
}

export async function get(path, parameters = {}, options = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ""));
  const text = query.size ? `${path}?${query}` : path;
  return (await checked(await fetch(text, { headers: headers(), ...options }))).json();
}

export async function post(path, body, options = {}) {
  return checked(await fetch(path, {
    method: "POST",
    headers: headers({ "content-type": "application/json" }),
    body: JSON.stringify(body),
    ...options,
  }));
}

// Runs a query: its rows, a truth value, or triples as Turtle.
export async function sparql(graph, query, options = {}) {
  const response = await checked(await fetch(`/v1/graphs/${encodeURIComponent(graph)}/sparql`, {
    method: "POST",
    headers: headers({
      "content-type": "application/sparql-query",
      accept: "application/sparql-results+json, text/turtle;q=0.9",
    }),
    body: query,
    ...options,
  }));
  const cut = response.headers.get("wherefore-cut");
  if (!response.headers.get("content-type").includes("json")) return { turtle: await response.text(), cut };
  const { head, results, boolean } = await response.json();
  return boolean === undefined ? { columns: head.vars, rows: results.bindings, cut } : { boolean };
}

// The name of a thing of the graph as an IRI of SPARQL: docs/sparql.md, "Names that are not IRIs".
export function iri(id) {
  if (/^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]+$/i.test(id)) return `<${id}>`;
  const escaped = id.replace(/[%\s<>"{}[\]|\\^#`\u0000-\u001f\u007f]/g, (c) => encodeURIComponent(c));
  return `<name:${escaped.replace(/^\/\//, "%2F/")}>`;
}

const relationsOf = new Map();

// The relations of a graph, the most frequent first, at most so many; asked for once.
export function relations(graph, limit) {
  const key = `${limit} ${graph}`;
  if (!relationsOf.has(key)) {
    const found = get(`/v1/graphs/${encodeURIComponent(graph)}/relations`, { limit }).then((reply) => reply.relations);
    found.catch(() => relationsOf.delete(key));
    relationsOf.set(key, found);
  }
  return relationsOf.get(key);
}

export const CLOSED = "the connection closed before the answer was complete";

// Reads server-sent events as they come.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : new Problem({ message: CLOSED });
    });
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const event = { name: "message", data: "" };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) event.name = line.slice(7);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      text = text.slice(end + 2);
      if (event.data) yield { name: event.name, data: JSON.parse(event.data) };
    }
  }
}
