"""Work for several processes, and a way to have it done: imported anew by each, so little else."""

import importlib.util
import multiprocessing
import os
import runpy
import signal
import sys
import traceback
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist

from helpers.formats.checkpoints import save_checkpoint
from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.optimizers import adamw, fast_optimizers
from helpers.runs.distributed import Processes, full_tensor
from helpers.runs.trainer import Trainer
from helpers.text import CharTokenizer
from helpers.training import language_model_loss, wsd_schedule

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same numbers on every machine

DATA = torch.randint(11, (2000,), generator=torch.Generator().manual_seed(0)).cumsum(0) % 11

SIZES = dict(vocab_size=11, block_size=8, n_layer=2, n_head=2, n_embd=16)

CONTEXT = multiprocessing.get_context("forkserver")

CONTEXT.set_forkserver_preload(
    [
        "helpers.runs.trainer",
        "torch._dynamo",  # which each optimizer would import
        "torch.distributed.fsdp",
        "torch.distributed.tensor.parallel",
    ]
)


def _child(rank, number, port, work, arguments, results):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(number),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      TORCHELASTIC_USE_AGENT_STORE="True",
                      TORCHELASTIC_RESTART_COUNT="0")  # fmt: skip
    torch.set_num_threads(1)
    try:
        results.put((rank, work(*arguments)))
    except Exception as error:
        results.put((rank, f"{type(error).__name__}: {error}"))
        traceback.print_exc()
        results.close()
        results.join_thread()
        os._exit(1)  # the others may wait for this one


def together(work, *arguments, number=2):
    """What each of the processes, which know each other as torchrun's do, gives, by rank."""
    # As in torchrun, they meet at a port that is open already, so that no other program takes it.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    results = CONTEXT.Queue()
    children = [
        CONTEXT.Process(target=_child, args=(rank, number, store.port, work, arguments, results))
        for rank in range(number)
    ]
    for child in children:
        child.start()
    try:
        answers = dict(results.get(timeout=600) for _ in children)
    finally:
        for child in children:
            child.join(10)
            child.kill()
    return [answers[rank] for rank in range(number)]


def plain(**settings):
    return GPT(GPTConfig(**{**SIZES, "mlp": "SwiGLU", "hidden": 24, **settings}))


def fast():
    return fast_gpt(**SIZES)


MAKERS = {
    "plain": (plain, lambda model: [adamw(model, 0.01)]),
    "fast": (fast, fast_optimizers),
}


def _alone(folder, name, arguments):
    os.chdir(folder)
    said = os.open("said.txt", os.O_CREAT | os.O_WRONLY)
    os.dup2(said, 1), os.dup2(said, 2)
    sys.stdout.reconfigure(encoding="utf-8")
    torch.set_num_threads(1)
    sys.argv = [name, *arguments]
    sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder)]
    sys.path = [p for p in sys.path if p and not (Path(p) / "helpers" / "__init__.py").exists()]
    for module in [*sys.modules]:
        if module.partition(".")[0] in ("helpers", "exercises", "explorers", "studies", "tests"):
            del sys.modules[module]
    assert importlib.util.find_spec("helpers") is None, "the course is here: it would test nothing"
    runpy.run_path(name, run_name="__main__")


def run_alone(folder, name, *arguments):
    """What a program says that runs in its folder, where PyTorch is and the course is not."""
    child = CONTEXT.Process(target=_alone, args=(folder, name, arguments))
    child.start()
    child.join()
    said = (folder / "said.txt").read_text("utf-8")
    assert child.exitcode == 0, said
    return said


def saved_until_killed(path, call):
    """Save a model, but be killed at that call of those which flush, move or rename a file."""
    left = [call]

    def killed_at_last(function):
        def wrapped(*given):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given)

        return wrapped

    os.fsync = killed_at_last(os.fsync)
    Path.rename, Path.replace = killed_at_last(Path.rename), killed_at_last(Path.replace)
    torch.manual_seed(1)
    save_checkpoint(path, GPT(GPTConfig(4, 9, 1, 1, 4)), CharTokenizer("wxyz"), {"new": True})


class Stop(Exception):
    """Ends a run from within, as a crash would."""


# bfloat16 would round each way of sharing otherwise, by more than is allowed between them.
@patch("helpers.runs.trainer.has_bf16", lambda device: False)
@patch("helpers.optimizers.has_bf16", lambda device: False)
def trained(kind, strategy, folder=None, crash=None, batch_size=4, seed=1, parts=1):
    """Losses, evaluations, whole weights, and how many numbers of them this process holds."""
    make, optimizers = MAKERS[kind]

    class Crashing(Trainer):
        def evaluate(self):
            super().evaluate()
            if self.run.step == crash:
                raise Stop

    with Processes.started() as started:
        processes = started.with_strategy(strategy)
        torch.manual_seed(0)
        model = make()
        processes.parallelize(model)
        arguments = dict(
            steps=9, block_size=8, batch_size=batch_size, optimizer=optimizers(model),
            grad_clip=0.5, accumulation_steps=parts,
            schedule=partial(wsd_schedule, warmup=2), processes=processes,
            generator=torch.Generator().manual_seed(seed), folder=folder,
            eval_data=DATA[:200], eval_interval=3, eval_iters=2,
        )  # fmt: skip
        trainer = Crashing(model, DATA, **arguments)
        if crash is not None:
            try:
                trainer.fit(resume=folder is not None)
            except Stop:
                return None
        run = trainer.fit(resume=folder is not None)
        weights = {name: full_tensor(p.detach()).numpy() for name, p in model.named_parameters()}
        mine = [p.to_local() if hasattr(p, "to_local") else p for p in model.parameters()]
        evaluations = [loss for _, _, loss in run.evaluations]
        return run.losses, evaluations, weights, sum(p.numel() for p in mine)


def written(path):
    with Processes.started() as processes:
        torch.manual_seed(0)
        model = fast()
        processes.with_strategy("fsdp").parallelize(model)
        save_checkpoint(path, model)


def silenced(strategy):
    """Where dropout leaves nothing, at this process's first call."""
    with Processes.started() as processes:
        torch.manual_seed(0)
        before = torch.get_rng_state()
        processes.with_strategy(strategy).seed_dropout()
        same = torch.equal(before, torch.get_rng_state())
        return same, torch.nn.functional.dropout(torch.ones(100)).eq(0).tolist()


def seeded_otherwise():
    return trained("plain", "ddp", seed=int(os.environ["RANK"]))


def sums(strategy):
    """How often one step adds up a tensor over all processes, for each block."""
    from torch.distributed.tensor.debug import CommDebugMode

    with Processes.started() as processes:
        model = plain()
        processes.with_strategy(strategy).parallelize(model)
        with CommDebugMode() as seen:
            language_model_loss(model, DATA[None, :8], DATA[None, 1:9]).backward()
        assert set(seen.get_comm_counts()) == {torch.ops.c10d_functional.all_reduce}
        return seen.get_total_counts() / SIZES["n_layer"]
