// SPDX-License-Identifier: MIT
// Which plan, and how many GPUs: searched in a worker.
const plan = {};

plan.start = () => {
  plan.form = makeForm({ view: "plan", id: "plan-form", keys: core.keys.plan, chosen: ["model", "gpu", "cluster"], plain: ["gpus", "tokens", "budget", "deadline"],
    sliders: { "global-batch": counts(8, 65536), seq: powers(512, 131072) }, state: settings.plan, left: ["hf", "deepspeed", "megatron", "nemo", "torchtitan", "rates", "perfetto", "ops", "emit", "simulate", "threads"],
    choices: { model: (list) => list.filter((name) => !notTransformers.includes(name)) }, reset: () => { plan.files = null; resetView("plan"); },
    change: (name) => { spread("plan", name); plan.update(); saveState(); } });
  byId("plan-stop").addEventListener("click", () => { asides.plan?.end(); plan.busy(false); });
};

plan.busy = (on) => {
  byId("plan-progress").hidden = byId("plan-stop").hidden = !on;
  byId("plan-result").setAttribute("aria-busy", String(on));
};

// The same question is not searched twice.
plan.update = () => {
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
  plan.form.show([...answer.model.inputs, ...answer.platform.inputs, { name: "global-batch", value: answer.rows[0]?.best?.[0]?.plan.global_batch, text: String(answer.rows[0]?.best?.[0]?.plan.global_batch ?? ""), source: "assumed" }]);
  if (view === "plan") plan.draw(answer);
};

const planWords = (p) => ["tp", "pp", "vp", "cp", "ep", "dp"].filter((key) => p[key] > 1).map((key) => `${key} ${p[key]}`)
  .concat(`micro-batch ${p.micro_batch}`, p.shard === "zero3" && p.shard_size < p.dp * p.cp ? `zero3 in ${p.shard_size}` : p.shard, p.recompute === "none" ? [] : `recompute ${p.recompute}`, p.pp > 1 ? p.schedule : [], p.offload === "none" ? [] : "optimizer on the host").flat().join(", ");

plan.chosenRow = (a) => a.rows.find((r) => r.gpus === a.verdict.gpus) ?? a.rows.filter((r) => r.fits).at(-1) ?? a.rows[0];

plan.draw = (a) => {
  const row = plan.chosenRow(a), best = row?.best ?? [], first = best[0];
  setTiles("plan",
    [first ? count(row.gpus) : "none", first ? "GPUs" : "of the counts tried fits", { id: "tile-plan-gpus", raw: first ? row.gpus : null, flip: !first }],
    [first ? bytes(first.memory.total_bytes) : "–", first ? `of a GPU's ${bytes(first.memory.capacity_bytes)} (${bytes(first.memory.low_bytes)} to ${bytes(first.memory.high_bytes)})` : "", { id: "tile-plan-memory", raw: first?.memory.total_bytes }],
    [seconds(first?.step_s), first ? `a step (${seconds(first.low_s)} to ${seconds(first.high_s)})` : "a step", { id: "tile-plan-step", raw: first?.step_s }],
    [large(first?.tokens_per_s), "tokens a second", { id: "tile-plan-tokens", raw: first?.tokens_per_s }],
    [percent(first?.mfu_causal_attention), "of the GPUs' peak (MFU, causal attention)", { id: "tile-plan-mfu", raw: first?.mfu_causal_attention }],
    [percent(row?.efficiency), a.baseline_gpus == null ? "efficiency" : `efficiency against ${count(a.baseline_gpus)} GPUs (${percent(row?.low_efficiency)} to ${percent(row?.high_efficiency)})`, { id: "tile-plan-efficiency", raw: row?.efficiency }],
    [dollars(row?.cost ?? row?.cost_per_billion_tokens), row?.cost != null ? `for all tokens, in ${seconds(row.time_s)}` : "for a billion tokens", { id: "tile-plan-cost", raw: row?.cost ?? row?.cost_per_billion_tokens }]);
  fill("plan-took", plan.took == null ? "" : `Searched in ${seconds(plan.took)}.`);
  fill("plan-result", planFigures(a));
  for (const make of charts.splice(0)) make();
  showCompare("plan");
};

// What the view and a report of knee plan show alike.
const planFigures = (a) => {
  const row = plan.chosenRow(a), best = row?.best ?? [];
  const counted = a.rows.filter((r) => r.fits), longest = Math.max(...best.map((b) => b.step_s));
  const parts = best.map((b) => someParts(b.parts_s, "")), rooms = best.map((b) => someParts(b.memory, "_bytes"));
  const inputs = Object.fromEntries([...a.model.inputs, ...a.platform.inputs].filter((i) => i.source === "given" || i.source === "file").map((i) => [i.name, String(i.value)]));
  return [
    best.length ? wideFigure(`Best plans on ${count(row.gpus)} GPUs`, scroll(table(["plan", "step", "tokens/s", "MFU, causal", "MFU, all pairs", "memory", "largest overhead"],
      best.map((b, i) => ({ marked: i === 0, cells: [planWords(b.plan), sure(seconds, b.step_s, b.low_s, b.high_s), large(b.tokens_per_s), percent(b.mfu_causal_attention), percent(b.mfu_full_attention), sure(bytes, b.memory.total_bytes, b.memory.low_bytes, b.memory.high_bytes), b.binding] })), { text: [0] }))) : null,
    best.length ? wideFigure("To run the first", launchLines(best[0].plan, inputs).map(([name, text]) => copyBox(name, text))) : null,
    best.length ? figure("Memory of a GPU", best.map((b, i) => partsBar(planWords(b.plan), `${bytes(b.memory.total_bytes)} of ${bytes(b.memory.capacity_bytes)}`, rooms[i], Math.max(b.memory.capacity_bytes, b.memory.total_bytes), bytes)), partsLegend(rooms, bytes)) : null,
    best.length ? figure("Where the step goes", best.map((b, i) => partsBar(planWords(b.plan), seconds(b.step_s), parts[i], longest, seconds)), partsLegend(parts, seconds)) : null,
    counted.length > 1 ? chartFigure("Efficiency of the best plan at each count", [counted.map((r) => r.gpus), counted.map((r) => r.efficiency)], [{ label: "efficiency", color: "--compute" }],
      { x: "GPUs", range: [0, 1.1], formatY: (v) => `${Math.round(100 * v)} %`, mark: a.verdict.knee_gpus, level: a.verdict.tolerance }) : null,
    row?.front?.length > 1 ? chartFigure("Less memory for more time: the Pareto front", onOneAxis([row.front.map((f) => ({ x: f.memory.total_bytes, y: f.step_s }))]), [{ ...points("step", "--transfer"), paths: undefined, width: 2 }],
      { x: "memory of a GPU", linearX: true, formatX: bytes, formatY: seconds }) : null,
    a.rows.length > 1 ? wideFigure("GPU counts", scroll(table(["GPUs", "best plan", "step", "efficiency", "a billion tokens"],
      a.rows.map((r) => ({ marked: r === row, cells: [count(r.gpus), r.best?.[0] ? planWords(r.best[0].plan) : "nothing fits", sure(seconds, r.best?.[0]?.step_s, r.best?.[0]?.low_s, r.best?.[0]?.high_s), sure(percent, r.efficiency, r.low_efficiency, r.high_efficiency), dollars(r.cost_per_billion_tokens)] })), { text: [1] }))) : null,
    row?.front?.length > 1 ? wideFigure("The front as a table", scroll(table(["plan", "memory", "step"], row.front.map((f) => ({ cells: [planWords(f.plan), bytes(f.memory.total_bytes), seconds(f.step_s)] })), { text: [0] }))) : null,
    a.remedies?.length ? wideFigure("What would make it fit", scroll(table(["change", "step", "memory"], a.remedies.map((r) => ({ cells: [r.what, seconds(r.step_s), bytes(r.memory_bytes)] })), { text: [0] }))) : null,
  ];
};
