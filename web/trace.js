// SPDX-License-Identifier: MIT
// Traces: dropped on the page, or carried in it by a report.
const trace = { state: {}, files: [], runs: [] };

trace.start = () => {
  trace.form = makeForm({ view: "trace", id: "trace-form", keys: core.keys.trace, chosen: ["gpu", "cluster"], plain: ["price", "critical-batch"], sliders: {}, flat: true, state: trace.state,
    change: (name) => { if (name === "gpu" && trace.state.gpu) delete trace.state.cluster; if (name === "cluster" && trace.state.cluster) delete trace.state.gpu; trace.ask(); } });
  fill("trace-legend", timeline.legend());
};

trace.update = () => {
  byId("trace-empty").hidden = Boolean(trace.answer);
  if (trace.live && trace.answer) timeline.draw();
};

trace.clear = () => {
  core.x.kw_reset();
  Object.assign(trace, { files: [], runs: [], run: null, answer: null, live: false, other: false, pushed: 0 });
  byId("trace-result").hidden = byId("trace-runs").hidden = true;
  for (const id of ["trace-tiles", "trace-gaps", "trace-place"]) fill(id);
  byId("trace-verdict").replaceChildren();
  delete verdicts["trace-verdict"];
  replayed.clear?.();
  trace.update();
};

const isGzip = async (blob) => {
  const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  return head[0] === 0x1f && head[1] === 0x8b;
};

// A file under a name of the core's: "run/rank0.json.gz". -> what is wrong with it, or null
trace.push = async (file, name, progress) => {
  const packed = await isGzip(file);
  const open = () => (packed ? unpacked(file) : file.stream());
  const problem = await core.readTrace(name, open, file.size * (packed ? 15 : 1), progress); // a guess, for the bar only
  return problem?.error ? problem : null;
};

// Files add up: what was read before stays. -> words about those that could not be used
trace.read = async (files) => {
  const bar = byId("progress"), refused = [];
  bar.hidden = false;
  for (const [i, file] of files.entries()) {
    if (trace.files.some((f) => f.name === file.name && f.size === file.size)) {
      refused.push([file.name, "read already"]);
      continue;
    }
    const problem = await trace.push(file, `run/${file.name}`, (done, all) => { bar.value = (i + Math.min(1, done / all)) / files.length; });
    if (problem) refused.push([file.name, errorWords({ ...problem, where: "" })]);
    else trace.files.push({ name: file.name, size: file.size, file });
  }
  bar.hidden = true;
  return refused;
};

// At most three names, and how many more.
const unusedWords = (list) => {
  const reasons = Map.groupBy ? Map.groupBy(list, ([, why]) => why) : new Map(list.map((one) => [one[1], list.filter(([, why]) => why === one[1])]));
  return [...reasons].map(([why, all]) => `Not used: ${all.slice(0, 3).map(([name]) => fileName(name)).join(", ")}${all.length > 3 ? ` and ${all.length - 3} more` : ""} (${why}).`);
};

trace.open = async (files) => {
  selectView("trace");
  const start = performance.now(), before = trace.files.length;
  const refused = await trace.read(files);
  trace.took = (performance.now() - start) / 1000;
  trace.refused = refused;
  if (trace.files.length === before) {
    showFiles();
    document.body.dataset.ready = "refused";
    return showError("trace-verdict", { error: unusedWords(refused).join(" ").replace(/\.$/, ""), hint: "" });
  }
  trace.run = null;
  trace.runs = [];
  trace.ask();
};

// The names of the run that is shown; none where there is only one.
trace.words = () => trace.run?.files ?? (trace.other || trace.pushed ? trace.files.map((f) => `run/${f.name}`) : []);

trace.ask = () => {
  const answer = core.ask("trace", trace.state, trace.words());
  if (answer.error) {
    trace.form.fail(answer);
    showFiles();
    document.body.dataset.ready = "refused";
    return showError("trace-verdict", answer);
  }
  const unused = [...(trace.refused ?? []), ...((answer.runs?.[0] ?? answer).refused ?? []).map((f) => [f.file, f.why])];
  if (answer.runs) trace.showRuns(answer);
  else trace.show(answer, true);
  showFiles();
  byId("trace-gaps").prepend(...unusedWords(unused).map((words) => el("li", { class: "said" }, words)));
};

// ---- Several runs: one row each; one is opened, or two are compared ----

const runName = (run) => `${fileName(run.files[0])}${run.files.length > 1 ? ` and ${run.files.length - 1} more` : ""}`;

trace.showRuns = (answer) => {
  Object.assign(trace, { answer, live: false, run: null });
  trace.runs = answer.runs.map((one, i) => ({ answer: one, number: i, files: [...new Set(one.ranks.map((r) => r.file))] }));
  byId("trace-result").hidden = true;
  for (const id of ["trace-tiles", "trace-gaps", "trace-place"]) fill(id);
  showVerdict("trace-verdict", { do: `${trace.runs.length} runs: open one, or choose two to compare.` });
  trace.drawRuns();
  trace.update();
  document.body.dataset.ready = "runs";
};

trace.drawRuns = () => {
  byId("trace-runs").hidden = trace.runs.length < 2;
  if (trace.runs.length < 2) return;
  const chosen = new Set(), button = el("button", { type: "button", id: "runs-compare", disabled: true, onclick: () => trace.compare([...chosen].map((i) => trace.runs[i])) }, "Compare the two that are ticked");
  const tick = (i) => el("input", { type: "checkbox", "aria-label": `compare run ${i + 1}`, onchange: (e) => { chosen[e.target.checked ? "add" : "delete"](i); button.disabled = chosen.size !== 2; } });
  fill("trace-runs", el("figcaption", {}, `${trace.runs.length} runs`), scroll(table(["", "run", "ranks", "step", "compute", "exposed", "cause", "what to do"],
    trace.runs.map((run, i) => {
      const { verdict: v, ranks, steps } = run.answer, n = Math.max(1, new Set(steps.map((s) => s.step)).size), mean = (key) => ranks.reduce((sum, r) => sum + r[key], 0) / ranks.length / n;
      return { marked: run === trace.run, cells: [tick(i), el("button", { type: "button", class: "link", "data-run": i, onclick: () => trace.openRun(run) }, runName(run)), count(ranks.length), seconds(v.step_s), seconds(mean("compute_s")), seconds(mean("exposed_comm_s")), v.suspect ?? "–", v.do ?? v.headline ?? ""] };
    }), { text: [1, 6, 7] })), button);
};

trace.openRun = (run) => {
  trace.run = run;
  trace.ask();
  trace.drawRuns();
};

// The core compares what stands under two names: each run is read once more under its own.
trace.compare = async (pair) => {
  for (const run of pair) {
    if (run.pushed) continue;
    run.pushed = `r${trace.pushed = (trace.pushed ?? 0) + 1}`;
    for (const name of run.files) await trace.push(trace.files.find((f) => `run/${f.name}` === name).file, `${run.pushed}/${fileName(name)}`);
  }
  const answer = core.ask("diff", {}, pair.map((run) => run.pushed));
  if (answer.error) return saySomething([errorWords(answer)]);
  answers.show(answer, pair.map(runName));
};

// Leaves out some files; the others are read anew.
trace.without = async (names) => {
  const files = trace.files.filter((f) => !names.includes(f.name)).map((f) => f.file);
  trace.clear();
  if (files.length) await trace.open(files);
  else showFiles();
};

// `live`: the core holds the trace, so that it can be drawn and asked.
trace.show = (answer, live) => {
  Object.assign(trace, { answer, live });
  byId("trace-runs").hidden = trace.runs.length < 2;
  selectView("trace");
  showVerdict("trace-verdict", answer);
  const gaps = (answer.verdict.cannot_tell ?? []).filter((words) => !/^Large-batch breakdown/.test(words)).map(asFields);
  fill("trace-gaps", gaps.map((words) => el("li", {}, words)));
  byId("trace-result").hidden = false;
  for (const id of ["timeline", "trace-form"]) byId(id).closest("figure").hidden = !live;
  if (live) trace.form.show(answer.inputs);
  trace.draw(answer);
  document.body.dataset.ready = "trace";
  replayed.changed?.();
};

const ledgerParts = (r) => Object.fromEntries(labels.map(([json, key]) => [key, Number(r[json] ?? (json === "transfer_s" ? r.exposed_comm_s : 0))]));

trace.draw = (answer) => {
  const v = answer.verdict;
  setTiles("trace",
    [seconds(v.step_s), "a step", { id: "tile-trace-step", raw: v.step_s }],
    [v.suspect, "is the cause", { id: "tile-trace-suspect", raw: v.suspect }],
    [ratio(v.ratio), "R: exposed communication over compute", { id: "tile-trace-ratio", raw: v.ratio, flip: v.ratio > 1 }],
    [percent(v.efficiency), "E = 1 / (1 + R): left for compute", { id: "tile-trace-efficiency", raw: v.efficiency }],
    [percent(v.overlap), "of communication is hidden (overlap)", { id: "tile-trace-overlap", raw: v.overlap }],
    [dollars(v.stall_cost_per_day), "a day pays for waiting", { id: "tile-trace-stall", raw: v.stall_cost_per_day }]);
  if (trace.live) timeline.start(answer);
  const place = (rank) => (trace.live ? el("button", { type: "button", class: "link", "data-late": rank, onclick: () => timeline.showLate(rank) }, `Show where the others wait for rank ${rank}`) : null);
  fill("trace-place", trace.live && answer.ranks.some((r) => r.wait_s > 0) ? (v.late_ranks ?? []).slice(0, 3).map(place) : []);
  trace.drawRanks(answer);
  trace.drawCollectives(answer);
  const replays = answer.levers.some((l) => l.low_s != null);
  trace.whatIf.clear();
  byId("trace-whatif").hidden = true;
  const tick = (l) => (trace.live && !trace.packed && l.from === "replay" ? el("input", { type: "checkbox", "data-change": l.change, "aria-label": `what if: ${l.name}`, onchange: (e) => trace.switch(l.change, e.target.checked) }) : "");
  fill("trace-levers", scroll(table(["", "change", "setting", "work per second", "R", "step", ...(replays ? ["from", "to"] : []), "numerics", "what it risks"],
    answer.levers.filter((l) => l.gain > 0.005).sort((a, b) => (b.name === v.lever) - (a.name === v.lever) || a.changes_training - b.changes_training || b.gain - a.gain)
      .map((l) => ({ marked: l.name === v.lever, cells: [tick(l), l.name, l.change, percent(l.gain, "+"), ratio(l.ratio), seconds(l.step_s), ...(replays ? [seconds(l.low_s), seconds(l.high_s)] : []), l.numerics ?? (l.changes_training ? "changes" : "same"), l.risk] })), { text: [1, 2, replays ? 9 : 7] })),
  el("p", { class: "hint" }, replays ? "Each is the recorded step run again with this change; ticked ones are run together." : `By closed forms of the mean step: the best that can be.${answer.not_replayed ? ` Not replayed: ${answer.not_replayed}.` : ""}`));
  byId("trace-losses-figure").hidden = answer.losses.length === 0;
  fill("trace-losses", table(["file", "what", "count", "first at byte"], answer.losses.map((l) => ({ cells: [fileName(l.file), l.what, count(l.count), count(l.first_byte)] })), { text: [1], file: [0] }));
};

// Ticked changes, run together on the recorded timeline.
trace.whatIf = new Set();
trace.switch = (change, on) => {
  trace.whatIf[on ? "add" : "delete"](change);
  const keys = Object.fromEntries([...trace.whatIf].map((c) => { const [key, ...rest] = c.split(" "); return [key, rest.join(" ") || "1"]; }));
  const answer = trace.whatIf.size ? core.ask("replay", keys, trace.words()) : null;
  const box = byId("trace-whatif");
  box.hidden = !answer;
  if (!answer) return;
  if (answer.error) return fill(box, errorWords(answer));
  box.dataset.value = answer.step_s;
  fill(box, el("b", {}, `${seconds(answer.measured_step_s)} → ${sure(seconds, answer.step_s, answer.low_s, answer.high_s)}`), ` with ${[...trace.whatIf].join(" and ")}: ${percent(answer.gain, "+")} work per second`);
};

// One bar per rank, the latest on top; alike ranks stand for each other.
trace.drawRanks = (answer) => {
  const late = (rank) => answer.stragglers.find((s) => s.rank === rank)?.lateness_s ?? 0;
  const groups = answer.ranks.length <= aloneUpTo ? answer.ranks.map((first) => ({ first, rank: first.rank, others: 0 })) : groupRanks(answer.ranks, namedRanks(answer));
  const longest = Math.max(...answer.ranks.map((r) => r.window_s));
  groups.sort((a, b) => late(b.rank) - late(a.rank));
  fill("trace-bars", groups.slice(0, mostRows).map((g) => stepBar(`rank ${g.rank}${g.others ? ` and ${g.others} like it` : ""}`, `${seconds(g.first.window_s)}, R ${ratio(g.first.ratio)}`, ledgerParts(g.first), longest)), legend());
  const named = namedRanks(answer), order = [...new Set([...named, ...answer.steps.map((s) => s.rank)])].slice(0, Math.max(2, named.length));
  const list = answer.steps.filter((s) => order.includes(s.rank)).slice(0, 24);
  const most = Math.max(...list.map((s) => s.window_s));
  fill("trace-steps", list.map((s) => stepBar(`rank ${s.rank}, ${s.step < 0 ? "outside of steps" : `step ${s.step}`}`, seconds(s.window_s), ledgerParts(s), most)),
    list.length < answer.steps.length ? el("p", { class: "hint" }, `${list.length} of ${answer.steps.length} steps of all ranks shown.`) : null);
  const latest = Math.max(1e-12, ...answer.stragglers.map((s) => s.lateness_s));
  fill("trace-strip", answer.ranks.slice(0, 1024).map((r) => el("i", { class: late(r.rank) > latest / 2 ? "late" : "", style: `background:color-mix(in srgb, var(--wait) ${Math.round((100 * late(r.rank)) / latest)}%, var(--ground))`, title: `rank ${r.rank}: late by ${seconds(late(r.rank))}` }, String(r.rank))));
  fill("trace-stragglers", table(["rank", "last at", "late by", "because", "longer by"], answer.stragglers.slice(0, 16).map((s) => ({ cells: [trace.live ? el("button", { type: "button", class: "link", onclick: () => timeline.showLate(s.rank) }, String(s.rank)) : String(s.rank), `${count(s.last_count)} of ${count(answer.matching.collectives)}`, seconds(s.lateness_s), s.cause ?? "–", seconds(s.excess_s)] })), { text: [3] }));
  const rankTable = (list) => table(["rank", "window", "compute", "exposed", "wait", "transfer", "copy", "starved", "host-bound", "idle", "R", "overlap", "file"],
    list.map((r) => ({ marked: named.includes(r.rank), cells: [String(r.rank), seconds(r.window_s), seconds(r.compute_s), seconds(r.exposed_comm_s), seconds(r.wait_s), seconds(r.transfer_s), seconds(r.exposed_copy_s),
      seconds(r.starved_input_s), seconds(r.host_bound_s), seconds(r.idle_s), ratio(r.ratio), percent(r.overlap), fileName(r.file)] })), { file: [12] });
  const some = answer.ranks.length <= 32 ? answer.ranks : [...answer.ranks.filter((r) => named.includes(r.rank)), ...answer.ranks.filter((r) => !named.includes(r.rank)).slice(0, 16)];
  const all = answer.ranks.slice(0, 1024);
  fill("trace-ranks", rankTable(some), some.length < answer.ranks.length ? [el("p", { class: "hint" }, `${some.length} of ${count(answer.ranks.length)} ranks.`),
    el("details", { ontoggle: (e) => { if (e.target.open && !e.target.querySelector("table")) e.target.append(rankTable(all)); } }, el("summary", {}, `All ${count(all.length)}`))] : null);
};

trace.drawCollectives = (answer) => {
  const sized = answer.collectives.filter((c) => c.bytes > 0 && c.busbw_bytes_per_s > 0).sort((a, b) => a.bytes - b.bytes);
  const expected = sized.some((c) => c.expected_busbw_bytes_per_s > 0);
  byId("chart-collectives").closest("figure").hidden = !sized.length;
  if (sized.length)
    curve("chart-collectives", [sized.map((c) => c.bytes), sized.map((c) => c.busbw_bytes_per_s), ...(expected ? [sized.map((c) => c.expected_busbw_bytes_per_s)] : [])],
      [points("measured", "--transfer"), ...(expected ? [{ label: "expected of the cluster", color: "--compute", points: { show: true, size: 5 } }] : [])],
      { x: "size of a call", logX: 10, logY: true, formatX: bytes, formatY: perSecond });
  fill("trace-collectives", table(["collective", "NCCL", "axis", "group", "ranks", "size", "calls", "transfer", "expected", "wait", "bus bandwidth"],
    answer.collectives.slice(0, 40).map((c) => ({ cells: [c.name, [c.algorithm, c.protocol].filter(Boolean).join("/"), c.axis, (c.description || c.group).slice(0, 80), count(c.group_size), bytes(c.bytes), count(c.calls), seconds(c.transfer_s), seconds(c.expected_s), seconds(c.wait_s), perSecond(c.busbw_bytes_per_s)] })), { text: [1, 2, 3] }),
  answer.collectives.length && !sized.length ? el("p", { class: "hint" }, "The trace does not say how large its collectives are.") : null,
  answer.collectives.length > 40 ? el("p", { class: "hint" }, `40 of ${answer.collectives.length} kinds of calls shown.`) : null);
};
