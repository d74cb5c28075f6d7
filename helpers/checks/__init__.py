"""Exercises that answer back.

Each chapter has its own module (``from helpers.checks import chapter01 as check``) whose members
are `Exercise` objects. Give one your function, class or value and it shows one of three outcomes:
✔ right, ✘ not yet (with what it saw), … not attempted. Nothing is raised, so an unsolved notebook
still runs from top to bottom.
"""

from helpers.checks.framework import Exercise

__all__ = ["Exercise"]
