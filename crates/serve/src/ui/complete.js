// Names of the graph that complete the question while it is typed.

import { get } from "/api.js";
import { $, el, label, many } from "/dom.js";

const state = { timer: 0, typed: "", items: [], at: -1, abort: null };

export function closeCompletion() {
  clearTimeout(state.timer);
  state.abort?.abort();
  hide();
}

// A reply may still be on its way.
function hide() {
  state.items = [];
  state.at = -1;
  $("completions").hidden = true;
  $("completions").replaceChildren();
  $("question").setAttribute("aria-expanded", "false");
  $("question").removeAttribute("aria-activedescendant");
}

function mark(at) {
  state.at = at;
  [...$("completions").children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
  if (at >= 0) {
    $("question").setAttribute("aria-activedescendant", `completion-${at}`);
    $("completions").children[at].scrollIntoView({ block: "nearest" });
  } else $("question").removeAttribute("aria-activedescendant");
}

function take(at) {
  const input = $("question");
  const caret = input.selectionStart;
  const before = input.value.slice(0, caret);
  if (before.endsWith(state.typed)) {
    const start = before.slice(0, before.length - state.typed.length) + state.items[at].name;
    input.value = start + input.value.slice(caret);
    input.setSelectionRange(start.length, start.length);
  }
  closeCompletion();
  input.focus();
}

async function complete() {
  const input = $("question");
  const text = input.value.slice(0, input.selectionStart);
  if (text.trim().length < 2) return hide();
  state.abort?.abort();
  state.abort = new AbortController();
  const found = await get("/v1/complete", { text: text.slice(-300), graph: $("graph").value }, { signal: state.abort.signal });
  const isWhole = found.entities.length === 1 && found.entities[0].name === found.typed;
  if (!found.entities.length || isWhole) return hide();
  state.typed = found.typed;
  state.items = found.entities;
  $("completions").replaceChildren(...found.entities.map((entity, i) => el("li", {
    id: `completion-${i}`, role: "option", "aria-selected": "false",
    // before the input loses the focus
    onpointerdown: (event) => { event.preventDefault(); take(i); },
  }, label(entity.name), el("small", {}, many(entity.triples, "triple")))));
  $("completions").hidden = false;
  $("question").setAttribute("aria-expanded", "true");
  return mark(-1);
}

export function enableCompletion(tell) {
  $("question").addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(() => complete().catch((error) => {
      // a later request replaced this one
      if (error.name === "AbortError") return;
      hide();
      if (error.status === 401) tell(error);
    }), 120);
  });
  $("question").addEventListener("blur", closeCompletion);
  $("question").addEventListener("keydown", (event) => {
    const n = state.items.length;
    if (!n) return;
    if (event.key === "ArrowDown") mark((state.at + 1) % n);
    else if (event.key === "ArrowUp") mark((state.at - 1 + n) % n);
    else if (event.key === "Escape") closeCompletion();
    else if ((event.key === "Enter" || event.key === "Tab") && state.at >= 0) take(state.at);
    else return;
    event.preventDefault();
  });
}
