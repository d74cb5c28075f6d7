"""The Python side of the attention explorer: what it takes, refuses, packs and draws."""

import numpy as np
import pytest
import torch

from explorers.attention import AttentionExplorer
from explorers.attention_maps import STEPS
from explorers.notable_heads import induction_targets, notable_heads, opening_query


def weights_and_scores(L=2, H=3, T=5, causal=True):
    scores = 2 * torch.randn(L, H, T, T, generator=torch.Generator().manual_seed(L * H * T))
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    return (scores.masked_fill(future, -torch.inf) if causal else scores).softmax(-1), scores


MAPS, SCORES = weights_and_scores()


@pytest.mark.parametrize("change", [lambda m: m.tolist(), lambda m: m.bfloat16().requires_grad_()])
def test_tensors_and_lists(change):
    made = AttentionExplorer("abcde", change(MAPS))
    steps = np.frombuffer(made.weight_steps, "<u2").reshape(2, 3, 5, 5)
    np.testing.assert_allclose((steps + 0.5) / STEPS, MAPS, atol=2e-3)
    assert AttentionExplorer("abcde", MAPS[0], SCORES[0]).shape == [1, 3, 5]


def test_the_mask_is_seen_in_the_maps():
    future = np.triu(np.ones((5, 5), np.uint8), 1)
    assert AttentionExplorer("abcde", MAPS).masked == future.tobytes()
    assert AttentionExplorer("abcde", MAPS, SCORES).masked == future.tobytes()
    assert not any(AttentionExplorer("abcde", *weights_and_scores(causal=False)).masked)
    window = torch.ones(5, 5, dtype=torch.bool).tril().triu(-1)
    narrow = SCORES.masked_fill(~window, -torch.inf).softmax(-1)
    masked = (~window).numpy().astype(np.uint8).tobytes()
    assert AttentionExplorer("abcde", narrow, SCORES).masked == masked
    assert AttentionExplorer("abcde", narrow, SCORES, mask=window).masked == masked
    with pytest.raises(ValueError, match=r"mask is False where maps has the weight .* row 2"):
        AttentionExplorer("abcde", MAPS, SCORES, mask=window)


def test_a_saturated_softmax_is_no_mask():
    steep = torch.tensor([[[300.0, 200, 0], [0, 300, 0], [0, 0, 300]]])
    maps = steep.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
    masked = AttentionExplorer("abc", maps, steep).masked
    assert masked == np.triu(np.ones((3, 3), np.uint8), 1).tobytes()


def head(T, look):
    """A causal map (T, T) in which query i gives 0.9 to key look(i), the rest to all it sees."""
    weights = np.tril(np.ones((T, T), np.float32)) / np.arange(1, T + 1)[:, None] * 0.1
    weights[range(T), [look(i) for i in range(T)]] += 0.9
    return weights


FUTURE = np.triu(np.ones((8, 8), bool), 1)


def test_it_opens_locked_on_the_largest_weight_on_another_token():
    weights = head(8, lambda i: i)
    weights[1] = [0.99, 0.01, 0, 0, 0, 0, 0, 0]  # of two keys only: says little
    weights[6] = [0, 0, 0.6, 0, 0, 0, 0.4, 0]
    assert opening_query(weights, FUTURE) == 6
    made = AttentionExplorer("abcdefgh", weights[None])
    assert made.query == 6 and made.locked
    assert AttentionExplorer("a", [[[1.0]]]).query == 0  # there is no other


def test_it_finds_the_heads_that_do_what_their_names_say():
    even = np.tril(np.ones((8, 8), np.float32)) / np.arange(1, 9)[:, None]
    looks = [head(8, lambda i: max(0, i - 1)), head(8, lambda i: i), head(8, lambda i: 0), even]
    maps = np.stack([np.stack(looks[:2]), np.stack(looks[2:])])
    found = {f["name"]: (f["layer"], f["head"]) for f in notable_heads("abcdefgh", maps, FUTURE)}
    names = ["previous token", "same token", "first token", "many tokens"]
    assert found == dict(zip(names, [(0, 0), (0, 1), (1, 0), (1, 1)], strict=True))
    third = head(8, lambda i: i // 3)[None, None]  # somewhere else: nothing is offered
    assert notable_heads("abcdefgh", third, FUTURE) == []


def test_a_text_that_repeats_shows_the_head_that_looks_at_what_followed_last_time():
    assert induction_targets("abcdabcd").tolist() == [-1, -1, -1, -1, 1, 2, 3, 4]
    assert induction_targets("abab").tolist() == [-1, -1, -1, -1]  # what followed is the one before
    maps = np.stack([head(8, lambda i: i), head(8, lambda i: max(0, i - 3))])[None]
    by_name = {one["name"]: one for one in notable_heads("abcdabcd", maps, FUTURE)}
    assert by_name["induction"]["head"] == 1 and 4 <= by_name["induction"]["query"] < 8
    too_few = notable_heads("abcdefab", maps, FUTURE)  # two repeats
    assert [one["name"] for one in too_few] == ["same token"]


def spoil(where, value):
    maps = MAPS.clone()
    maps[where] = value
    return maps


@pytest.mark.parametrize(("maps", "scores", "message"), [
    (MAPS[..., :4, :4], None, r"shape \(2, 3, 4, 4\), but there are 5 tokens"),
    (np.ones((5, 5)) / 5, None, r"shape \(5, 5\).*maps\[None\]"),
    (spoil((1, 2, 3, 0), np.nan), None, "nan in layer 1, head 2, row 3 .*every key is masked"),
    (SCORES, None, "negative weight .* are these scores"),
    (spoil((1, 0, 4), 0.5), None, "layer 1, head 0, row 4 of maps sums to 2.500, not 1"),
    (SCORES.softmax(-2), None, "its columns sum to 1: softmax ran over the queries"),
    (SCORES.softmax(-1).tril(), None, "was the mask applied after softmax"),
    (MAPS, SCORES[:1], r"scores has shape \(1, 3, 5, 5\), but maps has \(2, 3, 5, 5\)"),
    (MAPS, MAPS.log(), "before the mask"),
    (MAPS, SCORES * 4, "do not belong together.*after scaling"),
])  # fmt: skip
def test_bad_maps_and_scores_say_what_is_wrong(maps, scores, message):
    with pytest.raises(ValueError, match=message):
        AttentionExplorer("abcde", maps, scores)
