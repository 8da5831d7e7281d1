// Elements, and words for numbers. Text is only ever set as text, never parsed as HTML.

export const $ = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function short(text, most) {
  if (text.length <= most) return text;
  const letters = [...text];
  return letters.length > most ? letters.slice(0, most).join("") + "…" : text;
}

// A name of the graph, in the direction of its script; the pointer shows a long one whole.
const LONGEST = 240;

export function label(text, properties = {}) {
  const shown = text === "" ? "(empty)" : short(text, LONGEST);
  const more = text.length <= LONGEST ? {} : { title: short(text, 2000) };
  return el("bdi", { ...more, ...properties }, shown);
}

export const percent = (share) => `${Math.round(share * 100)}%`;

export const time = (ms) => (ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export const count = (n) => n.toLocaleString("en");

export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

// The number that a text is, or null. Names such as "1st" are none.
export function numberOf(text) {
  const plain = text.trim();
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : null;
}

// The end of a relation's name or IRI, which says most.
export function lastPart(relation) {
  return relation.slice(Math.max(relation.lastIndexOf("."), relation.lastIndexOf("/"), relation.lastIndexOf("#")) + 1) || relation;
}

export function address(parameters) {
  return `/?${new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null))}`;
}

export function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Copies, and says so on the button.
export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed to copy";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

export function copyButton(text, name = "Copy") {
  const button = el("button", { type: "button", onclick: () => copy(typeof text === "function" ? text() : text, button) }, name);
  return button;
}
