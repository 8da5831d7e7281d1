// A table that is sorted by a click, and saved as CSV or JSON.

import { count, el, label, numberOf, save } from "/dom.js";

// rows on the screen before more are asked for
const ROWS = 200;

const text = (cell) => (Array.isArray(cell) ? cell.join("; ") : cell === null || cell === undefined ? "" : String(cell));

// Numbers before texts, empty cells at the end.
function compare(a, b) {
  const [x, y] = [text(a), text(b)];
  if (!x || !y) return x ? -1 : y ? 1 : 0;
  const [m, n] = [numberOf(x), numberOf(y)];
  if (m !== null && n !== null) return m - n;
  return m !== null ? -1 : n !== null ? 1 : x.localeCompare(y);
}

export function csv(columns, rows) {
  const quoted = (cell) => (/[",\n\r]/.test(text(cell)) ? `"${text(cell).replaceAll('"', '""')}"` : text(cell));
  return [columns, ...rows].map((row) => `${row.map(quoted).join(",")}\r\n`).join("");
}

export function json(columns, rows) {
  // two columns may have one title
  const titles = columns.map((title, i) => (columns.indexOf(title) < i ? `${title} ${i + 1}` : title));
  return `${JSON.stringify(rows.map((row) => Object.fromEntries(row.map((cell, i) => [titles[i], cell]))), null, 2)}\n`;
}

export function saveButtons(name, columns, rows) {
  return el("p", { class: "actions" },
    el("button", { type: "button", onclick: () => save(`${name}.csv`, "text/csv", csv(columns, rows)) }, "Save as CSV"),
    el("button", { type: "button", onclick: () => save(`${name}.json`, "application/json", json(columns, rows)) }, "Save as JSON"));
}

// `rows` are lists of cells: texts, numbers, or lists of them. `by` is the column that is sorted by
// at first, `classOf(row, column)` the class of a cell, `link(row, column)` where its text leads,
// `show(cell, column, row)` the text if it is not the cell itself,
// `onrow(row or null)` is told which row the pointer or the focus is on.
export function dataTable({ columns, rows, title, by = null, isDown = false, classOf = () => "", link = () => null, show = text, onrow = null }) {
  const place = el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": title });
  const isNumber = columns.map((_, i) => {
    const given = rows.map((row) => text(row[i])).filter(Boolean);
    return given.length > 0 && given.every((cell) => numberOf(cell) !== null);
  });
  const cellOf = (row, i) => {
    const words = show(row[i], i, row);
    const to = link(row, i);
    const content = words === "" ? "" : label(words);
    return el("td", { class: `${isNumber[i] ? "n " : ""}${classOf(row, i)}`.trim() }, to && words !== "" ? el("a", { href: to }, content) : content);
  };
  const draw = (column, down, most) => {
    const sorted = column === null ? rows : rows.map((row, i) => [row, i])
      .sort(([a, i], [b, j]) => (down ? -1 : 1) * compare(a[column], b[column]) || i - j).map(([row]) => row);
    const head = el("tr", {}, ...columns.map((name, i) => {
      const sort = i === column ? (down ? "descending" : "ascending") : "none";
      const button = el("button", { type: "button", onclick: () => {
        draw(i, i === column ? !down : isNumber[i], most);
        place.querySelectorAll("th button")[i].focus();
      } }, label(name));
      return el("th", { scope: "col", class: isNumber[i] ? "n" : "", "aria-sort": sort }, button);
    }));
    const body = sorted.slice(0, most).map((row) => {
      const events = onrow ? { onpointerenter: () => onrow(row), onpointerleave: () => onrow(null) } : {};
      return el("tr", events, ...columns.map((_, i) => cellOf(row, i)));
    });
    const more = sorted.length > most
      ? el("button", { type: "button", onclick: () => draw(column, down, sorted.length) }, `Show all ${count(sorted.length)} rows`) : null;
    place.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)), ...(more ? [more] : []));
  };
  draw(by, isDown, ROWS);
  return place;
}
