// SPDX-License-Identifier: MIT
// What each parallel axis pays.
const axes = { state: {} };

axes.sliders = {
  dp: { min: 1, max: 4096, log: true, whole: true }, fsdp: { min: 1, max: 1024, log: true, whole: true },
  tp: { min: 1, max: 64, log: true, whole: true }, pp: { min: 1, max: 32, log: true, whole: true },
  ep: { min: 1, max: 64, log: true, whole: true }, "micro-batch": { min: 1, max: 32, log: true, whole: true },
  "micro-batches": { min: 1, max: 256, log: true, whole: true }, seq: { min: 256, max: 131072, log: true, whole: true },
  mfu: { min: 0.1, max: 0.8 },
};

axes.start = () => {
  axes.show = makeForm("axes-form", core.keys.tax, axes.sliders, ["model", "gpu", "cluster"], axes.state, () => {
    axes.update();
    saveState();
  });
};

axes.update = () => {
  const answer = core.ask("tax", axes.state);
  const verdict = byId("axes-verdict");
  verdict.classList.toggle("error", Boolean(answer.error));
  if (answer.error) {
    verdict.textContent = `${answer.error}; ${answer.hint}`;
    return;
  }
  verdict.textContent = answer.verdict.sentence;
  axes.show(answer.inputs);
  const tp = answer.axes.find((a) => a.axis === "TP");
  const t = answer.thresholds;
  const shard = answer.axes.find((a) => a.axis === "FSDP");
  const few = shard.degree > 1 && t.local_tokens < t.local_tokens_min;
  fill("axes-tiles",
    tile(answer.verdict.binding, "binds", { id: "tile-binding", raw: answer.verdict.binding, flip: answer.verdict.binding !== "none" }),
    tile(percent(answer.mfu), "MFU, about", { id: "tile-mfu", raw: answer.mfu }),
    tile(seconds(answer.step_s), "step", { id: "tile-axes-step", raw: answer.step_s }),
    tile(percent(answer.bubble), "pipeline bubble", { id: "tile-bubble", raw: answer.bubble }),
    tile(count(answer.gpus), "GPUs", { id: "tile-gpus", raw: answer.gpus }),
    tile(tp.link, "TP takes the link of", { id: "tile-tp-link", raw: tp.link, flip: tp.degree > 1 && tp.link === "network" }));
  const longest = Math.max(1e-12, ...answer.axes.filter((a) => a.degree > 1).flatMap((a) => [a.comm_s, a.window_s]));
  fill("axes-bars", answer.axes.map((a) => el("div", { class: `axis${a.binds ? " binds" : ""}`, "data-axis": a.axis, "data-tax": a.tax },
    el("h3", {}, el("span", {}, `${a.axis} ${a.degree}${a.binds ? " — binds" : ""}`),
      el("span", {}, a.degree > 1 ? `${a.collective}, ${Math.round(a.calls)} × ${bytes(a.buffer_bytes)} over the ${a.link}; tax ${percent(a.tax)}` : "not used")),
    a.degree > 1 ? [["t_comm", a.comm_s, "l-transfer"], ["window", a.window_s, "l-compute"]].map(([name, value, style]) =>
      el("div", { class: "pair" }, el("span", {}, name), el("i", { class: style, style: `width:${(100 * value) / longest}%` }), el("span", {}, seconds(value)))) : null)));
  fill("axes-thresholds",
    el("div", { class: `threshold${few ? " broken" : ""}`, id: "threshold-tokens" },
      `Local tokens ${Math.round(t.local_tokens)} ${t.local_tokens >= t.local_tokens_min ? "≥" : "<"} ${Math.ceil(t.local_tokens_min)} , where sharded gathers take as long as compute: they ${t.local_tokens >= t.local_tokens_min ? "can" : "cannot"} hide.`),
    el("div", { class: `threshold${tp.degree > 1 && tp.link === "network" ? " broken" : ""}`, id: "threshold-tp" },
      `Each rank that tensor parallelism adds pays ${percent(t.tp_tax_node)} on the node's link and ${percent(t.tp_tax_network)} on the network (peak / (3 · BW · h)).`));
  axes.plan();
};

// The same degrees, priced operation by operation.
axes.plan = () => {
  const answer = core.ask("axes", axes.state);
  byId("chart-axes").closest("figure").hidden = Boolean(answer.error);
  if (answer.error) {
    fill("axes-memory", el("p", { class: "hint" }, `${answer.error}${answer.hint ? `; ${answer.hint}` : ""}`));
    return;
  }
  const { memory, fits, parts_s: parts, step_s: step, mfu_full_attention: full, mfu_causal_attention: causal } = answer.found;
  const words = fits ? `fits: ${bytes(memory.total_bytes)} ≤ ${bytes(memory.capacity_bytes)}` : `does not fit: ${bytes(memory.total_bytes)} > ${bytes(memory.capacity_bytes)}`;
  fill("axes-memory", el("p", { id: "memory-words", class: fits ? "" : "threshold broken", "data-value": memory.total_bytes }, `It ${words}.`),
    partsBar("memory", bytes(memory.total_bytes), someParts(memory, "_bytes"), Math.max(memory.capacity_bytes, memory.total_bytes), bytes),
    partsBar("step", `${seconds(step)}, MFU ${percent(full)} over all pairs, ${percent(causal)} causal`, someParts(parts, ""), step, seconds));
  fill("axes-batch", `${answer.rows[0]?.global_batch ?? "–"} sequences`);
  if (answer.rows.length > 1)
    curve("chart-axes", [answer.rows.map((r) => r.gpus), answer.rows.map((r) => r.efficiency)], [{ label: "E", color: "--compute" }],
      { x: "GPUs", range: [0, 1.05], formatY: (v) => `${Math.round(100 * v)} %`, level: 0.8, mark: answer.rows[answer.rows.findIndex((r) => r.efficiency < 0.8) - 1]?.gpus });
};
