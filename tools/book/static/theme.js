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
    target.scrollIntoView();
  };
  addEventListener("DOMContentLoaded", open);
  addEventListener("hashchange", open);
  // What is drawn above the target while the page loads may push it out of sight.
  addEventListener("load", () => {
    const [entry] = performance.getEntriesByType("navigation");
    if (entry instanceof PerformanceNavigationTiming && entry.type === "navigate")
      document.getElementById(location.hash.slice(1))?.scrollIntoView();
  });
})();
