// Scripts and core are packed (gzip in base 85 after its length: the page is sent around as one file).
const kneeUnpack = (packed) => {
  const [, length, text] = /^(\d+):([^]*)$/.exec(packed);
  const bytes = new Uint8Array(text.length / 5 * 4);
  const value = (i) => { const c = text.charCodeAt(i); return c === 125 ? 20 : c - 40; }; // } stands for <
  for (let i = 0, at = 0; i < text.length; i += 5, at += 4) {
    const number = (((value(i) * 85 + value(i + 1)) * 85 + value(i + 2)) * 85 + value(i + 3)) * 85 + value(i + 4);
    bytes[at] = number >>> 24; bytes[at + 1] = number >>> 16; bytes[at + 2] = number >>> 8; bytes[at + 3] = number;
  }
  return new Response(new Blob([bytes.subarray(0, Number(length))]).stream().pipeThrough(new DecompressionStream("gzip")));
};
(async () => {
  const text = await kneeUnpack(document.getElementById("app").textContent).text();
  document.head.append(Object.assign(document.createElement("script"), { textContent: text }));
})();
