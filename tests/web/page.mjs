// SPDX-License-Identifier: MIT
// The page in a real browser, opened from the disk. Prints what is wrong, what was measured, and a count;
// leaves screenshots. Usage: node tests/web/page.mjs KNEE PAGE.html OUT_FOLDER
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createGzip } from "node:zlib";

const [knee, pageFile, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const url = pathToFileURL(resolve(pageFile)).href;
let checks = 0, failures = 0;
const check = (what, good, more = "") => {
  checks++;
  if (!good) { failures++; console.log(`FAIL ${what} ${more}`); }
};
// A figure that was promised: said when it is missed, a failure when it is missed by half as much again
// (other work on the machine shows in times).
const figure = (what, got, most, unit) => {
  console.log(`${what} ${got.toFixed(1)} ${unit} <= ${most}${got <= most ? "" : "  MISSED"}`);
  check(what, got <= 1.5 * most, String(got));
};
const near = (what, got, want) => check(what, Math.abs(got - want) <= 1e-9 * Math.max(1e-300, Math.abs(want)), `${got}, not ${want}`);
const native = (...args) => JSON.parse(execFileSync(knee, [...args, "--json"], { encoding: "utf8", maxBuffer: 1 << 28 }));
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const open = async (address, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) check("console", false, m.text()); });
  page.on("pageerror", (e) => check("script error", false, e.message));
  page.on("dialog", (d) => { check("dialog", false, d.message()); d.dismiss(); });
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url())) check("network request", false, r.url()); });
  await page.goto(address);
  await page.waitForSelector("body[data-ready]");
  return page;
};
const value = async (page, id) => Number(await page.getAttribute(`#${id}`, "data-value"));
const text = (page, id) => page.textContent(`#${id}`);
const slide = (page, id, place) => page.$eval(`[id="${id}"]`, (e, v) => { e.value = v; e.dispatchEvent(new Event("input", { bubbles: true })); }, place);
const fits = async (page, what) => {
  const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(`${what}: nothing wider than the window`, wide <= shown, `${wide} > ${shown}`);
};
const drop = (page, files) => page.setInputFiles("#files", files);
// The state in the address bar as flags of the program.
const flags = async (page) => {
  await page.waitForSelector('body[data-settled="true"]');
  return [...new URLSearchParams(page.url().split("?")[1] ?? "")].flatMap(([key, v]) => [`--${key}`, v]);
};

// ---- The calculator ----
const size = statSync(pageFile).size;
console.log(`calculator ${(size / 1000).toFixed(1)} KB <= 300`);
check("size", size <= 300000, String(size));
const page = await open(url);
const paints = [];
for (let i = 0; i < 3; i++) { // the best of three: a browser that just started is busy with itself
  await page.goto("about:blank");
  await page.goto(url);
  await page.waitForSelector("body[data-ready]");
  paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
}
const paint = Math.min(...paints);
figure("first paint", paint, 1000, "ms");
await page.screenshot({ path: `${out}/predict.png`, fullPage: true });
await page.screenshot({ path: `${out}/predict-top.png` });
await fits(page, "predict");

// Sliders: the numbers are those of the program.
const slides = [["predict-form-bandwidth", 700], ["predict-form-overlap", 130], ["predict-form-at", 612], ["predict-form-latency", 444], ["predict-form-compress", 333],
  ["predict-form-global-batch", 800], ["predict-form-mfu", 640], ["predict-form-local-steps", 250], ["predict-form-jitter", 77], ["predict-form-price", 900], ["predict-form-bandwidth", 410]];
for (const [id, place] of slides) {
  await slide(page, id, place);
  const given = await flags(page);
  const all = native("predict", "--workers", "1..16384x2", ...given);
  const at = String(all.verdict.workers);
  const now = native("predict", ...given.filter((_, i) => given[i - (i % 2)] !== "--at"), "--workers", at, "--at", at).rows[0];
  near(`${id}: knee`, await value(page, "tile-knee"), all.knee.tolerance_workers ?? 0);
  near(`${id}: gamma = 1`, await value(page, "tile-gamma"), all.knee.gamma_one_workers ?? 0);
  near(`${id}: R`, await value(page, "tile-ratio"), now.ratio);
  near(`${id}: E`, await value(page, "tile-efficiency"), now.efficiency);
  near(`${id}: step`, await value(page, "tile-step"), now.step_s);
  near(`${id}: stall`, await value(page, "tile-stall"), all.cost.stall_day);
  check(`${id}: sentence`, (await text(page, "predict-verdict")) === all.verdict.sentence);
}
// How long: median of 60 changes, the best of three such rounds, since others may use this machine too.
const rounds = [];
for (let round = 0; round < 3; round++)
  rounds.push(median(await page.$eval('[id="predict-form-bandwidth"]', (e) => Array.from({ length: 60 }, (_, i) => {
    const start = performance.now();
    e.value = 200 + 10 * i;
    e.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.offsetHeight; // layout is part of it
    return performance.now() - start;
  }))));
const redraw = Math.min(...rounds);
figure("slider to redrawn page", redraw, 16, "ms");

// Levers combine; the link restores everything.
await page.check('[data-lever="overlap"]');
await page.check('[data-lever="compress: PowerSGD"]');
check("levers together", /^Together at K/.test(await text(page, "levers-together")));
await page.waitForSelector('body[data-settled="true"]');
const link = page.url();
const again = await open(link);
check("link restores the sentence", (await text(again, "predict-verdict")) === (await text(page, "predict-verdict")));
check("link restores the levers", await again.isChecked('[data-lever="overlap"]'));
near("link restores R", await value(again, "tile-ratio"), await value(page, "tile-ratio"));
await again.context().close();

// A wrong input is one line, and the page lives on.
await page.locator("#predict-form summary", { hasText: "Model" }).click();
await page.fill('[id="predict-form-params"]', "lots");
await page.press('[id="predict-form-params"]', "Enter");
check("wrong input is said", /is not a number/.test(await text(page, "predict-verdict")));
await page.fill('[id="predict-form-params"]', "");
await page.press('[id="predict-form-params"]', "Enter");
check("and taken back", /^The knee/.test(await text(page, "predict-verdict")) || (await text(page, "predict-verdict")).length > 40);

// ---- Axes: the two flips ----
await page.click("#tab-axes");
const places = { tp: (v) => Math.round((1000 * Math.log(v)) / Math.log(64)) };
await slide(page, "axes-form-tp", places.tp(8));
check("TP in a node takes its link", (await page.getAttribute("#tile-tp-link", "data-value")) === "node");
const inside = await value(page, "tile-mfu");
near("MFU", inside, native("tax", ...(await flags(page))).mfu);
await slide(page, "axes-form-tp", places.tp(16));
check("TP past a node takes the network", (await page.getAttribute("#tile-tp-link", "data-value")) === "network");
check("and it shows", (await page.getAttribute("#tile-tp-link", "class")).includes("flip") && (await page.getAttribute("#threshold-tp", "class")).includes("broken"));
check("and costs", (await value(page, "tile-mfu")) < inside);
near("MFU past the node", await value(page, "tile-mfu"), native("tax", ...(await flags(page))).mfu);
await page.screenshot({ path: `${out}/axes.png`, fullPage: true });
const held = async () => Number(await page.getAttribute("#memory-words", "data-value"));
const [few, many] = [await held(), await (async () => { await slide(page, "axes-form-tp", 0); return held(); })()];
check("memory of a GPU grows when tensor parallelism goes", many > few, `${many} <= ${few}`);
check("and is that of knee plan", await (async () => {
  await slide(page, "axes-form-tp", places.tp(8));
  const flag = Object.fromEntries((await flags(page)).join(" ").split("--").filter(Boolean).map((f) => f.trim().split(" ")));
  const plan = native("plan", "--model", flag.model, "--gpu", flag.gpu, "--gpus", String(8 * Number(flag.fsdp)), "--tp", "8", "--pp", "1", "--shard", "zero3", "--shard-size", flag.fsdp, "--micro-batch", "1", "--global-batch", flag.fsdp, "--recompute", "none", "--offload", "none", "--sequence-parallel", "1");
  return Math.abs(plan.rows[0].best[0].memory.total_bytes - (await held())) < 1;
})());
await slide(page, "axes-form-tp", 0);
await slide(page, "axes-form-fsdp", 700);
await slide(page, "axes-form-seq", 1000);
check("many local tokens: gathers can hide", !(await page.getAttribute("#threshold-tokens", "class")).includes("broken"));
await slide(page, "axes-form-seq", 0);
check("few local tokens: they cannot", (await page.getAttribute("#threshold-tokens", "class")).includes("broken") && /< \d+, where gathers take as long as compute/.test(await text(page, "axes-verdict")));
near("MFU with few tokens", await value(page, "tile-mfu"), native("tax", ...(await flags(page))).mfu);
await fits(page, "axes");

// ---- Traces ----
const recorded = ["examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"];
await drop(page, recorded);
await page.waitForSelector('body[data-ready="trace"]');
const told = native("trace", ...recorded);
near("a dropped trace has the program's R", await value(page, "tile-trace-ratio"), told.verdict.ratio);
check("and its sentence", (await text(page, "trace-verdict")) === told.verdict.sentence);
await page.hover("#timeline", { position: { x: 700, y: 15 } });
check("what is under the pointer is said", /^rank \d+ at .*: \S/.test(await text(page, "timeline-look")));
const blank = await page.$eval("#timeline", (c) => c.toDataURL());
await page.focus("#timeline");
await page.keyboard.press("+");
await page.keyboard.press("ArrowRight");
check("keys zoom and move", blank !== (await page.$eval("#timeline", (c) => c.toDataURL())));
await page.keyboard.press("0");
check("0 shows all again", blank === (await page.$eval("#timeline", (c) => c.toDataURL())));
const before = Number(await page.getAttribute("#whatif-result", "data-ratio"));
await slide(page, "whatif-form-compress", 500);
const whatIf = () => page.getAttribute("#whatif-result", "data-ratio").then(Number);
check("what if: compression lowers R", Number(await page.getAttribute("#whatif-result", "data-ratio")) < before);
const compressed = await whatIf();
await slide(page, "whatif-form-bandwidth-times", 1000);
const faster = await whatIf();
check("what if: a faster link lowers R", faster < compressed, `${faster} >= ${compressed}`);
await slide(page, "whatif-form-latency-added", 1000);
check("what if: latency raises R", (await whatIf()) > faster);
const late = await whatIf();
await slide(page, "whatif-form-hidden", 1000);
check("what if: overlap lowers R", (await whatIf()) < late);
await slide(page, "whatif-form-hidden", 100);
await slide(page, "whatif-form-local-steps", 500);
check("what if: rare meetings lower R", (await whatIf()) < late);
await slide(page, "whatif-form-local-steps", 0);
await slide(page, "whatif-form-batch-times", 1000);
check("what if: a larger batch lowers R", (await whatIf()) < late);
await page.screenshot({ path: `${out}/trace.png`, fullPage: true });
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: `${out}/trace-top.png` });
await fits(page, "trace");

// Hostile names: text, whatever they say.
const evil = ['<img src=x onerror="alert(1)">', "</script><script>alert(2)</script>", "\"'&lt;`${alert(3)}", "\u202Etxt.exe\u202C \u2066RTL\u2069", "x".repeat(10240), "<!--<script>"];
const hostile = { deviceProperties: [{ id: 0, name: evil[0] }], distributedInfo: { rank: 0, world_size: 1, backend: evil[1] }, traceEvents: evil.flatMap((name, i) => [
  { ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: 1000 + 100 * i, dur: 50, args: { stream: 7, correlation: i } },
  { ph: "X", cat: "kernel", name: `ncclDevKernel_AllReduce_Sum_f32_RING_LL(${name})`, pid: 0, tid: 9, ts: 1040 + 100 * i, dur: 40,
    args: { stream: 9, "Collective name": "allreduce", "Process Group Name": name, "Process Group Description": name, "In msg nelems": 1000, "Out msg nelems": 1000, dtype: "Float", "Group size": 1 } }]) };
const evilFile = `${out}/"hostile' <b>&.json`;
writeFileSync(evilFile, JSON.stringify(hostile));
await page.evaluate(() => { delete document.body.dataset.ready; });
await drop(page, [evilFile]);
await page.waitForSelector('body[data-ready="trace"]');
const elements = () => page.evaluate(() => document.querySelectorAll("main img, main script, main b:not(.tile b)").length);
check("hostile names make no elements", (await elements()) === 0);
check("hostile names are shown", (await text(page, "trace-collectives")).includes("onerror"));
await page.hover("#timeline", { position: { x: 100, y: 15 } });
await fits(page, "hostile names");
execFileSync(knee, ["trace", evilFile, "--html", `${out}/hostile.html`, "--brief"], { stdio: "ignore" });
const carried = await open(pathToFileURL(resolve(out, "hostile.html")).href);
check("a report carries them as text", (await carried.textContent("#trace-collectives")).includes("onerror"));
await fits(carried, "a report with hostile names");
await carried.context().close();

// Damage and foreign files.
const bytes = readFileSync(recorded[0]);
writeFileSync(`${out}/cut.json.gz`, bytes.subarray(0, bytes.length - 2000));
await page.evaluate(() => { delete document.body.dataset.ready; });
await drop(page, [`${out}/cut.json.gz`]);
await page.waitForSelector('body[data-ready="trace"]');
check("a gzip file cut off: what came is used, the loss is said", !(await page.isHidden("#trace-losses-figure")));
writeFileSync(`${out}/foreign.txt`, "nothing of the kind\n".repeat(50));
await drop(page, [`${out}/foreign.txt`]);
await page.waitForFunction(() => document.getElementById("trace-verdict").classList.contains("error"));
check("a foreign file gets one line", (await text(page, "trace-verdict")).length > 10);

// A log of nccl-tests.
await drop(page, ["examples/one_rail_32.log"]);
await page.waitForSelector('body[data-ready="answer"]');
check("a dropped log gets the program's sentence", (await text(page, "answer-verdict")) === native("collective", "--against", "examples/one_rail_32.log").sentence);
await page.screenshot({ path: `${out}/log.png`, fullPage: true });

// 30 MB of gzip, and a million spans.
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
const large = `${out}/million.json.gz`;
if (!existsSync(large)) await write(large, 1000000);
await page.evaluate(() => { delete document.body.dataset.ready; });
const start = Date.now();
await drop(page, [large]);
await page.waitForSelector('body[data-ready="trace"]', { timeout: 120000 });
console.log(`a million spans, ${(statSync(large).size / 1e6).toFixed(0)} MB of gzip, dropped and shown in ${((Date.now() - start) / 1000).toFixed(1)} s`);
near("a million spans have the program's R", await value(page, "tile-trace-ratio"), native("trace", large).verdict.ratio);
const pans = await page.$eval("#timeline", (c) => {
  const list = [];
  const press = (key) => {
    const from = performance.now();
    c.dispatchEvent(new KeyboardEvent("keydown", { key }));
    list.push(performance.now() - from);
  };
  for (let level = 0; level < 20; level++) {
    press("+");
    for (let i = 0; i < 4; i++) press(i < 2 ? "ArrowRight" : "ArrowLeft");
  }
  return list;
});
figure("million spans: pan or zoom", median(pans), 16, "ms");
console.log(`million spans: worst of 20 levels of zoom ${Math.max(...pans).toFixed(1)} ms`);

// ---- Reports of every command, dark, phone, paper ----
const reports = [["predict", "--example"], ["tax", "--model", "llama3-70b", "--gpu", "h100", "--fsdp", "64", "--tp", "8"], ["trace", "examples/straggler"],
  ["lab", "--steps", "4", "--synthetic-compute", "--compute-time", "20ms"], ["plan", "--model", "llama3-8b", "--gpu", "h100", "--gpus", "8..256x2"], ["validate", "examples/runs.csv"], ["scale", "examples/scale/gpt_8.log", "examples/scale/gpt_16.log", "examples/scale/gpt_32.log", "--gpu", "h100"],
  ["collective", "--against", "examples/one_rail_32.log", "--cluster", "8xh100 * 4 @ ib400x8"], ["fit", "examples/all_reduce_16.log", "examples/all_gather_16.log"]];
for (const args of reports) {
  const file = resolve(out, `report-${args[0]}.html`);
  const answer = JSON.parse(execFileSync(knee, [...args, "--html", file, "--json"], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }));
  const report = await open(pathToFileURL(file).href, { colorScheme: "dark" });
  const shown = await report.evaluate(() => [...document.querySelectorAll(".verdict")].filter((v) => v.offsetParent).map((v) => v.textContent).join(""));
  check(`report of ${args[0]}`, shown === (answer.sentence ?? answer.verdict.sentence).trim(), shown);
  await fits(report, `report of ${args[0]}`);
  await report.screenshot({ path: `${out}/report-${args[0]}-dark.png`, fullPage: true });
  await report.context().close();
}
for (const view of ["predict", "axes"]) {
  const phone = await open(`${url}#${view}`, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
  await fits(phone, `${view} at phone width`);
  await phone.screenshot({ path: `${out}/${view}-phone.png`, fullPage: true });
  await phone.context().close();
}
await page.emulateMedia({ media: "print" });
await page.click("#tab-predict", { force: true }).catch(() => {});
check("prints", (await page.pdf({ path: `${out}/print.pdf` })).length > 1000);

// ---- Names and keys for people who do not look ----
const reader = await open(url);
const unnamed = await reader.evaluate(() => [...document.querySelectorAll("input, select, button, canvas, [role=img]")].filter((e) =>
  !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label, .chart[aria-label]"))).map((e) => e.id || e.outerHTML.slice(0, 80)));
check("everything has a name", unnamed.length === 0, unnamed.join(" "));
await reader.focus("#tab-predict");
await reader.keyboard.press("ArrowRight");
check("arrow keys change the view", await reader.isVisible("#view-axes"));
await reader.context().close();
await browser.close();
console.log(`${checks} checks, ${failures} failures`);
process.exit(failures ? 1 : 0);
