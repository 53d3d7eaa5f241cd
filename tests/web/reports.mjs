// SPDX-License-Identifier: MIT
// Pages that the program writes, of every command: what they are about stands on top, and the numbers are
// those that the command printed.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { address, check, fits, knee, open, out, same } from "./browser.mjs";

const logs = ["examples/scale/gpt_8.log", "examples/scale/gpt_16.log", "examples/scale/gpt_32.log"];
const commands = [["predict", "--example"], ["tax", "--model", "llama3-70b", "--gpu", "h100", "--fsdp", "64", "--tp", "8"], ["trace", "examples/straggler"], ["replay", "examples/straggler"],
  ["lab", "--steps", "4", "--synthetic-compute", "--compute-time", "20ms"], ["plan", "--model", "llama3-8b", "--gpu", "h100", "--gpus", "8..256x2"], ["validate", "examples/runs.csv"], ["scale", ...logs, "--gpu", "h100"],
  ["collective", "--against", "examples/one_rail_32.log", "--cluster", "8xh100 * 4 @ ib400x8"], ["fit", "examples/all_reduce_16.log", "examples/all_gather_16.log"], ["diff", "examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"],
  ["doctor", "examples/nccl.log", "--gate", "error"], ["hang", "examples/hang/skip"]];
export const files = {};
for (const args of commands) {
  const file = files[args[0]] = resolve(out, `report-${args[0]}.html`);
  let answer;
  try {
    answer = JSON.parse(execFileSync(knee, [...args, "--html", file, "--json"], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }));
  } catch (error) { // a command that writes no page of its own: knee report makes one of its JSON
    const json = resolve(out, `${args[0]}.json`);
    writeFileSync(json, error.stdout?.startsWith("{") ? error.stdout : execFileSync(knee, [...args, "--json"], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }));
    execFileSync(knee, ["report", json, "-o", file], { stdio: "ignore" });
    answer = JSON.parse(readFileSync(json, "utf8"));
  }
  const report = await open(address(file));
  const given = (a) => ({ ...a, ...(a.schema === "knee.predict/1" ? { inputs: a.inputs.map((i) => ({ ...i, source: i.source.replace("file", "given") })) } : {}) }); // the page was given what the file says
  same(`report of ${args[0]}: the answer`, given(await report.evaluate(() => globalThis.knee.answer)), given(answer));
  const shown = await report.evaluate(() => [...document.querySelectorAll(".verdict")].filter((v) => v.offsetParent).map((v) => v.textContent).join(" "));
  const v = { ...answer, ...answer.verdict };
  for (const words of [v.do ?? v.sentence, v.why, v.buys]) if (words) check(`report of ${args[0]}: its verdict`, shown.includes(words.trim()), `${words} | ${shown}`);
  const head = await report.textContent("#report-head");
  check(`report of ${args[0]}: title, date, command, version`, /Made\d{4}-\d\d-\d\d \d\d:\d\d UTC/.test(head) && /Command *knee /.test(head) && /Versionknee \d/.test(head) && (await report.title()).endsWith("(knee)"), head);
  check(`report of ${args[0]}: no drop zone`, await report.isHidden("#drop"));
  if (args[0] === "trace") check("report of a trace: GPU and files", /GPUNVIDIA H200/.test(head) && /rank0\.json\.gz/.test(head), head);
  await fits(report, `report of ${args[0]}`);
  await report.context().close();
  const dark = await open(address(file), { colorScheme: "dark" });
  await dark.screenshot({ path: `${out}/report-${args[0]}-dark.png`, fullPage: true });
  await dark.context().close();
}
check("a report is one file", existsSync(files.trace));
