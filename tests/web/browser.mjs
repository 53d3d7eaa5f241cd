// SPDX-License-Identifier: MIT
// What the tests of the page share: a browser, checks that are counted, the program beside the page.
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

export const [knee, pageFile, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
export const address = (file) => pathToFileURL(resolve(file)).href;
export const url = address(pageFile);
export const tally = { checks: 0, failures: 0 };
export const check = (what, good, more = "") => {
  tally.checks++;
  if (!good) { tally.failures++; console.log(`FAIL ${what} ${more}`); }
  return good;
};
// A figure that was promised: said when it is missed, a failure when it is missed by half as much again, and
// by more than the other work on the machine explains (what runs at once, over the cores).
export const figure = (what, got, most, unit) => {
  const busy = Math.max(1, loadavg()[0] / cpus().length);
  console.log(`${what} ${got.toFixed(1)} ${unit} <= ${most}${got <= most ? "" : `  MISSED${busy > 1.5 ? `, with ${busy.toFixed(0)} times the work this machine has cores for` : ""}`}`);
  check(what, got <= 1.5 * busy * most, String(got));
};
// Processor time of the page's own thread while something is done, in ms.
export const cpuTime = async (page, act) => {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const used = async () => (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
  const from = await used();
  await act();
  const took = (await used()) - from;
  await session.detach();
  return 1000 * took;
};
export const near = (what, got, want) => check(what, Math.abs(got - want) <= 1e-9 * Math.max(1e-300, Math.abs(want)), `${got}, not ${want}`);
export const native = (...args) => {
  try {
    return JSON.parse(execFileSync(knee, [...args, "--json"], { encoding: "utf8", maxBuffer: 1 << 29, stdio: ["ignore", "pipe", "ignore"] }));
  } catch (error) {
    if (error.status === 1 && error.stdout.startsWith("{")) return JSON.parse(error.stdout); // a gate: nothing fits, but it is answered
    throw error;
  }
};
export const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

// Where two answers differ first; numbers may differ in the last digits of functions like pow and log.
const passedBy = new Set(["file", "source"]); // names of files: the page knows no folders
// The same in sentences. A next command names a file or its folder; FILES stands for a path too long for its
// line, and the second command is left out of a line that is too long.
const withoutFolders = (words) => words.replace(/(?<=knee replay |knee trace --where )\S+/g, "FILES").replace("  |  knee trace --where FILES", "").replace(/\S+\/(?=\S+\.(json|gz))/g, "");
const leftOut = new Set(["published_runs", "gaps"]); // lists that web/lean.c leaves to the program: empty there
export const differ = (a, b, path = "") => {
  if (/^\.(answer|verdict)\./.test(path) && [a, b].every((words) => typeof words === "string")) return withoutFolders(a) === withoutFolders(b) ? null : `${path}: ${a}, not ${b}`;
  if (typeof a === "number" && typeof b === "number") return a === b || Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(a), Math.abs(b)) ? null : `${path}: ${a}, not ${b}`;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b ? null : `${path}: ${a}, not ${b}`;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (path === "" && leftOut.has(key) && a[key]?.length === 0) continue;
    if (passedBy.has(key) && typeof a[key] === "string" && typeof b[key] === "string" && b[key].endsWith(a[key].split("/").at(-1))) continue;
    const found = differ(a[key], b[key], `${path}.${key}`);
    if (found) return found;
  }
  return null;
};
export const same = (what, got, want) => { const found = got && want ? differ(got, want) : "there is none"; return check(what, !found, found ?? ""); };

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
export const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
export const open = async (where, { expectErrors = false, ...options } = {}) => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  context.setDefaultTimeout(120000); // for what never comes: a busy machine is slow, not wrong
  const page = await context.newPage();
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) check("console", false, m.text()); });
  page.on("pageerror", (e) => check("script error", expectErrors, `${e.message} ${e.stack}`));
  page.on("dialog", (d) => { check("dialog", false, d.message()); d.dismiss(); });
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url()) && !r.url().startsWith("http://127.0.0.1:")) check("network request", false, r.url()); });
  await page.goto(where === url ? `${url}#predict` : where); // the calculator answers on the page's own thread: most tests begin with it
  await page.waitForSelector("body[data-ready]");
  return page;
};
// A view by its tab; those inside another are reached through it.
export const show = async (page, view) => {
  const group = await page.getAttribute(`#tab-${view}`, "data-in");
  if (group) await page.click(`#tab-${group}`);
  await page.click(`#tab-${view}`);
};
export const settled = (page) => page.waitForSelector('body[data-settled="true"]');
export const value = async (page, id) => Number(await page.getAttribute(`#${id}`, "data-value"));
export const text = (page, id) => page.textContent(`#${id}`);
export const lines = (page, view) => page.$$eval(`#${view}-verdict .do, #${view}-verdict .why, #${view}-verdict .buys`, (list) => list.filter((p) => !p.hidden).map((p) => p.textContent));
// The same with what voids the answer, which stands before them.
export const allLines = (page, view) => page.$$eval(`#${view}-verdict > p`, (list) => list.filter((p) => p.checkVisibility()).map((p) => p.textContent));
export const answer = (page) => page.evaluate(() => globalThis.knee.answer);
// A slider to its place, 0 to 1; a box to a text.
export const slide = (page, id, share) => page.$eval(`[id="${id}-slider"]`, (e, s) => { e.value = Math.round(s * e.max); e.dispatchEvent(new Event("input", { bubbles: true })); }, share);
export const type = async (page, id, words) => {
  const box = page.locator(`[id="${id}"]`);
  await box.evaluate((e) => { const fold = e.closest("details"); if (fold) fold.open = true; });
  if ((await box.evaluate((e) => e.tagName)) === "SELECT") return box.selectOption(words);
  await box.fill(words);
  await box.press("Enter");
};
export const fits = async (page, what) => {
  const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(`${what}: nothing wider than the window`, wide <= shown, `${wide} > ${shown}`);
};
export const drop = async (page, files, ready = "trace") => {
  await page.evaluate(() => { delete document.body.dataset.ready; });
  await page.setInputFiles("#files", files);
  await page.waitForSelector(`body[data-ready="${ready}"]`);
};
// The settings of a calculator as arguments of the program, as a person would copy them.
export const command = async (page, name) => {
  await settled(page);
  await page.click("#share-open");
  const line = (await page.inputValue("#share-text")).split("\n").find((l) => l.startsWith(`knee ${name} `) || l === `knee ${name}`);
  await page.keyboard.press("Escape");
  return [...line.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].map((m) => m[1]?.replace(/'\\''/g, "'") ?? m[2]).slice(1);
};
