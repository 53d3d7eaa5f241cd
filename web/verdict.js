// SPDX-License-Identifier: MIT
// What to do, why, what it buys; the formal line and the symbols in it are folded under "why".
const verdicts = {};

const makeVerdict = (id) => {
  const parts = { do: el("p", { class: "do" }), why: el("p", { class: "why" }), buys: el("p", { class: "buys" }), error: el("p", { class: "said", role: "alert" }) };
  parts.formal = el("p", { class: "formal" });
  parts.terms = el("dl");
  parts.fold = el("details", {}, el("summary", {}, "Why, in numbers"), parts.formal, parts.terms);
  const box = byId(id);
  box.replaceChildren(parts.error, el("div", { role: "status", "aria-live": "polite" }, parts.do, parts.why, parts.buys), parts.fold);
  verdicts[id] = parts;
  return parts;
};

// `answer`: anything of knee with a sentence. Without plain lines the sentence stands for them.
const showVerdict = (id, answer) => {
  const parts = verdicts[id] ?? makeVerdict(id);
  const v = { ...answer, ...answer.verdict };
  const sentence = (v.formal ?? v.sentence ?? "").trim();
  for (const name of ["do", "why", "buys"]) {
    parts[name].textContent = v[name] ?? "";
    parts[name].hidden = !v[name];
  }
  if (!v.do) {
    parts.do.textContent = sentence;
    parts.do.hidden = false;
  }
  parts.do.classList.toggle("long", parts.do.textContent.length > 160);
  parts.do.classList.toggle("bad", /does not fit|^Nothing fits/.test(parts.do.textContent));
  parts.formal.textContent = v.do ? sentence : "";
  const terms = explain(`${v.do ?? ""} ${v.why ?? ""} ${v.buys ?? ""} ${sentence}`);
  fill(parts.terms, terms);
  parts.fold.hidden = !v.do && terms.length === 0;
  parts.fold.querySelector("summary").textContent = v.do ? "Why, in numbers" : "What the words mean";
  parts.error.hidden = true;
  byId(id).classList.remove("error");
  byId(id).closest("section")?.classList.remove("stale");
};

const errorWords = (answer) => `${answer.where && !answer.where.startsWith("--") ? `${answer.where}: ` : ""}${answer.error}${answer.hint ? `; ${answer.hint.replace(/--([a-z-]+)/g, (_, key) => human[key] ?? key)}` : ""}`.replace(/\b(run|other)\//g, "");

// An error in the place of a verdict. What stood there before is marked as what it is.
const showError = (id, answer) => {
  const parts = verdicts[id] ?? makeVerdict(id);
  const had = Boolean(parts.do.textContent);
  parts.error.textContent = errorWords(answer) + (had ? ". Below stands the last answer." : ".");
  parts.error.hidden = false;
  byId(id).classList.add("error");
  byId(id).closest("section")?.classList.toggle("stale", had);
};
