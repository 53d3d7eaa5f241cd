// SPDX-License-Identifier: MIT
// Questions that take longer than a frame: asked in a worker, with progress. A new question under the
// same name ends the one before it.
const asides = {};

const startWorker = (first) => {
  const worker = new Worker(startWorker.url ??= URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" })));
  worker.postMessage(first);
  return worker;
};

// A gzip file unpacked in a worker, while what came before is read here; what core.readOnce takes of a stream.
const unpacked = (file) => {
  const queue = [];
  let worker, wake = () => {};
  try {
    worker = startWorker({ unpack: file });
  } catch {
    return file.stream().pipeThrough(new DecompressionStream("gzip"));
  }
  worker.onmessage = ({ data }) => { queue.push(...data); wake(); };
  worker.onerror = () => { queue.push(null); wake(); };
  const read = async () => {
    while (!queue.length) await new Promise((go) => { wake = go; });
    const value = queue.shift();
    if (value) worker.postMessage({ taken: 1 });
    else worker.terminate();
    return { value, done: !value };
  };
  return { getReader: () => ({ read }) };
};

// -> the answer, or null when another question took its place
const aside = (name, question, progress) => new Promise((done) => {
  asides[name]?.end();
  let worker = asides[name]?.spare;
  try {
    worker ??= startWorker({ module: core.module });
  } catch {
    done(question.files ? core.askAbout(question.command, question.inputs, question.files, question.words) : core.ask(question.command, question.inputs, question.words));
    return;
  }
  const turn = { end: () => { worker.terminate(); asides[name] = null; done(null); } };
  asides[name] = turn;
  worker.onmessage = ({ data }) => {
    if (data.share != null) return progress?.(data.share);
    turn.spare = worker; // it waits for the next question
    turn.end = () => {};
    done(data.answer);
  };
  worker.onerror = (e) => { turn.end(); done({ error: String(e.message ?? e), hint: "" }); };
  worker.postMessage(question);
});
