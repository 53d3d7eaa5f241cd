// SPDX-License-Identifier: MIT
// Dropped files: their kinds, and what reads them. For files that only the program reads, the page names the command.
const sqlite = "knee report FILE writes an HTML page";
const fileKinds = [
  ["answer", (head) => /^\s*\{\s*"schema":\s*"knee\./.test(head)],
  ["sqlite", (head) => head.startsWith("SQLite format 3"), "an Nsight or rocpd database", sqlite],
  ["nsys-rep", (head, name) => /\.(nsys-rep|qdrep|ncu-rep)$/.test(name), "a report of Nsight", "nsys export -t sqlite FILE, then knee report on what it writes"],
  ["xplane", (head, name) => /\.xplane\.pb$|\.pb$/.test(name), "a profile of XLA", "TensorBoard's trace viewer saves it as .json.gz, which this page reads"],
  ["zip", (head, name) => /^PK\x03\x04|\.(zip|tar|tgz)$/.test(name), "an archive", "unpack it and drop what is in it"],
  ["training", (head) => /"log_history"/.test(head)],
  ["hf", (head) => /"(hidden_size|n_embd|num_hidden_layers|architectures)"/.test(head) && /^\s*\{/.test(head)],
  ["deepspeed", (head) => /"(zero_optimization|train_micro_batch_size_per_gpu|train_batch_size)"/.test(head) && /^\s*\{/.test(head)],
  ["operations", (head) => /"cat":\s*"(forward|backward)-compute"/.test(head), "a log of a pipeline's operations", "knee replay FILE names the cause of its slowdown"],
  ["trace", (head) => /"traceEvents"|"ph"\s*:\s*"[XBMi]"|"displayTimeUnit"/.test(head)],
  ["hang", (head) => /Watchdog caught collective|raised the following async exception|flight recorder dump signal|last_enqueued_collective|"collective_seq_id"/i.test(head) && !/elapsed time per iteration|samples\/sec|tokens\/s|"loss"|global_step|\bloss[:=]/i.test(head)],
  ["log", (head) => /busbw|algbw|OSU MPI|"schema":\s*"nccl/.test(head)],
  ["cluster", (head, name) => /^\s*<system|<\?xml/.test(head) || (/\.ya?ml$/.test(name) && /^\s*(levels|links|gpus-per-node|node)\s*:/m.test(head)), "a cluster", "knee cluster FILE shows it, --cluster FILE uses it in any command"],
  ["job", (head, name) => /\.ya?ml$/.test(name), "a job file", "knee report FILE writes an HTML page"],
  ["runs", (head, name) => /\.csv$/.test(name) && /(^|,)(step_time_s|step_s|measured|tokens_per_s|workers|n_gpus|gpus)/.test(head), "a table of runs", "knee scale FILE --html page.html, or knee validate FILE --html page.html"],
  ["csv", (head, name) => /\.csv$/.test(name), "a table", "knee fit FILE reads measured collectives, knee validate FILE reads runs"],
  ["host", (head) => /NCCL (INFO|WARN|version)|\bGPU0\b[^\n]*\bGPU1\b[^\n]*(CPU Affinity|NIC)/.test(head) && !/iteration|elapsed time per/i.test(head)],
  ["maybe", (head) => /(iteration|step|loss|it\/s|tokens|throughput|samples|epoch|global_step)/i.test(head)],
  ["trace", (head, name) => /\.json(\.gz)?$/.test(name)],
];
// Of what is not there: a build of the page may leave a reader to the program.
const readers = { training: () => core.keys.scale, hf: () => core.keys.plan, deepspeed: () => core.keys.plan };

const headOf = async (file) => {
  try {
    const part = file.slice(0, 262144);
    const stream = (await isGzip(file)) ? part.stream().pipeThrough(new DecompressionStream("gzip")) : part.stream();
    const reader = stream.getReader();
    let text = "";
    const decoder = new TextDecoder();
    while (text.length < 65536) { // a cut gzip ends in an error; what came before is enough
      const { value, done } = await reader.read().catch(() => ({ done: true }));
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    reader.cancel().catch(() => {});
    return text;
  } catch {
    return "";
  }
};

const kindOf = async (file) => {
  const head = await headOf(file);
  return fileKinds.find(([, is]) => is(head, file.name.toLowerCase())) ?? ["unknown"];
};

// What a text is that no mark names: the core decides, by what it reads of it. Of neither kind: where its words led.
const kindByCore = async (file, kind) => {
  if (file.size > 2e8) return kind;
  const list = [{ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }];
  if (core.keys.scale && !/no training steps found/.test(core.askAbout("scale", {}, list, [file.name]).error ?? "")) return "training";
  return !core.askAbout("doctor", {}, list, [file.name]).error ? "host" : kind === "maybe" ? "training" : kind;
};

const saySomething = (lines) => {
  fill("drop-said", lines.map((words) => el("li", {}, words)));
  byId("drop-said").hidden = !lines.length;
  byId("drop").hidden = false;
};

// Files of all kinds at once; each kind goes where it is read, the last one is shown.
const openFiles = async (files) => {
  const kinds = {}, refused = [];
  for (const file of files) {
    let [kind, , what, command] = await kindOf(file);
    if (["maybe", "unknown", "host"].includes(kind) && files.length > 1 && /\.(err|stderr|exit)$|^(rank|fr_?|std(err|out))\d*/i.test(file.name)) [kind, command] = ["hang", null]; // a rank's output
    if (["host", "unknown", "maybe"].includes(kind)) kind = await kindByCore(file, kind);
    if (command) refused.push(`${file.name} is ${what}: ${command.replaceAll("FILE", file.name)}.`);
    else if (readers[kind] && !readers[kind]()) refused.push(`${file.name}: ${kind === "training" ? `knee scale ${file.name} reads training logs` : "knee plan reads it"}.`);
    else if (kind === "unknown") refused.push(`${file.name} is not a file that knee reads: drop traces (.json, .json.gz), training logs, nccl-tests logs, output of a stuck job, output of nvidia-smi -q, ibstat or dmesg, NCCL logs, or answers of knee --json.`);
    else (kinds[kind] ??= []).push(file);
  }
  saySomething(refused);
  document.body.classList.remove("report");
  if (refused.length && !Object.keys(kinds).length) {
    if (!["trace", "replay", "scale"].includes(view)) selectView("trace");
    document.body.dataset.ready = "refused";
    return;
  }
  if (kinds.hf || kinds.deepspeed) await openModel([...(kinds.hf ?? []).map((f) => ["hf", f]), ...(kinds.deepspeed ?? []).map((f) => ["deepspeed", f])]);
  if (kinds.hang) await openTogether("hang", [...kinds.hang, ...(kinds.exit ?? [])]);
  if (kinds.host) await openTogether("doctor", kinds.host);
  if (kinds.training) await scale.open(kinds.training);
  if (kinds.log) await openLogs(kinds.log);
  if (kinds.answer) for (const file of kinds.answer) showAnswer(JSON.parse(await file.text()), file.name);
  if (kinds.trace) await trace.open(kinds.trace);
};

const openLogs = async (files) => {
  const file = files[0];
  const answer = core.askAbout("collective", { against: file.name }, [{ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }]);
  if (files.length > 1) saySomething([`${files.length} logs: ${file.name} is shown; knee fit ${files.map((f) => f.name).join(" ")} fits a cluster to all of them.`]);
  if (!answer.error) return answers.show(answer, [file.name]);
  saySomething([errorWords({ ...answer, where: file.name })]);
  document.body.dataset.ready = "refused";
};

// What a stuck or crashed job left, or what commands print on a host: all files are one question.
const openTogether = async (command, files) => {
  const list = await Promise.all(files.map(async (f) => ({ name: f.name, bytes: new Uint8Array(await f.arrayBuffer()) })));
  const answer = core.askAbout(command, {}, list, list.map((f) => f.name));
  if (!answer.error) return answers.show(answer, list.map((f) => f.name));
  saySomething([errorWords(answer)]);
  document.body.dataset.ready = "refused";
};

const openModel = async (list) => {
  plan.files = await Promise.all(list.map(async ([key, file]) => ({ key, name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) })));
  selectView("plan");
  saySomething(plan.files.map((f) => `Plan uses ${f.name}. Reset removes it.`));
  document.body.dataset.ready = "plan";
};

// What is loaded, as chips: runs as groups, each can be opened and left out.
const chip = (name, options) => el("span", { class: `chip${options.on ? " on" : ""}`, title: options.title },
  options.open ? el("button", { type: "button", class: "link", onclick: options.open }, name) : el("span", {}, name),
  options.remove ? el("button", { type: "button", class: "remove", "aria-label": `Leave out ${name}`, onclick: options.remove }, "×") : null);

const traceChips = () => {
  const leaveOut = (files) => () => trace.without(files.map(fileName));
  if (trace.runs.length > 1) return trace.runs.slice(0, 12).map((run) => chip(runName(run), { on: run === trace.run, title: run.files.map(fileName).join(", "), open: () => trace.openRun(run), remove: leaveOut(run.files) }));
  return trace.files.slice(0, 8).map((f) => chip(f.name, { remove: leaveOut([f.name]) }));
};

const showFiles = () => {
  const mine = view === "scale" ? scale : trace, list = view === "answer" ? [] : mine.files;
  const chips = mine === trace ? traceChips() : list.slice(0, 8).map((f) => chip(f.name, { remove: () => { scale.files = scale.files.filter((g) => g !== f); if (scale.files.length) scale.ask(); else scale.clear(); showFiles(); } }));
  const more = (trace.runs.length > 1 && mine === trace ? trace.runs.length : list.length) - chips.length;
  byId("drop").classList.toggle("compact", list.length > 0);
  fill("files-loaded", list.length ? [...chips, more > 0 ? el("span", { class: "hint" }, `and ${more} more`) : null,
    el("button", { type: "button", id: "files-clear", onclick: () => { mine.clear(); showFiles(); saySomething([]); } }, "Start over"),
    mine === trace && trace.answer && trace.runs.length < 2 ? el("label", { class: "file" }, "Compare with another run…", el("input", { type: "file", multiple: true, id: "files-other", onchange: (e) => compareRuns([...e.target.files]) })) : null] : []);
};

// Another recording beside the one at hand: knee diff.
const compareRuns = async (files) => {
  trace.other = true;
  const refused = [];
  for (const file of files) {
    const problem = await trace.push(file, `other/${file.name}`);
    if (problem) refused.push(errorWords({ ...problem, where: file.name }));
  }
  saySomething(refused);
  const answer = core.ask("diff", {}, ["run", "other"]);
  if (answer.error) return saySomething([...refused, errorWords(answer)]);
  answers.show(answer, [...trace.files.map((f) => f.name), ...files.map((f) => f.name)]);
};

const startDrop = () => {
  const drop = byId("drop");
  const stop = (e) => { e.preventDefault(); drop.classList.toggle("over", e.type === "dragover"); };
  for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, stop);
  document.addEventListener("drop", (e) => { if (e.dataTransfer?.files.length) openFiles([...e.dataTransfer.files]); });
  byId("files").addEventListener("change", (e) => {
    const list = [...e.target.files];
    e.target.value = ""; // the same file may be chosen again
    if (list.length) openFiles(list);
  });
};
