"""Sphinx's settings for the book; `book.py` lays it beside the sources and calls Sphinx."""

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
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_show_copyright = False  # a licence has no holder to name: templates/page.html
templates_path = ["_templates"]
html_css_files = ["book.css"]
html_js_files = ["theme.js", ("live.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_show_search_summary = False  # it is fetched, which fails on a disk
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
