"""Is hs as good a divisor as √hs in a wider head, and at other learning rates?

The model and the measures are those of the study `divisors`, whose heads have 4 or 64 numbers. In
the last variation (`traded`), only the query and key matrices learn at another rate: at an eighth
of it where the scores are divided by √hs, and at eight times of it where they are divided by hs.
"""

from studies import Study
from studies.divisors import run

__all__ = ["run"]

study = Study(
    arms=["√hs", "hs", "no scaling"],
    settings={"hs": 256, "optimizer": "AdamW", "rate": 0.003, "steps": 400},
    variations=[
        {"hs": 64, "rate": 0.0003}, {"hs": 1024}, {"hs": 1024, "rate": 0.01},
        {"hs": 1024, "rate": 0.01, "traded": True},
    ],
)  # fmt: skip
