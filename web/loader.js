// Scripts and core are packed with LZMA and written in 125 of the 128 characters of ASCII, all but NUL, CR and <, after both
// lengths: the page is sent around as one file. 122 of them stand for seven bits, the last three for six that all begin 1111.
const kneeBytes = (packed) => {
  const [start, size, length] = /^(\d+):(\d+):/.exec(packed), bytes = new Uint8Array(Number(length));
  for (let i = start.length, at = 0, bits = 0, held = 0; at < bytes.length; i++) {
    const c = packed.charCodeAt(i), v = c - 1 - (c > 13) - (c > 60);
    if (v < 122) { bits = (bits << 7) | v; held += 7; } else { bits = (bits << 6) | (v - 61); held += 6; }
    if (held >= 8) bytes[at++] = bits >>> (held -= 8);
  }
  return kneeUnpack(bytes, Number(size));
};
// One function of the core: operations and what belongs to them come from separate streams, in which they repeat better
// than mixed. take(stream) moves a byte to its place and returns it: streams to code here, code to streams in tools/page.mjs.
// 0 operations with types, alignments and calls; 1 locals; 2 and 3 integers; 4 fractions; 5 offsets; 6 branches; 7 the rest.
const kneeBody = (take) => {
  const leb = (stream) => { let v = 0, shift = 0, b; do { b = take(stream); v |= (b & 127) << shift; shift += 7; } while (b > 127); return v; };
  for (let n = 2 * leb(7); n > 0; n--) leb(7);
  for (let depth = 0; depth >= 0;) {
    const op = take(0);
    if (op === 11) depth--;
    else if (op > 1 && op < 5) { depth++; take(0); }
    else if (op === 12 || op === 13) leb(6);
    else if (op === 14) for (let n = leb(7); n >= 0; n--) leb(7);
    else if (op === 16 || op === 63 || op === 64) leb(0);
    else if (op === 17) { leb(7); leb(7); }
    else if (op > 31 && op < 35) leb(1);
    else if (op === 35 || op === 36) leb(7);
    else if (op > 39 && op < 63) { leb(0); leb(5); }
    else if (op === 65) leb(2);
    else if (op === 66) leb(3);
    else if (op === 67 || op === 68) for (let n = 4 * (op - 66); n > 0; n--) take(4);
    else if (op === 252) for (let n = leb(7) - 8; n > 0 && n < 4; n = n === 2 ? 1 : 0) leb(7);
  }
};
// The core from its streams. Twelve numbers come first: the length of what is before the functions, of what is after them, their
// number, the length of the whole, and that of each stream.
const kneeCore = (bytes) => {
  const head = new Uint32Array(bytes.slice(0, 48).buffer), out = new Uint8Array(head[3]);
  let at = 48 + head[0] + head[1], done = head[0];
  const places = Array.from(head.subarray(4), (length) => (at += length) - length);
  out.set(bytes.subarray(48, 48 + done));
  const take = (stream) => (out[done++] = bytes[places[stream]++]);
  for (let i = head[2]; i > 0; i--) {
    const from = done += 5;
    kneeBody(take);
    let size = done - from, to = from - 5;
    for (; size > 127; size >>>= 7) out[to++] = (size & 127) | 128;
    out[to++] = size;
    out.copyWithin(to, from, done);
    done += to - from;
  }
  out.set(bytes.subarray(48 + head[0], 48 + head[0] + head[1]), done);
  return out;
};
// A decoder of LZMA (7-Zip's lzma-specification.txt) for lc = 2, lp = 0, pb = 0 and a dictionary as large as what comes out.
// All probabilities lie in one array; the names below are where each table begins in it.
const kneeUnpack = (bytes, size) => {
  const isMatch = 0, isRep = 12, isRep0 = 24, isRep1 = 36, isRep2 = 48, isLong = 60, slots = 72, special = 328, align = 443, lengths = 459, repLengths = 973, literals = 1487;
  const p = new Uint16Array(literals + 4 * 768).fill(1024), out = new Uint8Array(size);
  const r = new Uint32Array([-1, 0]); // range, code: in an array, so that they stay plain 32-bit numbers
  let at = 1, done = 0, state = 0, rep0 = 0, rep1 = 0, rep2 = 0, rep3 = 0;
  while (at < 5) r[1] = (r[1] << 8) | bytes[at++];
  const next = () => { if (r[0] < 16777216) { r[0] <<= 8; r[1] = (r[1] << 8) | bytes[at++]; } };
  const bit = (i) => {
    const prob = p[i], bound = (r[0] >>> 11) * prob, found = r[1] < bound ? 0 : 1;
    if (found) { r[0] -= bound; r[1] -= bound; p[i] = prob - (prob >>> 5); } else { r[0] = bound; p[i] = prob + ((2048 - prob) >>> 5); }
    next();
    return found;
  };
  const tree = (from, count) => { let m = 1; for (let i = 0; i < count; i++) m = (m << 1) | bit(from + m); return m - (1 << count); };
  const reverse = (from, count) => { let m = 1, found = 0; for (let i = 0; i < count; i++) { const b = bit(from + m); m = (m << 1) | b; found |= b << i; } return found; };
  const direct = (count) => {
    let found = 0;
    while (count--) {
      r[0] >>>= 1;
      const b = r[1] >= r[0] ? 1 : 0;
      if (b) r[1] -= r[0];
      next();
      found = (found << 1) | b;
    }
    return found;
  };
  const lengthOf = (from) => (!bit(from) ? tree(from + 2, 3) : !bit(from + 1) ? 8 + tree(from + 10, 3) : 16 + tree(from + 18, 8));
  while (done < size) {
    if (!bit(isMatch + state)) {
      const table = literals + 768 * (done ? out[done - 1] >> 6 : 0);
      let symbol = 1;
      if (state > 6) {
        let other = out[done - rep0 - 1];
        while (symbol < 256) {
          const want = (other >> 7) & 1, b = bit(table + ((1 + want) << 8) + symbol);
          other <<= 1;
          symbol = (symbol << 1) | b;
          if (want !== b) break;
        }
      }
      while (symbol < 256) symbol = (symbol << 1) | bit(table + symbol);
      out[done++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let length;
    if (bit(isRep + state)) {
      if (!bit(isRep0 + state)) {
        if (!bit(isLong + state)) { state = state < 7 ? 9 : 11; out[done] = out[done - rep0 - 1]; done++; continue; }
      } else if (!bit(isRep1 + state)) [rep0, rep1] = [rep1, rep0];
      else if (!bit(isRep2 + state)) [rep0, rep1, rep2] = [rep2, rep0, rep1];
      else [rep0, rep1, rep2, rep3] = [rep3, rep0, rep1, rep2];
      length = lengthOf(repLengths);
      state = state < 7 ? 8 : 11;
    } else {
      [rep1, rep2, rep3] = [rep0, rep1, rep2];
      length = lengthOf(lengths);
      state = state < 7 ? 7 : 10;
      const slot = tree(slots + 64 * Math.min(3, length), 6), more = (slot >> 1) - 1;
      rep0 = slot;
      if (slot > 3) {
        rep0 = (2 | (slot & 1)) << more;
        rep0 += slot < 14 ? reverse(special + rep0 - slot, more) : (direct(more - 4) << 4) + reverse(align, 4);
      }
    }
    for (length += 2; length > 0 && done < size; length--, done++) out[done] = out[done - rep0 - 1];
  }
  return out;
};
// After the first paint, or soon where nothing is painted: unpacking takes longer than a frame.
let kneeBegun = false;
const kneeBegin = () => {
  if (kneeBegun) return;
  kneeBegun = true;
  document.head.append(Object.assign(document.createElement("script"), { textContent: new TextDecoder().decode(kneeBytes(document.getElementById("app").textContent)) }));
};
requestAnimationFrame(() => setTimeout(kneeBegin));
setTimeout(kneeBegin, 200);
