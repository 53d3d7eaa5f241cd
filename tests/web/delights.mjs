// SPDX-License-Identifier: MIT
// One click to an example, changes on the trace itself, what a part of the timeline is made of, Perfetto, plans as
// points, paper, and a report that is read without scripts.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { address, answer, browser, check, drop, fits, knee, native, near, open, out, same, settled, text, url, value } from "./browser.mjs";

const page = await open(`${url}#trace`);

// ---- Examples ----
await page.click("#trace-example");
await page.waitForSelector('body[data-ready="trace"]');
const example = await answer(page);
check("the example of Trace has two ranks, a cause and a late rank", example.ranks.length === 2 && example.verdict.suspect && example.verdict.late_ranks.includes(1), JSON.stringify(example.verdict));
await page.screenshot({ path: `${out}/example-trace.png`, fullPage: true });
await page.click("#tab-replay");
await page.waitForSelector('body[data-replay="done"]');
check("and can be replayed", (await answer(page))?.measured_step_s > 0);
await page.click("#tab-scale");
await page.click("#scale-example");
await page.waitForSelector('body[data-ready="scale"]');
check("the example of Scale is a curve of four counts", (await answer(page)).points.length === 4 && !(await page.getAttribute("#scale-verdict", "class")).includes("error"));
await page.screenshot({ path: `${out}/example-scale.png`, fullPage: true });

// ---- What if, on the trace ----
await page.click("#tab-trace");
await page.click("#files-clear");
const recorded = [0, 1].map((r) => `examples/straggler/rank${r}.json.gz`);
await drop(page, recorded);
const ticks = await page.$$eval("#trace-levers [data-change]", (list) => list.map((e) => e.dataset.change));
check("changes that can be replayed can be ticked", ticks.length >= 3, ticks.join(", "));
const flags = (change) => { const [key, ...rest] = change.split(" "); return rest.length ? [`--${key}`, rest.join(" ")] : [`--${key}`]; };
const two = ["wire bf16", "even"].filter((change) => ticks.includes(change));
for (const change of two) await page.check(`#trace-levers [data-change="${change}"]`);
near("ticked changes together are the program's replay", Number(await page.getAttribute("#trace-whatif", "data-value")), native("replay", ...recorded, ...two.flatMap(flags)).step_s);
for (const change of two) await page.uncheck(`#trace-levers [data-change="${change}"]`);
check("without ticks nothing is said", !(await page.isVisible("#trace-whatif")));

// ---- What the shown part is made of ----
await settled(page);
const sums = () => page.$$eval("#timeline-sums tbody tr", (rows) => rows.length);
check("each rank's labels are summed", (await sums()) === 2);
const window0 = await text(page, "timeline-sums");
await page.focus("#timeline");
for (let i = 0; i < 6; i++) await page.keyboard.press("w");
await settled(page);
check("and again for the part that is shown", window0 !== (await text(page, "timeline-sums")));
await page.keyboard.press("0");

// ---- A pinned rank stands first ----
await page.click("[data-pin='0']");
await settled(page);
check("a pinned rank stands first", (await page.$$eval("#timeline-sums tbody tr", (rows) => rows.map((r) => r.cells[0].textContent).join())) === "▲ rank 0,rank 1");
await page.click("[data-pin='0']");
await settled(page);

// ---- A range that is selected, details of a kernel, and the way to a late rank ----
const box = await (await page.$("#timeline")).boundingBox();
const wholeRange = await text(page, "timeline-sums");
await page.locator("#timeline").scrollIntoViewIfNeeded();
const at = await page.locator("#timeline").boundingBox();
await page.mouse.move(at.x + 300, at.y + 12);
await page.mouse.down();
await page.mouse.move(at.x + 500, at.y + 12, { steps: 4 });
await page.mouse.up();
await settled(page);
const selected = await text(page, "timeline-sums");
check("dragging selects a range, whose labels are summed", /^Selected: /.test(selected) && selected !== wholeRange && box.width > 500, selected.slice(0, 80));
await page.screenshot({ path: `${out}/range.png` });
await page.click("#timeline-focus");
await settled(page);
await page.mouse.click(at.x + 400, at.y + 44);
check("a click shows the details of a kernel", /Kernel.*Takes.*Calls in all ranks/s.test(await text(page, "timeline-details")), await text(page, "timeline-details"));
await page.focus("#timeline");
await page.keyboard.press("Escape");
await page.keyboard.press("0");
await page.locator("#trace-stragglers button").first().click();
await settled(page);
check("a late rank leads to where the others wait for it", /^Selected: .*exposed wait/s.test(await text(page, "timeline-sums")), (await text(page, "timeline-sums")).slice(0, 120));
await page.keyboard.press("Escape");
await page.keyboard.press("0");

// ---- Perfetto: its window is opened, asked, and given the trace ----
const given = await page.evaluate(() => new Promise((done) => {
  const sent = [];
  globalThis.open = (where) => {
    const other = { postMessage: (message, origin) => { sent.push([message === "PING" ? "PING" : message?.perfetto?.buffer?.byteLength, origin, where]); if (message === "PING") dispatchEvent(new MessageEvent("message", { origin: "https://ui.perfetto.dev", data: "PONG" })); else done(sent); } };
    return other;
  };
  document.getElementById("timeline-perfetto").click();
}));
check("Perfetto is given the trace of all ranks", given.at(-1)[0] > 10000 && given.every(([, origin, where]) => origin === "https://ui.perfetto.dev" && where === origin), JSON.stringify(given));

// ---- Headings, one announcement ----
check("every card has a heading of the second level", await page.$$eval("main section:not([hidden]) figure:not([hidden])", (list) => list.every((f) => f.querySelector("figcaption h2, figcaption"))) && (await page.$$("main section:not([hidden]) figcaption h2")).length > 5);
check("only the first line of a verdict is announced", (await page.$$eval("#trace-verdict [aria-live], #trace-verdict [role=status]", (list) => list.map((e) => e.className).join())) === "do");
await page.context().close();

// ---- What a stuck job left: the answer of knee hang ----
const stuck = await open(`${url}#trace`);
const left = readdirSync("examples/hang/skip").map((name) => `examples/hang/skip/${name}`);
await drop(stuck, left, "answer");
const hang = native("hang", ...left);
check("the page names the rank that a stuck job waits for", (await text(stuck, "answer-verdict")).includes(hang.answer.headline), await text(stuck, "answer-verdict"));
check("and shows all ranks", (await stuck.$$("#answer-figures tbody tr")).length >= hang.states.length);

// ---- What commands print on a host, and logs of NCCL: the answer of knee doctor ----
const host = ["examples/host/env", "examples/nccl.log"];
for (const files of [[host[1]], host]) {
  await drop(stuck, files, "answer");
  same(`doctor of ${files.length} files`, await answer(stuck), native("doctor", ...files));
}
const checkup = native("doctor", ...host);
check("the page says what is wrong with a host, and the fix", (await text(stuck, "answer-verdict")).includes(checkup.answer.headline) && (await text(stuck, "answer-figures")).includes(checkup.findings[0].cure), await text(stuck, "answer-verdict"));
check("and what it did not check", (await text(stuck, "answer-figures")).includes(checkup.answer.after[0].slice(0, 40)), checkup.answer.after[0]);
check("inputs are named as fields, not as flags; flags of other programs stay", !/--cluster/.test(await text(stuck, "answer-figures")) && (await text(stuck, "answer-figures")).includes("--device=/dev/infiniband"));
await stuck.screenshot({ path: `${out}/doctor.png`, fullPage: true });
await stuck.context().close();

// ---- At first ----
const start = await browser.newPage();
await start.goto(url);
await start.waitForSelector('body[data-plan="done"]');
check("the page begins with a plan; why and calculator stand in it", await start.isVisible("#view-plan") && await start.isVisible("#tab-axes") && !(await start.isVisible("#tab-replay")));
await start.close();

// ---- Plans as points ----
const plans = await open(`${url}#plan?plan.gpus=64`);
await plans.waitForSelector('body[data-plan="done"]');
await settled(plans);
const first = await text(plans, "plan-pinned");
await plans.selectOption("#plan-pick", { index: 0 });
check("another plan can be pinned, with its launch flags", first !== (await text(plans, "plan-pinned")) && /--/.test(await text(plans, "plan-pinned")));
await plans.locator("#plan-result .u-over").first().scrollIntoViewIfNeeded();
await plans.screenshot({ path: `${out}/plan-scatter.png`, fullPage: true });
await fits(plans, "plans as points");
const began = Date.now();
await plans.evaluate(() => { delete document.body.dataset.plan; });
await plans.fill("#job-model", "mixtral-8x7b 512");
await plans.press("#job-model", "Enter");
await plans.waitForSelector('body[data-plan="done"]');
console.log(`experts on 512 GPUs ${((Date.now() - began) / 1000).toFixed(1)} s <= 1`);
await plans.emulateMedia({ media: "print" });
await plans.evaluate(() => dispatchEvent(new Event("beforeprint")));
check("paper says what was asked, and when", /mixtral/.test(await text(plans, "print-head")) && /20\d\d-\d\d-\d\d/.test(await text(plans, "print-head")) && await plans.isVisible("#print-head"));
await plans.context().close();

const third = await open(`${url}#plan?plan.gpus=64&plan.tp=3`);
await third.waitForSelector('body[data-plan="done"]');
await settled(third);
check("a verdict names the field, not the flag", /“Tensor parallel”/.test(await text(third, "plan-verdict")) && !/--tp/.test(await text(third, "plan-verdict")), await text(third, "plan-verdict"));
await third.context().close();

// ---- A report without scripts ----
const file = `${out}/static.html`;
const printed = execFileSync(knee, ["trace", ...recorded, "--html", file], { encoding: "utf8" });
const plain = await browser.newContext({ javaScriptEnabled: false });
const still = await plain.newPage();
await still.goto(address(file));
const shown = await still.textContent("#static");
check("a report without scripts has what the command printed", shown.trim() === printed.replace(/\x1b\[[0-9;]*m/g, "").trim(), shown.slice(0, 80));
await still.screenshot({ path: `${out}/static.png` });
await plain.close();
const live = await open(address(file));
check("with scripts the page takes its place", (await live.$("#static")) === null && /\S/.test(await text(live, "trace-verdict")));
await live.context().close();
