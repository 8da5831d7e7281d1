// The page. Labels, questions and answers come from anywhere: they are only ever text, set with
// textContent, never parsed as HTML.

import { markAnswer, showAnswers } from "/answers.js";
import { CLOSED, events, get, post, Problem } from "/api.js";
import { closeCompletion, enableCompletion } from "/complete.js";
import { $, address, copy, copyButton, count, el, label, many, short, time } from "/dom.js";
import { sparqlEditor } from "/editor.js";
import { EvidenceGraph, proofOf } from "/evidence.js";
import { remember, showPast } from "/past.js";
import { showAlternatives, showOthers, showReading, showRefusal } from "/reading.js";
import { showChains, showTriples } from "/triples.js";

const state = { about: null, answer: null, asking: null, replay: null, mayFollow: false };

// Tells of an error; `again` asks once more.
function tell(error, again) {
  if (error.name === "AbortError") return;
  if (error.status === 401) $("key-form").hidden = false;
  const parts = [error.message];
  if (error.hint) parts.push(` — ${error.hint}`);
  if (error.id) parts.push(` (${error.id})`);
  $("problem").replaceChildren(el("span", {}, short(parts.join(""), 2000)));
  if (again) $("problem").append(" ", el("button", { type: "button", onclick: again }, "Ask again"));
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
  return state.about.graphs.find((graph) => graph.name === $("graph").value);
}

function chooseGraph(name, method) {
  const { graphs } = state.about;
  const graph = graphs.find((g) => g.name === name) ?? graphs.find((g) => g.default) ?? graphs[0];
  $("graph").value = graph.name;
  $("method").replaceChildren(...graph.methods.map((m) => el("option", { value: m }, m)));
  $("method").value = graph.methods.includes(method) ? method : graph.default_method;
  // a service does not say how much it holds
  $("size").textContent = graph.triples === null ? "" : `${count(graph.triples)} triples, ${count(graph.entities)} entities`;
  $("nav-schema").href = address({ schema: "", graph: graph.name });
  $("examples").replaceChildren(...graph.examples.map((text) => el("button", { type: "button", dir: "auto", onclick: () => {
    $("question").value = text;
    $("form").requestSubmit();
  } }, text)));
}

// ── asking ──────────────────────────────────────────────────────────────────────────────────

const STAGES = ["link", "retrieve", "select", "organize", "reason", "verify"];

function stageDetail(stage) {
  if (stage.links) return short(stage.links.map((link) => link.name).slice(0, 4).join(", ") || "nothing", 120);
  if (stage.lines !== undefined) return many(stage.lines, "line");
  if (stage.entities !== undefined) return `${many(stage.triples, "triple")}, ${many(stage.entities, "entity", "entities")}`;
  if (stage.verified !== undefined) return `${many(stage.verified, "triple")} verified`;
  if (stage.triples !== undefined) return many(stage.triples, "triple");
  if (stage.answers !== undefined) return many(stage.answers, "answer");
  return "";
}

function showStage(stage) {
  $("stages").querySelector(".runs")?.remove();
  $("stages").append(el("li", {}, el("b", {}, stage.stage), ` ${time(stage.ms)} `, el("small", { dir: "auto" }, stageDetail(stage))));
  const next = STAGES[STAGES.indexOf(stage.stage) + 1];
  if (next) $("stages").append(el("li", { class: "runs" }, el("b", {}, next), " …"));
}

function begin() {
  state.asking?.abort();
  state.answer = null;
  state.replay = null;
  for (const id of ["problem", "prose", "reason", "refusal", "replay", "feedback", "correct", "more", "steps", "reading", "readings", "others",
    "views", "follow", "hero", "examples", "page", "runs", "all-evidence"]) $(id).hidden = true;
  for (const id of ["stages", "answers", "answer-view", "sub-questions", "notes", "chains", "table", "query", "json", "chosen", "words", "read-as"]) $(id).replaceChildren();
  for (const id of ["thanks", "prose"]) $(id).textContent = "";
  for (const id of ["up", "down"]) { $(id).disabled = false; $(id).setAttribute("aria-pressed", "false"); }
  network.clear();
  $("result").hidden = false;
}

// What a follow-up needs of the answer before; names and values of any length would not fit.
const CARRIED = 100;
const LONGEST = 2000;

function context(answer) {
  const { question, logical_form, links } = answer;
  const answers = answer.answers.slice(0, CARRIED).filter(({ id }) => id.length <= LONGEST).map(({ id, name }) => ({ id, name: short(name, LONGEST) }));
  return { question, logical_form, links, answers };
}

const mayFollow = () => state.mayFollow && state.answer?.status === "answered" && !state.replay;

async function ask(question, { topics = [], reading = undefined, follow = undefined } = {}) {
  closeCompletion();
  begin();
  document.title = `${short(question, 200)} · Wherefore`;
  const abort = new AbortController();
  state.asking = abort;
  $("stages").append(el("li", { class: "runs" }, el("b", {}, "link"), " …"));
  let answer = null;
  try {
    const body = { question, graph: $("graph").value, method: $("method").value, topics, reading, follow, stream: true };
    const response = await post("/v1/ask", body, { signal: abort.signal });
    for await (const event of events(response)) {
      if (event.name === "stage") showStage(event.data);
      else if (event.name === "text") {
        $("prose").hidden = false;
        $("prose").textContent += event.data.text;
      } else if (event.name === "error") throw new Problem(event.data);
      else if (event.name === "answer") answer = event.data;
    }
    if (!answer) throw new Problem({ message: CLOSED });
  } catch (error) {
    if (error.name === "AbortError") return;
    $("stages").querySelector(".runs")?.remove();
    // what was written so far is not checked, and is no answer
    $("prose").hidden = true;
    $("result").hidden = true;
    // a request with a mistake has the same mistake again
    const mayHelp = !error.status || error.status === 429 || error.status >= 500;
    tell(error, mayHelp ? () => ask(question, { topics, reading, follow }) : null);
    return;
  } finally {
    if (state.asking === abort) state.asking = null;
  }
  showAnswer(answer);
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = $("question").value.trim();
  if (!question) return;
  // the graphs may still be on their way
  await started;
  const [graph, method] = [$("graph").value, $("method").value];
  remember(question, graph, method);
  history.pushState(null, "", address({ q: question, graph, method }));
  ask(question);
});

$("follow").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = $("follow-question").value.trim();
  if (!question || !state.answer) return;
  const parameters = new URLSearchParams(location.search);
  parameters.append("then", question);
  history.pushState(null, "", `/?${parameters}`);
  ask(question, { follow: context(state.answer) });
});

$("share").addEventListener("click", () => copy(location.href, $("share")));

// ── the answer ──────────────────────────────────────────────────────────────────────────────

function showAnswer(answer, expected) {
  state.answer = answer;
  $("stages").querySelector(".runs")?.remove();
  const total = answer.timings_ms?.total;
  if (total !== undefined && !state.replay) $("stages").append(el("li", {}, el("b", {}, "total"), ` ${time(total)}`));
  $("prose").hidden = !answer.text;
  $("prose").textContent = answer.text ?? "";
  // a replayed answer may be of a graph that is not served
  const graph = state.replay ? null : $("graph").value;
  showReading(answer, (id) => {
    const node = id && network.byId.get(id);
    if (node) network.highlightNode(node);
    else network.highlight(null);
  });
  showRefusal(answer);
  // a service is asked nothing that nobody asked for
  const mayLook = currentGraph()?.triples !== null;
  showAnswers(answer, { expected, graph, mayLook, onanswer: lightUp, isCurrent: () => state.answer === answer });
  showAlternatives(answer, state.replay ? null : (reading) => ask(answer.question, { reading }));
  showOthers(answer, graph, (other) => showAnswer({ question: answer.question, ...other, others: [{ ...answer, others: [] }] }));
  showSteps(answer);
  const unproved = (answer.unproved ?? []).map((sentence) => `not proved: ${sentence}`);
  const notes = [...unproved, ...(answer.notes ?? []), ...(answer.withheld ?? []).map((held) => `withheld: ${held.name} (${held.reason})`)];
  $("notes").replaceChildren(...notes.map((note) => el("li", { dir: "auto" }, short(note, 2000))));
  $("feedback").hidden = !state.about.feedback || Boolean(state.replay) || !answer.links.length;
  $("follow").hidden = !mayFollow();
  $("follow-question").value = "";
  $("share").hidden = Boolean(state.replay);
  showChains(answer);
  showTriples(answer, (index) => network.highlight(index === null ? null : [index]));
  showQuery(answer, graph);
  const json = JSON.stringify(answer, null, 2);
  $("json").replaceChildren(el("p", { class: "actions" }, copyButton(json)),
    el("pre", { tabIndex: 0, "aria-label": "The answer as JSON", role: "region" }, json));
  showEvidence(false);
  $("answers-title").focus({ preventScroll: true });
}

// How the question was taken apart; the triples behind a step light up under the pointer.
function showSteps(answer) {
  const steps = answer.trace?.steps ?? [];
  $("steps").hidden = !steps.length;
  $("thought").textContent = answer.trace?.thought ?? "";
  $("sub-questions").replaceChildren(...steps.map((step) => {
    const on = () => network.highlight(step.evidence);
    const off = () => network.highlight(null);
    return el("li", { tabIndex: 0, dir: "auto", onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off },
      step.asked, el("br"),
      el("b", {}, step.answers.length ? short(step.answers.join(", "), 1000) : "nothing"), " ",
      el("small", { class: "dim" }, many(step.evidence.length, "triple")));
  }));
}

function lightUp(entity) {
  markAnswer(entity);
  network.highlight(entity ? entity.rationale : null);
}

function showQuery(answer, graph) {
  const texts = [["Read as", answer.reading], ["Logical form", answer.logical_form]].filter(([, text]) => text);
  const query = answer.sparql ?? "SELECT ?head ?relation ?tail WHERE {\n  ?head ?relation ?tail\n}\nLIMIT 20";
  $("query").replaceChildren(
    ...texts.flatMap(([name, text]) => [el("h3", {}, name), el("div", { class: "copied" }, el("pre", { tabIndex: 0, dir: "auto" }, text), copyButton(text))]),
    el("h3", {}, "SPARQL"),
    graph ? sparqlEditor({ graph, query, tell }) : el("div", { class: "copied" }, el("pre", { tabIndex: 0 }, query), copyButton(query)));
}

// ── the evidence as a graph ─────────────────────────────────────────────────────────────────

const network = new EvidenceGraph($("network"), { onChoose: chosen, onExpand: expand, onHover: hovered });

function showEvidence(isAll) {
  const { answer } = state;
  const [all, proof] = [answer.evidence.length, proofOf(answer).size];
  $("no-evidence").hidden = all > 0;
  for (const part of document.querySelectorAll(".with-evidence")) part.hidden = !all;
  network.show(answer, isAll);
  const button = $("all-evidence");
  button.hidden = !proof || proof >= all;
  button.setAttribute("aria-pressed", String(isAll));
  button.textContent = isAll ? "Show only the proof" : `Show all evidence (${many(all, "triple")})`;
  button.onclick = () => showEvidence(!isAll);
}

function hovered(node) {
  const entity = node && state.answer?.answers.find(({ id }) => id === node.id);
  if (entity) lightUp(entity);
  else {
    markAnswer(null);
    if (node) network.highlightNode(node);
    else network.highlight(null);
  }
}

function askAbout({ name }) {
  $("question").value = `${name} `;
  $("question").focus();
}

function chosen(node) {
  if (!node) return $("chosen").replaceChildren();
  const isThing = !state.replay && !node.id.startsWith('"');
  return $("chosen").replaceChildren(el("b", {}, label(node.label)),
    el("button", { type: "button", id: "expand", onclick: () => expand(node) }, "Show its neighbours"),
    ...(isThing ? [el("a", { href: address({ entity: node.id, graph: $("graph").value }) }, "Open its page")] : []),
    el("button", { type: "button", onclick: () => askAbout({ name: node.label }) }, "Ask about it"));
}

async function expand(node) {
  try {
    const graph = state.replay ? undefined : $("graph").value;
    const found = await get("/v1/neighbourhood", { id: node.id, graph, limit: 30 });
    network.expand(node.id, found.triples);
    const more = found.total > found.triples.length ? `${found.triples.length} of ${found.total}` : `all ${found.total}`;
    $("chosen").querySelector(".dim")?.remove();
    $("chosen").append(el("span", { class: "dim" }, `${more} triples shown`));
  } catch (error) { tell(error); }
}

$("zoom-in").addEventListener("click", () => network.zoom(1.3));
$("zoom-out").addEventListener("click", () => network.zoom(1 / 1.3));
$("zoom-fit").addEventListener("click", () => network.fit());

// the code for pictures is fetched when one is wanted
const picture = (act) => async () => {
  try { await act(await import("/picture.js")); } catch (error) { tell(error); }
};
$("save-png").addEventListener("click", picture(({ savePng }) => savePng($("network"), "evidence")));
$("save-svg").addEventListener("click", picture(({ saveSvg }) => saveSvg($("network"), "evidence")));
$("save-graphml").addEventListener("click", picture(({ saveGraphml }) => saveGraphml(network, "evidence")));

const tabs = [...document.querySelectorAll("[role=tab]")];

function chooseTab(tab) {
  for (const other of tabs) {
    const isChosen = other === tab;
    other.setAttribute("aria-selected", String(isChosen));
    other.tabIndex = isChosen ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !isChosen;
  }
}

for (const tab of tabs) {
  tab.addEventListener("click", () => chooseTab(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
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
    $("thanks").textContent = "Saved, thank you.";
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

// ── addresses ───────────────────────────────────────────────────────────────────────────────

function go(to) {
  history.pushState(null, "", to);
  $("question").value = "";
  route().catch(tell);
}

// Links within the page need no new page.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  // the address of a link in an SVG is an object
  const to = new URL(link.href.baseVal ?? link.href, location.href);
  if (to.origin !== location.origin || to.pathname !== "/" || to.hash) return;
  event.preventDefault();
  go(to.search || "/");
});

async function replay(name, index) {
  begin();
  const found = await get(`/v1/runs/${encodeURIComponent(name)}/questions/${index}`);
  state.replay = name;
  const names = (found.expected?.answers ?? []).map((answer) => (typeof answer === "string" ? answer : answer.name));
  const { answer } = found;
  $("question").value = answer.question;
  document.title = `${short(answer.question, 200)} · ${name}`;
  for (const stage of [...STAGES, "total"]) {
    if (answer.timings_ms?.[stage] !== undefined) $("stages").append(el("li", {}, el("b", {}, stage), ` ${time(answer.timings_ms[stage])}`));
  }
  $("replay").hidden = false;
  $("replay").replaceChildren("Replayed from ", el("a", { href: address({ run: name }) }, name),
    `, question ${index}, ${answer.outcome ?? ""}. Expected: ${short(names.slice(0, 12).join(", "), 1000) || "–"}. `,
    el("a", { href: address({ q: answer.question, graph: found.graph }) }, "Ask it now"), " ",
    el("a", { href: address({ run: name, i: Number(index) + 1 }) }, "next →"));
  showAnswer(answer, names);
}

// A page without a question; it is shown in `place`.
async function open(place, title, show) {
  begin();
  $("result").hidden = true;
  document.title = `${short(title, 200)} · Wherefore`;
  $(place).hidden = false;
  scrollTo(0, 0);
  await show($(place));
  $("main").focus({ preventScroll: true });
}

async function route() {
  const parameters = new URLSearchParams(location.search);
  const kind = ["run", "runs", "schema", "entity"].find((name) => parameters.has(name)) ?? "ask";
  const isReplay = kind === "run" && parameters.has("i");
  const isRuns = kind === "run" || kind === "runs";
  for (const [id, isHere] of [["nav-ask", kind === "ask"], ["nav-schema", kind === "schema" || kind === "entity"], ["nav-runs", isRuns]]) {
    if (isHere) $(id).setAttribute("aria-current", "page");
    else $(id).removeAttribute("aria-current");
  }
  $("ask").hidden = isRuns && !isReplay;
  $("problem").hidden = true;
  if (isReplay) return replay(parameters.get("run"), parameters.get("i"));
  if (isRuns) {
    const { showRun, showRuns } = await import("/runs.js");
    if (kind === "runs") return open("runs", "Runs", showRuns);
    return open("runs", parameters.get("run"), (place) => showRun(parameters.get("run"), parameters, place, go));
  }
  chooseGraph(parameters.get("graph"), parameters.get("method"));
  if (kind !== "ask") {
    const { showEntity, showSchema } = await import("/schema.js");
    const graph = $("graph").value;
    if (kind === "schema") return open("page", "Schema", (place) => showSchema(graph, place));
    return open("page", parameters.get("entity"), async (place) => {
      const entity = await showEntity(parameters.get("entity"), graph, place, askAbout);
      document.title = `${short(entity.name, 200)} · Wherefore`;
    });
  }
  const question = parameters.get("q");
  if (question) {
    $("question").value = question;
    await ask(question, { topics: parameters.getAll("topic") });
    for (const next of parameters.getAll("then")) {
      if (state.answer?.status !== "answered" || location.search !== `?${parameters}`) return undefined;
      await ask(next, { follow: context(state.answer) });
    }
    return undefined;
  }
  state.asking?.abort();
  for (const id of ["result", "page", "runs"]) $(id).hidden = true;
  for (const id of ["hero", "examples"]) $(id).hidden = false;
  document.title = "Wherefore";
  $("question").focus();
  return undefined;
}

async function showGraphs() {
  state.about = await get("/v1/graphs");
  $("graph").replaceChildren(...state.about.graphs.map((graph) => el("option", { value: graph.name }, graph.name)));
}

// The graph that was just loaded, with questions to try.
async function loaded({ graph, questions }) {
  await showGraphs();
  const found = state.about.graphs.find(({ name }) => name === graph);
  if (found && questions?.length) found.examples = questions;
  history.pushState(null, "", address({ graph }));
  await route();
}

async function start() {
  setTheme(localStorage.getItem("theme") ?? "system");
  showPast();
  try {
    await showGraphs();
  } catch (error) {
    tell(error);
    return;
  }
  $("problem").hidden = true;
  $("key-form").hidden = true;
  $("nav-runs").hidden = !state.about.runs;
  get("/v1/methods").then(({ follow }) => {
    state.mayFollow = follow === true;
    $("follow").hidden = !mayFollow();
  }).catch(() => { /* no follow-ups then */ });
  if (state.about.may_load && $("load").hidden) import("/load.js").then(({ enableLoading }) => enableLoading(loaded)).catch(tell);
  chooseGraph();
  await route();
}

enableCompletion(tell);
$("graph").addEventListener("change", () => {
  const parameters = new URLSearchParams(location.search);
  if (parameters.has("schema")) go(address({ schema: "", graph: $("graph").value }));
  else chooseGraph($("graph").value);
});
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
const started = start().catch(tell);
