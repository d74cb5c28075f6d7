"""From one text to another: the tasks, the recurrent models, the transformer of 2017."""

import pytest
import torch
from conftest import generator, near

from helpers.seq2seq import (
    LETTERS,
    RNNSeq2Seq,
    Transformer,
    greedy_decode,
)
from studies._seq2seq import exact_match, fit, pairs_to_ids

MODELS = {
    "one vector": lambda: RNNSeq2Seq(16),
    "additive": lambda: RNNSeq2Seq(16, "additive"),
    "dot": lambda: RNNSeq2Seq(16, "dot"),
    "transformer": lambda: Transformer(16),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    return MODELS[request.param]()


def test_pairs_become_ids_that_end_and_are_padded():
    source, given, wanted = pairs_to_ids([("ab", "ba"), ("wxyz", "zyxw")])
    assert [LETTERS.decode(row) for row in source.tolist()] == ["ab>··", "wxyz>"]
    assert [LETTERS.decode(row) for row in given.tolist()] == ["<ba>·", "<zyxw"]
    assert [LETTERS.decode(row) for row in wanted.tolist()] == ["ba>··", "zyxw>"]


def test_padding_changes_nothing(model):
    source, given, _ = pairs_to_ids([("abc", "cba")])
    both, given_both, _ = pairs_to_ids([("abc", "cba"), ("abcdefgh", "hgfedcba")])
    assert near(model(both, given_both)[0, : given.shape[1]], model(source, given)[0])


def test_no_letter_hears_what_is_written_later(model):
    source, given, _ = pairs_to_ids([("abcdef", "fedcba")])
    other = given.clone()
    other[0, 4:] = 9
    apart = (model(source, given) - model(source, other)).abs().amax((0, 2))
    assert apart[:4].max() == 0 < apart[4:].min()


def test_every_letter_hears_the_whole_source(model):
    (source, given, _), (other, _, _) = (pairs_to_ids([(w, "cba")]) for w in ("abcd", "zbcd"))
    assert ((model(source, given) - model(other, given)).abs().amax((0, 2)) > 0).all()


@pytest.mark.parametrize("score", ["additive", "dot"])
def test_an_alignment_leaves_out_padding(score):
    source, given, _ = pairs_to_ids([("abc", "cba"), ("abcdefgh", "hgfedcba")])
    weights = RNNSeq2Seq(16, score).weights(source, given)
    assert weights.shape == (2, 9, 9) and near(weights.sum(-1), torch.ones(2, 9))
    assert weights[0, :, 4:].max() == 0


@pytest.mark.parametrize("name", ["dot", "transformer"])
def test_it_learns_and_writes(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    pairs = [("a", "x"), ("b", "yy")]
    losses = fit(model, lambda n, _: pairs * (n // 2), 60, generator(), learning_rate=0.02)
    assert losses[-1] < 0.1 < losses[0]
    assert greedy_decode(model, ["b", "a"]) == ["yy", "x"]
    assert exact_match(model, [("a", "x"), ("b", "y")]) == 0.5
