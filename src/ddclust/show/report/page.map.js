// The map: the sampled items in the plane.
const canvas = one("#map");
const context = canvas.getContext("2d");
const tip = one("#tip");
const mapped = data.map.items;  // items by their places on the map
const chooser = one("#layout");
let layout = chooser.value;
const hidden = new Set();
let seen = {scale: 1, left: 0, top: 0};
let hovered = -1;
let colourBy = "cluster";
let range = [0, 1000];

const size = () => [canvas.clientWidth, canvas.clientHeight];
// From the unit square to the canvas. t-SNE's axes mean nothing, so it may be wide or high; a simplex keeps its shape.
const at = (a, b) => {
  const [w, h] = size();
  const side = Math.min(w, h) - 60;
  const high = layout === "simplex" ? side : Math.min(h - 60, 1.4 * (w - 60));
  const wide = layout === "simplex" ? side : Math.min(w - 60, 1.8 * high);
  return [((w - wide) / 2 + a * wide) * seen.scale + seen.left, ((h - high) / 2 + (1 - b) * high) * seen.scale + seen.top];
};
const place = (p) => at(data.map.layouts[layout].x[p], data.map.layouts[layout].y[p]);
const clusterOf = (p) => items.cluster[mapped[p]];

const channels = data.scale.map((hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16)));
const onScale = (value) => {
  const t = Math.min(Math.max((value - range[0]) / (range[1] - range[0] || 1), 0), 1) * (channels.length - 1);
  const low = Math.min(Math.floor(t), channels.length - 2);
  return `rgb(${channels[low].map((c, j) => Math.round(c + (t - low) * (channels[low + 1][j] - c))).join(" ")})`;
};
const cyclic = (code) => data.colours[code % data.colours.length];
const COLOURED_LEVELS = 7;  // colours that all readers can tell apart; the other levels, and gaps, are grey
const GREY = "#888";
const column = () => colourBy.startsWith("column") ? Number(colourBy.split(" ")[1]) : -1;
const isOfLevels = () => column() >= 0 && items.colourings[column()] === "levels";
const valuesShown = () => column() < 0 ? items.confidence : items.days[column()] || items.values[column()];
const day = (number) => new Date(864e5 * number).toISOString().slice(0, 10);
let levels = [];  // those of the column that are coloured
const frequentLevels = (values) => {
  const counts = new Map();
  for (const value of values) if (value !== null) counts.set(value, (counts.get(value) || 0) + 1);
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
};
const colourOfLevel = (value) => levels.includes(value) ? cyclic(levels.indexOf(value)) : GREY;
const colour = (p) => {
  const i = mapped[p];
  if (colourBy === "truth") return items.truth[i] < 0 ? GREY : cyclic(items.truth[i]);
  if (colourBy === "cluster") return cyclic(items.cluster[i]);
  if (isOfLevels()) return colourOfLevel(valuesShown()[i]);
  return valuesShown()[i] === null ? GREY : onScale(valuesShown()[i]);
};

// Names of clusters lie where they cover no item; one that fits nowhere is left out, since the legend has it.
const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const middles = () => [...new Set(mapped.map((i) => items.cluster[i]))].sort((a, b) => a - b).map((c) => {
  const own = mapped.map((_, p) => p).filter((p) => clusterOf(p) === c);
  const {x, y} = data.map.layouts[layout];
  return [c, median(own.map((p) => x[p])), median(own.map((p) => y[p]))];
});
const CELL = 4;
const counter = (points, w, h, reach) => {  // of the items under a box, from sums over a grid
  const columns = Math.ceil(w / CELL) + 1;
  const rows = Math.ceil(h / CELL) + 1;
  const sums = new Uint32Array(columns * rows);
  for (const [a, b] of points) {
    if (a >= 0 && b >= 0 && a < w && b < h) sums[(Math.floor(b / CELL) + 1) * columns + Math.floor(a / CELL) + 1]++;
  }
  for (let r = 1; r < rows; r++) for (let c = 1; c < columns; c++) sums[r * columns + c] += sums[r * columns + c - 1];
  for (let r = 1; r < rows; r++) for (let c = 1; c < columns; c++) sums[r * columns + c] += sums[(r - 1) * columns + c];
  const clip = (v, most) => Math.min(Math.max(v, 0), most);
  return ([left, top, width, height]) => {
    const [l, t] = [clip(Math.floor((left - reach) / CELL), columns - 1), clip(Math.floor((top - reach) / CELL), rows - 1)];
    const [r, b] = [clip(Math.ceil((left + width + reach) / CELL), columns - 1), clip(Math.ceil((top + height + reach) / CELL), rows - 1)];
    return sums[b * columns + r] - sums[t * columns + r] - sums[b * columns + l] + sums[t * columns + l];
  };
};
const freeBox = (a, b, width, height, w, h, isFree) => {
  for (let radius = 0; radius < Math.hypot(w, h); radius += 10) {
    const steps = radius ? 24 : 1;
    for (let s = 0; s < steps; s++) {
      const angle = -Math.PI / 2 + 2 * Math.PI * s / steps;
      const box = [a + radius * Math.cos(angle) - width / 2, b + radius * Math.sin(angle) - height / 2, width, height];
      if (box[0] >= 4 && box[1] >= 4 && box[0] + width <= w - 4 && box[1] + height <= h - 4 && isFree(box)) return box;
    }
  }
  return null;
};
const overlap = (p, q) => p[0] < q[0] + q[2] && q[0] < p[0] + p[2] && p[1] < q[1] + q[3] && q[1] < p[1] + p[3];
const nearestTo = (box, points) => {  // [the nearest point, where the box is nearest to it, their distance]
  const ends = points.map(([a, b]) => {
    const end = [Math.min(Math.max(a, box[0]), box[0] + box[2]), Math.min(Math.max(b, box[1]), box[1] + box[3])];
    return [[a, b], end, Math.hypot(a - end[0], b - end[1])];
  });
  return ends.reduce((best, other) => other[2] < best[2] ? other : best);
};
const drawLabels = (points, clusters, radius, w, h, ink, faint) => {
  const covered = counter(points, w, h, radius + 2);
  const taken = [];
  const longest = w < 500 ? 20 : 28;
  context.font = "600 13px system-ui, sans-serif";
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const [c, x, y] of middles()) {
    const [a, b] = at(x, y);
    if (a < 0 || b < 0 || a > w || b > h || !clusters.includes(c)) continue;
    const sign = data.clusters[c].sign;
    const side = sign === null ? 0 : 30;
    const name = sign === null || names[c] ? label(c) : "";  // a picture says more than the name of its file
    const text = name.length > longest ? name.slice(0, longest - 1) + "…" : name;
    const width = (text ? context.measureText(text).width + 6 : 0) + side;
    const box = freeBox(a, b, width, Math.max(18, side), w, h, (tried) => !covered(tried) && !taken.some((other) => overlap(tried, other)));
    if (!box) continue;
    taken.push([box[0] - 4, box[1] - 2, box[2] + 8, box[3] + 4]);
    const [near, end, distance] = nearestTo(box, points.filter((_, p) => clusters[p] === c));
    if (distance > 16) {
      context.strokeStyle = faint;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(...end);
      context.lineTo(...near);
      context.stroke();
    }
    if (side) {
      const factor = side / Math.max(pictures.width, pictures.height);
      paint(context, sign, box[0], box[1], pictures.width * factor, pictures.height * factor, draw);
      context.strokeStyle = cyclic(c);
      context.lineWidth = 2;
      context.strokeRect(box[0], box[1], pictures.width * factor, pictures.height * factor);
    }
    context.fillStyle = ink;
    context.fillText(text, box[0] + (side ? side + 6 : 0), box[1] + box[3] / 2);
  }
  canvas.labels = taken;
};

function draw() {
  const [w, h] = size();
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
  const [ink, faint, line] = ["--ink", "--faint", "--line"].map((name) => getComputedStyle(document.body).getPropertyValue(name));
  if (layout === "simplex") {
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    data.map.corners.forEach((corner, i) => context[i ? "lineTo" : "moveTo"](...at(...corner)));
    context.closePath();
    context.stroke();
  }
  const radius = Math.min(2.6 * Math.sqrt(seen.scale), 7);
  const points = [];
  const clusters = [];
  context.globalAlpha = 0.8;
  for (let p = 0; p < mapped.length; p++) {
    if (hidden.has(clusterOf(p))) continue;
    const [a, b] = place(p);
    if (a < -9 || b < -9 || a > w + 9 || b > h + 9) continue;
    points.push([a, b]);
    clusters.push(clusterOf(p));
    context.fillStyle = colour(p);
    context.beginPath();
    context.arc(a, b, radius, 0, 6.2832);
    context.fill();
  }
  context.globalAlpha = 1;
  drawLabels(points, clusters, radius, w, h, ink, faint);
  if (hovered >= 0) {
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(...place(hovered), radius + 3, 0, 6.2832);
    context.stroke();
  }
}
const nearest = (a, b, reach) => {
  let best = -1;
  let limit = reach * reach;
  for (let p = 0; p < mapped.length; p++) {
    if (hidden.has(clusterOf(p))) continue;
    const [x, y] = place(p);
    const d = (x - a) ** 2 + (y - b) ** 2;
    if (d < limit) { limit = d; best = p; }
  }
  return best;
};
const point = (p) => {
  if (p === hovered && (p < 0) === (tip.style.display !== "block")) return;
  hovered = p;
  tip.style.display = p < 0 ? "none" : "block";
  if (p >= 0) {
    const i = mapped[p];
    const lines = [`cluster “${label(items.cluster[i])}”`, facts(i), ...(items.texts ? [items.texts[i].slice(0, 240)] : [])];
    if (column() >= 0) lines.push(`${items.columns[column()]}: ${number(items.values[column()][i])}`);
    const content = [picture(i), make("b", {textContent: marked(i)}), ...lines.map((text) => make("div", {textContent: text}))];
    tip.replaceChildren(...content.filter(Boolean));
    const [a, b] = place(p);
    const [w, h] = size();
    tip.style.left = `${Math.max(4, Math.min(a + 14, w - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(b + 14, h - tip.offsetHeight - 4))}px`;
  }
  draw();
};
const zoom = (factor, a, b) => {
  const scale = Math.max(1, Math.min(40, seen.scale * factor));
  const by = scale / seen.scale;
  seen = scale === 1 ? {scale: 1, left: 0, top: 0} : {scale, left: a - (a - seen.left) * by, top: b - (b - seen.top) * by};
  canvas.style.touchAction = scale === 1 ? "pan-y" : "none";  // at full size a finger scrolls the page
  point(-1);
  draw();
};
const position = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const pointers = new Map();
let dragged = false;
canvas.addEventListener("pointerdown", (event) => {
  dragged = false;
  pointers.set(event.pointerId, position(event));
  if (event.pointerType !== "mouse") point(nearest(...position(event), 24));
});
canvas.addEventListener("pointermove", (event) => {
  const [a, b] = position(event);
  const before = pointers.get(event.pointerId);
  if (!before) { point(nearest(a, b, 14)); return; }
  dragged ||= Math.hypot(a - before[0], b - before[1]) > 2;
  if (pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    const spread = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
    zoom(spread([a, b]) / Math.max(spread(before), 1), (a + other[0]) / 2, (b + other[1]) / 2);
  } else if (seen.scale > 1) {
    seen.left += a - before[0];
    seen.top += b - before[1];
    point(-1);
    draw();
  }
  pointers.set(event.pointerId, [a, b]);
});
for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
  canvas.addEventListener(end, (event) => {
    pointers.delete(event.pointerId);
    if (end === "pointerleave" && event.pointerType === "mouse") point(-1);
  });
}
canvas.addEventListener("click", (event) => {
  if (event.pointerType !== "mouse" || dragged || hovered < 0) return;
  const own = mapped.filter((i) => items.cluster[i] === clusterOf(hovered));
  view(own, own.indexOf(mapped[hovered]));
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && seen.scale === 1) return;  // the page scrolls
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 300), ...position(event));
}, {passive: false});
const middle = () => size().map((side) => side / 2);
one("#zoom-in").addEventListener("click", () => zoom(1.6, ...middle()));
one("#zoom-out").addEventListener("click", () => zoom(1 / 1.6, ...middle()));
one("#zoom-reset").addEventListener("click", () => zoom(0, 0, 0));
chooser.addEventListener("change", () => { layout = chooser.value; zoom(0, 0, 0); });
one("#colour-by").addEventListener("change", (event) => {
  colourBy = event.target.value;
  canvas.setAttribute("aria-label", `Map of the items, coloured by ${event.target.selectedOptions[0].text}`);
  const isScale = colourBy !== "cluster" && colourBy !== "truth" && !isOfLevels();
  for (const legend of all(".legend")) legend.hidden = legend.dataset.of !== (isScale ? "scale" : isOfLevels() ? "levels" : colourBy);
  if (colourBy === "confidence") {
    range = [0, 1000];
    one("#scale-low").textContent = "uncertain";
    one("#scale-high").textContent = "certain";
  } else if (isScale) {  // a few extreme values must not make all others look the same
    const sorted = valuesShown().filter((value) => value !== null).sort((a, b) => a - b);
    const written = items.colourings[column()] === "days" ? day : number;
    range = [0.02, 0.98].map((q) => sorted[Math.round(q * (sorted.length - 1))]);
    one("#scale-low").textContent = (sorted[0] < range[0] ? "≤ " : "") + written(range[0]);
    one("#scale-high").textContent = (sorted.at(-1) > range[1] ? "≥ " : "") + written(range[1]);
  } else if (isOfLevels()) {
    const found = frequentLevels(valuesShown());
    levels = found.slice(0, COLOURED_LEVELS);
    const shown = levels.map((value) => [colourOfLevel(value), value]);
    if (found.length > levels.length) shown.push([GREY, found.length - levels.length === 1 ? found.at(-1) : `${found.length - levels.length} others`]);
    if (valuesShown().includes(null)) shown.push([GREY, "empty"]);
    one(".legend[data-of=levels]").replaceChildren(...shown.map(([own, text]) => {
      const dot = make("span", {className: "dot"});
      dot.style.setProperty("--own", own);
      return make("span", {}, dot, String(text));
    }));
  }
  draw();
});
for (const button of all(".legend button[data-cluster]")) {
  button.addEventListener("click", () => {
    const c = Number(button.dataset.cluster);
    if (!hidden.delete(c)) hidden.add(c);
    button.setAttribute("aria-pressed", String(!hidden.has(c)));
    point(-1);
    draw();
  });
}
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
whenRenamed.push(draw);
showNames();
