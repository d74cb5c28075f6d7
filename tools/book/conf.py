"""Sphinx's settings for the book; `book.py` lays it beside the sources and calls Sphinx."""

import re

from explorers.base import Explorer

project = "From the Dot Product to GPT"
html_title = project
extensions = ["myst_nb", "mathml", "closed", "marks"]
exclude_patterns = ["LICENSE*"]

nb_execution_mode = "off"  # what is shown is what is committed
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_dmath_allow_digits = False  # "$5 and $6" is no formula
myst_heading_anchors = 4

# Furo: no script or font from elsewhere, light and dark, phones, the keyboard.
html_theme = "furo"
# An arrow key that misses an explorer, or scrolls wide code, shall not turn the page.
html_theme_options = {"navigation_with_keys": False, "top_of_page_buttons": []}


def _colours(
    marks: dict[str, str], paper: str, panel: str, hover: str, line: str, *inks: str
) -> dict[str, str]:
    """The theme's variables, of marks like those of explorers, of grounds and of inks."""
    ground = {"primary": paper, "secondary": panel, "hover": hover, "border": line, "item": line}
    ground["hover--transparent"] = f"{hover}00"
    text = dict(zip(("primary", "secondary", "muted", "border"), inks, strict=True))
    brand = {"primary": marks["blue"], "content": marks["blue"], "visited": marks["pink"]}
    kinds = {"background": ground, "foreground": text, "brand": brand}
    named = {f"color-{kind}-{name}": v for kind, of in kinds.items() for name, v in of.items()}
    fonts = {"font-stack": "var(--sans)", "font-stack--monospace": "var(--mono)"}
    more = {"color-highlight-on-target": hover, "color-sidebar-link-text--top-level": inks[1]}
    return named | fonts | more | {"accent": marks["red"]}


_marks = re.findall(r"--(\w+): (#\w{6});", Explorer._css)  # light ones, then dark ones
html_theme_options["light_css_variables"] = _colours(
    dict(reversed(_marks)),
    *("#fffdf8", "#f7f4ea", "#efebdf", "#d9d6cc", "#1b2130", "#454e5e", "#5d6675", "#8b8f98"),
)
html_theme_options["dark_css_variables"] = _colours(
    dict(_marks),
    *("#14171f", "#1a1e28", "#232836", "#343a47", "#e8e6df", "#b9bcc4", "#9aa3b2", "#6d7482"),
)
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_show_copyright = False  # a licence has no holder to name: templates/page.html
templates_path = ["_templates"]
html_css_files = ["type.css", "book.css"]
html_js_files = ["theme.js", ("live.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_show_search_summary = False  # it is fetched, which fails on a disk
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
