// SPDX-License-Identifier: MIT
// Small recordings that are made here, so that every view shows something with one click.

// Two ranks, four steps of twelve kernels and three all-reduces; rank 1 computes longer, and one link is slow.
const exampleTrace = (rank) => {
  const events = [], at = (cat, name, tid, ts, dur, args) => events.push({ ph: "X", cat, name, pid: rank, tid, ts, dur, args });
  let correlation = 1;
  for (let step = 0; step < 4; step++) {
    const start = 1e6 + step * 43500;
    at("user_annotation", `ProfilerStep#${step}`, 1, start, 43500, {});
    for (let k = 0; k < 12; k++) {
      const ts = start + 120 + k * (rank ? 3100 : 2300), dur = rank ? 3100 : 2300;
      at("cuda_runtime", "cudaLaunchKernel", 1, start + 100 + 12 * k, 8, { correlation });
      at("kernel", k < 4 ? "ampere_bf16_gemm_forward" : "ampere_bf16_gemm_backward", 7, ts, dur, { device: rank, stream: 7, correlation: correlation++ });
    }
    at("cuda_runtime", "cudaDeviceSynchronize", 1, start + 400, 42900, {});
    for (let k = 0, before = 0, end; k < 3; k++, before = end) { // one after the other; each ends 5.5 ms after the later rank has come
      const ready = (each) => Math.max(before, start + 120 + (8 + 2 * k) * each), own = ready(rank ? 3100 : 2300);
      end = ready(3100) + 5500;
      at("cuda_runtime", "cudaLaunchKernel", 1, start + 260 + 12 * k, 8, { correlation });
      at("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 9, own, end - own, { device: rank, stream: 9, correlation: correlation++, "Collective name": "allreduce", "In msg nelems": 33554432, "Out msg nelems": 33554432, dtype: "BFloat16", "Group size": 2, "Process Group Name": "0" });
    }
  }
  return { schemaVersion: 1, distributedInfo: { backend: "nccl", rank, world_size: 2 }, deviceProperties: [{ id: rank, name: "NVIDIA H100 80GB HBM3" }], traceEvents: events };
};

const exampleLog = (gpus, ms) => `using world size: ${gpus}, data-parallel size: ${gpus}\n  hidden_size ..... 4096\n  num_layers ..... 32\n  seq_length ..... 8192\n  global_batch_size ..... 128\n  world_size ..... ${gpus}\n${
  Array.from({ length: 24 }, (_, i) => ` iteration ${i + 1}/ 100000 | consumed samples: ${128 * (i + 1)} | elapsed time per iteration (ms): ${(ms * (1 + 0.004 * ((i * 7) % 5)) + (i ? 0 : 2 * ms)).toFixed(1)} | global batch size: 128 | lm loss: ${(9 - 0.05 * i).toFixed(3)} |`).join("\n")}\n`;

const startExamples = () => {
  byId("trace-example").addEventListener("click", () => trace.open([0, 1].map((rank) => new File([JSON.stringify(exampleTrace(rank))], `example_rank${rank}.json`))));
  byId("scale-example").addEventListener("click", () => scale.open([[8, 12570], [16, 6640], [32, 3700], [64, 2260]].map(([gpus, ms]) => new File([exampleLog(gpus, ms)], `example_${gpus}.log`))));
};
