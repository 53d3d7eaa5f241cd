// SPDX-License-Identifier: MIT
// The ranks over time on a canvas. The core says what each column shows, so that a million spans cost
// no more than a thousand. Label bands differ in height as well as in colour; close up spans carry their
// names. Keys as in Perfetto: W and S zoom, A and D move.
const timeline = { from: 0, to: 1, rows: [], pointer: 0.5, all: false, range: null, pins: new Set() };

const bandHeights = [1, 0.82, 0.62, 0.45, 0.3, 0.3, 0.12];
const bandColors = ["--compute", "--transfer", "--wait", "--copy", "--starved", "--host", "--idle"];
const laneColors = ["--compute", "--transfer", "--copy"];
const rowHeight = 62, bandHeight = 26, laneTop = 29, laneHeight = 10;
const mostRows = 64, aloneUpTo = 16;
const leftMargin = () => (innerWidth < 600 ? 44 : 64);

// ---- Which ranks are drawn ----

// Ranks are alike when no label differs by more than 2 % of the window.
const alike = (a, b) => labels.every(([key]) => Math.abs((a[key] ?? 0) / a.window_s - (b[key] ?? 0) / b.window_s) < 0.02);

const groupRanks = (ranks, named) => {
  const groups = [];
  ranks.forEach((rank, row) => {
    const group = named.includes(rank.rank) ? null : groups.find((g) => !g.named && alike(g.first, rank));
    if (group) group.others++;
    else groups.push({ row, first: rank, rank: rank.rank, others: 0, named: named.includes(rank.rank) });
  });
  return groups;
};

// Ranks that the verdict speaks of: always drawn, and first.
const namedRanks = (answer) => {
  const said = [...`${answer.verdict.do} ${answer.verdict.why}`.matchAll(/\branks? (\d+(?:(?:, | and )\d+)*)/g)].flatMap((m) => m[1].match(/\d+/g).map(Number));
  return [...new Set([...(answer.verdict.late_ranks ?? []), ...said])].filter((r) => answer.ranks.some((x) => x.rank === r));
};

timeline.choose = () => {
  const { ranks, pins } = timeline, named = [...pins, ...timeline.named];
  const rows = timeline.all || ranks.length <= aloneUpTo ? ranks.map((rank, row) => ({ row, rank: rank.rank, others: 0, named: named.includes(rank.rank) })) : groupRanks(ranks, named);
  rows.sort((a, b) => pins.has(b.rank) - pins.has(a.rank) || b.named - a.named || a.row - b.row);
  timeline.rows = rows.slice(0, mostRows);
  const shown = timeline.rows.reduce((sum, r) => sum + 1 + r.others, 0);
  const words = timeline.rows.length < ranks.length ? `${timeline.rows.length} of ${ranks.length} ranks drawn${shown > timeline.rows.length ? `, ${shown - timeline.rows.length} are like one of them` : ""}.` : `${ranks.length} rank${ranks.length === 1 ? "" : "s"}.`;
  byId("timeline-shown").textContent = words;
  byId("timeline-all").hidden = ranks.length <= aloneUpTo;
  byId("timeline-all").textContent = timeline.all ? "Group ranks that are alike" : "Show every rank";
};

timeline.start = (answer) => {
  timeline.ranks = answer.ranks;
  timeline.pins.clear();
  timeline.named = namedRanks(answer);
  timeline.length = core.x.kw_view_length_ns();
  timeline.from = 0;
  timeline.to = timeline.length;
  timeline.found = timeline.range = null;
  fill("timeline-details");
  byId("timeline-search").value = "";
  byId("timeline-hits").textContent = "";
  timeline.hide();
  timeline.choose();
  if (!timeline.bound) timeline.bind();
  timeline.draw();
};

timeline.whole = () => {
  timeline.from = 0;
  timeline.to = timeline.length;
  timeline.draw();
};

// ---- Drawing ----

timeline.resize = (canvas) => {
  const scale = window.devicePixelRatio || 1, width = Math.max(100, canvas.clientWidth), height = timeline.rows.length * rowHeight + 24;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = "12px system-ui";
  c.textBaseline = "middle";
  c.textAlign = "left";
  return { c, width };
};

timeline.draw = () => {
  if (!timeline.rows.length) return;
  const { c, width } = timeline.resize(byId("timeline"));
  const left = leftMargin(), columns = Math.floor(width - left), place = core.x.kw_alloc(2 * columns);
  const colors = bandColors.map(ink), lanes = laneColors.map(ink), pen = ink("--ink"), warn = ink("--warn");
  timeline.rows.forEach((row, i) => {
    const top = i * rowHeight;
    c.fillStyle = row.named ? warn : pen;
    c.fillText(`rank ${row.rank}`, 2, top + 12);
    if (row.others) {
      c.fillStyle = ink("--quiet");
      c.fillText(`+ ${row.others} alike`, 2, top + 28);
    }
    drawBand(c, left, top, columns, row.row, place, colors);
    for (let lane = 1; lane <= 3; lane++) drawLane(c, left, top + laneTop + (lane - 1) * laneHeight, columns, row.row, lane, place, lanes[lane - 1]);
    drawNames(c, left, top, columns, row.row);
  });
  core.x.kw_free(place);
  later("sums", timeline.sums, 60);
  drawRange(c, left, columns);
  drawFound(c, left, columns);
  drawTicks(c, left, columns);
};

const drawRange = (c, left, columns) => {
  if (!timeline.range) return;
  const perPixel = (timeline.to - timeline.from) / columns, at = (ns) => left + Math.min(columns, Math.max(0, (ns - timeline.from) / perPixel));
  const x = at(timeline.range.from), wide = Math.max(1, at(timeline.range.to) - x), high = timeline.rows.length * rowHeight;
  c.fillStyle = c.strokeStyle = ink("--accent");
  c.globalAlpha = 0.15;
  c.fillRect(x, 0, wide, high);
  c.globalAlpha = 1;
  c.strokeRect(x, 0, wide, high);
};

const drawBand = (c, left, top, columns, row, place, colors) => {
  core.x.kw_draw(row, 0, timeline.from, timeline.to, columns, place);
  const band = core.bytes(place, 2 * columns).slice();
  for (let x = 0; x < columns;) { // runs of equal columns in one rectangle
    let end = x + 1;
    while (end < columns && band[2 * end] === band[2 * x]) end++;
    const label = band[2 * x] - 1;
    if (label >= 0) {
      const high = bandHeight * bandHeights[label];
      c.fillStyle = colors[label];
      c.fillRect(left + x, top + bandHeight - high, end - x, high);
    }
    x = end;
  }
};

const drawLane = (c, left, top, columns, row, lane, place, color) => {
  core.x.kw_draw(row, lane, timeline.from, timeline.to, columns, place);
  const busy = core.bytes(place, 2 * columns).slice();
  c.fillStyle = color;
  for (let x = 0; x < columns;) {
    let end = x + 1;
    while (end < columns && busy[2 * end] === busy[2 * x] && busy[2 * end + 1] >> 5 === busy[2 * x + 1] >> 5) end++;
    if (busy[2 * x]) {
      c.globalAlpha = 0.3 + (0.7 * busy[2 * x + 1]) / 255;
      c.fillRect(left + x, top, end - x, laneHeight - 1);
    }
    x = end;
  }
  c.globalAlpha = 1;
};

// Names of the spans that are wide enough to carry them.
const drawNames = (c, left, top, columns, row) => {
  const perPixel = (timeline.to - timeline.from) / columns;
  core.x.kw_named(row, timeline.from, timeline.to, 44 * perPixel);
  const ground = ink("--ground");
  c.font = "9px system-ui";
  for (const span of core.answer().spans) {
    const x0 = Math.max(0, (span.from - timeline.from) / perPixel), x1 = Math.min(columns, (span.to - timeline.from) / perPixel);
    if (x1 - x0 < 44) continue;
    const y = top + laneTop + (span.lane - 1) * laneHeight;
    c.strokeStyle = ground;
    c.strokeRect(left + x0, y - 0.5, x1 - x0, laneHeight);
    c.fillStyle = ground;
    let name = span.name.replace(/^void (?:at::native::)?/, "");
    const fits = Math.floor((x1 - x0 - 4) / 4.6);
    if (name.length > fits) name = `${name.slice(0, Math.max(1, fits - 1))}…`;
    c.fillText(name, left + x0 + 2, y + laneHeight / 2);
  }
  c.font = "12px system-ui";
};

const drawFound = (c, left, columns) => {
  const hit = timeline.found, i = hit ? timeline.rows.findIndex((r) => r.row === hit.row) : -1;
  if (i < 0) return;
  const perPixel = (timeline.to - timeline.from) / columns;
  c.strokeStyle = ink("--accent");
  c.lineWidth = 3;
  c.strokeRect(left + (hit.from - timeline.from) / perPixel - 1, i * rowHeight + laneTop + (hit.lane - 1) * laneHeight - 2, Math.max(3, (hit.to - hit.from) / perPixel + 2), laneHeight + 3);
  c.lineWidth = 1;
};

// Ticks at round times.
const drawTicks = (c, left, columns) => {
  const span = timeline.to - timeline.from, rough = span / Math.max(2, columns / 150), ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * [1, 2, 5, 10].find((f) => f * ten >= rough), base = timeline.rows.length * rowHeight + 12;
  c.fillStyle = ink("--quiet");
  for (let t = Math.ceil(timeline.from / step) * step; t <= timeline.to; t += step) {
    const x = left + ((t - timeline.from) / span) * columns;
    c.fillRect(x, base - 12, 1, 5);
    const words = t === 0 ? "0" : seconds(Number((t * 1e-9).toPrecision(12)));
    c.textAlign = x > left + columns - 40 ? "right" : x < left + 10 ? "left" : "center";
    c.fillText(words, x, base);
  }
  c.textAlign = "left";
};

// What the selected or else the shown part is made of, per rank.
timeline.sums = () => {
  const { from, to } = timeline.range ?? timeline;
  byId("timeline-focus").hidden = !timeline.range;
  const rows = timeline.rows.slice(0, 16).map((row) => {
    core.x.kw_sums(row.row, from, to);
    return [row, core.answer()];
  });
  const names = [...new Set(rows.flatMap(([, sums]) => Object.entries(sums).filter(([, ns]) => ns > 0).map(([name]) => name)))];
  timeline.shownSums = rows.map(([row, sums]) => ({ rank: row.rank, ...sums }));
  fill("timeline-sums", table([`${timeline.range ? "Selected: " : ""}${seconds(from * 1e-9)} to ${seconds(to * 1e-9)}`, ...names], rows.map(([row, sums]) => {
    const all = Object.values(sums).reduce((a, b) => a + b, 0);
    const pinned = timeline.pins.has(row.rank);
    return { marked: row.named, cells: [timeline.rows.length > 1 ? el("button", { type: "button", class: "link", "aria-pressed": pinned, "data-pin": row.rank, title: pinned ? "Back to its place" : "Pin to the top", onclick: () => { timeline.pins[pinned ? "delete" : "add"](row.rank); timeline.choose(); timeline.draw(); } }, `${pinned ? "▲ " : ""}rank ${row.rank}`) : `rank ${row.rank}`, ...names.map((name) => `${seconds(sums[name] * 1e-9)}${all ? ` (${Math.round((100 * sums[name]) / all)}%)` : ""}`)] };
  })));
};

// Perfetto's window is opened and asked until it listens, then given the trace. It stays in the browser.
timeline.perfetto = () => {
  const answer = core.ask("trace", { ...trace.state, perfetto: "made" }, trace.words());
  core.withText("made", (at) => core.x.kw_pull(at));
  const made = core.bytes(core.x.kw_text(), core.x.kw_length()).slice().buffer;
  if (answer.error || !made.byteLength) return saySomething([answer.error ? errorWords(answer) : "there is nothing to show"]);
  timeline.made = made.byteLength;
  const origin = "https://ui.perfetto.dev", other = open(origin);
  if (!other) return saySomething(["This browser lets no page open a window: allow it, or use knee trace --perfetto FILE."]);
  const ask = setInterval(() => other.postMessage("PING", origin), 100);
  setTimeout(() => clearInterval(ask), 60000);
  addEventListener("message", function heard(e) {
    if (e.origin !== origin || e.data !== "PONG") return;
    clearInterval(ask);
    removeEventListener("message", heard);
    other.postMessage({ perfetto: { buffer: made, title: "knee: all ranks, labelled", fileName: "knee.json" } }, origin);
  });
};

// ---- Moving ----

timeline.zoom = (factor, at = timeline.pointer) => {
  timeline.hide();
  const span = timeline.to - timeline.from, middle = timeline.from + span * at;
  const wanted = Math.min(timeline.length, Math.max(200, span * factor));
  timeline.from = Math.max(0, Math.min(timeline.length - wanted, middle - wanted * at));
  timeline.to = timeline.from + wanted;
  timeline.draw();
};

timeline.move = (share) => {
  const span = timeline.to - timeline.from;
  timeline.from = Math.max(0, Math.min(timeline.length - span, timeline.from + span * share));
  timeline.to = timeline.from + span;
  timeline.draw();
};

// ---- What stands at the pointer ----

timeline.hide = () => { byId("timeline-tip").hidden = true; };

// -> what the core knows of a place on the canvas, with its time, or null
timeline.at = (x, y) => {
  const left = leftMargin(), i = Math.floor(y / rowHeight), row = timeline.rows[i];
  if (x < left || !row) return null;
  const inside = y - i * rowHeight;
  const lane = inside < laneTop ? 0 : Math.min(3, 1 + Math.floor((inside - laneTop) / laneHeight));
  const at = timeline.from + ((timeline.to - timeline.from) * (x - left)) / (byId("timeline").clientWidth - left);
  core.x.kw_look(row.row, lane, at);
  return { ...core.answer(), at };
};

timeline.look = (x, y) => {
  const canvas = byId("timeline"), tip = byId("timeline-tip"), found = timeline.at(x, y);
  if (!found) return timeline.hide();
  fill(tip, el("b", {}, `rank ${found.rank}, ${seconds(found.at * 1e-9)}: ${found.label ?? "nothing recorded"}`),
    found.name ? el("span", {}, `${found.name.slice(0, 300)}, ${seconds(found.duration_s)} on stream ${found.stream}`) : null);
  tip.hidden = false;
  const box = canvas.getBoundingClientRect();
  tip.style.left = `${Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 18 + canvas.offsetTop}px`;
};

// A click keeps what is at the pointer in a panel under the timeline.
timeline.details = (x, y) => {
  const found = timeline.at(x, y);
  if (!found) return fill("timeline-details");
  let calls = 0;
  if (found.name) core.withText(found.name, (at) => core.x.kw_find(at, 0)), calls = core.answer().count;
  const facts = [["Rank", found.rank], ["At", seconds(found.at * 1e-9)], ["Counted as", found.label ?? "nothing recorded"], ...(found.name ? [["Kernel", found.name.slice(0, 500)], ["Starts", seconds(found.start_s)], ["Takes", seconds(found.duration_s)], ["Stream", found.stream],
    ["Calls in all ranks", el("button", { type: "button", class: "link", onclick: () => { byId("timeline-search").value = found.name; timeline.find(found.name, 0); } }, count(calls))]] : [])];
  fill("timeline-details", el("dl", {}, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
};

timeline.select = (range) => {
  timeline.range = range && range.to > range.from ? range : null;
  timeline.draw();
};

timeline.focus = () => {
  if (!timeline.range) return;
  const { from, to } = timeline.range, margin = Math.max(100, (to - from) * 0.1);
  timeline.from = Math.max(0, from - margin);
  timeline.to = Math.min(timeline.length, to + margin);
  timeline.draw();
};

// Where the others wait longest for a rank: that part is selected and shown.
timeline.showLate = (rank) => {
  const columns = 4000, place = core.x.kw_alloc(2 * columns), perColumn = timeline.length / columns, wait = 3;
  let best = null;
  for (const row of timeline.rows.filter((r) => r.rank !== rank)) {
    core.x.kw_draw(row.row, 0, 0, timeline.length, columns, place);
    const band = core.bytes(place, 2 * columns);
    for (let x = 0; x < columns;) {
      let end = x + 1;
      while (end < columns && band[2 * end] === band[2 * x]) end++;
      if (band[2 * x] === wait && end - x > (best?.wide ?? 0)) best = { wide: end - x, from: x * perColumn, to: end * perColumn };
      x = end;
    }
  }
  core.x.kw_free(place);
  timeline.range = best;
  if (best) timeline.focus();
  else timeline.whole();
  byId("timeline").scrollIntoView({ block: "center" });
  byId("timeline").focus({ preventScroll: true });
};

// ---- Searching ----

timeline.find = (text, which) => {
  if (!text) {
    timeline.found = null;
    byId("timeline-hits").textContent = "";
    return timeline.draw();
  }
  core.withText(text, (at) => core.x.kw_find(at, Math.max(0, which)));
  let hit = core.answer();
  if (hit.count && hit.row == null) return timeline.find(text, which < 0 ? hit.count - 1 : which % hit.count);
  timeline.found = hit.count ? { ...hit, which: Math.max(0, which) } : null;
  byId("timeline-hits").textContent = hit.count ? `${count(timeline.found.which + 1)} of ${count(hit.count)}: rank ${hit.rank}, ${seconds((hit.to - hit.from) * 1e-9)}` : "nothing is named so";
  if (!hit.count) return timeline.draw();
  if (!timeline.rows.some((r) => r.row === hit.row)) timeline.rows.splice(Math.min(timeline.rows.length - 1, mostRows - 1), timeline.rows.length < mostRows ? 0 : 1, { row: hit.row, rank: hit.rank, others: 0, named: false });
  const wanted = Math.min(timeline.length, Math.max(20 * (hit.to - hit.from), 2000));
  if (timeline.to - timeline.from > wanted * 4 || hit.from < timeline.from || hit.to > timeline.to) {
    timeline.from = Math.max(0, Math.min(timeline.length - wanted, (hit.from + hit.to - wanted) / 2));
    timeline.to = timeline.from + wanted;
  }
  timeline.draw();
};

timeline.keys = {
  w: () => timeline.zoom(0.7), s: () => timeline.zoom(1.4), a: () => timeline.move(-0.15), d: () => timeline.move(0.15),
  "+": () => timeline.zoom(0.7), "=": () => timeline.zoom(0.7), "-": () => timeline.zoom(1.4), ArrowLeft: () => timeline.move(-0.15), ArrowRight: () => timeline.move(0.15), 0: () => timeline.whole(), f: () => timeline.focus(),
  Escape: () => timeline.select(null),
  "/": () => byId("timeline-search").focus(),
};

timeline.bind = () => {
  timeline.bound = true;
  const canvas = byId("timeline");
  let dragged = null;
  const share = (e) => { const box = canvas.getBoundingClientRect(), left = leftMargin(); return Math.min(1, Math.max(0, (e.clientX - box.left - left) / (box.width - left))); };
  canvas.addEventListener("wheel", (e) => { // the wheel scrolls the page, as everywhere
    if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
    e.preventDefault();
    if (e.shiftKey) timeline.move((e.deltaX || e.deltaY) / canvas.clientWidth);
    else timeline.zoom(e.deltaY > 0 ? 1.25 : 0.8, share(e));
  }, { passive: false });
  let began = null; // where a drag that selects began, in nanoseconds
  const time = (e) => timeline.from + (timeline.to - timeline.from) * share(e);
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    if (e.shiftKey || e.pointerType === "touch") dragged = e.clientX;
    else began = { at: time(e), x: e.clientX };
  });
  canvas.addEventListener("pointerup", (e) => {
    const box = canvas.getBoundingClientRect();
    if (began && Math.abs(e.clientX - began.x) < 4) timeline.select(null), timeline.details(e.clientX - box.left, e.clientY - box.top);
  });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => { dragged = began = null; });
  canvas.addEventListener("pointerleave", timeline.hide);
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect();
    timeline.pointer = share(e);
    if (began && Math.abs(e.clientX - began.x) >= 4) return timeline.hide(), timeline.select({ from: Math.min(began.at, time(e)), to: Math.max(began.at, time(e)) });
    if (dragged == null) return timeline.look(e.clientX - box.left, e.clientY - box.top);
    timeline.move((dragged - e.clientX) / (box.width - leftMargin()));
    dragged = e.clientX;
  });
  canvas.addEventListener("keydown", (e) => {
    const act = !e.ctrlKey && !e.metaKey && timeline.keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (act) { e.preventDefault(); act(); }
  });
  byId("timeline-search").addEventListener("input", (e) => later("find", () => timeline.find(e.target.value.trim(), 0), 150));
  byId("timeline-search").addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); timeline.find(e.target.value.trim(), (timeline.found?.which ?? -1) + (e.shiftKey ? -1 : 1)); } });
  byId("timeline-next").addEventListener("click", () => timeline.find(byId("timeline-search").value.trim(), (timeline.found?.which ?? -1) + 1));
  byId("timeline-before").addEventListener("click", () => timeline.find(byId("timeline-search").value.trim(), (timeline.found?.which ?? 0) - 1));
  byId("timeline-all").addEventListener("click", () => { timeline.all = !timeline.all; timeline.choose(); timeline.draw(); });
  byId("timeline-in").addEventListener("click", () => timeline.zoom(0.5, 0.5));
  byId("timeline-out").addEventListener("click", () => timeline.zoom(2, 0.5));
  byId("timeline-whole").addEventListener("click", timeline.whole);
  byId("timeline-focus").addEventListener("click", timeline.focus);
  byId("timeline-perfetto").addEventListener("click", timeline.perfetto);
};

// As drawn: solid, as high as the band, and what the lanes below are.
timeline.legend = () => [
  ...labels.map(([, , words], i) => el("span", {}, el("i", { class: "solid", style: `background:var(${bandColors[i]});height:${Math.round(14 * bandHeights[i])}px` }), words)),
  el("span", { class: "quiet" }, "below: "), ...["compute", "communication", "copies"].map((words, i) => el("span", { class: "quiet" }, el("i", { class: "solid", style: `background:var(${laneColors[i]});height:5px` }), `lane of ${words}`))];
