// SPDX-License-Identifier: MIT
// The core as WebAssembly against the program: every case must print the same JSON, number by number.
// Usage: node tests/web/core.mjs KNEE CORE.wasm
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const [knee, wasm] = process.argv.slice(2);
const nothing = () => 0;
const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {
  page: { progress: () => 1 },
  wasi_snapshot_preview1: { fd_close: nothing, fd_seek: nothing, fd_write: nothing, proc_exit: nothing },
});
const x = instance.exports;
x._initialize?.();
x.kw_reset();
const bytes = (at, length) => new Uint8Array(x.memory.buffer, at, length);
const withBytes = (data, use) => {
  const at = x.kw_alloc(data.length + 1);
  bytes(at, data.length).set(data);
  bytes(at, data.length + 1)[data.length] = 0;
  const result = use(at, data.length);
  x.kw_free(at);
  return result;
};
const encode = (string) => new TextEncoder().encode(string);
const ask = (command, lines) => withBytes(encode(command), (name) => withBytes(encode(lines), (at) => x.kw_ask(name, at)));
const text = () => new TextDecoder().decode(bytes(x.kw_text(), x.kw_length()));
const native = (...args) => {
  try {
    return execFileSync(knee, [...args, "--json"], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    return error.status === 1 && error.stdout.startsWith("{") ? error.stdout : { error: error.stderr }; // a gate: the answer is there
  }
};

let checks = 0, failures = 0;
const fail = (what, why) => { failures++; console.log(`${what}: ${why}`); };

// The heap (web/heap.c): blocks of all sizes that come and go keep what was written at both ends, and what is freed is used again.
{
  const held = [];
  let seed = 1;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let i = 0; i < 20000; i++) {
    if (held.length > 200 || (held.length && random(2))) {
      const [at, size, mark] = held.splice(random(held.length), 1)[0];
      if (at % 16 || bytes(at, size)[0] !== mark || bytes(at, size)[size - 1] !== mark) { fail("heap", `a block of ${size} bytes was overwritten`); break; }
      x.kw_free(at);
    } else {
      const size = 1 + random(2 ** (1 + random(18))), at = x.kw_alloc(size), mark = random(256);
      bytes(at, size)[0] = bytes(at, size)[size - 1] = mark;
      held.push([at, size, mark]);
    }
  }
  for (const [at] of held) x.kw_free(at);
  checks += 2;
  if (x.memory.buffer.byteLength > 32e6) fail("heap", `${x.memory.buffer.byteLength} bytes for 200 blocks of at most 256 KiB`);
  if (x.kw_alloc(4e9 >>> 0) !== 0) fail("heap", "4 GB were given");
}

// Numbers may differ in the last digits of functions like pow and log; everything else not at all.
// Lists that the page leaves to the program (web/lean.c; src/ask/pushed.c keeps no operations for it): empty there.
const leftOut = new Set(["published_runs", "gaps", "operations"]);
const differ = (a, b, path = "") => {
  if (typeof a === "number" && typeof b === "number")
    return a === b || Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(a), Math.abs(b)) ? null : `${path}: ${a}, not ${b}`;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b ? null : `${path}: ${a}, not ${b}`;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  for (const key of keys) {
    if (path === "" && leftOut.has(key) && a[key]?.length === 0) continue;
    const found = differ(a[key], b[key], `${path}.${key}`);
    if (found) return found;
  }
  return null;
};
const compare = (what, ours, theirs) => {
  checks++;
  const found = typeof theirs === "string" ? differ(JSON.parse(ours), JSON.parse(theirs)) : null;
  if (typeof theirs !== "string") {
    const said = JSON.parse(ours);
    if (!said.error || !theirs.error.includes(said.error)) fail(what, `the program says '${theirs.error.trim()}', the core '${said.error}'`);
  } else if (found) fail(what, found);
};

// Every predict, tax and plan command of the documents and transcripts that asks nothing but keys, and the
// golden cases of the unit tests are such commands too.
const sources = ["README.md", ...["docs", "docs/guide", "docs/reference", "docs/evidence"].flatMap((d) => readdirSync(d).map((f) => `${d}/${f}`)), ...readdirSync("tests/cli").map((f) => `tests/cli/${f}`), "tests/web/cases.txt"];
const words = (line) => [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((m) => m[1] ?? m[2] ?? m[3]);
const seen = new Set();
for (const file of sources.filter((f) => /\.(md|txt)$/.test(f)))
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const found = /^\$ build\/knee (predict|tax|plan) ([^|;&<>]*)/.exec(line);
    if (!found || seen.has(found[0])) continue;
    seen.add(found[0]);
    const [, command, rest] = found;
    const lines = [], args = [];
    let plain = true;
    const list = words(rest);
    for (let i = 0; i < list.length; i++) {
      const [flag, value] = list[i].includes("=") ? list[i].split(/=(.*)/s) : [list[i], null];
      if (["--json", "--csv", "--markdown", "--brief", "--ascii"].includes(flag)) continue;
      if (!flag.startsWith("--") || /^--(solve|for|job|example|cluster-file|help|output|html|hel|hf|megatron|deepspeed|torchtitan|nemo|rates|perfetto|ops|mpi|simulate)$/.test(flag)) plain = false;
      const given = value ?? list[++i];
      if (given === undefined || flag === "--bandwith" || flag === "--") plain = false; // what only a command line can get wrong
      if (flag.includes("|") || given?.includes("|") || given?.startsWith("'")) plain = false; // a shell's
      if (flag === "--cluster" && given?.includes("/")) plain = false; // a file, which the core is given another way
      args.push(flag, given ?? "");
      lines.push(`${flag.slice(2)}=${given}\n`);
    }
    if (!plain) continue;
    ask(command, lines.join(""));
    // how many plans a search passes by depends on its threads
    compare(line, text(), native(command, ...args, ...(command === "plan" ? ["--threads", "1"] : [])));
  }
const commands = checks;

// Traces: the ranks of a folder, byte by byte as they come.
const trace = (name, files) => {
  x.kw_reset();
  for (const file of files) {
    withBytes(encode(file), (at) => x.kw_push_begin(at));
    let data = readFileSync(file);
    if (data[0] === 0x1f && data[1] === 0x8b) data = gunzipSync(data);
    for (let from = 0; from < data.length;) {
      const at = x.kw_push_room();
      const size = Math.min(x.kw_push_room_size(), data.length - from, 65521);
      bytes(at, size).set(data.subarray(from, from + size));
      x.kw_push_filled(size);
      from += size;
    }
    x.kw_push_end();
  }
  ask("trace", "price=3\n");
  compare(name, text(), native("trace", ...files, "--price", "3"));
};
const straggler = ["examples/straggler/rank0.json.gz", "examples/straggler/rank1.json.gz"];
trace("examples/straggler", straggler);
for (const [line, ...args] of [[""], ["wire=bf16\neven=1\n", "--wire", "bf16", "--even"], ["network=free\n", "--network", "free"], ["bucket=100MB\nno-host-gaps=1\n", "--bucket", "100MB", "--no-host-gaps"]]) {
  ask("replay", line);
  compare(`replay ${args.join(" ")}`, text(), native("replay", ...straggler, ...args));
}

// Logs.
const against = (file) => withBytes(readFileSync(`examples/${file}`), (at, length) => {
  withBytes(encode(file), (name) => x.kw_attach(name, at, length));
  return ask("collective", `against=${file}\n`);
});
for (const file of ["one_rail_32.log", "all_reduce_16.log", "all_gather_16.log"]) {
  against(file);
  compare(file, text(), native("collective", "--against", `examples/${file}`));
}
// Training logs, one and several.
const curve = [8, 16, 32].map((n) => `examples/scale/gpt_${n}.log`);
for (const [files, lines, ...args] of [[curve, "gpu=h100\n", "--gpu", "h100"], [curve.slice(0, 1), "gpu=h100\n", "--gpu", "h100"], [curve.slice(1, 2), ""], [curve, "at=64,128\ntokens=1T\n", "--at", "64,128", "--tokens", "1T"]]) {
  for (const file of files) {
    const data = readFileSync(file), at = x.kw_alloc(data.length);
    bytes(at, data.length).set(data);
    withBytes(encode(file), (name) => x.kw_attach(name, at, data.length));
  }
  ask("scale", lines + files.map((file) => `word=${file}\n`).join(""));
  compare(`scale ${files.length} ${args.join(" ")}`, text(), native("scale", ...files, ...args));
}
// Of hosts without GPUs the page has no fit: it says so instead of holding them against a guess.
const hosts = "hosts_4.log";
against(hosts);
checks++;
if (!JSON.parse(text()).error?.includes("hosts without GPUs")) fail(hosts, text());
console.log(`${checks} checks (${commands} commands), ${failures} failures`);
process.exit(failures || commands < 40 ? 1 : 0);
