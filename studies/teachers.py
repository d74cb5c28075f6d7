"""At temperature 0, a pupil takes the majority of what it was shown.

The task is in `_addition.py`, with teachers who err in another fraction of the sums with a carry,
or in more than one way: of the two teachers, one forgets the carry in half of these sums, and the
other writes 10 too much in half of them.

Measured on 200 held-out problems with a carry: `drawn` (8 completions each) and `greedy`, the
likeliest; and `no carry`, drawn on 200 without.
"""

from typing import Any

from studies import Study
from studies._addition import accuracy, carries, imitator, problems

ARMS: dict[str, dict[str, Any]] = {
    "forgets 0.3": {"errs": 0.3},
    "forgets 0.5": {"errs": 0.5},
    "two teachers": {"errs": 0.5, "slips": (-10, 10)},
}


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    model, held_out = imitator(seed, steps, **ARMS[arm]), problems(seed)[1]
    with_carry = [pair for pair in held_out if carries(pair)][:200]
    without = [pair for pair in held_out if not carries(pair)][:200]
    return {
        "drawn": accuracy(model, with_carry, samples=8).mean().item(),
        "greedy": accuracy(model, with_carry, temperature=0.0).mean().item(),
        "no carry": accuracy(model, without, samples=2).mean().item(),
    }


study = Study(arms=list(ARMS), settings={"steps": 250})
