"""The exercise of the chapter "Start here"."""

import math

from exercises.check import exercise


@exercise(
    inputs=lambda draw: [(0.25,), (1.0,), (0.5,), (0.3,), (draw.uniform(0.01, 0.2),)],
    on_success="Bits: a letter with one chance in eight is a surprise of 3.",
)
def surprise(p):
    """surprise(p): the bits of surprise at a letter that had the probability p."""
    return math.log2(1 / p)


surprise.slips("""
    This is the probability itself. The rarer a letter, the larger is its surprise.
        p
    The sign is reversed: log2(p) is negative for a probability below 1.
        -right(p)
    These are nats, which the natural logarithm gives: bits come from log2.
        log2 → log
    This is 1 / p. Take its logarithm, log2.
        1 / p
    You round: 0.3 has a surprise between 1 and 2 bits.
        round(right(p))
        int(right(p))
        math.ceil(right(p))
""")
