// Answers with a number each, as bars; answers with coordinates, on a map.

import { iri, relations, sparql } from "/api.js";
import { el, label, lastPart, many, numberOf, short, svg } from "/dom.js";
import { placeLabels } from "/labels.js";

const BARS = 60;
const POINTS = 300;
// coordinates are among the frequent relations, or there are few of them
const RELATIONS = 1000;

const LATITUDE = /^(lat|latitude)$/i;
const LONGITUDE = /^(long|lng|lon|longitude)$/i;

const coordinate = (relation) => (LATITUDE.test(lastPart(relation)) ? "latitude" : LONGITUDE.test(lastPart(relation)) ? "longitude" : null);

// Columns in which every answer has a number: of the answer's table, or of its evidence.
// `[{ title, values: [{ name, value }], sorted? }]`; a table has an order of its own.
export function numericColumns(answer) {
  const { table } = answer;
  if (table) {
    return table.columns.slice(1).map((title, i) => ({
      title,
      values: table.rows.map((row) => ({ name: row[0].join("; "), value: numberOf(row[i + 1][0] ?? "") })),
    })).filter(({ values }) => values.length > 1 && values.every(({ value }) => value !== null));
  }
  if (answer.answers.length < 2) return [];
  const columns = new Map();
  for (const fact of answer.evidence) {
    const value = numberOf(fact.tail);
    if (value === null || coordinate(fact.relation)) continue;
    if (!columns.has(fact.relation)) columns.set(fact.relation, new Map());
    columns.get(fact.relation).set(fact.ids[0], value);
  }
  return [...columns].map(([relation, values]) => ({
    title: relation, values: answer.answers.map(({ id, name }) => ({ name, value: values.get(id) })),
  })).filter(({ values }) => values.every(({ value }) => value !== undefined))
    .map(({ title, values }) => ({ title, values, sorted: [...values].sort((a, b) => b.value - a.value) }));
}

export function barChart({ title, values, sorted = values }) {
  const most = Math.max(...values.map(({ value }) => Math.abs(value)), Number.MIN_VALUE);
  const bars = sorted.slice(0, BARS).map(({ name, value }) => el("li", {},
    label(name, { class: "bar-name" }),
    svg("svg", { class: value < 0 ? "bar below" : "bar", "aria-hidden": "true", viewBox: "0 0 100 10", preserveAspectRatio: "none" },
      svg("rect", { width: ((Math.abs(value) / most) * 100).toFixed(2), height: 10 })),
    el("span", { class: "bar-value" }, value.toLocaleString("en", { maximumFractionDigits: 6, useGrouping: Math.abs(value) >= 10_000 }))));
  const left = values.length - bars.length;
  return el("figure", { class: "chart" }, el("figcaption", {}, label(title)), el("ol", {}, ...bars),
    left > 0 ? el("p", { class: "dim" }, `${many(left, "more answer")} in the table`) : null);
}

// ── the map ─────────────────────────────────────────────────────────────────────────────────

// The latitude and longitude that a text such as `Point(19.04 47.5)` has.
function pointOf(text) {
  const found = /point\s*\(\s*(-?[\d.]+)\s+(-?[\d.]+)\s*\)/i.exec(text);
  return found && { longitude: Number(found[1]), latitude: Number(found[2]) };
}

const isOnEarth = ({ latitude, longitude }) => Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180;

// Places among the triples of an answer.
function placesInEvidence(answer) {
  const found = new Map();
  for (const fact of answer.evidence) {
    const [head] = fact.ids;
    const kind = coordinate(fact.relation);
    const value = numberOf(fact.tail);
    const point = pointOf(fact.tail);
    if (!point && (!kind || value === null)) continue;
    found.set(head, { ...found.get(head), id: head, name: fact.head, ...(point ?? { [kind]: value }) });
  }
  return [...found.values()].filter(isOnEarth);
}

// Where the answers lie: from the evidence, or else looked up in the graph if `mayLook`.
export async function placesOf(answer, graph, mayLook) {
  const known = placesInEvidence(answer);
  if (!mayLook) return known;
  const rest = answer.answers.filter((entity) => !entity.computed && !known.some(({ id }) => id === entity.id)).slice(0, POINTS);
  const found = (await relations(graph, RELATIONS)).filter((relation) => coordinate(relation.name) || coordinate(relation.id));
  const of = (kind) => found.find((relation) => (coordinate(relation.name) ?? coordinate(relation.id)) === kind);
  const [latitude, longitude] = [of("latitude"), of("longitude")];
  if (!rest.length || !latitude || !longitude) return known;
  const isWritten = (id) => !/^("|_:)/.test(id);
  const things = rest.filter(({ id }) => isWritten(id));
  if (!things.length) return known;
  const query = `SELECT ?x ?lat ?long WHERE { VALUES ?x { ${things.map(({ id }) => iri(id)).join(" ")} } ?x ${iri(latitude.id)} ?lat ; ${iri(longitude.id)} ?long }`;
  const names = new Map(things.map((entity) => [iri(entity.id).slice(1, -1), entity]));
  const { rows } = await sparql(graph, query);
  const looked = rows.map((row) => {
    const { id, name } = names.get(row.x.value) ?? { id: row.x.value, name: row.x.value };
    return { id, name, latitude: Number(row.lat.value.replace(/^name:/, "")), longitude: Number(row.long.value.replace(/^name:/, "")) };
  }).filter(isOnEarth);
  return [...known, ...looked];
}

// The part of the world that shows all places, twice as wide as high.
function windowOf(places) {
  const xs = places.map(({ longitude }) => longitude);
  const ys = places.map(({ latitude }) => -latitude);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const width = Math.min(Math.max((right - left) * 1.3, (bottom - top) * 2.6, 20), 360);
  const x = Math.max(Math.min((left + right - width) / 2, 180 - width), -180);
  const y = Math.max(Math.min((top + bottom - width / 2) / 2, 90 - width / 2), -90);
  return { x, y, width, height: width / 2 };
}

export async function map(places, { linkOf, onplace }) {
  const { LAND } = await import("/vendor/land.js");
  const view = windowOf(places);
  const [w, h] = [960, 480];
  const at = ({ longitude, latitude }) => [((longitude - view.x) / view.width) * w, ((-latitude - view.y) / view.height) * h];
  const step = view.width > 120 ? 30 : view.width > 40 ? 10 : 5;
  const lines = [];
  for (let x = -180; x <= 180; x += step) lines.push(`M${x} -90V90`);
  for (let y = -90; y <= 90; y += step) lines.push(`M-180 ${y}H180`);
  const scale = w / view.width;
  const world = svg("g", { transform: `scale(${scale}) translate(${-view.x} ${-view.y})` },
    svg("rect", { class: "sea", x: -180, y: -90, width: 360, height: 180 }),
    svg("path", { class: "land", d: LAND }), svg("path", { class: "graticule", d: lines.join("") }));
  const nodes = places.map((place) => ({ ...place, text: short(place.name, 30), radius: 5, degree: 0, part: "place" }));
  const dots = nodes.map((node) => {
    const [x, y] = at(node);
    const dot = svg("circle", { class: "place", cx: x.toFixed(1), cy: y.toFixed(1), r: 5 },
      svg("title", {}, `${node.name}: ${node.latitude}, ${node.longitude}`));
    dot.addEventListener("pointerenter", () => onplace(node));
    dot.addEventListener("pointerleave", () => onplace(null));
    const link = svg("a", { href: linkOf(node), "aria-label": `${short(node.name, 200)}, latitude ${node.latitude}, longitude ${node.longitude}` }, dot);
    return link;
  });
  const labels = placeLabels({ nodes, edges: [], lit: null, chosen: null, at, size: { width: w, height: h }, family: getComputedStyle(document.body).fontFamily });
  const texts = labels.map(({ box, text }) => svg("text", { class: "label", x: (box.x + box.w / 2).toFixed(1), y: (box.y + 12).toFixed(1), "text-anchor": "middle", "aria-hidden": "true" }, text));
  return el("figure", { class: "map" },
    el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Map" },
      svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "group", "aria-label": `Map of ${many(places.length, "place")}` }, world, ...dots, ...texts)),
    el("figcaption", { class: "dim" }, `${many(places.length, "place")} with coordinates in the graph`));
}
