// SPDX-License-Identifier: MIT
// Answers of knee as they are: a report of collective, fit, plan, scale, validate or lab, or a log that was dropped.
const answers = { draw: {} };

let charts = 0;
// A chart with its own place: figures are made before their curves, which need a width.
const chartFigure = (caption, data, series, options) => {
  const id = `chart-answer-${charts++}`;
  answers.later.push(() => curve(id, data, series, options));
  return el("figure", { class: options.wide ? "wide" : "" }, el("figcaption", {}, caption), el("div", { class: "chart", id }));
};
const tableFigure = (caption, ...rest) => el("figure", { class: "wide" }, el("figcaption", {}, caption), el("div", { class: "scroll" }, table(...rest)));
const points = (label, color) => ({ label, color, width: 0, paths: () => null, points: { show: true, size: 7 } });
const palette = ["--compute", "--copy", "--starved", "--host", "--wait", "--quiet", "--good"];

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

answers.show = (answer) => {
  const draw = answers.draw[answer.schema];
  answers.later = [];
  byId("answer-verdict").classList.toggle("error", !draw);
  byId("answer-verdict").textContent = draw ? (answer.sentence ?? answer.verdict?.sentence ?? "").trim() : `This page does not know the schema ${answer.schema}.`;
  fill("answer-figures", draw ? draw(answer) : []);
  byId("tab-answer").hidden = false;
  answers.answer = answer;
  selectView("answer");
  document.body.dataset.ready = "answer";
};

// After the figures are in the page, and again when its width or theme changes.
answers.update = () => answers.later?.forEach((make) => make());

answers.draw["knee.collective/1"] = (a) => {
  const names = [...new Set(a.rows.map((r) => r.algorithm))];
  const sets = [a.sizes.map((s) => ({ x: s.bytes, y: s.measured_s })), a.sizes.map((s) => ({ x: s.bytes, y: s.expected_s })),
    ...names.map((name) => a.rows.filter((r) => r.algorithm === name).map((r) => ({ x: r.bytes, y: r.time_s })))];
  const slow = a.sizes.filter((s) => s.reason);
  return [
    chartFigure("Time by size", onOneAxis(sets), [points("measured", "--transfer"), { label: "expected", color: "--ink", width: 3 },
      ...names.map((label, i) => ({ label, color: palette[i % palette.length], width: 1, dash: [2 + 2 * i, 3], points: { show: false } }))],
    { x: "size", logX: 10, logY: true, formatX: bytes, formatY: seconds, wide: true, height: 340 }),
    a.findings.length ? tableFigure("Slower than it should be", ["reason", "from", "to", "times", "what shows it", "what to do"],
      a.findings.map((f) => ({ cells: [f.reason, bytes(f.from_bytes), bytes(f.to_bytes), digits(f.slowdown), f.evidence, f.cure] })), { text: [4, 5] }) : null,
    tableFigure("Sizes", ["size", "winner", "protocol", "bound by", "NCCL picks", "expected", "measured", "times"],
      a.sizes.map((s) => ({ marked: slow.includes(s), cells: [bytes(s.bytes), s.winner, s.protocol, s.bound_by, s.nccl_choice ?? "–", seconds(s.expected_s), seconds(s.measured_s), s.slowdown == null ? "–" : digits(s.slowdown)] })), { text: [1, 2, 3, 4] }),
  ];
};

const inUnit = (value, unit) => (value == null ? "–" : ({ s: seconds, "bytes/s": perSecond }[unit] ?? digits)(value));

answers.draw["knee.fit/1"] = (a) => {
  const shown = a.logs.slice(0, 8);
  const sets = shown.flatMap((log) => [log.samples.map((s) => ({ x: s.bytes, y: s.measured_s })), log.samples.map((s) => ({ x: s.bytes, y: s.fitted_s }))]);
  const series = shown.flatMap((log, i) => [points(`${log.file.slice(0, 40)}: measured`, palette[i % palette.length]), { label: "fitted", color: palette[i % palette.length], dash: i ? [3 + i, 3] : undefined, points: { show: false } }]);
  return [
    chartFigure("Measured and fitted", onOneAxis(sets), series, { x: "size", logX: 10, logY: true, formatX: bytes, formatY: seconds, wide: true, height: 340 }),
    tableFigure("Logs", ["log", "collective", "ranks", "nodes", "rows", "refused", "sizes left out: median", "p90", "preset: median", "recognised as"],
      a.logs.map((l) => ({ cells: [l.file.slice(-60), l.collective, count(l.ranks), count(l.nodes), String(l.rows), String(l.refused), percent(l.median_error), percent(l.p90_error), percent(l.preset_median_error), l.recognised ?? "–"] })), { text: [1, 9] }),
    tableFigure("Parameters", ["parameter", "value", "90 % from", "to"],
      a.parameters.map((p) => ({ cells: [p.name, inUnit(p.value, p.unit), inUnit(p.low, p.unit), inUnit(p.high, p.unit)] }))),
  ];
};

const planWords = (p) => ["tp", "pp", "vp", "cp", "ep", "dp"].filter((key) => p[key] > 1).map((key) => `${key} ${p[key]}`)
  .concat(`micro-batch ${p.micro_batch}`, p.shard, `recompute ${p.recompute}`, p.pp > 1 ? p.schedule : []).flat().join(", ");

answers.draw["knee.plan/1"] = (a) => {
  const row = a.rows.find((r) => r.gpus === a.verdict.gpus) ?? a.rows.filter((r) => r.fits).at(-1) ?? a.rows[0];
  const best = row.best ?? [];
  const longest = Math.max(...best.map((b) => b.step_s));
  const counts = a.rows.filter((r) => r.fits);
  return [
    tableFigure(`Best plans on ${row.gpus} GPUs`, ["plan", "step", "tokens/s", "MFU, all pairs", "MFU, causal", "memory", "binds"],
      best.map((b, i) => ({ marked: i === 0, cells: [planWords(b.plan), seconds(b.step_s), Math.round(b.tokens_per_s).toLocaleString("en"), percent(b.mfu_full_attention), percent(b.mfu_causal_attention), bytes(b.memory.total_bytes), b.binding] })), { text: [0] }),
    el("figure", {}, el("figcaption", {}, "Where the step goes"), best.map((b) => partsBar(planWords(b.plan), seconds(b.step_s), someParts(b.parts_s, ""), longest, seconds))),
    el("figure", {}, el("figcaption", {}, "Memory of a GPU"), best.map((b) => partsBar(planWords(b.plan), `${bytes(b.memory.total_bytes)} of ${bytes(b.memory.capacity_bytes)}`, someParts(b.memory, "_bytes"), Math.max(b.memory.capacity_bytes, b.memory.total_bytes), bytes))),
    counts.length > 1 ? chartFigure("Best plan at each GPU count: efficiency", [counts.map((r) => r.gpus), counts.map((r) => r.efficiency)], [{ label: "E", color: "--compute" }],
      { x: "GPUs", range: [0, 1.05], formatY: (v) => `${Math.round(100 * v)} %`, mark: a.verdict.knee_gpus, level: a.verdict.tolerance }) : null,
    row.front?.length > 1 ? chartFigure("Pareto front: step against memory", onOneAxis([row.front.map((f) => ({ x: f.memory.total_bytes, y: f.step_s }))]), [{ label: "step", color: "--transfer" }], { x: "memory of a GPU", logX: 10, formatX: bytes, formatY: seconds }) : null,
    tableFigure("GPU counts", ["GPUs", "best plan", "step", "E", "cost of 1B tokens"],
      a.rows.map((r) => ({ marked: r === row, cells: [String(r.gpus), r.best?.[0] ? planWords(r.best[0].plan) : "nothing fits", seconds(r.best?.[0]?.step_s), percent(r.efficiency), dollars(r.cost_per_billion_tokens)] })), { text: [1] }),
  ];
};

answers.draw["knee.validate/1"] = (a) => {
  const rows = a.rows.filter((r) => r.predicted_s > 0 && r.measured_s > 0).sort((x, y) => x.measured_s - y.measured_s);
  const groups = (name, list) => tableFigure(name, [name, "rows", "MAPE", "median", "bias", "within 5 %", "within 10 %"],
    list.filter((g) => g.rows > 0).map((g) => ({ cells: [g.name, String(g.rows), percent(g.mape), percent(g.median), percent(g.bias, "+"), percent(g.within_5), percent(g.within_10)] })));
  return [
    chartFigure("Predicted against measured step", [rows.map((r) => r.measured_s), rows.map((r) => r.measured_s), rows.map((r) => r.predicted_s)],
      [{ label: "equal", color: "--quiet", dash: [3, 5], width: 1, points: { show: false } }, points("predicted", "--transfer")], { x: "measured", logX: 10, logY: true, formatX: seconds, formatY: seconds, wide: true, height: 340 }),
    groups("source", a.sources), groups("GPU", a.gpus),
    a.curves?.length ? tableFigure("Curves", ["job", "anchor", "points", "E(K) off by", "knee measured", "knee predicted"],
      a.curves.map((c) => ({ cells: [c.name, count(c.anchor_gpus), String(c.points), percent(c.mape), count(c.knee_measured), count(c.knee_predicted)] }))) : null,
  ];
};

// Measured counts as points, the fit's forecast as a line with its band, the tolerance across.
answers.draw["knee.scale/1"] = (a) => {
  const asked = a.forecast.filter((f) => !f.refused);
  const at = (list, key) => list.map((p) => ({ x: p.workers, y: p[key] }));
  const last = a.points.at(-1), from = last ? [last] : [];
  const curveSets = [at(a.points, "efficiency"), at([...from, ...asked], "efficiency")];
  const stepSets = [at(a.points, "step_s"), at(a.points.filter((p) => p.predicted_step_s), "predicted_step_s"), at(asked, "low_s"), at(asked, "high_s"), at(asked, "step_s")];
  return [
    asked.length ? chartFigure("Efficiency E(K)", onOneAxis(curveSets), [{ label: "measured", color: "--compute", width: 3 }, { label: "forecast", color: "--transfer", dash: [6, 4] }],
      { x: "workers", range: [0, 1.1], formatY: (v) => `${Math.round(100 * v)} %`, mark: a.knee.measured_workers ?? a.knee.predicted_workers, level: a.knee.tolerance }) : null,
    asked.length ? chartFigure("Step", onOneAxis(stepSets), [points("measured", "--compute"), points("model", "--quiet"), points("low", "--wait"), points("high", "--wait"), points("forecast", "--transfer")],
      { x: "workers", logY: true, formatY: seconds }) : null,
    a.points.length ? tableFigure("Measured", ["workers", "step", "p95", "batch", "tokens/s", "E(K)", "speed-up", "model", "source"],
      a.points.map((p) => ({ cells: [String(p.workers), seconds(p.step_s), seconds(p.p95_s), count(p.batch), count(p.tokens_per_s), percent(p.efficiency), digits(p.speed_up), seconds(p.predicted_step_s), p.source] })), { text: [8] }) : null,
    a.forecast.length ? tableFigure("Forecast", ["workers", "step", "low", "high", "E(K)", "speed-up", "Amdahl", "USL", "remark"],
      a.forecast.map((f) => ({ cells: [String(f.workers), seconds(f.step_s), seconds(f.low_s), seconds(f.high_s), percent(f.efficiency), f.speed_up == null ? "–" : digits(f.speed_up), seconds(f.amdahl_s), seconds(f.usl_s), f.refused] })), { text: [8] }) : null,
    tableFigure("Suspects", ["suspect", "is", "because, or what would tell"],
      a.suspects.map((s) => ({ marked: s.standing === "confirmed", cells: [s.suspect, s.standing, s.rule || s.measure] })), { text: [1, 2] }),
  ];
};

answers.draw["knee.lab/1"] = (a) => {
  const x = a.rows.map((r) => r.workers);
  return [
    chartFigure("Step", [x, a.rows.map((r) => r.predicted_step_s), a.rows.map((r) => r.measured_step_s)], [{ label: "predicted", color: "--compute" }, points("measured", "--transfer")], { x: "K", formatY: seconds }),
    chartFigure("Efficiency E(K), measured", [x, a.rows.map((r) => r.efficiency)], [{ label: "E(K)", color: "--compute" }], { x: "K", range: [0, 1.05], formatY: (v) => `${Math.round(100 * v)} %`, mark: a.knee?.measured?.tolerance_workers, level: a.knee?.tolerance }),
    tableFigure("Worker counts", ["K", "measured", "predicted", "compute", "comm", "exposed", "R", "gamma", "E(K)", "loss"],
      a.rows.map((r) => ({ cells: [String(r.workers), seconds(r.measured_step_s), seconds(r.predicted_step_s), seconds(r.compute_s), seconds(r.comm_s), seconds(r.exposed_comm_s), ratio(r.ratio), ratio(r.gamma), percent(r.efficiency), r.loss == null ? "–" : digits(r.loss)] }))),
    a.hunt?.length ? tableFigure("Induced and named", ["induced", "named", "what shows it"], a.hunt.map((h) => ({ cells: [h.induced, h.named ?? "–", h.evidence] })), { text: [1, 2] }) : null,
  ];
};

answers.draw["knee.diff/1"] = (a) => {
  const labels = Object.keys(a.before).filter((key) => typeof a.before[key] === "number" && !["comm_s", "ratio", "step_s"].includes(key));
  const change = (before, after) => `${after < before ? "−" : "+"}${seconds(Math.abs(after - before))}`;
  const moved = (rows, heads, cells) => tableFigure(heads[0], heads[1], rows.map((m) => ({ cells: [change(m.before_s, m.after_s), seconds(m.before_s), seconds(m.after_s), `${digits(m.before_calls)} → ${digits(m.after_calls)}`, ...cells(m)] })), { text: [4, 5] });
  return [
    tableFigure("The step, label by label", ["label", "before", "after", "change"],
      [...labels, "step_s"].map((key) => ({ marked: key === a.verdict.label, cells: [key === "step_s" ? "step" : key, seconds(a.before[key]), seconds(a.after[key]), change(a.before[key], a.after[key])] }))),
    a.kernels.length ? moved(a.kernels, ["Kernels", ["change", "before", "after", "calls", "kind", "kernel"]], (m) => [m.kind, m.name]) : null,
    a.collectives.length ? moved(a.collectives, ["Collectives", ["change", "before", "after", "calls", "collective", "group", "size", "ranks"]], (m) => [m.name, m.description, m.bytes == null ? "–" : bytes(m.bytes), String(m.group_size ?? "–")]) : null,
  ];
};

answers.draw["knee.rollcall/1"] = (a) => [
  a.blamed.length ? tableFigure("Who is waited for", ["rank", "why", "groups"], a.blamed.map((b) => ({ marked: true, cells: [String(b.rank), b.why, String(b.groups)] })), { text: [1] }) : null,
  a.stuck.length ? tableFigure("Where ranks wait", ["group", "for", "number", "operation", "size", "entered", "not in it"],
    a.stuck.map((s) => ({ marked: s.not_in_it.length > 0, cells: [s.group, s.description, String(s.number), s.name, s.bytes == null ? "–" : bytes(s.bytes), String(s.entered), s.not_in_it.join(", ")] })), { text: [1, 3, 6] }) : null,
  a.collectives.length ? tableFigure("Collectives", ["group", "operation", "size", "calls", "joined", "duration", "wait", "transfer", "bus", "expected"],
    a.collectives.map((c) => ({ cells: [c.group, c.name, c.bytes == null ? "–" : bytes(c.bytes), String(c.calls), String(c.joined), seconds(c.duration_s), seconds(c.wait_s), seconds(c.transfer_s), c.busbw_bytes_per_s == null ? "–" : perSecond(c.busbw_bytes_per_s), seconds(c.expected_s)] })), { text: [1] }) : null,
  a.ranks.length ? tableFigure("Ranks", ["group", "rank", "joined", "last", "wait", "transfer", "kept waiting"],
    a.ranks.map((r) => ({ marked: r.late, cells: [r.group, String(r.rank), String(r.joined), String(r.last), seconds(r.wait_s), seconds(r.transfer_s), seconds(r.held_s)] }))) : null,
];
