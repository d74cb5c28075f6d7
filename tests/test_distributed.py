"""Several processes that train one model: the losses of one, files that pass between them."""

from functools import partial
from subprocess import TimeoutExpired

import numpy as np
import pytest
import torch
from processes import (
    MAKERS,
    fast,
    seeded_otherwise,
    silenced,
    sums,
    together,
    trained,
    written,
)

from helpers.formats.checkpoints import load_checkpoint, read_tensors
from helpers.runs.distributed import STRATEGIES, clip_gradients, launch

close = partial(torch.testing.assert_close, rtol=2e-5, atol=0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", MAKERS)
def test_two_processes_have_the_losses_of_one_with_the_joint_batch(kind, strategy):
    parts = {"plain": 2, "fast": 1}[kind]  # micro-batches, whose gradients add up
    alone = trained(kind, "ddp")
    first, second = together(trained, kind, strategy, None, None, 4, 1, parts)
    assert first[:2] == second[:2]
    close(first[0], alone[0])
    close(first[1], alone[1])
    for name, weight in alone[2].items():
        np.testing.assert_allclose(first[2][name], weight, rtol=0, atol=2e-4)
    assert (first[3] < 0.8 * alone[3]) == (strategy != "ddp")


@pytest.mark.parametrize(("kind", "strategy"), [("plain", "fsdp"), ("fast", "tp")])
def test_a_run_passes_from_one_process_to_two_and_back(kind, strategy, tmp_path):
    trained(kind, "ddp", tmp_path, crash=3)
    together(trained, kind, strategy, tmp_path, 6)
    passed = trained(kind, "ddp", tmp_path)
    close(passed[0], trained(kind, "ddp")[0])
    assert len(passed[0]) == 9
    tensors, _ = read_tensors(tmp_path / "best" / "model.safetensors")
    assert {name: t.shape for name, t in tensors.items()} == {
        name: p.shape for name, p in passed[2].items()
    }


def test_what_is_divided_is_written_whole(tmp_path):
    together(written, tmp_path / "model")
    model = load_checkpoint(tmp_path / "model").model
    torch.manual_seed(0)
    pairs = zip(model.parameters(), fast().parameters(), strict=True)
    assert all(torch.equal(theirs, mine) for theirs, mine in pairs)


def test_dropout_differs_where_rows_do():
    (kept, first), (_, second) = together(silenced, "ddp")
    assert kept and first != second  # the first goes on as if it were alone
    (_, first), (_, second) = together(silenced, "tp")
    assert first == second


def test_tensor_parallel_sums_four_times_a_block():
    assert together(sums, "tp") == [4, 4]


def test_processes_that_were_given_different_seeds_are_told():
    for answer in together(seeded_otherwise):
        assert "the processes were given different settings, by rank" in answer


def test_gradients_are_clipped_as_torch_clips_them():
    torch.manual_seed(0)
    gradients = [torch.randn_like(p) for p in fast().parameters()]
    found = []
    for clip in (clip_gradients, torch.nn.utils.clip_grad_norm_):
        model = fast()
        for p, gradient in zip(model.parameters(), gradients, strict=True):
            p.grad = gradient.clone()
        clip(model.parameters(), 0.7)
        found.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*found)


def started(folder, text, *arguments):
    """What two processes print that run this text, written to a file."""
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    return launch(script, *arguments)


SCRIPT = """
import os, signal, sys
import torch
torch.cuda.device_count = lambda: len(os.environ.get("CUDA_VISIBLE_DEVICES", "01"))
from only_here import WORDS
from helpers.runs.distributed import Processes, first_process
from helpers.runs.trainer import Trainer
from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
data = torch.arange(2000) % 11
killed, *folders = sys.argv[1:]
with Processes.started() as processes:
    said = WORDS, processes.device, processes.any(processes.rank == 1)
    class Killed(Trainer):
        def evaluate(self):
            super().evaluate()
            if self.run.step == int(killed) and processes.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
    for folder in folders:
        torch.manual_seed(0)
        model = fast_gpt(11, 8, n_layer=1, n_head=2, n_embd=16)
        run = Killed(model, data, steps=20, block_size=8, batch_size=4, folder=folder,
                      optimizer=fast_optimizers(model), generator=torch.Generator().manual_seed(0),
                      eval_data=data[:100], eval_interval=5, eval_iters=1,
                      processes=processes).fit(resume=True)
        if first_process():
            print(*said, *run.losses, sep="|")
"""


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """As in Colab, on a machine with two GPUs whose own name leads nowhere, with Windows' encoding;
    the numbers are the CPU's, as on every machine."""
    nowhere = "socket.getfqdn = socket.gethostname = lambda *_: 'nowhere.invalid'"
    (tmp_path / "sitecustomize.py").write_text(f"import socket\n{nowhere}\n")
    (tmp_path / "only_here.py").write_text("WORDS = 'é → 😀'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")


@pytest.mark.usefixtures("elsewhere")
def test_a_killed_process_ends_the_others_and_the_run_goes_on_wherever_here_is(tmp_path):
    def run(*folders, killed=-1):
        return started(tmp_path, SCRIPT, str(killed), *(str(tmp_path / name) for name in folders))

    with pytest.raises(RuntimeError, match="SIGKILL"):
        run("killed", killed=10)
    assert (tmp_path / "killed").exists()
    went_on, undisturbed = run("killed", "undisturbed").splitlines()
    assert went_on == undisturbed and went_on.startswith("é → 😀|cpu|True|")
    assert went_on.count("|") == 22


def test_processes_that_do_not_end_are_stopped_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("helpers.runs.distributed.MINUTES", 0.02)
    with pytest.raises(TimeoutExpired, match="timed out"):
        started(tmp_path, "import time; time.sleep(99)")
