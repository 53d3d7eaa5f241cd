// SPDX-License-Identifier: MIT
// Which plan, and how many GPUs: searched in a worker.
const plan = {};

plan.start = () => {
  plan.form = makeForm({ view: "plan", id: "plan-form", keys: core.keys.plan, chosen: ["cluster"], plain: ["tokens", "budget", "deadline"],
    sliders: { seq: powers(512, 131072) }, state: settings.plan, left: ["model", "gpu", "gpus", "global-batch", "hf", "deepspeed", "megatron", "nemo", "torchtitan", "rates", "perfetto", "ops", "emit", "simulate", "threads"],
    reset: () => { plan.files = null; resetView("plan"); },
    change: (name) => { spread("plan", name); plan.update(); saveState(); } });
  byId("plan-stop").addEventListener("click", () => { asides.plan?.end(); plan.busy(false); });
};

plan.busy = (on) => {
  byId("plan-progress").hidden = byId("plan-stop").hidden = !on;
  byId("plan-result").setAttribute("aria-busy", String(on));
};

// The same question is not searched twice.
plan.update = () => {
  job.show();
  const question = JSON.stringify([settings.plan, plan.files?.map((f) => f.name)]);
  if (question === plan.asked && !plan.failed) {
    if (plan.answer) plan.draw(plan.answer);
    return;
  }
  plan.asked = question;
  later("plan", plan.search, 60);
};

plan.search = async () => {
  const asked = plan.asked, start = performance.now();
  plan.busy(true);
  byId("plan-progress").value = 0;
  document.body.dataset.plan = "busy";
  const files = plan.files?.map(({ name, bytes: data }) => ({ name, bytes: data }));
  const inputs = { ...settings.plan, ...Object.fromEntries((plan.files ?? []).map((f) => [f.key, f.name])) };
  if (files) delete inputs.model;
  const answer = await aside("plan", { command: "plan", inputs, files }, (share) => { byId("plan-progress").value = share; });
  if (!answer || asked !== plan.asked) return;
  plan.took = (performance.now() - start) / 1000;
  plan.busy(false);
  document.body.dataset.plan = "done";
  plan.failed = Boolean(answer.error);
  if (answer.error) {
    plan.form.fail(answer);
    return showError("plan-verdict", answer);
  }
  plan.answer = answer;
  showVerdict("plan-verdict", answer);
  plan.form.show([...answer.model.inputs, ...answer.platform.inputs]);
  if (view === "plan") plan.draw(answer);
};

const planWords = (p) => ["tp", "pp", "cp", "ep", "dp"].filter((key) => p[key] > 1).map((key) => `${key.toUpperCase()} ${p[key]}${key === "pp" && p.vp > 1 ? `x${p.vp}` : ""}`)
  .concat(`micro-batch ${p.micro_batch}`, p.shard === "none" ? [] : p.shard.replace("zero", "ZeRO-") + (p.shard === "zero3" && p.shard_size < p.dp * p.cp ? ` in groups of ${p.shard_size}` : ""), p.recompute === "none" ? [] : `${p.recompute} recompute`, p.pp > 1 ? p.schedule : [], p.offload === "none" ? [] : "optimizer on the host").flat().join(", ");

plan.chosenRow = (a) => a.rows.find((r) => r.gpus === a.verdict.gpus) ?? a.rows.filter((r) => r.fits).at(-1) ?? a.rows[0];

plan.draw = (a) => {
  const row = plan.chosenRow(a);
  const run = row?.run; // what the verdict does not say
  setTiles("plan",
    [percent(row?.efficiency), a.baseline_gpus == null ? "efficiency" : `efficiency against ${count(a.baseline_gpus)} GPUs (${percent(row?.low_efficiency)} to ${percent(row?.high_efficiency)})`, { id: "tile-plan-efficiency", raw: row?.efficiency, said: row?.efficiency >= 1 }], // nothing is lost: nothing to say
    ...(run ? [[percent(run.goodput), `goodput: steps kept over wall time (${percent(run.low_goodput)} to ${percent(run.high_goodput)})`, { id: "tile-plan-goodput", raw: run.goodput }],
      [seconds(run.stop_every_s), "between two failures", {}], [seconds(run.checkpoint_every_s), `between two checkpoints of ${bytes(run.checkpoint_bytes)}`, {}]] : []));
  fill("plan-took", plan.took == null ? "" : `Searched in ${seconds(plan.took)}.`);
  fill("plan-result", planFigures(a));
  for (const make of charts.splice(0)) make();
  showCompare("plan");
};

// Every plan as a point, step against memory, with the GPU's memory as a line. A click pins one and shows how to run it.
const planScatter = (row, inputs) => {
  const front = row.front ?? [], all = [...row.best, ...front.filter((f) => !row.best.some((b) => b.step_s === f.step_s))].sort((a, b) => a.memory.total_bytes - b.memory.total_bytes);
  const capacity = row.best[0].memory.capacity_bytes, pinned = el("div", { id: "plan-pinned", "aria-live": "polite" });
  const pin = (found) => fill(pinned, el("p", {}, el("b", {}, planWords(found.plan)), `: ${sure(seconds, found.step_s, found.low_s, found.high_s)} a step, ${bytes(found.memory.total_bytes)} of ${bytes(capacity)}`), launchLines(found.plan, inputs).filter(([, text]) => text).map(([name, text]) => copyBox(name, text)));
  const chart = chartFigure("Plans: step against memory", onOneAxis([all.filter((p) => row.best.includes(p)).map((p) => ({ x: p.memory.total_bytes, y: p.step_s })), front.map((p) => ({ x: p.memory.total_bytes, y: p.step_s }))]),
    [points("best plans", "--compute"), { ...points("less memory for more time", "--transfer"), paths: undefined, width: 2 }],
    { wide: true, height: 280, x: "memory of a GPU", linearX: true, formatX: bytes, formatY: seconds, mark: capacity, markName: "memory", formatMark: bytes, span: [Math.min(...all.map((p) => p.memory.total_bytes)) * 0.9, Math.max(capacity, ...all.map((p) => p.memory.total_bytes)) * 1.05],
      pick: (x) => { const nearest = all.reduce((a, b) => (Math.abs(b.memory.total_bytes - x) < Math.abs(a.memory.total_bytes - x) ? b : a)); pin(nearest); } });
  const choose = el("select", { "aria-label": "Plan to show", id: "plan-pick", onchange: (e) => pin(all[Number(e.target.value)]) }, all.map((p, i) => el("option", { value: i, selected: p === row.best[0] }, `${seconds(p.step_s)}, ${bytes(p.memory.total_bytes)}: ${planWords(p.plan)}`)));
  chart.append(el("p", { class: "hint" }, "Click a point, or choose: "), choose, pinned);
  pin(row.best[0]);
  return chart;
};

// What the view and a report of knee plan show alike.
const planFigures = (a) => {
  const row = plan.chosenRow(a), best = row?.best ?? [];
  const counted = a.rows.filter((r) => r.fits), longest = Math.max(...best.map((b) => b.step_s));
  const parts = best.map((b) => someParts(b.parts_s, "")), rooms = best.map((b) => someParts(b.memory, "_bytes"));
  const inputs = Object.fromEntries([...a.model.inputs, ...a.platform.inputs].filter((i) => i.source === "given" || i.source === "file").map((i) => [i.name, String(i.value)]));
  return [
    best.length ? wideFigure(`Best plans on ${count(row.gpus)} GPUs`, scroll(table(["plan", "step", "tokens/s", "MFU", "memory", "largest overhead"],
      best.map((b, i) => ({ marked: i === 0, cells: [planWords(b.plan), sure(seconds, b.step_s, b.low_s, b.high_s), large(b.tokens_per_s), percent(b.mfu_causal_attention), sure(bytes, b.memory.total_bytes, b.memory.low_bytes, b.memory.high_bytes), b.binding] })), { text: [0] }))) : null,
    best.length ? figure("Memory of a GPU", best.map((b, i) => partsBar(planWords(b.plan), `${bytes(b.memory.total_bytes)} of ${bytes(b.memory.capacity_bytes)}`, rooms[i], Math.max(b.memory.capacity_bytes, b.memory.total_bytes), bytes)), partsLegend(rooms, bytes)) : null,
    best.length ? figure("Where the step goes", best.map((b, i) => partsBar(planWords(b.plan), seconds(b.step_s), parts[i], longest, seconds)), partsLegend(parts, seconds)) : null,
    counted.length > 1 ? chartFigure("Efficiency of the best plan at each count", [counted.map((r) => r.gpus), counted.map((r) => r.high_efficiency), counted.map((r) => r.low_efficiency), counted.map((r) => r.efficiency)], [{ label: "high", color: "--quiet", width: 1, points: { show: false } }, { label: "low", color: "--quiet", width: 1, points: { show: false } }, { label: "efficiency", color: "--compute" }],
      { bands: [[1, 2]], x: "GPUs", range: [0, 1.3], formatY: (v) => `${Math.round(100 * v)}%`, mark: a.verdict.knee_gpus, level: a.verdict.tolerance }) : null,
    best.length ? planScatter(row, inputs) : null,
    a.rows.length > 1 ? wideFigure("GPU counts", scroll(table(["GPUs", "best plan", "step", "efficiency", "a billion tokens"],
      a.rows.map((r) => ({ marked: r === row, cells: [count(r.gpus), r.best?.[0] ? planWords(r.best[0].plan) : "nothing fits", sure(seconds, r.best?.[0]?.step_s, r.best?.[0]?.low_s, r.best?.[0]?.high_s), sure(percent, r.efficiency, r.low_efficiency, r.high_efficiency), dollars(r.cost_per_billion_tokens)] })), { text: [1] }))) : null,
    row?.front?.length > 1 ? wideFigure("The front as a table", scroll(table(["plan", "memory", "step"], row.front.map((f) => ({ cells: [planWords(f.plan), bytes(f.memory.total_bytes), seconds(f.step_s)] })), { text: [0] }))) : null,
    a.remedies?.length ? wideFigure("What would make it fit", scroll(table(["change", "step", "memory"], a.remedies.map((r) => ({ cells: [r.what, seconds(r.step_s), bytes(r.memory_bytes)] })), { text: [0] }))) : null,
  ];
};
