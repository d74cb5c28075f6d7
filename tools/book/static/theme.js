// The explorers tell light from dark by JupyterLab's attribute: set it as the theme has chosen.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {
    const chosen = document.body.dataset.theme ?? "auto";
    const isDark = chosen === "dark" || (chosen === "auto" && dark.matches);
    document.body.dataset.jpThemeLight = String(!isDark);
  };
  addEventListener("DOMContentLoaded", () => {
    tell();
    dark.addEventListener("change", tell);
    new MutationObserver(tell).observe(document.body, {
      attributes: true,
      attributeFilter: ["data-theme"],
    });
  });
})();

// A link to a cell in a closed section opens the section; older browsers do not do so by themselves.
(() => {
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target?.closest("details:not([open])")) return;
    for (const details of document.querySelectorAll("details"))
      if (details.contains(target)) details.open = true;
    target.scrollIntoView({ behavior: "instant" });
  };
  addEventListener("DOMContentLoaded", open);
  addEventListener("hashchange", open);
  // What is drawn above the target may push it out of sight: the page goes back to it until the
  // reader moves.
  addEventListener("load", () => {
    const [entry] = performance.getEntriesByType("navigation");
    const target = document.getElementById(location.hash.slice(1));
    if (!target || /** @type {PerformanceNavigationTiming} */ (entry).type !== "navigate") return;
    const drawn = new ResizeObserver(() => target.scrollIntoView({ behavior: "instant" }));
    drawn.observe(target.closest("article") ?? document.body);
    for (const moved of ["wheel", "touchstart", "pointerdown", "keydown"])
      addEventListener(moved, () => drawn.disconnect(), { once: true });
  });
})();
