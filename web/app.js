// SPDX-License-Identifier: MIT
// The page: views, their tabs, theme, and what happens first.
const views = ["plan", "axes", "predict", "trace", "replay", "scale", "answer"];
const viewOf = () => ({ predict, axes, plan, trace, replay: replayed, scale, answer: answers }[view]);
let view = "predict";

const selectView = (name) => {
  newLayout();
  const other = view !== name;
  view = name;
  for (const v of views) {
    byId(`view-${v}`).hidden = v !== name;
    byId(`tab-${v}`).setAttribute("aria-selected", String(v === name));
    byId(`tab-${v}`).tabIndex = v === name ? 0 : -1;
  }
  document.body.dataset.group = byId(`tab-${name}`).dataset.in ?? name;
  byId("drop").hidden = calculators.includes(name) || name === "answer";
  if (other && calculators.includes(name)) saySomething([]), byId("drop").hidden = true;
  showFiles();
  viewOf().update();
};

// For who looks from outside (tests, a console): the answer that is shown.
globalThis.knee = { get view() { return view; }, get answer() { return viewOf().answer ?? null; }, get levers() { return [...chosenLevers]; } };

const refresh = () => { newLayout(); viewOf().update(); };

const resetView = (name) => {
  replace(settings[name], defaults[name]);
  for (const key of ["model", "seq", "global-batch"]) spread(name, key); // one job
  if (name === "predict") chosenLevers.clear();
  refresh();
  saveState();
};

const startTabs = () => {
  for (const v of views) byId(`tab-${v}`).addEventListener("click", () => { selectView(v); saveState(); });
  document.querySelector("nav").addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const shown = views.filter((v) => byId(`tab-${v}`).offsetParent);
    selectView(shown[(shown.indexOf(view) + step + shown.length) % shown.length]);
    byId(`tab-${view}`).focus();
    saveState();
  });
};

// Paper has no inputs beside the answer: what was asked, and when, stands on top.
const printHead = () => {
  const inputs = settings[view], files = view === "scale" ? scale.files : ["trace", "replay"].includes(view) ? trace.files : [];
  const facts = inputs ? Object.entries(inputs).map(([key, value]) => [labelOf(view, key), value]) : files.length ? [["Files", filesWords(files.map((f) => f.name))]] : [];
  byId("print-head").hidden = document.body.classList.contains("report");
  fill("print-head", el("h2", {}, `knee ${view}, ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC`), el("dl", {}, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
};

const startTheme = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (on) => { document.documentElement.dataset.theme = on ? "dark" : "light"; };
  set(dark.matches);
  byId("theme").addEventListener("click", () => { set(document.documentElement.dataset.theme !== "dark"); refresh(); });
  let before = null; // paper is light
  addEventListener("beforeprint", printHead);
  addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; set(false); refresh(); document.querySelectorAll("details.verdict-fold").forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => { if (before) set(before === "dark"); refresh(); });
};

// A failure in a script is shown, with what it means for the rest of the page.
const startErrors = () => {
  const say = (error) => {
    byId("page-error").textContent = `This page failed: ${error?.message ?? error}. What is shown below may not be the answer to what you asked last. The knee command answers the same question; please report this with the page's version ${core.keys?.version ?? ""}.`;
    byId("page-error").hidden = false;
    byId("progress").hidden = true;
    document.body.dataset.ready = "failed";
  };
  addEventListener("error", (e) => say(e.error ?? e.message));
  addEventListener("unhandledrejection", (e) => say(e.reason));
};

const main = async () => {
  startErrors();
  byId("static")?.remove();
  startTheme();
  await core.start(kneeCore(kneeBytes(byId("core").textContent)));
  const options = core.ask("keys");
  core.keys = { version: options.version, ...Object.fromEntries(options.commands.map((c) => [c.name, c.options])) };
  core.clusters = core.ask("clusters");
  for (const name of calculators) replace(settings[name], defaults[name]);
  for (const part of [job, predict, axes, plan, trace, replayed]) part.start();
  if (core.keys.scale) scale.start();
  share.start();
  startDrop();
  startExamples();
  startTabs();
  const wanted = location.hash.length > 1 ? fromAddress() : null;
  if (wanted) selectView(wanted);
  else await report.open();
  addEventListener("popstate", () => selectView(fromAddress() ?? view));
  let wide = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; refresh(); } });
  document.body.dataset.ready ??= "page";
};

main().catch((error) => {
  byId("view-predict").hidden = false;
  byId("predict-verdict").textContent = `This browser cannot run the page: ${error.message}`;
});
