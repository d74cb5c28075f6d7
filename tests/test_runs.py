"""helpers.runs.trainer: runs that stop, are stopped, fail, and are resumed."""

import math
import os
import shutil
import signal
import threading
from types import SimpleNamespace

import pytest
import torch
from conftest import generator
from torch import nn

from helpers.formats.checkpoints import load_checkpoint, read_tensors, write_tensors
from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import adamw, fast_optimizers
from helpers.runs.trainer import Trainer, catch_interrupt
from helpers.training import cosine_schedule, estimate_loss

DATA = torch.randint(7, (400,), generator=generator(0))
VALIDATION = torch.randint(7, (60,), generator=generator(1))
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


def plain(seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 7, "block_size": 6, "n_layer": 1, "n_head": 2, "n_embd": 8}
    return GPT(GPTConfig(**{**sizes, "dropout": 0.2, **settings}))


def fast():
    torch.manual_seed(0)
    return fast_gpt(7, 6, n_layer=1, n_head=2, n_embd=8)


class Normed(nn.Module):
    """No GPT, and not all that it learns are parameters."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(7, 7), nn.BatchNorm1d(7)

    def forward(self, ids):
        return self.norm(self.table(ids).transpose(1, 2)).transpose(1, 2)


def sgd(momentum):
    return lambda model: [torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)]


def maker(model, optimizer, **recipe):
    """A function that makes a model, and a call of fit that it is given to."""

    def make(**settings):
        torch.manual_seed(0)
        made = model()

        def run(**more):
            given = {**SIZES, "steps": 12, **recipe, **settings, **more}
            return fit(made, DATA, optimizer=optimizer(made), **given)

        return made, run

    return make


with_adamw = maker(plain, lambda m: adamw(m, 0.01), grad_clip=1.0, schedule=cosine_schedule)

MAKERS = {
    "AdamW": with_adamw,
    "Muon and AdamW": maker(fast, fast_optimizers, schedule=cosine_schedule),
    "SGD, which remembers nothing": maker(plain, sgd(0.0)),
    "SGD with momentum": maker(plain, sgd(0.9)),
    "buffers": maker(Normed, lambda m: torch.optim.Adam(m.parameters(), lr=0.1)),
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


def as_a_graph_does(work, x, y):
    """`captured` without a GPU: some steps to warm up, then always the same tensors."""
    x, y, result = x.clone(), y.clone(), torch.zeros(())
    random = torch.get_rng_state()
    for _ in range(3):
        work(x, y)
    torch.set_rng_state(random)

    def replay(new_x, new_y):
        x.copy_(new_x)
        y.copy_(new_y)
        return result.copy_(work(x, y))

    return replay


@pytest.mark.parametrize("make", [plain, fast])
def test_a_step_as_a_graph_is_the_same_step(make, monkeypatch):
    def train(execution):
        trainer = Trainer(
            model := make(), DATA, steps=130, optimizer=fast_optimizers(model), grad_clip=1.0,
            generator=generator(), accumulation_steps=2, eval_data=VALIDATION, eval_interval=50,
            execution=execution, **SIZES,
        )  # fmt: skip
        if execution == "graph":
            trainer.device = SimpleNamespace(type="cuda")
        return trainer.fit()

    monkeypatch.setattr("helpers.runs.trainer.captured", as_a_graph_does)
    one, other = train("eager"), train("graph")
    assert one.losses == other.losses
    assert [(s, loss) for s, _, loss in one.evaluations] == [
        (s, loss) for s, _, loss in other.evaluations
    ]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("execution", ["graph", "compiled"])
def test_on_a_gpu_a_step_as_a_graph_is_the_same_step(execution):
    def train(execution):
        model = fast().cuda()
        return Trainer(
            model, DATA, steps=130, optimizer=fast_optimizers(model), generator=generator(),
            execution=execution, **SIZES,
        ).fit().losses  # fmt: skip

    assert train(execution) == pytest.approx(train("eager"), rel=1e-3)


@pytest.mark.parametrize(
    ("make", "seeded", "crash"),
    [*((kind, True, 8) for kind in MAKERS), ("AdamW", False, 8), ("Muon and AdamW", False, 0)],
)
def test_a_run_that_crashed_goes_on_as_if_it_had_not(make, seeded, crash, tmp_path):
    """The same losses to the last bit, whether it crashed before the first step or later."""
    watch, make = evaluated(VALIDATION, every=4), MAKERS[make]
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
    other = generator(99)
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


# --- what is kept ---------------------------------------------------------------------------------


def test_the_best_is_the_best_even_if_it_is_from_before_a_crash(tmp_path):
    """The training text says little of the validation text: its loss falls first, then rises."""
    settings = {"folder": tmp_path, "steps": 200, **evaluated(VALIDATION, every=10)}
    _, run = with_adamw(**settings)
    with pytest.raises(Stop):
        run(generator=generator(), callback=crash_at(100))
    _, run = with_adamw(**settings)
    result = run(generator=generator(), resume=True)
    best_step, _, loss = min(result.evaluations, key=lambda e: e[2])
    assert 0 < best_step < 100, "the test wants a best that is not the last"
    best = load_checkpoint(tmp_path / "best")
    assert best.notes == {"step": best_step, "validation_loss": loss} and loss == result.best
    assert estimate_loss(best.model, VALIDATION, block_size=6) == loss
    assert sorted(os.listdir(tmp_path)) == ["best", "last.safetensors"]


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


# --- what cannot be resumed ----------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    _, run = with_adamw(folder=folder, steps=2, **evaluated(VALIDATION, every=1, iters=2))
    run(generator=generator())
    return folder


def refused(folder, model, message, data=DATA, **settings):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    last = (folder / "last.safetensors").read_bytes()
    random = torch.get_rng_state()
    same = {"steps": 2, "optimizer": adamw(model, 0.01), "generator": generator()}
    settings = {**same, **SIZES, "grad_clip": 1.0, "schedule": cosine_schedule, **settings}
    with pytest.raises(ValueError, match=message) as error:
        fit(model, data, folder=folder, resume=True, **settings)
    assert str(folder / "last.safetensors") in str(error.value)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (folder / "last.safetensors").read_bytes() == last
    assert torch.equal(torch.get_rng_state(), random)


def changed(**parts):
    """The model of another config, or one whose parameters were changed."""
    return lambda: (plain(**parts), {})


def with_settings(**settings):
    return lambda: (plain(), settings)


def stepped(make):
    return lambda: (model := plain(), {"optimizer": make(model)})


def frozen():
    model = plain()
    model.token.weight.requires_grad_(False)
    return model, {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (with_settings(block_size=5), "block_size was 6, is 5"),
        (with_settings(batch_size=8), "batch_size was 4, is 8"),
        (with_settings(generator=None), "generator was True, is False"),
        (with_settings(grad_clip=None), r"grad_clip was 1\.0, is None"),
        (with_settings(bf16=True), "bf16 was False, is True"),
        (with_settings(steps=4), r"schedule .* was \['1', '0\.55'\], is"),
        (with_settings(data=DATA.flip(0)), r"text was \d+, is \d+.* another folder"),
        (with_settings(**evaluated(VALIDATION.flip(0), 1)), r"validation was \[\d+, 2\], is"),
        (with_settings(**evaluated(VALIDATION, 1, 3)), r"validation was .*, is \[\d+, 3\]"),
        (changed(n_head=4), r"model\.n_head was 2, is 4"),  # though its weights would fit
        (lambda: (plain().double(), {}), "dtypes was .*float32.*, is .*float64"),
        (frozen, r"frozen was \[\], is \['token.weight'\]"),
        (lambda: (nn.Sequential(nn.Embedding(7, 7)), {}), "model was GPT, is Sequential"),
        (stepped(lambda m: torch.optim.SGD(m.parameters(), lr=0.1)), r"is \['SGD'\]"),
        (stepped(lambda m: torch.optim.AdamW(m.parameters(), lr=0.1)), "group 0, .* was"),
        (stepped(lambda m: adamw(m, 0.02)), "group 0, lr was 0.01, is 0.02"),
        (stepped(lambda m: adamw(m, 0.01, betas=(0.8, 0.95))), r"betas was \(0.9, 0.95\), is"),
    ],
)
def test_a_run_of_other_settings_is_not_continued(finished, make, message):
    model, settings = make()
    refused(finished, model, message, **settings)


def test_a_damaged_state_is_refused(finished, tmp_path):
    last, good = tmp_path / "last.safetensors", finished / "last.safetensors"
    last.write_bytes(good.read_bytes()[:-100])
    refused(tmp_path, plain(), "not a whole safetensors file")
    tensors, about = read_tensors(good)
    del tensors["model/norm.weight"]
    write_tensors(last, tensors, about)
    refused(tmp_path, plain(), "lacks 1 weights")
    model, run = with_adamw(**evaluated(VALIDATION), folder=tmp_path / "other", steps=1)
    run()
    shutil.copy(tmp_path / "other" / "best" / "model.safetensors", last)
    refused(tmp_path, model, "is not the state of a training run")


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


# --- interrupts -----------------------------------------------------------------------------------


def interrupt(*steps):
    def then(run):
        for _ in range(steps.count(run.step)):
            signal.raise_signal(signal.SIGINT)

    return then


def test_an_interrupt_ends_the_run_in_good_order(tmp_path):
    watch = evaluated(VALIDATION, every=4)
    model, run = with_adamw(**watch, folder=tmp_path)
    result = run(generator=generator(), **evaluated(VALIDATION, every=4, callback=interrupt(4)))
    assert (result.stopped, result.step) == ("interrupted", 5)  # the step in hand is finished
    assert "interrupted" in repr(result)
    assert estimate_loss(model, VALIDATION, block_size=6) < 3  # the model can be used

    second, run = with_adamw(**watch, folder=tmp_path, resume=True)
    assert run(generator=generator()).losses[:5] == result.losses
    whole, run = with_adamw(**watch)
    run(generator=generator())
    assert same_weights(second, whole)


def test_a_second_interrupt_ends_it_at_once(tmp_path):
    _, run = with_adamw(**evaluated(VALIDATION, every=4), folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(generator=generator(), **evaluated(VALIDATION, every=4, callback=interrupt(4, 4)))
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


def test_training_works_beside_the_main_thread():
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
