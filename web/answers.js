// SPDX-License-Identifier: MIT
// Answers of knee as they are: a report of any command, or a log that was dropped.
const answers = { draw: {} };

// Charts need a width: they are made after their figures stand in the page.
const charts = [];
let chartCount = 0;
const chartFigure = (caption, data, series, options) => {
  const id = `chart-answer-${chartCount++}`;
  charts.push(() => byId(id) && curve(id, data, series, options));
  return el("figure", { class: options.wide ? "wide" : "" }, el("figcaption", {}, caption), el("div", { class: "chart", id }));
};
const tableFigure = (caption, ...rest) => wideFigure(caption, scroll(table(...rest)));

answers.show = (answer, files) => {
  Object.assign(answers, { answer, files });
  byId("tab-answer").hidden = false;
  selectView("answer");
  document.body.dataset.ready = "answer";
};

// Also when its width or theme changes.
answers.update = () => {
  const { answer, files } = answers;
  if (!answer) return;
  showVerdict("answer-verdict", answer.schema === "knee.replay/1" ? { do: answer.sentence, formal: answer.trust } : answer.schema === "knee.scale/1" ? scaleWords(answer) : answer);
  fill("answer-files", files?.length ? `Of ${files.map(fileName).join(", ")}.` : "");
  fill("answer-figures", (answers.draw[answer.schema] ?? drawAny)(answer));
  for (const make of charts.splice(0)) make();
};

// What has no pictures of its own: its numbers in one table, its lists in one each.
const plainCell = (value) => (value == null ? "–" : typeof value === "number" ? (Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(5)))) : typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k} ${plainCell(v)}`).join(", ").slice(0, 300) : String(value));
const plainName = (key) => key.replace(/_bytes_per_s$/, ", bytes/s").replace(/_per_s$/, " per second").replace(/_s$/, ", s").replace(/_bytes$/, ", bytes").replace(/_/g, " ");
const drawAny = (answer) => {
  const flat = Object.entries(answer).filter(([key, value]) => key !== "schema" && key !== "sentence" && (value === null || typeof value !== "object"));
  const objects = Object.entries(answer).filter(([key, value]) => key !== "verdict" && value && typeof value === "object" && !Array.isArray(value));
  const lists = Object.entries(answer).filter(([, value]) => Array.isArray(value) && value.length);
  const columns = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => rows.some((row) => row[key] != null)).slice(0, 14);
  const list = ([key, rows]) => (typeof rows[0] !== "object" ? wideFigure(plainName(key), el("ul", {}, rows.map((row) => el("li", {}, plainCell(row)))))
    : tableFigure(plainName(key), columns(rows).map(plainName), rows.slice(0, 200).map((row) => ({ cells: columns(rows).map((column) => plainCell(row[column])) })), { text: columns(rows).flatMap((column, i) => (rows.some((row) => typeof row[column] === "string" || typeof row[column] === "object") ? [i] : [])) }));
  return [flat.length ? tableFigure("Answer", ["", ""], flat.map(([key, value]) => ({ cells: [plainName(key), plainCell(value)] }))) : null,
    ...objects.map(([key, value]) => tableFigure(plainName(key), ["", ""], Object.entries(value).map(([k, v]) => ({ cells: [plainName(k), plainCell(v)] })))), ...lists.map(list)];
};

answers.draw["knee.collective/1"] = (a) => {
  const names = [...new Set(a.rows.map((r) => r.algorithm))].filter((name) => a.sizes.some((s) => s.winner === name));
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

answers.draw["knee.plan/1"] = (a) => planFigures(a);
answers.draw["knee.scale/1"] = (a) => scaleFigures(a);
answers.draw["knee.replay/1"] = (a) => [wideFigure("Changes", [{ name: "recorded", step_s: a.measured_step_s }, ...a.changes].map((r, i, all) => bandBar(r, Math.max(...all.map((x) => x.high_s ?? x.step_s))))), wideFigure("Table", replayTable(a))];

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
