"""The overlap explorer without a browser: what it accepts, computes, shows still, and says."""

import itertools
import math

import pytest

from explorers.overlap import (
    MODELS,
    Block,
    OverlapExplorer,
    in_short,
    in_time,
    one_step,
)

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
        (4, True, [(8, 12), (12, 16)]),
        (6, True, [(8, 14), (14, 20)]),  # slower: they queue
        (3, False, [(12, 15), (15, 18)]),
        (6, False, [(12, 18), (18, 24)]),
    ],
)
def test_a_small_step_is_as_worked_out_by_hand(seconds, overlap, sent):
    found = one_step(**SMALL, bandwidth=2 * 2 / 3 * 200 / seconds, overlap=overlap)
    assert found[:4] == COMPUTED
    sends = [(block.kind, block.layer, *map(round, block[2:])) for block in found[4:]]
    assert sends == [("send", 1, *sent[0]), ("send", 0, *sent[1])]
    assert all(abs(time - round(time)) < 1e-9 for block in found for time in block[2:])


def settings():
    for size, processes, tokens, bandwidth in itertools.product(
        MODELS, (1, 2, 8, 1000), (512, 8192, 131_072), (1.25e9, 25e9, 450e9)
    ):
        yield OverlapExplorer(size, processes=processes, tokens=tokens, bandwidth=bandwidth)


def test_whatever_is_set_blocks_follow_each_other_and_overlap_is_never_slower():
    for explorer in settings():
        parameters, layers = MODELS[explorer.size]
        ends = []
        for overlap in (True, False):
            blocks = explorer.blocks(overlap=overlap)
            work, sends = blocks[: 2 * layers], blocks[2 * layers :]
            assert work[0].start == 0
            assert all(one.end == two.start for one, two in itertools.pairwise(work))
            flops = 6 * parameters * explorer.tokens
            assert math.isclose(work[-1].end, flops / explorer.speed)
            done = {block.layer: block.end for block in work[layers:]}
            assert all(one.end <= two.start for one, two in itertools.pairwise(sends))
            assert all(block.start >= done[block.layer] for block in sends)
            assert len(sends) == (layers if explorer.processes > 1 else 0)
            ends.append(blocks[-1].end)
        assert ends[0] <= ends[1]
        assert 0 < explorer.measures()["efficiency"] <= 1


def test_tokens_are_counted_over_all_gpus():
    found = OverlapExplorer(processes=1000, bandwidth=25e9).measures()
    assert math.isclose(found["tokens_a_second"], 1000 * 8192 / found["seconds"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {},
            "7B parameters, 8,192 tokens per GPU, 25 GB/s, overlap on: one step 1.28 s · "
            "computing 67% of the time · 8 GPUs process 51,000 tokens per second",
        ),
        (
            {"size": "124M", "processes": 1, "tokens": 512, "overlap": False},
            "124M parameters, 512 tokens per GPU, 25 GB/s, overlap off: one step 0.952 ms · "
            "computing 100% of the time · 1 GPU processes 540,000 tokens per second",
        ),
        (
            {"size": "70B", "processes": 1000, "bandwidth": 450e9},
            "70B parameters, 8,192 tokens per GPU, 450 GB/s, overlap on: one step 8.61 s · "
            "computing 99.9% of the time · 1,000 GPUs process 950,000 tokens per second",
        ),
    ],
)
def test_it_says_what_it_shows_and_shows_it_still(arguments, text):
    explorer = OverlapExplorer(**arguments)
    assert repr(explorer) == f"OverlapExplorer({text})"
    picture = explorer.picture()
    assert text in picture.alt and picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("processes", 0, "processes is how many GPUs, from 1 to 16384, not 0"),
        ("processes", 2.5, "'processes' .* expected an int, not the float 2.5"),
        ("tokens", 0, "tokens is tokens per GPU, from 1 to 1048576, not 0"),
        ("bandwidth", math.nan, "bandwidth is bytes a second, from 100000000 to .*, not nan"),
        ("speed", -1, "speed is FLOP a second, from 1000000000 to .*, not -1"),
        ("size", "8B", r"'size' .* any of \['124M', '1.5B', '7B', '70B'\], not the str '8B'"),
        ("overlap", "no", "'overlap' .* expected a boolean"),
    ],
)
def test_wrong_values_are_explained(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        OverlapExplorer(**{name: wrong})


def test_numbers_are_written_as_people_do():
    assert [in_short(v, 2) for v in (0.24153, 9.96, 66.9, 100, 50_993, 999_999, 6.214e6, 9e9)] == [
        "0.24", "10", "67", "100", "51,000", "1 million", "6.2 million", "9 billion",
    ]  # fmt: skip
    assert [in_time(v) for v in (0.00095, 0.0996, 0.1, 0.84, 1.2847, 224.2, 4321)] == [
        "0.95 ms", "99.6 ms", "0.1 s", "0.84 s", "1.28 s", "224 s", "4,320 s",
    ]  # fmt: skip
