// SPDX-License-Identifier: MIT
// What if? The recorded job run again with something changed: the answer comes from the timeline.
const replayed = { state: {} };

// What can be switched, in the order in which people ask; `values` are offered, anything else can be typed.
replayed.switches = [
  ["wire", "Gradients travel as", ["bf16", "fp16", "fp8", "int8", "powersgd:4", "topk:0.01"]], ["overlap", "Gradients travel as soon as they are there"], ["even", "Late ranks are no later than the others"],
  ["no-host-gaps", "The host keeps ahead (CUDA graphs)"], ["loader-ahead", "Batches are loaded while the GPU computes"], ["pinned", "Batches come from pinned memory, without waiting"],
  ["bucket", "Size of a bucket of gradients", ["10MB", "25MB", "50MB", "100MB", "200MB"]], ["network", "Network", ["2x", "4x", "0.5x", "free"]], ["accumulate", "Micro-batches per exchange", ["2", "4", "8"]],
  ["batch", "Batch of each GPU", ["2x", "4x", "0.5x"]], ["sync-every", "Steps between exchanges", ["4", "8", "16", "100"]], ["workers", "GPUs", ["2", "4", "8", "16", "32", "64", "128", "256", "512"]], ["cluster", "Collectives as on the cluster", null],
  ["keep-params", "FSDP keeps parameters until the backward pass"], ["prefetch", "FSDP gathers so many modules ahead", ["1", "2", "3"]], ["without", "Ranks left out", []],
];

replayed.start = () => {
  const known = Object.fromEntries(core.keys.replay.map((key) => [key.name, key]));
  const set = (name, value) => {
    if (value) replayed.state[name] = value;
    else delete replayed.state[name];
    replayed.ask();
  };
  const row = ([name, words, values]) => {
    if (!known[name]) return null;
    const id = `replay-${name}`;
    const offered = values === null ? core.keys.predict.find((key) => key.name === "cluster").choices : values;
    const control = offered ? el("input", { type: "text", id, list: `${id}-list`, placeholder: "as recorded", autocomplete: "off", onchange: (e) => set(name, e.target.value.trim()) })
      : el("input", { type: "checkbox", id, onchange: (e) => set(name, e.target.checked ? "1" : "") });
    return el("div", { class: `row${offered ? "" : " tick"}`, "data-key": name }, el("label", { for: id }, words), control, offered ? el("datalist", { id: `${id}-list` }, offered.map((v) => el("option", { value: v }))) : null,
      el("p", { class: "field-error", id: `${id}-error`, hidden: true }));
  };
  fill("replay-form", el("div", { class: "buttons spread" }, sheetButton("replay-form", "Changes"), el("button", { type: "button", id: "replay-reset", onclick: () => { replace(replayed.state, {}); replayed.ask(); } }, "As recorded")), replayed.switches.map(row));
  byId("replay-form").addEventListener("submit", (e) => e.preventDefault());
};

replayed.clear = () => { replayed.answer = replayed.standard = null; };
replayed.changed = () => { replayed.clear(); if (view === "replay") replayed.update(); };

replayed.update = () => {
  const can = Boolean(trace.live && trace.answer && !trace.packed);
  byId("replay-empty").hidden = can;
  byId("replay-result").hidden = !can;
  if (!can) return fill("replay-empty", el("p", {}, trace.packed ? "This report carries what was found, not what the host did. Drop the traces themselves here, or ask the program: knee replay FILES." : "Drop profiler traces of all ranks (PyTorch .json or .json.gz). Then switch changes on: the recorded step is run again with them."));
  if (!replayed.answer) replayed.ask();
};

replayed.ask = () => {
  document.body.dataset.replay = "busy";
  const words = trace.words();
  replayed.standard ??= core.ask("replay", {}, words);
  const some = Object.keys(replayed.state).length > 0;
  const answer = some ? core.ask("replay", replayed.state, words) : replayed.standard;
  for (const [name] of replayed.switches) {
    const control = byId(`replay-${name}`), error = byId(`replay-${name}-error`);
    if (!control) continue;
    if (control.type === "checkbox") control.checked = name in replayed.state;
    else if (document.activeElement !== control) control.value = replayed.state[name] ?? "";
    const refused = answer.refused?.find((r) => r.name.split(" ")[0] === name)?.reason ?? (answer.error && `${answer.where} ${answer.error}`.includes(name) ? errorWords({ ...answer, where: "" }) : "");
    error.hidden = !refused;
    error.textContent = refused;
    error.className = name in replayed.state ? "field-error" : "hint"; // asked for, or only not to be had
  }
  document.body.dataset.replay = "done";
  if (answer.error) return showError("replay-verdict", answer);
  replayed.answer = answer;
  showVerdict("replay-verdict", answer.answer ? answer : { do: answer.sentence, formal: answer.trust });
  replayed.draw(answer, some);
};

replayed.draw = (a, some) => {
  byId("replay-tiles").hidden = !some; // nothing is switched on: nothing to say
  setTiles("replay", [seconds(a.measured_step_s), "a step, recorded", { id: "tile-replay-measured", raw: a.measured_step_s }],
    [seconds(a.step_s), some ? "with all that is switched on" : "run again unchanged", { id: "tile-replay-step", raw: a.step_s }],
    [`${seconds(a.low_s)} to ${seconds(a.high_s)}`, "is where it would lie", { id: "tile-replay-band", raw: a.low_s }],
    [percent(a.gain, "+"), "work per second", { id: "tile-replay-gain", raw: a.gain }],
    [ratio(a.ratio), `R, from ${ratio(a.ratio_before)}`, { id: "tile-replay-ratio", raw: a.ratio }]);
  const rows = [{ name: "recorded", step_s: a.measured_step_s }, ...(some && !a.refused.some((r) => r.name === "all together") && a.changes.length > 1 ? [{ ...a, name: "all that is switched on" }] : []), ...(some ? a : replayed.standard).changes];
  const most = Math.min(1.2 * a.measured_step_s, Math.max(...rows.map((r) => r.high_s ?? r.step_s))); // one slow row must not shrink the others
  fill("replay-bars", rows.map((r) => bandBar(r, most)), el("p", { class: "hint" }, "The bar is the step; the line over it is where it would lie."));
  fill("replay-table", replayTable(a));
};

const bandBar = (r, most) => el("div", {}, el("div", { class: "bar-name" }, el("span", {}, r.words ?? r.name), el("span", {}, `${seconds(r.step_s)}${r.gain != null ? `, ${percent(r.gain, "+")}` : ""}`)),
  el("div", { class: "bar thin", role: "img", "aria-label": `${r.words ?? r.name}: ${seconds(r.step_s)}${r.low_s != null ? `, ${seconds(r.low_s)} to ${seconds(r.high_s)}` : ""}` },
    el("i", { class: r.training_changes ? "l-copy" : "l-compute", style: `width:${Math.min(100, (100 * r.step_s) / most)}%` }),
    r.low_s != null && r.high_s <= most ? el("s", { style: `left:${(100 * r.low_s) / most}%;width:${(100 * (r.high_s - r.low_s)) / most}%` }) : null));

const replayTable = (a) => [scroll(table(["change", "step", "from", "to", "work per second", "R", "most of it", "numerics"],
  a.changes.map((r) => ({ cells: [r.words ?? r.name, seconds(r.step_s), seconds(r.low_s), seconds(r.high_s), percent(r.gain, "+"), ratio(r.ratio), r.binds, r.bound ? "a bound" : r.training_changes ? "changes optimizer" : r.side_effect === "rounding" ? "rounding" : "same"] })), { text: [0] })),
a.refused.length ? el("ul", { class: "gaps" }, a.refused.map((r) => el("li", {}, `${r.name}: ${r.reason}`))) : null];
