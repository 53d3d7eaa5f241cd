// SPDX-License-Identifier: MIT
// The core: WebAssembly, its memory, and calls that take lines of key=value and give JSON. No formula
// lives in this page; what is shown was computed by the code that prints knee's tables. The same file
// runs in the page and in its worker.
const core = { progress: () => 1 };

core.start = async (bytes) => {
  const nothing = () => 0;
  core.module = bytes instanceof WebAssembly.Module ? bytes : await WebAssembly.compile(bytes);
  const instance = await WebAssembly.instantiate(core.module, {
    wasi_snapshot_preview1: { fd_close: nothing, fd_seek: nothing, fd_write: nothing, proc_exit: nothing },
    page: { progress: (share) => core.progress(share) },
  });
  core.x = instance.exports;
  core.x._initialize?.();
  core.x.kw_reset();
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

// The answer to a question about files: [{name, bytes}] are attached while it is asked.
core.askAbout = (command, inputs, files, words = []) => {
  const places = files.map(({ name, bytes }) => {
    const at = core.x.kw_alloc(bytes.length + 1);
    core.bytes(at, bytes.length).set(bytes);
    core.withText(name, (under) => core.x.kw_attach(under, at, bytes.length));
    return at;
  });
  const answer = core.ask(command, inputs, words);
  for (const { name } of files) core.withText(name, (under) => core.x.kw_attach(under, 0, 0));
  for (const at of places) core.x.kw_free(at);
  return answer;
};

// A file into the reader. `open` gives its bytes, unpacked, as a stream: a job without GPUs is read twice.
core.readTrace = async (name, open, total, progress) => {
  const problem = await core.readOnce(name, open(), total, progress);
  return problem || !core.x.kw_push_again() ? problem : core.readOnce(name, open(), total, progress);
};

core.readOnce = async (name, stream, total, progress) => {
  if (core.withText(name, (at) => core.x.kw_push_begin(at))) return core.answer();
  const reader = stream.getReader();
  let done = 0;
  for (;;) {
    const chunk = await reader.read().catch((error) => ({ done: true, error })); // damaged gzip: what came before is kept
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
