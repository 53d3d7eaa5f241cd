// SPDX-License-Identifier: MIT
// The page: views, their tabs, theme, and what happens first.
const views = ["predict", "axes", "plan", "trace", "replay", "scale", "answer"];
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
  byId("drop").hidden = calculators.includes(name);
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
    const shown = views.filter((v) => !byId(`tab-${v}`).hidden);
    selectView(shown[(shown.indexOf(view) + step + shown.length) % shown.length]);
    byId(`tab-${view}`).focus();
    saveState();
  });
};

const startTheme = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (on) => { document.documentElement.dataset.theme = on ? "dark" : "light"; };
  set(dark.matches);
  byId("theme").addEventListener("click", () => { set(document.documentElement.dataset.theme !== "dark"); refresh(); });
  let before = null; // paper is light
  addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; set(false); refresh(); document.querySelectorAll("details.verdict-fold").forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => { if (before) set(before === "dark"); refresh(); });
};

const main = async () => {
  startTheme();
  await core.start(await kneeUnpack(byId("core").textContent).arrayBuffer());
  core.keys = core.ask("keys");
  for (const name of calculators) replace(settings[name], defaults[name]);
  for (const part of [predict, axes, plan, trace, replayed]) part.start();
  if (core.keys.scale) scale.start();
  share.start();
  startDrop();
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
