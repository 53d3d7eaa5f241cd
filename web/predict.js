// SPDX-License-Identifier: MIT
// The prediction: verdict, curves, bars, changes.
const predict = {};

predict.sliders = {
  at: counts(1, 65536), "global-batch": () => counts(8, Math.min(4194304, 1e8 / (predict.answer?.inputs.find((i) => i.name === "seq")?.value ?? 1))), mfu: steps(0.05, 0.8, 0.05), overlap: steps(0, 1, 0.05), compress: powers(1, 64),
  bandwidth: inUnits([0.1, 0.25, 0.5, 1, 2, 2.5, 5, 10, 12.5, 25, 40, 50, 100, 200, 400, 800], "GB/s"),
  latency: [...inUnits([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500], "us"), "1ms"],
  "local-steps": ["1", "2", "4", "8", "16", "32", "50", "100", "200", "500"], jitter: steps(0, 0.2, 0.01),
  price: ["0.25", "0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "5", "6", "8", "10", "12", "15"],
};
predict.range = "1..16384x2";

predict.start = () => {
  predict.form = makeForm({ view: "predict", id: "predict-form", keys: core.keys.predict, chosen: ["cluster"], sliders: predict.sliders,
    left: ["model", "gpu", "job", "solve", "for", "example"], state: settings.predict, reset: () => resetView("predict"),
    change: (name) => { spread("predict", name); predict.update(); saveState(); } });
};

const rowParts = (row) => ({ compute: row.compute_s, transfer: row.transfer_s, wait: row.wait_s, starved: row.starved_s });

predict.inputs = () => ({ workers: predict.range, ...settings.predict });

predict.update = () => {
  job.show();
  const answer = core.ask("predict", predict.inputs());
  if (answer.error) {
    predict.form.fail(answer);
    return showError("predict-verdict", answer);
  }
  predict.answer = answer;
  showVerdict("predict-verdict", answer);
  predict.form.show([{ name: "overlap", text: "from the model", source: "model" }, ...answer.inputs, { name: "at", value: answer.verdict.workers, text: String(answer.verdict.workers), source: "derived" }]);
  predict.draw(answer);
};

predict.draw = (answer) => {
  const at = answer.verdict.workers, now = answer.at, fits = answer.memory.fits_unsharded;
  const combined = chosenLevers.size ? core.ask("levers", predict.inputs(), [[...chosenLevers].join("+")]) : null;
  setTiles("predict",
    [whole(answer.knee.tolerance_workers), `GPUs are still worth it: the last count with efficiency of ${percent(answer.knee.tolerance)} or more (the knee)`, { id: "tile-knee", raw: answer.knee.tolerance_workers }],
    [whole(answer.knee.gamma_one_workers), "GPUs at which communication takes as long as compute (gamma = 1)", { id: "tile-gamma", raw: answer.knee.gamma_one_workers }],
    [percent(now.efficiency), `of the throughput you pay for, with ${whole(at)} GPUs: E(K) (${percent(now.low_efficiency)} to ${percent(now.high_efficiency)})`, { id: "tile-efficiency", raw: now.efficiency }],
    [ratio(now.ratio), `R with ${whole(at)} GPUs: exposed communication over compute`, { id: "tile-ratio", raw: now.ratio, flip: now.ratio > 1 }],
    [seconds(now.step_s), `a step (${seconds(now.low_s)} to ${seconds(now.high_s)})`, { id: "tile-step", raw: now.step_s }],
    [dollars(answer.cost.stall_day), `of ${dollars(answer.cost.day)} a day pays for waiting`, { id: "tile-stall", raw: answer.cost.stall_day }],
    [answer.memory.needed_bytes == null ? "–" : bytes(answer.memory.needed_bytes), answer.memory.capacity_bytes == null ? "of states on a GPU, unsharded" : `of states on a GPU of ${bytes(answer.memory.capacity_bytes)}, unsharded`, { id: "tile-states", raw: answer.memory.needed_bytes, flip: !fits }]);
  predict.curves(answer, combined);
  predict.bars(answer);
  predict.band(now.ratio);
  predict.list(answer, combined, now);
  showCompare("predict");
  const full = answer.rows.filter((r) => !(r.local_batch < 1) || r.workers === at);
  later("table", () => fill("predict-table", table(["GPUs (K)", "batch of each", "compute", "communication", "exposed", "step", "speed-up", "E(K)", "R", "gamma", "bound by"],
    full.map((r) => ({ marked: r.workers === at, cells: [count(r.workers), r.local_batch == null ? "–" : digits(r.local_batch), seconds(r.compute_s), seconds(r.comm_s),
      seconds(r.exposed_comm_s), sure(seconds, r.step_s, r.low_s, r.high_s), digits(r.speedup), sure(percent, r.efficiency, r.low_efficiency, r.high_efficiency), ratio(r.ratio), ratio(r.gamma), r.bottleneck] }))),
  full.length < answer.rows.length ? el("p", { class: "hint" }, `Past ${whole(answer.knee.limit_workers)} GPUs each has less than one sequence: Plan finds other ways to split the work.`) : null));
};

predict.curves = (answer, combined) => {
  const last = answer.knee.limit_workers ?? Infinity; // past it no GPU has a whole example
  const rows = answer.rows.filter((r) => r.workers <= Math.max(last, answer.verdict.workers));
  const x = rows.map((r) => r.workers);
  const after = combined && !combined.error ? combined.rows.filter((r) => x.includes(r.workers)) : null;
  const series = (name) => [{ label: name, color: "--compute" }, ...(after ? [{ label: "with changes", color: "--transfer", dash: [8, 4] }] : [])];
  const data = (key) => [x, rows.map((r) => r[key]), ...(after ? [x.map((w) => after.find((r) => r.workers === w)?.[key] ?? null)] : [])];
  const efficiency = data("efficiency"), sureRows = rows.some((r) => r.low_efficiency != null && r.high_efficiency > r.low_efficiency);
  if (sureRows) efficiency.splice(1, 0, rows.map((r) => r.high_efficiency), rows.map((r) => r.low_efficiency));
  const thin = (label) => ({ label, color: "--quiet", width: 1, points: { show: false } });
  curve("chart-efficiency", efficiency, [...(sureRows ? [thin("high"), thin("low")] : []), ...series("efficiency E(K)")],
    { bands: sureRows ? [[1, 2]] : [], x: "GPUs (K)", range: [0, 1.02], formatY: (v) => `${Math.round(100 * v)}%`, mark: answer.knee.tolerance_workers, level: answer.knee.tolerance });
  const speed = data("speedup");
  speed.splice(1, 0, x);
  curve("chart-speedup", speed, [{ label: "ideal", color: "--quiet", dash: [3, 5], width: 1 }, ...series("speed-up")],
    { x: "GPUs (K)", logY: true, formatY: (v) => count(v), mark: answer.knee.tolerance_workers });
};

// The same step with the changes that most people ask about first.
predict.bars = ({ at: now, levers }) => {
  const regimes = [["communication overlapped", ["overlap"]], ["gradients in fp8", ["compress: fp8"]], ["both", ["overlap", "compress: fp8"]]].filter(([, names]) => names.every((name) => levers.some((l) => l.name === name)));
  const found = core.ask("regimes", predict.inputs(), regimes.map(([, names]) => names.join("+"))).rows ?? [];
  const rows = [["as it is", now], ...regimes.map(([name], i) => [name, found[i] ?? now])];
  const longest = Math.max(...rows.map(([, r]) => r.step_s));
  fill("predict-bars", rows.map(([name, r]) => stepBar(name, `${seconds(r.step_s)}, R ${ratio(r.ratio)}`, rowParts(r), longest)), legend(["compute", "transfer", "wait", "starved"]));
};

predict.band = (value) => {
  const parts = [["scale out", 0.1], ["overlap first", 0.5], ["bigger batch or compress", 1], ["stop adding GPUs", 3]];
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

// Of these only one can be pulled at a time.
const exclusive = [/^(more|fewer) workers$/, /^compress: /, /^(DiLoCo|local SGD)$/];
const pullLever = (name, on) => {
  const group = exclusive.find((e) => e.test(name));
  if (on && group) for (const other of [...chosenLevers]) if (group.test(other)) chosenLevers.delete(other);
  chosenLevers[on ? "add" : "delete"](name);
  predict.update();
  saveState();
  document.querySelector(`[data-lever="${name}"]`)?.focus();
};

const leverRow = (lever, most) => el("label", { class: "lever" },
  el("input", { type: "checkbox", checked: chosenLevers.has(lever.name), "data-lever": lever.name, onchange: (e) => pullLever(lever.name, e.target.checked) }),
  el("span", {}, lever.name), el("span", { class: "change" }, lever.change),
  el("span", { class: "gain" }, el("i", { class: lever.gain < 0 ? "loss" : "", style: `width:${Math.min(100, (100 * Math.abs(lever.gain)) / most)}%` })),
  el("span", { class: "number" }, percent(lever.gain, "+")), el("span", { class: "number step" }, seconds(lever.step_s)), el("span", { class: "risk" }, lever.risk));

predict.list = (answer, combined, now) => {
  const most = Math.max(0.01, ...answer.levers.map((l) => Math.abs(l.gain)));
  const titles = { same: "Numerics stay the same", rounding: "Rounding: sums lose digits", "changes optimizer": "The optimizer changes: the loss may follow another path" };
  const group = (numerics) => { const rows = answer.levers.filter((l) => l.numerics === numerics).sort((a, b) => (b.name === answer.verdict.lever) - (a.name === answer.verdict.lever)).map((lever) => leverRow(lever, most)); return rows.length ? [el("h3", {}, titles[numerics] ?? numerics), rows] : []; };
  const after = combined && !combined.error ? combined.at : null;
  const result = combined && (combined.error ? errorWords(combined)
    : `Together, with ${whole(after.workers)} GPUs: R ${ratio(now.ratio)} → ${ratio(after.ratio)}, E(K) ${percent(now.efficiency)} → ${percent(after.efficiency)}, step ${seconds(now.step_s)} → ${seconds(after.step_s)}, knee ${whole(answer.knee.tolerance_workers)} → ${whole(combined.knee.tolerance_workers)} GPUs.`);
  fill("predict-levers", result ? el("p", { id: "levers-together", role: "status", "data-ratio": after?.ratio ?? "", "data-step": after?.step_s ?? "" }, result) : null,
    [...new Set([...Object.keys(titles), ...answer.levers.map((l) => l.numerics)])].flatMap(group));
};
