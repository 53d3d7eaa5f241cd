// SPDX-License-Identifier: MIT
// Labels of the inputs, and what the symbols mean.
const human = {
  model: "Model", gpu: "GPU", cluster: "Cluster", at: "GPUs in use", "global-batch": "Global batch (sequences)", mfu: "Compute speed, share of peak (MFU)",
  overlap: "Overlap of communication with compute", compress: "Gradient compression", bandwidth: "Network bandwidth per GPU", latency: "Network latency",
  "local-steps": "Steps between exchanges", jitter: "Spread between GPUs", price: "Price of a GPU-hour", link: "Network card",
  "gpus-per-node": "GPUs in a node", "node-bandwidth": "Bandwidth inside a node", "node-latency": "Latency inside a node", "memory-bandwidth": "GPU memory bandwidth",
  power: "Power of a GPU", params: "Parameters", "flops-per-param": "FLOPs per parameter and token", seq: "Sequence length (tokens)", "bytes-per-param": "Bytes sent per parameter",
  "local-batch": "Batch per GPU, fixed (weak scaling)", accumulate: "Micro-batches per exchange", flops: "Compute speed", "compute-time": "Compute time, measured",
  "comm-time": "Communication time, measured", "measured-workers": "GPUs in that measurement", algorithm: "All-reduce algorithm", hidden: "Communication that is hidden, measured",
  "encode-time": "Time to compress", "loader-rate": "Data loader, examples a second", "loader-overlap": "Loading hidden behind compute", "idle-power": "Power of a waiting GPU",
  steps: "Steps of the run", "critical-batch": "Critical batch size", "min-steps": "Fewest steps to the goal", workers: "GPU counts in charts and table", tolerance: "Efficiency that is still worth it",
  dp: "Data parallel (DP)", fsdp: "Sharded data parallel (FSDP)", tp: "Tensor parallel (TP)", pp: "Pipeline stages (PP)", ep: "Expert parallel (EP)", cp: "Context parallel (CP)",
  vp: "Pieces per pipeline stage", etp: "Tensor parallel inside experts", "micro-batch": "Micro-batch (sequences)", "micro-batches": "Micro-batches per step",
  gpus: "GPUs (512, or 8..512x2)", tokens: "Tokens to train on", budget: "Budget", deadline: "Deadline", top: "Plans to show", profile: "Training software", memory: "Memory of a GPU",
  shard: "Sharding (ZeRO)", "shard-size": "GPUs that share one copy", recompute: "Recompute activations", schedule: "Pipeline schedule", precision: "Precision", offload: "Offload to the host",
  "sequence-parallel": "Sequence parallel", layers: "Layers", heads: "Attention heads", ffn: "Feed-forward width", vocab: "Vocabulary", experts: "Experts", topk: "Experts per token", prefetch: "Layers gathered ahead",
  "power-cap": "Power limit of a GPU", "kv-heads": "Key and value heads", "head-dim": "Size of a head", "bytes-per-value": "Bytes per value",
};
human["hidden@axes"] = human["hidden@plan"] = "Width of the model";
// Names as people say them: Llama 3 8B, H100 PCIe. `all` tells which GPUs come in several forms.
const spelt = { gpt: "GPT", gpt2: "GPT-2", gpt3: "GPT-3", oss: "OSS", bert: "BERT", vgg16: "VGG-16", resnet50: "ResNet-50", deepseek: "DeepSeek", xl: "XL", pcie: "PCIe", nvl: "NVL", rtx: "RTX", ada: "Ada", pro: "PRO" };
const niceName = (name, all = []) => {
  const words = name.split("-").map((w, i) => spelt[w] ?? (/^\d\d$/.test(w) ? `${w} GB` : /^[a-z]{0,2}\d+[a-z]?$|^\d/.test(w) && !/^v\d\d?$|^k\d$/.test(w) ? w.toUpperCase().replace("X", /^\d/.test(w) ? "x" : "X") : w.replace(/^./, (c) => c.toUpperCase()).replace(/([a-z]{2})(\d)/, "$1 $2"))).join(" ");
  return all.includes(`${name}-pcie`) || all.includes(`${name}-nvl`) ? `${words} SXM` : words;
};
const labelOf = (view, key) => human[`${key}@${view}`] ?? human[key] ?? key.replace(/-/g, " ").replace(/^./, (c) => c.toUpperCase());

// A sentence of the core names flags; on the page the same input is a field. A report is of a command, whose flags it keeps.
const asFields = (words) => (document.body.classList.contains("report") ? words : words.replace(/--([a-z][a-z-]*)/g, (flag, key) => (human[key] ? `“${human[key].replace(/ \(.*/, "")}”` : flag)));

// What stands for a value that was not given, in words of the page rather than of the command line.
const otherwiseOf = (key) => key.otherwise.replace(/--([a-z-]+)/g, (_, name) => /^[A-Z]+$/.test(human[name]) ? `the ${human[name]}` : (human[name] ?? name).toLowerCase()).replace(/^none$/, "not given");

const symbols = [
  ["K", /\bK\b/, "number of GPUs that share the work"],
  ["R", /\bR\b/, "exposed communication divided by compute: 0.25 means a quarter of the compute time is added by waiting for the network"],
  ["E(K)", /\bE\(/, "efficiency of K GPUs: throughput per GPU compared with the smallest count; 80% means a fifth of the money is lost"],
  ["E", /\bE\b(?!\()/, "1 / (1 + R): the share of the time that is left for compute"],
  ["gamma", /\bgamma\b/, "all communication, hidden or not, divided by compute"],
  ["eta", /\beta\b/, "share of the communication that hides behind compute, 0 to 1"],
  ["exposed", /\bexposed\b/, "not hidden behind compute: the GPU waits"],
  ["MFU", /\bMFU\b/, "model FLOPs utilisation: what the model needs over what the GPUs could do"],
  ["DP", /\bDP\b|\bdp\b/, "data parallel: every GPU has the whole model and a part of the batch"],
  ["FSDP", /\bFSDP\b|\bzero[123]\b|\bZeRO/, "sharded data parallel (ZeRO): parameters, gradients or optimizer states are spread over GPUs"],
  ["TP", /\bTP\b|\btp\b/, "tensor parallel: each layer is split over GPUs"],
  ["PP", /\bPP\b|\bpp\b|\bpipeline/, "pipeline parallel: the layers are split into stages"],
  ["CP", /\bCP\b|\bcp\b/, "context parallel: a sequence is split over GPUs"],
  ["EP", /\bEP\b|\bep\b/, "expert parallel: experts are spread over GPUs"],
  ["micro-batch", /\bmicro-batch/, "sequences that a GPU works on at once"],
  ["recompute", /\brecompute/, "activations are computed again in the backward pass instead of being kept"],
  ["bubble", /\bbubble/, "time in which pipeline stages wait for each other"],
  ["wait", /\bwait(ing)?\b/, "time until the last rank arrives"],
  ["transfer", /\btransfer\b/, "the network itself, after all ranks have arrived"],
];
const explain = (text) => symbols.filter(([, sign]) => sign.test(text)).flatMap(([name, , words]) => [el("dt", {}, name), el("dd", {}, words)]);
