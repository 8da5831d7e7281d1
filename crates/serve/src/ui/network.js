// Evidence drawn as a graph. Nodes, edges and labels stand in screen coordinates, so that labels
// keep their size at every zoom; those that would cover others are left out until there is room.

const SVG = "http://www.w3.org/2000/svg";
const TURNS = 320;

function make(tag, attributes, parent) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.append(node);
  return node;
}

function short(text, most) {
  const letters = [...text];
  return letters.length > most ? letters.slice(0, most).join("") + "…" : text;
}

// the end of a dotted relation says most
function lastPart(relation) {
  return relation.slice(relation.lastIndexOf(".") + 1) || relation;
}

export class Network {
  constructor(svg, { onChoose, onExpand }) {
    this.svg = svg;
    this.onChoose = onChoose;
    this.onExpand = onExpand;
    this.measure = document.createElement("canvas").getContext("2d");
    this.widths = new Map();
    this.clear();
    this.listen();
    new ResizeObserver(() => this.resized()).observe(svg);
  }

  clear() {
    this.nodes = [];
    this.byId = new Map();
    this.edges = [];
    this.byPair = new Map();
    this.lit = null;
    this.chosen = null;
    this.view = { k: 1, x: 0, y: 0 };
    this.svg.replaceChildren();
  }

  // Shows the evidence of an answer.
  show(answer) {
    this.clear();
    const topics = new Set(answer.links.map((link) => link.id));
    const answers = new Set(answer.answers.map((a) => a.id));
    const part = (id) => (topics.has(id) ? "topic" : answers.has(id) ? "answer" : "other");
    answer.evidence.forEach((fact, index) => this.addFact(fact, index, part));
    this.settle(TURNS);
    this.draw();
    this.fit();
  }

  // Adds what the graph says of a node.
  expand(id, facts) {
    const before = new Set(this.nodes);
    for (const fact of facts) this.addFact(fact, null, () => "more");
    const centre = this.byId.get(id);
    const fresh = this.nodes.filter((node) => !before.has(node));
    fresh.forEach((node, i) => {
      const turn = (i / fresh.length) * 2 * Math.PI;
      node.x = (centre?.x ?? 0) + 60 * Math.cos(turn);
      node.y = (centre?.y ?? 0) + 60 * Math.sin(turn);
    });
    this.settle(140);
    this.draw();
    this.fit();
  }

  addFact(fact, index, part) {
    const [head, , tail] = fact.ids;
    const a = this.addNode(head, fact.head, part(head));
    const b = this.addNode(tail, fact.tail, part(tail));
    const pair = a.number < b.number ? `${a.number} ${b.number}` : `${b.number} ${a.number}`;
    let edge = this.byPair.get(pair);
    if (!edge) {
      edge = { a, b, facts: [], known: new Set() };
      this.byPair.set(pair, edge);
      this.edges.push(edge);
      a.degree += 1;
      b.degree += 1;
    }
    const key = JSON.stringify(fact.ids);
    if (edge.known.has(key)) return;
    edge.known.add(key);
    edge.facts.push({ ...fact, index });
  }

  addNode(id, label, part) {
    let node = this.byId.get(id);
    if (!node) {
      const number = this.nodes.length;
      // a sunflower: the same evidence always looks the same
      const turn = number * 2.39996;
      const far = 30 * Math.sqrt(number + 0.5);
      node = { id, label, part, number, degree: 0, x: far * Math.cos(turn), y: far * Math.sin(turn) };
      this.byId.set(id, node);
      this.nodes.push(node);
    }
    return node;
  }

  // Springs and repulsion (Fruchterman and Reingold 1991), cooling down.
  settle(turns) {
    const { nodes, edges } = this;
    if (nodes.length < 2) return;
    const ideal = 90;
    let heat = 60;
    for (let turn = 0; turn < turns; turn += 1) {
      for (const node of nodes) { node.fx = 0; node.fy = 0; }
      for (let i = 0; i < nodes.length; i += 1) {
        for (let j = i + 1; j < nodes.length; j += 1) {
          const a = nodes[i];
          const b = nodes[j];
          let dx = a.x - b.x;
          let dy = a.y - b.y;
          const square = Math.max(dx * dx + dy * dy, 1);
          const force = Math.min((ideal * ideal) / square, 20);
          dx *= force;
          dy *= force;
          a.fx += dx; a.fy += dy; b.fx -= dx; b.fy -= dy;
        }
      }
      for (const { a, b } of edges) {
        if (a === b) continue;
        const dx = a.x - b.x;
        const dy = a.y - b.y;
        const length = Math.max(Math.hypot(dx, dy), 1);
        // leaves of a hub need a longer arm
        const arm = ideal * (1 + Math.log2(1 + Math.max(a.degree, b.degree)) / 4);
        const force = (length / arm) * 0.6;
        a.fx -= dx * force; a.fy -= dy * force; b.fx += dx * force; b.fy += dy * force;
      }
      for (const node of nodes) {
        node.fx -= node.x * 0.02;
        node.fy -= node.y * 0.035;
        const length = Math.max(Math.hypot(node.fx, node.fy), 0.01);
        const step = Math.min(length, heat);
        node.x += (node.fx / length) * step;
        node.y += (node.fy / length) * step;
      }
      heat = Math.max(heat * 0.985, 0.5);
    }
  }

  // Makes the elements; place() puts them where they belong.
  draw() {
    this.svg.replaceChildren();
    const edgeLayer = make("g", {}, this.svg);
    const nodeLayer = make("g", {}, this.svg);
    this.labelLayer = make("g", { "aria-hidden": "true" }, this.svg);
    for (const edge of this.edges) {
      const more = edge.facts.every((fact) => fact.index === null);
      const unverified = edge.facts.some((fact) => fact.verified === false);
      edge.element = make("g", { class: `edge${more ? " more" : ""}${unverified ? " unverified" : ""}` }, edgeLayer);
      const scores = edge.facts.map((fact) => fact.score ?? 0);
      edge.score = Math.max(...scores, 0);
      edge.line = make("path", { "stroke-width": (1 + 2 * Math.min(edge.score, 1)).toFixed(2) }, edge.element);
      edge.heads = make("path", { class: "head" }, edge.element);
      make("title", {}, edge.element).textContent = edge.facts
        .map((f) => `${f.head} — ${f.relation} → ${f.tail}${f.index === null ? "" : ` · ${f.score.toFixed(2)}`}`)
        .join("\n");
      const names = [...new Set(edge.facts.map((fact) => lastPart(fact.relation)))];
      edge.text = short(names.join(" / "), 32) + (more ? "" : ` ${edge.score.toFixed(2)}`);
    }
    for (const node of this.nodes) {
      const many = this.edges.filter((e) => e.a === node || e.b === node).reduce((n, e) => n + e.facts.length, 0);
      node.element = make("g", { class: `node ${node.part}`, tabindex: "-1", role: "button" }, nodeLayer);
      const kind = node.part === "topic" || node.part === "answer" ? `, ${node.part}` : "";
      node.element.setAttribute("aria-label", `${node.label}${kind}, ${many} ${many === 1 ? "fact" : "facts"} shown`);
      node.radius = node.part === "topic" || node.part === "answer" ? 9 : 6;
      node.circle = make("circle", { r: node.radius }, node.element);
      make("title", {}, node.element).textContent = node.label;
      node.element.dataset.number = node.number;
      node.text = short(node.label, 34);
    }
    this.place();
  }

  at(node) {
    const { k, x, y } = this.view;
    return [node.x * k + x, node.y * k + y];
  }

  place() {
    for (const edge of this.edges) {
      const [x1, y1] = this.at(edge.a);
      const [x2, y2] = this.at(edge.b);
      if (edge.a === edge.b) {
        edge.line.setAttribute("d", `M${x1} ${y1}c-34 -44 34 -44 0 0`);
        continue;
      }
      edge.line.setAttribute("d", `M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}`);
      const forward = edge.facts.some((fact) => fact.ids[0] === edge.a.id);
      const back = edge.facts.some((fact) => fact.ids[0] === edge.b.id);
      const arrows = [];
      if (forward) arrows.push(this.arrow(x1, y1, x2, y2, edge.b.radius));
      if (back) arrows.push(this.arrow(x2, y2, x1, y1, edge.a.radius));
      edge.heads.setAttribute("d", arrows.join(""));
    }
    for (const node of this.nodes) {
      const [x, y] = this.at(node);
      node.circle.setAttribute("cx", x.toFixed(1));
      node.circle.setAttribute("cy", y.toFixed(1));
    }
    this.label();
    this.colour();
  }

  arrow(x1, y1, x2, y2, radius) {
    const length = Math.max(Math.hypot(x2 - x1, y2 - y1), 1);
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    const [ex, ey] = [x2 - dx * (radius + 2), y2 - dy * (radius + 2)];
    const [bx, by] = [ex - dx * 9, ey - dy * 9];
    const f = (n) => n.toFixed(1);
    return `M${f(ex)} ${f(ey)}L${f(bx - dy * 4)} ${f(by + dx * 4)}L${f(bx + dy * 4)} ${f(by - dx * 4)}Z`;
  }

  width(text, strong, small) {
    const key = `${strong ? "s" : small ? "r" : "n"}${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      const family = getComputedStyle(this.svg).fontFamily;
      this.measure.font = `${strong ? "700 14px" : small ? "600 11.5px" : "13px"} ${family}`;
      width = this.measure.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  // Labels, the most important first, each where it covers no other; those without room wait.
  label() {
    const { width: w, height: h } = this.size();
    const taken = [];
    // a grid of what is taken, so that 400 labels cost little
    const grid = new Map();
    const cells = (box) => {
      const found = [];
      for (let i = Math.floor(box.x / 64); i <= Math.floor((box.x + box.w) / 64); i += 1)
        for (let j = Math.floor(box.y / 64); j <= Math.floor((box.y + box.h) / 64); j += 1) found.push(i * 4096 + j);
      return found;
    };
    const free = (box) => cells(box).every((cell) => (grid.get(cell) ?? []).every((o) =>
      box.x + box.w < o.x || o.x + o.w < box.x || box.y + box.h < o.y || o.y + o.h < box.y));
    const take = (box) => {
      taken.push(box);
      for (const cell of cells(box)) grid.set(cell, [...(grid.get(cell) ?? []), box]);
    };
    for (const node of this.nodes) {
      const [x, y] = this.at(node);
      take({ x: x - node.radius, y: y - node.radius, w: 2 * node.radius, h: 2 * node.radius });
    }
    // the buttons in the corner
    take({ x: w - 62, y: h - 142, w: 62, h: 142 });
    const inView = ([x, y]) => x > -20 && y > -20 && x < w + 20 && y < h + 20;
    const rank = (node) => (this.lit?.nodes.has(node) ? 1000 : 0) + (node === this.chosen ? 900 : 0)
      + (node.part === "topic" ? 500 : node.part === "answer" ? 400 : 0) + node.degree;
    const few = (node) => this.lit?.nodes.size <= 12 && this.lit.nodes.has(node);
    const labels = [];
    for (const node of [...this.nodes].sort((a, b) => rank(b) - rank(a))) {
      const [x, y] = this.at(node);
      if (!inView([x, y])) continue;
      const strong = node.part === "topic" || node.part === "answer";
      const width = this.width(node.text, strong, false);
      const gap = node.radius + 5;
      // pushed in from the border, so that no label is cut
      const middle = Math.max(2, Math.min(x - width / 2, w - width - 2));
      const places = [
        { x: middle, y: y + gap, w: width, h: 16 }, { x: middle, y: y - gap - 16, w: width, h: 16 },
        { x: x + gap, y: y - 8, w: width, h: 16 }, { x: x - gap - width, y: y - 8, w: width, h: 16 },
      ];
      const inside = (box) => box.x >= 2 && box.y >= 2 && box.x + box.w <= w - 2 && box.y + box.h <= h - 2;
      let box = places.find((p) => inside(p) && free(p));
      // what the pointer is on is told even where it covers something
      if (!box && (few(node) || node === this.chosen)) box = places[0];
      if (box) {
        take(box);
        labels.push({ box, text: node.text, strong, node });
      }
    }
    const weight = (edge) => (this.lit?.edges.has(edge) ? 10 : 0) + edge.score;
    for (const edge of [...this.edges].sort((a, b) => weight(b) - weight(a))) {
      const [x1, y1] = this.at(edge.a);
      const [x2, y2] = this.at(edge.b);
      const middle = [(x1 + x2) / 2, (y1 + y2) / 2 - (edge.a === edge.b ? 40 : 0)];
      if (!inView(middle)) continue;
      const width = this.width(edge.text, false, true);
      const lit = this.lit?.edges.has(edge);
      if (!lit && Math.hypot(x2 - x1, y2 - y1) < width * 0.6) continue;
      const box = { x: middle[0] - width / 2, y: middle[1] - 8, w: width, h: 15 };
      if (free(box) || (lit && this.lit.edges.size <= 12)) {
        take(box);
        labels.push({ box, text: edge.text, edge });
      }
    }
    this.labelLayer?.replaceChildren(...labels.map(({ box, text, strong, node, edge }) => {
      const on = node ? this.lit?.nodes.has(node) : this.lit?.edges.has(edge);
      const label = make("text", {
        class: `label${strong ? " strong" : ""}${edge ? " relation" : ""}${on ? " on" : ""}`,
        x: (box.x + box.w / 2).toFixed(1), y: (box.y + 12).toFixed(1), "text-anchor": "middle",
      });
      label.textContent = text;
      return label;
    }));
  }

  colour() {
    this.svg.classList.toggle("focused", Boolean(this.lit));
    for (const edge of this.edges) edge.element.classList.toggle("on", Boolean(this.lit?.edges.has(edge)));
    for (const node of this.nodes) {
      node.element.classList.toggle("on", Boolean(this.lit?.nodes.has(node)));
      node.element.classList.toggle("chosen", node === this.chosen);
    }
  }

  // Lights up these facts of the evidence; null puts the light out.
  highlight(indices) {
    if (!indices || indices.length === 0) {
      this.lit = null;
    } else {
      const wanted = new Set(indices);
      const edges = new Set(this.edges.filter((edge) => edge.facts.some((fact) => wanted.has(fact.index))));
      this.lit = { edges, nodes: new Set([...edges].flatMap((edge) => [edge.a, edge.b])) };
    }
    this.place();
  }

  highlightNode(node) {
    const edges = new Set(this.edges.filter((edge) => edge.a === node || edge.b === node));
    this.lit = { edges, nodes: new Set([node, ...[...edges].flatMap((edge) => [edge.a, edge.b])]) };
    this.place();
  }

  size() {
    const box = this.svg.getBoundingClientRect();
    return { width: box.width || 800, height: box.height || 500 };
  }

  resized() {
    if (this.nodes.length) this.fit();
  }

  fit() {
    if (!this.nodes.length) return;
    const { width, height } = this.size();
    const xs = this.nodes.map((node) => node.x);
    const ys = this.nodes.map((node) => node.y);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    // room for the labels of the outermost nodes
    const margin = Math.min(this.nodes.length > 40 ? 200 : 90, width / 5);
    const k = Math.min((width - 2 * margin) / Math.max(right - left, 1), (height - 80) / Math.max(bottom - top, 1), 1.8);
    this.view = { k, x: width / 2 - ((left + right) / 2) * k, y: height / 2 - ((top + bottom) / 2) * k };
    this.place();
  }

  zoom(factor, at) {
    const { width, height } = this.size();
    const [cx, cy] = at ?? [width / 2, height / 2];
    const k = Math.min(Math.max(this.view.k * factor, 0.05), 12);
    const by = k / this.view.k;
    this.view = { k, x: cx - (cx - this.view.x) * by, y: cy - (cy - this.view.y) * by };
    this.place();
  }

  nodeOf(event) {
    const element = event.target.closest?.(".node");
    return element ? this.nodes[Number(element.dataset.number)] : null;
  }

  choose(node) {
    this.chosen = node;
    this.onChoose(node);
    this.place();
  }

  listen() {
    const { svg } = this;
    const pointers = new Map();
    let held = null;
    let moved = 0;
    const where = (event) => {
      const box = svg.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0015), where(event));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, where(event));
      held = this.nodeOf(event);
      moved = 0;
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      const now = where(event);
      const [dx, dy] = [now[0] - last[0], now[1] - last[1]];
      if (pointers.size === 2) {
        // two fingers: how far apart they are is the zoom
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const before = Math.hypot(last[0] - other[0], last[1] - other[1]);
        const after = Math.hypot(now[0] - other[0], now[1] - other[1]);
        if (before > 0) this.zoom(after / before, [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
      } else if (held) {
        held.x += dx / this.view.k;
        held.y += dy / this.view.k;
        this.place();
      } else {
        this.view.x += dx;
        this.view.y += dy;
        this.place();
      }
      moved += Math.abs(dx) + Math.abs(dy);
      pointers.set(event.pointerId, now);
    });
    const up = (event) => {
      if (!pointers.delete(event.pointerId)) return;
      if (moved < 4 && event.type === "pointerup") this.choose(held);
      held = null;
    };
    svg.addEventListener("pointerup", up);
    svg.addEventListener("pointercancel", up);
    svg.addEventListener("dblclick", (event) => {
      // the pointer is captured, so that the node under it is looked for
      const node = this.nodeOf({ target: document.elementFromPoint(event.clientX, event.clientY) });
      if (node) this.onExpand(node);
    });
    svg.addEventListener("pointerover", (event) => {
      const node = this.nodeOf(event);
      if (node && !pointers.size) this.hover(node);
    });
    svg.addEventListener("pointerout", (event) => {
      if (this.nodeOf(event) && !pointers.size) this.highlight(null);
    });
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  // Set from outside: what lights up when the pointer is on a node.
  hover(node) {
    this.highlightNode(node);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape") { this.highlight(null); this.choose(null); this.svg.focus(); }
    else if ((event.key === "Enter" || event.key === " ") && this.chosen) this.onExpand(this.chosen);
    else if (step) this.walk(step);
    else return;
    event.preventDefault();
  }

  // The nearest node in a direction.
  walk([sx, sy]) {
    if (!this.chosen) {
      const first = this.nodes.find((node) => node.part === "topic") ?? this.nodes[0];
      if (first) this.focus(first);
      return;
    }
    let best = null;
    for (const node of this.nodes) {
      const [dx, dy] = [node.x - this.chosen.x, node.y - this.chosen.y];
      const along = dx * sx + dy * sy;
      if (node === this.chosen || along <= 0) continue;
      const cost = along + 2.5 * Math.abs(dx * sy - dy * sx);
      if (!best || cost < best.cost) best = { node, cost };
    }
    if (best) this.focus(best.node);
  }

  focus(node) {
    this.choose(node);
    this.hover(node);
    node.element.focus({ preventScroll: true });
  }
}
