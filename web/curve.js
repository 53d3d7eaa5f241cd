// SPDX-License-Identifier: MIT
// Curves, drawn by uPlot.
const plots = {};
// Colours of the theme, asked once; widths are asked again when the window or the view changes.
let inks = {}, layout = 0;
const newLayout = () => { inks = {}; layout++; };
const ink = (name) => (inks[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim());

// `options`: x (name of the axis), logX, logY, linearX, range, formatX, formatY, mark (a knee on x), level
// (a line on y), bands ([[upper, lower], ...], series that stand around a band), height.
const curve = (id, data, series, options = {}) => {
  const box = byId(id);
  const key = JSON.stringify([options.logX, options.logY, series.map((s) => s.label), document.documentElement.dataset.theme]);
  const had = (plots[id] ??= {});
  if (had.key === key && had.layout === layout && box.contains(had.plot.root)) {
    had.options = options;
    had.plot.setData(data);
    return;
  }
  box.setAttribute("role", "img"); // the tables have the same numbers for those who do not look
  box.setAttribute("aria-label", `${box.closest("figure").querySelector("figcaption").textContent}: ${series.map((s) => s.label).join(", ")} over ${options.x}`);
  const width = Math.max(200, box.clientWidth || 300), height = options.height ?? 220;
  had.layout = layout;
  if (had.key === key && box.contains(had.plot.root)) {
    had.options = options;
    had.plot.setSize({ width, height });
    had.plot.setData(data);
    return;
  }
  plots[id].plot?.destroy();
  plots[id].key = key;
  plots[id].options = options;
  const axis = { stroke: ink("--ink"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line") } };
  const showX = (v) => (options.formatX ? options.formatX(v) : count(Math.round(v * 100) / 100));
  plots[id].plot = new uPlot({
    width, height, legend: { live: true }, cursor: { y: false },
    scales: { x: { time: false, distr: options.linearX ? 1 : 3, log: options.logX ?? 2, ...(options.span ? { range: options.span } : {}) }, y: { range: options.range, distr: options.logY ? 3 : 1 } },
    axes: [{ ...axis, label: options.x, labelSize: 18, labelFont: "12px system-ui", values: (u, ticks) => ticks.map((v) => (v == null ? "" : showX(v))) },
      { ...axis, size: 76, values: (u, ticks) => ticks.map((v) => (v == null ? "" : options.formatY(v))) }],
    series: [{ label: options.x, value: (u, v) => (v == null ? "–" : showX(v)) },
      ...series.map((s) => ({ width: 2, ...s, stroke: ink(s.color), value: (u, v) => (v == null ? "–" : options.formatY(v)) }))],
    bands: (options.bands ?? []).map((pair) => ({ series: pair, fill: `${ink("--transfer")}33` })),
    hooks: { draw: [(u) => drawMarks(u, plots[id].options)] },
  }, data, box);
  plots[id].plot.over.addEventListener("click", () => { const { plot, options: now } = plots[id]; now.pick?.(plot.posToVal(plot.cursor.left, "x")); });
};

const drawMarks = (u, { mark, level, markName = "knee", formatMark }) => {
  const c = u.ctx;
  c.save();
  c.strokeStyle = ink("--warn");
  c.fillStyle = ink("--ink");
  c.font = `${12 * devicePixelRatio}px system-ui`;
  c.textAlign = "left";
  c.textBaseline = "alphabetic";
  c.setLineDash([6, 4]);
  const line = (x0, y0, x1, y1) => { c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1); c.stroke(); };
  if (mark != null && mark >= u.scales.x.min && mark <= u.scales.x.max) {
    const x = u.valToPos(mark, "x", true);
    line(x, u.bbox.top, x, u.bbox.top + u.bbox.height);
    const words = `${markName} ${(formatMark ?? count)(mark)}`, room = 6 * devicePixelRatio, wide = c.measureText(words).width;
    const at = x + room + wide > u.bbox.left + u.bbox.width ? x - room - wide : x + room;
    c.fillText(words, at, u.bbox.top + u.bbox.height - 8 * devicePixelRatio);
  }
  if (level != null) {
    const y = u.valToPos(level, "y", true);
    line(u.bbox.left, y, u.bbox.left + u.bbox.width, y);
  }
  c.restore();
};

// Several rows of {x, y} on one axis of x: what a series does not have there is null.
const onOneAxis = (sets) => {
  const x = [...new Set(sets.flatMap((set) => set.map((p) => p.x)))].filter((v) => v > 0).sort((a, b) => a - b);
  const place = new Map(x.map((v, i) => [v, i]));
  return [x, ...sets.map((set) => {
    const y = Array(x.length).fill(null);
    for (const p of set) if (place.has(p.x)) y[place.get(p.x)] = p.y;
    return y;
  })];
};
const points = (label, color) => ({ label, color, width: 0, paths: () => null, points: { show: true, size: 8, width: 2 } });
const palette = ["--compute", "--copy", "--starved", "--host", "--wait", "--quiet", "--good"];
