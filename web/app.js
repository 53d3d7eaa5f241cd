// SPDX-License-Identifier: MIT
// The page: views, the address bar, the report that it may carry.
const views = ["predict", "axes", "trace", "answer"];
let view = "predict";

const selectView = (name) => {
  view = name;
  for (const v of views) {
    byId(`view-${v}`).hidden = v !== name;
    byId(`tab-${v}`).setAttribute("aria-selected", String(v === name));
    byId(`tab-${v}`).tabIndex = v === name ? 0 : -1;
  }
  ({ predict, axes, answer: answers }[name]?.update ?? trace.update)();
};

// #predict?model=llama2-7b&overlap=0.7&lever=overlap: what is not default, and nothing of a trace
const saveState = () => later("address", () => {
  const state = view === "axes" ? axes.state : predict.state;
  const query = new URLSearchParams(state);
  if (view === "predict") for (const lever of predict.levers) query.append("lever", lever);
  history.replaceState(null, "", `#${view}?${query}`);
});

const restoreState = () => {
  const [name, query] = location.hash.slice(1).split("?");
  if (query != null) {
    const state = name === "axes" ? axes.state : predict.state;
    for (const key of Object.keys(state)) delete state[key];
    predict.levers.clear();
    for (const [key, value] of new URLSearchParams(query)) {
      if (key === "lever") predict.levers.add(value);
      else state[key] = value;
    }
  }
  return ["predict", "axes", "trace"].includes(name) ? name : null;
};

// What the user gave to the command that wrote a report.
const given = (answer) => Object.fromEntries((answer.inputs ?? []).filter((input) => ["given", "file"].includes(input.source))
  .map((input) => [input.name, String(input.value)]));

// An answer that knee printed, in the view it belongs to: with sliders where the core can go on from it.
const showAnswer = (answer) => {
  const [, name] = /^knee\.([a-z]+)\//.exec(answer.schema) ?? [];
  const state = { predict: predict.state, tax: axes.state }[name];
  if (name === "trace") return trace.show(answer, false);
  if (!state) return answers.show(answer);
  for (const key of Object.keys(state)) delete state[key];
  Object.assign(state, given(answer));
  selectView(name === "tax" ? "axes" : name);
};

// A report carries an answer of knee, and for a trace the ranks, packed.
const openReport = async () => {
  const text = byId("report").textContent;
  if (!text.startsWith("{")) return selectView("predict");
  const report = JSON.parse(text);
  document.title = `knee ${report.view}: report`;
  if (!report.trace) return showAnswer(report.answer);
  const packed = Uint8Array.from(atob(report.trace), (c) => c.charCodeAt(0));
  trace.state = given(report.answer);
  await trace.open([new File([packed], "trace.json")]);
  report.answer.ranks.forEach((rank, i) => { trace.answer.ranks[i].file = rank.file; });
  trace.show(trace.answer, true);
};

const main = async () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  await core.load();
  predict.start();
  axes.start();
  trace.start();
  Object.assign(predict.state, { model: "llama2-7b", cluster: "p4de", "global-batch": "512", overlap: "0.5" });
  Object.assign(axes.state, { model: "llama3-70b", gpu: "h100", fsdp: "16", tp: "8" });
  const wanted = location.hash.length > 1 ? restoreState() : null;
  if (wanted) selectView(wanted);
  else await openReport();
  for (const v of views) byId(`tab-${v}`).addEventListener("click", () => { selectView(v); if (v === "predict" || v === "axes") saveState(); });
  document.querySelector("nav").addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const shown = views.filter((v) => !byId(`tab-${v}`).hidden);
    selectView(shown[(shown.indexOf(view) + step + shown.length) % shown.length]);
    byId(`tab-${view}`).focus();
  });
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    selectView(view);
  });
  byId("copy-link").addEventListener("click", () => {
    saveState();
    later("copy", () => navigator.clipboard?.writeText(location.href).catch(() => {}));
  });
  addEventListener("hashchange", () => { const name = restoreState(); if (name) selectView(name); });
  addEventListener("resize", () => selectView(view));
  document.body.dataset.ready ??= "page";
};

main().catch((error) => {
  byId("predict-verdict").textContent = `This browser cannot run the page: ${error.message}`;
  byId("view-predict").hidden = false;
});
