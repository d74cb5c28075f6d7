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
