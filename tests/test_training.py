"""Batches, the loss, its estimate and the training loop, on models small enough to work out."""

import math

import pytest
import torch
import torch.nn.functional as F
from conftest import generator
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.kernels import has_bf16
from helpers.runs.trainer import Trainer
from helpers.training import (
    estimate_loss,
    get_batch,
    language_model_loss,
    train,
)


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


def adam(model, rate=0.1):
    return torch.optim.Adam(model.parameters(), lr=rate)


def stream(N, V=5, seed=0):
    return torch.randint(V, (N,), generator=generator(seed))


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


def test_a_model_whose_axes_are_swapped_is_named():
    x = torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"\(\*\(2, 3\), V\), but are \(2, 5, 3\)"):
        language_model_loss(lambda ids: torch.zeros(2, 5, 3), x, x)


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


# --- train ----------------------------------------------------------------------------------------

SIZES = {"block_size": 8, "batch_size": 16}


def train_table(data, table=None, **settings):
    table = Table() if table is None else table
    settings = {**SIZES, "optimizer": adam(table), "generator": generator(), **settings}
    return train(table, data, **settings)


def test_a_pattern_is_learned():
    data, model = torch.arange(400) % 5, Table()  # 0 1 2 3 4 0 1 …
    losses = train_table(data, model, steps=100)
    assert len(losses) == 100 and all(type(loss) is float for loss in losses)
    assert losses[0] > 1 and losses[-1] < 0.05
    assert estimate_loss(model, data, block_size=8) < 0.05
    assert model.training


def test_a_loss_that_is_not_finite_stops_the_training_before_the_step():
    calls = []

    class Breaks(Table):
        def forward(self, ids):
            calls.append(1)
            return super().forward(ids) * (math.inf if len(calls) == 4 else 1)

    model = Breaks()
    with pytest.raises(FloatingPointError, match="the loss is nan at step 3"):
        train_table(stream(200), model, steps=9)
    assert model.table.weight.isfinite().all()


def test_the_schedule_scales_every_group_of_every_optimizer():
    model, rates = Table(), []
    optimizers = [torch.optim.SGD(model.parameters(), lr=rate) for rate in (0.5, 0.25)]
    for optimizer in optimizers:
        optimizer.register_step_pre_hook(lambda o, *_: rates.append(o.param_groups[0]["lr"]))

    def schedule(step, steps):
        return [1.0, 0.75, 0.5, 0.25][step]  # and it is asked for no other step

    for _ in range(2):  # a second run with the same optimizers starts from the full rates
        train_table(stream(200), model, steps=4, optimizer=iter(optimizers), schedule=schedule)
        assert rates == [0.5, 0.25, 0.375, 0.1875, 0.25, 0.125, 0.125, 0.0625]
        rates.clear()


def test_clipping_bounds_the_step():
    lengths = []
    for grad_clip in (None, 1e-3):
        model = Table()
        before = model.table.weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        train_table(stream(200), model, steps=1, optimizer=optimizer, grad_clip=grad_clip)
        lengths.append((model.table.weight - before).norm().item())
    assert lengths[0] > 1e-2 and lengths[1] == pytest.approx(1e-3, rel=1e-3)


# --- Trainer (interrupted, failed and resumed runs: test_runs.py) ---------------------------------


def fit_table(table=None, data=None, **settings):
    table = Table() if table is None else table
    data = stream(300) if data is None else data
    settings = {**SIZES, "optimizer": adam(table), "generator": generator(), **settings}
    return Trainer(table, data, **settings).fit()


def test_a_trainer_takes_the_steps_of_train():
    for settings in ({}, {"schedule": lambda n, of: 1 - n / of}, {"grad_clip": 0.1}):
        run = fit_table(steps=5, **settings)
        assert run.losses == train_table(stream(300), steps=5, **settings)
        assert (run.step, run.stopped, run.evaluations) == (5, "finished", [])
        assert repr(run) == f"Run(5 steps in {run.seconds:.0f} s, finished)"


@pytest.mark.parametrize(
    ("abilities", "faster"),
    [
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, True),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, False),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, True),
        ({}, False),
    ],
)
def test_bfloat16_is_used_only_where_that_is_faster(abilities, faster, monkeypatch):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: abilities)
    assert has_bf16(torch.device("cpu")) is faster
    assert not has_bf16(torch.device("meta"))


@pytest.mark.parametrize("able", [True, False])
def test_bfloat16_is_used_where_the_hardware_can(able, monkeypatch):
    monkeypatch.setattr("helpers.runs.trainer.has_bf16", lambda device: able)

    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.map, self.seen = nn.Linear(5, 5), set()

        def forward(self, ids):
            out = self.map(F.one_hot(ids, 5).float())
            self.seen.add(out.dtype)
            return out

    model = Linear()
    run = fit_table(model, torch.arange(200) % 5, steps=30, bf16=True, eval_data=stream(50))
    assert model.seen == {torch.bfloat16 if able else torch.float32}
    assert model.map.weight.dtype == torch.float32 and run.losses[-1] < run.losses[0] / 2


def test_evaluations_come_on_time_and_leave_the_curve_alone():
    torch.manual_seed(0)  # for the dropout
    alone = fit_table(Table(noise=0.3), steps=7)
    torch.manual_seed(0)
    run = fit_table(Table(noise=0.3), steps=7, eval_data=stream(60, seed=1), eval_interval=3)
    assert [step for step, _, _ in run.evaluations] == [0, 3, 6, 7]
    assert run.losses == alone.losses
    seconds = [seconds for _, seconds, _ in run.evaluations]
    assert seconds[0] == 0 and seconds == sorted(seconds) and seconds[-1] == run.seconds
    assert run.best == min(loss for _, _, loss in run.evaluations)
    assert f"best validation loss {run.best:.3f}, finished" in repr(run)


def test_random_evaluation_batches_are_always_the_same():
    """With a model that does not change, the estimates agree, and the training batches stay."""
    settings = {"steps": 5, "schedule": lambda *_: 0.0}
    run = fit_table(eval_data=stream(500), eval_interval=1, eval_iters=2, **settings)
    assert len({loss for _, _, loss in run.evaluations}) == 1
    assert run.losses == fit_table(**settings).losses


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_one_line_of_plain_text(progress, capsys):
    run = fit_table(steps=40, progress=progress)
    out, err = capsys.readouterr()
    assert err == ""
    if not progress:
        assert out == ""
        return
    assert out.count("\n") == 1 and out.endswith("\n")
    last = out.rstrip("\n").split("\r")[-1]
    assert "40/40" in last and "steps/s" in last
    assert f"loss={run.losses[-1]:.3f}" in last
