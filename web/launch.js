// SPDX-License-Identifier: MIT
// A plan as what is typed to run it.
// Every key of the plan, so that nothing is searched for.
const planKeys = (p) => ({ gpus: p.gpus, tp: p.tp, pp: p.pp, vp: p.vp, cp: p.cp, ep: p.ep, "micro-batch": p.micro_batch, "global-batch": p.global_batch, shard: p.shard, "shard-size": p.shard_size,
  recompute: p.recompute, ...(p.pp > 1 ? { schedule: p.schedule } : {}), offload: p.offload, "sequence-parallel": p.seq_par, precision: p.precision });

// Where the framework has no words for it, the core's sentence says so.
const launchLines = (plan, inputs) => {
  const keys = { ...inputs, ...planKeys(plan) };
  const words = (framework) => { const a = core.ask("plan", { ...keys, emit: framework }); return a.launch ?? null; };
  return [["Megatron-LM", words("megatron")], ["DeepSpeed", words("deepspeed")], ["torchtitan", words("torchtitan")], ["NeMo", words("nemo")],
    ["knee, the same plan again", `knee plan ${Object.entries(keys).map(([key, value]) => `--${key} ${quoted(String(value))}`).join(" ")}`]];
};

const copyBox = (name, text) => {
  if (text == null) return el("p", { class: "hint" }, `${name}: has no settings for this plan.`);
  const area = el("pre", { class: "lines", tabindex: 0, "aria-label": name }, text);
  const said = el("span", { role: "status", class: "hint" });
  return el("div", { class: "copy" }, el("div", { class: "bar-name" }, el("b", {}, name),
    el("button", { type: "button", onclick: async () => { said.textContent = await copyText(text, area) ? "Copied." : "Press Ctrl-C."; } }, "Copy"), said), area);
};
