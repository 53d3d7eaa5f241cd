// SPDX-License-Identifier: MIT
// Ten tasks of somebody who sees the page for the first time, with what each takes: clicks (a press of a
// button, a key that commits, a file chosen) and words typed. The answer to each must stand on the screen.
import { readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { address, check, knee, lines, open, out, settled, text, url } from "./browser.mjs";

let clicks = 0, typed = 0;
const person = async (where) => {
  const page = await open(where);
  return {
    page,
    click: async (what) => { clicks++; await (typeof what === "string" ? page.locator(what) : what).first().click(); },
    choose: async (id, value) => { clicks += 2; await page.selectOption(`#${id}`, value); },
    type: async (id, words) => { clicks += 2; typed++; await page.fill(`#${id}`, words); await page.press(`#${id}`, "Enter"); },
    tick: async (id) => { clicks++; await page.check(`#${id}`); },
    files: async (id, list, ready) => { clicks += 2; await page.evaluate(() => { delete document.body.dataset.ready; }); await page.setInputFiles(`#${id}`, list); await page.waitForSelector(`body[data-ready="${ready}"]`); },
  };
};
const task = async (name, act) => {
  clicks = typed = 0;
  const said = await act();
  console.log(`newcomer: ${name}: ${clicks} click${clicks === 1 ? "" : "s"}, ${typed} typed: ${said.replace(/\s+/g, " ").slice(0, 110)}`);
  check(`newcomer: ${name}`, Boolean(said));
};
const straggler = ["examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"];
const must = (words, sign) => (sign.test(words) ? words : "");
const me = await person(url);
const { page } = me;

await task("size a job", async () => {
  await me.choose("predict-form-model", "llama2-70b");
  await me.choose("predict-form-gpu", "h200");
  return must((await lines(page, "predict"))[0], /\d+ GPUs/);
});
await task("find both flips", async () => {
  await me.click("#tab-axes");
  await me.type("axes-form-tp", "16");
  const far = must(await page.textContent("#threshold-tp.broken"), /network/);
  await me.type("axes-form-tp", "1");
  await me.type("axes-form-seq", "512");
  return far && must(await page.textContent("#threshold-tokens.broken"), /cannot hide/);
});
await task("which plan", async () => {
  await me.click("#tab-plan");
  await me.click("#plan-form-reset");
  await me.choose("plan-form-model", "llama3-70b");
  await me.type("plan-form-gpus", "512");
  await page.waitForSelector('body[data-plan="done"][data-settled="true"]');
  await me.click(page.getByRole("button", { name: "Copy" }));
  await page.screenshot({ path: `${out}/newcomer-plan.png` });
  return must((await lines(page, "plan"))[0], /^Use .*GPUs/);
});
await task("read my trace", async () => {
  await me.click("#tab-trace");
  await me.files("files", straggler, "trace");
  await page.screenshot({ path: `${out}/newcomer-trace.png` });
  return must((await lines(page, "trace")).join(" "), /The cause is/);
});
await task("who is late", async () => must((await lines(page, "trace"))[1], /rank 1, which comes last/));
await task("what if bf16", async () => {
  await me.click("#tab-replay");
  await me.type("replay-wire", "bf16");
  await page.screenshot({ path: `${out}/newcomer-replay.png` });
  return must(await text(page, "replay-verdict"), /wire bf16: the step goes from .* to /);
});
await task("is my log normal", async () => {
  await me.click("#tab-scale");
  await me.files("files", ["examples/scale/gpt_8.log"], "scale");
  await me.choose("scale-form-gpu", "h100");
  return must(`${await text(page, "scale-verdict")} ${await text(page, "drop-said")}`, /runs as it should|times slower|faster than the model/);
});
await task("compare two runs", async () => {
  await me.click("#tab-trace");
  await me.files("files-other", [straggler[1]], "answer");
  return must(await text(page, "answer-verdict"), /\S/);
});
await task("share it", async () => {
  await me.click("#share-open");
  await me.click("#share-copy");
  await page.waitForFunction(() => document.getElementById("share-said").textContent);
  const words = await page.inputValue("#share-text");
  writeFileSync(`${out}/settings.txt`, words);
  return must(words, /^knee predict .*\nknee tax .*\nknee plan /);
});
await task("print it", async () => {
  await page.keyboard.press("Escape");
  await me.click("#tab-trace");
  clicks++; // Ctrl-P
  const pdf = await page.pdf({ path: `${out}/newcomer.pdf`, format: "A4", preferCSSPageSize: true });
  return must(`${(pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length} pages`, /^[1-3] pages/);
});
// What was copied runs in a shell.
for (const line of readFileSync(`${out}/settings.txt`, "utf8").trim().split("\n").filter((l) => l.startsWith("knee")))
  check("what was copied runs in a shell", execFileSync("sh", ["-c", line.replace(/^knee/, knee)], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).length > 100, line);
await settled(page);
await page.context().close();
