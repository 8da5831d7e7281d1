// The classes and relations of a graph, and the page of an entity.

import { get, iri, sparql } from "/api.js";
import { address, count, el, label, lastPart, many } from "/dom.js";

const EXAMPLES = 3;
const SHOWN = 100;
const TRIPLES = 500;
const IN_A_GROUP = 20;
const NAMES = 200;

const entityLink = (graph, name, id) => (id.startsWith('"') ? label(name) : el("a", { href: address({ entity: id, graph }) }, label(name)));

// The graph's schema; where the server does not know it, the relations alone.
async function schemaOf(graph) {
  try {
    return await get(`/v1/graphs/${encodeURIComponent(graph)}/schema`);
  } catch (error) {
    if (error.status !== 404) throw error;
    const { relations } = await get(`/v1/graphs/${encodeURIComponent(graph)}/relations`, { limit: 10_000 });
    return {
      classes: [],
      relations: relations.map(({ name, id, triples, example }) => ({
        name, iri: id, count: triples, examples: example ? [{ head: example.head, tail: example.tail, ids: example.ids }] : [],
      })),
    };
  }
}

const isFiltered = (words, ...texts) => words.every((word) => texts.some((text) => text?.toLowerCase().includes(word)));

function classItem(graph, found) {
  return el("li", {}, el("b", {}, label(found.name)), " ", el("span", { class: "dim" }, many(found.count, "entity", "entities")),
    el("div", { class: "examples-of" }, ...found.examples.slice(0, EXAMPLES).flatMap(({ name, id }) => [entityLink(graph, name, id), " "])));
}

function relationItem(graph, found) {
  const ends = (classes) => (classes ?? []).slice(0, EXAMPLES).map((end) => end.class).join(", ");
  const isValue = found.kind !== undefined && found.kind !== "thing";
  const [from, to] = [ends(found.from), isValue ? found.kind : ends(found.to)];
  const signature = from || to ? el("div", { class: "dim" }, label(from || "any"), " → ", label(to || "any")) : null;
  // an example names its entities; ids are there where the relations alone are known
  const examples = found.examples.slice(0, EXAMPLES).map(({ head, tail, ids }) => el("div", { class: "examples-of" },
    entityLink(graph, head, ids?.[0] ?? head), ` ${lastPart(found.name)} `, isValue ? label(tail) : entityLink(graph, tail, ids?.[2] ?? tail)));
  return el("li", {}, el("b", {}, label(found.name)), " ",
    found.count === undefined || found.count === null ? null : el("span", { class: "dim" }, many(found.count, "triple")), signature, ...examples);
}

export async function showSchema(graph, place) {
  place.replaceChildren(el("h1", {}, "Schema"), el("p", { class: "dim" }, "…"));
  const schema = await schemaOf(graph);
  const filter = el("input", { type: "search", "aria-label": "Filter classes and relations", placeholder: "Filter" });
  const lists = el("div", { class: "schema" });
  const [classesLeft, relationsLeft] = schema.left_out ?? [0, 0];
  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const section = (title, all, item, left) => {
      const found = all.filter((one) => isFiltered(words, one.name, one.iri));
      if (!all.length) return null;
      return el("section", {}, el("h2", {}, `${title} `, el("span", { class: "dim" }, found.length < all.length ? `${count(found.length)} of ${count(all.length)}` : count(all.length))),
        el("ul", { class: "things" }, ...found.slice(0, SHOWN).map((one) => item(graph, one))),
        left ? el("p", { class: "dim" }, `${count(left)} rarer ones are left out`) : null,
        found.length > SHOWN ? el("p", { class: "dim" }, `${count(found.length - SHOWN)} more: filter to find them`) : null);
    };
    lists.replaceChildren(...[section("Classes", schema.classes, classItem, classesLeft), section("Relations", schema.relations, relationItem, relationsLeft)].filter(Boolean));
  };
  filter.addEventListener("input", draw);
  draw();
  place.replaceChildren(el("h1", {}, "Schema of ", label(graph)), el("p", {}, filter), lists);
}

// Its other names: texts of the relations that a neighbourhood leaves out, because they give names.
async function namesOf(entity, graph, triples) {
  if (/^("|_:)/.test(entity.id)) return [];
  const known = new Set(triples.map((fact) => iri(fact.ids[1])));
  const { rows } = await sparql(graph, `SELECT DISTINCT ?relation ?name WHERE { ${iri(entity.id)} ?relation ?name FILTER(isLiteral(?name)) } LIMIT ${NAMES}`);
  const names = rows.filter((row) => !known.has(`<${row.relation.value}>`)).map((row) => row.name.value);
  return [...new Set(names)].filter((name) => name !== entity.name);
}

export async function showEntity(id, graph, place, onask) {
  place.replaceChildren(el("p", { class: "dim" }, "…"));
  const found = await get("/v1/neighbourhood", { id, graph, limit: TRIPLES });
  const { entity } = found;
  const groups = new Map();
  for (const fact of found.triples) {
    const isHead = fact.ids[0] === entity.id;
    const key = `${isHead ? "→" : "←"} ${fact.ids[1]}`;
    if (!groups.has(key)) groups.set(key, { relation: fact.relation, isHead, things: [] });
    groups.get(key).things.push(isHead ? [fact.tail, fact.ids[2]] : [fact.head, fact.ids[0]]);
  }
  const row = ({ relation, isHead, things }) => {
    const list = el("ul", { class: "inline" });
    const draw = (most) => {
      list.replaceChildren(...things.slice(0, most).map(([name, thing]) => el("li", {}, entityLink(graph, name, thing))));
      if (things.length > most) list.append(el("li", {}, el("button", { type: "button", class: "link", onclick: () => draw(things.length) }, many(things.length - most, "more", "more"))));
    };
    draw(IN_A_GROUP);
    return [el("dt", {}, el("span", { class: "dim", "aria-label": isHead ? "from here" : "to here" , role: "img" }, isHead ? "→ " : "← "), label(relation)), el("dd", {}, list)];
  };
  const sorted = [...groups.values()].sort((a, b) => Number(b.isHead) - Number(a.isHead) || a.relation.localeCompare(b.relation));
  const names = el("p", { id: "names", hidden: true });
  place.replaceChildren(
    el("h1", {}, label(entity.name)),
    names,
    el("p", { class: "dim" }, label(entity.id), ` · ${many(found.total, "triple")}`, found.total > found.triples.length ? `, ${count(found.triples.length)} shown` : ""),
    el("p", {}, el("button", { type: "button", id: "ask-about", onclick: () => onask(entity) }, "Ask about it")),
    el("dl", { class: "facts" }, ...sorted.flatMap(row)),
    sorted.length ? "" : el("p", {}, "The graph says nothing else about it."));
  namesOf(entity, graph, found.triples).then((others) => {
    names.hidden = !others.length;
    names.replaceChildren("Also: ", ...others.flatMap((name, i) => [i ? ", " : "", label(name)]));
  }).catch(() => { /* the key may not query: its name alone is shown */ });
  return entity;
}
