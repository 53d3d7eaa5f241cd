// SPDX-License-Identifier: MIT
// What to do, why, what it buys; the formal line and the symbols in it are folded under "why".
const verdicts = {};

const makeVerdict = (id) => {
  const parts = { void: el("p", { class: "said void" }), do: el("p", { class: "do", role: "status", "aria-live": "polite" }), why: el("p", { class: "why" }), buys: el("p", { class: "buys" }), error: el("p", { class: "said", role: "alert" }) };
  parts.formal = el("p", { class: "formal" });
  parts.terms = el("dl");
  parts.fold = el("details", {}, el("summary", {}, "Why, in numbers"), parts.formal, parts.terms);
  const box = byId(id);
  box.replaceChildren(parts.error, parts.void, parts.do, parts.why, parts.buys, parts.fold);
  verdicts[id] = parts;
  return parts;
};

// The core keeps files in its own folders, which users do not see.
const withoutFolder = (words) => words.replace(/\b(run|other)\//g, "");

// The lines of any answer of knee: what it says of itself in `answer`, or the verdict's, or its sentence.
const linesOf = (answer) => {
  const v = { ...answer, ...answer.verdict }, said = answer.answer && typeof answer.answer === "object" ? answer.answer : {};
  const sentence = withoutFolder(v.formal ?? v.sentence ?? "").trim(), first = said.headline ?? v.headline ?? v.do ?? "";
  return { void: asFields(withoutFolder(said.void ?? v.void ?? "")), do: asFields(first || sentence), why: asFields(said.reason ?? v.reason ?? v.why ?? ""), buys: asFields(said.effect ?? v.effect ?? v.buys ?? ""), formal: first ? asFields(sentence) : "" };
};

// Technical terms show their definition on hover.
const withTerms = (text) => {
  const hits = symbols.map(([name, sign, words]) => ({ at: text.search(sign), length: sign.exec(text)?.[0].length, name, words })).filter((h) => h.at >= 0).sort((a, b) => a.at - b.at);
  const out = [];
  let from = 0;
  for (const { at, length, words } of hits) {
    if (at < from) continue;
    out.push(text.slice(from, at), el("abbr", { title: words, tabindex: -1 }, text.slice(at, at + length)));
    from = at + length;
  }
  return [...out, text.slice(from)];
};

const showVerdict = (id, answer) => {
  const parts = verdicts[id] ?? makeVerdict(id);
  const lines = linesOf(answer);
  for (const name of ["void", "do", "why", "buys"]) {
    if (parts[name].textContent !== lines[name]) fill(parts[name], withTerms(lines[name]));
    parts[name].hidden = !lines[name];
  }
  parts.do.classList.toggle("long", lines.do.length > 160);
  parts.do.classList.toggle("bad", answer.verdict?.gpus === null || answer.fits === false);
  parts.formal.textContent = lines.formal;
  const terms = explain(`${lines.do} ${lines.why} ${lines.buys} ${lines.formal}`);
  fill(parts.terms, terms);
  parts.fold.hidden = !lines.formal && terms.length === 0;
  parts.fold.querySelector("summary").textContent = lines.formal ? "Why, in numbers" : "What the words mean";
  parts.error.hidden = true;
  byId(id).classList.remove("error");
  byId(id).closest("section")?.classList.remove("stale");
};

const errorWords = (answer) => withoutFolder(`${answer.where && !answer.where.startsWith("--") ? `${answer.where}: ` : ""}${answer.error}${answer.hint ? `; ${answer.hint.replace(/--([a-z-]+)/g, (_, key) => human[key] ?? key)}` : ""}`);

// An error in the place of a verdict. What stood there before is marked as what it is.
const showError = (id, answer) => {
  const parts = verdicts[id] ?? makeVerdict(id);
  const had = Boolean(parts.do.textContent);
  parts.error.textContent = errorWords(answer) + (had ? ". Below stands the last answer." : ".");
  parts.error.hidden = false;
  byId(id).classList.add("error");
  byId(id).closest("section")?.classList.toggle("stale", had);
};
