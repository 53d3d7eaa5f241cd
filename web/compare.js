// SPDX-License-Identifier: MIT
// Two settings side by side: what was kept as A beside what stands now.
const kept = {};

const keepAsA = (name) => {
  kept[name] = { settings: { ...settings[name] }, tiles: shownTiles[name] };
  showCompare(name);
};

const showCompare = (name) => {
  const a = kept[name], now = shownTiles[name] ?? [];
  const keep = el("button", { type: "button", id: `${name}-keep`, onclick: () => { keepAsA(name); byId(`${name}-keep`).focus(); } }, a ? "Keep this as A instead" : "Keep this as A");
  if (!a) return fill(`${name}-compare`, keep, el("span", { class: "hint" }, " then change something: both stand side by side."));
  const other = [...new Set([...Object.keys(a.settings), ...Object.keys(settings[name])])].filter((key) => a.settings[key] !== settings[name][key]);
  const change = (from, to) => (typeof from === "number" && typeof to === "number" && from ? percent(to / from - 1, "+") : "");
  fill(`${name}-compare`, keep,
    el("button", { type: "button", onclick: () => { replace(settings[name], a.settings); spread(name, "model"); refresh(); saveState(); } }, "Back to A"),
    el("button", { type: "button", onclick: () => { delete kept[name]; showCompare(name); } }, "Forget A"),
    scroll(table(["", "A", "now", "change"], [
      ...other.map((key) => ({ cells: [labelOf(name, key), a.settings[key] ?? "not given", settings[name][key] ?? "not given", ""] })),
      ...now.map(([value, words, options], i) => ({ marked: a.tiles[i]?.[0] !== value, cells: [words, a.tiles[i]?.[0] ?? "–", value, change(a.tiles[i]?.[2]?.raw, options?.raw)] })),
    ])));
};
