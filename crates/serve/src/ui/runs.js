// Runs of `wherefore eval`, to browse.

import { get } from "/api.js";
import { address, el, label } from "/dom.js";

const PAGE = 50;

function figure(group, name) {
  const value = group?.metrics?.[name];
  const number = typeof value === "number" ? value : value?.value;
  return number === undefined ? "–" : number.toFixed(3);
}

export async function showRuns(place) {
  const { runs } = await get("/v1/runs");
  const rows = runs.map((run) => el("tr", {},
    el("td", {}, el("a", { href: address({ run: run.name }) }, run.name), run.finished ? "" : " (not finished)"),
    el("td", { class: "n" }, String(run.questions)),
    el("td", { class: "n" }, figure(run.metrics, "lenient.hit@1")), el("td", { class: "n" }, figure(run.metrics, "lenient.f1"))));
  const head = el("tr", {}, el("th", { scope: "col" }, "Run"), ...["Questions", "Hit@1", "macro F1"].map((name) => el("th", { class: "n", scope: "col" }, name)));
  place.replaceChildren(el("h1", {}, "Runs"), runs.length
    ? el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Table of runs" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)))
    : el("p", {}, "There are no runs in the folder."));
}

export async function showRun(name, parameters, place, go) {
  const path = `/v1/runs/${encodeURIComponent(name)}`;
  const offset = Number(parameters.get("offset") ?? 0);
  const outcome = parameters.get("outcome") ?? "";
  const text = parameters.get("text") ?? "";
  const [run, list] = await Promise.all([get(path), get(`${path}/questions`, { outcome, text, offset, limit: PAGE })]);
  const page = (more) => address({ run: name, outcome, text, ...more });
  const filters = [["", run.questions], ...Object.entries(run.outcomes)].map(([kind, n]) => el("button", {
    type: "button", "aria-pressed": String(kind === outcome), onclick: () => go(page({ outcome: kind, offset: 0 })),
  }, `${kind || "all"} ${n}`));
  const search = el("form", { role: "search", onsubmit: (event) => {
    event.preventDefault();
    go(page({ text: event.target.elements.text.value, offset: 0 }));
  } }, el("label", {}, "Words ", el("input", { type: "text", name: "text", value: text })));
  const rows = list.questions.map((line) => el("li", {}, el("a", { href: address({ run: name, i: line.index }) },
    label(line.question),
    el("span", { class: line.outcome === "right" ? "right" : "lost" }, label(line.answers.join(", ") || "no answer"), ` · ${line.outcome}`))));
  const pages = el("p", {});
  if (offset > 0) pages.append(el("a", { href: page({ offset: Math.max(0, offset - PAGE) }) }, "← earlier"), " ");
  if (offset + PAGE < list.total) pages.append(el("a", { href: page({ offset: offset + PAGE }) }, "later →"));
  const overall = run.metrics?.overall;
  place.replaceChildren(el("h1", {}, name),
    el("p", { class: "dim" }, `Hit@1 ${figure(overall, "lenient.hit@1")}, macro F1 ${figure(overall, "lenient.f1")}, ${run.questions} questions, version ${run.description.version ?? "?"}`),
    el("div", { class: "filters" }, ...filters), search, el("ul", { class: "rows" }, ...rows), pages);
}
