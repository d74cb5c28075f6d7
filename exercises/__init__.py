"""Exercises that answer back.

Each chapter has its own module (``from exercises import words_as_vectors as check``) whose members
are `Exercise` objects. Give one your function, class or value and it shows one of three outcomes:
✔ right, ✘ not yet (with what it saw), … not attempted. Nothing is raised, so an unsolved notebook
still runs from top to bottom.
"""

from exercises.check import Exercise

__all__ = ["Exercise"]
