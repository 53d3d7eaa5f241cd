// SPDX-License-Identifier: MIT
// The other side of aside(): a separate core that answers one question at a time.
onmessage = async ({ data }) => {
  if (data.module) {
    await core.start(data.module);
    core.progress = (share) => { postMessage({ share }); return 1; };
    return;
  }
  postMessage({ answer: data.files ? core.askAbout(data.command, data.inputs, data.files, data.words) : core.ask(data.command, data.inputs, data.words) });
};
