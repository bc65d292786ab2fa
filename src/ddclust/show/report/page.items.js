// Items in galleries, in the list and enlarged: pictures, texts or rows of values.
const COLUMNS_IN_A_ROW = 8;
const PER_PAGE = Math.round((pictures ? 60 : items.texts ? 20 : 30) / (innerWidth < 600 ? 2 : 1));
const WORTH_TELLING = 50;  // thousandths of a second choice
const number = (value) => typeof value !== "number" ? value ?? "–" : Number(value.toPrecision(6)).toLocaleString("en", {maximumSignificantDigits: 6});

const facts = (i) => {
  const told = [`confidence ${share(items.confidence[i])}`];
  if (items.second && items.secondShare[i] >= WORTH_TELLING) told.push(`second choice: “${label(items.second[i])}” (${share(items.secondShare[i])})`);
  if (items.truth) told.push(`known class: ${className(i)}`);
  return told.join(" · ");
};
const marked = (i) => (isWrong(i) ? "✗ " : "") + itemName(i);
const opener = (i, list, ...content) => {
  const button = make("button", {className: "item", title: `${marked(i)}\n${facts(i)}`}, ...content);
  button.addEventListener("click", () => view(list, list.indexOf(i)));
  return button;
};

const asPictures = (list) => make("div", {className: "pictures"}, ...list.map((i) => {
  const caption = make("span", {className: "caption", textContent: (isWrong(i) ? "✗ " : "") + share(items.confidence[i])});
  const figure = opener(i, list, picture(i) || make("span", {className: "missing", textContent: itemName(i)}), caption);
  figure.classList.toggle("wrong", isWrong(i));
  return figure;
}));
const asTexts = (list) => make("ul", {className: "texts"}, ...list.map((i) => {
  const text = make("p", {className: "folded", textContent: items.texts[i]});
  const more = make("button", {className: "more", textContent: "more"});
  more.addEventListener("click", () => {
    more.textContent = text.classList.toggle("folded") ? "more" : "less";
  });
  const head = make("div", {}, opener(i, list, marked(i)), make("span", {className: "faint", textContent: facts(i)}));
  return make("li", {className: isWrong(i) ? "wrong" : ""}, head, text, more);
}));
const asRows = (list) => {
  const shown = items.columns.slice(0, COLUMNS_IN_A_ROW);
  const heads = ["item", "confidence", ...shown, ...(items.truth ? ["known class"] : [])];
  const rows = list.map((i) => {
    const cells = [share(items.confidence[i]), ...shown.map((_, c) => number(items.values[c][i])), ...(items.truth ? [className(i)] : [])];
    return make("tr", {className: isWrong(i) ? "wrong" : ""}, make("td", {}, opener(i, list, marked(i))), ...cells.map((text) => make("td", {textContent: text})));
  });
  const head = make("tr", {}, ...heads.map((text) => make("th", {scope: "col", textContent: text})));
  return make("div", {className: "wide"}, make("table", {}, head, ...rows));
};
const show = (place, list) => {
  place.replaceChildren((pictures ? asPictures : items.texts ? asTexts : asRows)(list));
  for (const text of place.querySelectorAll(".folded")) {
    text.nextSibling.hidden = text.scrollHeight <= text.clientHeight + 1;
  }
};
const showGalleries = () => {
  for (const place of all(".gallery")) show(place, place.dataset.items.split(",").filter(Boolean).map(Number));
};

// One item, enlarged; the others of its list are next to it.
const viewer = one("#viewer");
let viewed = {list: [], at: 0};
const view = (list, at) => {
  viewed = {list, at};
  const i = list[at];
  const content = [picture(i), make("h3", {textContent: marked(i)})];
  content.push(make("p", {className: "faint", textContent: `cluster “${label(items.cluster[i])}” · ${facts(i)}`}));
  if (items.texts) content.push(make("p", {textContent: items.texts[i]}));
  if (items.columns.length) {
    const rows = items.columns.map((name, c) => make("tr", {}, make("td", {textContent: name}), make("td", {textContent: number(items.values[c][i])})));
    content.push(make("table", {}, ...rows));
  }
  one("#viewed").replaceChildren(...content.filter(Boolean));
  one("#viewed").className = isWrong(i) ? "wrong" : "";
  one("#item-number").textContent = `${(at + 1).toLocaleString("en")} of ${list.length.toLocaleString("en")}`;
  one("#item-before").disabled = at === 0;
  one("#item-after").disabled = at === list.length - 1;
  if (!viewer.open) viewer.showModal();
};
const step = (by) => {
  const at = viewed.at + by;
  if (at >= 0 && at < viewed.list.length) view(viewed.list, at);
};
one("#item-before").addEventListener("click", () => step(-1));
one("#item-after").addEventListener("click", () => step(1));
one("#close-viewer").addEventListener("click", () => viewer.close());
viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });  // beside it
viewer.addEventListener("keydown", (event) => {
  const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (by) { event.preventDefault(); step(by); }
});

// The list: a part of the items, in an order, page by page.
const whole = Array.from({length: items.n}, (_, i) => i);
const byConfidence = [...whole].sort((a, b) => items.confidence[b] - items.confidence[a] || a - b);
const orders = {certain: byConfidence, doubtful: [...byConfidence].reverse(), number: whole};
const lowered = whole.map((i) => (itemName(i) + (items.texts ? "\n" + items.texts[i] : "")).toLowerCase());
let found = [];
let page = 0;
const showPage = (to) => {
  const last = Math.max(Math.ceil(found.length / PER_PAGE) - 1, 0);
  page = Math.min(Math.max(to, 0), last);
  show(one("#list"), found.slice(page * PER_PAGE, (page + 1) * PER_PAGE));
  one("#page-number").textContent = `page ${(page + 1).toLocaleString("en")} of ${(last + 1).toLocaleString("en")}`;
  one("#page-before").disabled = page === 0;
  one("#page-after").disabled = page === last;
};
const find = () => {
  const cluster = one("#of-cluster").value;
  const words = one("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyWrong = Boolean(one("#only-wrong")?.checked);
  found = orders[one("#order").value].filter((i) =>
    (cluster === "" || items.cluster[i] === Number(cluster)) && (!onlyWrong || isWrong(i)) && words.every((word) => lowered[i].includes(word)));
  one("#found").textContent = `${found.length.toLocaleString("en")} item${found.length === 1 ? "" : "s"}`;
  showPage(0);
};
one("#of-cluster").addEventListener("change", find);
one("#search").addEventListener("input", find);
one("#order").addEventListener("change", find);
one("#only-wrong")?.addEventListener("change", find);
const turn = (by) => () => { showPage(page + by); one("#items").scrollIntoView(); };
one("#page-before").addEventListener("click", turn(-1));
one("#page-after").addEventListener("click", turn(1));
for (const button of all("[data-list]")) {
  button.addEventListener("click", () => {
    one("#of-cluster").value = button.dataset.list;
    one("#search").value = "";
    if (one("#only-wrong")) one("#only-wrong").checked = false;
    find();
    one("#items").scrollIntoView();
  });
}

// CSV: what a spreadsheet would take for a formula gets a single quote in front, as in labels.csv.
const FORMULA = /^(?=['"]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
const FORMULA_WITHIN = /([;\t\r\n])(?=['"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const cell = (value, place) => {
  const text = String(value);
  const plain = typeof value !== "string" || (place > 0 && NUMBER.test(text)) ? text : text.replace(FORMULA_WITHIN, "$1'").replace(FORMULA, "'");
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};
const csv = (list) => {
  const heads = ["item", "cluster", "name", "confidence", ...(items.second ? ["second cluster"] : []), ...(items.truth ? ["known class"] : []), ...(items.texts ? ["text"] : []), ...items.columns];
  const rows = list.map((i) => [
    itemName(i), items.cluster[i], label(items.cluster[i]), items.confidence[i] / 1000, ...(items.second ? [items.second[i]] : []),
    ...(items.truth ? [items.truth[i] < 0 ? "" : className(i)] : []), ...(items.texts ? [items.texts[i]] : []), ...items.values.map((column) => column[i] ?? "")]);
  return [heads, ...rows].map((row) => row.map(cell).join(",") + "\n").join("");
};
const saveItems = (file, list) => save(file, "text/csv", csv(list));
one("#save-found").addEventListener("click", () => saveItems("items.csv", found));
for (const button of all("[data-save]")) {
  const cluster = Number(button.dataset.save);
  button.addEventListener("click", () => saveItems(`cluster-${cluster}.csv`, byConfidence.filter((i) => items.cluster[i] === cluster)));
}
whenRenamed.push(showGalleries, () => showPage(page));
showGalleries();
find();
