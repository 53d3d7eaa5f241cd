// SPDX-License-Identifier: MIT
// A plan as what is typed to run it.
const megatronFlags = (p) => {
  const flags = [["tensor-model-parallel-size", p.tp > 1 && p.tp], ["pipeline-model-parallel-size", p.pp > 1 && p.pp], ["context-parallel-size", p.cp > 1 && p.cp],
    ["expert-model-parallel-size", p.ep > 1 && p.ep], ["num-virtual-stages-per-pipeline-rank", p.pp > 1 && p.vp > 1 && p.vp],
    ["micro-batch-size", p.micro_batch], ["global-batch-size", p.global_batch], ["sequence-parallel", p.seq_par && p.tp > 1 && ""],
    ["use-distributed-optimizer", /zero/.test(p.shard) && ""], ["overlap-grad-reduce", p.dp > 1 && ""], ["overlap-param-gather", /zero/.test(p.shard) && p.dp > 1 && ""],
    ["use-megatron-fsdp", /zero[23]/.test(p.shard) && ""], ["no-gradient-accumulation-fusion", /zero[23]/.test(p.shard) && ""], ["ckpt-format", /zero[23]/.test(p.shard) && "fsdp_dtensor"],
    ["data-parallel-sharding-strategy", { zero2: "optim_grads", zero3: "optim_grads_params" }[p.shard] ?? false],
    ["recompute-granularity", { full: "full", selective: "selective" }[p.recompute] ?? false], ["recompute-method", p.recompute === "full" && "uniform"], ["recompute-num-layers", p.recompute === "full" && 1],
    ["optimizer-cpu-offload", p.offload === "optimizer" && ""], ["use-precision-aware-optimizer", p.offload === "optimizer" && ""], ["bf16", p.precision === "bf16" && ""]];
  return flags.filter(([, value]) => value !== false && value != null).map(([name, value]) => `--${name}${value === "" ? "" : ` ${value}`}`).join(" ");
};

const kneeFlags = (p) => {
  const keys = { gpus: p.gpus, tp: p.tp, pp: p.pp, vp: p.vp, cp: p.cp, ep: p.ep, "micro-batch": p.micro_batch, "global-batch": p.global_batch, shard: p.shard, "shard-size": p.shard_size,
    recompute: p.recompute, ...(p.pp > 1 ? { schedule: p.schedule } : {}), offload: p.offload, "sequence-parallel": p.seq_par, precision: p.precision };
  return Object.entries(keys).map(([key, value]) => `--${key} ${value}`).join(" ");
};

const launchLines = (plan, inputs) => {
  const own = Object.entries(inputs).map(([key, value]) => `--${key} ${quoted(value)}`).join(" ");
  const nodes = Math.max(1, Math.ceil(plan.gpus / 8));
  return [["Megatron-LM", `torchrun --nnodes ${nodes} --nproc-per-node ${Math.min(8, plan.gpus)} pretrain_gpt.py ${megatronFlags(plan)}`],
    ["knee, the same plan again", `knee plan ${own} ${kneeFlags(plan)}`]];
};

const copyBox = (name, text) => {
  const area = el("textarea", { readonly: true, rows: 3, "aria-label": name });
  area.value = text;
  const said = el("span", { role: "status", class: "hint" });
  return el("div", { class: "copy" }, el("div", { class: "bar-name" }, el("b", {}, name),
    el("button", { type: "button", onclick: async () => { said.textContent = await copyText(text, area) ? "Copied." : "Press Ctrl-C."; } }, "Copy"), said), area);
};
