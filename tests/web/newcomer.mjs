// SPDX-License-Identifier: MIT
// Ten tasks of somebody who sees the page for the first time, with what each takes: clicks (a press of a
// button, a key that commits, a file chosen) and words typed. The answer to each must stand on the screen.
import { readFileSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { address, check, knee, lines, open, out, settled, text, url } from "./browser.mjs";

let clicks = 0, typed = 0;
const person = async (where) => {
  const page = await open(where);
  return {
    page,
    click: async (what) => { clicks++; await (typeof what === "string" ? page.locator(what) : what).first().click(); },
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
  check(`newcomer: ${name}: at most 3 clicks`, clicks <= 3, String(clicks));
};
const straggler = ["examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"];
const must = (words, sign) => (sign.test(words) ? words : "");
const me = await person(`${url}#plan`); // what a visitor sees first
const { page } = me;

const planned = async () => { await page.waitForSelector('body[data-plan="done"][data-settled="true"]'); return (await lines(page, "plan"))[0]; };
await task("size a job", async () => {
  await page.evaluate(() => { delete document.body.dataset.plan; });
  await me.type("job-model", "llama2-70b h200");
  return must(await planned(), /^Use \d+ GPUs/);
});
await task("which plan", async () => {
  await page.evaluate(() => { delete document.body.dataset.plan; });
  await me.type("job-model", "llama3-70b on 512 h100");
  const said = await planned();
  await me.click(page.getByRole("button", { name: "Copy" }));
  await page.screenshot({ path: `${out}/newcomer-plan.png` });
  return must(said, /^Use (TP|PP|DP|FSDP) \d.*micro-batch \d/);
});
await task("find both limits", async () => {
  await me.click("#tab-axes");
  const said = await text(page, "axes-thresholds");
  return must(said, /past 8 it leaves the node/) && must(said, /below [\d,]+ tokens a GPU/);
});
await task("read my trace", async () => {
  await me.files("files", straggler, "trace");
  await page.screenshot({ path: `${out}/newcomer-trace.png` });
  return must((await lines(page, "trace")).join(" "), /of the .* step is/);
});
await task("who is late", async () => must(await page.textContent("body"), /rank 1/));
await task("what if bf16", async () => {
  await me.click("#tab-replay");
  await me.type("replay-wire", "bf16");
  await page.screenshot({ path: `${out}/newcomer-replay.png` });
  return must(await text(page, "replay-verdict"), /Send gradients as bf16: [\d.]+x throughput/);
});
await task("is my log normal", async () => {
  await me.files("files", ["examples/scale/gpt_8.log"], "scale");
  await me.click('[data-gpu="h100"]');
  return must(await text(page, "scale-verdict"), /predict|expect|published|model/i);
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
for (const line of readFileSync(`${out}/settings.txt`, "utf8").trim().split("\n").filter((l) => l.startsWith("knee"))) {
  const ran = spawnSync("sh", ["-c", line.replace(/^knee/, knee)], { encoding: "utf8" }); // 1: it is answered, but does not fit
  check("what was copied runs in a shell", (ran.status === 0 || (ran.status === 1 && /^Does not fit/m.test(ran.stdout))) && ran.stdout.length > 100, `${line}: ${ran.status} ${ran.stderr}`);
}
await settled(page);
await page.context().close();
