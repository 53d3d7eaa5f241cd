// SPDX-License-Identifier: MIT
// The ranks over time on a canvas. The core says what each column shows, so that a million spans cost
// no more than a thousand. Label bands differ in height as well as in colour.
const timeline = { from: 0, to: 1, ranks: [], lanes: true };

const bandHeights = [1, 0.82, 0.62, 0.45, 0.3, 0.3, 0.12];
const rowHeight = 46;
const left = 56;

timeline.start = (ranks) => {
  timeline.ranks = ranks.slice(0, 64);
  timeline.length = core.x.kw_view_length_ns();
  timeline.from = 0;
  timeline.to = timeline.length;
  if (!timeline.bound) timeline.bind();
  timeline.draw();
};

timeline.draw = () => {
  const canvas = byId("timeline");
  const ratioPx = window.devicePixelRatio || 1;
  const width = Math.max(100, canvas.clientWidth);
  const height = timeline.ranks.length * rowHeight + 24;
  if (canvas.width !== Math.round(width * ratioPx) || canvas.height !== Math.round(height * ratioPx)) {
    canvas.width = Math.round(width * ratioPx);
    canvas.height = Math.round(height * ratioPx);
    canvas.style.height = `${height}px`;
  }
  const c = canvas.getContext("2d");
  c.setTransform(ratioPx, 0, 0, ratioPx, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = "12px system-ui";
  c.textBaseline = "middle";
  const columns = Math.floor(width - left);
  const place = core.x.kw_alloc(2 * columns);
  const colors = ["--compute", "--transfer", "--wait", "--copy", "--starved", "--host", "--idle"].map(ink);
  const lanes = [ink("--compute"), ink("--transfer"), ink("--copy")];
  timeline.ranks.forEach((rank, row) => {
    const top = row * rowHeight;
    c.fillStyle = ink("--ink");
    c.fillText(`rank ${rank.rank}`, 2, top + 13);
    core.x.kw_draw(row, 0, timeline.from, timeline.to, columns, place);
    const band = core.bytes(place, 2 * columns).slice();
    for (let x = 0; x < columns;) { // runs of equal columns in one rectangle
      let end = x + 1;
      while (end < columns && band[2 * end] === band[2 * x]) end++;
      const label = band[2 * x] - 1;
      if (label >= 0) {
        const high = 26 * bandHeights[label];
        c.fillStyle = colors[label];
        c.fillRect(left + x, top + 26 - high, end - x, high);
      }
      x = end;
    }
    for (let lane = 1; lane <= 3; lane++) {
      core.x.kw_draw(row, lane, timeline.from, timeline.to, columns, place);
      const busy = core.bytes(place, 2 * columns).slice();
      c.fillStyle = lanes[lane - 1];
      for (let x = 0; x < columns;) {
        let end = x + 1;
        while (end < columns && busy[2 * end + 1] >> 5 === busy[2 * x + 1] >> 5 && busy[2 * end] === busy[2 * x]) end++;
        if (busy[2 * x]) {
          c.globalAlpha = 0.3 + (0.7 * busy[2 * x + 1]) / 255;
          c.fillRect(left + x, top + 24 + 5 * lane, end - x, 4);
        }
        x = end;
      }
      c.globalAlpha = 1;
    }
  });
  core.x.kw_free(place);
  const base = timeline.ranks.length * rowHeight + 12;
  c.fillStyle = ink("--quiet");
  for (let i = 0; i <= 4; i++) {
    const t = timeline.from + ((timeline.to - timeline.from) * i) / 4;
    c.textAlign = i === 4 ? "right" : i === 0 ? "left" : "center";
    c.fillText(seconds(t * 1e-9), left + (columns * i) / 4, base);
  }
  c.textAlign = "left";
};

timeline.zoom = (factor, at = 0.5) => {
  const span = timeline.to - timeline.from;
  const middle = timeline.from + span * at;
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

timeline.look = (x, y) => {
  const canvas = byId("timeline");
  const row = Math.floor(y / rowHeight);
  if (x < left || row >= timeline.ranks.length) return;
  const inside = y - row * rowHeight;
  const lane = inside < 27 ? 0 : Math.min(3, 1 + Math.floor((inside - 28) / 5));
  const at = timeline.from + ((timeline.to - timeline.from) * (x - left)) / (canvas.clientWidth - left);
  core.x.kw_look(row, Math.max(0, lane), at);
  const found = core.answer();
  byId("timeline-look").textContent = `rank ${found.rank} at ${seconds(at * 1e-9)}: ${found.label ?? "–"}${found.name ? `; ${found.name.slice(0, 300)}, ${seconds(found.duration_s)} on stream ${found.stream}` : ""}`;
};

timeline.bind = () => {
  timeline.bound = true;
  const canvas = byId("timeline");
  let dragged = null;
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const box = canvas.getBoundingClientRect();
    timeline.zoom(e.deltaY > 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, (e.clientX - box.left - left) / (box.width - left))));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => { dragged = e.clientX; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect();
    if (dragged != null) {
      timeline.move((dragged - e.clientX) / (box.width - left));
      dragged = e.clientX;
    } else {
      timeline.look(e.clientX - box.left, e.clientY - box.top);
    }
  });
  canvas.addEventListener("keydown", (e) => {
    const act = { "+": () => timeline.zoom(0.7), "=": () => timeline.zoom(0.7), "-": () => timeline.zoom(1.4), ArrowLeft: () => timeline.move(-0.15),
      ArrowRight: () => timeline.move(0.15), 0: () => timeline.start(timeline.ranks) }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
};
