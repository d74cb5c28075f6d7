"""AlignmentExplorer on the Python side: what it sends, refuses, shows still, and says."""

import warnings

import numpy as np
import pytest
import torch

from explorers.alignment import LONGEST_READ, LONGEST_WRITTEN, AlignmentExplorer
from explorers.attention_maps import STEPS
from helpers.seq2seq import RNNSeq2Seq, greedy_decode
from studies._seq2seq import pairs_to_ids

PAIRS = [("abc", "cba"), ("3 May 1979", "1979-05-03")]


def looks(text, read, seed=0):
    draw = np.random.default_rng(seed)
    return draw.dirichlet(np.ones(len(read) + 1), len(text) + 1)


def models(pairs=PAIRS):
    """One that is right and looks back, and one that writes the first letter and looks nowhere."""
    return {
        "looking": [(right, looks(right, read)) for read, right in pairs],
        "blind": [(read[0], None) for read, _ in pairs],
    }


def explorer(pairs=PAIRS, answers=None, **choices):
    return AlignmentExplorer(pairs, models(pairs) if answers is None else answers, **choices)


def test_all_weights_go_over_one_after_the_other():
    widget, given = explorer(), models()
    sent = np.frombuffer(widget.weight_steps, "<u2") / STEPS
    expected = np.concatenate([weights.ravel() for _, weights in given["looking"]])
    assert np.abs(sent - expected).max() < 2e-5
    assert widget.has_attention == [[True, True], [False, False]]
    assert widget.outputs == [["cba", "1979-05-03"], ["a", "3"]]


def test_weights_of_a_model_are_taken_as_they_come():
    torch.manual_seed(0)
    model = RNNSeq2Seq(8, "dot")
    (text,) = greedy_decode(model, ["abc"], longest=5)
    source, given, _ = pairs_to_ids([("abc", text)])
    weights = model.weights(source, given)[0]
    widget = explorer(PAIRS[:1], {"dot product": [(text, weights)]}, step=3)
    assert np.allclose(widget.weights(), weights[:3].detach())
    assert widget.text() == text + ">"


def test_it_shows_the_first_texts_whole_or_what_is_asked_for():
    widget = explorer()
    assert (widget.source, widget.model, widget.step) == ("abc", "looking", 4)
    text = "AlignmentExplorer(2 models, 2 texts: 'abc' by looking, written to the end)"
    assert repr(widget) == text
    widget = explorer(source="3 May 1979", model="blind", step=1)
    assert repr(widget).endswith("'3 May 1979' by blind, up to letter 1)")
    assert widget.weights() is None and widget.text() == "3>"
    assert explorer(step=0).weights().shape == (0, 4)


def test_whoever_saw_one_text_whole_sees_the_next_one_whole():
    widget = explorer()
    widget.source = "3 May 1979"
    assert widget.step == 11
    widget.model = "blind"
    assert widget.step == 2
    widget.model = "looking"
    assert widget.step == 11
    widget.step = 3
    widget.model = "blind"
    assert widget.step == 2
    widget.step = 1
    widget.model = "looking"
    assert widget.step == 1


@pytest.mark.parametrize("text", ["$x$ <b>_^{", "\x00\r\t\u200b\u202e 中文🦉\ud800"])
def test_every_text_has_a_still_picture(text):
    pairs = [(text, text[::-1])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert explorer(pairs).picture().png()


def test_lone_surrogates_are_shown_as_a_replacement_character():
    text, weights = "a\ud800", np.full((3, 3), 1 / 3)
    shown = AlignmentExplorer(
        [(text, text)], {"m\ud800": [(text, weights)]}, source=text, model="m\ud800"
    )
    assert shown.models == ["m\ufffd"] and shown.text() == "a\ufffd>"
    assert shown._repr_mimebundle_()[0]["text/plain"] == repr(shown)
    with pytest.raises(ValueError, match="two models have the same name"):
        AlignmentExplorer([(text, text)], {n: [(text, None)] for n in ("\ud800", "\udfff")})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "1 to 8 pairs, not 0"),
        ([("a" * (LONGEST_READ + 1), "a")], "has 31 letters, there should be 1 to 30"),
        ([("a", "b" * (LONGEST_WRITTEN + 1))], "has 41 letters, there should be 1 to 40"),
        ([("a", "b"), ("a", "c")], "two pairs have the same source"),
    ],
)
def test_wrong_pairs_are_explained(pairs, message):
    with pytest.raises(ValueError, match=message):
        explorer(pairs, {"blind": [("a", None)] * len(pairs)})


EVEN = np.full((4, 4), 0.25)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "1 to 4 models, not 0"),
        ({"a": []}, "a has 0 answers for 1 pairs"),
        (
            {"a": [("cba", EVEN[:3])]},
            r"shape \(3, 4\), not \(4, 4\): a row for each letter of 'cba'",
        ),
        ({"a": [("cba", EVEN[None])]}, r"shape \(1, 4, 4\)"),
        ({"a": [("cba", EVEN * np.nan)]}, "numbers from 0 to 1"),
        ({"a": [("cba", EVEN - 1)]}, "are these scores"),
        ({"a": [("cba", EVEN / 2)]}, "do not sum to 1"),
        ({"a": [("c" * 41, None)]}, "41 letters, more than 40"),
    ],
)
def test_wrong_answers_are_explained(answers, message):
    with pytest.raises(ValueError, match=message):
        explorer([("abc", "cba")], answers)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"source": "abcd"}, "source should be one of 'abc', '3 May 1979', not 'abcd'"),
        ({"model": "best"}, "model should be one of 'looking', 'blind', not 'best'"),
        ({"step": 42}, "step is a number of letters, from 0 to 41, not 42"),
    ],
)
def test_wrong_choices_are_explained(choices, message):
    with pytest.raises(ValueError, match=message):
        explorer(**choices)
