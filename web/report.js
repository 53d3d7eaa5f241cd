// SPDX-License-Identifier: MIT
// A page that knee wrote: what it is about, when, of what, by which command; and no place to drop files.
const report = {};

// What the user gave to the command that wrote a report.
const given = (answer) => Object.fromEntries((answer.inputs ?? []).filter((input) => ["given", "file"].includes(input.source))
  .map((input) => [input.name, String(input.value)]));

const titles = { predict: "Prediction", tax: "Cost of parallel axes", plan: "Plan", trace: "Recorded run", replay: "Recorded run, with changes", scale: "Scaling of a job", collective: "Collectives", fit: "Cluster from logs",
  validate: "Predicted against measured runs", lab: "Training lab", diff: "Two recordings compared", doctor: "Check of a cluster", hang: "Stuck or crashed job", bench: "Collectives, measured" };

const subjectOf = (answer) => {
  const inputs = Object.fromEntries([...(answer.inputs ?? []), ...(answer.model?.inputs ?? []), ...(answer.platform?.inputs ?? [])].map((i) => [i.name, i]));
  const files = [...new Set([...(answer.ranks ?? []).map?.((r) => r.file) ?? [], ...(answer.points ?? []).map((p) => p.source), ...(answer.logs ?? []).map((l) => l.file)].filter(Boolean))];
  const gpus = [...new Set([inputs.gpu?.text, ...(Array.isArray(answer.ranks) ? answer.ranks.map((r) => r.gpu) : [])].filter((g) => g && g !== "-"))];
  return { model: inputs.model?.value, cluster: inputs.cluster?.value ?? (typeof answer.cluster === "string" ? answer.cluster : null), gpus, files, ranks: Array.isArray(answer.ranks) ? answer.ranks.length : answer.ranks };
};

// Files of one folder by the folder.
const filesWords = (files) => {
  const folders = [...new Set(files.map((f) => f.slice(0, f.lastIndexOf("/") + 1)))], names = files.map(fileName);
  const list = names.length > 4 ? `${names.slice(0, 3).join(", ")} … ${names.at(-1)}: ${names.length} files` : names.join(", ");
  return files.length ? `${list}${folders.length === 1 && folders[0] ? ` in ${folders[0]}` : ""}` : "";
};

report.head = (carried) => {
  const { model, cluster, gpus, files, ranks } = subjectOf(carried.answer);
  const title = `${titles[carried.view] ?? carried.view}${model ? `: ${model}` : ranks ? `: ${ranks} rank${ranks === 1 ? "" : "s"}` : ""}`;
  document.title = `${title} (knee)`;
  document.body.classList.add("report");
  const facts = [["Made", carried.date?.replace("T", " ").replace("Z", " UTC")], ["GPU", gpus.join(", ")], ["Cluster", cluster], ["Files", filesWords(files)], ["Command", carried.command], ["Version", carried.version && `knee ${carried.version}`]];
  fill("report-head", el("h2", {}, title), el("dl", {}, facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, name === "Command" ? el("code", {}, value) : value)])));
  byId("report-head").hidden = false;
};

// An answer that knee printed, in the view it belongs to: with sliders where the core can go on from it.
const showAnswer = (answer, name) => {
  const [, command] = /^knee\.([a-z]+)\//.exec(answer.schema) ?? [];
  const calculator = { predict: "predict", tax: "axes" }[command];
  if (command === "trace") { trace.packed = true; return trace.show(answer, false); }
  if (!calculator) return answers.show(answer, name ? [name] : null);
  replace(settings[calculator], given(answer));
  selectView(calculator);
};

// A report carries an answer of knee, and for a trace the ranks, packed. The answer is what is shown: the
// ranks are only drawn from.
report.open = async () => {
  const text = byId("report").textContent;
  if (!text.startsWith("{")) return selectView("plan");
  const carried = JSON.parse(text);
  report.head(carried);
  report.answer = carried.answer;
  if (!carried.trace) return showAnswer(carried.answer);
  const packed = Uint8Array.from(atob(carried.trace), (c) => c.charCodeAt(0));
  replace(trace.state, given(carried.answer));
  await trace.read([new File([packed], "trace.json")]);
  report.drawn = core.ask("trace", trace.state); // its account is what the timeline is drawn from
  trace.packed = true;
  trace.show(carried.answer, !report.drawn.error && report.drawn.ranks.length === carried.answer.ranks.length);
};
