// Scripts and core are packed with LZMA, 13 bits in two letters, after both lengths: the page is sent around as one file.
const kneeBytes = (packed) => {
  const [, size, length] = /^(\d+):(\d+):/.exec(packed), start = size.length + length.length + 2, bytes = new Uint8Array(Number(length));
  const value = (i) => { const c = packed.charCodeAt(i); return c > 60 ? c - 36 : c - 35; };
  for (let i = start, at = 0, bits = 0, held = 0; i < packed.length; i += 2) {
    bits = ((bits << 13) | (value(i) + 91 * value(i + 1))) & 0xfffff;
    for (held += 13; held >= 8 && at < bytes.length; held -= 8) bytes[at++] = bits >>> (held - 8);
  }
  return kneeUnpack(bytes, Number(size));
};
// A decoder of LZMA (7-Zip's lzma-specification.txt) for lc = 3, lp = 0, pb = 0 and a dictionary as large as what comes out.
// All probabilities lie in one array; the names below are where each table begins in it.
const kneeUnpack = (bytes, size) => {
  const isMatch = 0, isRep = 12, isRep0 = 24, isRep1 = 36, isRep2 = 48, isLong = 60, slots = 72, special = 328, align = 443, lengths = 459, repLengths = 973, literals = 1487;
  const p = new Uint16Array(literals + 8 * 768).fill(1024), out = new Uint8Array(size);
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
      const table = literals + 768 * (done ? out[done - 1] >> 5 : 0);
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
