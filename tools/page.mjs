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
  const done = spawnSync("xz", ["-c", "--format=lzma", "--lzma1=dict=1MiB,lc=2,lp=0,pb=0,nice=273,mf=bt4,depth=1000"], { input: data, maxBuffer: 1 << 24 });
  if (done.status !== 0) throw new Error(`xz is needed to pack the page: ${done.error ?? done.stderr}`);
  return done.stdout.subarray(13);
};
// How the loader reads it is said there. What is left of the last bits is filled up with zeros.
const letter = (i) => String.fromCharCode(i + 1 + (i > 11) + (i > 57));
const packed = (data) => {
  const bytes = lzma(data);
  let text = `${Buffer.byteLength(data)}:${bytes.length}:`, bits = 0, held = 0;
  for (let at = 0; at < bytes.length || held > 0;) {
    while (held < 7) { bits = ((bits << 8) | (bytes[at++] ?? 0)) & 0xffff; held += 8; }
    const seven = (bits >>> (held - 7)) & 127;
    text += letter(seven < 122 ? seven : 61 + (seven >> 1));
    held -= seven < 122 ? 7 : 6;
    if (at >= bytes.length && 8 * (at - bytes.length) >= held) break;
  }
  return text;
};
// The core with its functions as streams, for kneeCore.
const { kneeBody, kneeCore } = new Function(`${read("web/loader.js").split("// After the first paint")[0]}; return { kneeBody, kneeCore };`)();
const streamed = (wasm) => {
  const leb = (at) => { let v = 0, shift = 0; do { v += (wasm[at] & 127) << shift; shift += 7; } while (wasm[at++] > 127); return [v, at]; };
  const streams = Array.from({ length: 8 }, () => []);
  let at = 8, length;
  for (; wasm[at] !== 10; at += length) [length, at] = leb(at + 1);
  let [count, from] = leb(leb(at + 1)[1]);
  const before = from;
  for (let i = 0; i < count; i++) {
    from = leb(from)[1];
    kneeBody((stream) => { streams[stream].push(wasm[from]); return wasm[from++]; });
  }
  const head = new Uint32Array([before, wasm.length - from, count, wasm.length, ...streams.map((stream) => stream.length)]);
  const bytes = Buffer.concat([Buffer.from(head.buffer), wasm.subarray(0, before), wasm.subarray(from), ...streams.map((stream) => Buffer.from(stream))]);
  if (Buffer.compare(kneeCore(new Uint8Array(bytes)), wasm)) throw new Error("the core does not come back from its streams");
  return bytes;
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
page = put(page, "/*CORE*/", packed(streamed(readFileSync(coreFile))));
page = put(page, "/*LOADER*/", loader);
writeFileSync(out, page);
