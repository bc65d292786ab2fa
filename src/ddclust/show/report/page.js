"use strict";
// What the page holds, the names of the clusters, and small helpers. Items go by their places in the listing, and
// shares are in thousandths. Whatever users named reaches the page as text, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const items = data.items;
const one = (selector) => document.querySelector(selector);
const all = (selector) => document.querySelectorAll(selector);
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const save = (file, type, content) => {
  const link = make("a", {href: URL.createObjectURL(new Blob([content], {type})), download: file});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const itemName = (i) => items.names ? items.names[i] : `item ${items.numbers ? items.numbers[i] : i}`;
const share = (thousandths) => (thousandths / 1000).toFixed(2);
const className = (i) => items.truth[i] < 0 ? "unknown" : data.classes[items.truth[i]];
const isWrong = (i) => {
  const main = data.clusters[items.cluster[i]].mainClass;
  return Boolean(items.truth) && main !== null && items.truth[i] >= 0 && items.truth[i] !== main;
};

// Names of clusters: proposed, or typed once, shown everywhere, exported for `ddclust predict --names`.
const names = {...data.names};
// Names that the page came with are part of the key: a page with new ones starts with these.
const store = `ddclust-names-${data.key}-${JSON.stringify(data.names)}`;
try { Object.assign(names, JSON.parse(localStorage.getItem(store) || "{}")); } catch { /* a private window */ }
const label = (c) => names[c] || data.clusters[c].proposed || `cluster ${c}`;
const whenRenamed = [];
const showNames = () => {
  for (const place of all("[data-name]")) place.textContent = label(place.dataset.name);
  for (const change of whenRenamed) change();
};
for (const input of all("input[data-cluster]")) {
  input.value = names[input.dataset.cluster] || "";
  input.addEventListener("input", () => {
    names[input.dataset.cluster] = input.value.trim();
    try { localStorage.setItem(store, JSON.stringify(names)); } catch { /* kept on the page only */ }
    showNames();
  });
}
one("#export").addEventListener("click", () => {
  const given = Object.fromEntries(Object.entries(names).filter(([, name]) => name));
  save("names.json", "application/json", JSON.stringify({format: "ddclust-names", key: data.key, names: given}, null, 1) + "\n");
});

// Pictures: small ones of most items on sheets, large ones of some.
const pictures = items.pictures;
const sheets = [];
const placeOnSheets = new Map(pictures ? pictures.items.map((item, place) => [item, place]) : []);
const sheet = (number) => {
  if (!sheets[number]) {
    sheets[number] = Object.assign(new Image(), {src: pictures.sheets[number]});
    sheets[number].ready = sheets[number].decode();
  }
  return sheets[number];
};
const paint = (context, i, left, top, width, height, then) => {
  const place = placeOnSheets.get(i);
  const source = sheet(Math.floor(place / pictures.perSheet));
  const on = place % pictures.perSheet;
  const x = (on % pictures.columns) * pictures.width;
  const y = Math.floor(on / pictures.columns) * pictures.height;
  const draw = () => context.drawImage(source, x, y, pictures.width, pictures.height, left, top, width, height);
  if (source.complete && source.naturalWidth) draw();
  else source.ready.then(then || draw);
};
// An element with the picture of an item, null if the page has none.
const picture = (i) => {
  if (!pictures) return null;
  if (pictures.large[i]) return make("img", {src: pictures.large[i], alt: itemName(i)});
  if (!placeOnSheets.has(i)) return null;
  const {width, height} = pictures;
  const canvas = make("canvas", {width, height, role: "img", ariaLabel: itemName(i)});
  if (pictures.pixelated) canvas.className = "pixels";
  paint(canvas.getContext("2d"), i, 0, 0, width, height);
  return canvas;
};
for (const place of all("[data-sign]")) {
  const sign = data.clusters[place.dataset.sign].sign;
  if (sign !== null) place.append(picture(sign));
}
