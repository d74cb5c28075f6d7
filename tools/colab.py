"""In Colab: install what is missing there, and find the course that this file belongs to."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]

lines = (COURSE / "requirements.txt").read_text(encoding="utf-8").splitlines()
here = {package.metadata["Name"].lower() for package in metadata.distributions()}
missing = [line for line in lines if "==" in line and line.split("==")[0] not in here]
if missing:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)
sys.path.insert(0, str(COURSE))
sys.modules["google.colab"].output.enable_custom_widget_manager()
