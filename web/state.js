// SPDX-License-Identifier: MIT
// The settings of all calculators, the address bar, the way back, and settings as text: lines that a
// shell takes as well as this page does.
const settings = { predict: {}, axes: {}, plan: {} };
const defaults = {
  predict: { model: "llama3-8b", gpu: "h100", "global-batch": "512" },
  axes: { model: "llama3-8b", gpu: "h100", fsdp: "16", tp: "4" },
  plan: { model: "llama3-8b", gpu: "h100", gpus: "8..512x2", "global-batch": "512" },
};
const chosenLevers = new Set();
const calculators = Object.keys(settings);
const programs = { predict: "predict", axes: "tax", plan: "plan" }; // their commands

const replace = (object, other) => {
  for (const key of Object.keys(object)) delete object[key];
  Object.assign(object, other);
};

// One job: what is chosen in one calculator is chosen in all of them.
const spread = (from, name) => {
  if (!["model", "gpu", "cluster", "global-batch", "seq"].includes(name)) return;
  if (name === "gpu" && settings[from].gpu) delete settings[from].cluster; // its own network, not that of another GPU
  if (name === "cluster" && settings[from].cluster) delete settings[from].gpu;
  for (const view of calculators) {
    if (view === from) continue;
    for (const key of ["model", "gpu", "cluster", "seq", ...(view === "axes" || from === "axes" ? [] : ["global-batch"])]) {
      if (key === "model" && view !== "predict" && notTransformers.includes(settings[from].model)) continue;
      if (settings[from][key] != null) settings[view][key] = settings[from][key];
      else if (["gpu", "cluster"].includes(key) || key === name) delete settings[view][key];
    }
  }
};
const notTransformers = ["resnet50", "vgg16"];

// #axes?axes.tp=4&predict.overlap=0.7: the view, and what is not as it was at first.
const toAddress = () => {
  const query = new URLSearchParams();
  for (const name of calculators)
    for (const key of new Set([...Object.keys(defaults[name]), ...Object.keys(settings[name])]))
      if (settings[name][key] !== defaults[name][key]) query.set(`${name}.${key}`, settings[name][key] ?? "");
  for (const lever of chosenLevers) query.append("lever", lever);
  return `#${view}${[...query].length ? `?${query}` : ""}`;
};

const fromAddress = () => {
  const [name, query] = location.hash.slice(1).split("?");
  for (const calculator of calculators) replace(settings[calculator], defaults[calculator]);
  chosenLevers.clear();
  for (const [key, value] of new URLSearchParams(query ?? "")) {
    const [, calculator, input] = /^([a-z]+)\.(.+)$/.exec(key) ?? [null, name, key];
    if (key === "lever") chosenLevers.add(value);
    else if (!settings[calculator]) continue;
    else if (value) settings[calculator][input] = value;
    else delete settings[calculator][input];
  }
  return views.includes(name) && !byId(`tab-${name}`).hidden ? name : null;
};

// One entry of the browser's history for each change that stood for a moment: back undoes it.
const saveState = () => later("address", () => {
  const address = toAddress();
  if (address !== (location.hash || "#plan")) history.pushState(null, "", address);
}, 250);

const quoted = (value) => (/^[\w.,:%+/-]+$/.test(value) ? value : `'${value.replace(/'/g, "'\\''")}'`);
const commandOf = (name) => ["knee", programs[name], ...Object.entries(settings[name]).map(([key, value]) => `--${key} ${quoted(value)}`)].join(" ");
const toText = () => [...calculators.map(commandOf), ...[...chosenLevers].map((lever) => `# lever: ${lever}`)].join("\n");

// Takes what toText() gives, or any line of knee predict, tax or plan. -> what was wrong, or null
const fromText = (text) => {
  let taken = 0;
  const levers = [];
  for (const line of text.split("\n")) {
    const lever = /^#\s*lever:\s*(.+?)\s*$/.exec(line);
    if (lever) levers.push(lever[1]);
    const found = /(?:^|\s|\/)knee\s+(predict|tax|plan)\b(.*)/.exec(line);
    if (!found) continue;
    const words = [...found[2].matchAll(/'((?:[^']|'\\'')*)'|"([^"]*)"|(\S+)/g)].map((m) => (m[1]?.replace(/'\\''/g, "'") ?? m[2] ?? m[3]));
    const next = {};
    for (let i = 0; i < words.length; i++) {
      const [, key, value] = /^--([a-z0-9-]+)(?:=(.*))?$/.exec(words[i]) ?? [];
      if (!key) return `'${words[i]}' is not a setting`;
      next[key] = value ?? (words[i + 1] && !words[i + 1].startsWith("--") ? words[++i] : "1");
    }
    for (const format of ["json", "csv", "markdown", "brief", "ascii"]) delete next[format];
    replace(settings[calculators.find((name) => programs[name] === found[1])], next);
    taken++;
  }
  if (!taken) return "no line begins with knee predict, knee tax or knee plan";
  chosenLevers.clear();
  for (const lever of levers) chosenLevers.add(lever);
  return null;
};
