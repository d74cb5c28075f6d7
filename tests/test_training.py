"""Batches, the loss, its estimate and the training loop, on models small enough to work out."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.training import estimate_loss, get_batch, language_model_loss, train


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Table(nn.Module):
    """Logits from a table: what comes next depends on the last token alone."""

    def __init__(self, V=5, noise=0.0):
        super().__init__()
        self.table = nn.Embedding(V, V)
        self.noise = nn.Dropout(noise)
        self.modes = []
        with torch.no_grad():
            self.table.weight.copy_(torch.randn(V, V, generator=generator()))

    def forward(self, ids):
        self.modes.append((self.training, torch.is_grad_enabled()))
        return self.noise(self.table(ids))


def stream(N, V=5, seed=0):
    return torch.randint(V, (N,), generator=generator(seed))


# --- get_batch ------------------------------------------------------------------------------------


@given(st.integers(2, 60), st.data())
def test_y_is_x_one_step_later(N, draw):
    T = draw.draw(st.integers(1, N - 1))
    B = draw.draw(st.integers(1, 5))
    x, y = get_batch(torch.arange(N) * 10, T, B, generator(N))
    assert x.shape == y.shape == (B, T)
    assert x.dtype == y.dtype == torch.int64
    assert (y == x + 10).all()
    assert (x[:, 1:] == y[:, :-1]).all()


def test_every_start_occurs_and_none_beyond_the_end():
    x, y = get_batch(torch.arange(10), 4, 2000, generator())
    assert set(x[:, 0].tolist()) == set(range(6))
    assert y.max() == 9


def test_the_generator_decides():
    data = stream(1000)
    first, again, other = (get_batch(data, 8, 4, generator(s))[0] for s in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    torch.manual_seed(3)
    loose = get_batch(data, 8, 4)[0]
    torch.manual_seed(3)
    assert torch.equal(loose, get_batch(data, 8, 4)[0])


def test_a_batch_is_a_copy():
    data = stream(20)
    before = data.clone()
    x, y = get_batch(data, 4, 2, generator())
    x.zero_(), y.zero_()
    assert torch.equal(data, before)


BAD_STREAMS = [
    ([1, 2, 3], TypeError, "not a list"),
    ("text", TypeError, "not a str"),
    (torch.arange(6).view(2, 3), ValueError, r"shape \(N,\), but has shape \(2, 3\)"),
    (torch.zeros(10), TypeError, r"torch.float32. Use data.long\(\)"),
    (torch.zeros(10, dtype=torch.uint8), TypeError, "torch.uint8"),
    (torch.arange(4), ValueError, r"block_size \+ 1 = 5 tokens, but data has 4"),
    (torch.tensor([], dtype=torch.int64), ValueError, "but data has 0"),
]


@pytest.mark.parametrize(("data", "error", "message"), BAD_STREAMS)
def test_a_bad_stream_is_named_everywhere(data, error, message):
    sizes = {"block_size": 4, "batch_size": 2}
    with pytest.raises(error, match=message):
        get_batch(data, 4, 2)
    with pytest.raises(error, match=message):
        estimate_loss(Table(), data, **sizes)
    with pytest.raises(error, match=message):
        train(Table(), data, steps=1, learning_rate=0.1, **sizes)


@pytest.mark.parametrize(("sizes", "name"), [((0, 2), "block_size"), ((4, 0), "batch_size")])
def test_sizes_are_at_least_one(sizes, name):
    with pytest.raises(ValueError, match=f"{name} should be at least 1, but is 0"):
        get_batch(torch.arange(10), *sizes)


# --- language_model_loss --------------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 10))
def test_the_loss_is_the_mean_surprise(B, T, seed):
    model = Table()
    x = torch.randint(5, (B, T), generator=generator(seed))
    y = torch.randint(5, (B, T), generator=generator(seed + 1))
    p = model.table.weight.softmax(-1)
    by_hand = sum(-p[i, j].log() for i, j in zip(x.flatten(), y.flatten(), strict=True)) / (B * T)
    loss = language_model_loss(model, x, y)
    assert loss.shape == () and loss.requires_grad
    torch.testing.assert_close(loss, by_hand)


def test_a_uniform_model_loses_ln_v():
    model = Table(V=7)
    nn.init.zeros_(model.table.weight)
    x, y = get_batch(stream(50, V=7), 6, 3, generator())
    assert language_model_loss(model, x, y).item() == pytest.approx(math.log(7))


@pytest.mark.parametrize(
    ("wrong", "shape"),
    [
        (lambda ids: torch.zeros(2, 5), r"\(2, 5\)"),
        (lambda ids: torch.zeros(2, 5, 3), r"\(2, 5, 3\)"),  # (B, V, T): the axes swapped
        (lambda ids: torch.zeros(6, 5), r"\(6, 5\)"),
    ],
)
def test_a_model_with_other_shapes_is_named(wrong, shape):
    x = torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match=rf"\(\*\(2, 3\), V\), but gave {shape}"):
        language_model_loss(wrong, x, x)


# --- estimate_loss --------------------------------------------------------------------------------


@given(st.integers(2, 40), st.data())
def test_the_whole_stream_is_used_once(N, draw):
    """Whatever the chunks, a model that sees only the last token gets the same mean."""
    T = draw.draw(st.integers(1, N - 1))
    B = draw.draw(st.integers(1, 5))
    data, model = stream(N), Table()
    want = F.cross_entropy(model.table.weight[data[:-1]], data[1:]).item()
    got = estimate_loss(model, data, block_size=T, batch_size=B)
    assert got == pytest.approx(want, rel=1e-5)


def test_random_batches_come_from_the_generator():
    data, model = stream(500), Table()
    sizes = {"block_size": 8, "batch_size": 4, "batches": 3}
    first = estimate_loss(model, data, **sizes, generator=generator(1))
    assert first == estimate_loss(model, data, **sizes, generator=generator(1))
    assert first != estimate_loss(model, data, **sizes, generator=generator(2))
    source = generator(1)
    pairs = [get_batch(data, 8, 4, source) for _ in range(3)]
    want = sum(language_model_loss(model, x, y).item() for x, y in pairs) / 3
    assert first == pytest.approx(want)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_comes_back_and_nothing_is_learnt(training):
    data, model = stream(100), Table(noise=0.5)
    before = model.table.weight.detach().clone()
    model.train(training)
    results = {estimate_loss(model, data, block_size=8) for _ in range(2)}
    assert len(results) == 1  # evaluation mode: the dropout is off
    assert model.training is training
    assert set(model.modes) == {(False, False)}
    assert torch.equal(model.table.weight, before) and model.table.weight.grad is None


def test_the_mode_comes_back_after_an_error():
    model = Table(V=3)
    with pytest.raises(IndexError):
        estimate_loss(model, stream(100, V=5), block_size=8)
    assert model.training


def test_batches_are_at_least_one():
    with pytest.raises(ValueError, match="batches should be at least 1 or None, but is 0"):
        estimate_loss(Table(), stream(20), block_size=4, batches=0)


# --- train ----------------------------------------------------------------------------------------

SETTINGS = {"block_size": 8, "batch_size": 16, "learning_rate": 0.1}


def test_a_pattern_is_learnt():
    data = torch.arange(400) % 5  # 0 1 2 3 4 0 1 …
    model = Table()
    losses = train(model, data, steps=100, **SETTINGS, generator=generator())
    assert len(losses) == 100 and all(type(loss) is float for loss in losses)
    assert losses[0] > 1 and losses[-1] < 0.05
    assert estimate_loss(model, data, block_size=8) < 0.05
    assert model.training


def test_the_same_seed_gives_the_same_run():
    runs = [train(Table(), stream(200), steps=5, **SETTINGS, generator=generator(4)) for _ in "ab"]
    assert runs[0] == runs[1]


def test_one_step_is_one_adamw_step():
    data, model, twin = stream(200), Table(), Table()
    losses = train(model, data, steps=1, **SETTINGS, weight_decay=0.1, generator=generator(5))
    optimiser = torch.optim.AdamW(twin.parameters(), lr=0.1, weight_decay=0.1)
    loss = language_model_loss(twin, *get_batch(data, 8, 16, generator(5)))
    loss.backward()
    optimiser.step()
    assert losses == [loss.item()]
    torch.testing.assert_close(model.table.weight, twin.table.weight)


def test_training_reaches_the_counted_entropy():
    data = stream(2000, V=3)
    counts = torch.bincount(3 * data[:-1] + data[1:], minlength=9).view(3, 3).double()
    p = counts / counts.sum(1, keepdim=True)
    entropy = -(counts * p.log()).sum().item() / counts.sum().item()
    model = Table(V=3)
    train(model, data, steps=150, block_size=64, batch_size=64, learning_rate=0.05,
          generator=generator())  # fmt: skip
    loss = estimate_loss(model, data, block_size=100)
    assert entropy - 1e-5 <= loss < entropy + 0.01


def test_steps_are_at_least_one():
    with pytest.raises(ValueError, match="steps should be at least 1, but is 0"):
        train(Table(), stream(50), steps=0, **SETTINGS)


def test_a_loss_that_is_no_number_stops_the_training():
    model = Table()
    with torch.no_grad():
        model.table.weight[0, 0] = math.nan
    with pytest.raises(FloatingPointError, match="nan at step 0: try a learning_rate"):
        train(model, stream(200), steps=3, **SETTINGS, generator=generator())
