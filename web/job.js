// SPDX-License-Identifier: MIT
// One job for Plan, Why and Calculator: model, GPU, count, batch. The first box takes a whole line too: "llama3-70b 512 h200".
const job = { boxes: { model: "Model, or a line: llama3-70b 512 h200", gpu: "GPU", gpus: "GPUs", "global-batch": "Batch (sequences)" } };

job.start = () => {
  const known = Object.fromEntries(core.keys.predict.map((key) => [key.name, key.choices]));
  job.known = { model: known.model, gpu: known.gpu };
  const box = ([key, label]) => el("label", {}, label, el("input", { type: "text", id: `job-${key}`, list: job.known[key] && `job-${key}-names`, autocomplete: "off", spellcheck: "false" }));
  fill("job", Object.entries(job.boxes).map(box), Object.entries(job.known).map(([key, names]) => el("datalist", { id: `job-${key}-names` }, names.map((value) => el("option", { value }, niceName(value, names))))));
  byId("job").addEventListener("submit", (e) => e.preventDefault());
  byId("job").addEventListener("input", (e) => { e.target.dataset.typing = 1; }); // not to be written over
  byId("job").addEventListener("change", (e) => {
    delete e.target.dataset.typing;
    const key = e.target.id.slice(4), text = e.target.value.trim();
    for (const [name, value] of key === "model" ? job.read(text) : [[key, text]]) job.set(name, value);
    viewOf().update();
    saveState();
  });
};

// "llama3-70b on 512 h200, batch 1024" as keys and values. A word that is neither a GPU nor a number is the model.
job.read = (line) => {
  const found = [], names = [job.known.model, job.known.gpu].flatMap((all) => all.map((name) => [niceName(name, all).toLowerCase(), name])).sort(([a], [b]) => b.length - a.length);
  let batch = false;
  for (const word of names.reduce((words, [said, name]) => words.replace(new RegExp(`(?<![\\w.-])${said}(?![\\w.-])`), name), line.toLowerCase()).split(/[\s,]+/)) {
    if (/^(on|x|gpus?|with|batch|of)?$/.test(word)) { batch = word === "batch"; continue; }
    found.push([/^\d/.test(word) && !job.known.gpu.includes(word) ? (batch ? "global-batch" : "gpus") : job.known.gpu.includes(word) ? "gpu" : "model", word]);
    batch = false;
  }
  return found;
};

job.set = (key, value) => {
  const put = (name, at) => { if (value) settings[name][at] = value; else delete settings[name][at]; };
  if (key === "model") plan.files = null;
  if (key !== "gpus") {
    put(view, key);
    return spread(view, key);
  }
  put("plan", key);
  if (!value || /^\d+$/.test(value)) put("predict", "at");
};

// What stands in the boxes; Why has as many GPUs as its degrees make.
job.show = () => {
  const mine = settings[view], held = view === "axes";
  for (const key of Object.keys(job.boxes)) {
    const box = byId(`job-${key}`);
    box.disabled = held && key.startsWith("g") && key !== "gpu";
    const value = key !== "gpus" ? mine[key] : held ? axes.answer?.gpus : view === "predict" ? mine.at : mine.gpus;
    if (!box.dataset.typing) box.value = value ?? "";
    box.placeholder = key === "gpu" && mine.cluster ? mine.cluster : held && box.disabled ? "set by the degrees" : "chosen";
  }
};
