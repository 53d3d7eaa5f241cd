// SPDX-License-Identifier: MIT
// The user's own curve, from training logs: where it bends, and what more GPUs would bring.
const scale = { files: [], state: {} };

scale.start = () => {
  scale.form = makeForm({ view: "scale", id: "scale-form", keys: core.keys.scale, chosen: ["gpu", "model"], plain: ["at", "tokens", "tolerance"], sliders: {}, flat: true, state: scale.state,
    reset: () => { replace(scale.state, {}); scale.ask(); }, change: () => scale.ask() });
};

scale.update = () => {
  byId("scale-empty").hidden = scale.files.length > 0;
  if (scale.answer) scale.draw(scale.answer);
};

scale.clear = () => {
  Object.assign(scale, { files: [], answer: null });
  byId("scale-result").replaceChildren();
  fill("scale-tiles");
  byId("scale-verdict").replaceChildren();
  delete verdicts["scale-verdict"];
  scale.update();
};

scale.open = async (files) => {
  selectView("scale");
  for (const file of files) {
    if (scale.files.some((f) => f.name === file.name && f.bytes.length === file.size)) continue;
    const stream = (await isGzip(file)) ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
    scale.files.push({ name: file.name, size: file.size, bytes: new Uint8Array(await new Response(stream).arrayBuffer()) });
  }
  showFiles();
  scale.ask();
};

scale.ask = () => {
  if (!scale.files.length) return;
  const answer = core.askAbout("scale", scale.state, scale.files, scale.files.map((f) => f.name));
  document.body.dataset.ready = "scale";
  if (answer.error) {
    scale.form.fail(answer);
    return showError("scale-verdict", answer);
  }
  scale.answer = answer;
  byId("scale-empty").hidden = true;
  showVerdict("scale-verdict", scaleWords(answer));
  scale.form.show([]);
  scale.draw(answer);
};

// What to do stands first in its sentence.
const scaleWords = (a) => {
  if (a.answer || a.headline || a.verdict?.do || !a.sentence) return a;
  const [, first, rest] = /^(.+?[.:])\s+(.*)$/s.exec(a.sentence.replace(/(\d)\. (?=[A-Z0-9])/g, "$1. ")) ?? [null, a.sentence, ""];
  return { do: first.replace(/:$/, "."), why: rest, formal: a.sentence };
};

scale.draw = (a) => {
  const last = a.points.at(-1), knee = a.knee.measured_workers ?? a.knee.predicted_workers;
  setTiles("scale", ...[[last ? count(last.workers) : "–", "GPUs, the most that were measured", { id: "tile-scale-workers", raw: last?.workers }],
    [seconds(last?.step_s), "a step there", { id: "tile-scale-step", raw: last?.step_s }],
    [percent(last?.efficiency), `efficiency against ${count(a.base_workers)} GPUs`, { id: "tile-scale-efficiency", raw: last?.efficiency }],
    [whole(knee), a.knee.measured_workers ? "GPUs: the knee, measured" : "GPUs: the knee, by the fit", { id: "tile-scale-knee", raw: knee }],
    [percent(last?.mfu_causal), "of the GPUs' peak (MFU)", { id: "tile-scale-mfu", raw: last?.mfu_causal }]].filter(([, , { raw }]) => raw != null));
  const use = (gpu) => el("button", { type: "button", "data-gpu": gpu, onclick: () => { scale.state.gpu = gpu; scale.ask(); } }, gpu.toUpperCase());
  if (a.points.some((p) => /--gpu\b/.test(p.missing ?? ""))) byId("scale-tiles").prepend(el("p", { class: "buttons wide", id: "scale-gpus" }, "To compare with published runs, choose the GPU: ", ["a100", "h100", "h200", "b200"].map(use)));
  fill("scale-result", scaleFigures(a));
  for (const make of charts.splice(0)) make();
};

// Measured counts as points, the fit's forecast as a line in its band, the tolerance across.
const scaleFigures = (a) => {
  const asked = a.forecast.filter((f) => !f.refused), last = a.points.at(-1);
  const at = (list, key) => list.map((p) => ({ x: p.workers, y: p[key] }));
  const from = last ? [{ ...last, low_s: last.step_s, high_s: last.step_s }] : [];
  const ahead = [...from, ...asked];
  return [
    a.points.length + asked.length > 1 ? chartFigure("Efficiency E(K)", onOneAxis([at(a.points, "efficiency"), at(ahead, "efficiency")]), [{ ...points("measured", "--compute"), paths: undefined, width: 3 }, { label: "forecast", color: "--transfer", dash: [6, 4] }],
      { x: "GPUs (K)", range: [0, 1.1], formatY: (v) => `${Math.round(100 * v)}%`, mark: a.knee.measured_workers ?? a.knee.predicted_workers, level: a.knee.tolerance }) : null,
    a.points.length + asked.length > 1 ? chartFigure("Step: measured, and forecast with its band", onOneAxis([at(a.points, "step_s"), at(ahead, "high_s"), at(ahead, "low_s"), at(ahead, "step_s"), at(a.points.filter((p) => p.predicted_step_s), "predicted_step_s")]),
      [{ ...points("measured", "--compute"), paths: undefined, width: 3 }, { label: "high", color: "--transfer", width: 1 }, { label: "low", color: "--transfer", width: 1 }, { label: "forecast", color: "--transfer", dash: [6, 4] }, points("model of knee plan", "--quiet")],
      { x: "GPUs (K)", logY: true, formatY: seconds, bands: [[2, 3]] }) : null,
    a.account ? tableFigure(`Where the hours went: goodput ${percent(a.account.goodput)} of ${seconds(a.account.wall_s)}`, ["part", "time", "share"], a.account.parts.filter((p) => p.seconds > 0).map((p) => ({ cells: [p.part, seconds(p.seconds), percent(p.share)] }))) : null,
    a.points.length ? tableFigure("Measured", ["GPUs", "step", "p95", "batch", "tokens/s", "E(K)", "speed-up", "expected", "log"],
      a.points.map((p) => ({ cells: [count(p.workers), seconds(p.step_s), seconds(p.p95_s), count(p.batch), large(p.tokens_per_s), percent(p.efficiency), p.speed_up == null ? "–" : digits(p.speed_up), seconds(p.predicted_step_s), fileName(p.source)] })), { file: [8] }) : null,
    a.forecast.length ? tableFigure("Forecast", ["GPUs", "step", "low", "high", "E(K)", "speed-up", "Amdahl", "USL", "remark"],
      a.forecast.map((f) => ({ cells: [count(f.workers), seconds(f.step_s), seconds(f.low_s), seconds(f.high_s), percent(f.efficiency), f.speed_up == null ? "–" : digits(f.speed_up), seconds(f.amdahl_s), seconds(f.usl_s), f.refused] })), { text: [8] }) : null,
    tableFigure("Suspects", ["suspect", "is", "evidence or next test"], a.suspects.map((s) => ({ marked: s.standing === "confirmed", cells: [s.suspect, s.standing === "open" ? "unknown" : s.standing, s.rule || s.measure || "–"] })), { text: [1, 2] }),
  ];
};
