// What answers in the kernel's place: for each class of explorers a function of its weights that gives
// the function from traits to the trait "answer". bpe.js and gpt.js stand above this.

/** As SamplingExplorer._answer in explorers/sampling.py. */
function SamplingExplorer(bytes) {
  const gpt = gptOf(bytes);
  const encode = encoderOf(gpt.about.tokenizer);
  return ({ prompt }) => {
    const answer = { prompt, logits: new DataView(new ArrayBuffer(0)), error: "", note: "" };
    if (!prompt)
      return { ...answer, error: "Type a prompt (at least one token) to get a continuation." };
    if (prompt.length > 4000)
      return { ...answer, error: "The prompt is longer than 4000 characters." };
    let ids;
    try {
      ids = encode(prompt);
    } catch (error) {
      return { ...answer, error: error.message };
    }
    gpt.read(ids.slice(-gpt.most));
    const note =
      ids.length > gpt.most ? `window full: the model reads the last ${gpt.most} tokens` : "";
    return {
      ...answer,
      note,
      logits: new DataView(gpt.logits(Math.min(ids.length, gpt.most) - 1).buffer),
    };
  };
}
export { SamplingExplorer };
