// SPDX-License-Identifier: MIT
// Several runs at once, jobs without GPUs, files that say nothing, and scripts that fail: the page always
// shows an answer or says what is wrong.
import { readFileSync, readdirSync, writeFileSync, existsSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { answer, check, drop, fits, native, near, open, out, same, text, url, value } from "./browser.mjs";

const page = await open(`${url}#trace`);
const straggler = [0, 1].map((r) => `examples/straggler/rank${r}.json.gz`);
const clear = async () => { if (await page.isVisible("#files-clear")) await page.click("#files-clear"); };

// The same recording an hour later is another run.
const later = (file, name) => {
  const text = gunzipSync(readFileSync(file)).toString().replace(/("ts":\s*)(\d+)/g, (_, key, ts) => `${key}${BigInt(ts) + 3600000000n}`).replace(/("baseTimeNanoseconds":\s*)(\d+)/, (_, key, ns) => `${key}${BigInt(ns) + 3600000000000n}`);
  writeFileSync(`${out}/${name}`, gzipSync(text));
  return `${out}/${name}`;
};
const second = straggler.map((file, r) => later(file, `later${r}.json.gz`));
const both = native("trace", ...straggler, ...second);
if (check("the program tells two runs apart", both.runs?.length === 2)) {
  await drop(page, [...straggler, ...second], "runs");
  same("two runs dropped at once: the program's answer", await answer(page), both);
  check("one row for each", (await page.$$("#trace-runs [data-run]")).length === 2);
  await page.screenshot({ path: `${out}/runs.png`, fullPage: true });
  await fits(page, "runs");
  await page.click('#trace-runs [data-run="1"]');
  await page.waitForSelector('body[data-ready="trace"]');
  near("a run opened has its step", await value(page, "tile-trace-step"), both.runs[1].verdict.step_s);
  check("and its timeline", await page.isVisible("#timeline"));
  await page.click("#tab-replay");
  check("replay is of the run that is open", (await answer(page)).measured_step_s > 0);
  await page.click("#tab-trace");
  for (const i of [0, 1]) await page.check(`#trace-runs [aria-label="compare run ${i + 1}"]`);
  await page.click("#runs-compare");
  await page.waitForSelector('body[data-ready="answer"]');
  check("two runs of one drop are compared", (await answer(page)).schema === "knee.diff/1");
  await page.click("#tab-trace");
  await page.click(".chip:nth-child(2) .remove");
  await page.waitForSelector('body[data-ready="trace"]');
  near("a run left out leaves the other", (await answer(page)).verdict.step_s, both.runs[0].verdict.step_s);
  await drop(page, second, "runs");
  check("one run after the other: both are there", (await answer(page)).runs?.length === 2);
}

// Jobs without GPUs: gloo, as the program reads them.
await clear();
const gloo = readdirSync("tests/captures/gloo_late").map((f) => `tests/captures/gloo_late/${f}`);
await drop(page, gloo);
same("a job without GPUs: the program's answer", await answer(page), native("trace", ...gloo));

// Files without GPU work beside others: named with the reason, three at most.
await clear();
const idle = [1, 2, 3, 4, 5].map((i) => {
  writeFileSync(`${out}/host${i}.json`, JSON.stringify({ traceEvents: [{ ph: "X", cat: "cpu_op", name: `aten::op${i}`, pid: 1, tid: 1, ts: 10 * i, dur: 5 }] }));
  return `${out}/host${i}.json`;
});
await drop(page, [...straggler, ...idle]);
same("files without GPU work: the program's answer", (({ refused, ...rest }) => rest)(await answer(page)), (({ refused, ...rest }) => rest)(native("trace", ...straggler, ...idle)));
const unused = await text(page, "trace-gaps");
check("files that were not used are named, three of them, with the number of the others", (unused.match(/host\d\.json/g) ?? []).length === 3 && /2 more/.test(unused), unused);
check("and the answer is of the two that were", (await answer(page)).ranks.length === 2);

// Every set beside the repository that the program takes for several runs.
const shared = "../shared/data/h200/whatif";
if (existsSync(shared)) {
  await clear();
  const files = readdirSync(shared).filter((f) => f.endsWith(".json.gz")).map((f) => `${shared}/${f}`);
  await drop(page, files, "runs");
  same("seven runs of an H200", await answer(page), native("trace", ...files));
  await page.screenshot({ path: `${out}/runs-h200.png`, fullPage: true });
}

// A collective that began long before what is shown, behind thousands of kernels: drawn, named, and found.
await clear();
const events = [{ ph: "M", name: "process_name", pid: 0, args: { name: "python" } }, { ph: "X", cat: "kernel", name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL", pid: 0, tid: 9, ts: 1000, dur: 60000, args: { stream: 9, device: 0 } }];
for (let i = 0; i < 5000; i++) events.push({ ph: "X", cat: "kernel", name: `gemm_${i % 7}`, pid: 0, tid: 7, ts: 1000 + 12 * i, dur: 10, args: { stream: 7, device: 0 } });
writeFileSync(`${out}/hidden.json`, JSON.stringify({ distributedInfo: { rank: 0, world_size: 1 }, traceEvents: events }));
await drop(page, [`${out}/hidden.json`]);
const lane = () => page.$eval("#timeline", (c) => { const k = devicePixelRatio, d = c.getContext("2d").getImageData(400 * k, (29 + 15) * k, 1, 1).data; return d[3]; });
await page.focus("#timeline");
for (let i = 0; i < 14; i++) await page.keyboard.press("w");
check("zoomed in, a long collective is still drawn", (await lane()) > 0);
await page.hover("#timeline", { position: { x: 400, y: 29 + 15 } });
check("and still named under the pointer", /AllReduce/.test(await text(page, "timeline-tip")), await text(page, "timeline-tip"));
await page.screenshot({ path: `${out}/hidden-collective.png` });
await page.context().close();

// A script that fails is said on the page.
const failing = await open(url, { expectErrors: true });
await failing.evaluate(() => setTimeout(() => { throw new Error("a test of the handler"); }));
await failing.waitForSelector('body[data-ready="failed"]');
check("an error in a script is said", /a test of the handler/.test(await text(failing, "page-error")) && await failing.isVisible("#page-error"));
await failing.context().close();
