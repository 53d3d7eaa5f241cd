// SPDX-License-Identifier: MIT
// Small pieces of page: elements, numbers for people, bars, tables, curves.
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null) node.append(child);
  return node;
};
const byId = (id) => document.getElementById(id);
const fill = (id, ...children) => byId(id).replaceChildren(...children.flat().filter((c) => c != null));

// What may come a moment after the pictures while a slider moves: once, after the last change.
const waiting = {};
const later = (name, act) => {
  clearTimeout(waiting[name]);
  waiting[name] = setTimeout(() => {
    delete waiting[name];
    act();
    document.body.dataset.settled = String(Object.keys(waiting).length === 0);
  }, 100);
  document.body.dataset.settled = "false";
};

const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
};
const scaled = (value, steps) => {
  if (value == null) return "–";
  const [factor, unit] = steps.find(([from]) => Math.abs(value) >= from) ?? steps.at(-1);
  return `${digits(value / factor)}\u202f${unit}`;
};
const seconds = (v) => (v === 0 ? "0\u202fs" : scaled(v, [[86400, "d"], [3600, "h"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]));
const bytes = (v) => (v == null ? "–" : v === 0 ? "0 B" : scaled(v, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]));
const perSecond = (v) => (v == null ? "–" : `${bytes(v)}/s`);
const percent = (v, sign = "") => (v == null ? "–" : `${sign && v >= 0 ? sign : ""}${(100 * v).toFixed(1)}\u202f%`);
const ratio = (v) => (v == null ? "–" : v < 10 ? v.toFixed(3) : v.toFixed(1));
const count = (v) => (v == null ? "none" : Number.isInteger(v) ? String(v) : v.toFixed(1));
const dollars = (v) => (v == null ? "–" : `$${v >= 100 ? Math.round(v).toLocaleString("en") : v.toPrecision(3)}`);

const tile = (value, name, options = {}) =>
  el("div", { class: `tile${options.flip ? " flip" : ""}`, id: options.id, "data-value": options.raw ?? "" }, el("b", {}, value), el("span", {}, name));

const labels = [["compute_s", "compute", "compute"], ["transfer_s", "transfer", "exposed transfer"], ["wait_s", "wait", "exposed wait"],
  ["exposed_copy_s", "copy", "exposed copy"], ["starved_input_s", "starved", "starved input"], ["host_bound_s", "host", "host-bound"], ["idle_s", "idle", "idle"]];

// One step as a bar. `parts`: {compute: s, ...}; `longest` sets the scale.
const stepBar = (name, note, parts, longest) => el("div", {},
  el("div", { class: "bar-name" }, el("span", {}, name), el("span", {}, note)),
  el("div", { class: "bar", role: "img", "aria-label": `${name}: ${labels.filter(([, key]) => parts[key] > 0).map(([, key, words]) => `${words} ${seconds(parts[key])}`).join(", ")}` },
    labels.filter(([, key]) => parts[key] > 0).map(([, key, words]) => el("i", {
      class: `l-${key}`, style: `width:${(100 * parts[key]) / longest}%`, title: `${words} ${seconds(parts[key])}`,
    }))));

// A bar of named parts, each with its share; `whole` sets the scale.
const partsBar = (name, note, parts, whole, show) => el("div", {},
  el("div", { class: "bar-name" }, el("span", {}, name), el("span", {}, note)),
  el("div", { class: "bar", role: "img", "aria-label": `${name}: ${parts.map(([words, value]) => `${words} ${show(value)}`).join(", ")}` },
    parts.map(([words, value], i) => el("i", { class: `p-${i % 8}`, style: `width:${(100 * value) / whole}%`, title: `${words} ${show(value)}` }, value / whole > 0.09 ? words : null))));

const someParts = (object, end) => Object.entries(object).filter(([key, value]) => value > 0 && key.endsWith(end) && !/^(total|capacity)/.test(key))
  .map(([key, value]) => [key.slice(0, key.length - end.length), value]);

const legend = () => labels.map(([, key, words]) => el("span", {}, el("i", { class: `l-${key}` }), words));

const table = (headers, rows, options = {}) => el("table", {},
  el("thead", {}, el("tr", {}, headers.map((h, i) => el("th", { class: options.text?.includes(i) ? "text" : "", scope: "col" }, h)))),
  el("tbody", {}, rows.map((row) => el("tr", { class: row.marked ? "marked" : "" }, row.cells.map((c, i) => el("td", { class: options.text?.includes(i) ? "text" : "" }, c))))));

// ---- Curves (uPlot) ----
const plots = {};
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const curve = (id, data, series, options = {}) => {
  const box = byId(id);
  box.setAttribute("role", "img"); // the tables have the same numbers for those who do not look
  box.setAttribute("aria-label", `${box.closest("figure").querySelector("figcaption").textContent}: ${series.map((s) => s.label).join(", ")} over ${options.x}`);
  const width = Math.max(200, box.clientWidth || 300);
  const height = options.height ?? 220;
  const key = JSON.stringify([options.logX, options.logY, series.map((s) => s.label), document.documentElement.dataset.theme]);
  plots[id] ??= {};
  if (plots[id].key === key && box.contains(plots[id].plot.root)) {
    plots[id].options = options;
    plots[id].plot.setSize({ width, height });
    plots[id].plot.setData(data);
    return;
  }
  plots[id].plot?.destroy();
  plots[id].key = key;
  plots[id].options = options;
  const axis = { stroke: ink("--ink"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line") } };
  plots[id].plot = new uPlot({
    width, height, legend: { live: true }, cursor: { y: false },
    scales: { x: { time: false, distr: 3, log: options.logX ?? 2 }, y: { range: options.range, distr: options.logY ? 3 : 1 } },
    axes: [{ ...axis, label: options.x === "K" ? "workers K" : options.x, labelSize: 18, labelFont: "12px system-ui", values: (u, ticks) => ticks.map((v) => (v == null ? "" : options.formatX ? options.formatX(v) : String(Math.round(v * 100) / 100))) },
      { ...axis, size: 76, values: (u, ticks) => ticks.map((v) => (v == null ? "" : options.formatY(v))) }],
    series: [{ label: options.x, value: (u, v) => (v == null ? "–" : options.formatX ? options.formatX(v) : count(v)) },
      ...series.map((s) => ({ width: 2, ...s, stroke: ink(s.color), value: (u, v) => (v == null ? "–" : options.formatY(v)) }))],
    hooks: { draw: [(u) => {
      const { mark, level } = plots[id].options;
      const c = u.ctx;
      c.save();
      c.strokeStyle = ink("--warn");
      c.fillStyle = ink("--ink");
      c.font = `${12 * devicePixelRatio}px system-ui`;
      c.setLineDash([6, 4]);
      const line = (x0, y0, x1, y1) => { c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1); c.stroke(); };
      if (mark != null && mark >= u.scales.x.min && mark <= u.scales.x.max) {
        const x = u.valToPos(mark, "x", true);
        line(x, u.bbox.top, x, u.bbox.top + u.bbox.height);
        const words = `knee ${count(mark)}`;
        const left = x + 4 + c.measureText(words).width > u.bbox.left + u.bbox.width ? x - 4 - c.measureText(words).width : x + 4;
        const top = u.bbox.top + u.bbox.height - 8 * devicePixelRatio;
        c.fillText(words, left, top);
      }
      if (level != null) {
        const y = u.valToPos(level, "y", true);
        line(u.bbox.left, y, u.bbox.left + u.bbox.width, y);
      }
      c.restore();
    }] },
  }, data, box);
};
