// SPDX-License-Identifier: MIT
// Puts the page together: web/*, the core as WebAssembly (packed), uPlot with its licence -> one file, with
// a policy that lets exactly these scripts and styles run and nothing leave the page.
// Usage: node tools/page.mjs CORE.wasm OUT.html
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const [coreFile, out] = process.argv.slice(2);
const read = (name) => readFileSync(name, "utf8");
const scripts = ["core", "aside", "draw", "words", "curve", "verdict", "form", "state", "job", "share", "compare", "predict", "axes", "launch", "plan", "timeline", "trace", "replay", "scale", "answers", "report", "drop", "examples", "app"];
// Comments, indentation and long names are for the people who read the source. Without terser (npm ci) the page is larger and the same.
const lean = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("// ")).join("\n");
const terser = await import("terser").catch(() => null);
const short = async (text, toplevel) => (terser ? (await terser.minify(text, { toplevel, ecma: 2020 })).code : text);
const source = (name) => lean(read(`web/${name}.js`));
const uplot = "node_modules/uplot";
const licence = read(`${uplot}/LICENSE`).trim();
const put = (page, mark, text) => {
  if (!page.includes(mark)) throw new Error(`web/index.html has no ${mark}`);
  return page.replace(mark, () => text);
};
// LZMA without its header of 13 bytes: a tenth smaller than gzip. The loader holds the decoder, for these settings.
const lzma = (data) => {
  const done = spawnSync("xz", ["-c", "--format=lzma", "--lzma1=dict=1MiB,lc=3,lp=0,pb=0,nice=273,mf=bt4,depth=1000"], { input: data, maxBuffer: 1 << 24 });
  if (done.status !== 0) throw new Error(`xz is needed to pack the page: ${done.error ?? done.stderr}`);
  return done.stdout.subarray(13);
};
// Two of 91 letters for 13 bits, after the lengths before and after packing; < would end what it stands in.
const letter = (i) => String.fromCharCode(i + (i < 25 ? 35 : 36));
const packed = (data) => {
  const bytes = lzma(data);
  let text = `${Buffer.byteLength(data)}:${bytes.length}:`, bits = 0, held = 0;
  const put13 = () => { const v = (bits >>> Math.max(0, held - 13)) & 8191; text += letter(v % 91) + letter(Math.floor(v / 91)); held -= 13; };
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfffff;
    held += 8;
    if (held >= 13) put13();
  }
  if (held > 0) { bits = (bits << (13 - held)) & 0xfffff; held = 13; put13(); }
  return text;
};
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

// What the first paint needs of the style stands unpacked; the rest, from its line LATER on, comes with the scripts.
const tight = (css) => css.replace(/\/\*[^]*?\*\//g, "").replace(/\s*([{};,])\s*/g, "$1").replace(/: /g, ":").replace(/;}/g, "}").replace(/ > /g, ">").replace(/\b0\./g, ".");
const [first, rest] = read("web/style.css").split("/* LATER */");
const style = tight(first), later = read(`${uplot}/dist/uPlot.min.css`).trim() + tight(rest);
const loader = await short(source("loader"), false);
const worker = await short(`"use strict";\n${source("core")}\n${source("worker")}`, true);
const views = await short(`"use strict";\n(() => {\nconst workerSource = ${JSON.stringify(worker)};\n${scripts.map(source).join("\n")}\n})();`, false);
// Of the body only what is seen before the scripts run stands unpacked; the views come with them.
const [before, sections, after] = read("web/index.html").replace(/\n +</g, "\n<").split(/<!--\/?LATER-->\n/);
const app = `/* uPlot\n${licence}\n*/document.getElementById("later").outerHTML=${JSON.stringify(sections)};document.head.append(Object.assign(document.createElement("style"),{textContent:${JSON.stringify(later)}}));${read(`${uplot}/dist/uPlot.iife.min.js`)}\n${views}`;
const policy = ["default-src 'none'", `script-src ${hash(loader)} ${hash(app)} 'wasm-unsafe-eval'`, `style-src ${hash(style)} ${hash(later)}`, "worker-src blob:", "img-src data: blob:", "base-uri 'none'", "form-action 'none'"].join("; ");

let page = `${before}<div id="later"></div>\n${after}`;
page = put(page, "/*POLICY*/", policy);
page = put(page, "/*STYLE*/", style);
page = put(page, "<!--LICENCES-->", "Curves by uPlot (MIT licence).");
page = put(page, "/*APP*/", packed(app));
page = put(page, "/*CORE*/", packed(readFileSync(coreFile)));
page = put(page, "/*LOADER*/", loader);
writeFileSync(out, page);
