// Evidence drawn as a graph by d3's forces. Nodes, edges and labels stand in screen coordinates, so
// that labels keep their size at every zoom. The triples that prove the answers come first.

import { drag, forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, select, zoom, zoomIdentity } from "/vendor/d3.js";
import { lastPart, many, short, svg as make } from "/dom.js";
import { placeLabels } from "/labels.js";

const TICKS = 300;
// milliseconds of layout before a frame is drawn: sixty frames a second leave 16 for everything
const BEFORE_FIRST_FRAME = 60;
const IN_A_FRAME = 9;
// beyond so many nodes, labels wait until the layout stands still, and a zoom scales the whole picture
// until it pauses
const FEW_NODES = 80;
const PAUSE = 150;
// so many need no large picture
const SMALL = 8;

const isStill = matchMedia("(prefers-reduced-motion: reduce)");

export class EvidenceGraph {
  constructor(element, { onChoose, onExpand, onHover }) {
    this.svg = element;
    this.on = { choose: onChoose, expand: onExpand, hover: onHover };
    this.zooming = zoom().scaleExtent([0.05, 12]).extent(() => [[0, 0], [this.size().width, this.size().height]])
      .on("zoom", (event) => {
        this.view = event.transform;
        if (event.sourceEvent) this.isMoved = true;
        if (event.sourceEvent && this.nodes.length > FEW_NODES) this.glide();
        else this.later();
      });
    select(element).call(this.zooming).on("dblclick.zoom", null);
    this.clear();
    this.listen();
    new ResizeObserver(() => { if (this.nodes.length) this.fit(); }).observe(element);
  }

  clear() {
    this.simulation?.stop();
    cancelAnimationFrame(this.running);
    this.simulation = null;
    this.running = 0;
    this.nodes = [];
    this.byId = new Map();
    this.edges = [];
    this.byPair = new Map();
    this.lit = null;
    this.chosen = null;
    this.isMoved = false;
    this.view ??= zoomIdentity;
    this.placed = this.view;
    this.scene = null;
    this.svg.replaceChildren();
  }

  // Shows the evidence of an answer: what proves the answers, or all of it.
  show(answer, isAll = false) {
    this.clear();
    const topics = new Set(answer.links.map((link) => link.id));
    const answers = new Set(answer.answers.map((a) => a.id));
    const part = (id) => (topics.has(id) ? "topic" : answers.has(id) ? "answer" : "other");
    const proof = proofOf(answer);
    answer.evidence.forEach((fact, index) => {
      if (isAll || !proof.size || proof.has(index)) this.addFact(fact, index, part);
    });
    this.draw();
    this.settle();
  }

  // Adds what the graph says about a node.
  expand(id, facts) {
    const before = new Set(this.nodes);
    for (const fact of facts) this.addFact(fact, null, () => "more");
    const centre = this.byId.get(id);
    const added = this.nodes.filter((node) => !before.has(node));
    added.forEach((node, i) => {
      const turn = (i / added.length) * 2 * Math.PI;
      node.x = (centre?.x ?? 0) + 60 * Math.cos(turn);
      node.y = (centre?.y ?? 0) + 60 * Math.sin(turn);
    });
    this.isMoved = false;
    this.draw();
    this.settle(0.6);
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
    a.facts += 1;
    if (a !== b) b.facts += 1;
  }

  addNode(id, label, part) {
    let node = this.byId.get(id);
    if (!node) {
      node = { id, label, part, number: this.nodes.length, degree: 0, facts: 0 };
      this.byId.set(id, node);
      this.nodes.push(node);
    }
    return node;
  }

  // The triples on the screen.
  facts() {
    return this.edges.flatMap((edge) => edge.facts);
  }

  // Lets the forces work, a little in every frame, until they have cooled down. The forces draw no
  // random numbers, so that the same evidence always looks the same.
  settle(alpha = 1) {
    this.simulation?.stop();
    cancelAnimationFrame(this.running);
    const links = this.edges.filter(({ a, b }) => a !== b).map(({ a, b }) => ({ source: a, target: b }));
    // leaves of a hub need a longer arm
    const arm = ({ source, target }) => 95 + 22 * Math.log2(Math.max(source.degree, target.degree, 1));
    this.simulation = forceSimulation(this.nodes).stop().alpha(alpha).alphaDecay(1 - 0.001 ** (1 / TICKS))
      .force("link", forceLink(links).distance(arm))
      .force("charge", forceManyBody().strength(-420))
      .force("apart", forceCollide(20))
      .force("x", forceX().strength(0.03))
      .force("y", forceY().strength(0.12));
    const isDone = (budget) => {
      const end = performance.now() + budget;
      while (this.simulation.alpha() > this.simulation.alphaMin()) {
        this.simulation.tick();
        if (performance.now() > end) return false;
      }
      return true;
    };
    const frame = () => {
      const done = isDone(IN_A_FRAME);
      this.running = done ? 0 : requestAnimationFrame(frame);
      if (!done && isStill.matches) return;
      if (this.isMoved) this.later();
      else this.fit();
    };
    if (!isDone(BEFORE_FIRST_FRAME)) this.running = requestAnimationFrame(frame);
    this.fit();
    this.place();
  }

  // Makes the elements; place() puts them where they belong.
  draw() {
    const edgeLayer = make("g");
    const nodeLayer = make("g");
    this.labelLayer = make("g", { "aria-hidden": "true" });
    this.scene = make("g", {}, edgeLayer, nodeLayer, this.labelLayer);
    this.svg.replaceChildren(this.scene);
    for (const edge of this.edges) {
      const more = edge.facts.every((fact) => fact.index === null);
      const unverified = edge.facts.some((fact) => fact.verified === false);
      edge.score = Math.max(...edge.facts.map((fact) => fact.score ?? 0), 0);
      edge.line = make("path", { "stroke-width": (1 + 2 * Math.min(edge.score, 1)).toFixed(2) });
      edge.heads = make("path", { class: "head" });
      edge.element = make("g", { class: `edge${more ? " more" : ""}${unverified ? " unverified" : ""}` }, edge.line, edge.heads,
        make("title", {}, edge.facts.map((f) => `${short(f.head, 200)} — ${f.relation} → ${short(f.tail, 200)}${f.index === null ? "" : ` · ${f.score.toFixed(2)}`}`).join("\n")));
      const names = [...new Set(edge.facts.map((fact) => lastPart(fact.relation)))];
      edge.text = short(names.join(" / "), 32) + (more ? "" : ` ${edge.score.toFixed(2)}`);
      edge.isForward = edge.facts.some((fact) => fact.ids[0] === edge.a.id);
      edge.isBack = edge.facts.some((fact) => fact.ids[0] === edge.b.id);
    }
    this.svg.classList.toggle("small", this.nodes.length <= SMALL);
    edgeLayer.append(...this.edges.map((edge) => edge.element));
    for (const node of this.nodes) {
      const isMain = node.part === "topic" || node.part === "answer";
      node.radius = isMain ? 9 : 6;
      node.text = short(node.label, 34);
      node.circle = make("circle", { r: node.radius });
      node.element = make("g", {
        class: `node ${node.part}`, tabindex: "-1", role: "button", "data-number": node.number,
        "aria-label": `${short(node.label, 200)}${isMain ? `, ${node.part}` : ""}, ${many(node.facts, "triple")} shown`,
      }, node.circle, make("title", {}, short(node.label, 400)));
    }
    nodeLayer.append(...this.nodes.map((node) => node.element));
    select(nodeLayer).selectAll("g").data(this.nodes).call(this.dragging());
  }

  dragging() {
    return drag().container(this.svg).clickDistance(4)
      .on("drag", (event, node) => {
        this.isMoved = true;
        node.x += event.dx / this.view.k;
        node.y += event.dy / this.view.k;
        // it stays where it was put
        [node.fx, node.fy] = [node.x, node.y];
        this.later();
      });
  }

  at(node) {
    return [this.view.applyX(node.x), this.view.applyY(node.y)];
  }

  // Places everything once in the next frame.
  later() {
    this.placing ??= requestAnimationFrame(() => this.place());
  }

  // Moves and scales the picture as it was placed; everything is placed anew after a pause.
  glide() {
    const scale = this.view.k / this.placed.k;
    const [x, y] = [this.view.x - scale * this.placed.x, this.view.y - scale * this.placed.y];
    this.scene.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    clearTimeout(this.gliding);
    this.gliding = setTimeout(() => this.place(), PAUSE);
  }

  place() {
    cancelAnimationFrame(this.placing);
    clearTimeout(this.gliding);
    this.placing = null;
    this.placed = this.view;
    this.scene?.removeAttribute("transform");
    const f = (n) => n.toFixed(1);
    for (const { a, b, line, heads, isForward, isBack } of this.edges) {
      const [x1, y1] = this.at(a);
      const [x2, y2] = this.at(b);
      if (a === b) {
        line.setAttribute("d", `M${f(x1)} ${f(y1)}c-34 -44 34 -44 0 0`);
        continue;
      }
      line.setAttribute("d", `M${f(x1)} ${f(y1)}L${f(x2)} ${f(y2)}`);
      heads.setAttribute("d", (isForward ? arrow(x1, y1, x2, y2, b.radius) : "") + (isBack ? arrow(x2, y2, x1, y1, a.radius) : ""));
    }
    for (const node of this.nodes) {
      const [x, y] = this.at(node);
      node.circle.setAttribute("cx", f(x));
      node.circle.setAttribute("cy", f(y));
    }
    this.label();
    this.colour();
  }

  label() {
    if (!this.labelLayer || (this.running && this.nodes.length > FEW_NODES)) return;
    const { nodes, edges, lit, chosen } = this;
    const family = getComputedStyle(this.svg).fontFamily;
    const labels = placeLabels({ nodes, edges, lit, chosen, family, size: this.size(), at: (node) => this.at(node) });
    this.labelLayer.replaceChildren(...labels.map(({ box, text, strong, node, edge }) => {
      const isLit = node ? lit?.nodes.has(node) : lit?.edges.has(edge);
      return make("text", {
        class: `label${strong ? " strong" : ""}${edge ? " relation" : ""}${isLit ? " on" : ""}`,
        x: (box.x + box.w / 2).toFixed(1), y: (box.y + 12).toFixed(1), "text-anchor": "middle",
      }, text);
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

  // Highlights these triples of the evidence; null ends it.
  highlight(indices) {
    const wanted = new Set(indices);
    const edges = this.edges.filter((edge) => edge.facts.some((fact) => wanted.has(fact.index)));
    this.light(edges, []);
  }

  highlightNode(node) {
    this.light(this.edges.filter((edge) => edge.a === node || edge.b === node), [node]);
  }

  light(edges, nodes) {
    const all = new Set([...nodes, ...edges.flatMap((edge) => [edge.a, edge.b])]);
    this.lit = all.size ? { edges: new Set(edges), nodes: all } : null;
    this.label();
    this.colour();
  }

  size() {
    const box = this.svg.getBoundingClientRect();
    return { width: box.width || 800, height: box.height || 500 };
  }

  fit() {
    if (!this.nodes.length) return;
    const { width, height } = this.size();
    const xs = this.nodes.map((node) => node.x);
    const ys = this.nodes.map((node) => node.y);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    // room for the labels of the outermost nodes
    const margin = Math.min(90, width / 5);
    const k = Math.min((width - 2 * margin) / Math.max(right - left, 1), (height - 80) / Math.max(bottom - top, 1), 2);
    this.isMoved = false;
    select(this.svg).call(this.zooming.transform,
      zoomIdentity.translate(width / 2 - ((left + right) / 2) * k, height / 2 - ((top + bottom) / 2) * k).scale(k));
  }

  zoom(factor) {
    this.isMoved = true;
    select(this.svg).call(this.zooming.scaleBy, factor);
  }

  nodeOf(event) {
    const element = event.target.closest?.(".node");
    return element ? this.nodes[Number(element.dataset.number)] : null;
  }

  choose(node) {
    this.chosen = node;
    this.on.choose(node);
    this.label();
    this.colour();
  }

  listen() {
    const { svg } = this;
    svg.addEventListener("click", (event) => this.choose(this.nodeOf(event)));
    svg.addEventListener("dblclick", (event) => {
      const node = this.nodeOf(event);
      if (node) this.on.expand(node);
    });
    svg.addEventListener("pointerover", (event) => {
      const node = this.nodeOf(event);
      if (node && !event.buttons) this.on.hover(node);
    });
    svg.addEventListener("pointerout", (event) => {
      if (this.nodeOf(event) && !event.buttons) this.on.hover(null);
    });
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape") { this.on.hover(null); this.choose(null); this.svg.focus(); }
    else if ((event.key === "Enter" || event.key === " ") && this.chosen) this.on.expand(this.chosen);
    else if (step) this.walk(step);
    else return;
    event.preventDefault();
  }

  // To the nearest node in a direction.
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
    this.on.hover(node);
    node.element.focus({ preventScroll: true });
  }
}

// Indices of the triples that prove an answer or a step.
export function proofOf(answer) {
  return new Set([...answer.answers.flatMap((entity) => entity.rationale), ...(answer.trace?.steps ?? []).flatMap((step) => step.evidence)]);
}

function arrow(x1, y1, x2, y2, radius) {
  const length = Math.max(Math.hypot(x2 - x1, y2 - y1), 1);
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [ex, ey] = [x2 - dx * (radius + 2), y2 - dy * (radius + 2)];
  const [bx, by] = [ex - dx * 9, ey - dy * 9];
  const f = (n) => n.toFixed(1);
  return `M${f(ex)} ${f(ey)}L${f(bx - dy * 4)} ${f(by + dx * 4)}L${f(bx + dy * 4)} ${f(by - dx * 4)}Z`;
}
