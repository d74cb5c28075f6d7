"""Chapters as web pages: `jupyter nbconvert` with the course's configuration."""

import re
import subprocess
import sys

import nbformat
from conftest import ROOT

CONFIG = ROOT / "tools" / "jupyter" / "jupyter_nbconvert_config.py"


def test_pages_link_to_pages_and_describe_their_pictures(tmp_path):
    chapters = sorted((ROOT / "notebooks").glob("0[01]_*.ipynb"))
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path)]
    done = subprocess.run(
        [*command, "--config", str(CONFIG), *map(str, chapters)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for path in chapters:
        page = (tmp_path / f"{path.stem}.html").read_text("utf-8")
        links = re.findall(r'href="(\d\d_\w+\.\w+)"', page)
        assert links and all(link.endswith(".html") for link in links)
        outputs = [o for c in nbformat.read(path, as_version=4).cells for o in c.get("outputs", [])]
        pictures = [o for o in outputs if "image/png" in o.get("data", {})]
        assert pictures and "No description has been provided" not in page
        assert page.count('<img alt="') + page.count("<img src=") >= len(pictures)
