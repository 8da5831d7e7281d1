// Where labels stand: the most important first, each where it covers no other. Those without room
// are left out until there is some.

const CELL = 64;

// What is taken of the screen, as a grid, so that hundreds of labels cost little.
class Taken {
  constructor() { this.grid = new Map(); }

  * cells(box) {
    for (let i = Math.floor(box.x / CELL); i <= Math.floor((box.x + box.w) / CELL); i += 1)
      for (let j = Math.floor(box.y / CELL); j <= Math.floor((box.y + box.h) / CELL); j += 1) yield i * 4096 + j;
  }

  isFree(box) {
    for (const cell of this.cells(box)) {
      for (const o of this.grid.get(cell) ?? []) {
        if (box.x + box.w >= o.x && o.x + o.w >= box.x && box.y + box.h >= o.y && o.y + o.h >= box.y) return false;
      }
    }
    return true;
  }

  take(box) {
    for (const cell of this.cells(box)) {
      if (!this.grid.has(cell)) this.grid.set(cell, []);
      this.grid.get(cell).push(box);
    }
  }
}

const widths = new Map();
let canvas = null;

function width(text, font) {
  const key = `${font} ${text}`;
  if (!widths.has(key)) {
    canvas ??= document.createElement("canvas").getContext("2d");
    canvas.font = font;
    widths.set(key, canvas.measureText(text).width);
  }
  return widths.get(key);
}

// Labels of nodes and edges that are in view: `{ box, text, node | edge, strong }`.
// `lit` are the nodes and edges that are highlighted; they choose first, even over nodes.
export function placeLabels({ nodes, edges, lit, chosen, at, size, family }) {
  const { width: w, height: h } = size;
  const taken = new Taken();
  // labels alone, for those that may cover nodes
  const written = new Taken();
  const labels = [];
  const inside = (box) => box.x >= 2 && box.y >= 2 && box.x + box.w <= w - 2 && box.y + box.h <= h - 2;
  const write = (label) => {
    taken.take(label.box);
    written.take(label.box);
    labels.push(label);
  };
  for (const node of nodes) {
    const [x, y] = at(node);
    taken.take({ x: x - node.radius, y: y - node.radius, w: 2 * node.radius, h: 2 * node.radius });
  }
  // the buttons in the corner
  const buttons = { x: w - 62, y: h - 142, w: 62, h: 142 };
  taken.take(buttons);
  written.take(buttons);
  const inView = ([x, y]) => x > -20 && y > -20 && x < w + 20 && y < h + 20;
  const rank = (node) => (node === chosen ? 2000 : 0) + (lit?.nodes.has(node) ? 1000 : 0)
    + (node.part === "topic" ? 500 : node.part === "answer" ? 400 : 0) + node.degree;
  for (const node of [...nodes].sort((a, b) => rank(b) - rank(a))) {
    const [x, y] = at(node);
    if (!inView([x, y])) continue;
    const strong = node.part === "topic" || node.part === "answer";
    const wide = width(node.text, `${strong ? "700 14px" : "13px"} ${family}`);
    const gap = node.radius + 5;
    // pushed in from the border, so that no label is cut
    const middle = Math.max(2, Math.min(x - wide / 2, w - wide - 2));
    const places = [
      { x: middle, y: y + gap, w: wide, h: 16 }, { x: middle, y: y - gap - 16, w: wide, h: 16 },
      { x: x + gap, y: y - 8, w: wide, h: 16 }, { x: x - gap - wide, y: y - 8, w: wide, h: 16 },
    ].filter(inside);
    const box = places.find((place) => taken.isFree(place))
      ?? (node === chosen || lit?.nodes.has(node) ? places.find((place) => written.isFree(place)) : undefined);
    if (box) write({ box, text: node.text, strong, node });
  }
  const weight = (edge) => (lit?.edges.has(edge) ? 10 : 0) + edge.score;
  for (const edge of [...edges].sort((a, b) => weight(b) - weight(a))) {
    const [x1, y1] = at(edge.a);
    const [x2, y2] = at(edge.b);
    const middle = [(x1 + x2) / 2, (y1 + y2) / 2 - (edge.a === edge.b ? 40 : 0)];
    if (!inView(middle)) continue;
    const wide = width(edge.text, `600 11.5px ${family}`);
    const isLit = lit?.edges.has(edge);
    if (!isLit && edge.a !== edge.b && Math.hypot(x2 - x1, y2 - y1) < wide * 0.6) continue;
    const box = { x: middle[0] - wide / 2, y: middle[1] - 8, w: wide, h: 15 };
    if (inside(box) && (taken.isFree(box) || (isLit && written.isFree(box)))) write({ box, text: edge.text, edge });
  }
  return labels;
}
