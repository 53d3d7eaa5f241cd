// SPDX-License-Identifier: MIT
// The core: WebAssembly, its memory, and calls that take lines of key=value and give JSON. No formula
// lives in this page; what is shown was computed by the code that prints knee's tables.
const core = {};

core.load = async () => {
  const packed = Uint8Array.from(atob(document.getElementById("core").textContent), (c) => c.charCodeAt(0));
  const bytes = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const nothing = () => 0;
  const { instance } = await WebAssembly.instantiate(bytes, {
    wasi_snapshot_preview1: { fd_close: nothing, fd_seek: nothing, fd_write: nothing, proc_exit: nothing },
  });
  core.x = instance.exports;
  core.x._initialize?.();
  core.x.kw_reset();
  core.keys = core.ask("keys");
};

core.bytes = (at, length) => new Uint8Array(core.x.memory.buffer, at, length);

core.answer = () => JSON.parse(new TextDecoder().decode(core.bytes(core.x.kw_text(), core.x.kw_length())));

core.withBytes = (bytes, use) => {
  const at = core.x.kw_alloc(bytes.length + 1);
  const place = core.bytes(at, bytes.length + 1);
  place.set(bytes);
  place[bytes.length] = 0;
  const result = use(at, bytes.length);
  core.x.kw_free(at);
  return result;
};
core.withText = (text, use) => core.withBytes(new TextEncoder().encode(text), use);

// ask("predict", {params: "7B"}) -> the JSON answer, or {error, hint, where}. Words stand without a key.
core.ask = (command, inputs = {}, words = []) => {
  const lines = Object.entries(inputs).filter(([, value]) => value !== "" && value != null)
    .concat(words.map((word) => ["word", word])).map(([key, value]) => `${key}=${value}\n`).join("");
  core.withText(command, (name) => core.withText(lines, (at) => core.x.kw_ask(name, at)));
  return core.answer();
};

// The answer to a question about bytes that stand under `key`.
core.askAbout = (command, key, name, bytes) => core.withBytes(bytes, (at, length) => {
  core.withText(name, (under) => core.x.kw_attach(under, at, length));
  return core.ask(command, { [key]: name });
});

// A file (or a Response) into the reader, unpacked on the way when it is gzip.
core.readTrace = async (name, stream, total, progress) => {
  if (core.withText(name, (at) => core.x.kw_push_begin(at))) return core.answer();
  const reader = stream.getReader();
  let done = 0;
  for (;;) {
    const chunk = await reader.read();
    if (chunk.done) break;
    let from = 0;
    while (from < chunk.value.length) {
      const at = core.x.kw_push_room();
      if (!at) return { error: "out of memory" };
      const size = Math.min(core.x.kw_push_room_size(), chunk.value.length - from);
      core.bytes(at, size).set(chunk.value.subarray(from, from + size));
      core.x.kw_push_filled(size);
      from += size;
    }
    done += chunk.value.length;
    progress?.(done, total);
  }
  return core.x.kw_push_end() ? core.answer() : null;
};
