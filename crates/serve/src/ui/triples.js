// The evidence as chains and as a table.

import { $, el, label } from "/dom.js";
import { dataTable, saveButtons } from "/table.js";

function parts(answer) {
  const topics = new Set(answer.links.map((link) => link.id));
  const answers = new Set(answer.answers.map((entity) => entity.id));
  return (id) => (topics.has(id) ? "topic" : answers.has(id) ? "answer" : "");
}

// Each rationale, walked from a topic to the answer.
export function showChains(answer) {
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
        line.append(label(from[1], { class: part(from[0]) }));
      }
      const relation = [label(fact.relation), ` (${fact.score.toFixed(2)}) `];
      line.append(el("span", { class: "arrow" }, ...(forward ? ["── ", ...relation, "─▶"] : ["◀─ ", ...relation, "──"])), label(to[1], { class: part(to[0]) }));
      [here] = to;
    }
    return line;
  });
  for (const chain of answer.chains ?? []) lines.push(el("p", { class: "chain", dir: "auto" }, chain));
  $("chains").replaceChildren(...(lines.length ? lines : [el("p", { class: "dim" }, "There is no chain.")]));
}

const COLUMNS = ["Head", "Relation", "Tail", "Score", "Verified", "Proves"];

export function showTriples(answer, onfact) {
  const part = parts(answer);
  const proves = answer.evidence.map(() => []);
  for (const entity of answer.answers) for (const i of entity.rationale) proves[i]?.push(entity.name);
  const rows = answer.evidence.map((fact, i) => [fact.head, fact.relation, fact.tail, Number(fact.score.toFixed(3)), fact.verified ? "✓" : "✗", proves[i].join(", ")]);
  const index = new Map(rows.map((row, i) => [row, i]));
  const classOf = (row, column) => (column === 0 || column === 2 ? part(answer.evidence[index.get(row)].ids[column]) : "");
  const onrow = (row) => onfact(row && index.get(row));
  $("table").replaceChildren(dataTable({ columns: COLUMNS, rows, title: "Evidence as a table", by: 3, isDown: true, classOf, onrow }),
    saveButtons("evidence", COLUMNS, rows));
}
