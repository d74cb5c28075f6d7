"""Batches, the loss, its estimate and the training loop, on models small enough to work out."""

import math
import platform

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.training import (
    Watch,
    _has_bf16,
    _keep_memory,
    estimate_loss,
    get_batch,
    language_model_loss,
    train,
)


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


def test_every_module_gets_its_own_mode_back():
    model = Table(noise=0.5).train()
    model.noise.eval()
    estimate_loss(model, stream(100), block_size=8)
    assert model.training and model.table.training and not model.noise.training
    model.eval()
    model.noise.train()
    with pytest.raises(IndexError):
        estimate_loss(model, stream(100, V=9), block_size=8)
    assert not model.training and not model.table.training and model.noise.training


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
    run = train(model, data, steps=100, **SETTINGS, generator=generator())
    losses = run.losses
    assert run.step == len(losses) == 100 and all(type(loss) is float for loss in losses)
    assert losses[0] > 1 and losses[-1] < 0.05
    assert run.stopped == "finished" and run.seconds > 0 and run.evaluations == []
    assert repr(run) == f"Run(100 steps in {run.seconds:.0f} s, finished)"
    assert estimate_loss(model, data, block_size=8) < 0.05
    assert model.training


def test_the_same_seed_gives_the_same_run():
    runs = [train(Table(), stream(200), steps=5, **SETTINGS, generator=generator(4)) for _ in "ab"]
    assert runs[0].losses == runs[1].losses


def test_one_step_is_one_adamw_step():
    data, model, twin = stream(200), Table(), Table()
    run = train(model, data, steps=1, **SETTINGS, generator=generator(5))
    optimizer = torch.optim.AdamW(twin.parameters(), lr=0.1, weight_decay=0.0)
    loss = language_model_loss(twin, *get_batch(data, 8, 16, generator(5)))
    loss.backward()
    optimizer.step()
    assert run.losses == [loss.item()]
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
    with pytest.raises(FloatingPointError, match=r"nan at step 0 .*a learning rate that is too"):
        train(model, stream(200), steps=3, **SETTINGS, generator=generator())


def test_the_error_tells_the_step_what_came_before_and_what_to_look_for():
    calls = []

    class Breaks(Table):
        def forward(self, ids):
            calls.append(1)
            return super().forward(ids) * (math.inf if len(calls) == 4 else 1)

    with pytest.raises(FloatingPointError) as error:
        train(Breaks(), stream(200), steps=9, **SETTINGS, generator=generator())
    message = str(error.value)
    assert "the loss is nan at step 3 (before: " in message
    assert message.count(",") >= 5  # three losses, and the causes
    for cause in ("learning rate", "warm-up", "clipped", "mask", "logarithm"):
        assert cause in message
    assert "was kept" not in message  # there is no folder


# --- how steps are made ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": None}, "a learning_rate, for AdamW, or else optimizers"),
        ({"optimizers": "own"}, "a learning_rate, for AdamW, or else optimizers"),
        ({"resume": True}, "resume=True wants the folder"),
        ({"watch": Watch(stream(8))}, "block_size .* = 9 tokens, but data has 8"),
        ({"watch": Watch(stream(50).view(2, 25))}, r"has shape \(2, 25\)"),
    ],
)
def test_settings_that_do_not_fit_are_told_before_the_first_step(settings, message):
    model = Table()
    before = model.table.weight.detach().clone()
    if "optimizers" in settings:
        settings = {"optimizers": [torch.optim.SGD(model.parameters(), lr=0.1)]}
    with pytest.raises(ValueError, match=message):
        train(model, stream(200), steps=3, **{**SETTINGS, **settings})
    assert torch.equal(model.table.weight, before)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"steps": 2.5}, TypeError),
        ({"steps": "3"}, TypeError),
        ({"steps": True}, TypeError),
        ({"steps": torch.tensor(3.0)}, TypeError),
        ({"block_size": 8.0}, TypeError),
        ({"batch_size": 2.5}, TypeError),
        ({"learning_rate": 0}, ValueError),
        ({"learning_rate": -0.1}, ValueError),
        ({"learning_rate": math.nan}, ValueError),
        ({"learning_rate": math.inf}, ValueError),
        ({"learning_rate": "0.1"}, ValueError),
        ({"max_seconds": math.nan}, ValueError),
        ({"max_seconds": -1}, ValueError),
        ({"max_seconds": "60"}, ValueError),
        ({"clip": "1"}, ValueError),
        ({"watch": Watch(stream(50), every=2.5)}, TypeError),
        ({"watch": Watch(stream(50), batches=2.5)}, TypeError),
    ],
)
def test_numbers_that_mean_nothing_are_refused_by_name(settings, error):
    name = next(iter(settings)).replace("watch", "watch.")
    with pytest.raises(error, match=rf"{name}\w* should be"):
        train(Table(), stream(200), **{"steps": 3, **SETTINGS, **settings})


def test_the_optimisers_of_another_model_are_refused():
    """The usual cause: the cell that makes the model was run again."""
    old, model = Table(), Table()
    mixed = [torch.optim.SGD([*model.parameters(), *old.parameters()], lr=0.1)]
    for optimizers, count in ((plain(old), "1 of the 1"), (mixed, "1 of the 2")):
        with pytest.raises(ValueError, match=rf"{count} tensors .*not parameters of the model"):
            train(model, stream(200), steps=3, **OWN, optimizers=optimizers)


@pytest.mark.parametrize("wrong", ["one", "class", "schedule", "name", 3])
def test_what_is_no_list_of_optimisers_is_refused_in_words(wrong):
    model = Table()
    one = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {
        "one": one,
        "class": [torch.optim.SGD],
        "schedule": [torch.optim.lr_scheduler.ConstantLR(one)],
    }
    with pytest.raises(TypeError, match="optimizers should be a list"):
        train(model, stream(200), steps=3, **OWN, optimizers=given.get(wrong, wrong))


def test_optimisers_can_come_one_by_one():
    model, seen = Table(), []
    optimizers = plain(model)
    optimizers[0].register_step_pre_hook(lambda *_: seen.append(1))
    train(model, stream(200), steps=3, **OWN, optimizers=iter(optimizers))
    assert len(seen) == 3


def test_a_last_step_that_ruins_the_model_is_no_success():
    with pytest.raises(FloatingPointError, match=r"table.weight holds NaN or infinity at step 3"):
        train(Table(), stream(200), steps=3, **SETTINGS,
              schedule=lambda step, _: math.inf if step == 2 else 1.0)  # fmt: skip


def plain(model, rate=0.1, **settings):
    return [torch.optim.SGD(model.parameters(), lr=rate, **settings)]


OWN = {"block_size": 8, "batch_size": 16}


def test_the_schedule_scales_every_group_and_the_rates_come_back():
    model, seen = Table(), []
    optimizers = plain(model, 0.5) + plain(model, 0.25)

    def share(step, steps):
        return (steps - step) / steps

    optimizers[0].register_step_pre_hook(lambda o, *_: seen.append(o.param_groups[0]["lr"]))
    optimizers[1].register_step_pre_hook(lambda o, *_: seen.append(o.param_groups[0]["lr"]))
    train(model, stream(200), steps=4, **OWN, optimizers=optimizers, schedule=share)
    assert seen == [0.5, 0.25, 0.375, 0.1875, 0.25, 0.125, 0.125, 0.0625]
    # A second run with the same optimizers has to start from the full rates.
    assert [o.param_groups[0]["lr"] for o in optimizers] == [0.5, 0.25]


def test_the_rates_come_back_after_an_error():
    model = Table()
    optimizers = plain(model, 0.5)
    with torch.no_grad():
        model.table.weight[0, 0] = math.nan
    with pytest.raises(FloatingPointError):
        train(model, stream(200), steps=2, **OWN, optimizers=optimizers, schedule=lambda *_: 0.1)
    assert optimizers[0].param_groups[0]["lr"] == 0.5


def test_clipping_bounds_the_step():
    lengths = []
    for clip in (None, 1e-3):
        model = Table()
        before = model.table.weight.detach().clone()
        train(model, stream(200), steps=1, **OWN, optimizers=plain(model, 1.0), clip=clip,
              generator=generator())  # fmt: skip
        lengths.append((model.table.weight - before).norm().item())
    assert lengths[0] > 1e-2 and lengths[1] == pytest.approx(1e-3, rel=1e-3)


def test_a_schedule_of_zero_changes_nothing():
    model = Table()
    before = model.table.weight.detach().clone()
    train(model, stream(200), steps=2, **SETTINGS, schedule=lambda *_: 0.0)
    assert torch.equal(model.table.weight, before)


@pytest.mark.parametrize(
    ("abilities", "faster"),
    [
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, True),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, False),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, True),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": False}, False),
        ({}, False),
    ],
)
def test_half_the_digits_are_used_only_where_that_is_faster(abilities, faster, monkeypatch):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: abilities)
    assert _has_bf16(torch.device("cpu")) is faster
    assert not _has_bf16(torch.device("meta"))


@pytest.mark.parametrize("able", [True, False])
def test_half_the_digits_are_used_where_the_hardware_can(able, monkeypatch):
    monkeypatch.setattr("helpers.training._has_bf16", lambda device: able)

    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.map, self.seen = nn.Linear(5, 5), set()

        def forward(self, ids):
            out = self.map(F.one_hot(ids, 5).float())
            self.seen.add(out.dtype)
            return out

    model = Linear()
    run = train(model, torch.arange(200) % 5, steps=30, **SETTINGS, bf16=True,
                watch=Watch(stream(50)), generator=generator())  # fmt: skip
    assert model.seen == {torch.bfloat16 if able else torch.float32}
    assert model.map.weight.dtype == torch.float32 and run.losses[-1] < run.losses[0] / 2


# --- what is watched ------------------------------------------------------------------------------


def test_evaluations_come_on_time_and_leave_the_curve_alone():
    data, validation = stream(300), stream(60, seed=1)
    seen = []

    def look(run):
        seen.append((run.step, len(run.evaluations)))

    torch.manual_seed(0)  # for the dropout
    alone = train(Table(noise=0.3), data, steps=7, **SETTINGS, generator=generator())
    torch.manual_seed(0)
    watched = train(Table(noise=0.3), data, steps=7, **SETTINGS, generator=generator(),
                    watch=Watch(validation, every=3, then=look))  # fmt: skip
    assert [step for step, _, _ in watched.evaluations] == [0, 3, 6, 7]
    assert seen == [(0, 1), (3, 2), (6, 3), (7, 4)]
    assert watched.losses == alone.losses
    seconds = [seconds for _, seconds, _ in watched.evaluations]
    assert seconds[0] == 0 and seconds == sorted(seconds) and seconds[-1] == watched.seconds
    assert watched.best == min(loss for _, _, loss in watched.evaluations)
    assert f"best validation loss {watched.best:.3f}, finished" in repr(watched)


def test_only_at_the_end_if_not_every_few_steps():
    model = Table()
    run = train(model, stream(300), steps=4, **SETTINGS, watch=Watch(stream(60)))
    (step, _, loss), = run.evaluations  # fmt: skip
    assert step == 4
    assert loss == estimate_loss(model, stream(60), block_size=8)


def test_random_validation_batches_are_always_the_same():
    """With a model that does not change, the estimates agree, and the training batches stay."""

    def watched(**settings):
        return train(Table(), stream(300), steps=5, **SETTINGS, generator=generator(),
                     schedule=lambda *_: 0.0, **settings)  # fmt: skip

    run = watched(watch=Watch(stream(500), every=1, batches=2))
    assert len({loss for _, _, loss in run.evaluations}) == 1
    assert run.losses == watched().losses


def test_time_runs_out():
    run = train(Table(), stream(300), steps=10_000, **SETTINGS, max_seconds=0.05,
                watch=Watch(stream(60)))  # fmt: skip
    assert run.stopped == "time" and 0 < run.step < 10_000
    assert 0.05 <= run.seconds < 5
    assert run.evaluations[-1][0] == run.step


def test_no_time_is_no_step():
    run = train(Table(), stream(300), steps=5, **SETTINGS, max_seconds=0)
    assert (run.step, run.stopped, run.best) == (0, "time", math.inf)


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_one_line_of_plain_text(progress, capsys):
    run = train(Table(), stream(300), steps=40, **SETTINGS, progress=progress)
    out, err = capsys.readouterr()
    assert err == ""
    if not progress:
        assert out == ""
        return
    assert out.count("\n") == 1 and out.endswith("\n")
    last = out.rstrip("\n").split("\r")[-1]
    assert "40/40" in last and "steps/s" in last
    assert f"loss={run.losses[-1]:.3f}" in last


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries are left alone")
def test_memory_is_kept_from_one_step_to_the_next():
    import resource  # which Windows has not

    def pages():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(2**24)  # 64 MiB: 16,384 pages when they are new
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    _keep_memory()
    assert sum(pages() for _ in range(20)) < 10 * 16_384  # the first few find no room that fits
