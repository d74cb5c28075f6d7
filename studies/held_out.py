"""Does the scaling law fitted in `scaling_law` predict the loss of a larger run?

The model is 2.7 times as large as the largest model of `scaling_law`, and it is trained on twice as
many tokens, so it takes 5 times the FLOPs. Everything else is as in `scaling_law`.
"""

from studies import Study
from studies.scaling_law import run

__all__ = ["run", "study"]

study = Study(arms=["6 × 128"], settings={"tokens": 2_000_000, "times": 1.0})
