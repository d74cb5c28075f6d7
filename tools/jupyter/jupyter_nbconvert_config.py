"""Web pages of the chapters, whose links lead from page to page:

jupyter nbconvert --config tools/jupyter/jupyter_nbconvert_config.py --to html notebooks/*.ipynb
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
c = get_config()  # type: ignore[name-defined]  # noqa: F821
c.HTMLExporter.preprocessors = ["pages.Pages"]
