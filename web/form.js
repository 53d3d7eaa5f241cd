// SPDX-License-Identifier: MIT
// Forms from the core's own tables of keys: a box for every input, with a slider where it is asked most.
// Sliders hold round values only; the box takes anything that knee's flags take.

// Round values between two, as text that knee reads: powers of two and one and a half times them.
const counts = (low, high) => {
  const list = [];
  for (let v = 1; v <= high; v *= 2) list.push(v, 1.5 * v);
  return [...new Set(list.filter((v) => v >= low && v <= high && Number.isInteger(v)))].sort((a, b) => a - b).map(String);
};
const powers = (low, high) => counts(low, high).filter((v) => Number.isInteger(Math.log2(v)));
const steps = (low, high, step) => Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) => String(Number((low + i * step).toFixed(4))));
const inUnits = (list, unit) => list.map((v) => `${v}${unit}`);

const unitSizes = { k: 1e3, K: 1024, M: 1e6, G: 1e9, T: 1e12, m: 1e-3, u: 1e-6, n: 1e-9 };
const roughly = (text) => { // only to place a slider's thumb
  const [, number, unit] = /^\$?([\d.]+)\s*(%|[kKMGTmun]?)/.exec(text) ?? [];
  return Number(number) * (unit === "%" ? 0.01 : unitSizes[unit] ?? 1);
};

// Long lists by family: llama2-7b and llama3-8b stand under "llama".
const families = (list, name) => {
  const option = (c) => el("option", { value: c }, name === "model" || name === "gpu" ? niceName(c, list) : c), groups = new Map();
  if (list.length < 13) return list.map(option);
  for (const name of list) { const family = /^[a-z]+/i.exec(name)?.[0] ?? name; groups.set(family, [...(groups.get(family) ?? []), name]); }
  const alone = [...groups.values()].filter((names) => names.length < 2).flat();
  return [...[...groups].filter(([, names]) => names.length > 1).map(([family, names]) => el("optgroup", { label: name === "model" ? niceName(family) : family.toUpperCase() }, names.map(option))), alone.length ? el("optgroup", { label: "others" }, alone.map(option)) : null].filter(Boolean);
};

// On a phone the inputs are a sheet at the bottom of the screen, which this opens.
const sheetButton = (id, words = "Inputs") => el("button", { type: "button", class: "sheet", "aria-expanded": false, "aria-controls": id, onclick: (e) => e.currentTarget.setAttribute("aria-expanded", String(byId(id).classList.toggle("open"))) }, words);

// `spec`: {view, id, keys, chosen: [names], sliders: {name: [texts] or () => [texts]}, plain: [names], state, change}.
const makeForm = (spec) => {
  const { view, id, state } = spec;
  const controls = {};
  const known = Object.fromEntries(spec.keys.map((key) => [key.name, key]));
  const set = (name, value) => {
    if (value === "" || value == null) delete state[name];
    else state[name] = value;
    spec.change(name);
  };
  const row = (name, control, extra = {}) => {
    const help = el("p", { class: "help", id: `${id}-${name}-help` }, known[name].help.replace(/--([a-z-]+)/g, (_, key) => human[key] ?? key));
    const error = el("p", { class: "field-error", id: `${id}-${name}-error`, hidden: true });
    const source = el("span", { class: "source" });
    control.addEventListener("input", () => { control.dataset.typing = "1"; }); // not to be written over
    for (const kind of ["change", "blur"]) control.addEventListener(kind, () => { delete control.dataset.typing; }, true);
    control.setAttribute("aria-describedby", `${help.id} ${error.id}`);
    controls[name] = { control, error, source, ...extra };
    return el("div", { class: "row", "data-key": name }, el("label", { for: control.id }, labelOf(view, name)), source, control, extra.slider, error, help);
  };
  const choice = (name) => {
    const list = (spec.choices?.[name] ?? ((c) => c))(known[name].choices);
    const options = [el("option", { value: "" }, `(${otherwiseOf(known[name])})`), ...families(list, name)];
    return row(name, el("select", { id: `${id}-${name}`, onchange: (e) => set(name, e.target.value) }, options));
  };
  const toggle = (name) => row(name, el("input", { type: "checkbox", id: `${id}-${name}`, onchange: (e) => set(name, e.target.checked ? "1" : "") }));
  const text = (name) => row(name, el("input", { type: "text", id: `${id}-${name}`, autocomplete: "off", spellcheck: "false", onchange: (e) => set(name, e.target.value.trim()) }));
  const slider = (name, values) => {
    const control = el("input", { type: "text", id: `${id}-${name}`, autocomplete: "off", spellcheck: "false", inputmode: "text", onchange: (e) => set(name, e.target.value.trim()) });
    const range = el("input", { type: "range", min: 0, max: 1, step: 1, id: `${id}-${name}-slider`, "data-key": name, "aria-label": `${labelOf(view, name)}, slider`,
      oninput: (e) => { const value = controls[name].values[Number(e.target.value)]; control.value = value; set(name, value); } });
    const made = row(name, control, { slider: range, make: values, values: typeof values === "function" ? values() : values });
    range.max = controls[name].values.length - 1;
    return made;
  };
  const any = (key) => ({ choice, switch: toggle }[key.kind] ?? text)(key.name);
  const shown = new Set([...spec.chosen, ...Object.keys(spec.sliders), ...(spec.plain ?? []), ...(spec.left ?? [])]);
  const rest = {};
  for (const key of spec.keys) if (!shown.has(key.name)) (rest[key.group] ??= []).push(key);
  fill(id, spec.reset ? el("div", { class: "buttons spread" }, sheetButton(id), el("button", { type: "button", id: `${id}-reset`, onclick: spec.reset }, "Reset")) : null, spec.chosen.map(choice), (spec.plain ?? []).map((name) => any(known[name])), Object.entries(spec.sliders).map(([name, values]) => slider(name, values)),
    spec.flat ? [] : Object.entries(rest).map(([group, list]) => el("details", {}, el("summary", {}, `More: ${group.toLowerCase()}`), el("div", {}, list.map(any)))));
  byId(id).addEventListener("submit", (e) => e.preventDefault());

  const place = ({ control, slider: range, values }, value) => {
    let nearest = 0;
    values.forEach((v, i) => { if (Math.abs(Math.log((roughly(v) + 1e-12) / (value + 1e-12))) < Math.abs(Math.log((roughly(values[nearest]) + 1e-12) / (value + 1e-12)))) nearest = i; });
    if (document.activeElement !== range) range.value = nearest;
    range.setAttribute("aria-valuetext", control.value || control.placeholder);
  };
  return {
    // Shows what the core used: values that were not given are filled in from its answer.
    show: (inputs) => {
      const used = Object.fromEntries((inputs ?? []).map((input) => [input.name, input]));
      for (const [name, entry] of Object.entries(controls)) {
        const { control, source, error, make } = entry;
        const value = used[name];
        if (!error.hidden) {
          error.hidden = true;
          control.removeAttribute("aria-invalid");
        }
        if (name === "cluster") { // those that have the GPU
          const gpu = state.gpu ?? used.gpu?.text;
          for (const option of control.options) option.hidden = Boolean(gpu && core.clusters[option.value] && core.clusters[option.value] !== gpu);
          for (const group of control.querySelectorAll("optgroup")) group.hidden = [...group.children].every((option) => option.hidden);
        }
        const from = value && value.source !== "given" && !(name in state) ? value.source : "";
        if (source.textContent !== from) source.textContent = from;
        if (control.type === "checkbox") control.checked = name in state;
        else if (!control.dataset.typing && control.value !== (state[name] ?? "")) control.value = state[name] ?? "";
        const shownNow = value?.text ?? otherwiseOf(known[name]);
        if (control.type === "text" && control.placeholder !== shownNow) control.placeholder = shownNow;
        if (!entry.slider) continue;
        if (typeof make === "function") {
          entry.values = make();
          entry.slider.max = Math.max(0, entry.values.length - 1);
          entry.slider.disabled = entry.values.length < 2;
        }
        place(entry, name in state ? roughly(state[name]) : Number(value?.value ?? NaN));
      }
    },
    // An error at its field; false: it belongs to none of them.
    fail: (answer) => {
      const words = `${answer.where} ${answer.error} ${answer.hint}`;
      const named = [...words.matchAll(/--([a-z-]+)/g)].map((m) => m[1]).concat([...answer.error.matchAll(/\b[a-z-]+\b/g)].map((m) => m[0])).find((name) => controls[name]);
      for (const [name, { control, error }] of Object.entries(controls)) {
        const at = name === named;
        error.hidden = !at;
        error.textContent = at ? errorWords({ ...answer, where: "" }) : "";
        if (at) {
          control.setAttribute("aria-invalid", "true");
          const fold = control.closest("details");
          if (fold) fold.open = true;
        } else control.removeAttribute("aria-invalid");
      }
      return Boolean(named);
    },
  };
};
