// The answers as a list, a table, a number, yes or no, a bar chart, a map.

import { barChart, map, numericColumns, placesOf } from "/chart.js";
import { $, address, count, el, label, many, numberOf, percent } from "/dom.js";
import { dataTable, saveButtons } from "/table.js";

const FEW = 12;
const TRIPLES = 8;

const isLiteral = (entity) => entity.id.startsWith('"');

// What a single answer is: `yes`, `no`, `number`, or null.
function verdict(answer) {
  if (answer.answers.length !== 1) return null;
  const [entity] = answer.answers;
  const word = entity.name.toLowerCase();
  if (entity.computed && (word === "yes" || word === "no")) return word;
  return numberOf(entity.name) !== null && (entity.computed || isLiteral(entity)) ? "number" : null;
}

// A year has no thousands.
function spoken(name) {
  const value = numberOf(name);
  return value !== null && Math.abs(value) >= 10_000 && Number.isSafeInteger(value) ? count(value) : name;
}

// Triples in words, each with its entities as links.
export function proofList(answer, indices, graph, most = TRIPLES) {
  const facts = indices.map((i) => answer.evidence[i]).filter(Boolean);
  const thing = (name, id) => (graph && !id.startsWith('"') ? el("a", { href: address({ entity: id, graph }) }, label(name)) : label(name));
  const lines = facts.slice(0, most).map((fact) => el("li", {}, thing(fact.head, fact.ids[0]), " ",
    label(fact.relation, { class: "relation" }), " ", thing(fact.tail, fact.ids[2])));
  if (facts.length > most) lines.push(el("li", { class: "dim" }, many(facts.length - most, "more triple")));
  return el("ul", { class: "proof" }, ...lines);
}

function answerItem(answer, i, { expected, graph, onanswer }) {
  const entity = answer.answers[i];
  const kind = verdict(answer);
  const on = () => onanswer(entity);
  const off = () => onanswer(null);
  const right = expected?.some((name) => name.toLowerCase() === entity.name.toLowerCase());
  const title = label(kind ? spoken(entity.name) : entity.name);
  const isThing = graph && !entity.computed && !isLiteral(entity);
  const name = isThing ? el("a", { class: "name", href: address({ entity: entity.id, graph }) }, title)
    : el("span", { class: "name", tabIndex: 0, role: "note" }, title);
  name.addEventListener("focus", on);
  name.addEventListener("blur", off);
  const item = el("li", { class: kind ?? "", onpointerenter: on, onpointerleave: off }, name,
    expected ? el("span", { class: right ? "right" : "lost" }, right ? " ✓" : " ✗") : null,
    el("div", { class: "sure" },
      el("meter", { min: 0, max: 1, value: entity.confidence, "aria-hidden": "true" }),
      el("span", {}, percent(entity.confidence)),
      entity.ungrounded ? el("span", { class: "unproved" }, "not proved") : el("span", {}, entity.rationale.length ? many(entity.rationale.length, "triple") : "")));
  if (kind) item.append(proofList(answer, entity.rationale, graph));
  item.dataset.id = entity.id;
  return item;
}

function tableView(answer, columns, graph) {
  if (answer.table) {
    const { table } = answer;
    const rows = table.rows.map((row) => row.map((cell) => (cell.length === 1 ? cell[0] : cell)));
    const ids = new Map(answer.answers.map((entity) => [entity.name, entity.id]));
    const link = (row, i) => (i === 0 && graph && ids.has(row[0]) ? address({ entity: ids.get(row[0]), graph }) : null);
    return [dataTable({ columns: table.columns, rows, title: "Answers as a table", link }),
      table.left_out ? el("p", { class: "dim" }, `${many(table.left_out, "row")} left out`) : null,
      saveButtons("answers", table.columns, rows)];
  }
  const titles = ["Name", "Confidence", "Triples", ...columns.map(({ title }) => title)];
  const rows = answer.answers.map((entity, i) => [entity.name, Number(entity.confidence.toFixed(3)), entity.rationale.length, ...columns.map(({ values }) => values[i].value)]);
  const ids = new Map(rows.map((row, i) => [row, answer.answers[i]]));
  const link = (row, i) => {
    const entity = ids.get(row);
    return i === 0 && graph && !entity.computed && !isLiteral(entity) ? address({ entity: entity.id, graph }) : null;
  };
  return [dataTable({ columns: titles, rows, title: "Answers as a table", link }),
    saveButtons("answers", ["Name", "IRI", ...titles.slice(1)], rows.map((row, i) => [row[0], answer.answers[i].id, ...row.slice(1)]))];
}

// Shows the answers of an answer. `onanswer` is told which one the pointer or the focus is on.
export function showAnswers(answer, options) {
  const { graph, mayLook, onanswer, isCurrent } = options;
  const columns = numericColumns(answer);
  const list = (most) => {
    $("answers").replaceChildren(...answer.answers.slice(0, most).map((_, i) => answerItem(answer, i, options)));
    $("more").hidden = answer.answers.length <= most;
    $("more").textContent = `Show all ${count(answer.answers.length)} answers`;
  };
  const views = new Map([["List", () => []]]);
  if (answer.answers.length > 1 || answer.table) views.set("Table", () => tableView(answer, columns, graph));
  if (columns.length) views.set("Chart", () => columns.map(barChart));
  const show = async (name) => {
    for (const button of $("views").children) button.setAttribute("aria-pressed", String(button.textContent === name));
    $("answers").hidden = name !== "List";
    $("more").hidden = name !== "List" || answer.answers.length <= $("answers").children.length;
    $("answer-view").replaceChildren(...(await views.get(name)()).filter(Boolean));
  };
  const offer = () => {
    $("views").hidden = views.size < 2;
    $("views").replaceChildren(...[...views.keys()].map((name) =>
      el("button", { type: "button", "aria-pressed": "false", onclick: () => show(name) }, name)));
  };
  list(FEW);
  $("more").onclick = () => list(answer.answers.length);
  offer();
  show(answer.table ? "Table" : "List");
  if (!graph || !answer.answers.length) return;
  // a map is offered when it is known that there is something on it
  placesOf(answer, graph, mayLook).then((places) => {
    if (!places.length || !isCurrent()) return;
    const chosen = [...$("views").children].find((button) => button.getAttribute("aria-pressed") === "true").textContent;
    const linkOf = (place) => address({ entity: place.id, graph });
    const onplace = (place) => onanswer(place && answer.answers.find(({ id }) => id === place.id));
    views.set("Map", async () => [await map(places, { linkOf, onplace })]);
    offer();
    for (const button of $("views").children) button.setAttribute("aria-pressed", String(button.textContent === chosen));
  }).catch(() => { /* the key may not query: no map */ });
}

// Marks the answer that the pointer is on, wherever it is.
export function markAnswer(entity) {
  for (const item of $("answers").children) item.classList.toggle("on", Boolean(entity) && item.dataset.id === entity.id);
}
