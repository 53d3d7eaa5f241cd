// SPDX-License-Identifier: MIT
// Puts the page together: web/*, the core as WebAssembly (packed), uPlot with its licence -> one file.
// Usage: node tools/page.mjs CORE.wasm OUT.html
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const [coreFile, out] = process.argv.slice(2);
const read = (name) => readFileSync(name, "utf8");
const scripts = ["core", "draw", "form", "predict", "axes", "timeline", "trace", "answers", "app"];
// Comments and indentation are for the people who read the source.
const lean = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("// ")).join("\n");
const uplot = "node_modules/uplot";
const licence = read(`${uplot}/LICENSE`).trim();
const put = (page, mark, text) => {
  if (!page.includes(mark)) throw new Error(`web/index.html has no ${mark}`);
  return page.replace(mark, () => text);
};
let page = read("web/index.html");
page = put(page, "/*STYLE*/", read(`${uplot}/dist/uPlot.min.css`) + read("web/style.css").replace(/\n\s*/g, "\n"));
page = put(page, "<!--LICENCES-->", `Curves by uPlot (MIT licence).<!--\nuPlot\n${licence}\n-->`);
const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");
const app = `"use strict";\n(() => {\n${scripts.map((name) => lean(read(`web/${name}.js`))).join("\n")}\n})();`;
page = put(page, "/*APP*/", packed(`${read(`${uplot}/dist/uPlot.iife.min.js`)}\n${app}`));
page = put(page, "/*CORE*/", packed(readFileSync(coreFile)));
writeFileSync(out, page);
