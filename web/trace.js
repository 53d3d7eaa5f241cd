// SPDX-License-Identifier: MIT
// Traces: dropped on the page, or carried in it by a report.
const trace = { state: {}, files: [] };

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
  Object.assign(trace, { files: [], answer: null, live: false, other: false });
  byId("trace-result").hidden = true;
  fill("trace-tiles");
  fill("trace-gaps");
  byId("trace-verdict").replaceChildren();
  delete verdicts["trace-verdict"];
  replayed.clear?.();
  trace.update();
};

const isGzip = async (blob) => {
  const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  return head[0] === 0x1f && head[1] === 0x8b;
};

// Files add up: what was read before stays. -> words about those that could not be used
trace.read = async (files) => {
  const bar = byId("progress"), refused = [];
  bar.hidden = false;
  for (const [i, file] of files.entries()) {
    if (trace.files.some((f) => f.name === file.name && f.size === file.size)) {
      refused.push(`${file.name} was read already`);
      continue;
    }
    let stream = file.stream(), size = file.size, problem;
    if (await isGzip(file)) {
      stream = stream.pipeThrough(new DecompressionStream("gzip"));
      size *= 15; // a guess, for the bar only
    }
    try {
      problem = await core.readTrace(`run/${file.name}`, stream, size, (done, all) => { bar.value = (i + Math.min(1, done / all)) / files.length; });
    } catch (error) {
      problem = core.x.kw_push_end() ? { error: String(error) } : null; // damaged gzip: what came before is kept
    }
    if (problem?.error) refused.push(errorWords({ ...problem, where: file.name }));
    else trace.files.push({ name: file.name, size: file.size });
  }
  bar.hidden = true;
  return refused;
};

trace.open = async (files) => {
  selectView("trace");
  const start = performance.now(), before = trace.files.length;
  const refused = await trace.read(files);
  trace.took = (performance.now() - start) / 1000;
  showFiles();
  if (trace.files.length === before) {
    document.body.dataset.ready = "refused";
    return showError("trace-verdict", { error: refused.join("; "), hint: "" });
  }
  trace.ask(refused);
};

trace.ask = (refused = []) => {
  const answer = core.ask("trace", trace.state, trace.other ? ["run"] : []);
  if (answer.error) {
    const hosts = /no GPU work/.test(answer.error); // the program reads such a file a second time, in another way
    trace.form.fail(answer);
    document.body.dataset.ready = "refused";
    return showError("trace-verdict", hosts ? { ...answer, hint: `if the job has no GPUs, knee trace ${trace.files.map((f) => f.name).join(" ")} reads it; else ${answer.hint}` } : answer);
  }
  trace.show(answer, true);
  byId("trace-gaps").prepend(...refused.map((words) => el("li", { class: "said" }, words)));
};

// `live`: the core holds the trace, so that it can be drawn and asked.
trace.show = (answer, live) => {
  Object.assign(trace, { answer, live });
  selectView("trace");
  showVerdict("trace-verdict", answer);
  const gaps = answer.verdict.cannot_tell.map((words) => words.replace(/--([a-z-]+)/g, (_, key) => (human[key] ?? key).toLowerCase()));
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
  trace.drawRanks(answer);
  trace.drawCollectives(answer);
  const replays = answer.levers.some((l) => l.low_s != null);
  fill("trace-levers", scroll(table(["lever", "change", "work per second", "R", "step", ...(replays ? ["from", "to"] : []), "training", "what it risks"],
    answer.levers.filter((l) => l.gain > 0.005).sort((a, b) => (b.name === v.lever) - (a.name === v.lever) || a.changes_training - b.changes_training || b.gain - a.gain)
      .map((l) => ({ marked: l.name === v.lever, cells: [l.name, l.change, percent(l.gain, "+"), ratio(l.ratio), seconds(l.step_s), ...(replays ? [seconds(l.low_s), seconds(l.high_s)] : []), l.changes_training ? "changes" : "stays", l.risk] })), { text: [1, replays ? 8 : 6] })),
  el("p", { class: "hint" }, replays ? "Each from the timeline; Replay combines them." : `By closed forms of the mean step: the best that can be.${answer.not_replayed ? ` Not replayed: ${answer.not_replayed}.` : ""}`));
  byId("trace-losses-figure").hidden = answer.losses.length === 0;
  fill("trace-losses", table(["file", "what", "count", "first at byte"], answer.losses.map((l) => ({ cells: [fileName(l.file), l.what, count(l.count), count(l.first_byte)] })), { text: [1], file: [0] }));
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
  fill("trace-stragglers", table(["rank", "last at", "late by", "because", "longer by"], answer.stragglers.slice(0, 16).map((s) => ({ cells: [String(s.rank), `${count(s.last_count)} of ${count(answer.matching.collectives)}`, seconds(s.lateness_s), s.cause ?? "–", seconds(s.excess_s)] })), { text: [3] }));
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
