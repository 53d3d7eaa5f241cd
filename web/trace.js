// SPDX-License-Identifier: MIT
// Traces: dropped on the page, or carried in it by a report.
const trace = { state: {}, whatIf: {} };

trace.sliders = {
  at: { min: 2, max: 16384, log: true, whole: true }, hidden: { min: 0, max: 1 }, compress: { min: 1, max: 64, log: true },
  "local-steps": { min: 1, max: 500, log: true, whole: true }, accumulate: { min: 1, max: 64, log: true, whole: true },
  price: { min: 0.2, max: 15 },
};

// A trace shows times, not links: these change what was measured.
trace.factors = {
  "bandwidth-times": { min: 0.125, max: 16, log: true, start: 1, help: "the link's bandwidth, times what it was" },
  "latency-added": { min: 0, max: 0.002, start: 0, help: "seconds added to every hop" },
  "batch-times": { min: 0.125, max: 16, log: true, start: 1, help: "the local batch, times what it was" },
};
trace.ask = (inputs, factors) => core.ask("what-if",
  { ...inputs, ...Object.fromEntries(Object.keys(trace.factors).map((name) => [name, factors[name] ?? trace.factors[name].start])) });

trace.start = () => {
  const factors = Object.entries(trace.factors).map(([name, { help }]) => ({ name, help, kind: "number", group: "" }));
  trace.fillForm = makeForm("whatif-form", [...core.keys.predict, ...factors], { ...trace.sliders, ...trace.factors }, [], trace.whatIf, () => trace.wonder());
  const drop = byId("drop");
  const stop = (e) => { e.preventDefault(); drop.classList.toggle("over", e.type === "dragover"); };
  for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, stop);
  document.addEventListener("drop", (e) => { if (e.dataTransfer?.files.length) openFiles([...e.dataTransfer.files]); });
  byId("files").addEventListener("change", (e) => openFiles([...e.target.files]));
  fill("trace-legend", legend());
};

const isGzip = async (blob) => {
  const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  return head[0] === 0x1f && head[1] === 0x8b;
};

// An answer of knee, a log of measured collectives, or else traces.
const openFiles = async (files) => {
  const head = await files[0].slice(0, 65536).text();
  if (/^\s*\{\s*"schema":\s*"knee\./.test(head)) return showAnswer(JSON.parse(await files[0].text()));
  if (/busbw|algbw|OSU MPI|"schema":\s*"nccl/.test(head)) return openLog(files[0]);
  return trace.open(files);
};

const openLog = async (file) => {
  const answer = core.askAbout("collective", "against", file.name, new Uint8Array(await file.arrayBuffer()));
  if (!answer.error) return answers.show(answer);
  selectView("trace");
  byId("trace-verdict").classList.add("error");
  byId("trace-verdict").textContent = `${answer.where ? `${answer.where}: ` : ""}${answer.error}${answer.hint ? `; ${answer.hint}` : ""}`;
};

trace.update = () => {
  if (trace.live) timeline.draw();
};

trace.open = async (files) => {
  selectView("trace");
  const bar = byId("progress");
  const verdict = byId("trace-verdict");
  core.x.kw_reset();
  bar.hidden = false;
  const refused = [];
  const start = performance.now();
  for (const [i, file] of files.entries()) {
    let stream = file.stream();
    let size = file.size;
    if (await isGzip(file)) {
      stream = stream.pipeThrough(new DecompressionStream("gzip"));
      size *= 15; // a guess, for the bar only
    }
    let problem;
    try {
      problem = await core.readTrace(file.name, stream, size, (done, all) => { bar.value = (i + Math.min(1, done / all)) / files.length; });
    } catch (error) {
      problem = core.x.kw_push_end() ? { error: String(error) } : null; // damaged gzip: what came before is kept
    }
    if (problem?.error) refused.push(`${file.name}: ${problem.error}`);
  }
  bar.hidden = true;
  const answer = core.ask("trace", trace.state);
  trace.took = (performance.now() - start) / 1000;
  verdict.classList.toggle("error", Boolean(answer.error));
  byId("trace-result").hidden = Boolean(answer.error);
  if (answer.error) {
    verdict.textContent = refused.length ? refused.join("; ") : `${answer.error}; ${answer.hint}`;
    return;
  }
  trace.show(answer, true);
  byId("trace-gaps").prepend(...refused.map((words) => el("li", {}, words)));
};

// `live`: the core holds the trace, so that it can be drawn and asked.
trace.show = (answer, live) => {
  trace.answer = answer;
  trace.live = live;
  selectView("trace");
  byId("trace-verdict").textContent = answer.verdict.sentence;
  fill("trace-gaps", answer.verdict.cannot_tell.map((words) => el("li", {}, words)));
  byId("trace-result").hidden = false;
  for (const id of ["timeline", "whatif-form"]) byId(id).closest("figure").hidden = !live;
  trace.draw(answer);
  document.body.dataset.ready = "trace";
};

const ledgerParts = (r) => Object.fromEntries(labels.map(([json, key]) => [key, Number(r[json] ?? (json === "transfer_s" ? r.exposed_comm_s : 0))]));

trace.draw = (answer) => {
  const v = answer.verdict;
  fill("trace-tiles", tile(ratio(v.ratio), "R", { id: "tile-trace-ratio", raw: v.ratio, flip: v.ratio > 1 }), tile(percent(v.efficiency), "E = 1 / (1 + R)", { id: "tile-trace-efficiency", raw: v.efficiency }),
    tile(percent(v.overlap), "overlap"), tile(seconds(v.step_s), "step"), tile(v.suspect, "cause"), tile(dollars(v.stall_cost_per_day), "stall a day"));
  if (trace.live) timeline.start(answer.ranks);
  const steps = answer.steps.slice(0, 24);
  const longest = Math.max(...steps.map((s) => s.window_s));
  fill("trace-steps", steps.map((s) => stepBar(`rank ${s.rank}, ${s.step < 0 ? "outside of steps" : `step ${s.step}`}`, seconds(s.window_s), ledgerParts(s), longest)));
  const sized = answer.collectives.filter((c) => c.bytes > 0 && c.busbw_bytes_per_s > 0).sort((a, b) => a.bytes - b.bytes);
  const dots = { width: 0, paths: () => null, points: { show: true, size: 7 } };
  if (sized.length > 1)
    curve("chart-collectives", [sized.map((c) => c.bytes), sized.map((c) => c.busbw_bytes_per_s), sized.map((c) => c.expected_busbw_bytes_per_s)],
      [{ label: "bus bandwidth", color: "--transfer", ...dots }, { label: "expected on the cluster", color: "--compute" }],
      { x: "size", logX: 10, logY: true, formatX: bytes, formatY: perSecond });
  else fill("chart-collectives", el("p", { class: "hint" }, "The trace does not say how large its collectives are."));
  const latest = Math.max(1e-12, ...answer.stragglers.map((s) => s.lateness_s));
  fill("trace-strip", answer.ranks.slice(0, 512).map((r) => {
    const late = answer.stragglers.find((s) => s.rank === r.rank)?.lateness_s ?? 0;
    return el("i", { style: `background:color-mix(in srgb, var(--wait) ${Math.round((100 * late) / latest)}%, var(--ground))${late > latest / 2 ? ";color:#000" : ""}`, title: `rank ${r.rank}: late by ${seconds(late)}` }, String(r.rank));
  }));
  fill("trace-stragglers", table(["rank", "last at", "late by", "because", "longer by"], answer.stragglers.slice(0, 16).map((s) => ({ cells: [String(s.rank), `${s.last_count} of ${answer.matching.collectives}`, seconds(s.lateness_s), s.cause ?? "–", seconds(s.excess_s)] })), { text: [3] }));
  fill("trace-ranks", table(["rank", "window", "compute", "exposed", "wait", "transfer", "copy", "starved", "host-bound", "idle", "R", "overlap", "file"],
    answer.ranks.map((r) => ({ cells: [String(r.rank), seconds(r.window_s), seconds(r.compute_s), seconds(r.exposed_comm_s), seconds(r.wait_s), seconds(r.transfer_s), seconds(r.exposed_copy_s),
      seconds(r.starved_input_s), seconds(r.host_bound_s), seconds(r.idle_s), ratio(r.ratio), percent(r.overlap), r.file.slice(-80)] })), { text: [12] }));
  fill("trace-collectives", table(["collective", "NCCL", "axis", "group", "ranks", "size", "calls", "transfer", "expected", "wait", "bus"],
    answer.collectives.slice(0, 40).map((c) => ({ cells: [c.name, [c.algorithm, c.protocol].filter(Boolean).join("/"), c.axis, (c.description || c.group).slice(0, 80), count(c.group_size), bytes(c.bytes), String(c.calls), seconds(c.transfer_s), seconds(c.expected_s), seconds(c.wait_s), perSecond(c.busbw_bytes_per_s)] })), { text: [1, 2, 3] }));
  fill("trace-levers", table(["lever", "change", "gain", "R", "step", "what it risks"], answer.levers.filter((l) => l.gain > 0.005).map((l) => ({ marked: l.name === v.lever, cells: [l.name, l.change, percent(l.gain, "+"), ratio(l.ratio), seconds(l.step_s), l.risk] })), { text: [1, 5] }));
  byId("trace-losses-figure").hidden = answer.losses.length === 0;
  fill("trace-losses", table(["file", "what", "count", "first at byte"], answer.losses.map((l) => ({ cells: [l.file.slice(-80), l.what, String(l.count), String(l.first_byte)] })), { text: [0, 1] }));
  for (const key of Object.keys(trace.whatIf)) delete trace.whatIf[key];
  if (trace.live) trace.wonder();
};

// What if: the measured step with something changed.
trace.wonder = () => {
  const inputs = Object.fromEntries(Object.entries(trace.whatIf).filter(([name]) => !(name in trace.factors)));
  const before = trace.ask({}, {});
  const after = trace.ask(inputs, trace.whatIf);
  if (after.error || before.error) {
    fill("whatif-result", el("p", { class: "hint" }, after.error ?? before.error));
    return;
  }
  const factors = Object.entries(trace.factors).map(([name, { start }]) => {
    const value = Number(trace.whatIf[name] ?? start);
    return { name, value, source: "given", text: name === "latency-added" ? seconds(value) : `${digits(value)}x` };
  });
  trace.fillForm([...after.inputs, { name: "at", value: after.verdict.workers, text: `K = ${after.verdict.workers}`, source: "given" }, ...factors]);
  const rows = [["measured", before.at], ["what if", after.at]];
  const longest = Math.max(...rows.map(([, r]) => r.step_s));
  fill("whatif-result", rows.map(([name, r]) => stepBar(`${name}: K = ${r.workers}`, `${seconds(r.step_s)}, R ${ratio(r.ratio)}, E(K) ${percent(r.efficiency)}`, rowParts(r), longest)));
  byId("whatif-result").dataset.ratio = rows[1][1].ratio;
};
