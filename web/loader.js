// Scripts and core are packed: the page is sent around as one file.
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("app").textContent), (c) => c.charCodeAt(0));
  const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.head.append(Object.assign(document.createElement("script"), { textContent: text }));
})();
