"""Does the law of `scaling_law` foretell a larger run?

A model 2.7 times as large as the largest there reads twice as many tokens as any there: 5 times the
work. The rest as there.
"""

from studies import Study
from studies.scaling_law import run

__all__ = ["run", "study"]

study = Study(arms=["6 × 128"], settings={"tokens": 2_000_000, "times": 1.0})
