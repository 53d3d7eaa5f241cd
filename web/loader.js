// Scripts and core are packed (gzip, 13 bits in two letters, after its length: the page is sent around as one file).
const kneeUnpack = (packed) => {
  const start = packed.indexOf(":") + 1, bytes = new Uint8Array(Number(packed.slice(0, start - 1)));
  const value = (i) => { const c = packed.charCodeAt(i); return c > 60 ? c - 36 : c - 35; };
  for (let i = start, at = 0, bits = 0, held = 0; i < packed.length; i += 2) {
    bits = ((bits << 13) | (value(i) + 91 * value(i + 1))) & 0xfffff;
    for (held += 13; held >= 8 && at < bytes.length; held -= 8) bytes[at++] = bits >>> (held - 8);
  }
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
};
(async () => {
  const text = await kneeUnpack(document.getElementById("app").textContent).text();
  document.head.append(Object.assign(document.createElement("script"), { textContent: text }));
})();
