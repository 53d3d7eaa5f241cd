// SPDX-License-Identifier: MIT
// Traces and logs dropped on the page: numbers, timeline, replay, damage, hostile names, many files.
import { execFileSync } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createGzip, gzipSync } from "node:zlib";
import { resolve } from "node:path";
import { address, answer, check, cpuTime, drop, figure, fits, knee, lines, median, native, near, open, out, same, text, url, value } from "./browser.mjs";

const page = await open(`${url}#trace`);
const clear = async () => { if (await page.isVisible("#files-clear")) await page.click("#files-clear"); };
check("an empty view says how to record", /torch\.profiler/.test(await text(page, "trace-empty")));

// The page's answer is the program's, and so are its tiles.
const asProgram = async (what, files, told) => {
  same(`${what}: all of the answer`, await answer(page), told);
  check(`${what}: no folder of the core is named`, !/\b(run|other)\//.test(await text(page, "trace-verdict")), await text(page, "trace-verdict"));
  const v = told.verdict;
  for (const [id, number] of [["ratio", v.ratio], ["step", v.step_s], ["efficiency", v.efficiency], ["overlap", v.overlap], ["stall", v.stall_cost_per_day]]) near(`${what}: ${id}`, await value(page, `tile-trace-${id}`), number ?? 0);
  check(`${what}: its lines`, JSON.stringify(await lines(page, "trace")) === JSON.stringify([v.do, v.why, v.buys].filter(Boolean)), (await lines(page, "trace")).join("|"));
};
const recorded = ["examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"];
await drop(page, recorded);
await asProgram("straggler", recorded, native("trace", ...recorded));

// ---- The timeline ----
const picture = () => page.$eval("#timeline", (c) => c.toDataURL());
await page.hover("#timeline", { position: { x: 700, y: 15 } });
check("what is under the pointer is said at the pointer", /^rank \d+, .*: \S/.test(await text(page, "timeline-tip")) && await page.$eval("#timeline-tip", (t) => { const a = t.getBoundingClientRect(), b = document.getElementById("timeline").getBoundingClientRect(); return Math.abs(a.left - b.left - 714) < 30 && a.top > b.top; }));
await page.mouse.move(5, 5);
const first = await picture();
await page.focus("#timeline");
for (const key of ["w", "w", "d", "a", "s"]) {
  const was = await picture();
  await page.keyboard.press(key);
  check(`${key} moves the timeline`, was !== (await picture()));
}
await page.keyboard.press("0");
check("0 shows all again", first === (await picture()));
await page.evaluate(() => scrollTo(0, 200));
await page.hover("#timeline", { position: { x: 600, y: 30 } });
const top = await page.evaluate(() => scrollY);
await page.mouse.wheel(0, 200);
await page.waitForFunction((was) => scrollY > was, top);
check("the wheel scrolls the page", first === (await picture()));
await page.evaluate(() => scrollTo(0, 200));
await page.keyboard.down("Control");
await page.mouse.wheel(0, -200);
await page.keyboard.up("Control");
for (let tries = 0; tries < 300 && first === (await picture()); tries++) await page.waitForTimeout(100); // a wheel's event comes later
check("Ctrl and wheel zoom", first !== (await picture()));
await page.keyboard.press("0");
await page.fill("#timeline-search", "allreduce");
await page.waitForFunction(() => /^1 of \d+: rank/.test(document.getElementById("timeline-hits").textContent));
await page.press("#timeline-search", "Enter");
check("search finds spans by name, one after another", /^2 of \d+: rank/.test(await text(page, "timeline-hits")), await text(page, "timeline-hits"));
await page.screenshot({ path: `${out}/trace-search.png` });
await page.fill("#timeline-search", "no such kernel");
await page.waitForFunction(() => /nothing/.test(document.getElementById("timeline-hits").textContent));
await page.fill("#timeline-search", "");
await page.waitForFunction(() => document.getElementById("timeline-hits").textContent === "");
await page.focus("#timeline");
await page.keyboard.press("0");
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: `${out}/trace.png`, fullPage: true });
await page.screenshot({ path: `${out}/trace-top.png` });
await fits(page, "trace");

// ---- Replay: what if, from the timeline ----
await page.click("#tab-replay");
const replays = async (what, ...args) => {
  const want = native("replay", ...recorded, ...args);
  same(`replay ${what}`, await answer(page), want);
  near(`replay ${what}: step`, await value(page, "tile-replay-step"), want.step_s);
  return want;
};
await replays("unchanged");
await page.fill("#replay-wire", "bf16");
await page.press("#replay-wire", "Enter");
const bf16 = await replays("bf16", "--wire", "bf16");
await page.check("#replay-even");
check("switches add up", (await replays("bf16 and even", "--wire", "bf16", "--even")).step_s < bf16.step_s);
await page.fill("#replay-wire", "f99");
await page.press("#replay-wire", "Enter");
check("a change that there is not is said at its field", await page.isVisible("#replay-wire-error"));
await page.click("#replay-reset");
await replays("as recorded");
await page.screenshot({ path: `${out}/replay.png`, fullPage: true });
await fits(page, "replay");

// Files add up; another run beside it is knee diff.
await page.click("#tab-trace");
await clear();
await drop(page, [recorded[0]]);
check("one rank", (await answer(page)).ranks.length === 1);
await drop(page, [recorded[1]]);
await asProgram("added up", recorded, native("trace", ...recorded));
await page.setInputFiles("#files-other", ["tests/captures/other.json"].filter(existsSync).length ? ["tests/captures/other.json"] : [recorded[0]]);
await page.waitForSelector('body[data-ready="answer"]');
check("two runs are compared", (await answer(page)).schema === "knee.diff/1" && (await text(page, "answer-verdict")).length > 20);
await page.screenshot({ path: `${out}/diff.png`, fullPage: true });

// ---- Every set of traces beside the repository ----
const shared = "../shared/data";
const sets = !existsSync(shared) ? [] : [...readdirSync(`${shared}/traces`).map((name) => [name, readdirSync(`${shared}/traces/${name}`).map((f) => `${shared}/traces/${name}/${f}`)]),
  ...["h200", "h200/p2p", "h200/whatif", "formats/kineto_other", "dirty"].filter((f) => existsSync(`${shared}/${f}`)).flatMap((folder) => readdirSync(`${shared}/${folder}`).filter((f) => /\.json(\.gz)?$/.test(f)).map((f) => [`${folder}/${f}`, [`${shared}/${folder}/${f}`]]))];
let compared = 0, largest = 0;
await page.click("#tab-trace");
for (const [name, files] of sets) {
  if (files.some((f) => statSync(f).size > 60e6)) continue;
  let told;
  try {
    told = native("trace", ...files);
  } catch {
    continue; // the program refuses it; what the page does with such files is tested below
  }
  if (!told.verdict) continue; // several runs at once
  await clear();
  const start = Date.now();
  await page.evaluate(() => { delete document.body.dataset.ready; });
  await page.setInputFiles("#files", files);
  const shown = await page.waitForSelector('body[data-ready="trace"], body[data-ready="answer"], body[data-ready="refused"]', { timeout: 60000 }).then(() => page.evaluate(() => document.body.dataset.ready), () => "nothing");
  if (shown === "refused" && told.ranks.every((r) => r.format === "cpu") && /knee trace/.test(await text(page, "trace-verdict"))) continue; // a job of hosts: the page names the command
  if (!check(`${name} is read as a trace`, shown === "trace", shown)) continue;
  largest = Math.max(largest, Date.now() - start);
  await asProgram(name, files, told);
  compared++;
}
console.log(sets.length ? `${compared} sets of traces beside the repository: page and program agree; the slowest took ${largest} ms` : "no traces beside the repository: not compared");

// The report of Megatron's ranks shows the command's numbers, and draws.
const megatron = sets.find(([name]) => /megatron/.test(name));
if (megatron) {
  const file = resolve(out, "report-megatron.html"), told = native("trace", ...megatron[1]);
  execFileSync(knee, ["trace", ...megatron[1], "--html", file, "--brief"], { stdio: "ignore" });
  const report = await open(address(file));
  same("report of Megatron", await answer(report), told);
  near("report of Megatron: step", await value(report, "tile-trace-step"), told.verdict.step_s);
  check("its timeline is drawn", await report.isVisible("#timeline"));
  await report.screenshot({ path: `${out}/report-megatron.png`, fullPage: true });
  await report.context().close();
}

// ---- 96 ranks, one of them late ----
const many = resolve(out, "ranks96");
mkdirSync(many, { recursive: true });
for (let rank = 0; rank < 96; rank++) {
  const events = [];
  for (let i = 0; i < 40; i++) {
    const start = 1000 + 1000 * i, late = rank === 77 ? 200 : 0;
    events.push({ ph: "X", cat: "kernel", name: `gemm_${i}`, pid: 0, tid: 7, ts: start, dur: 500 + late, args: { stream: 7, correlation: 2 * i } },
      { ph: "X", cat: "kernel", name: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", pid: 0, tid: 9, ts: start + 510 + late, dur: 300 - late, args: { stream: 9, correlation: 2 * i + 1, "Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 1000000, "Out msg nelems": 1000000, dtype: "BFloat16", "Group size": 96 } });
  }
  writeFileSync(`${many}/rank${rank}.json.gz`, gzipSync(JSON.stringify({ distributedInfo: { rank, world_size: 96, backend: "nccl" }, deviceProperties: [{ id: 0, name: "NVIDIA H100 80GB HBM3" }], traceEvents: events })));
}
await clear();
await drop(page, readdirSync(many).map((f) => `${many}/${f}`));
const crowd = await answer(page);
check("96 ranks: the late ones are named", crowd.verdict.late_ranks.includes(77), JSON.stringify(crowd.verdict.late_ranks));
check("ranks that are alike stand for each other", /of 96 ranks drawn, \d+ are like one of them/.test(await text(page, "timeline-shown")), await text(page, "timeline-shown"));
check("one size of collectives is drawn", crowd.collectives.length === 1 && (await page.isVisible("#chart-collectives canvas")));
check("few rows are drawn", (await page.$eval("#timeline", (c) => c.clientHeight)) < 700);
check("one bar for ranks that are alike", /and 9[0-9] like it/.test(await text(page, "trace-bars")));
await page.screenshot({ path: `${out}/ranks96.png`, fullPage: true });
await page.click("#timeline-all");
check("64 of 96, and it is said", /^64 of 96 ranks drawn/.test(await text(page, "timeline-shown")), await text(page, "timeline-shown"));
await fits(page, "96 ranks");

// ---- Hostile names: text, whatever they say ----
const evil = ['<img src=x onerror="alert(1)">', "</script><script>alert(2)</script>", "\"'&lt;`${alert(3)}", "\u202Etxt.exe\u202C \u2066RTL\u2069", "x".repeat(10240), "<!--<script>"];
const hostile = { deviceProperties: [{ id: 0, name: evil[0] }], distributedInfo: { rank: 0, world_size: 1, backend: evil[1] }, traceEvents: evil.flatMap((name, i) => [
  { ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: 1000 + 100 * i, dur: 50, args: { stream: 7, correlation: i } },
  { ph: "X", cat: "kernel", name: `ncclDevKernel_AllReduce_Sum_f32_RING_LL(${name})`, pid: 0, tid: 9, ts: 1040 + 100 * i, dur: 40,
    args: { stream: 9, "Collective name": "allreduce", "Process Group Name": name, "Process Group Description": name, "In msg nelems": 1000, "Out msg nelems": 1000, dtype: "Float", "Group size": 1 } }]) };
const evilFile = `${out}/"hostile' <b>&.json`;
writeFileSync(evilFile, JSON.stringify(hostile));
await clear();
await drop(page, [evilFile]);
check("hostile names make no elements", (await page.evaluate(() => document.querySelectorAll("main img, main script, main b:not(.tile b, .copy b, .tip b, form b)").length)) === 0);
check("hostile names are shown", (await text(page, "trace-collectives")).includes("onerror"));
await page.hover("#timeline", { position: { x: 100, y: 15 } });
await fits(page, "hostile names");
execFileSync(knee, ["trace", evilFile, "--html", `${out}/hostile.html`, "--brief"], { stdio: "ignore" });
const carried = await open(address(`${out}/hostile.html`));
check("a report carries them as text", (await carried.textContent("#trace-collectives")).includes("onerror"));
await fits(carried, "a report with hostile names");
await carried.context().close();

// ---- Damage and foreign files ----
const bytes = readFileSync(recorded[0]);
writeFileSync(`${out}/cut.json.gz`, bytes.subarray(0, bytes.length - 2000));
await clear();
await drop(page, [`${out}/cut.json.gz`]);
check("a gzip file cut off: what came is used, the loss is said", !(await page.isHidden("#trace-losses-figure")));
writeFileSync(`${out}/foreign.txt`, "nothing of the kind\n".repeat(50));
const foreign = [["foreign.txt", /not a file that knee reads/], ["examples/job.yaml", /knee report job\.yaml/], ["examples/runs.csv", /knee (scale|validate) runs\.csv/]];
for (const [file, words] of foreign) {
  await drop(page, [file.includes("/") ? file : `${out}/${file}`], "refused");
  check(`${file}: the page says which command reads it`, words.test(await text(page, "drop-said")), await text(page, "drop-said"));
}
writeFileSync(`${out}/operations.json`, '[{"name":"backward-compute","cat":"backward-compute","pid":0,"tid":0,"ts":1,"dur":2,"ph":"X","args":{"step":16}}]');
await drop(page, [`${out}/operations.json`], "refused");
check("a log of operations: knee replay", /knee replay operations\.json/.test(await text(page, "drop-said")));
writeFileSync(`${out}/nsys.sqlite`, "SQLite format 3\0 and more");
await drop(page, [`${out}/nsys.sqlite`], "refused");
check("sqlite: knee report", /knee report nsys\.sqlite/.test(await text(page, "drop-said")));
writeFileSync(`${out}/empty.json`, '{"traceEvents": []}');
await page.setInputFiles("#files", [`${out}/empty.json`]);
await page.waitForSelector("#trace-verdict.error");
check("a failed drop says that what is below is older", /last answer/.test(await text(page, "trace-verdict")) && (await page.getAttribute("#view-trace", "class")).includes("stale"), await text(page, "trace-verdict"));

// ---- Training logs: Scale ----
const logs = [8, 16, 32].map((n) => `examples/scale/gpt_${n}.log`);
await drop(page, [logs[0]], "scale");
same("one training log", await answer(page), native("scale", logs[0]));
await drop(page, logs.slice(1), "scale");
const curve = native("scale", ...logs);
same("three, added up", await answer(page), curve);
near("the knee", await value(page, "tile-scale-knee"), curve.knee.predicted_workers);
check("what to do stands first", /^Do not ask for 64/.test((await lines(page, "scale"))[0]), (await lines(page, "scale"))[0]);
check("a curve with its band", await page.isVisible("#scale-result canvas"));
await page.selectOption("#scale-form-gpu", "h100");
same("with a GPU", await answer(page), native("scale", ...logs, "--gpu", "h100"));
await page.fill("#scale-form-at", "lots");
await page.press("#scale-form-at", "Enter");
check("a wrong count is said at its field", await page.isVisible("#scale-form-at-error"));
await page.click("#scale-form-reset"); // while a box with its help has the focus
same("reset", await answer(page), curve);
await page.screenshot({ path: `${out}/scale.png`, fullPage: true });
await fits(page, "scale");
const training = existsSync(`${shared}/train_logs`) ? readdirSync(`${shared}/train_logs`).filter((f) => f !== "index.csv").map((f) => `${shared}/train_logs/${f}`) : [];
let agreed = 0;
for (const file of training) {
  let want = null;
  try { want = native("scale", file); } catch { /* the program refuses it */ }
  await page.click("#tab-scale");
  await clear();
  await page.evaluate(() => { delete document.body.dataset.ready; });
  await page.setInputFiles("#files", [file]);
  await page.waitForSelector("body[data-ready]");
  if (want ? same(`training log ${file.split("/").at(-1)}`, await answer(page), want) : check(`${file}: refused, and said`, await page.$("#scale-verdict.error, #trace-verdict.error, #drop-said:not([hidden])"))) agreed++;
}
console.log(training.length ? `${agreed} of ${training.length} training logs beside the repository: page and program agree` : "no training logs beside the repository: not compared");

// A log of nccl-tests, and answers of knee.
await drop(page, ["examples/one_rail_32.log"], "answer");
same("a dropped log gets the program's answer", await answer(page), native("collective", "--against", "examples/one_rail_32.log"));
await page.screenshot({ path: `${out}/log.png`, fullPage: true });

// ---- 30 MB of gzip, and a million spans ----
const write = async (file, spans) => {
  const gzip = createGzip({ level: 1 });
  const done = new Promise((good) => gzip.pipe(createWriteStream(file)).on("close", good));
  gzip.write('{"traceEvents":[\n');
  let seed = 1, ts = 1e6;
  for (let i = 0; i < spans;) {
    let part = "";
    for (const end = Math.min(spans, i + 20000); i < end; i++) {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      const dur = 2 + (seed % 97) / 10;
      const name = seed % 11 === 0 ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" : `kernel_${seed % 311}<float, ${seed}>(int, float*)`;
      part += `${i ? ",\n" : ""}{"ph":"X","cat":"kernel","name":"${name}","pid":0,"tid":7,"ts":${ts.toFixed(3)},"dur":${dur.toFixed(3)},"args":{"stream":${seed % 11 ? 7 : 9},"correlation":${i},"registers per thread":${seed % 255}}}`;
      ts += dur + (seed % 13) / 10;
    }
    if (!gzip.write(part)) await new Promise((good) => gzip.once("drain", good));
  }
  gzip.end("\n]}\n");
  await done;
};
const large = `${out}/thirty.json.gz`;
if (!existsSync(large)) await write(large, 1300000);
await page.click("#tab-trace");
await clear();
const start = Date.now();
const work = await cpuTime(page, () => drop(page, [large]));
figure(`${(statSync(large).size / 1e6).toFixed(0)} MB of gzip, 1.3 million spans, dropped and shown in`, (Date.now() - start) / 1000, 3, "s");
console.log(`of that ${(work / 1000).toFixed(1)} s processor time of the page's thread`);
near("1.3 million spans have the program's R", await value(page, "tile-trace-ratio"), native("trace", large).verdict.ratio);
const pans = await page.$eval("#timeline", (c) => {
  const list = [];
  const press = (key) => {
    const from = performance.now();
    c.dispatchEvent(new KeyboardEvent("keydown", { key }));
    list.push(performance.now() - from);
  };
  for (let level = 0; level < 20; level++) {
    press("w");
    for (let i = 0; i < 4; i++) press(i < 2 ? "d" : "a");
  }
  return list;
});
figure("million spans: pan or zoom", median(pans), 16, "ms");
console.log(`million spans: worst of 20 levels of zoom ${Math.max(...pans).toFixed(1)} ms`);
await page.context().close();
