"""What holds for every explorer: its output, odd texts, and what its traits refuse."""

import json
from base64 import b64decode
from collections.abc import Iterator
from math import nan

import numpy as np
import pytest
import traitlets

import explorers

KINDS = sorted(set(explorers.__all__) - {"Explorer"})
OTHER = {list: [], tuple: (), dict: {}, bytes: b"?", str: "?", int: 7, float: 0.5}
REFUSED = [
    ("AttentionExplorer", "layer", 999, "layer is a layer from 0 to"),
    ("CacheExplorer", "work", -1, "work is tokens processed, from 0 to"),
    ("ClockHands", "query", 61, "query is a position from 0 to 60, not 61"),
    ("ClockHands", "log_base", nan, "log_base is the base as a power of ten, from 1 to 7, not nan"),
    ("CompassExplorer", "word", "<s>", "“<s>” is not among the 30,000 words of this table"),
    ("DepthExplorer", "norm", "both", "'norm' trait .* any of .*'post'.*, not the str 'both'"),
    ("DepthExplorer", "layer", 49, "layer is a place on the way up, from 0 to 48, not 49"),
    ("OverlapExplorer", "processes", 0, "processes is how many GPUs, from 1 to 16384, not 0"),
    ("OverlapExplorer", "bandwidth", nan, "bandwidth is bytes a second, from 100000000 .* not nan"),
    ("SamplingExplorer", "temperature", nan, "temperature is a number from 0 to 3, not nan"),
    ("SamplingExplorer", "top_p", 0, "top_p is a probability above 0, up to 1, not 0"),
    ("SamplingExplorer", "answer", {}, "answer cannot be set: set prompt"),
    ("SentenceExplorer", "layer", 9, "layer is a layer from 0 to"),
    ("SentenceExplorer", "off", [999], "heads are numbers from 0 to"),
    ("TokenExplorer", "used", 9999, "used is how many merges, from 0 to"),
    ("Typewriter", "temperature", nan, "temperature is a number from 0.1 to 2, not nan"),
    ("TwoVectors", "ax", 6.01, r"ax goes from -6 to 6, not to 6\.01"),
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[explorers.Explorer]:
    return getattr(explorers, request.param)


@pytest.mark.filterwarnings("error")
def test_the_output_is_the_same_in_every_run(kind):
    first, second = kind.example(), kind.example()
    assert repr(first) == repr(second) and repr(first).startswith(f"{kind.__name__}(")
    data, metadata = first._repr_mimebundle_()
    assert data["text/plain"] == repr(first)
    assert data["image/png"] == second._repr_mimebundle_()[0]["image/png"]
    assert b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_what_the_browser_reads_once_cannot_change(kind):
    made = kind.example()
    for name in kind._given.trait_names if hasattr(kind, "_given") else ():
        before = getattr(made, name)
        with pytest.raises(
            traitlets.TraitError, match=f"{name} cannot change: make a new {kind.__name__}"
        ):
            setattr(made, name, OTHER[type(before)])
        assert getattr(made, name) == before


@pytest.mark.parametrize(("kind", "trait", "value", "message"), REFUSED)
def test_a_value_that_does_not_fit_is_explained_and_changes_nothing(kind, trait, value, message):
    made = getattr(explorers, kind).example()
    before = repr(made)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(made, trait, value)
    assert repr(made) == before


def test_what_the_two_typewriters_have_processed_is_counted():
    """The numbers of chapter 13: 31,080 tokens without a cache, 249 with it."""
    made = explorers.CacheExplorer(text=250 * "a", prompt=10, blocks=5, work=249)
    assert made.totals() == (31_080, 249)
    assert made.counts() == [(249, 14, 18), (249, 240, 249)]  # 10 + 11 + … + 23 = 231
    made.work = 31_080
    assert made.counts() == [(31_080, 240, 0), (249, 240, 249)]
    with pytest.raises(ValueError, match="prompt is letters from 1 to 2, not 3"):
        explorers.CacheExplorer(text="abc", prompt=3, blocks=1)


SHORT = ["", "$x$_^{\\<", "\x00\x1b\r\n\t\u202e\u200b ", "文🦉é\u0301½\ud800"]
ODD = [*SHORT, "<b>" * 5000, "a\n" * 90]


def with_odd_texts() -> Iterator[explorers.Explorer]:
    typed = {"Sampling": "prompt", "Sentence": "text", "Token": "text"}
    for kind, trait in typed.items():
        made = getattr(explorers, f"{kind}Explorer").example()
        for text in ODD:
            setattr(made, trait, text)
            yield made
    yield explorers.AttentionExplorer(ODD, np.eye(len(ODD))[None])
    yield explorers.CompassExplorer(ODD, np.eye(len(ODD)), ODD[:4], word=ODD[4])
    for text in SHORT:
        run = {"beta": 0, f"no {text}": [0, 1], "score": [0, 1], "KL": [0, 1]}
        texts = [[[text, "b"]], [["b", text]]]
        made = explorers.RewardsExplorer([(text, text)], [0, 1], [run | {"completions": texts}])
        assert made.shown()[0][1] == made.answers[0]  # still the right one
        yield made


@pytest.mark.filterwarnings("error")  # such as Matplotlib's, of a glyph that its font lacks
def test_any_text_can_be_sent_and_drawn():
    for made in with_odd_texts():
        json.dumps(made.get_state(), ensure_ascii=False, default=str).encode()  # no lone surrogate
        assert len(repr(made)) < 400 and made.picture().png().startswith(b"\x89PNG")
