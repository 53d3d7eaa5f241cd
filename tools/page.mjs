// SPDX-License-Identifier: MIT
// Puts the page together: web/*, the core as WebAssembly (packed), uPlot with its licence -> one file, with
// a policy that lets exactly these scripts and styles run and nothing leave the page.
// Usage: node tools/page.mjs CORE.wasm OUT.html
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const [coreFile, out] = process.argv.slice(2);
const read = (name) => readFileSync(name, "utf8");
const scripts = ["core", "aside", "draw", "words", "curve", "verdict", "form", "state", "share", "compare", "predict", "axes", "launch", "plan", "timeline", "trace", "replay", "scale", "answers", "report", "drop", "app"];
// Comments and indentation are for the people who read the source.
const lean = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("// ")).join("\n");
const source = (name) => lean(read(`web/${name}.js`));
const uplot = "node_modules/uplot";
const licence = read(`${uplot}/LICENSE`).trim();
const put = (page, mark, text) => {
  if (!page.includes(mark)) throw new Error(`web/index.html has no ${mark}`);
  return page.replace(mark, () => text);
};
// zopfli takes seconds and saves a twentieth; without it the page is larger and the same.
const gzip = (data) => {
  const file = `${out}.part`;
  writeFileSync(file, data);
  const done = spawnSync("zopfli", ["-c", file], { maxBuffer: 1 << 24 });
  rmSync(file);
  return done.status === 0 ? done.stdout : gzipSync(data, { level: 9 });
};
// Two of 91 letters for 13 bits, after the length in bytes; < would end what it stands in.
const letter = (i) => String.fromCharCode(i + (i < 25 ? 35 : 36));
const packed = (data) => {
  const bytes = gzip(data);
  let text = `${bytes.length}:`, bits = 0, held = 0;
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

// The style stands unpacked, so that the page is never seen without it: its spaces are bytes of the page.
const tight = (css) => css.replace(/\/\*[^]*?\*\//g, "").replace(/\s*([{};,])\s*/g, "$1").replace(/: /g, ":").replace(/;}/g, "}");
const style = read(`${uplot}/dist/uPlot.min.css`) + tight(read("web/style.css"));
const loader = source("loader");
const worker = `"use strict";\n${source("core")}\n${source("worker")}`;
const app = `${read(`${uplot}/dist/uPlot.iife.min.js`)}\n"use strict";\n(() => {\nconst workerSource = ${JSON.stringify(worker)};\n${scripts.map(source).join("\n")}\n})();`;
const policy = ["default-src 'none'", `script-src ${hash(loader)} ${hash(app)} 'wasm-unsafe-eval'`, `style-src ${hash(style)}`, "worker-src blob:", "img-src data: blob:", "base-uri 'none'", "form-action 'none'"].join("; ");

let page = read("web/index.html").replace(/\n +</g, "\n<");
page = put(page, "/*POLICY*/", policy);
page = put(page, "/*STYLE*/", style);
page = put(page, "<!--LICENCES-->", `Curves by uPlot (MIT licence).<!--\nuPlot\n${licence}\n-->`);
page = put(page, "/*APP*/", packed(app));
page = put(page, "/*CORE*/", packed(readFileSync(coreFile)));
page = put(page, "/*LOADER*/", loader);
writeFileSync(out, page);
