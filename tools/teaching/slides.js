// Give each slide the largest type that fits, then start reveal.js.
(async () => {
  const { Reveal, RevealNotes } = /** @type {any} */ (window);
  /** @type {NodeListOf<HTMLElement>} */
  const slides = document.querySelectorAll(".slide");

  function fits(slide) {
    const { right, bottom } = slide.getBoundingClientRect();
    const below = slide.querySelector("table") ? 64 : 44; // a line ends a table
    const shown = "header, .lead, .question, .body, .claims, .keys, .body *";
    const boxes = [...slide.querySelectorAll(shown)];
    return boxes
      .map((box) => box.getBoundingClientRect())
      .every((box) => box.right <= right - 56 && box.bottom <= bottom - below);
  }

  await Promise.all([...document.fonts].map((font) => font.load()));
  for (const slide of slides) {
    for (let size = 32; size >= 18; size--) {
      slide.style.fontSize = `${size}px`;
      if (fits(slide)) break;
    }
  }
  document.querySelector(".reveal").classList.remove("measuring");
  await Reveal.initialize({
    width: 1280,
    height: 720,
    margin: 0,
    center: false,
    hash: true,
    navigationMode: "linear",
    slideNumber: "h.v",
    transition: "none",
    pdfSeparateFragments: false,
    plugins: [RevealNotes],
  });
})();
