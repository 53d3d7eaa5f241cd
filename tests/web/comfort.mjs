// SPDX-License-Identifier: MIT
// For everybody: phone, dark, paper, keyboard, screen reader, contrast.
import { createServer } from "node:http";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { address, check, drop, fits, open, out, pageFile, show, settled, text, url } from "./browser.mjs";

const straggler = ["examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"];
const views = ["predict", "axes", "plan", "trace", "replay", "scale"];

// Text against what lies behind it, as WCAG counts it; [what, ratio] of all that is below 4.5 (3 when large).
const faint = (page) => page.evaluate(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 200) return c; } return [255, 255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility?.({ opacityProperty: true, visibilityProperty: true }) || e.closest(".stale, [disabled], .uplot, script")) continue;
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || (e.tagName === "INPUT" && e.type === "text");
    if (!own) continue;
    const style = getComputedStyle(e), a = light(rgb(e.tagName === "INPUT" && !e.value ? getComputedStyle(e, "::placeholder").color : style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) found.push(`${e.tagName.toLowerCase()}.${e.className} "${e.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)].slice(0, 6);
});

for (const scheme of ["light", "dark"]) {
  const page = await open(url, { colorScheme: scheme });
  for (const view of views) {
    if (view === "trace") { await page.click("#tab-trace"); await drop(page, straggler); }
    await show(page, view);
    if (view === "plan") await page.waitForSelector('body[data-plan="done"]');
    await settled(page);
    const found = await faint(page);
    check(`contrast of ${view}, ${scheme}`, found.length === 0, found.join("; "));
    await page.screenshot({ path: `${out}/${view}-${scheme}.png`, fullPage: true });
  }
  await page.context().close();
}

// ---- A phone ----
const phone = await open(url, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
for (const view of views) {
  if (view === "trace") { await phone.click("#tab-trace"); await drop(phone, straggler); }
  await show(phone, view);
  if (view === "plan") await phone.waitForSelector('body[data-plan="done"]');
  await settled(phone);
  await fits(phone, `${view} on a phone`);
  await phone.screenshot({ path: `${out}/${view}-phone.png`, fullPage: true });
}
await show(phone, "predict");
await phone.click("#predict-form .sheet");
const [chart, slider] = await phone.evaluate(() => ["chart-efficiency", "predict-form-at-slider"].map((id) => document.getElementById(id).getBoundingClientRect().top));
check("on a phone the inputs are a sheet over the answer", slider > 200 && slider < 844 && chart < 844 && await phone.isVisible("#predict-form-at-slider"), `${chart} ${slider}`);
await phone.click("#predict-form .sheet");
check("and it closes", !(await phone.isVisible("#predict-form-at-slider")));
check("a finger can scroll over the timeline", (await phone.$eval("#timeline", (c) => getComputedStyle(c).touchAction)) === "pan-y");
await phone.context().close();

// ---- Paper ----
const a4 = 703; // pixels between margins of 12 mm
const paper = async (what, file, most, prepare) => {
  const page = await open(file, { colorScheme: "dark", viewport: { width: a4, height: 1000 } });
  await prepare?.(page);
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.waitForTimeout(150);
  const wide = await page.evaluate((width) => [...document.querySelectorAll("main table, main figure, main canvas")].filter((e) => e.offsetParent && e.getBoundingClientRect().right > width + 1).map((e) => `${e.tagName} ${e.closest("figure")?.querySelector("figcaption")?.textContent ?? ""} ${Math.round(e.getBoundingClientRect().right)}`), a4);
  check(`${what} on paper: nothing is cut`, wide.length === 0, wide.slice(0, 4).join("; "));
  check(`${what} on paper: no inputs`, await page.evaluate(() => [...document.querySelectorAll("form, header, .drop")].every((e) => !e.offsetParent || getComputedStyle(e).display === "none")));
  check(`${what} on paper: colours are kept`, await page.evaluate(() => [...document.querySelectorAll(".bar i, .tile")].every((e) => getComputedStyle(e).printColorAdjust === "exact")));
  check(`${what} on paper: light`, await page.evaluate(() => document.documentElement.dataset.theme === "light"));
  const pdf = await page.pdf({ path: `${out}/print-${what}.pdf`, format: "A4", preferCSSPageSize: true, printBackground: false });
  const pages = (pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length;
  console.log(`${what} on A4: ${pages} pages`);
  check(`${what} on paper: ${pages} pages <= ${most}`, pages <= most);
  await page.context().close();
};
await paper("predict", url, 2);
await paper("plan", `${url}#plan`, 2, (page) => page.waitForSelector('body[data-plan="done"]'));
await paper("trace", url, 2, async (page) => { await page.click("#tab-trace"); await drop(page, straggler); });
if (existsSync(`${out}/report-megatron.html`)) await paper("megatron", address(`${out}/report-megatron.html`), 3);
for (const name of ["scale", "lab"]) if (existsSync(`${out}/report-${name}.html`)) await paper(name, address(`${out}/report-${name}.html`), 3);

// ---- Names and keys for people who do not look ----
const reader = await open(url);
for (const view of views) {
  await show(reader, view);
  const unnamed = await reader.evaluate(() => [...document.querySelectorAll("input, select, textarea, button, canvas, [role=img], [role=region], progress, dialog")].filter((e) =>
    !(e.labels?.length || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.closest("label, .chart[aria-label], .uplot"))).map((e) => e.id || e.outerHTML.slice(0, 80)));
  check(`${view}: everything has a name`, unnamed.length === 0, unnamed.join(" "));
}
const twice = await reader.evaluate(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id); return ids.filter((id, i) => ids.indexOf(id) !== i); });
check("names of elements are unique", twice.length === 0, twice.join(" "));
await reader.focus("#tab-scale");
await reader.keyboard.press("ArrowRight");
check("arrow keys change the view", await reader.isVisible("#view-plan"));
await show(reader, "predict");
await reader.keyboard.press("Tab");
const reached = [];
for (let i = 0; i < 40; i++) {
  reached.push(await reader.evaluate(() => document.activeElement.id));
  await reader.keyboard.press("Tab");
}
check("boxes and sliders are reached by Tab", reached.includes("job-model") && reached.includes("predict-form-at-slider"), reached.join(" "));
await reader.focus("#predict-form-overlap-slider");
const before = await text(reader, "predict-tiles");
await reader.keyboard.press("ArrowRight");
check("a slider moves by keys and keeps the focus", before !== (await text(reader, "predict-tiles")) && (await reader.evaluate(() => document.activeElement.id)) === "predict-form-overlap-slider");
check("help is shown where the focus is", await reader.isVisible("#predict-form-overlap-help"));
check("the policy lets nothing in", /default-src 'none'/.test(await reader.getAttribute("meta[http-equiv]", "content")) && !/unsafe-inline|unsafe-eval'(?<!wasm-unsafe-eval')/.test(await reader.getAttribute("meta[http-equiv]", "content")));
await reader.context().close();

// ---- Served over http there is a link that others can open ----
const server = createServer((request, response) => { response.writeHead(200, { "content-type": "text/html" }); response.end(readFileSync(pageFile)); }).listen(0, "127.0.0.1");
await new Promise((good) => server.once("listening", good));
const served = await open(`http://127.0.0.1:${server.address().port}/#predict`);
await served.fill("#predict-form-overlap", "0.8");
await served.press("#predict-form-overlap", "Enter");
await settled(served);
await served.click("#share-open");
const link = await served.inputValue("#share-link");
check("a link when served", link.startsWith("http://127.0.0.1") && (await served.isVisible("#share-link-row")));
const guest = await open(link);
check("that opens the same", (await guest.inputValue("#predict-form-overlap")) === "0.8");
for (const page of [guest, served]) await page.context().close();
server.close();
console.log(`${readdirSync(out).filter((f) => f.endsWith(".png") && statSync(`${out}/${f}`).size > 0).length} screenshots in ${out}`);
