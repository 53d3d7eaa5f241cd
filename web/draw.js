// SPDX-License-Identifier: MIT
// Small pieces of page: elements, numbers for people, bars, tables.
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "style") node.style.cssText = value; // the policy lets scripts set styles, not attributes
    else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(2)) if (child != null) node.append(child);
  return node;
};
const byId = (id) => document.getElementById(id);
const fill = (id, ...children) => (typeof id === "string" ? byId(id) : id).replaceChildren(...children.flat(2).filter((c) => c != null));

// What may come a moment after the pictures while a slider moves: once, after the last change.
const waiting = {};
const later = (name, act, ms = 100) => {
  clearTimeout(waiting[name]);
  waiting[name] = setTimeout(() => {
    delete waiting[name];
    act();
    document.body.dataset.settled = String(Object.keys(waiting).length === 0);
  }, ms);
  document.body.dataset.settled = "false";
};

const thin = "\u202f";
const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
};
const scaled = (value, steps) => {
  if (value == null) return "–";
  const [factor, unit] = steps.find(([from]) => Math.abs(value) >= from) ?? steps.at(-1);
  return `${digits(value / factor)}${thin}${unit}`;
};
const seconds = (v) => (v === 0 ? `0${thin}s` : scaled(v, [[86400, "d"], [3600, "h"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]));
// "6.4 s (5.7-7.2)": a value and its interval; units only where they differ.
const interval = (show, low, high, of) => {
  const unit = (text) => text.replace(/^[-\d.,]+/, ""), number = (text) => text.slice(0, text.length - unit(text).length), ends = [show(low), show(high)];
  return ends.every((text) => unit(text) === unit(show(of ?? high))) ? ends.map(number).join("-") : ends.join(" to ");
};
const sure = (show, v, low, high) => (low == null || high === low ? show(v) : `${show(v)} (${interval(show, low, high, v)})`);
const bytes = (v) => (v == null ? "–" : v === 0 ? `0${thin}B` : scaled(v, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]));
const perSecond = (v) => (v == null ? "–" : `${bytes(v)}/s`);
const percent = (v, sign = "") => {
  if (v == null) return "–";
  const text = (100 * v).toFixed(1).replace(/^-0\.0$/, "0.0");
  return `${sign && v >= 0 ? sign : ""}${text}%`;
};
const ratio = (v) => (v == null ? "–" : v < 1 ? v.toFixed(3) : v < 100 ? v.toPrecision(3) : v.toFixed(0));
const whole = (v) => (v == null ? "none" : Math.round(v).toLocaleString("en"));
const count = (v) => (v == null ? "–" : Number.isInteger(v) ? v.toLocaleString("en") : v > 100 ? whole(v) : digits(v));
const dollars = (v) => (v == null ? "–" : `$${Math.abs(v) >= 100 ? Math.round(v).toLocaleString("en") : v.toPrecision(3)}`);
const large = (v) => (v == null ? "–" : scaled(v, [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"], [1, ""]]));

const tile = (value, name, options = {}) =>
  el("div", { class: `tile${options.flip ? " flip" : ""}${options.changed ? " changed" : ""}`, id: options.id, hidden: options.said, "data-value": options.raw ?? "" }, el("b", {}, value), el("span", {}, name));
// Tiles of a view, kept for its comparison with A. What the verdict says already is not shown again. A line says what
// changed, with the difference.
const shownTiles = {};
const setTiles = (view, ...list) => {
  const before = shownTiles[view], moved = [], said = [...byId(`${view}-verdict`).querySelectorAll(":scope > p")].map((p) => p.textContent).join(" ");
  const says = (words) => words.length > 1 && said.split(words).slice(1).some((rest, i, all) => !/^\d|^\.\d/.test(rest) && !/[\d.]$/.test(i ? all[i - 1] : said.split(words)[0]));
  list.forEach(([value, name, options], i) => {
    const old = before?.[i]?.[2]?.id === options.id && before[i];
    options.said ||= says(value.replaceAll(thin, " ")) || (/%$/.test(value) && says(`${Math.round(100 * options.raw)}%`));
    options.changed = old && old[0] !== value;
    if (options.changed && old[2].raw > 0 && options.raw > 0) moved[/^a step/.test(name) ? "unshift" : "push"](`${name.split(/[:(,]/)[0].trim()} ${old[0]} → ${value} (${percent(options.raw / old[2].raw - 1, "+")})`);
  });
  shownTiles[view] = list;
  fill(`${view}-tiles`, list.map(([value, name, options]) => tile(value, name, options)), moved.length ? el("p", { class: "wide hint", id: `${view}-moved` }, `Changed: ${moved.slice(0, 3).join("; ")}.`) : null);
};

const labels = [["compute_s", "compute", "compute"], ["transfer_s", "transfer", "exposed transfer"], ["wait_s", "wait", "exposed wait"],
  ["exposed_copy_s", "copy", "exposed copy"], ["starved_input_s", "starved", "starved input"], ["host_bound_s", "host", "host-bound"], ["idle_s", "idle", "idle"]];

// One step as a bar. `parts`: {compute: s, ...}; `longest` sets the scale.
const stepBar = (name, note, parts, longest) => el("div", {},
  el("div", { class: "bar-name" }, el("span", {}, name), el("span", {}, note)),
  el("div", { class: "bar", role: "img", "aria-label": `${name}: ${labels.filter(([, key]) => parts[key] > 0).map(([, key, words]) => `${words} ${seconds(parts[key])}`).join(", ")}` },
    labels.filter(([, key]) => parts[key] > 0).map(([, key, words]) => el("i", {
      class: `l-${key}`, style: `width:${(100 * parts[key]) / longest}%`, title: `${words} ${seconds(parts[key])}`,
    }))));
const legend = (keys = labels.map(([, key]) => key)) => el("div", { class: "legend" },
  labels.filter(([, key]) => keys.includes(key)).map(([, key, words]) => el("span", {}, el("i", { class: `l-${key}` }), words)));

// A part has its colour and pattern wherever it stands: work blue, traffic orange, waiting amber.
const partStyles = {};
["products", "attention", "memory-bound", "embedding and head", "recompute", "optimizer", "host", "TP", "CP", "EP", "PP", "DP", "sharding", "bubble", "stragglers", "loader", "offload"]
  .forEach((name, i) => { partStyles[name] = `s-${i}`; });
["parameters", "gradients", "optimizer states", "activations", "buffers", "fragmentation", "context"].forEach((name, i) => { partStyles[name] = `m-${i}`; });
const partNames = { base: "context" };

// A bar of named parts; `whole` sets the scale, `limit` draws a line.
const partsBar = (name, note, parts, most, show, limit) => el("div", {},
  el("div", { class: "bar-name" }, el("span", {}, name), el("span", {}, note)),
  el("div", { class: "bar", role: "img", "aria-label": `${name}: ${parts.map(([words, value]) => `${words} ${show(value)}`).join(", ")}` },
    parts.map(([words, value]) => el("i", { class: partStyles[words] ?? "s-0", style: `width:${(100 * value) / most}%`, title: `${words} ${show(value)}` })),
    limit && limit < most ? el("u", { style: `left:${(100 * limit) / most}%`, title: `a GPU has ${show(limit)}` }) : null));
const partsLegend = (bars, show) => {
  const names = [...new Set(bars.flatMap((parts) => parts.map(([name]) => name)))];
  const first = Object.fromEntries(bars[0] ?? []);
  return el("div", { class: "legend" }, names.map((name) => el("span", {}, el("i", { class: partStyles[name] ?? "s-0" }), name,
    first[name] != null ? el("span", { class: "quiet" }, ` ${show(first[name])}`) : null)));
};

const someParts = (object, end) => Object.entries(object).filter(([key, value]) => value > 0 && key.endsWith(end) && !/^(total|capacity|low|high)/.test(key))
  .map(([key, value]) => [key.slice(0, key.length - end.length), value])
  .map(([key, value]) => [end === "_bytes" && key === "optimizer" ? "optimizer states" : partNames[key] ?? key, value]);

// Text columns are aligned left and may break; `file` columns are cut at the front.
const table = (headers, rows, options = {}) => {
  const kind = (i) => (options.text?.includes(i) ? "text" : options.file?.includes(i) ? "file" : "");
  return el("table", {},
    el("thead", {}, el("tr", {}, headers.map((h, i) => el("th", { class: kind(i), scope: "col" }, h)))),
    el("tbody", {}, rows.map((row) => el("tr", { class: row.marked ? "marked" : "" }, row.cells.map((c, i) => el("td", { class: kind(i), "data-label": headers[i], title: kind(i) === "file" ? c : null }, c))))));
};
const fileName = (path) => path.split("/").at(-1);

const figure = (caption, ...children) => el("figure", {}, el("figcaption", {}, el("h2", {}, caption)), ...children);
const wideFigure = (caption, ...children) => el("figure", { class: "wide" }, el("figcaption", {}, el("h2", {}, caption)), ...children);
const scroll = (...children) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "table, scrolls sideways" }, ...children);
