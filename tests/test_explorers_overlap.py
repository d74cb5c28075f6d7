"""The overlap explorer without a browser: the times of a step, and what is refused."""

import itertools
import math

import pytest

from explorers.overlap import MODELS, Block, OverlapExplorer, one_step

# Two layers of 100 numbers, 10 tokens, 1000 FLOP/s: forward 2 s a layer, backward 4 s. Three GPUs:
# each sends 2 · 2/3 of 200 bytes a layer.
SMALL = {"parameters": 200, "layers": 2, "processes": 3, "tokens": 10, "speed": 1000}
COMPUTED = [
    Block("forward", 0, 0, 2),
    Block("forward", 1, 2, 4),
    Block("backward", 1, 4, 8),
    Block("backward", 0, 8, 12),
]


@pytest.mark.parametrize(
    ("seconds", "overlap", "sent"),
    [
        (3, True, [(8, 11), (12, 15)]),  # quicker than a layer's backward: the last one sticks out
        (6, True, [(8, 14), (14, 20)]),  # slower: they queue
        (3, False, [(12, 15), (15, 18)]),
    ],
)
def test_a_small_step_is_as_worked_out_by_hand(seconds, overlap, sent):
    found = one_step(**SMALL, bandwidth=2 * 2 / 3 * 200 / seconds, overlap=overlap)
    assert found[:4] == COMPUTED
    assert [block.layer for block in found[4:]] == [1, 0]
    assert [block[2:] for block in found[4:]] == [pytest.approx(times) for times in sent]


def test_whatever_is_set_overlap_is_never_slower():
    for size, processes, bandwidth in itertools.product(MODELS, (1, 8, 1000), (1.25e9, 450e9)):
        explorer = OverlapExplorer(size, processes=processes, bandwidth=bandwidth)
        seconds, efficiency, speed = explorer.measures().values()
        assert seconds <= explorer.blocks(overlap=False)[-1].end and 0 < efficiency <= 1
        computed = 6 * MODELS[size][0] * 8192 / explorer.speed
        assert math.isclose(efficiency * seconds, computed)
        assert math.isclose(speed, processes * 8192 / seconds)
