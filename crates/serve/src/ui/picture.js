// The evidence on the screen as a file: PNG, SVG, GraphML.

import { save } from "/dom.js";

// What the style sheet says, for a picture that stands alone.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor"];

// An SVG with its styles as attributes, and its size.
function standalone(element) {
  const { width, height } = element.getBoundingClientRect();
  const picture = element.cloneNode(true);
  const originals = element.querySelectorAll("*");
  picture.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value) node.setAttribute(name, value);
    }
    for (const name of ["class", "tabindex", "role", "data-number"]) node.removeAttribute(name);
  });
  for (const { name } of [...picture.attributes]) picture.removeAttribute(name);
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(document.body).backgroundColor]]) background.setAttribute(name, value);
  picture.prepend(background);
  for (const [name, value] of [["width", width], ["height", height], ["viewBox", `0 0 ${width} ${height}`]]) picture.setAttribute(name, value);
  return { text: new XMLSerializer().serializeToString(picture), width, height };
}

export function saveSvg(element, name) {
  save(`${name}.svg`, "image/svg+xml", standalone(element).text);
}

export async function savePng(element, name) {
  const { text, width, height } = standalone(element);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  // sharp on a screen of high density and on paper
  const scale = 2;
  [canvas.width, canvas.height] = [width * scale, height * scale];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  save(`${name}.png`, "image/png", blob);
}

const XML = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

// Characters that XML 1.0 has no way to write are left out.
const xml = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "").replace(/[&<>"]/g, (c) => XML[c]);

export function graphml(nodes, facts) {
  const keys = [["node", "label", "string"], ["node", "iri", "string"], ["node", "part", "string"],
    ["edge", "relation", "string"], ["edge", "score", "double"], ["edge", "verified", "boolean"]];
  const data = (key, value) => (value === undefined || value === null ? "" : `<data key="${key}">${xml(String(value))}</data>`);
  const numbers = new Map(nodes.map((node) => [node.id, node.number]));
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ...keys.map(([of, name, type]) => `<key id="${name}" for="${of}" attr.name="${name}" attr.type="${type}"/>`),
    '<graph edgedefault="directed">',
    ...nodes.map((node) => `<node id="n${node.number}">${data("label", node.label)}${data("iri", node.id)}${data("part", node.part)}</node>`),
    ...facts.map((fact) => `<edge source="n${numbers.get(fact.ids[0])}" target="n${numbers.get(fact.ids[2])}">${data("relation", fact.relation)}${data("score", fact.score)}${data("verified", fact.verified)}</edge>`),
    "</graph>", "</graphml>", "",
  ].join("\n");
}

export function saveGraphml(graph, name) {
  save(`${name}.graphml`, "application/xml", graphml(graph.nodes, graph.facts()));
}
