// SPDX-License-Identifier: MIT
// Questions that take longer than a frame: asked in a worker, with progress. A new question under the
// same name ends the one before it.
const asides = {};

const startAside = () => {
  const url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.postMessage({ module: core.module });
  return worker;
};

// -> the answer, or null when another question took its place
const aside = (name, question, progress) => new Promise((done) => {
  asides[name]?.end();
  let worker = asides[name]?.spare;
  try {
    worker ??= startAside();
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
