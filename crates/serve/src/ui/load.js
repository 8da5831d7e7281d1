// Loads a file as a graph: drop it, see its first rows, say which columns they are.

import { headers, problemOf } from "/api.js";
import { $, count, el, label, many, short } from "/dom.js";

const MOST_BYTES = 200 * 2 ** 20;
const PREVIEW_BYTES = 64 * 1024;
const PREVIEW_ROWS = 6;
const TABLES = { csv: ",", tsv: "\t" };
const FORMATS = ["nt", "nq", "ttl", "trig", "rdf", "xml", "jsonld", "json", "jsonl", "tsv", "csv", "txt", "sqlite", "sqlite3", "db", "xlsx", "xlsm"];

// The ending without that of a compression: `people.csv.gz` is a `csv`.
function formatOf(name) {
  const parts = name.toLowerCase().split(".");
  if (/^(gz|xz|zst)$/.test(parts.at(-1))) parts.pop();
  return parts.length > 1 ? parts.at(-1) : "";
}

// Rows of CSV, as RFC 4180 has them; the last one may be cut off.
export function rowsOf(text, separator) {
  if (separator === "\t") return text.split(/\r?\n/).filter(Boolean).map((line) => line.split("\t"));
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i];
    const row = rows.at(-1);
    if (quoted) {
      if (c !== '"') row[row.length - 1] += c;
      else if (text[i + 1] === '"') { row[row.length - 1] += c; i += 1; } else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === separator) row.push("");
    else if (c === "\n") rows.push([""]);
    else if (c !== "\r") row[row.length - 1] += c;
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

function upload(query, file, onprogress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/load?${query}`);
    for (const [name, value] of Object.entries(headers({ "content-type": "application/octet-stream" }))) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => onprogress(event.loaded / Math.max(event.total, 1)));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(problemOf(request.status, request.responseText));
    });
    request.addEventListener("error", () => reject(new Error("the connection closed while the file was sent")));
    request.send(file);
  });
}

// What a row or an object is: `query(parameters)` adds it to the request. `rows` are the first ones of
// a table; JSON has none. `called` is the class that its rows have if nothing is said.
function mapping(rows, called) {
  const columns = rows ? rows[0].map((title, i) => `${i + 1}: ${short(title, 40)}`) : [];
  const select = (name, chosen) => el("select", { "aria-label": name }, ...columns.map((title, i) => el("option", { value: String(i + 1), selected: i === chosen }, title)));
  const [head, relation, tail, thing] = [select("Head", 0), select("Relation", 1), select("Tail", 2), select("Name", 0)];
  const typed = el("input", { type: "checkbox" });
  const split = el("input", { type: "text", size: 3, maxLength: 8 });
  const kind = el("input", { type: "text", size: 12, maxLength: 100, value: called });
  const labelled = (name, field) => el("label", {}, `${name} `, field);
  const triples = el("p", { class: "choices" }, ...(rows ? [labelled("Head", head), labelled("Relation", relation), labelled("Tail", tail)] : []),
    el("label", {}, typed, " numbers and dates are values"));
  const things = el("p", { class: "choices" }, ...(rows ? [labelled("Its name is in", thing)] : []), labelled("It is a", kind), labelled("Several values in a cell are separated by", split));
  const choice = (value, text, checked) => el("label", {}, el("input", { type: "radio", name: "rows", value, checked, onchange: () => draw() }), ` ${text}`);
  const isWideFirst = !rows || rows[0].length !== 3;
  const kinds = el("fieldset", {}, el("legend", {}, "Each row or object is"), choice("triple", "one triple", !isWideFirst), " ", choice("thing", "one thing", isWideFirst));
  const isWide = () => kinds.querySelector("input:checked").value === "thing";
  const draw = () => { triples.hidden = isWide(); things.hidden = !isWide(); };
  draw();
  const preview = rows ? [el("p", { class: "dim" }, "The first rows"), el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "First rows" }, el("table", {},
    ...rows.slice(0, PREVIEW_ROWS).map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, label(short(cell, 80))))))))] : [];
  return {
    parts: [...preview, kinds, triples, things],
    query: (parameters) => {
      if (isWide()) {
        parameters.set("wide", "true");
        if (rows) parameters.set("name_column", thing.value);
        if (split.value) parameters.set("split", split.value);
        if (kind.value.trim() !== called) parameters.set("class", kind.value.trim());
      } else {
        if (rows) parameters.set("columns", [head, relation, tail].map((field) => field.value).join(","));
        if (typed.checked) parameters.set("typed", "true");
      }
    },
  };
}

async function offer(file, onloaded) {
  const place = $("load-file");
  const format = formatOf(file.name);
  const refuse = (text) => place.replaceChildren(el("p", { class: "lost", role: "alert" }, text));
  if (file.size > MOST_BYTES) return refuse(`${file.name} has ${count(Math.ceil(file.size / 2 ** 20))} MB, and the page loads at most 200 MB. Load it with "wherefore load" instead.`);
  if (!file.size) return refuse(`${file.name} is empty.`);
  if (!FORMATS.includes(format)) return refuse(`${file.name} ends in none of: ${FORMATS.join(", ")}.`);
  const separator = file.name.toLowerCase().endsWith(format) ? TABLES[format] : undefined;
  const rows = separator ? rowsOf(await file.slice(0, PREVIEW_BYTES).text(), separator) : [];
  const called = file.name.replace(/\..*$/, "").replace(/[_-]+/g, " ").trim();
  const isPacked = format in TABLES && !separator;
  const columns = rows.length ? mapping(rows, called) : /^(jsonl?|xls[xm])$/.test(format) ? mapping(null, called) : null;
  const name = el("input", { type: "text", id: "load-name", required: true, value: file.name.replace(/\..*$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "-").toLowerCase() });
  const progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Sent" });
  const state = el("p", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const query = new URLSearchParams({ graph: name.value.trim(), file: file.name });
    columns?.query(query);
    progress.hidden = false;
    state.className = "";
    state.textContent = "Sending";
    form.querySelector("[type=submit]").disabled = true;
    try {
      const loaded = await upload(query, file, (share) => {
        progress.value = share;
        state.textContent = share < 1 ? `Sending, ${Math.round(share * 100)}%` : "Loading";
      });
      place.replaceChildren(el("p", { role: "status" }, `Loaded ${loaded.graph}: ${many(loaded.triples, "triple")}, ${many(loaded.entities, "entity", "entities")}, ${many(loaded.relations, "relation")}, in ${loaded.seconds.toFixed(1)} s.`),
        ...(loaded.malformed ? [el("p", { class: "lost" }, `${many(loaded.malformed, "line")} passed over: ${loaded.mistakes.map((one) => short(one, 300)).join("; ")}`)] : []),
        ...(loaded.notes ?? []).map((note) => el("p", { class: "dim" }, label(note))));
      await onloaded(loaded);
    } catch (error) {
      state.className = "lost";
      state.textContent = `${error.message}${error.hint ? ` — ${error.hint}` : ""}`;
      progress.hidden = true;
      form.querySelector("[type=submit]").disabled = false;
    }
  };
  const form = el("form", { onsubmit: send }, el("p", {}, el("b", {}, label(file.name)), ` ${count(Math.ceil(file.size / 1024))} KB`),
    isPacked ? el("p", { class: "dim" }, "The first three columns are head, relation and tail. Unpack it to choose others.") : null,
    ...(columns?.parts ?? []), el("p", { class: "choices" }, el("label", {}, "Name of the graph ", name), el("button", { type: "submit" }, "Load")), progress, state);
  return place.replaceChildren(form);
}

export function enableLoading(onloaded) {
  $("load").hidden = false;
  $("load-choose").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) offer(file, onloaded);
    event.target.value = "";
  });
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    $("load").classList.add("over");
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("load").classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    $("load").classList.remove("over");
    $("load").open = true;
    const [file] = event.dataTransfer.files;
    if (file) offer(file, onloaded);
  });
}
