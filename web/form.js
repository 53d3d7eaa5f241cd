// SPDX-License-Identifier: MIT
// Forms from the core's own tables of keys: sliders for what is asked most, text for all the rest.

// A slider's place (0..1000) and its value: straight, or by powers where values span decades.
const sliderValue = (spec, place) => {
  const share = place / 1000;
  const value = spec.log ? spec.min * (spec.max / spec.min) ** share : spec.min + (spec.max - spec.min) * share;
  return spec.whole ? String(Math.round(value)) : String(Number(value.toPrecision(4)));
};
const sliderPlace = (spec, value) => {
  const share = spec.log ? Math.log(Math.max(value, spec.min) / spec.min) / Math.log(spec.max / spec.min)
    : (value - spec.min) / (spec.max - spec.min);
  return Math.round(1000 * Math.min(1, Math.max(0, share)));
};

// `state` maps key -> text; `change` is called after it was changed.
const makeForm = (id, keys, sliders, chosen, state, change) => {
  const controls = {};
  const known = Object.fromEntries(keys.map((key) => [key.name, key]));
  const set = (name, value) => {
    if (value === "") delete state[name];
    else state[name] = value;
    change();
  };
  const row = (name, control, extra) => {
    const key = known[name];
    const output = el("output", { for: control.id });
    const source = el("span", { class: "source" });
    controls[name] = { control, output, source, ...extra };
    return el("div", { class: "row", title: key.help }, el("label", { for: control.id }, name), output, control, source);
  };
  const choice = (name) => {
    const control = el("select", { id: `${id}-${name}`, onchange: (e) => set(name, e.target.value) },
      el("option", { value: "" }, `(${known[name].otherwise})`), known[name].choices.map((c) => el("option", { value: c }, c)));
    return row(name, control, {});
  };
  const slider = (name, spec) => {
    const control = el("input", { type: "range", min: 0, max: 1000, id: `${id}-${name}`, "data-key": name,
      oninput: (e) => set(name, sliderValue(spec, Number(e.target.value))) });
    return row(name, control, { spec });
  };
  const text = (name) => {
    const control = el("input", { type: "text", id: `${id}-${name}`, placeholder: known[name].otherwise, autocomplete: "off",
      onchange: (e) => set(name, e.target.value.trim()) });
    return row(name, control, {});
  };
  const shown = new Set([...chosen, ...Object.keys(sliders)]);
  const rest = {};
  for (const key of keys) if (!shown.has(key.name)) (rest[key.group] ??= []).push(key);
  fill(id, chosen.map(choice), Object.entries(sliders).map(([name, spec]) => slider(name, spec)),
    id === "whatif-form" ? [] : Object.entries(rest).map(([group, list]) => el("details", {}, el("summary", {}, group),
      el("div", {}, list.map((key) => (key.kind === "choice" ? choice(key.name) : text(key.name)))))));
  byId(id).addEventListener("submit", (e) => e.preventDefault());
  // Shows what the core used: values that were not given are filled in from its answer.
  return (inputs) => {
    const used = Object.fromEntries((inputs ?? []).map((input) => [input.name, input]));
    for (const [name, { control, output, source, spec }] of Object.entries(controls)) {
      const value = used[name];
      output.textContent = value ? value.text : "";
      source.textContent = value && value.source !== "given" ? value.source : "";
      if (spec) {
        const number = name in state ? Number(state[name]) : Number(value?.value);
        if (Number.isFinite(number) && document.activeElement !== control) control.value = sliderPlace(spec, number);
        control.setAttribute("aria-valuetext", value?.text ?? "");
      } else if (document.activeElement !== control) {
        control.value = state[name] ?? "";
        if (control.type === "text" && value && !(name in state)) control.placeholder = value.text;
      }
    }
  };
};
