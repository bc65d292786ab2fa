"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const names = {...data.names};
  // Names that the page came with are part of the key: a page with new ones starts with these.
  const store = `ddclust-names-${data.key}-${JSON.stringify(data.names)}`;
  try { Object.assign(names, JSON.parse(localStorage.getItem(store) || "{}")); } catch { /* a private window */ }
  const label = (c) => names[c] || `cluster ${c}`;

  // Names of clusters: typed once, shown everywhere, exported for `ddclust predict --names`.
  const showNames = () => {
    for (const place of document.querySelectorAll("[data-name]")) place.textContent = label(place.dataset.name);
  };
  for (const input of document.querySelectorAll("input[data-cluster]")) {
    input.value = names[input.dataset.cluster] || "";
    input.addEventListener("input", () => {
      const name = input.value.trim();
      names[input.dataset.cluster] = name;
      try { localStorage.setItem(store, JSON.stringify(names)); } catch { /* kept on the page only */ }
      showNames();
      draw();
    });
  }
  showNames();
  document.getElementById("export").addEventListener("click", () => {
    const given = Object.fromEntries(Object.entries(names).filter(([, name]) => name));
    const content = JSON.stringify({format: "ddclust-names", key: data.key, names: given}, null, 1) + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], {type: "application/json"}));
    link.download = "names.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // The map.
  const canvas = document.getElementById("map");
  if (!canvas) return;
  const context = canvas.getContext("2d");
  const tip = document.getElementById("tip");
  const sprite = data.sprite ? Object.assign(new Image(), {src: data.sprite.src}) : null;
  const {cluster, confidence, truth, item, caption, layouts} = data.map;
  const chooser = document.getElementById("layout");
  let layout = chooser.value;
  const hidden = new Set();
  let view = {scale: 1, left: 0, top: 0};
  let hovered = -1;
  let colourBy = "cluster";

  const size = () => [canvas.clientWidth, canvas.clientHeight];
  // From the unit square to the canvas. t-SNE's axes mean nothing, so it may be wide; a simplex keeps its shape.
  const at = (a, b) => {
    const [w, h] = size();
    const high = Math.min(w, h) - 36;
    const wide = layout === "simplex" ? high : Math.min(w - 60, 1.8 * high);
    return [((w - wide) / 2 + a * wide) * view.scale + view.left, ((h - high) / 2 + (1 - b) * high) * view.scale + view.top];
  };
  const place = (i) => at(layouts[layout].x[i], layouts[layout].y[i]);
  const colour = (i) => {
    if (colourBy === "truth") return truth[i] < 0 ? "#888" : data.colours[truth[i] % data.colours.length];
    if (colourBy === "confidence") return `hsl(${210 - 180 * (1 - confidence[i])} 75% 50%)`;
    return data.colours[cluster[i] % data.colours.length];
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
    const ink = getComputedStyle(document.body).getPropertyValue("--ink");
    const paper = getComputedStyle(document.body).getPropertyValue("--paper");
    if (layout === "simplex") {
      context.strokeStyle = getComputedStyle(document.body).getPropertyValue("--line");
      context.lineWidth = 1;
      context.beginPath();
      data.map.corners.forEach((corner, i) => context[i ? "lineTo" : "moveTo"](...at(...corner)));
      context.closePath();
      context.stroke();
    }
    const radius = Math.min(2.6 * Math.sqrt(view.scale), 7);
    context.globalAlpha = 0.8;
    for (let i = 0; i < cluster.length; i++) {
      if (hidden.has(cluster[i])) continue;
      const [a, b] = place(i);
      if (a < -9 || b < -9 || a > w + 9 || b > h + 9) continue;
      context.fillStyle = colour(i);
      context.beginPath();
      context.arc(a, b, radius, 0, 6.2832);
      context.fill();
    }
    context.globalAlpha = 1;
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    for (const [c, a, b] of layouts[layout].labels) {
      if (hidden.has(c)) continue;
      const text = label(c).length > 24 ? label(c).slice(0, 23) + "…" : label(c);
      context.strokeStyle = paper;
      context.strokeText(text, ...at(a, b));
      context.fillStyle = ink;
      context.fillText(text, ...at(a, b));
    }
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
    for (let i = 0; i < cluster.length; i++) {
      if (hidden.has(cluster[i])) continue;
      const [p, q] = place(i);
      const d = (p - a) ** 2 + (q - b) ** 2;
      if (d < limit) { limit = d; best = i; }
    }
    return best;
  };
  const show = (i) => {
    if (i === hovered && (i < 0) === (tip.style.display !== "block")) return;
    hovered = i;
    tip.style.display = i < 0 ? "none" : "block";
    if (i >= 0) {
      tip.replaceChildren();
      if (sprite) {
        const {width, height, columns} = data.sprite;
        const factor = Math.max(1, Math.min(4, Math.floor(112 / Math.max(width, height))));
        const picture = Object.assign(document.createElement("canvas"), {width: width * factor, height: height * factor});
        const paint = picture.getContext("2d");
        paint.imageSmoothingEnabled = false;
        paint.drawImage(sprite, (i % columns) * width, Math.floor(i / columns) * height, width, height, 0, 0, picture.width, picture.height);
        tip.append(picture);
      }
      const line = (tag, text) => tip.append(Object.assign(document.createElement(tag), {textContent: text}));
      line("b", item[i]);
      line("div", `${label(cluster[i])}, confidence ${confidence[i].toFixed(2)}`);
      if (truth) line("div", `known class: ${truth[i] < 0 ? "unknown" : data.classes[truth[i]]}`);
      if (caption) line("div", caption[i]);
      const [a, b] = place(i);
      const [w, h] = size();
      tip.style.left = `${Math.max(4, Math.min(a + 14, w - tip.offsetWidth - 4))}px`;
      tip.style.top = `${Math.max(4, Math.min(b + 14, h - tip.offsetHeight - 4))}px`;
    }
    draw();
  };
  const zoom = (factor, a, b) => {
    const scale = Math.max(1, Math.min(40, view.scale * factor));
    const by = scale / view.scale;
    view = scale === 1 ? {scale: 1, left: 0, top: 0} : {scale, left: a - (a - view.left) * by, top: b - (b - view.top) * by};
    canvas.style.touchAction = scale === 1 ? "pan-y" : "none";  // at full size a finger scrolls the page
    show(-1);
    draw();
  };
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, position(event));
    if (event.pointerType !== "mouse") show(nearest(...position(event), 24));
  });
  canvas.addEventListener("pointermove", (event) => {
    const [a, b] = position(event);
    const before = pointers.get(event.pointerId);
    if (!before) { show(nearest(a, b, 14)); return; }
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      const spread = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      zoom(spread([a, b]) / Math.max(spread(before), 1), (a + other[0]) / 2, (b + other[1]) / 2);
    } else if (view.scale > 1) {
      view.left += a - before[0];
      view.top += b - before[1];
      show(-1);
      draw();
    }
    pointers.set(event.pointerId, [a, b]);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    canvas.addEventListener(end, (event) => {
      pointers.delete(event.pointerId);
      if (end === "pointerleave" && event.pointerType === "mouse") show(-1);
    });
  }
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && view.scale === 1) return;  // the page scrolls
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), ...position(event));
  }, {passive: false});
  canvas.addEventListener("dblclick", (event) => zoom(2, ...position(event)));
  const middle = () => size().map((side) => side / 2);
  document.getElementById("zoom-in").addEventListener("click", () => zoom(1.6, ...middle()));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 1.6, ...middle()));
  document.getElementById("zoom-reset").addEventListener("click", () => zoom(0, 0, 0));
  chooser.addEventListener("change", () => { layout = chooser.value; zoom(0, 0, 0); });
  document.getElementById("colour-by").addEventListener("change", (event) => {
    colourBy = event.target.value;
    canvas.setAttribute("aria-label", `Map of the items, coloured by ${event.target.selectedOptions[0].text}`);
    for (const legend of document.querySelectorAll(".legend")) legend.hidden = legend.dataset.of !== colourBy;
    draw();
  });
  for (const button of document.querySelectorAll(".legend button[data-cluster]")) {
    button.addEventListener("click", () => {
      const c = Number(button.dataset.cluster);
      if (!hidden.delete(c)) hidden.add(c);
      button.setAttribute("aria-pressed", String(!hidden.has(c)));
      show(-1);
      draw();
    });
  }
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
