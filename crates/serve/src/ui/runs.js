// Runs of `wherefore eval`: how they came out, question by question.

import { get } from "/api.js";
import { address, count, el, label } from "/dom.js";
import { dataTable } from "/table.js";

const PAGE = 50;
const MAIN = [["Hit@1", "lenient.hit@1"], ["F1", "lenient.f1"]];
const VERDICTS = [["right", "Right", "✓"], ["wrong", "Wrong", "✗"], ["refused", "Refused", "–"]];

const words = (code) => (code ?? "").replaceAll("-", " ");

const number = (value) => (typeof value === "number" ? Number(value.toFixed(3)) : null);

const when = (seconds) => (seconds === null ? "" : new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " "));

// A metric with its interval, where it has one.
function figure(group, name) {
  const { value, interval } = group?.metrics?.[name] ?? {};
  if (typeof value !== "number") return "";
  const ends = Array.isArray(interval) ? ` [${interval.map((end) => Number(end).toFixed(3)).join(", ")}]` : "";
  return `${value.toFixed(3)}${ends}`;
}

const stateOf = (run) => (run.problem ? `damaged: ${run.problem}` : run.finished ? "finished" : "not finished");

export async function showRuns(place) {
  place.replaceChildren(el("h1", {}, "Runs"), el("p", { class: "dim" }, "…"));
  const { runs } = await get("/v1/runs");
  const columns = ["Run", "Graph", "Method", "Questions", ...MAIN.map(([title]) => title), "Written (UTC)", "State"];
  const rows = runs.map((run) => [run.name, run.graph ?? "", run.method ?? "", run.questions,
    ...MAIN.map(([, name]) => number(run.metrics?.metrics?.[name]?.value)), when(run.modified), stateOf(run)]);
  const runOf = new Map(rows.map((row, i) => [row, runs[i]]));
  const link = (row, i) => (i === 0 ? address({ run: row[0] }) : null);
  const show = (cell, i, row) => {
    const metric = MAIN.find(([title]) => title === columns[i]);
    return metric ? figure(runOf.get(row).metrics, metric[1]) : String(cell);
  };
  place.lastChild.replaceWith(runs.length
    ? dataTable({ columns, rows, title: "Table of runs", by: columns.indexOf("Written (UTC)"), isDown: true, link, show })
    : el("p", {}, "There are no runs: `wherefore eval … --out RUN` makes them."));
}

// What all questions of a run came to.
function metricsOf(run) {
  const overall = run.metrics?.overall;
  const names = Object.keys(overall?.metrics ?? {});
  if (!names.length) return el("p", {}, "There are no metrics before the last question is answered.");
  const rows = names.map((name) => [name, figure(overall, name), overall.metrics[name].questions]);
  return el("div", {},
    el("p", {}, MAIN.map(([title, name]) => `${title} ${figure(overall, name) || "–"}`).join(", ")),
    el("details", {}, el("summary", {}, "All metrics"), dataTable({ columns: ["Metric", "Value, 95% interval", "Questions"], rows, title: "Metrics of the run" })));
}

function questionsTable(run, lines) {
  const sign = new Map(VERDICTS.map(([verdict, , mark]) => [verdict, `${mark} `]));
  const rows = lines.map((line) => [line.question, line.expected, line.answers, number(line.f1), number(line.confidence),
    `${sign.get(line.verdict) ?? ""}${words(line.outcome)}`, line.status === "answered" ? "" : words(line.refusal) || "no answer"]);
  const lineOf = new Map(rows.map((row, i) => [row, lines[i]]));
  const columns = ["Question", "Expected", "Answers", "F1", "Confidence", "Saved answer", "Refusal"];
  const link = (row, i) => {
    const line = lineOf.get(row);
    if (columns[i] === "Question") return address({ q: line.question, graph: run.graph });
    return columns[i] === "Saved answer" ? address({ run: run.name, i: line.index }) : null;
  };
  return dataTable({ columns, rows, title: "Questions of the run", link });
}

export async function showRun(name, parameters, place, go) {
  place.replaceChildren(el("h1", {}, label(name)), el("p", { class: "dim" }, "…"));
  const path = `/v1/runs/${encodeURIComponent(name)}`;
  const offset = Number(parameters.get("offset") ?? 0);
  const [only, outcome, text] = ["only", "outcome", "text"].map((key) => parameters.get(key) ?? "");
  const [run, { questions, total }] = await Promise.all([get(path), get(`${path}/questions`, { only, outcome, text, offset, limit: PAGE })]);
  const page = (more) => address({ run: name, only, outcome, text, ...more });
  const filters = [["", "All", run.done], ...VERDICTS.map(([verdict, title]) => [verdict, title, run.verdicts[verdict]])];
  const buttons = filters.map(([verdict, title, n]) => el("button", {
    type: "button", "aria-pressed": String(verdict === only), onclick: () => go(page({ only: verdict })),
  }, `${title} ${count(n)}`));
  const outcomes = [["", "any"], ...Object.entries(run.outcomes).map(([code, n]) => [code, `${words(code)} (${count(n)})`])];
  const search = el("form", { class: "choices", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const { elements } = event.target;
    go(page({ outcome: elements.outcome.value, text: elements.text.value }));
  } },
  el("label", {}, "Outcome ", el("select", { name: "outcome" }, ...outcomes.map(([code, title]) => el("option", { value: code, selected: code === outcome }, title)))),
  el("label", {}, "Words ", el("input", { type: "search", name: "text", value: text, dir: "auto" })), el("button", { type: "submit" }, "Filter"));
  const last = Math.min(offset + PAGE, total);
  const facts = [run.graph, run.method, run.topics && `${run.topics} topics`, `${count(run.done)} of ${count(run.questions)} questions`,
    when(run.modified) && `${when(run.modified)} UTC`, run.description?.version && `version ${run.description.version}`].filter(Boolean);
  place.lastChild.replaceWith(
    el("p", { class: "dim" }, ...facts.flatMap((fact, i) => [i ? " · " : "", label(fact)])),
    ...(run.problem ? [el("p", { class: "lost" }, `This run is damaged: ${run.problem}`)] : []),
    metricsOf(run),
    el("h2", {}, "Questions"),
    el("div", { class: "filters", role: "group", "aria-label": "Questions that came out" }, ...buttons), search,
    total ? questionsTable(run, questions) : el("p", {}, "There are no such questions."),
    el("p", { class: "actions" },
      offset > 0 ? el("a", { href: page({ offset: Math.max(0, offset - PAGE) }) }, "← earlier") : null,
      el("span", { class: "dim" }, last > offset ? `${count(offset + 1)} to ${count(last)} of ${count(total)}` : ""),
      last < total ? el("a", { href: page({ offset: last }) }, "later →") : null));
}
