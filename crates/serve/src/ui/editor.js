// An editor for SPARQL: colours, completion of keywords and names, rows as a table.

import { get, iri, relations, sparql } from "/api.js";
import { address, copyButton, count, el, label, many, short } from "/dom.js";
import { dataTable, saveButtons } from "/table.js";

const KEYWORDS = ["SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "WHERE", "DISTINCT", "REDUCED", "FILTER", "OPTIONAL", "UNION", "MINUS",
  "BIND", "VALUES", "AS", "EXISTS", "NOT", "IN", "GROUP BY", "HAVING", "ORDER BY", "ASC", "DESC", "LIMIT", "OFFSET", "PREFIX", "BASE",
  "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "STR", "LANG", "LANGMATCHES", "DATATYPE", "BOUND", "IRI", "COALESCE",
  "IF", "REGEX", "CONTAINS", "STRSTARTS", "STRENDS", "STRLEN", "SUBSTR", "LCASE", "UCASE", "CONCAT", "REPLACE", "ABS", "ROUND", "CEIL",
  "FLOOR", "YEAR", "MONTH", "DAY", "NOW", "isIRI", "isLITERAL", "isBLANK", "isNUMERIC", "TRUE", "FALSE", "a"];
const WORDS = new Set(KEYWORDS.flatMap((keyword) => keyword.toUpperCase().split(" ")));

const TOKEN = /(?<comment>#[^\n]*)|(?<iri><[^<>"{}|^`\\\s]*>)|(?<string>"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<variable>[?$][\w\p{L}]+)|(?<number>\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b)|(?<name>[\p{L}\w-]*:(?:[\p{L}\w.-]|%[\da-f]{2}|\\.)*)|(?<word>[\p{L}_]\w*)/giu;

function coloured(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    let [kind] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    if (kind === "word") kind = WORDS.has(match[0].toUpperCase()) ? "keyword" : null;
    if (!kind) continue;
    parts.push(text.slice(end, match.index), el("span", { class: `token-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  // a line that is still empty has its height
  parts.push(`${text.slice(end)}\n`);
  return parts;
}

const MOST = 10;
const RELATIONS = 10_000;

// What the text before the caret may go on to: `[{ text, insert, detail }]`.
async function completions(graph, typed, isAsked) {
  const plain = typed.replace(/^[<:]/, "");
  if (!isAsked && plain.length < 2) return [];
  const low = plain.toLowerCase();
  const keywords = /^[<:]/.test(typed) ? [] : KEYWORDS.filter((word) => word.toLowerCase().startsWith(low))
    .map((word) => ({ text: word, insert: word, detail: "keyword" }));
  const [known, named] = await Promise.all([
    relations(graph, RELATIONS),
    plain.length < 2 ? { entities: [] } : get("/v1/entities", { prefix: plain, graph, limit: MOST }),
  ]);
  const fitting = known.filter(({ name, id }) => `${name} ${id}`.toLowerCase().includes(low)).slice(0, MOST)
    .map(({ name, id, triples }) => ({ text: name, insert: iri(id), detail: `relation${triples ? `, ${many(triples, "triple")}` : ""}` }));
  const entities = named.entities.filter(({ id }) => !/^("|_:)/.test(id))
    .map(({ name, id }) => ({ text: name, insert: iri(id), detail: "entity" }));
  return [...keywords.slice(0, 4), ...fitting, ...entities].slice(0, MOST * 2);
}

let editors = 0;

export function sparqlEditor({ graph, query, tell }) {
  editors += 1;
  const id = `editor-${editors}`;
  const colours = el("pre", { "aria-hidden": "true" });
  const list = el("ul", { id: `${id}-list`, role: "listbox", "aria-label": "Keywords and names", class: "completions", hidden: true });
  const input = el("textarea", {
    id, value: query, spellcheck: false, "aria-label": "SPARQL query", "aria-controls": `${id}-list`, "aria-autocomplete": "list",
    autocomplete: "off", autocapitalize: "off",
  });
  const output = el("div", { class: "rows-found", role: "status" });
  const offer = { items: [], at: -1, typed: "", timer: 0 };

  const paint = () => {
    colours.replaceChildren(...coloured(input.value));
    input.rows = Math.min(Math.max(input.value.split("\n").length + 1, 6), 24);
  };
  const close = () => {
    clearTimeout(offer.timer);
    Object.assign(offer, { items: [], at: -1 });
    list.hidden = true;
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (at) => {
    offer.at = at;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    list.children[at]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `${id}-${at}`);
  };
  const take = (at) => {
    const caret = input.selectionStart;
    input.setRangeText(`${offer.items[at].insert} `, caret - offer.typed.length, caret, "end");
    close();
    paint();
    input.focus();
  };
  const typedNow = () => /[<:]?[\p{L}\p{N}_][\p{L}\p{N}_ ]*$|[<:]$/u.exec(input.value.slice(0, input.selectionStart).split("\n").at(-1))?.[0] ?? "";
  const complete = async (isAsked) => {
    const line = typedNow();
    // a name may have spaces: the longest end of the line that something begins with
    const words = line.split(" ");
    const caret = input.selectionStart;
    for (let from = Math.max(0, words.length - 4); from < words.length; from += 1) {
      const typed = words.slice(from).join(" ");
      const items = typed || isAsked ? await completions(graph, typed, isAsked) : [];
      if (input.selectionStart !== caret || document.activeElement !== input) return;
      if (!items.length) continue;
      Object.assign(offer, { items, typed });
      list.replaceChildren(...items.map((item, i) => el("li", { id: `${id}-${i}`, role: "option", "aria-selected": "false",
        onpointerdown: (event) => { event.preventDefault(); take(i); } }, label(item.text), el("small", {}, item.detail))));
      list.hidden = false;
      return;
    }
    close();
  };
  const run = async () => {
    close();
    output.replaceChildren("…");
    const begun = performance.now();
    try {
      const found = await sparql(graph, input.value);
      const took = `${Math.round(performance.now() - begun)} ms`;
      output.replaceChildren(...shown(found, took, graph));
    } catch (error) {
      output.replaceChildren(el("p", { class: "lost" }, error.message, error.hint ? ` — ${error.hint}` : ""));
      if (error.status === 401) tell(error);
    }
  };

  input.addEventListener("input", () => {
    paint();
    clearTimeout(offer.timer);
    offer.timer = setTimeout(() => complete(false).catch(close), 200);
  });
  input.addEventListener("scroll", () => { colours.scrollTop = input.scrollTop; colours.scrollLeft = input.scrollLeft; });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const n = offer.items.length;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") run();
    else if (event.ctrlKey && event.key === " ") complete(true).catch(close);
    else if (!n) return;
    else if (event.key === "ArrowDown") mark((offer.at + 1) % n);
    else if (event.key === "ArrowUp") mark((offer.at - 1 + n) % n);
    else if (event.key === "Escape") close();
    else if ((event.key === "Enter" || event.key === "Tab") && offer.at >= 0) take(offer.at);
    else return;
    event.preventDefault();
  });
  paint();
  return el("div", { class: "editor" },
    el("div", { class: "code" }, colours, input, list),
    el("p", { class: "actions" },
      el("button", { type: "button", class: "run", onclick: run }, "Run"), copyButton(() => input.value),
      el("span", { class: "dim" }, "Ctrl+Enter runs, Ctrl+Space completes")),
    output);
}

// A name that SPARQL sees as an IRI is written as the name.
function termText(term) {
  if (!term) return "";
  if (term.type === "uri" && term.value.startsWith("name:")) {
    try { return decodeURIComponent(term.value.slice(5)); } catch { return term.value.slice(5); }
  }
  return term.type === "bnode" ? `_:${term.value}` : term.value;
}

function shown(found, took, graph) {
  if (found.turtle !== undefined) return [el("p", { class: "dim" }, took), el("pre", { tabIndex: 0 }, found.turtle), el("p", { class: "actions" }, copyButton(found.turtle))];
  if (found.boolean !== undefined) return [el("p", { class: "verdict" }, found.boolean ? "yes" : "no"), el("p", { class: "dim" }, took)];
  const rows = found.rows.map((row) => found.columns.map((name) => termText(row[name])));
  const terms = new Map(rows.map((row, i) => [row, found.rows[i]]));
  const link = (row, i) => (terms.get(row)[found.columns[i]]?.type === "uri" ? address({ entity: row[i], graph }) : null);
  const cut = found.cut ? `, the first ${count(Number(found.cut))} only` : "";
  return [el("p", { class: "dim" }, `${many(rows.length, "row")}${cut}, ${took}`),
    dataTable({ columns: found.columns, rows, title: "Rows of the query", link, show: (cell) => short(cell, 400) }),
    saveButtons("rows", found.columns, rows)];
}
