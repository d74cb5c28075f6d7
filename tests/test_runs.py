"""helpers.runs.trainer: runs that stop, are stopped, fail, and are resumed."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading

import nbformat
import pytest
import torch
from conftest import ROOT
from nbclient import NotebookClient
from nbformat import v4
from torch import nn

from helpers.formats.checkpoints import load_checkpoint, read_tensors, write_tensors
from helpers.formats.files import alone_in
from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import adamw, fast_optimizers
from helpers.runs.trainer import Run, Trainer, catch_interrupt
from helpers.training import cosine_schedule, estimate_loss

DATA = torch.randint(7, (400,), generator=torch.Generator().manual_seed(0))
VALIDATION = torch.randint(7, (60,), generator=torch.Generator().manual_seed(1))
SIZES = {"block_size": 6, "batch_size": 4}


def evaluated(data, every=None, iters=None, callback=None):
    return dict(eval_data=data, eval_interval=every, eval_iters=iters, callback=callback)


class Watched(Trainer):
    """Calls `then` with the run after each evaluation."""

    then = None

    def evaluate(self):
        super().evaluate()
        if self.then is not None:
            self.then(self.run)


def fit(model, data, *, resume=False, rate=None, callback=None, **settings):
    if rate is not None:
        settings["optimizer"] = torch.optim.Adam(model.parameters(), lr=rate)
    trainer = Watched(model, data, **settings)
    trainer.then = callback
    return trainer.fit(resume)


def generator():
    return torch.Generator().manual_seed(3)


def plain(seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 7, "block_size": 6, "n_layer": 1, "n_head": 2, "n_embd": 8}
    return GPT(GPTConfig(**{**sizes, "dropout": 0.2, **settings}))


def fast():
    torch.manual_seed(0)
    return fast_gpt(7, 6, n_layer=1, n_head=2, n_embd=8)


def with_adamw(**settings):
    """A model, with dropout, and a call of train that it is given to."""
    model = plain()

    def run(**more):
        return fit(model, DATA, **SIZES, optimizer=adamw(model, 0.01), grad_clip=1.0,
                     **{"schedule": cosine_schedule, "steps": 12, **settings, **more})  # fmt: skip

    return model, run


def with_muon(**settings):
    model = fast()

    def run(**more):
        return fit(model, DATA, **SIZES, optimizer=fast_optimizers(model),
                     **{"schedule": cosine_schedule, "steps": 12, **settings, **more})  # fmt: skip

    return model, run


def with_sgd(momentum=0.0):
    def make(**settings):
        model = plain()

        def run(**more):
            optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)]
            return fit(model, DATA, **SIZES, optimizer=optimizers,
                         **{"steps": 12, **settings, **more})  # fmt: skip

        return model, run

    return make


def with_a_running_mean(**settings):
    """No GPT, and not all that it learns are parameters."""

    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(7, 7), nn.BatchNorm1d(7)

        def forward(self, ids):
            return self.norm(self.table(ids).transpose(1, 2)).transpose(1, 2)

    torch.manual_seed(0)
    model = Normed()

    def run(**more):
        return fit(model, DATA, **SIZES, rate=0.1, **{"steps": 12, **settings, **more})

    return model, run


MAKERS = {
    "AdamW": with_adamw,
    "Muon and AdamW": with_muon,
    "SGD, which remembers nothing": with_sgd(),
    "SGD with momentum": with_sgd(0.9),
    "buffers": with_a_running_mean,
}


class Stop(Exception):
    """Ends a run from within, as a crash would."""


def crash_at(step):
    def then(run):
        if run.step == step:
            raise Stop

    return then


def undisturbed():
    """The losses of a run to which nothing happens."""
    _, run = with_adamw()
    return run(generator=generator()).losses


def same_weights(a, b):
    a, b = a.state_dict(), b.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


# --- micro-batches -------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize(("rows", "parts"), [(32, 4), (10, 4)])
def test_the_gradients_of_micro_batches_add_up_to_those_of_the_batch(rows, parts, clip):
    """Also where the last has fewer rows: each token counts the same."""
    found, sizes = [], []
    for n in (1, parts):
        model = plain(dropout=0.0)
        model.token.register_forward_hook(lambda _, inputs, out: sizes.append(len(inputs[0])))
        rate = torch.optim.SGD(model.parameters(), lr=1.0)
        run = fit(model, DATA, steps=2, block_size=6, batch_size=rows, optimizer=rate,
                  generator=generator(), accumulation_steps=n, grad_clip=clip)  # fmt: skip
        found.append([torch.tensor(run.losses), *(p.detach() for p in model.parameters())])
    assert sizes == 2 * [rows] + 2 * [*map(len, torch.arange(rows).chunk(parts))]
    torch.testing.assert_close(*found)


# --- taking up again ------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [True, False], ids=["own generator", "torch's generator"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("crash", [0, 8])
def test_a_run_that_crashed_goes_on_as_if_it_had_not(make, seeded, crash, tmp_path):
    """The same losses to the last bit, whether it crashed before the first step or later."""
    watch = evaluated(VALIDATION, every=4)
    whole, run = make(**watch)
    torch.manual_seed(5)
    want = run(generator=generator() if seeded else None)

    _, run = make(**watch)
    torch.manual_seed(5)
    with pytest.raises(Stop):
        run(generator=generator() if seeded else None, folder=tmp_path,
            **evaluated(VALIDATION, every=4, callback=crash_at(crash)))  # fmt: skip

    model, run = make(**watch)
    torch.manual_seed(99)  # all randomness has to come from the folder
    other = torch.Generator().manual_seed(99)
    got = run(generator=other if seeded else None, folder=tmp_path, resume=True)
    assert got.losses == want.losses and got.step == 12
    assert [(s, x) for s, _, x in got.evaluations] == [(s, x) for s, _, x in want.evaluations]
    assert same_weights(model, whole)
    assert got.stopped == "finished"


def test_a_finished_run_has_nothing_left_to_do_and_can_be_made_longer(tmp_path):
    _, run = with_adamw(folder=tmp_path, schedule=None)
    first = run(generator=generator())
    model, run = with_adamw(folder=tmp_path, schedule=None, resume=True)
    again = run(generator=generator())
    assert again.losses == first.losses
    longer = run(generator=generator(), steps=20)
    whole, run = with_adamw(schedule=None)
    assert longer.losses == run(generator=generator(), steps=20).losses
    assert same_weights(model, whole)


@pytest.mark.parametrize("make", [with_adamw, with_muon, with_a_running_mean])
def test_a_run_of_the_last_release_goes_on(make, tmp_path):
    """Its last.safetensors has other names of weights, optimizers and settings."""
    watch = dict(data=VALIDATION, every=4, iters=2)
    whole, run = make(**evaluated(**watch))
    want = run(generator=generator())
    _, run = make(folder=tmp_path)
    with pytest.raises(Stop):
        run(generator=generator(), **evaluated(**watch, callback=crash_at(8)))

    tensors, about = read_tensors(tmp_path / "last.safetensors")
    then = {"optimizer": "optimiser", "lm_head": "head", "mlp.down": "mlp.output"}
    for now, old in (then | {"model/position": "model/position.table"}).items():
        tensors = {name.replace(now, old): tensor for name, tensor in tensors.items()}
    said = about["settings"]
    settings = {name: said[name] for name in ("block_size", "batch_size", "text", "generator")}
    settings["validation"] = dict(zip(("text", "batches"), said["validation"], strict=True))
    config = {n.removeprefix("model."): v for n, v in said.items() if n.startswith("model.")}
    settings |= {"model": config or said["model"], "optimisers": [], "hyperparameters": []}
    for i, kind in enumerate(said["optimizers"]):
        groups = {}
        for name, value in said.items():
            if name.startswith(f"optimizer {i}, group "):
                _, group, what = name.split(", ")
                groups.setdefault(group, {})[what] = value
        shapes = [json.loads(group.pop("shapes")) for group in groups.values()]
        settings["optimisers"].append([kind, *shapes])
        settings["hyperparameters"].append([*groups.values()])
    write_tensors(tmp_path / "last.safetensors", tensors, {**about, "settings": settings})

    model, run = make(folder=tmp_path, resume=True, **evaluated(**watch))
    with pytest.raises(ValueError, match=r"validation was \[\d+, 2\], is \[\d+, 3\]"):
        run(generator=generator(), eval_iters=3)
    got = run(generator=generator())
    assert got.losses == want.losses and len(got.evaluations) == 4
    assert same_weights(model, whole)


def test_resuming_in_an_empty_folder_starts(tmp_path):
    _, run = with_adamw()
    want = run(generator=generator())
    _, run = with_adamw(folder=tmp_path / "new", resume=True)
    assert run(generator=generator()).losses == want.losses
    assert (tmp_path / "new" / "last.safetensors").exists()


# --- what is kept ---------------------------------------------------------------------------------


def test_the_best_is_the_best(tmp_path):
    """The training text says little of the validation text: its loss falls first, then rises."""
    model, run = with_adamw(folder=tmp_path, **evaluated(VALIDATION, every=10), steps=200)
    states = {}
    result = run(generator=generator(), **evaluated(VALIDATION, every=10, callback=lambda run:
        states.setdefault(run.step, [p.detach().clone() for p in model.parameters()])))  # fmt: skip
    best_step = min(result.evaluations, key=lambda e: e[2])[0]
    assert 0 < best_step < 200, "the test wants a best that is not the last"
    best = load_checkpoint(tmp_path / "best")
    assert best.notes == {"step": best_step, "validation_loss": result.best}
    for p, want in zip(best.model.parameters(), states[best_step], strict=True):
        assert torch.equal(p, want)
    assert estimate_loss(best.model, VALIDATION, block_size=6) == result.best
    assert sorted(os.listdir(tmp_path)) == ["best", "last.safetensors"]


def test_a_best_from_before_the_crash_stays_the_best(tmp_path):
    _, run = with_adamw(folder=tmp_path, **evaluated(VALIDATION, every=10), steps=200)
    with pytest.raises(Stop):
        run(generator=generator(), **evaluated(VALIDATION, every=10, callback=crash_at(100)))
    _, run = with_adamw(folder=tmp_path, **evaluated(VALIDATION, every=10), steps=200)
    result = run(generator=generator(), resume=True)
    notes = load_checkpoint(tmp_path / "best").notes
    assert notes["validation_loss"] == result.best == min(x for _, _, x in result.evaluations)


def test_a_folder_that_holds_a_run_is_not_overwritten(tmp_path):
    _, run = with_adamw(folder=tmp_path)
    run(generator=generator())
    before = (tmp_path / "last.safetensors").read_bytes()
    model, run = with_adamw(folder=tmp_path)
    weights = model.token.weight.detach().clone()
    with pytest.raises(FileExistsError, match=r"holds a run already: .* resume=True, or choose"):
        run(generator=generator())
    assert (tmp_path / "last.safetensors").read_bytes() == before
    assert torch.equal(model.token.weight, weights)


@pytest.mark.parametrize("resume", [True, False])
def test_two_runs_in_one_folder_at_once_are_refused(resume, tmp_path):
    """The second is refused, whether it resumes or not, and the first goes on."""

    _, other = with_adamw(folder=tmp_path)

    def second(_):
        with pytest.raises(FileExistsError, match="another run is at work in"):
            other(generator=generator(), resume=resume)

    _, run = with_adamw(folder=tmp_path, **evaluated(VALIDATION, every=4, callback=second))
    assert run(generator=generator()).losses == undisturbed()


def test_a_process_that_was_killed_is_no_longer_in_its_folder(tmp_path):
    script = """
        import os, signal, sys
        from helpers.formats.files import alone_in

        with alone_in(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), tmp_path], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    with alone_in(tmp_path):
        pass


@pytest.mark.parametrize("folder", ["file", "/proc/self"])
def test_a_folder_that_cannot_be_is_told_before_the_first_step(tmp_path, folder):
    (tmp_path / "file").write_text("a file")
    _, run = with_adamw(folder=tmp_path / folder)
    with pytest.raises(OSError, match=folder):
        run(**evaluated(VALIDATION, every=1, callback=pytest.fail))


def test_a_failing_write_leaves_the_state_before(tmp_path, monkeypatch):
    watch = {**evaluated(VALIDATION, every=4), "folder": tmp_path}
    _, run = with_adamw(**watch)
    kept = []

    def full(*_):
        raise OSError(28, "No space left on device")

    def fill(result):
        if result.step == 4:
            kept.append((tmp_path / "last.safetensors").read_bytes())
            monkeypatch.setattr("helpers.formats.files.os.fsync", full)

    with pytest.raises(OSError, match="No space left"):
        run(generator=generator(), **evaluated(VALIDATION, every=4, callback=fill))
    assert (tmp_path / "last.safetensors").read_bytes() == kept[0]
    assert sorted(os.listdir(tmp_path)) == ["best", "last.safetensors"]
    monkeypatch.undo()
    _, run = with_adamw(**watch, resume=True)
    assert run(generator=generator()).losses == undisturbed()


def test_a_loss_that_is_no_number_names_the_state_that_was_kept(tmp_path):
    model, run = with_adamw(folder=tmp_path, **evaluated(VALIDATION, every=4))

    def poison(result):
        if result.step == 4:
            with torch.no_grad():
                model.token.weight[:] = math.nan

    with pytest.raises(FloatingPointError, match="the loss is nan at step 4") as error:
        run(generator=generator(), **evaluated(VALIDATION, every=4, callback=poison))
    assert f"checkpoint is {tmp_path / 'last.safetensors'}: resume=True" in str(error.value)
    _, run = with_adamw(folder=tmp_path, resume=True)  # and that state is from before
    assert run(generator=generator()).losses == undisturbed()


# --- what cannot be resumed ----------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    _, run = with_adamw(folder=folder, steps=2)
    run(generator=generator())
    return folder


def refused(folder, model, message, **settings):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    last = (folder / "last.safetensors").read_bytes()
    random = torch.get_rng_state()
    same = {"steps": 2, "optimizer": adamw(model, 0.01), "generator": generator()}
    settings = {**same, **SIZES, "grad_clip": 1.0, "schedule": cosine_schedule, **settings}
    with pytest.raises(ValueError, match=message) as error:
        fit(model, DATA, folder=folder, resume=True, **settings)
    assert str(folder / "last.safetensors") in str(error.value)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (folder / "last.safetensors").read_bytes() == last
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"block_size": 5}, "block_size was 6, is 5"),
        ({"batch_size": 8}, "batch_size was 4, is 8"),
        ({"generator": None}, "generator was True, is False"),
        ({"grad_clip": None}, r"grad_clip was 1\.0, is None"),
        ({"bf16": True}, "bf16 was False, is True"),
        ({"schedule": None}, r"schedule was \['1', '0\.55'\], is \['1', '1'\]"),
        ({"steps": 4}, r"schedule was \['1', '0\.55'\], is"),
    ],
)
def test_other_settings_are_refused(finished, settings, message):
    refused(finished, plain(), message, **settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_embd": 16}, "n_embd was 8, is 16"),
        ({"n_head": 4}, "n_head was 2, is 4"),
        ({"norm": "RMSNorm"}, "norm was LayerNorm, is RMSNorm"),
    ],
)
def test_another_model_is_refused_even_if_its_weights_would_fit(finished, changes, message):
    refused(finished, plain(**changes), rf"model\.{message}")


def test_weights_of_another_type_and_frozen_ones_are_refused(finished):
    refused(finished, plain().double(), r"dtypes was \['torch.float32'\], is \['torch.float64'\]")
    model = plain()
    model.token.weight.requires_grad_(False)
    refused(finished, model, r"frozen was \[\], is \['token.weight'\]")


def test_a_model_of_another_kind_is_refused(finished):
    refused(finished, nn.Sequential(nn.Embedding(7, 7)), "model was GPT, is Sequential")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda model: [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)],
            r"optimizers was \['AdamW'\], is \['SGD'\]",
        ),
        (
            lambda model: [torch.optim.AdamW(model.parameters(), lr=0.1)],  # one group, not two
            "optimizer 0, group 0, .* was",
        ),
        (
            lambda model: [
                torch.optim.AdamW(model.parameters(), lr=0.1),
                torch.optim.AdamW(model.token.parameters(), lr=0.1),
            ],
            r"optimizers was \['AdamW'\], is \['AdamW', 'AdamW'\]",
        ),
    ],
)
def test_other_optimisers_are_refused(finished, make, message):
    model = plain()
    refused(finished, model, message, optimizer=make(model))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.02}, "group 0, lr was 0.01, is 0.02"),
        ({"weight_decay": 0.2}, "group 0, weight_decay was 0.1, is 0.2"),
        ({"betas": (0.8, 0.95)}, r"group 0, betas was \(0.9, 0.95\), is \(0.8, 0.95\)"),
    ],
    ids=["rate", "decay", "betas"],
)
def test_other_rates_and_decays_are_refused_by_name(finished, changes, message):
    model = plain()
    other = [adamw(model, **({"learning_rate": 0.01} | changes))]
    refused(finished, model, message, optimizer=other)


def test_a_rate_is_named_with_its_group_and_its_optimiser(tmp_path):
    _, run = with_muon(folder=tmp_path, steps=2)
    run(generator=generator())
    model = fast()
    other = fast_optimizers(model)
    other[1].param_groups[1]["lr"] = 0.3
    message = "optimizer 1, group 1, lr was 0.1, is 0.3"
    refused(tmp_path, model, message, optimizer=other, grad_clip=None)


WATCHED = evaluated(VALIDATION, every=1, iters=2)


@pytest.mark.parametrize(
    ("watch", "message"),
    [
        (evaluated(VALIDATION.flip(0), every=1, iters=2), r"validation was \[\d+, 2\], is"),
        (evaluated(VALIDATION, every=1, iters=3), r"validation was \[\d+, 2\], is \[\d+, 3\]"),
        (evaluated(VALIDATION, every=1), r"validation was \[\d+, 2\], is \[\d+, None\]"),
    ],
)
def test_losses_that_cannot_be_compared_are_refused(tmp_path, watch, message):
    steady = {"folder": tmp_path, "schedule": None}
    _, run = with_adamw(steps=2, **steady, **WATCHED)
    run(generator=generator())
    refused(tmp_path, plain(), message, **watch)
    _, run = with_adamw(steps=3, resume=True, **steady)  # unwatched, it compares nothing,
    run(generator=generator())
    refused(tmp_path, plain(), message, steps=3, **watch)  # and what was recorded stays
    _, run = with_adamw(steps=4, resume=True, **steady, **WATCHED)
    assert [step for step, _, _ in run(generator=generator()).evaluations] == [0, 1, 2, 3, 4]


# --- a step that ruins the model ------------------------------------------------------------------


def ruined_at(step):
    """A schedule under which that step makes the weights infinite or NaN."""
    return lambda now, _: math.inf if now == step else 1.0


def finite(path):
    return all(t.isfinite().all() for t in read_tensors(path)[0].values() if t.is_floating_point())


ENDS = {
    "steps": dict(steps=6),
    "steps, not evaluated": dict(steps=6, eval_data=None),
    "interrupt": dict(steps=99),
    "evaluation": dict(steps=99, **evaluated(VALIDATION, every=3)),
    "next step": dict(steps=99, eval_data=None),
}


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_a_ruined_step_never_replaces_a_good_state(end, resumed, tmp_path):
    watch = evaluated(VALIDATION, every=3) if resumed else {}
    _, run = with_adamw(folder=tmp_path, steps=4, schedule=None, **watch)
    if resumed:
        run(generator=generator())
    before = {p.name: p.read_bytes() for p in tmp_path.rglob("*.safetensors")}

    asked = []

    def schedule(step, steps):
        if step == 6 and end == "interrupt" and not asked:  # asked for each group after step 5
            asked.append(True)
            signal.raise_signal(signal.SIGINT)
        return ruined_at(5)(step, steps)

    _, run = with_adamw(folder=tmp_path, resume=resumed, schedule=schedule)
    with pytest.raises(FloatingPointError, match=r"NaN or infinity|loss is nan") as error:
        run(generator=generator(), **{**watch, **ENDS[end]})
    after = {p.name: p.read_bytes() for p in tmp_path.rglob("*.safetensors")}
    assert after == before or (end == "evaluation" and finite(tmp_path / "last.safetensors"))
    assert ("resume=True continues" in str(error.value)) == ("last.safetensors" in after)
    assert all(map(finite, tmp_path.rglob("*.safetensors")))


def test_a_weight_that_the_validation_text_does_not_meet_is_looked_at(tmp_path):
    """The loss is a number, and yet the model is ruined."""
    model = plain(tied=False)
    data = torch.arange(60) % 6  # never a 6

    def spoil(step, steps):
        if step == 2:
            model.position.weight.data[:] += 0  # the graph stays
            model.token.weight.data[6] = math.nan
        return 1.0

    with pytest.raises(FloatingPointError, match=r"token\.weight holds NaN or infinity at step"):
        fit(model, data, **SIZES, steps=9, rate=0.01, folder=tmp_path, schedule=spoil,
              **evaluated(data, every=3))  # fmt: skip
    assert finite(tmp_path / "last.safetensors") and finite(tmp_path / "best" / "model.safetensors")


def test_an_optimiser_that_remembers_no_number_counts_as_ruined(tmp_path):
    model = plain()
    optimizer = adamw(model, 0.01)

    def spoil(step, steps):
        if step == 2:
            optimizer.state[model.norm.weight]["exp_avg_sq"][:] = math.inf  # and steps by 0
        return 1.0

    with pytest.raises(FloatingPointError, match="exp_avg_sq of AdamW holds NaN or infinity"):
        fit(model, DATA, **SIZES, steps=4, optimizer=optimizer, schedule=spoil,
              folder=tmp_path)  # fmt: skip
    assert os.listdir(tmp_path) == []


def test_the_same_ruined_model_goes_on_from_the_good_state(tmp_path):
    """The learner resumes with what is left in the kernel, and it is looked after as before."""
    model, run = with_adamw(folder=tmp_path, schedule=None)
    run(generator=generator(), steps=4)
    for _ in range(2):
        with pytest.raises(FloatingPointError, match="holds NaN or infinity at step 6"):
            run(generator=generator(), steps=6, schedule=ruined_at(5), resume=True)
        assert finite(tmp_path / "last.safetensors") and not model.norm.weight.isfinite().all()
    assert run(generator=generator(), resume=True).step == 12
    assert model.norm.weight.isfinite().all()


def test_a_mask_of_minus_infinity_is_no_ruin(tmp_path):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 7)
            self.register_buffer("mask", torch.full((6, 6), -math.inf).triu(1))

        def forward(self, ids):
            T = ids.shape[1]
            return self.mask[:T, :T].softmax(-1) @ self.table(ids)

    for steps in (3, 5):
        run = fit(Masked(), DATA, **SIZES, steps=steps, rate=0.1, resume=True,
                    folder=tmp_path, generator=generator(), **evaluated(VALIDATION))  # fmt: skip
        assert run.step == steps


def test_another_text_is_refused(finished):
    model = plain()
    with pytest.raises(ValueError, match=r"text was \d+, is \d+"):
        fit(model, DATA.flip(0), **SIZES, steps=20, optimizer=adamw(model, 0.01),
              generator=generator(), folder=finished, resume=True)  # fmt: skip


def damaged(finished, folder, change):
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    tensors, about = read_tensors(folder / "last.safetensors")
    change(tensors, about)
    write_tensors(folder / "last.safetensors", tensors, about)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, a: a.pop("run"), "is not the state of a training run"),
        (lambda t, a: t.pop("model/norm.weight"), "lacks 1 weights"),
    ],
)
def test_a_damaged_state_is_refused(finished, tmp_path, change, message):
    damaged(finished, tmp_path, change)
    refused(tmp_path, plain(), message)


def test_a_truncated_state_and_a_checkpoint_are_refused(finished, tmp_path):
    last = tmp_path / "last.safetensors"
    last.write_bytes((finished / "last.safetensors").read_bytes()[:-100])
    refused(tmp_path, plain(), "not a whole safetensors file")
    model, run = with_adamw(**evaluated(VALIDATION), folder=tmp_path / "other", steps=1)
    run()
    shutil.copy(tmp_path / "other" / "best" / "model.safetensors", last)
    refused(tmp_path, model, "is not the state of a training run")


# --- interrupts -----------------------------------------------------------------------------------


def interrupt(*steps):
    def then(run):
        for _ in range(steps.count(run.step)):
            signal.raise_signal(signal.SIGINT)

    return then


@pytest.fixture
def handler():
    """A handler of the caller's, which must not be called and must be there again afterwards."""
    before = signal.getsignal(signal.SIGINT)

    def mine(*_):
        pytest.fail("train did not take the signal")

    signal.signal(signal.SIGINT, mine)
    yield mine
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_the_run_in_good_order(handler, tmp_path):
    watch = evaluated(VALIDATION, every=4)
    model, run = with_adamw(**watch, folder=tmp_path)
    result = run(generator=generator(), **evaluated(VALIDATION, every=4, callback=interrupt(4)))
    assert signal.getsignal(signal.SIGINT) is handler
    assert (result.stopped, result.step) == ("interrupted", 5)  # the step in hand is finished
    assert "interrupted" in repr(result)
    assert estimate_loss(model, VALIDATION, block_size=6) < 3  # the model can be used

    second, run = with_adamw(**watch, folder=tmp_path, resume=True)
    assert run(generator=generator()).losses[:5] == result.losses
    whole, run = with_adamw(**watch)
    run(generator=generator())
    assert same_weights(second, whole)


def test_an_interrupt_needs_no_folder(handler):
    _, run = with_adamw(**evaluated(VALIDATION, every=1))
    assert run(**evaluated(VALIDATION, every=1, callback=interrupt(2))).stopped == "interrupted"


def test_an_interrupt_at_the_very_end_comes_too_late(handler):
    _, run = with_adamw(**evaluated(VALIDATION, callback=interrupt(12)))
    assert run().stopped == "finished"


def test_a_second_interrupt_ends_it_at_once(handler, tmp_path):
    _, run = with_adamw(**evaluated(VALIDATION, every=4), folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(generator=generator(), **evaluated(VALIDATION, every=4, callback=interrupt(4, 4)))
    assert signal.getsignal(signal.SIGINT) is handler
    _, run = with_adamw(folder=tmp_path, resume=True)
    assert run(generator=generator()).step == 12


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_the_handler_from_before_comes_back(before):
    kept = signal.signal(signal.SIGINT, before)
    try:
        with catch_interrupt() as outer:
            with catch_interrupt() as inner:
                signal.raise_signal(signal.SIGINT)
            assert inner.requested and not outer.requested
            signal.raise_signal(signal.SIGINT)
            assert outer.requested
        with pytest.raises(Stop), catch_interrupt():
            raise Stop
        assert signal.getsignal(signal.SIGINT) == before
    finally:
        signal.signal(signal.SIGINT, kept)


def test_training_works_beside_the_main_thread(handler):
    """Only the main thread may say what signals do: elsewhere they stay as they are."""
    results = []

    def work():
        _, run = with_adamw()
        results.append(run())
        with catch_interrupt() as beside:
            results.append(beside.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [results[0].stopped, results[1]] == ["finished", False]
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_real_interrupt_from_outside(tmp_path):
    """As Ctrl-C in a terminal: another process sends SIGINT."""
    script = """
        import sys
        import torch
        from helpers.gpt import GPT, GPTConfig
        from helpers.runs.trainer import Trainer

        torch.manual_seed(0)
        data = torch.randint(7, (400,))
        model = GPT(GPTConfig(7, 6, n_layer=1, n_head=2, n_embd=8))

        class Spoken(Trainer):
            def evaluate(self):
                super().evaluate()
                print("evaluated", self.run.step, flush=True)

        run = Spoken(model, data, steps=10**6, block_size=6, batch_size=4,
                      optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
                      eval_data=data[:50], eval_interval=20, folder=sys.argv[1]).fit()
        print(run.stopped, run.step, bool(model(data[None, :6]).isfinite().all()))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), tmp_path]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in process.stdout:
            if line.startswith("evaluated 40"):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0 and err == ""
    stopped, steps, usable = out.splitlines()[-1].split()
    assert stopped == "interrupted" and usable == "True"
    _, about = read_tensors(tmp_path / "last.safetensors")
    assert len(about["run"]["losses"]) == int(steps) >= 40
    assert load_checkpoint(tmp_path / "best").notes["step"] <= int(steps)


# --- the line of progress, and a run's words ------------------------------------------------------


def test_progress_in_a_notebook_is_one_line_of_a_stream(tmp_path):
    source = """
        import torch
        from helpers.runs.trainer import Trainer
        model = torch.nn.Embedding(7, 7)
        run = Trainer(model, torch.arange(100) % 7, steps=30, block_size=6, batch_size=4,
                optimizer=torch.optim.Adam(model.parameters()), progress=True).fit()
    """
    notebook = v4.new_notebook(cells=[v4.new_code_cell(textwrap.dedent(source))])
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    nbformat.validate(notebook)
    outputs = notebook.cells[0].outputs
    assert {output.output_type for output in outputs} == {"stream"}  # no widget
    assert {output.name for output in outputs} == {"stdout"}
    text = "".join(output.text for output in outputs)
    assert text.count("\n") == 1 and text.endswith("\n")
    assert "30/30" in text.rstrip("\n").split("\r")[-1]


def test_a_run_speaks_for_itself():
    run = Run([2.0, 1.5], [(0, 0.0, 2.5), (2, 3.4, 1.75)], 3.4)
    assert (run.step, run.best) == (2, 1.75)
    assert repr(run) == "Run(2 steps in 3 s, best validation loss 1.750, finished)"
    assert (Run().step, Run().best) == (0, math.inf)
