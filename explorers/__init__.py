"""Explorers: pictures that answer when you move something.

Each explorer is an ordinary ipywidget (anywidget) whose drawing happens in the browser. It carries
a still picture of its first view, so that a page without a running kernel shows that instead::

    from explorers import AttentionExplorer
"""

from explorers.attention import AttentionExplorer
from explorers.base import Explorer
from explorers.cache import CacheExplorer
from explorers.clock_hands import ClockHands
from explorers.compass import CompassExplorer
from explorers.depth import DepthExplorer
from explorers.guessing import GuessingGame
from explorers.overlap import OverlapExplorer
from explorers.rewards import RewardsExplorer
from explorers.sampling import SamplingExplorer
from explorers.sentence import SentenceExplorer
from explorers.token import TokenExplorer
from explorers.two_vectors import TwoVectors
from explorers.typewriter import Typewriter

__all__ = [
    "AttentionExplorer",
    "CacheExplorer",
    "ClockHands",
    "CompassExplorer",
    "DepthExplorer",
    "Explorer",
    "GuessingGame",
    "OverlapExplorer",
    "RewardsExplorer",
    "SamplingExplorer",
    "SentenceExplorer",
    "TokenExplorer",
    "TwoVectors",
    "Typewriter",
]
