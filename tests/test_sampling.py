"""helpers.sampling: exact probabilities, and writing with and without the cache."""

import math
from types import GeneratorType

import pytest
import torch
from conftest import generator, near, visible
from torch import nn

from helpers.gpt import GPT, GPTConfig
from helpers.sampling import apply_repetition_penalty, generate, next_token_probabilities, stream

INF = math.inf


def probabilities(logits, **settings):
    return next_token_probabilities(torch.tensor(logits), **settings)


# --- next_token_probabilities: worked by hand -----------------------------------------------------

# exp of these: 8, 4, 2, 1, 1, that is 1/2, 1/4, 1/8, 1/16, 1/16
HALVES = [math.log(n) for n in (2, 8, 1, 4, 1)]
P = torch.tensor([2, 8, 1, 4, 1]) / 16
THREE = torch.tensor([2, 8, 0, 4, 0]).sqrt()


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ({}, P),
        ({"temperature": 0.5}, P**2 / (P**2).sum()),
        ({"temperature": 2.0}, P.sqrt() / P.sqrt().sum()),
        ({"temperature": 0}, [0, 1, 0, 0, 0]),
        ({"temperature": 1e-300}, [0, 1, 0, 0, 0]),
        ({"temperature": 1e30}, [0.2] * 5),
        ({"top_k": 1}, [0, 1, 0, 0, 0]),
        ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3, 0]),
        ({"top_k": 4}, [2 / 15, 8 / 15, 1 / 15, 4 / 15, 0]),  # the first of two that are equal
        ({"top_k": 5}, P),
        ({"top_k": 99}, P),
        ({"top_p": 1e-9}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.45}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.55}, [0, 2 / 3, 0, 1 / 3, 0]),
        ({"top_p": 0.8}, [2 / 14, 8 / 14, 0, 4 / 14, 0]),
        ({"top_p": 1.0}, P),
        # top_k renormalises first: of 2/3 and 1/3, the first reaches 0.6, of 1/2 and 1/4 not.
        ({"top_k": 2, "top_p": 0.6}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.6}, [0, 2 / 3, 0, 1 / 3, 0]),
        # Temperature comes before top_p: it moves more than 0.7 to the first token.
        ({"temperature": 0.5, "top_p": 0.7}, [0, 1, 0, 0, 0]),
        ({"temperature": 0, "top_k": 3, "top_p": 0.9}, [0, 1, 0, 0, 0]),
        ({"min_p": 0}, P),
        ({"min_p": 0.2}, [2 / 14, 8 / 14, 0, 4 / 14, 0]),  # 1/8 is a quarter of 1/2
        ({"min_p": 0.3}, [0, 2 / 3, 0, 1 / 3, 0]),
        ({"min_p": 1}, [0, 1, 0, 0, 0]),
        # Twice as hot, a quarter of the likeliest becomes a half of it, and stays.
        ({"temperature": 2.0, "min_p": 0.4}, THREE / THREE.sum()),
        ({"top_k": 2, "min_p": 0.2}, [0, 2 / 3, 0, 1 / 3, 0]),
    ],
)
def test_by_hand(settings, want):
    assert near(probabilities(HALVES, **settings), want)


def test_ties_are_cut_in_the_order_of_the_ids():
    assert near(probabilities([1.0] * 4, top_k=3), [1 / 3, 1 / 3, 1 / 3, 0])
    assert near(probabilities([1.0] * 4, top_p=0.5), [0.5, 0.5, 0, 0])
    assert near(probabilities([0.0, 2.0, 2.0], temperature=0), [0, 1, 0])


def test_top_p_of_one_keeps_every_token_of_a_large_vocabulary():
    """A sum of many small numbers reaches 1 too early."""
    logits = torch.randn(50_000, generator=generator(0))
    assert (next_token_probabilities(logits, top_p=1.0) > 0).all()


@pytest.mark.parametrize(
    ("logits", "want"),
    [
        ([1e4, 0.0, -1e4], [1, 0, 0]),
        ([-1e4, -1e4, -1e4], [1 / 3] * 3),
        ([3e38, -3e38, 0.0], [1, 0, 0]),
        ([1.0, -INF, 1.0], [0.5, 0, 0.5]),
        ([-INF, -INF, 2.0], [0, 0, 1]),
        ([INF, 1.0, -INF], [1, 0, 0]),
        ([INF, 1.0, INF], [0.5, 0, 0.5]),
    ],
)
def test_extreme_logits_make_no_nan(logits, want):
    for settings in ({}, {"top_k": 3}, {"top_p": 0.999}, {"top_k": 3, "top_p": 1.0}):
        assert near(probabilities(logits, **settings), want), settings
    for temperature in (1e-30, 1e-300, 1e-3):
        assert near(probabilities(logits, temperature=temperature), want)
    greedy = probabilities(logits, temperature=0)
    assert greedy.sum() == 1 and greedy[logits.index(max(logits))] == 1
    hot = probabilities(logits, temperature=1e30)
    assert near(hot.sum(), 1.0) and (hot[torch.tensor(logits) == -INF] == 0).all()


OUTSIDE = {"temperature": (-0.1, math.nan), "top_k": (0, -1), "top_p": (0, 90), "min_p": (-1, 2)}


@pytest.mark.parametrize("settings", [{name: x} for name, xs in OUTSIDE.items() for x in xs])
def test_settings_that_would_draw_from_something_else_are_refused(settings):
    with pytest.raises(ValueError, match="temperature is at least 0"):
        probabilities(HALVES, **settings)


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("row", [[math.nan, 0.0], [-INF, -INF], [INF, math.nan]])
def test_logits_without_a_choice_are_refused(row, temperature):
    with pytest.raises(ValueError, match=r"NaN, or a row of −∞"):
        probabilities([[0.0, 1.0], row], temperature=temperature)


# --- the penalty ----------------------------------------------------------------------------------


def test_a_penalty_makes_what_was_written_less_likely_on_both_sides_of_zero():
    logits = torch.tensor([[2.0, -1.0, 0.5, -INF], [2.0, -1.0, 0.5, 3.0]])
    got = apply_repetition_penalty(logits, torch.tensor([[0, 1, 1, 3], [2, 2, 2, 2]]), 2.0)
    assert torch.equal(got, torch.tensor([[1.0, -2.0, 0.5, -INF], [2.0, -1.0, 0.25, 3.0]]))


def test_a_penalty_ends_a_loop():
    heavy = Table(torch.tensor([[1.0, 2.0, 1.5], [2.0, 1.0, 1.5], [1.0, 1.5, 1.0]]))
    settings = {"temperature": 0, "repetition_penalty": 1.5}
    assert generate(heavy, torch.tensor([[0]]), 3, temperature=0).tolist() == [[0, 1, 0, 1]]
    assert generate(heavy, torch.tensor([[0]]), 2, **settings).tolist() == [[0, 1, 2]]


# --- models to write with -------------------------------------------------------------------------

V, WINDOW = 9, 6


def seeded(**settings):
    config = GPTConfig(V, WINDOW, n_layer=2, n_head=4, n_embd=16, **settings)
    return visible(lambda: GPT(config), by=0.3)


def prompt(B=2, T=3, seed=0):
    return torch.randint(V, (B, T), generator=generator(seed))


class Table(nn.Module):
    """No GPT: logits (B, T, V) from a table, for texts of any length, that keeps a log."""

    def __init__(self, logits):
        super().__init__()
        self.table = nn.Parameter(torch.as_tensor(logits, dtype=torch.float32))
        self.reads = []

    def forward(self, ids):
        self.reads.append((ids.shape[1], self.training, torch.is_grad_enabled()))
        return self.table[ids]


def chi_square(counts, p):
    """The statistic, and what it exceeds once in about 10,000 fair draws (Wilson–Hilferty)."""
    want = p * counts.sum()
    statistic = ((counts - want)[want > 0] ** 2 / want[want > 0]).sum().item()
    freedom = int((want > 0).sum()) - 1
    limit = freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3
    return statistic, limit


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.7}, {"top_k": 4}, {"top_p": 0.9}, {"temperature": 3.0}]
)
def test_draws_follow_the_probabilities(settings):
    logits = torch.randn(V, V, generator=generator(1))
    model = Table(logits)
    texts = torch.full((20_000, 1), 4)
    drawn = generate(model, texts, 1, generator=generator(2), **settings)[:, 1]
    p = next_token_probabilities(logits[4], **settings)
    counts = torch.bincount(drawn, minlength=V)
    assert (counts[p == 0] == 0).all()
    statistic, limit = chi_square(counts, p)
    assert statistic < limit
    assert chi_square(counts, torch.full((V,), 1 / V))[0] > limit  # it would notice


# --- the cache ------------------------------------------------------------------------------------


def reference(model, ids, n, keep, **settings):
    """The same text without a cache, the window worked out by hand."""
    start, source = 0, generator(7)
    for _ in range(n):
        if ids.shape[1] - start > WINDOW:
            start = ids.shape[1] - keep
        logits = model(ids[:, start:])[:, -1]
        p = next_token_probabilities(logits, **settings)
        ids = torch.cat((ids, torch.multinomial(p, 1, generator=source)), dim=1)
    return ids


@pytest.mark.parametrize(
    ("position", "n_kv_head"),
    [("LearnedPosition", None), ("SinusoidalPosition", 1), ("Rotary", 2), (None, None)],
)
def test_the_cached_logits_are_those_without_a_cache_at_every_length(
    position, n_kv_head, monkeypatch
):
    """Prompts of every length, up to the window and past it, for all that can be kept: the numbers,
    not only the draws."""
    model = seeded(position=position, n_kv_head=n_kv_head, qk_norm=n_kv_head == 2)
    seen = []

    def watch(logits, **settings):
        seen.append(logits)
        return next_token_probabilities(logits, **settings)

    monkeypatch.setattr("helpers.sampling.next_token_probabilities", watch)
    for keep, T in ((None, 2), (1, 1), (2, 6), (5, 7), (6, 20)):
        runs = []
        for cached in (True, False):
            seen.clear()
            settings = {"context_after_crop": keep, "cached": cached, "generator": generator(7)}
            text = generate(model, prompt(T=T), 15, **settings)
            runs.append((text, torch.stack([x for x in seen if x.shape == (2, V)])))
        (a, with_cache), (b, without) = runs
        assert with_cache.shape == (15, 2, V)
        assert near(with_cache, without, 1e-4), keep
        assert torch.equal(a, b)
        assert torch.equal(a, reference(model, prompt(T=T), 15, keep or WINDOW)), keep


@pytest.mark.parametrize(
    ("position", "convolution", "settings"),
    [
        ("LearnedPosition", None, {}),
        ("SinusoidalPosition", None, {"repetition_penalty": 1.4}),
        ("Rotary", 3, {}),
        ("Rotary", 3, {"cached": False}),
        (None, None, {}),
    ],
)
def test_prompts_of_different_lengths_continue_as_each_alone(position, convolution, settings):
    """Padding is seen by no token, also when the longer texts have outgrown the window."""
    model = seeded(position=position, convolution=convolution)
    prompts = [prompt(T=T)[0] for T in (3, 1, 5, 9)]
    settings = {"temperature": 0, "stop": [4], **settings}
    together = generate(model, [prompts[0], prompts[1].tolist(), *prompts[2:]], 9, **settings)
    alone = [generate(model, text[None], 9, **settings)[0] for text in prompts]
    assert all(map(torch.equal, together, alone))
    assert len({len(text) for text in alone}) > 2  # some have stopped before the last token


def test_a_list_of_prompts_gives_a_list_of_texts():
    model = seeded()
    assert [*map(torch.Tensor.tolist, generate(model, [[1, 2], [3]], 0))] == [[1, 2], [3]]
    same = generate(model, [*prompt(T=3)], 5, generator=generator(1))
    assert torch.equal(torch.stack(same), generate(model, prompt(T=3), 5, generator=generator(1)))
    assert generate(Table(NEXT), [[0], [1]], 1, temperature=0)[1].tolist() == [1, 2]
    assert generate(Table(NEXT), [[0], [1]], 9, stop=iter([2]), temperature=0)[0][-1] == 2


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("settings", [{}, {"position": "Rotary", "convolution": 3}])
def test_samples_of_a_prompt_are_those_of_the_prompt_repeated(settings, padded, cached):
    """Also past the window; but each prompt is processed once."""
    model, reads = seeded(**settings), []
    model.token.register_forward_hook(lambda _, inputs, out: reads.append(inputs[0].numel()))
    ids = [[1, 2, 3, 4], [5]] if padded else prompt(T=4)
    repeated = [text for text in ids for _ in range(3)] if padded else ids.repeat_interleave(3, 0)
    more = {"cached": cached, "stop": [0], "repetition_penalty": 1.2}
    want = generate(model, repeated, 9, generator=generator(2), **more)
    processed = [*reads]
    reads.clear()
    got = generate(model, ids, 9, generator=generator(2), num_samples=3, **more)
    assert len(got) == 6 and all(map(torch.equal, got, want))
    assert reads == [8, *processed[1:]] and processed[0] == 24
    assert len({tuple(text.tolist()) for text in got}) > 2


def test_the_cache_saves_reading():
    reads = []
    model = seeded()
    model.token.register_forward_hook(lambda _, inputs, out: reads.append(inputs[0].shape[1]))
    list(stream(model, prompt(T=3), 8, context_after_crop=4))
    assert reads == [3, 1, 1, 1, 4, 1, 1, 4]
    reads.clear()
    list(stream(model, prompt(T=3), 8))
    assert reads == [3, 1, 1, 1, 6, 6, 6, 6]
    reads.clear()
    list(stream(model, prompt(T=3), 5, cached=False))
    assert reads == [3, 4, 5, 6, 6]


# --- a stream -------------------------------------------------------------------------------------


def test_a_stream_yields_each_token_before_it_reads_the_next():
    model = Table(torch.eye(3).roll(1, 1) * 50)  # 0 → 1 → 2 → 0
    tokens = stream(model, torch.tensor([[0], [1]]), 4)
    assert isinstance(tokens, GeneratorType) and model.reads == []
    for n, want in enumerate([[1, 2], [2, 0], [0, 1], [1, 2]], start=1):
        assert next(tokens).tolist() == want
        assert len(model.reads) == n
    assert next(tokens, None) is None and len(model.reads) == 4


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_comes_back_however_it_ends(training):
    model = Table(torch.zeros(3, 3)).train(training)
    ids = torch.tensor([[0]])
    for _ in stream(model, ids, 3):
        assert torch.is_grad_enabled()  # between two tokens
        break
    assert model.training is training
    model.table.data[0, 0] = math.nan
    with pytest.raises(ValueError, match="NaN"):
        list(stream(model, ids, 3))
    assert model.training is training
    assert {(mode, grad) for _, mode, grad in model.reads} == {(False, False)}


# --- stop tokens ----------------------------------------------------------------------------------

NEXT = torch.eye(5).roll(1, 1) * 50  # 0 → 1 → 2 → 3 → 4 → 0


def test_each_text_ends_by_itself_and_the_stream_with_the_last():
    model = Table(NEXT)
    texts = generate(model, torch.tensor([[0], [2], [4]]), 20, stop=[3])
    assert texts.tolist() == [[0, 1, 2, 3, 3], [2, 3, 3, 3, 3], [4, 0, 1, 2, 3]]
    assert len(model.reads) == 4
    texts = generate(Table(NEXT), torch.tensor([[3], [1]]), 20, stop={0, 3})
    assert texts.tolist() == [[3, 4, 0], [1, 2, 3]]  # a stop in the prompt ends nothing
    assert generate(Table(NEXT), torch.tensor([[0]]), 2, stop=[4]).tolist() == [[0, 1, 2]]


# --- other models ---------------------------------------------------------------------------------


def test_a_model_with_a_window_that_is_no_gpt_reads_no_more():
    model = Table(NEXT)
    model.block_size = 4
    generate(model, torch.tensor([[0]]), 7, context_after_crop=2)
    assert [T for T, _, _ in model.reads] == [1, 2, 3, 4, 2, 3, 4]
