// The page. Labels, questions and answers come from anywhere: they are only ever text, set with
// textContent, never parsed as HTML.

import { Network } from "/network.js";

const $ = (id) => document.getElementById(id);

function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const state = { about: null, answer: null, asking: null, replay: null };

// ── the server ──────────────────────────────────────────────────────────────────────────────

class Problem extends Error {
  constructor(problem) {
    super(problem.message ?? "the server failed");
    this.hint = problem.hint;
    this.status = problem.status;
    this.id = problem.id;
  }
}

function headers(more = {}) {
  const key = sessionStorage.getItem("key");
  return key ? { ...more, authorization: `Bearer ${key}` } : more;
}

async function checked(response) {
  if (response.ok) return response;
  let problem = { status: response.status, message: `the server said ${response.status}` };
  try { problem = { ...problem, ...(await response.json()) }; } catch { /* no JSON: the status must do */ }
  if (response.status === 401) $("key-form").hidden = false;
  throw new Problem(problem);
}

async function get(path, parameters = {}, options = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ""));
  const text = query.size ? `${path}?${query}` : path;
  return (await checked(await fetch(text, { headers: headers(), ...options }))).json();
}

async function post(path, body, options = {}) {
  return checked(await fetch(path, {
    method: "POST",
    headers: headers({ "content-type": "application/json" }),
    body: JSON.stringify(body),
    ...options,
  }));
}

// Reads server-sent events as they come.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
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

function tell(error) {
  if (error.name === "AbortError") return;
  const parts = [error.message];
  if (error.hint) parts.push(` — ${error.hint}`);
  if (error.id) parts.push(` (${error.id})`);
  $("problem").textContent = parts.join("");
  $("problem").hidden = false;
}

// ── colours ─────────────────────────────────────────────────────────────────────────────────

const THEMES = ["system", "light", "dark"];

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  const words = { system: "as the system has them", light: "light", dark: "dark" };
  $("theme").textContent = { system: "◐", light: "☀", dark: "☾" }[theme];
  $("theme").setAttribute("aria-label", `Colours: ${words[theme]}`);
}

$("theme").addEventListener("click", () => {
  const now = localStorage.getItem("theme") ?? "system";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});

// ── graph and method ────────────────────────────────────────────────────────────────────────

function currentGraph() {
  return state.about?.graphs.find((graph) => graph.name === $("graph").value);
}

function chooseGraph(name, method) {
  const graphs = state.about.graphs;
  const graph = graphs.find((g) => g.name === name) ?? graphs.find((g) => g.default) ?? graphs[0];
  $("graph").value = graph.name;
  $("method").replaceChildren(...graph.methods.map((m) => el("option", { value: m }, m)));
  $("method").value = graph.methods.includes(method) ? method : graph.default_method;
  const count = (n) => n.toLocaleString("en");
  $("size").textContent = `${count(graph.triples)} triples, ${count(graph.entities)} entities`;
  offerExamples(graph);
}

function offerExamples(graph) {
  $("examples").replaceChildren(...graph.examples.map((text) =>
    el("button", { type: "button", onclick: () => { $("question").value = text; $("form").requestSubmit(); } }, text)));
}

// ── completion ──────────────────────────────────────────────────────────────────────────────

const completion = { timer: 0, typed: "", items: [], at: -1, abort: null };

function closeCompletion() {
  clearTimeout(completion.timer);
  completion.abort?.abort();
  hideCompletion();
}

// What comes next may still be on its way.
function hideCompletion() {
  completion.items = [];
  completion.at = -1;
  $("completions").hidden = true;
  $("completions").replaceChildren();
  $("question").setAttribute("aria-expanded", "false");
  $("question").removeAttribute("aria-activedescendant");
}

function markCompletion(at) {
  completion.at = at;
  [...$("completions").children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
  if (at >= 0) {
    $("question").setAttribute("aria-activedescendant", `completion-${at}`);
    $("completions").children[at].scrollIntoView({ block: "nearest" });
  } else $("question").removeAttribute("aria-activedescendant");
}

function takeCompletion(at) {
  const input = $("question");
  const caret = input.selectionStart;
  const before = input.value.slice(0, caret);
  if (before.endsWith(completion.typed)) {
    const start = before.slice(0, before.length - completion.typed.length) + completion.items[at].name;
    input.value = start + input.value.slice(caret);
    input.setSelectionRange(start.length, start.length);
  }
  closeCompletion();
  input.focus();
}

async function complete() {
  const input = $("question");
  const text = input.value.slice(0, input.selectionStart);
  if (text.trim().length < 2) return hideCompletion();
  completion.abort?.abort();
  completion.abort = new AbortController();
  const found = await get("/v1/complete", { text: text.slice(-300), graph: $("graph").value }, { signal: completion.abort.signal });
  const whole = found.entities.length === 1 && found.entities[0].name === found.typed;
  if (!found.entities.length || whole) return hideCompletion();
  completion.typed = found.typed;
  completion.items = found.entities;
  $("completions").replaceChildren(...found.entities.map((entity, i) => el("li", {
    id: `completion-${i}`, role: "option", "aria-selected": "false",
    // before the input loses the focus
    onpointerdown: (event) => { event.preventDefault(); takeCompletion(i); },
  }, el("span", {}, entity.name), el("small", {}, `${entity.triples} facts`))));
  $("completions").hidden = false;
  $("question").setAttribute("aria-expanded", "true");
  markCompletion(-1);
}

$("question").addEventListener("input", () => {
  clearTimeout(completion.timer);
  completion.timer = setTimeout(() => complete().catch((error) => {
    // a request that a later one took the place of
    if (error.name === "AbortError") return;
    hideCompletion();
    if (error.status === 401) tell(error);
  }), 120);
});
$("question").addEventListener("blur", closeCompletion);
$("question").addEventListener("keydown", (event) => {
  const count = completion.items.length;
  if (!count) return;
  if (event.key === "ArrowDown") markCompletion((completion.at + 1) % count);
  else if (event.key === "ArrowUp") markCompletion((completion.at - 1 + count) % count);
  else if (event.key === "Escape") closeCompletion();
  else if ((event.key === "Enter" || event.key === "Tab") && completion.at >= 0) takeCompletion(completion.at);
  else return;
  event.preventDefault();
});

// ── asking ──────────────────────────────────────────────────────────────────────────────────

const STAGES = ["link", "retrieve", "select", "organize", "reason", "verify"];

const time = (ms) => (ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function stageDetail(stage) {
  if (stage.links) return stage.links.map((link) => link.name).slice(0, 4).join(", ") || "nothing";
  if (stage.lines !== undefined) return `${stage.lines} lines`;
  if (stage.entities !== undefined) return `${stage.triples} triples, ${stage.entities} entities`;
  if (stage.verified !== undefined) return `${stage.verified} triples found again`;
  if (stage.triples !== undefined) return `${stage.triples} triples`;
  if (stage.answers !== undefined) return `${stage.answers} answers`;
  return "";
}

function showStage(stage) {
  $("stages").querySelector(".runs")?.remove();
  $("stages").append(el("li", {}, el("b", {}, stage.stage), ` ${time(stage.ms)} `, el("small", {}, stageDetail(stage))));
  const next = STAGES[STAGES.indexOf(stage.stage) + 1];
  if (next) $("stages").append(el("li", { class: "runs" }, el("b", {}, next), " …"));
}

function begin() {
  state.asking?.abort();
  state.answer = null;
  state.replay = null;
  for (const id of ["problem", "prose", "reason", "replay", "feedback", "correct", "more", "steps", "read-as", "readings"]) $(id).hidden = true;
  for (const id of ["stages", "answers", "sub-questions", "notes", "chains", "table", "query", "json", "chosen"]) $(id).replaceChildren();
  for (const id of ["thanks", "prose"]) $(id).textContent = "";
  for (const id of ["up", "down"]) { $(id).disabled = false; $(id).setAttribute("aria-pressed", "false"); }
  network.clear();
  $("result").hidden = false;
}

async function ask(question, topics = [], reading = undefined) {
  closeCompletion();
  begin();
  $("runs").hidden = true;
  document.title = `${question} · Wherefore`;
  const abort = new AbortController();
  state.asking = abort;
  $("stages").append(el("li", { class: "runs" }, el("b", {}, "link"), " …"));
  try {
    const body = { question, graph: $("graph").value, method: $("method").value, topics, reading, stream: true };
    const response = await post("/v1/ask", body, { signal: abort.signal });
    for await (const event of events(response)) {
      if (event.name === "stage") showStage(event.data);
      else if (event.name === "text") {
        $("prose").hidden = false;
        $("prose").textContent += event.data.text;
      } else if (event.name === "error") throw new Problem(event.data);
      else if (event.name === "answer") showAnswer(event.data);
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      $("stages").querySelector(".runs")?.remove();
      $("result").hidden = !state.answer;
    }
    tell(error);
  } finally {
    if (state.asking === abort) state.asking = null;
  }
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = $("question").value.trim();
  if (!question) return;
  const address = new URLSearchParams({ q: question, graph: $("graph").value, method: $("method").value });
  history.pushState(null, "", `/?${address}`);
  ask(question);
});

// ── the answer ──────────────────────────────────────────────────────────────────────────────

const percent = (share) => `${Math.round(share * 100)}%`;

function showAnswer(answer, expected) {
  state.answer = answer;
  $("stages").querySelector(".runs")?.remove();
  const total = answer.timings_ms?.total;
  if (total !== undefined && !state.replay) {
    $("stages").append(el("li", {}, el("b", {}, "total"), ` ${time(total)}`));
  }
  $("prose").hidden = !answer.text;
  $("prose").textContent = answer.text ?? "";
  $("reason").hidden = answer.status === "answered";
  $("reason").textContent = answer.status === "answered" ? "" : `No answer: ${answer.reason ?? "nothing was found"}.`;
  showAnswers(answer, expected, FEW);
  showReadings(answer);
  showSteps(answer);
  const unproved = (answer.unproved ?? []).map((sentence) => `not proved: ${sentence}`);
  const notes = [...unproved, ...(answer.notes ?? []), ...(answer.withheld ?? []).map((held) => `withheld: ${held.name} (${held.reason})`)];
  $("notes").replaceChildren(...notes.map((note) => el("li", {}, note)));
  $("feedback").hidden = !state.about.feedback || Boolean(state.replay) || !answer.links.length;
  showChains(answer);
  showTable(answer);
  showQuery(answer);
  $("json").replaceChildren(el("pre", { tabIndex: 0 }, JSON.stringify(answer, null, 2)));
  network.show(answer);
  $("answers-title").focus({ preventScroll: true });
}

const FEW = 12;

function showAnswers(answer, expected, most) {
  const items = answer.answers.slice(0, most).map((entity, i) => answerItem(entity, i, expected));
  $("answers").replaceChildren(...items);
  $("more").hidden = answer.answers.length <= most;
  $("more").textContent = `Show all ${answer.answers.length} answers`;
  $("more").onclick = () => showAnswers(answer, expected, answer.answers.length);
}

// How the question was read, and what else it may mean: another answer that is at hand is shown at
// once, another reading is asked for.
function showReadings(answer) {
  const unused = answer.unused_words?.length ? `; not used: ${answer.unused_words.join(", ")}` : "";
  $("read-as").hidden = !answer.reading;
  $("read-as").textContent = `Read as ${answer.reading}${unused}`;
  const offer = (text, detail, onclick) =>
    el("li", {}, el("button", { type: "button", class: "quiet", onclick }, text), " ", el("small", { class: "dim" }, detail));
  const others = (answer.others ?? []).map((other) =>
    offer(other.reading ?? "another method", other.answers.slice(0, FEW).map((entity) => entity.name).join(", "),
      () => showAnswer({ ...other, others: [{ ...answer, others: [] }] })));
  const offered = new Set([answer.reading, ...(answer.others ?? []).map((other) => other.reading)]);
  const alternatives = (state.replay ? [] : answer.alternatives ?? [])
    .filter((one) => !offered.has(one.reading))
    .map((one) => offer(one.reading, percent(one.share ?? 0), () => ask(answer.question, [], one.number)));
  $("alternatives").replaceChildren(...others, ...alternatives);
  $("readings").hidden = !others.length && !alternatives.length;
}

// How the question was taken apart; the triples behind a step light up under the pointer.
function showSteps(answer) {
  const steps = answer.trace?.steps ?? [];
  $("steps").hidden = !steps.length;
  $("thought").textContent = answer.trace?.thought ?? "";
  $("sub-questions").replaceChildren(...steps.map((step) => {
    const on = () => network.highlight(step.evidence);
    const off = () => network.highlight(null);
    return el("li", { tabIndex: 0, onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off },
      step.asked, el("br"),
      el("b", {}, step.answers.length ? step.answers.join(", ") : "nothing"), " ",
      el("small", { class: "dim" }, `${step.evidence.length} facts`));
  }));
}

function answerItem(entity, i, expected) {
  const on = () => lightUp(entity, item);
  const right = expected?.some((name) => name.toLowerCase() === entity.name.toLowerCase());
  const item = el("li", { onpointerenter: on, onpointerleave: () => lightUp(null) },
    el("button", {
      class: "name", type: "button", onfocus: on, onblur: () => lightUp(null),
      "aria-label": `${entity.name}, ${percent(entity.confidence)}, proved by ${entity.rationale.length} triples`,
    }, entity.name),
    expected ? el("span", { class: right ? "right" : "lost" }, right ? " ✓" : " ✗") : null,
    el("div", { class: "sure" },
      el("meter", { min: 0, max: 1, value: entity.confidence, "aria-hidden": "true" }),
      el("span", {}, percent(entity.confidence)),
      entity.ungrounded ? el("span", { class: "unproved" }, "not proved") : null));
  item.dataset.index = i;
  return item;
}

function lightUp(entity, item) {
  for (const other of $("answers").children) other.classList.toggle("on", other === item);
  network.highlight(entity ? entity.rationale : null);
}

function parts(answer) {
  const topics = new Set(answer.links.map((link) => link.id));
  const answers = new Set(answer.answers.map((entity) => entity.id));
  return (id) => (topics.has(id) ? "topic" : answers.has(id) ? "answer" : "");
}

// Each rationale, walked from a topic to the answer.
function showChains(answer) {
  const part = parts(answer);
  const lines = answer.answers.map((entity) => {
    const facts = entity.rationale.map((i) => answer.evidence[i]).filter(Boolean);
    const line = el("p", { class: "chain" });
    let here = null;
    for (const fact of facts) {
      const [head, , tail] = fact.ids;
      const forward = here === null ? part(head) === "topic" || part(tail) !== "topic" : head === here;
      const [from, to] = forward ? [[head, fact.head], [tail, fact.tail]] : [[tail, fact.tail], [head, fact.head]];
      if (here !== from[0]) {
        if (here !== null) line.append(el("span", { class: "arrow" }, "·"));
        line.append(el("span", { class: part(from[0]) }, from[1]));
      }
      const arrow = forward ? `── ${fact.relation} (${fact.score.toFixed(2)}) ─▶` : `◀─ ${fact.relation} (${fact.score.toFixed(2)}) ──`;
      line.append(el("span", { class: "arrow" }, arrow), el("span", { class: part(to[0]) }, to[1]));
      [here] = to;
    }
    return line;
  });
  for (const chain of answer.chains ?? []) lines.push(el("p", { class: "chain" }, chain));
  $("chains").replaceChildren(...(lines.length ? lines : [el("p", { class: "dim" }, "There is no chain.")]));
}

const COLUMNS = [
  ["Head", (fact) => fact.head], ["Relation", (fact) => fact.relation], ["Tail", (fact) => fact.tail],
  ["Score", (fact) => fact.score], ["Found again", (fact) => (fact.verified ? "✓" : "✗")], ["Proves", (fact) => fact.proves],
];

function showTable(answer, by = 3, down = true) {
  const part = parts(answer);
  const rows = answer.evidence.map((fact, i) => ({
    ...fact, index: i,
    proves: answer.answers.filter((entity) => entity.rationale.includes(i)).map((entity) => entity.name).join(", "),
  }));
  const value = COLUMNS[by][1];
  rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : a.index - b.index) * (down ? -1 : 1));
  const head = el("tr", {}, ...COLUMNS.map(([name], i) => el("th", {
    class: i === 3 ? "n" : "", scope: "col", "aria-sort": i === by ? (down ? "descending" : "ascending") : "none",
  }, el("button", { type: "button", onclick: () => showTable(answer, i, i === by ? !down : i === 3) }, name))));
  const body = rows.map((fact) => el("tr", {
    onpointerenter: () => network.highlight([fact.index]), onpointerleave: () => network.highlight(null),
  }, el("td", { class: part(fact.ids[0]) }, fact.head), el("td", {}, fact.relation), el("td", { class: part(fact.ids[2]) }, fact.tail),
  el("td", { class: "n" }, fact.score.toFixed(3)), el("td", {}, fact.verified ? "✓" : "✗"), el("td", {}, fact.proves)));
  $("table").replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}

function showQuery(answer) {
  const found = [["Read as", answer.reading], ["Logical form", answer.logical_form], ["SPARQL", answer.sparql]].filter(([, text]) => text);
  $("tab-query").hidden = !found.length;
  if (!found.length && $("tab-query").getAttribute("aria-selected") === "true") chooseTab($("tab-network"));
  $("query").replaceChildren(...found.flatMap(([name, text]) => [el("h3", {}, name), el("pre", { tabIndex: 0 }, text)]));
}

// ── the evidence as a graph ─────────────────────────────────────────────────────────────────

const network = new Network($("network"), { onChoose: chosen, onExpand: expand });

network.hover = (node) => {
  const index = state.answer?.answers.findIndex((entity) => entity.id === node.id) ?? -1;
  if (index >= 0) lightUp(state.answer.answers[index], $("answers").children[index]);
  else network.highlightNode(node);
};

function chosen(node) {
  if (!node) return $("chosen").replaceChildren();
  const askAbout = () => { $("question").value = `${node.label} `; $("question").focus(); };
  return $("chosen").replaceChildren(el("b", {}, node.label),
    el("button", { type: "button", id: "expand", onclick: () => expand(node) }, "Show its neighbours"),
    el("button", { type: "button", onclick: askAbout }, "Ask about it"));
}

async function expand(node) {
  try {
    const graph = state.replay ? undefined : $("graph").value;
    const found = await get("/v1/neighbourhood", { id: node.id, graph, limit: 30 });
    network.expand(node.id, found.triples);
    const more = found.total > found.triples.length ? `${found.triples.length} of ${found.total}` : `all ${found.total}`;
    $("chosen").append(el("span", { class: "dim" }, `${more} facts shown`));
  } catch (error) { tell(error); }
}

$("zoom-in").addEventListener("click", () => network.zoom(1.3));
$("zoom-out").addEventListener("click", () => network.zoom(1 / 1.3));
$("zoom-fit").addEventListener("click", () => network.fit());

const tabs = [...document.querySelectorAll("[role=tab]")];

function chooseTab(tab) {
  for (const other of tabs) {
    const chosenTab = other === tab;
    other.setAttribute("aria-selected", String(chosenTab));
    other.tabIndex = chosenTab ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !chosenTab;
  }
}

for (const tab of tabs) {
  tab.addEventListener("click", () => chooseTab(tab));
  tab.addEventListener("keydown", (event) => {
    const seen = tabs.filter((other) => !other.hidden);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = seen[(seen.indexOf(tab) + step + seen.length) % seen.length];
    chooseTab(next);
    next.focus();
  });
}

// ── thumbs ──────────────────────────────────────────────────────────────────────────────────

async function vote(kind, expected = []) {
  const { answer } = state;
  const body = {
    question: answer.question, vote: kind, graph: $("graph").value, expected,
    topics: answer.links.map((link) => link.id).slice(0, 50), answers: answer.answers.map((entity) => entity.name).slice(0, 50),
  };
  try {
    await post("/v1/feedback", body);
    $("thanks").textContent = "Kept, thank you.";
    $("correct").hidden = true;
    for (const id of ["up", "down"]) $(id).disabled = true;
  } catch (error) { tell(error); }
}

$("up").addEventListener("click", () => { $("up").setAttribute("aria-pressed", "true"); vote("up"); });
$("down").addEventListener("click", () => {
  $("down").setAttribute("aria-pressed", "true");
  $("correct").hidden = false;
  $("expected").focus();
});
$("correct").addEventListener("submit", (event) => {
  event.preventDefault();
  vote("down", $("expected").value.split(";").map((name) => name.trim()).filter(Boolean));
});

// ── runs ────────────────────────────────────────────────────────────────────────────────────

const PAGE = 50;

function figure(group, name) {
  const value = group?.metrics?.[name];
  const number = typeof value === "number" ? value : value?.value;
  return number === undefined ? "–" : number.toFixed(3);
}

async function showRuns() {
  begin();
  $("result").hidden = true;
  document.title = "Runs · Wherefore";
  const { runs } = await get("/v1/runs");
  const rows = runs.map((run) => el("tr", {},
    el("td", {}, el("a", { href: `/?${new URLSearchParams({ run: run.name })}` }, run.name), run.finished ? "" : " (not finished)"),
    el("td", { class: "n" }, String(run.questions)),
    el("td", { class: "n" }, figure(run.metrics, "lenient.hit@1")), el("td", { class: "n" }, figure(run.metrics, "lenient.f1"))));
  const head = el("tr", {}, el("th", { scope: "col" }, "Run"), ...["Questions", "Hit@1", "macro F1"].map((name) => el("th", { class: "n", scope: "col" }, name)));
  $("runs").replaceChildren(el("h2", {}, "Runs"),
    runs.length ? el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))) : el("p", {}, "There are no runs in the folder."));
  $("runs").hidden = false;
}

async function showRun(name, parameters) {
  begin();
  $("result").hidden = true;
  document.title = `${name} · Wherefore`;
  const path = `/v1/runs/${encodeURIComponent(name)}`;
  const offset = Number(parameters.get("offset") ?? 0);
  const outcome = parameters.get("outcome") ?? "";
  const text = parameters.get("text") ?? "";
  const [run, list] = await Promise.all([get(path), get(`${path}/questions`, { outcome, text, offset, limit: PAGE })]);
  const address = (more) => `/?${new URLSearchParams({ run: name, outcome, text, ...more })}`;
  const filters = [["", run.questions], ...Object.entries(run.outcomes)].map(([kind, count]) => el("a", {
    href: address({ outcome: kind, offset: 0 }), "aria-current": kind === outcome ? "true" : "false",
  }, el("button", { type: "button", tabIndex: -1, "aria-pressed": String(kind === outcome) }, `${kind || "all"} ${count}`)));
  const search = el("form", { role: "search", onsubmit: (event) => {
    event.preventDefault();
    go(address({ text: event.target.elements.text.value, offset: 0 }));
  } }, el("label", {}, "Words ", el("input", { type: "text", name: "text", value: text })));
  const rows = list.questions.map((line) => el("li", {}, el("a", { href: `/?${new URLSearchParams({ run: name, i: line.index })}` },
    el("span", {}, line.question),
    el("span", { class: line.outcome === "right" ? "right" : "lost" }, `${line.answers.join(", ") || "no answer"} · ${line.outcome}`))));
  const pages = el("p", {});
  if (offset > 0) pages.append(el("a", { href: address({ offset: Math.max(0, offset - PAGE) }) }, "← earlier"), " ");
  if (offset + PAGE < list.total) pages.append(el("a", { href: address({ offset: offset + PAGE }) }, "later →"));
  const overall = run.metrics?.overall;
  $("runs").replaceChildren(el("h2", {}, name),
    el("p", { class: "dim" }, `Hit@1 ${figure(overall, "lenient.hit@1")}, macro F1 ${figure(overall, "lenient.f1")}, ${run.questions} questions, version ${run.description.version ?? "?"}`),
    el("div", { class: "filters" }, ...filters), search, el("ul", { class: "rows" }, ...rows), pages);
  $("runs").hidden = false;
}

async function replay(name, index) {
  begin();
  $("runs").hidden = true;
  const found = await get(`/v1/runs/${encodeURIComponent(name)}/questions/${index}`);
  state.replay = name;
  const names = (found.expected?.answers ?? []).map((answer) => (typeof answer === "string" ? answer : answer.name));
  const { answer } = found;
  $("question").value = answer.question;
  document.title = `${answer.question} · ${name}`;
  for (const stage of [...STAGES, "total"]) {
    if (answer.timings_ms?.[stage] !== undefined) $("stages").append(el("li", {}, el("b", {}, stage), ` ${time(answer.timings_ms[stage])}`));
  }
  $("replay").hidden = false;
  $("replay").replaceChildren("Replayed from ", el("a", { href: `/?${new URLSearchParams({ run: name })}` }, name),
    `, question ${index}, ${answer.outcome ?? ""}. Expected: ${names.slice(0, 12).join(", ") || "–"}. `,
    el("a", { href: `/?${new URLSearchParams({ run: name, i: Number(index) + 1 })}` }, "next →"));
  showAnswer(answer, names);
}

// ── addresses ───────────────────────────────────────────────────────────────────────────────

function go(address) {
  history.pushState(null, "", address);
  route().catch(tell);
}

// Links within the page need no new page.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const address = new URL(link.href);
  if (address.origin !== location.origin || address.pathname !== "/" || address.hash) return;
  event.preventDefault();
  go(address.search || "/");
});

async function route() {
  const parameters = new URLSearchParams(location.search);
  const inRuns = parameters.has("runs") || parameters.has("run");
  $("nav-ask").toggleAttribute("aria-current", !inRuns);
  $("nav-runs").toggleAttribute("aria-current", inRuns);
  $("ask").hidden = inRuns && !parameters.has("i");
  $("problem").hidden = true;
  if (parameters.has("run") && parameters.has("i")) return replay(parameters.get("run"), parameters.get("i"));
  if (parameters.has("run")) return showRun(parameters.get("run"), parameters);
  if (parameters.has("runs")) return showRuns();
  $("runs").hidden = true;
  chooseGraph(parameters.get("graph"), parameters.get("method"));
  const question = parameters.get("q");
  if (question) {
    $("question").value = question;
    return ask(question, parameters.getAll("topic"));
  }
  state.asking?.abort();
  $("result").hidden = true;
  document.title = "Wherefore";
  $("question").value = "";
  $("question").focus();
  return undefined;
}

async function start() {
  setTheme(localStorage.getItem("theme") ?? "system");
  try {
    state.about = await get("/v1/graphs");
  } catch (error) {
    tell(error);
    return;
  }
  $("problem").hidden = true;
  $("key-form").hidden = true;
  $("nav-runs").hidden = !state.about.runs;
  $("graph").replaceChildren(...state.about.graphs.map((graph) => el("option", { value: graph.name }, graph.name)));
  chooseGraph();
  await route();
}

$("graph").addEventListener("change", () => chooseGraph($("graph").value));
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", $("key").value.trim());
  $("key").value = "";
  start().catch(tell);
});
addEventListener("popstate", () => route().catch(tell));
document.addEventListener("keydown", (event) => {
  // the way to the question from anywhere
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    $("question").focus();
  }
});
start().catch(tell);
