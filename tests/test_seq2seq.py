"""From one text to another: the tasks, the recurrent models, the transformer of 2017."""

import pytest
import torch

from helpers.attention import MultiHeadAttention
from helpers.gpt import FeedForward
from helpers.seq2seq import (
    LETTERS,
    CrossBlock,
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


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def near(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


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
    losses = fit(
        model, lambda n, g: [("a", "x"), ("b", "yy")] * (n // 2), 60, draw(), learning_rate=0.02
    )
    assert losses[-1] < 0.1 < losses[0]
    assert greedy_decode(model, ["b", "a"]) == ["yy", "x"]
    assert exact_match(model, [("a", "x"), ("b", "y")]) == 0.5


def test_a_block_with_cross_attention_attends_to_itself_then_to_the_source():
    cross = MultiHeadAttention(8, 2, causal=False)
    block = CrossBlock(MultiHeadAttention(8, 2), cross, FeedForward(8))
    x, source = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    mask = torch.tensor([True, True, False]).expand(2, 1, 1, 3)
    y = x + block.attention(block.attention_norm(x))
    y = y + cross(block.cross_norm(y), source[:, :2])
    assert near(block(x, source, mask), y + block.mlp(block.mlp_norm(y)))
