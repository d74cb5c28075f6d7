"""helpers.sampling: exact probabilities, and writing with and without the cache."""

import itertools
import math
from types import GeneratorType

import pytest
import torch
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import nn

from helpers.gpt import GPT, GPTConfig
from helpers.rewards import sample_completions
from helpers.sampling import apply_repetition_penalty, generate, next_token_probabilities, stream

INF = math.inf


def probabilities(logits, **settings):
    return next_token_probabilities(torch.tensor(logits), **settings)


def near(a, b, tolerance=1e-6):
    b = torch.as_tensor(b, dtype=a.dtype)
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=tolerance)


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


def test_rows_are_on_their_own():
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0))
    settings = {"temperature": 0.7, "top_k": 4, "top_p": 0.8}
    whole = next_token_probabilities(logits, **settings)
    for i, j in itertools.product(range(2), range(3)):
        assert near(next_token_probabilities(logits[i, j], **settings), whole[i, j])
    before = logits.clone()
    next_token_probabilities(logits, **settings)
    assert torch.equal(logits, before)  # the caller's logits are not changed


def test_ties_are_cut_in_the_order_of_the_ids():
    assert near(probabilities([1.0] * 4, top_k=3), [1 / 3, 1 / 3, 1 / 3, 0])
    assert near(probabilities([1.0] * 4, top_p=0.5), [0.5, 0.5, 0, 0])
    assert near(probabilities([0.0, 2.0, 2.0], temperature=0), [0, 1, 0])


def test_top_p_of_one_keeps_every_token_of_a_large_vocabulary():
    """A sum of many small numbers reaches 1 too early."""
    logits = torch.randn(50_000, generator=torch.Generator().manual_seed(0))
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_the_type_of_the_logits_stays(dtype):
    logits = torch.tensor(HALVES, dtype=dtype)
    for settings in ({}, {"temperature": 0}, {"top_k": 2}, {"top_p": 0.7}):
        assert next_token_probabilities(logits, **settings).dtype == dtype
    assert near(next_token_probabilities(logits), P, 1e-2)


# --- next_token_probabilities: laws ---------------------------------------------------------------

# Two logits are equal or differ clearly: what rounding makes of a difference of 1e-50 is no law.
logit = st.one_of(
    st.integers(-30_000, 30_000).map(lambda n: n / 1000), st.sampled_from([-INF, 0.0])
)
rows = st.lists(logit, min_size=1, max_size=12).filter(lambda row: max(row) > -INF)
temperatures = st.one_of(st.just(1.0), st.floats(0.05, 20))
top_ks = st.one_of(st.none(), st.integers(1, 14))
top_ps = st.one_of(st.none(), st.floats(0.01, 1))
MANY = hypothesis_settings(max_examples=150)


def double(row, **settings):
    return next_token_probabilities(torch.tensor(row, dtype=torch.float64), **settings)


@MANY
@given(row=rows, temperature=st.one_of(st.just(0), temperatures), top_k=top_ks, top_p=top_ps)
def test_they_sum_to_one_and_keep_the_order(row, temperature, top_k, top_p):
    p = double(row, temperature=temperature, top_k=top_k, top_p=top_p)
    assert (p >= 0).all() and p.sum().item() == pytest.approx(1)
    assert p.isfinite().all() and p[row.index(max(row))] > 0
    assert (p > 0).sum() <= (top_k or 14)
    for (a, p_a), (b, p_b) in itertools.pairwise(sorted(zip(row, p.tolist(), strict=True))):
        assert a == b or p_a <= p_b + 1e-12
    assert all(p_i == 0 for x, p_i in zip(row, p, strict=True) if x == -INF)


@MANY
@given(row=rows, temperature=temperatures, top_k=top_ks, top_p=top_ps)
def test_the_order_is_temperature_then_top_k_then_top_p(row, temperature, top_k, top_p):
    at_once = double(row, temperature=temperature, top_k=top_k, top_p=top_p)
    warm = double(row, temperature=temperature)
    few = double(warm.log().tolist(), top_k=top_k)
    one_by_one = double(few.log().tolist(), top_p=top_p)
    # A token on the edge may fall to either side, through rounding.
    _assume_clear(few, top_p)
    assert near(at_once, one_by_one, 1e-9)


def _assume_clear(p, top_p):
    sums = p.sort(descending=True).values.cumsum(0)
    assume(top_p is None or (sums - top_p).abs().min() > 1e-9)


@MANY
@given(row=rows, top_p=st.floats(0.01, 0.999))
def test_the_kept_set_is_the_smallest_that_reaches_p(row, top_p):
    all_of_it, p = double(row), double(row, top_p=top_p)
    _assume_clear(all_of_it, top_p)
    kept = p > 0
    assert all_of_it[kept].sum() >= top_p
    n = int(kept.sum())
    assert n == 1 or all_of_it.sort(descending=True).values[: n - 1].sum() < top_p
    assert near(p[kept], all_of_it[kept] / all_of_it[kept].sum(), 1e-9)


@MANY
@given(row=rows, shift=st.floats(-100, 100), temperature=temperatures, top_k=top_ks)
def test_a_constant_added_to_all_logits_changes_nothing(row, shift, temperature, top_k):
    settings = {"temperature": temperature, "top_k": top_k}
    assert near(double([x + shift for x in row], **settings), double(row, **settings), 1e-9)


@MANY
@given(row=rows)
def test_a_low_temperature_comes_near_the_greedy_choice(row):
    assume(row.count(max(row)) == 1)
    assert near(double(row, temperature=1e-5), double(row, temperature=0))
    assert near(double(row, top_k=1), double(row, temperature=0))


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
    assert torch.equal(
        apply_repetition_penalty(logits, torch.tensor([[0, 1], [2, 3]]), 1.0), logits
    )
    before = next_token_probabilities(logits[:, :3])
    after = next_token_probabilities(
        apply_repetition_penalty(logits[:, :3], torch.tensor([[1], [0]]), 1.3)
    )
    assert after[0, 1] < before[0, 1] and after[1, 0] < before[1, 0]


def test_a_penalty_ends_a_loop():
    heavy = Table(torch.tensor([[1.0, 2.0, 1.5], [2.0, 1.0, 1.5], [1.0, 1.5, 1.0]]))
    settings = {"temperature": 0, "repetition_penalty": 1.5}
    assert generate(heavy, torch.tensor([[0]]), 3, temperature=0).tolist() == [[0, 1, 0, 1]]
    assert generate(heavy, torch.tensor([[0]]), 2, **settings).tolist() == [[0, 1, 2]]


# --- models to write with -------------------------------------------------------------------------

V, WINDOW = 9, 6


def seeded(seed=0, **settings):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT(GPTConfig(V, WINDOW, n_layer=2, n_head=4, n_embd=16, **settings))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.3 * torch.randn(p.shape))
    return model


def prompt(B=2, T=3, seed=0):
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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


def test_two_tokens_follow_the_chain_rule():
    logits = torch.randn(3, 3, generator=generator(1))
    texts = generate(Table(logits), torch.zeros(20_000, 1, dtype=torch.int64), 2,
                     generator=generator(3))  # fmt: skip
    p = logits.softmax(-1)
    statistic, limit = chi_square(
        torch.bincount(3 * texts[:, 1] + texts[:, 2], minlength=9), (p[0][:, None] * p).flatten()
    )
    assert statistic < limit


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


@pytest.mark.parametrize("position", ["LearnedPosition", "SinusoidalPosition", "Rotary", None])
@pytest.mark.parametrize("n_kv_head", [None, 1, 2])
def test_the_cached_logits_are_those_without_a_cache_at_every_length(
    position, n_kv_head, monkeypatch
):
    """Up to the window and past it, for all that can be kept: the numbers, not only the draws."""
    model = seeded(position=position, n_kv_head=n_kv_head, qk_norm=n_kv_head == 2)
    seen = []

    def watch(logits, **settings):
        seen.append(logits)
        return next_token_probabilities(logits, **settings)

    monkeypatch.setattr("helpers.sampling.next_token_probabilities", watch)
    for keep in (None, 1, 2, 5, 6):
        runs = []
        for cached in (True, False):
            seen.clear()
            text = generate(
                model,
                prompt(T=2),
                15,
                context_after_crop=keep,
                cached=cached,
                generator=generator(7),
            )
            runs.append((text, torch.stack([x for x in seen if x.shape == (2, V)])))
        (a, with_cache), (b, without) = runs
        assert with_cache.shape == (15, 2, V)
        assert near(with_cache, without, 1e-4), keep
        assert torch.equal(a, b) and a.shape == (2, 17)
        assert torch.equal(a, reference(model, prompt(T=2), 15, keep or WINDOW)), keep


@pytest.mark.parametrize("T", [1, 5, 6, 7, 20])
@pytest.mark.parametrize("cached", [True, False])
def test_prompts_of_every_length(T, cached):
    model = seeded()
    settings = {"temperature": 0}
    for keep in (None, 3):
        got = generate(model, prompt(T=T), 9, context_after_crop=keep, cached=cached, **settings)
        assert torch.equal(got, reference(model, prompt(T=T), 9, keep or WINDOW, **settings))
        assert torch.equal(got[:, :T], prompt(T=T))


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


class OwnLayer(nn.Module):
    """Attention without parameters, and the cache of a chapter: keys that are also the values."""

    def __init__(self):
        super().__init__()
        self.keys = None

    def __len__(self):
        return 0 if self.keys is None else self.keys.shape[1]

    def append(self, x):
        self.keys = x if self.keys is None else torch.cat([self.keys, x], dim=1)
        return self.keys


class OwnGPT(nn.Module):
    """No GPT of helpers, but called as that of the chapter on the cache."""

    def __init__(self):
        super().__init__()
        self.table, self.reads = nn.Embedding(V, V), []

    def empty_cache(self):
        return [OwnLayer()]

    def forward(self, ids, cache=None, padding=None):
        self.reads.append(ids.numel())
        cache = self.empty_cache() if cache is None else cache
        S, x = len(cache[0]), self.table(ids)
        keys = cache[0].append(x)
        column = torch.arange(keys.shape[1])
        mask = column <= S + torch.arange(ids.shape[1])[:, None]
        if padding is not None:
            itself = column == S + torch.arange(ids.shape[1])[:, None]
            mask = mask & (column >= padding[:, None, None]) | itself
        return nn.functional.scaled_dot_product_attention(x, keys, keys, mask)


@pytest.mark.parametrize("ids", [prompt(T=3), [[1, 2, 3], [4]]], ids=["tensor", "list"])
def test_a_model_of_ones_own_with_a_cache_is_called_with_it(ids):
    torch.manual_seed(0)
    model = OwnGPT()
    with_cache = generate(model, ids, 7, generator=generator(1))
    assert model.reads == [6] + 6 * [2]
    without = generate(model, ids, 7, generator=generator(1), cached=False)
    assert all(map(torch.equal, with_cache, without))
    alone = [generate(model, [text], 7, temperature=0)[0] for text in ids]
    assert all(map(torch.equal, generate(model, ids, 7, temperature=0), alone))


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


def test_completions_are_samples_of_each_prompt():
    ids = prompt(T=3)
    want = sample_completions(seeded(), ids.repeat_interleave(4, 0), 3, 0, generator=generator())
    got = sample_completions(seeded(), ids, 3, 0, num_samples=4, generator=generator())
    assert all(map(torch.equal, got, want))


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


def test_a_stream_is_what_generate_writes():
    model = seeded()
    tokens = list(stream(model, prompt(), 9, generator=generator(5)))
    assert all(new.shape == (2,) and new.dtype == torch.int64 for new in tokens)
    text = generate(model, prompt(), 9, generator=generator(5))
    assert torch.equal(torch.stack(tokens, dim=1), text[:, 3:])


def test_the_generator_decides():
    first, again, other = (
        generate(seeded(), prompt(), 20, generator=generator(s)) for s in (1, 1, 2)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)
    torch.manual_seed(3)
    loose = generate(seeded(), prompt(), 20)
    torch.manual_seed(3)
    assert torch.equal(generate(seeded(), prompt(), 20), loose)


def test_writing_with_a_generator_leaves_torchs_own_alone():
    before = torch.get_rng_state()
    generate(seeded_once := seeded(), prompt(), 5, generator=generator())
    assert torch.equal(torch.get_rng_state(), before) and seeded_once.training


@pytest.mark.parametrize("stop", [{2}, (2,), torch.tensor([2]), iter([2])])
def test_stops_come_in_any_collection(stop):
    model = Table(torch.tensor([[0.0, 0, 9], [0, 0, 9], [0, 9, 0]]))
    assert generate(model, torch.tensor([[0]]), 5, stop=stop, temperature=0).tolist() == [[0, 2]]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("end", ["exhausted", "closed", "abandoned", "error"])
def test_the_mode_comes_back_however_it_ends(training, end):
    model = Table(torch.zeros(3, 3)).train(training)
    ids = torch.tensor([[0]])
    if end == "exhausted":
        assert len(list(stream(model, ids, 3))) == 3
    elif end == "closed":
        tokens = stream(model, ids, 3)
        next(tokens)
        tokens.close()
    elif end == "abandoned":
        for _ in stream(model, ids, 3):
            break
    else:
        with torch.no_grad():
            model.table[0, 0] = math.nan
        with pytest.raises(ValueError, match="NaN"):
            list(stream(model, ids, 3))
    assert model.training is training
    assert {(mode, grad) for _, mode, grad in model.reads} == {(False, False)}


def test_gradients_are_on_between_two_tokens():
    for _ in stream(Table(torch.zeros(3, 3)), torch.tensor([[0]]), 2):
        assert torch.is_grad_enabled()


def test_dropout_is_off():
    model = seeded(dropout=0.5)
    texts = [generate(model, prompt(), 8, temperature=0) for _ in range(2)]
    assert torch.equal(*texts)


def test_no_tokens_is_the_prompt():
    assert torch.equal(generate(seeded(), prompt(), 0), prompt())


# --- stop tokens ----------------------------------------------------------------------------------

NEXT = torch.eye(5).roll(1, 1) * 50  # 0 → 1 → 2 → 3 → 4 → 0


def test_each_text_ends_by_itself_and_the_stream_with_the_last():
    model = Table(NEXT)
    texts = generate(model, torch.tensor([[0], [2], [4]]), 20, stop=[3])
    assert texts.tolist() == [[0, 1, 2, 3, 3], [2, 3, 3, 3, 3], [4, 0, 1, 2, 3]]
    assert len(model.reads) == 4


def test_several_stops_and_one_in_the_prompt():
    texts = generate(Table(NEXT), torch.tensor([[3], [1]]), 20, stop={0, 3})
    assert texts.tolist() == [[3, 4, 0], [1, 2, 3]]  # a stop in the prompt ends nothing
    assert generate(Table(NEXT), torch.tensor([[0]]), 2, stop=[4]).tolist() == [[0, 1, 2]]


def test_a_text_that_has_ended_does_not_move_the_others():
    model, ids = seeded(), prompt(B=3, T=1)
    free = generate(model, ids, 30, generator=generator(4))
    stopped = generate(model, ids, 30, stop=[0], generator=generator(4))
    assert (stopped == 0).any()
    for with_stop, without in zip(stopped, free, strict=True):
        ends = (without[1:] == 0).nonzero().flatten()
        end = 2 + int(ends[0]) if len(ends) else 31
        end = min(end, len(with_stop))
        assert torch.equal(with_stop[:end], without[:end])
        assert (with_stop[end:] == 0).all()


# --- other models ---------------------------------------------------------------------------------


def test_a_model_without_a_window_reads_the_whole_text():
    model = Table(NEXT)
    generate(model, torch.tensor([[0]]), 10)
    assert [T for T, _, _ in model.reads] == list(range(1, 11))


def test_a_model_with_a_window_that_is_no_gpt_reads_no_more():
    model = Table(NEXT)
    model.block_size = 4
    generate(model, torch.tensor([[0]]), 7, context_after_crop=2)
    assert [T for T, _, _ in model.reads] == [1, 2, 3, 4, 2, 3, 4]


def test_the_likeliest_token_needs_no_draw():
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, 8, n_layer=1, n_head=1, n_embd=4))
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    settings = {"temperature": 0, "generator": generator}
    text = generate(model, torch.tensor([[1, 2], [3, 4]]), 5, **settings)
    assert torch.equal(generator.get_state(), before)
    for t in range(2, 7):
        assert torch.equal(model(text[:, :t])[:, -1].argmax(-1), text[:, t])
