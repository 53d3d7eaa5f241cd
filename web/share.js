// SPDX-License-Identifier: MIT
// Settings as text to copy and to paste, and a link where others can open it.
const say = (words) => { byId("share-said").textContent = words; };

const copyText = async (text, area) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (area?.select) area.select();
    else if (area) getSelection().selectAllChildren(area);
    if (!document.execCommand?.("copy")) return false;
  }
  return true;
};

const share = {};
share.open = () => {
  const trace = ["trace", "replay", "scale"].includes(view);
  byId("share-text").value = toText();
  byId("share-link-row").hidden = !location.protocol.startsWith("http");
  byId("share-link").value = location.origin + location.pathname + toAddress();
  byId("share-trace").hidden = !trace;
  say("");
  byId("share").showModal();
  byId("share-text").select();
};

share.start = () => {
  byId("share-open").addEventListener("click", share.open);
  byId("share-copy").addEventListener("click", async () => say(await copyText(byId("share-text").value, byId("share-text")) ? "Copied." : "Press Ctrl-C: this browser lets no page copy."));
  byId("share-copy-link").addEventListener("click", async () => say(await copyText(byId("share-link").value, byId("share-link")) ? "Copied." : "Press Ctrl-C: this browser lets no page copy."));
  byId("share-use").addEventListener("click", () => {
    const wrong = fromText(byId("share-text").value);
    if (wrong) return say(`Not taken: ${wrong}.`);
    byId("share").close();
    selectView(calculators.includes(view) ? view : "predict");
    saveState();
  });
};
