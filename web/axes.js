// SPDX-License-Identifier: MIT
// What each parallel axis pays: one price, that of knee plan for these degrees.
const axes = {};

// Degrees that this model allows: the core is asked about each, once per model and GPU.
const allowed = {};
const degrees = (name, most) => () => {
  const { model, gpu, cluster, layers, hidden, experts } = settings.axes;
  const base = { model, gpu, cluster, layers, hidden, experts };
  const key = JSON.stringify([name, base]);
  const companion = name === "ep" ? (v) => ({ dp: v }) : () => ({}); // experts are spread over replicas
  return (allowed[key] ??= counts(1, most).filter((v) => v === "1" || !core.ask("tax", { ...base, ...companion(v), [name]: v }).error));
};
axes.sliders = {
  dp: counts(1, 4096), fsdp: counts(1, 1024), tp: degrees("tp", 64), pp: degrees("pp", 64), ep: degrees("ep", 256), "micro-batch": powers(1, 32),
  "micro-batches": counts(1, 256), seq: powers(256, 131072),
};

axes.start = () => {
  axes.form = makeForm({ view: "axes", id: "axes-form", keys: core.keys.tax, chosen: ["cluster"], sliders: axes.sliders, state: settings.axes, left: ["model", "gpu"], reset: () => resetView("axes"),
    change: (name) => { spread("axes", name); axes.update(); saveState(); } });
};

axes.update = () => {
  const answer = core.ask("tax", settings.axes);
  if (answer.error) {
    axes.form.fail(answer);
    return showError("axes-verdict", answer);
  }
  axes.answer = answer;
  showVerdict("axes-verdict", answer);
  axes.form.show(answer.inputs);
  job.show();
  axes.draw(answer);
};

axes.draw = (answer) => {
  const tp = answer.axes.find((a) => a.axis === "TP"), t = answer.thresholds;
  const shard = answer.axes.find((a) => a.axis === "FSDP");
  const few = shard.degree > 1 && t.local_tokens < t.local_tokens_min, far = tp.degree > 1 && tp.link === "network";
  setTiles("axes",
    answer.memory ? [bytes(answer.memory.total_bytes), answer.fits ? `fits a GPU of ${bytes(answer.memory.capacity_bytes)}` : `does not fit a GPU of ${bytes(answer.memory.capacity_bytes)}`, { id: "tile-memory", raw: answer.memory.total_bytes, flip: !answer.fits }]
      : ["–", "memory is not known without a GPU", { id: "tile-memory" }],
    [seconds(answer.step_s), "a step", { id: "tile-axes-step", raw: answer.step_s }],
    [percent(answer.mfu), "of the GPUs' peak (MFU, causal attention)", { id: "tile-mfu", raw: answer.mfu }],
    [answer.verdict.binding, "costs most", { id: "tile-binding", raw: answer.verdict.binding, flip: answer.verdict.binding !== "none" }],
    [percent(answer.bubble), "of a pipeline's steps are empty (bubble)", { id: "tile-bubble", raw: answer.bubble }],
    [count(answer.gpus), "GPUs", { id: "tile-gpus", raw: answer.gpus }],
    [tp.degree > 1 ? tp.link : "not used", "is the link of tensor parallelism", { id: "tile-tp-link", raw: tp.link, flip: far }]);
  const longest = Math.max(1e-12, ...answer.axes.filter((a) => a.degree > 1).flatMap((a) => [a.comm_s, a.window_s]));
  const pair = ([name, value, style]) => el("div", { class: "pair" }, el("span", {}, name), el("i", { class: style, style: `width:${(100 * value) / longest}%` }), el("span", {}, seconds(value)));
  fill("axes-bars", answer.axes.map((a) => el("div", { class: `axis${a.binds ? " binds" : ""}`, "data-axis": a.axis, "data-tax": a.tax },
    el("h3", {}, el("span", {}, `${labelOf("axes", a.axis.toLowerCase())}: ${count(a.degree)}${a.binds ? ", costs most" : ""}`),
      el("span", {}, a.degree > 1 ? `${a.collective}, ${whole(a.calls)} × ${bytes(a.buffer_bytes)} over the ${a.link}; ${seconds(a.exposed_s)} exposed, ${percent(a.tax)} of compute` : "not used")),
    a.degree > 1 ? [["takes", a.comm_s, "l-transfer"], ["can hide", a.window_s, "l-compute"]].map(pair) : null)));
  fill("axes-thresholds",
    el("p", { class: `threshold${few ? " broken" : ""}`, id: "threshold-tokens" }, shard.degree > 1
      ? `FSDP: below ${whole(Math.ceil(t.local_tokens_min))} tokens a GPU, gathering the shards takes longer than compute. Here it is ${whole(t.local_tokens)}${few ? ", and the gathers cannot hide" : ""}: ${seconds(shard.exposed_s)} of a step is exposed.`
      : "FSDP is 1: no gathers."),
    el("p", { class: `threshold${far ? " broken" : ""}`, id: "threshold-tp" },
      `Tensor parallel: past ${count(answer.inputs.find((i) => i.name === "gpus-per-node")?.value)} it leaves the node. At the GPU's peak each added rank costs ${percent(t.tp_tax_node)} inside it and ${percent(t.tp_tax_network)} on the network.`));
  axes.plan(answer);
  showCompare("axes");
};

// Where step and memory go, and more replicas of the same.
axes.plan = (tax) => {
  const answer = core.ask("axes", settings.axes);
  for (const id of ["axes-memory", "axes-step"]) byId(id).closest("figure").hidden = Boolean(answer.error);
  if (answer.error) return;
  const { memory, parts_s: parts, step_s: step } = answer.found;
  const room = someParts(memory, "_bytes"), work = someParts(parts, "");
  const most = Math.max(memory.capacity_bytes, memory.total_bytes);
  fill("axes-memory", el("p", { id: "memory-words", class: tax.fits === false ? "threshold broken" : "", "data-value": memory.total_bytes },
    `${bytes(memory.total_bytes)} of a GPU's ${bytes(memory.capacity_bytes)}: it ${tax.fits === false ? "does not fit" : "fits"}.`),
  partsBar("memory", bytes(memory.total_bytes), room, most, bytes, memory.capacity_bytes), partsLegend([room], bytes));
  fill("axes-step", partsBar("step", seconds(step), work, step, seconds), partsLegend([work], seconds));
  byId("axes-step").dataset.value = step;
  later("replicas", () => axes.replicas(answer.found.plan), 200);
};

// More replicas of it, as knee plan has them: the same degrees at ever more GPUs, with the batch that plan takes.
axes.replicas = async (plan) => {
  const { gpus, "global-batch": batch, vp, ...degrees } = planKeys(plan);
  const least = plan.tp * plan.pp * plan.cp * Math.max(1, plan.shard_size), many = Array.from({ length: 14 }, (_, i) => least * 2 ** i).filter((n) => n <= 65536);
  const { model, gpu, cluster, seq, layers, hidden, experts } = settings.axes;
  const answer = await aside("replicas", { command: "plan", inputs: { model, gpu, cluster, seq, layers, hidden, experts, ...degrees, gpus: many.join(",") } });
  const rows = (answer?.rows ?? []).filter((r) => r.fits && r.efficiency != null);
  const figure = byId("chart-axes").closest("figure");
  figure.hidden = rows.length < 2;
  if (rows.length < 2 || view !== "axes") return;
  fill("axes-batch", `${count(rows[0].best[0].plan.global_batch)} sequences`);
  curve("chart-axes", [rows.map((r) => r.gpus), rows.map((r) => r.efficiency)], [{ label: "efficiency", color: "--compute" }],
    { x: "GPUs", range: [0, 1.05], formatY: (v) => `${Math.round(100 * v)}%`, level: answer.verdict.tolerance, mark: answer.verdict.knee_gpus });
};
