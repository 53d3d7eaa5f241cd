// SPDX-License-Identifier: MIT
// Answers of knee as they are: a report of any command, or a log that was dropped.
const answers = { draw: {} };

// Charts need a width: they are made after their figures stand in the page.
const charts = [];
let chartCount = 0;
const chartFigure = (caption, data, series, options) => {
  const id = `chart-answer-${chartCount++}`;
  charts.push(() => byId(id) && curve(id, data, series, options));
  return el("figure", { class: options.wide ? "wide" : "" }, el("figcaption", {}, el("h2", {}, caption)), el("div", { class: "chart", id }));
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
  showVerdict("answer-verdict", answer.schema === "knee.replay/1" && !answer.answer ? { do: answer.sentence, formal: answer.trust } : answer.schema === "knee.scale/1" ? scaleWords(answer) : answer);
  fill("answer-files", files?.length ? `Of ${files.map(fileName).join(", ")}.` : "");
  fill("answer-figures", (answers.draw[answer.schema] ?? drawAny)(answer));
  for (const make of charts.splice(0)) make();
};

// Answers without charts: the numbers in one table, and one table for each list.
const plainCell = (value) => (value == null ? "–" : typeof value === "number" ? (Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(5)))) : typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k} ${plainCell(v)}`).join(", ").slice(0, 300) : String(value));
const plainName = (key) => key.replace(/_bytes_per_s$/, ", bytes/s").replace(/_per_s$/, " per second").replace(/_s$/, ", s").replace(/_bytes$/, ", bytes").replace(/_/g, " ");
const notesOf = ({ answer: said = {} }) => {
  const notes = [...(said.after ?? []), said.assumed, ...(Array.isArray(said.next) ? said.next : [said.next])].filter((words) => typeof words === "string" && words).map(asFields);
  return notes.length ? wideFigure("Notes", el("ul", {}, notes.map((words) => el("li", {}, words)))) : null;
};
const drawAny = (answer) => {
  const flat = Object.entries(answer).filter(([key, value]) => key !== "schema" && key !== "sentence" && (value === null || typeof value !== "object"));
  const objects = Object.entries(answer).filter(([key, value]) => key !== "verdict" && key !== "answer" && value && typeof value === "object" && !Array.isArray(value));
  const lists = Object.entries(answer).filter(([, value]) => Array.isArray(value) && value.length);
  const columns = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => rows.some((row) => row[key] != null)).slice(0, 14);
  const list = ([key, rows]) => (typeof rows[0] !== "object" ? wideFigure(plainName(key), el("ul", {}, rows.map((row) => el("li", {}, plainCell(row)))))
    : tableFigure(plainName(key), columns(rows).map(plainName), rows.slice(0, 200).map((row) => ({ cells: columns(rows).map((column) => plainCell(row[column])) })), { text: columns(rows).flatMap((column, i) => (rows.some((row) => typeof row[column] === "string" || typeof row[column] === "object") ? [i] : [])) }));
  return [notesOf(answer),
    ...lists.filter(([, rows]) => typeof rows[0] === "object").slice(0, 1).map(list), flat.length ? tableFigure("Answer", ["", ""], flat.map(([key, value]) => ({ cells: [plainName(key), plainCell(value)] }))) : null,
    ...objects.map(([key, value]) => tableFigure(plainName(key), ["", ""], Object.entries(value).map(([k, v]) => ({ cells: [plainName(k), plainCell(v)] })))), ...lists.filter(([, rows], i) => typeof rows[0] !== "object" || lists.findIndex(([, r]) => typeof r[0] === "object") !== i).map(list)];
};

const binary = (v) => { // sizes of buffers are powers of two
  let unit = 0;
  for (; v >= 1024 && v % 1024 === 0; unit++) v /= 1024;
  return unit ? `${count(v)}${thin}${["", "KiB", "MiB", "GiB", "TiB"][unit]}` : bytes(v);
};

answers.draw["knee.collective/1"] = (a) => {
  const measured = a.sizes.some((s) => s.measured_s != null);
  const names = measured ? [] : [...new Set(a.sizes.map((s) => s.winner))];
  const sets = [a.sizes.map((s) => ({ x: s.bytes, y: s.measured_busbw_bytes_per_s })), a.sizes.map((s) => ({ x: s.bytes, y: s.expected_busbw_bytes_per_s })),
    ...names.map((name) => a.rows.filter((r) => r.algorithm === name).map((r) => ({ x: r.bytes, y: r.busbw_bytes_per_s })))];
  return [
    chartFigure("Bus bandwidth by size", onOneAxis(sets), [points("measured", "--transfer"), { label: "expected", color: "--ink", width: 3 },
      ...names.map((label, i) => ({ label, color: palette[i % palette.length], width: 1, dash: [2 + 2 * i, 3], points: { show: false } }))],
    { x: "size", logX: 10, logY: true, formatX: bytes, formatY: perSecond, wide: true, height: 340 }),
    a.findings.length ? tableFigure("Slower than it should be", ["reason", "from", "to", "times", "evidence", "fix"],
      a.findings.map((f) => ({ cells: [f.reason, binary(f.from_bytes), binary(f.to_bytes), digits(f.slowdown), f.evidence, f.cure] })), { text: [4, 5] }) : null,
    tableFigure("Sizes", ["size", "measured", "expected", "bus bandwidth", "expected bus bandwidth", "times slower", "limited by", "NCCL picks"],
      a.sizes.map((s) => ({ marked: Boolean(s.reason), cells: [binary(s.bytes), seconds(s.measured_s), seconds(s.expected_s), perSecond(s.measured_busbw_bytes_per_s), perSecond(s.expected_busbw_bytes_per_s), s.slowdown == null ? "–" : digits(s.slowdown), s.bound_by, s.nccl_choice ?? "–"] })), { text: [6, 7] }),
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

answers.draw["knee.hang/1"] = (a) => [
  tableFigure("Ranks", ["ranks", "completed", "is in", "state", "class"], a.states.map((s) => ({ marked: Boolean(s.class), cells: [s.ranks, count(s.completed), s.waiting ?? "–", s.state ?? "–", s.class ?? ""] })), { text: [2, 3, 4] }),
  a.evidence.length ? tableFigure("Evidence", ["rank", "place", "line"], a.evidence.map((e) => ({ cells: [String(e.rank), e.place, e.text] })), { text: [1, 2] }) : null,
];
answers.draw["knee.doctor/1"] = (a) => {
  const costs = a.findings.some((f) => f.cost?.words); // priced on a cluster, which the program takes
  return [
    a.findings.length ? tableFigure("Findings", ["severity", "problem", "host", "evidence", "fix", ...(costs ? ["cost"] : [])], a.findings.map((f) => ({ marked: f.severity !== "note", cells: [f.severity, f.title, f.host, f.evidence, f.cure, ...(costs ? [f.cost?.words ?? ""] : [])] })), { text: [1, 2, 3, 4, 5] }) : null,
    notesOf({ answer: { ...a.answer, after: a.answer?.after?.filter((words) => !words.startsWith("Cost unknown")) } }),
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
