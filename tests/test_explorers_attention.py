"""The Python side of the attention explorer: what it takes, refuses, packs and draws."""

import warnings
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
import torch

from explorers.attention import AttentionExplorer
from explorers.attention_maps import STEPS, packed
from explorers.notable_heads import induction_targets, notable_heads, opening_query

PNG = b"\x89PNG"


def weights_and_scores(L=2, H=3, T=5, causal=True):
    scores = 2 * torch.randn(L, H, T, T, generator=torch.Generator().manual_seed(L * H * T))
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    return (scores.masked_fill(future, -torch.inf) if causal else scores).softmax(-1), scores


def explorer(L=2, H=3, T=5, with_scores=True, **settings):
    maps, scores = weights_and_scores(L, H, T)
    return AttentionExplorer(
        [f"t{i}" for i in range(T)], maps, scores if with_scores else None, **settings
    )


def decoded(explorer):
    steps = np.frombuffer(explorer.weight_steps, "<u2").astype(float)
    return ((steps + 0.5) / STEPS).reshape(*explorer.shape, explorer.shape[-1])


# --- what it takes --------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [
    lambda m: m.tolist(),
    lambda m: m.double().requires_grad_(),
    lambda m: m.bfloat16(),
])  # fmt: skip
def test_tensors_arrays_and_lists(change):
    maps, _ = weights_and_scores()
    made = AttentionExplorer(list("abcde"), change(maps))
    assert made.shape == [2, 3, 5]
    np.testing.assert_allclose(decoded(made), maps, atol=2e-3)


def test_heads_without_layers_are_one_layer():
    maps, scores = weights_and_scores(L=1)
    made = AttentionExplorer("abcde", maps[0], scores[0])
    assert made.shape == [1, 3, 5] and made.tokens == list("abcde")


def test_the_decimals_that_are_shown_are_those_of_the_tensor():
    weights = np.random.default_rng(0).random(10_000, dtype=np.float32)
    edges = np.array([0, 0.0005, 0.1235, 0.3335, 0.9995, 1], np.float32)
    weights = np.concatenate([weights, edges, np.nextafter(edges, 0), edges / 16])
    shown = (np.frombuffer(packed(weights), "<u2") + 0.5) / STEPS
    for digits in (2, 3, 4):  # half a digit up, as one learns at school (0.0625 → 0.063)
        digit = Decimal(1).scaleb(-digits)
        for weight, value in zip(weights.tolist(), shown.tolist(), strict=True):
            exact = Decimal(weight).quantize(digit, ROUND_HALF_UP)
            assert f"{value:.{digits}f}" == str(exact)
    assert np.abs(shown - weights).max() < 1e-5


def test_the_mask_is_seen_in_the_maps():
    maps, scores = weights_and_scores()
    future = np.triu(np.ones((5, 5), np.uint8), 1)
    assert AttentionExplorer("abcde", maps).masked == future.tobytes()
    assert AttentionExplorer("abcde", maps, scores).masked == future.tobytes()
    open_maps, open_scores = weights_and_scores(causal=False)
    assert not any(AttentionExplorer("abcde", open_maps, open_scores).masked)


def test_a_window_is_seen_as_a_mask_but_a_saturated_softmax_is_not():
    scores = weights_and_scores()[1]
    window = torch.ones(5, 5, dtype=torch.bool).tril().triu(-1)
    made = AttentionExplorer("abcde", scores.masked_fill(~window, -torch.inf).softmax(-1), scores)
    assert made.masked == (~window).numpy().astype(np.uint8).tobytes()
    steep = torch.tensor([[300.0, 0], [300, 0]])[None]  # softmax by itself gives exactly 0
    assert steep.softmax(-1)[0, 0, 1] == 0
    steep = torch.tensor([[[300.0, 200, 0], [0, 300, 0], [0, 0, 300]]])
    maps = steep.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
    masked = AttentionExplorer("abc", maps, steep).masked
    assert masked == np.triu(np.ones((3, 3), np.uint8), 1).tobytes()


def test_a_mask_can_be_given():
    maps, scores = weights_and_scores()
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    assert AttentionExplorer("abcde", maps, scores, mask=causal).masked == (
        (~causal).numpy().astype(np.uint8).tobytes()
    )
    narrow = causal.triu(-1)
    with pytest.raises(ValueError, match=r"mask is False where maps has the weight .* row 2"):
        AttentionExplorer("abcde", maps, scores, mask=narrow)
    with pytest.raises(ValueError, match=r"mask has shape \(5, 4\) and type bool: give 5 queries"):
        AttentionExplorer("abcde", maps, scores, mask=causal[:, :4])


def test_half_a_surrogate_pair_becomes_a_sign_that_can_be_sent():
    made = AttentionExplorer(["\ud800", "😀", "a\udc00"], np.eye(3)[None], title="\udfff$")
    assert made.tokens == ["\ufffd", "😀", "a\ufffd"] and made.title == "\ufffd$"
    assert made.picture().png().startswith(PNG)


# --- where it opens, and what it finds ------------------------------------------------------------


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
    chosen = AttentionExplorer("abcdefgh", weights[None], query=-1)
    assert chosen.query == -1 and not chosen.locked
    assert AttentionExplorer("a", [[[1.0]]]).query == 0  # there is no other


def test_it_finds_the_heads_that_do_what_their_names_say():
    even = np.tril(np.ones((8, 8), np.float32)) / np.arange(1, 9)[:, None]
    looks = [head(8, lambda i: max(0, i - 1)), head(8, lambda i: i), head(8, lambda i: 0), even]
    maps = np.stack([np.stack(looks[:2]), np.stack(looks[2:])])
    found = {f["name"]: (f["layer"], f["head"]) for f in notable_heads("abcdefgh", maps, FUTURE)}
    names = ["previous token", "same token", "first token", "many tokens"]
    assert found == dict(zip(names, [(0, 0), (0, 1), (1, 0), (1, 1)], strict=True))
    assert all(f["query"] >= 3 for f in notable_heads("abcdefgh", maps, FUTURE))
    third = head(8, lambda i: i // 3)[None, None]  # somewhere else: nothing is offered
    assert notable_heads("abcdefgh", third, FUTURE) == []
    assert notable_heads("a", np.ones((1, 1, 1, 1), np.float32), np.zeros((1, 1), bool)) == []


def test_a_text_that_repeats_shows_the_head_that_looks_at_what_followed_last_time():
    text = "abcdabcd"
    assert induction_targets(text).tolist() == [-1, -1, -1, -1, 1, 2, 3, 4]
    after_itself = induction_targets("abxaay").tolist()
    assert after_itself == [-1, -1, -1, 1, -1, -1]
    assert induction_targets("abab").tolist() == [-1, -1, -1, -1]  # what followed is the one before
    induction = head(8, lambda i: max(0, i - 3))
    maps = np.stack([head(8, lambda i: i), induction])[None]
    name = "induction"
    (found,) = [one for one in notable_heads(text, maps, FUTURE) if one["name"] == name]
    assert found["head"] == 1 and 4 <= found["query"] < 8
    too_few = notable_heads("abcdefab", maps, FUTURE)  # two repeats
    names = [one["name"] for one in too_few]
    assert names == ["same token"]
    blind = FUTURE | np.eye(8, k=-3, dtype=bool)  # where nobody may look there, nobody does
    assert [one["name"] for one in notable_heads(text, maps, blind)] == ["same token"]


# --- what it refuses ------------------------------------------------------------------------------


def spoil(where, value):
    maps, _ = weights_and_scores()
    maps[where] = value
    return maps


SCORES = weights_and_scores()[1]
AFTER_SOFTMAX = SCORES.softmax(-1).tril()


@pytest.mark.parametrize(("tokens", "maps", "message"), [
    ([], np.zeros((1, 1, 0, 0)), "no tokens"),
    ("abcd", weights_and_scores()[0], r"shape \(2, 3, 5, 5\), but there are 4 tokens"),
    ("abcde", np.ones((5, 5)) / 5, r"shape \(5, 5\).*maps\[None\]"),
    ("abcde", np.ones((1, 1, 1, 5, 5)) / 5, r"shape \(1, 1, 1, 5, 5\)"),
    ("abcde", np.ones((1, 4, 5)) / 5, "5 queries × 5 keys"),
    ("abcde", np.ones((0, 5, 5)), "at least one layer and head"),
    ([1, 2, 3, 4, 5], weights_and_scores()[0], "token 0 is 1: decode"),
    ("abcde", spoil((1, 2, 3, 0), np.nan), "nan in layer 1, head 2, row 3 .*every key is masked"),
    ("abcde", spoil((0, 1, 2, 0), np.inf), "inf in layer 0, head 1, row 2"),
    ("abcde", spoil((0, 1, 2, 1), -0.25), "negative weight -0.25 in layer 0, head 1, row 2"),
    ("abcde", SCORES, "negative weight .* are these scores"),
    ("abcde", spoil((1, 0, 4), 0.5), "layer 1, head 0, row 4 of maps sums to 2.500, not 1"),
    ("abcde", SCORES.softmax(-2), "its columns sum to 1: softmax ran over the queries"),
    ("abcde", AFTER_SOFTMAX, "was the mask applied after softmax"),
])  # fmt: skip
def test_bad_maps_say_what_is_wrong(tokens, maps, message):
    with pytest.raises(ValueError, match=message):
        AttentionExplorer(tokens, maps)


@pytest.mark.parametrize(("scores", "message"), [
    (SCORES[:1], r"scores has shape \(1, 3, 5, 5\), but maps has \(2, 3, 5, 5\)"),
    (SCORES.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf), "before the mask"),
    (SCORES * 4, "do not belong together.*after scaling"),
])  # fmt: skip
def test_bad_scores_say_what_is_wrong(scores, message):
    with pytest.raises(ValueError, match=message):
        AttentionExplorer("abcde", weights_and_scores()[0], scores)


@pytest.mark.parametrize(("name", "value", "message"), [
    ("layer", 2, "layer is a layer from 0 to 1, not 2"),
    ("query", 5, "query is a query from -1 to 4, not 5"),
    ("view", "pie", "pie"),
    ("stage", "mask", "needs scores"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        explorer(with_scores=False, **{name: value})


@pytest.mark.parametrize("settings", [{}, {"average": True, "layer": 1}, {"query": -1}])
def test_it_says_what_it_shows_and_shows_it_still(settings):
    made = explorer(**settings)
    assert repr(made) == "AttentionExplorer(layers=2, heads=3, tokens=5)"
    assert made.picture().png().startswith(PNG)


def test_the_still_picture_survives_any_token():
    tokens = [
        "<img src=x onerror=alert(1)>",
        "$\\frac$",
        " \n\t",
        "",
        "日本",
        "👩‍👩‍👧",
        "\x00\x1b",
        "a" * 99,
    ]
    maps, _ = weights_and_scores(1, 2, len(tokens))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing glyph would warn in the learner's notebook
        assert AttentionExplorer(tokens, maps).picture().png().startswith(PNG)
