"""The course's JupyterLab: tools/learn.py puts this folder first on JUPYTER_CONFIG_PATH.

A saved explorer keeps its still picture and no more: JupyterLab prefers the view of a widget to the
picture beside it, and without the kernel that made it there is none ("model not found").
"""

import warnings
from pathlib import Path
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def keep_stills(model: dict[str, Any], **_: Any) -> None:
    """Before a notebook is written: drop the views of widgets that have a picture beside them."""
    if model["type"] != "notebook":
        return
    notebook = model["content"]
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output["data"].pop(WIDGET_VIEW, None)


# Jupyter reads this into each of its two contents managers twice, and would say that the hook
# replaces itself.
warnings.filterwarnings("ignore", "Overriding existing pre_save_hook .keep_stills.")
c = get_config()  # type: ignore[name-defined]  # noqa: F821
c.FileContentsManager.pre_save_hook = keep_stills
c.LabApp.custom_css = True
c.ServerApp.tornado_settings = {"static_custom_path": [str(Path(__file__).with_name("custom"))]}
c.ContentsManager.hide_globs.extend(["*.egg-info", "nbval.cfg", "pictures", "progress.txt"])
