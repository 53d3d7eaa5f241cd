// SPDX-License-Identifier: MIT
// The other side of aside(): a separate core that answers one question at a time. And of unpacked(): pieces of a file, of
// which at most `ahead` are on their way. A damaged file ends where the damage is.
let ahead = 128, more = () => {};
const unpack = async (file) => {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  let pieces = [];
  const send = () => { postMessage(pieces, pieces.map((piece) => piece.buffer)); ahead -= pieces.length; pieces = []; };
  for (;;) {
    const { value, done } = await reader.read().catch(() => ({ done: true }));
    if (done) break;
    pieces.push(value);
    if (pieces.length > 15) send();
    while (ahead < 16) await new Promise((go) => { more = go; });
  }
  send();
  postMessage([null]);
};
onmessage = async ({ data }) => {
  if (data.unpack) return unpack(data.unpack);
  if (data.taken) { ahead++; return more(); }
  if (data.module) {
    await core.start(data.module);
    core.progress = (share) => { postMessage({ share }); return 1; };
    return;
  }
  postMessage({ answer: data.files ? core.askAbout(data.command, data.inputs, data.files, data.words) : core.ask(data.command, data.inputs, data.words) });
};
