"""Explorers: pictures that answer when you move something.

Each explorer is an ordinary ipywidget (anywidget) whose drawing happens in the browser. It carries
a still picture of its first view, so that a page without a running kernel shows that instead.
"""

from helpers.widgets.base import Explorer

__all__ = ["Explorer"]
