// SPDX-License-Identifier: MIT
// The prediction: verdict, curves, bars, levers.
const predict = { state: {}, levers: new Set() };

predict.sliders = {
  at: { min: 1, max: 65536, log: true, whole: true }, "global-batch": { min: 8, max: 4194304, log: true, whole: true },
  mfu: { min: 0.05, max: 0.8 }, overlap: { min: 0, max: 1 }, compress: { min: 1, max: 64, log: true },
  bandwidth: { min: 1e8, max: 1e12, log: true }, latency: { min: 1e-7, max: 1e-3, log: true },
  "local-steps": { min: 1, max: 500, log: true, whole: true }, jitter: { min: 0, max: 0.2 }, price: { min: 0.2, max: 15 },
};

predict.start = () => {
  predict.show = makeForm("predict-form", core.keys.predict, predict.sliders, ["model", "gpu", "cluster"], predict.state, () => {
    predict.update();
    saveState();
  });
};

const rowParts = (row) => ({ compute: row.compute_s, transfer: row.transfer_s, wait: row.wait_s, starved: row.starved_s });

predict.update = () => {
  const inputs = { ...predict.state };
  const answer = core.ask("predict", { workers: "1..16384x2", ...inputs });
  predict.answer = answer;
  const verdict = byId("predict-verdict");
  verdict.classList.toggle("error", Boolean(answer.error));
  if (answer.error) {
    verdict.textContent = `${answer.where ? `${answer.where}: ` : ""}${answer.error}; ${answer.hint}`;
    return;
  }
  verdict.textContent = answer.verdict.sentence;
  predict.show([...answer.inputs, { name: "at", value: answer.verdict.workers, text: `K = ${count(answer.verdict.workers)}`, source: "given" }]);
  predict.draw(answer, inputs);
};

predict.draw = (answer, inputs) => {
  const at = answer.verdict.workers;
  const combined = predict.levers.size ? core.ask("levers", { workers: "1..16384x2", ...inputs }, [[...predict.levers].join("+")]) : null;
  const now = answer.at;
  fill("predict-tiles",
    tile(count(answer.knee.tolerance_workers), `knee: last K with E ≥ ${percent(answer.knee.tolerance)}`, { id: "tile-knee", raw: answer.knee.tolerance_workers }),
    tile(count(answer.knee.gamma_one_workers), "communication = compute at K", { id: "tile-gamma", raw: answer.knee.gamma_one_workers }),
    tile(ratio(now.ratio), `R at K = ${at}`, { id: "tile-ratio", raw: now.ratio, flip: now.ratio > 1 }),
    tile(percent(now.efficiency), `E(K) at K = ${at}`, { id: "tile-efficiency", raw: now.efficiency }),
    tile(seconds(now.step_s), "step", { id: "tile-step", raw: now.step_s }),
    tile(dollars(answer.cost.stall_day), `of ${dollars(answer.cost.day)} a day is stall`, { id: "tile-stall", raw: answer.cost.stall_day }));
  predict.curves(answer, combined);
  predict.bars(inputs, now);
  predict.band(now.ratio);
  predict.list(answer, combined, now);
  later("table", () => fill("predict-table", table(["K", "batch/K", "compute", "comm", "exposed", "step", "speed-up", "E(K)", "R", "gamma", "binds"],
    answer.rows.map((r) => ({ marked: r.workers === at, cells: [String(r.workers), r.local_batch == null ? "–" : digits(r.local_batch), seconds(r.compute_s), seconds(r.comm_s),
      seconds(r.exposed_comm_s), seconds(r.step_s), digits(r.speedup), percent(r.efficiency), ratio(r.ratio), ratio(r.gamma), r.bottleneck] })))));
};

predict.curves = (answer, combined) => {
  const x = answer.rows.map((r) => r.workers);
  const after = combined && !combined.error ? combined.rows : null;
  const series = (name) => [{ label: name, color: "--compute" }, ...(after ? [{ label: "with levers", color: "--transfer", dash: [8, 4] }] : [])];
  const data = (key) => [x, answer.rows.map((r) => r[key]), ...(after ? [after.map((r) => r[key])] : [])];
  curve("chart-efficiency", data("efficiency"), series("E(K)"),
    { x: "K", range: [0, 1.02], formatY: (v) => `${Math.round(100 * v)} %`, mark: answer.knee.tolerance_workers, level: answer.knee.tolerance });
  const speed = data("speedup");
  speed.splice(1, 0, x);
  curve("chart-speedup", speed, [{ label: "ideal", color: "--quiet", dash: [3, 5], width: 1 }, ...series("speed-up")],
    { x: "K", logY: true, formatY: (v) => digits(v), mark: answer.knee.tolerance_workers });
};

// The same step under the levers that most people ask about first.
predict.bars = (inputs, now) => {
  const regimes = [["overlapped", ["overlap"]], ["compressed (fp8)", ["compress: fp8"]], ["both", ["overlap", "compress: fp8"]]];
  const steps = core.ask("regimes", { workers: "1..16384x2", ...inputs }, regimes.map(([, levers]) => levers.join("+"))).rows ?? [];
  const rows = [["as it is", now], ...regimes.map(([name], i) => [name, steps[i] ?? now])];
  const longest = Math.max(...rows.map(([, r]) => r.step_s));
  fill("predict-bars", rows.map(([name, r]) => stepBar(name, `${seconds(r.step_s)}, R ${ratio(r.ratio)}`, rowParts(r), longest)),
    el("div", { class: "legend" }, legend().filter((_, i) => [0, 1, 2, 4].includes(i))));
};

predict.band = (value) => {
  const parts = [["scale out", 0.1], ["overlap first", 0.5], ["bigger batch or compress", 1], ["stop adding workers", 3]];
  const place = (r) => 100 * Math.min(1, Math.log1p(r * 10) / Math.log1p(30));
  let from = 0;
  fill("predict-band", el("div", { class: "band" },
    parts.map(([words, to], i) => {
      const left = from;
      from = place(to);
      return el("div", { class: `part r-${i}`, style: `left:${left}%;width:${from - left}%`, title: words }, words);
    }),
    el("div", { class: "pin", style: `left:${Math.min(96, Math.max(4, place(value)))}%` }, `R ${ratio(value)} ▾`)));
};

predict.list = (answer, combined, now) => {
  const most = Math.max(0.01, ...answer.levers.map((l) => Math.abs(l.gain)));
  const list = answer.levers.map((lever) => el("label", { class: "lever" },
    el("input", { type: "checkbox", checked: predict.levers.has(lever.name), "data-lever": lever.name, onchange: (e) => {
      predict.levers[e.target.checked ? "add" : "delete"](lever.name);
      predict.update();
      saveState();
    } }),
    el("span", {}, lever.name), el("span", { class: "change" }, lever.change),
    el("span", { class: "gain" }, el("i", { class: lever.gain < 0 ? "loss" : "", style: `width:${Math.min(100, (100 * Math.abs(lever.gain)) / most)}%` })),
    el("span", { class: "number" }, percent(lever.gain, "+")), el("span", { class: "number step" }, seconds(lever.step_s)), el("span", { class: "risk" }, lever.risk)));
  const after = combined && !combined.error ? combined.rows.find((r) => r.workers === combined.verdict.workers) ?? null : null;
  const result = combined && (combined.error ? combined.error
    : `Together at K = ${combined.verdict.workers}: R ${ratio(now.ratio)} → ${ratio(after?.ratio ?? null)}, E ${percent(now.efficiency)} → ${percent(after?.efficiency ?? null)}, step ${seconds(now.step_s)} → ${seconds(after?.step_s ?? null)}, knee ${count(answer.knee.tolerance_workers)} → ${count(combined.knee.tolerance_workers)}.`);
  fill("predict-levers", list, result ? el("p", { id: "levers-together", role: "status" }, result) : null);
};
