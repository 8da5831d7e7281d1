// How a question was read: its words joined to the parts of the reading, other readings, and why
// there is no answer.

import { proofList } from "/answers.js";
import { $, el, label, many, percent, short } from "/dom.js";

const FEW = 12;

const KINDS = { entity: "entity", class: "class", relation: "relation", value: "value", operator: "operator", unused: "not used" };

const REFUSALS = {
  "not-linked": "Nothing in the question names anything in this graph.",
  "words-not-used": "Part of the question was not understood.",
  "relation-absent": "The graph does not say this about the topic.",
  "evidence-too-weak": "What was found does not prove an answer.",
  "routes-contradict": "Two methods disagree.",
  "budget-spent": "Time, calls or tokens ran out.",
};

// Where `part` stands in `text` as whole words, from `from` on; in code points, as `words` counts.
function find(text, part, from = 0) {
  const [letters, wanted] = [text, part].map((t) => [...t].map((c) => c.toLowerCase()));
  const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);
  for (let i = from; wanted.length && i + wanted.length <= letters.length; i += 1) {
    const end = i + wanted.length;
    if (wanted.every((c, j) => letters[i + j] === c) && !(isWord(wanted[0]) && isWord(letters[i - 1])) && !(isWord(wanted.at(-1)) && isWord(letters[end]))) return [i, end];
  }
  return null;
}

// The words that the server says; else those of the links and the unused ones.
function wordsOf(answer) {
  if (answer.words) return answer.words.map((word) => ({ ...word, as: word.as ?? "" }));
  const named = (answer.links ?? []).map((link) => ({ text: link.mention, as: link.name, kind: "entity", id: link.id }));
  const unused = (answer.unused_words ?? []).map((text) => ({ text, as: "", kind: "unused" }));
  return [...named, ...unused].flatMap((word) => {
    const at = find(answer.question, word.text);
    return at ? [{ from: at[0], to: at[1], ...word }] : [];
  });
}

// Text in pieces: `[{ text, part? }]` for spans that do not overlap; the first of two wins.
function pieces(text, spans) {
  const letters = [...text];
  const found = [];
  let end = 0;
  for (const span of [...spans].sort((a, b) => a.from - b.from || b.to - a.to)) {
    if (span.from < end || span.to > letters.length || span.from >= span.to) continue;
    if (span.from > end) found.push({ text: letters.slice(end, span.from).join("") });
    found.push({ text: letters.slice(span.from, span.to).join(""), part: span });
    end = span.to;
  }
  if (end < letters.length) found.push({ text: letters.slice(end).join("") });
  return found;
}

// Parts of the reading that words of the question stand for.
function partsOf(reading, words) {
  const spans = [];
  for (const word of words) {
    if (!word.as) continue;
    let at = find(reading, word.as);
    // two words may stand for two equal parts
    while (at && spans.some(({ from, to }) => at[0] < to && from < at[1])) at = find(reading, word.as, at[1]);
    if (at) spans.push({ from: at[0], to: at[1], word });
  }
  return spans;
}

export function showReading(answer, onword) {
  const words = wordsOf(answer);
  const light = (word) => {
    for (const node of $("reading").querySelectorAll("[data-as]")) node.classList.toggle("on", Boolean(word?.as) && node.dataset.as === word.as);
    onword(word?.id ?? null);
  };
  const part = (text, word, kind) => {
    const on = () => light(word);
    const off = () => light(null);
    const meaning = word.kind === "unused" ? "not used" : `${KINDS[word.kind] ?? word.kind}: ${short(word.as, 200)}`;
    const node = el("span", { class: `${kind} ${word.kind}`, tabIndex: 0, role: "note", title: meaning, "aria-label": `${text}, ${meaning}`,
      onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off }, text);
    node.dataset.as = word.as;
    return node;
  };
  const asked = pieces(answer.question, words).map(({ text, part: word }) => (word ? part(text, word, "word") : text));
  $("words").replaceChildren(...asked);
  const kinds = [...new Set(words.map(({ kind }) => kind))];
  $("word-kinds").replaceChildren(...kinds.map((kind) => el("span", { class: `word-kind ${kind}` }, KINDS[kind] ?? kind)));
  const unused = answer.unused_words ?? words.filter(({ kind }) => kind === "unused").map(({ from, to }) => [...answer.question].slice(from, to).join(""));
  $("read-as").hidden = !answer.reading;
  $("read-as").replaceChildren("Read as ", ...(answer.reading ? pieces(answer.reading, partsOf(answer.reading, words)) : [])
    .map(({ text, part: span }) => (span ? part(text, span.word, "part") : text)), unused.length ? `; not used: ${unused.join(", ")}` : "");
  $("carried").hidden = !answer.carried;
  $("carried").textContent = answer.carried ? `From the question before: ${answer.carried}` : "";
  $("reading").hidden = false;
}

// Other readings, to be asked for by a click.
export function showAlternatives(answer, onreading) {
  const offered = new Set([answer.reading, ...(answer.others ?? []).map((other) => other.reading)]);
  const items = (onreading ? answer.alternatives ?? [] : []).filter((one) => !offered.has(one.reading)).map((one) => el("li", {},
    el("button", { type: "button", class: "link", onclick: () => onreading(one.number) }, label(one.reading)), " ",
    el("small", { class: "dim" }, percent(one.share ?? 0), one.unused_words?.length ? `; not used: ${one.unused_words.join(", ")}` : "")));
  $("alternatives").replaceChildren(...items);
  $("readings").hidden = !items.length;
}

// Other answers, each with its own proof. `onshow` shows one of them in the place of this one.
export function showOthers(answer, graph, onshow) {
  const items = (answer.others ?? []).map((other) => {
    const names = other.answers.slice(0, FEW).map((entity) => short(entity.name, 80)).join(", ");
    const confidence = other.answers.length ? ` · ${percent(other.answers[0].confidence)}` : "";
    return el("details", { class: "other" },
      el("summary", {}, el("b", {}, label(names || "no answer")), confidence, other.reading ? el("span", { class: "dim" }, " ", label(other.reading)) : null),
      ...other.answers.slice(0, FEW).map((entity) => el("div", {}, el("p", {}, label(entity.name), ` ${percent(entity.confidence)}`), proofList(other, entity.rationale, graph))),
      other.answers.length ? null : el("p", {}, other.reason ?? "no reason is given"),
      el("button", { type: "button", onclick: () => onshow(other) }, "Show this answer"));
  });
  $("others-list").replaceChildren(...items);
  $("others").hidden = !items.length;
}

// Why nothing is answered, and what was understood.
export function showRefusal(answer) {
  const refused = answer.status !== "answered";
  $("reason").hidden = !refused;
  $("refusal").hidden = !refused;
  if (!refused) return;
  $("reason").textContent = `No answer: ${answer.reason ?? "nothing was found"}.`;
  const rows = [];
  if (REFUSALS[answer.refusal]) rows.push(["Why", REFUSALS[answer.refusal]]);
  const links = answer.links.map((link) => `${short(link.mention, 80)} → ${short(link.name, 80)} (${percent(link.score)})`);
  rows.push(["Understood", links.length ? links.join(", ") : "no name in the question"]);
  if (answer.unused_words?.length) rows.push(["Not used", answer.unused_words.join(", ")]);
  if (answer.alternatives?.length) rows.push(["Try", `${many(answer.alternatives.length, "other reading")}, below`]);
  $("refusal").replaceChildren(...rows.flatMap(([name, text]) => [el("dt", {}, name), el("dd", { dir: "auto" }, text)]));
}
