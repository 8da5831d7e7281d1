// The questions that were asked in this browser.

import { $, address, el, label } from "/dom.js";

const KEY = "questions";
const MOST = 50;

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.q === "string") : [];
  } catch { return []; }
}

export function remember(question, graph, method) {
  const one = { q: question, graph, method };
  const rest = read().filter((other) => other.q !== question || other.graph !== graph);
  try { localStorage.setItem(KEY, JSON.stringify([one, ...rest].slice(0, MOST))); } catch { /* there is no room */ }
  showPast();
}

export function showPast() {
  const found = read();
  $("past").hidden = !found.length;
  $("past-list").replaceChildren(...found.map(({ q, graph, method }) => el("li", {},
    el("a", { href: address({ q, graph, method }) }, label(q)), " ", el("small", { class: "dim" }, label(graph ?? "")))));
}

$("past-clear").addEventListener("click", () => {
  localStorage.removeItem(KEY);
  showPast();
});
