"""Several processes that train one model, each on a core, a GPU or a machine of its own.

`torchrun --nproc-per-node=2 script.py` runs a script in two processes, which know each other by the
environment that it gives them. What they send each other goes through `torch.distributed`, on CPUs
by gloo, on GPUs by nccl.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor, nn

from helpers.optimizers import Muon

STRATEGIES = ("ddp", "fsdp", "tp")
MINUTES = 10.0  # that `launch` waits for its processes


@dataclass(frozen=True)
class Processes:
    """The processes that train one model together: only this one, unless torchrun started more.

    The strategy says how they divide the work. "ddp": each has the whole model and a part of the
    batch's rows; gradients are averaged (Li et al. 2020, `DistributedDataParallel`). "fsdp": rows,
    weights, gradients and optimizer states are divided; the weights of a block are gathered when
    needed (Rajbhandari et al. 2020, "ZeRO"; `fully_shard`). "tp": the matrices in blocks are
    divided by heads and by hidden features, and all processes compute on the same batch (Shoeybi et
    al. 2019, "Megatron-LM"). Explained in: beyond_one_machine.
    """

    rank: int = 0  # the number of this process
    world_size: int = 1  # how many processes there are
    strategy: str = "ddp"  # or "fsdp" or "tp"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))  # of this process

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        """The processes that torchrun has started, connected in the `with` block (only one)."""
        gpus = torch.cuda.device_count()
        local = int(os.environ.get("LOCAL_RANK", "0"))
        apple = torch.backends.mps.is_available() and "RANK" not in os.environ
        device = torch.device("cuda", local) if gpus else torch.device("mps" if apple else "cpu")
        if local >= gpus > 0:
            raise RuntimeError(
                f"each process needs a GPU, and this machine has {gpus}: set CUDA_VISIBLE_DEVICES="
            )
        if "RANK" not in os.environ:
            yield cls(device=device)
            return
        if gpus:
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if gpus else "gloo", timeout=timedelta(minutes=5))
        try:
            yield cls(dist.get_rank(), dist.get_world_size(), device=device)
        finally:
            dist.destroy_process_group()

    def with_strategy(self, strategy: str) -> Self:
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy should be one of {STRATEGIES}, but is {strategy!r}")
        return replace(self, strategy=strategy)

    def parallelize(self, model: nn.Module) -> None:
        """Divide the weights of a GPT, the same in all processes, before optimizers are made."""
        model.to(self.device)
        if self.world_size == 1 or self.strategy == "ddp":
            return
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh(self.device.type, (self.world_size,))
        blocks: Any = model.blocks
        if self.strategy == "fsdp":
            from torch.distributed.fsdp import fully_shard

            for part in (*blocks, model):  # a block at a time is whole, and the rest
                fully_shard(part, mesh=mesh, reshard_after_forward=True)
            return
        import torch.distributed.tensor.parallel as tp
        from torch.distributed.tensor import Replicate

        # What several matrices read is given to them once: going backward, its gradients are
        # added up here first, and over the processes only then.
        whole = Replicate()
        whole_input = tp.PrepareModuleInput(input_layouts=whole, desired_input_layouts=whole)
        for block in blocks:
            heads, hidden = block.attention.n_kv_head, block.mlp.down.in_features
            if heads % self.world_size or hidden % self.world_size:
                parts = f"{heads} heads of keys and values and {hidden} hidden features"
                raise ValueError(f"{parts} cannot be divided evenly among {self.world_size}")
            plan: dict[str, tp.ParallelStyle] = {"attention": whole_input, "mlp": whole_input}
            for name, part in block.named_modules():
                if isinstance(part, nn.Linear):
                    last = name.endswith(("output", "down"))
                    plan[name] = tp.RowwiseParallel() if last else tp.ColwiseParallel()
            tp.parallelize_module(block, mesh, plan)

    def wrap_ddp(self, model: nn.Module) -> nn.Module:
        """The model to call in training: with "ddp", one that averages its gradients."""
        if self.world_size == 1 or self.strategy != "ddp":
            return model
        from torch.nn.parallel import DistributedDataParallel

        # It says so of dimensions of length 1, whose strides mean nothing.
        warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
        return DistributedDataParallel(model)

    def rows(self, batch: Tensor) -> Tensor:
        """This process's rows of a batch (B, …): every world_size-th, or all of them with "tp"."""
        if self.strategy == "tp":
            return batch
        if len(batch) % self.world_size:
            raise ValueError(f"{len(batch)} rows cannot be divided evenly among {self.world_size}")
        return batch[self.rank :: self.world_size]

    def mean(self, number: Tensor) -> Tensor:
        """The mean of the processes' numbers, in memory of its own."""
        total = number.detach().clone()
        if self.world_size > 1:
            dist.all_reduce(total)
        return total / self.world_size

    def any(self, mine: bool) -> bool:
        if self.world_size == 1:
            return mine
        return self.mean(torch.tensor(float(mine), device=self.device)).item() > 0

    def expect_same(self, **settings: int) -> None:
        """Raise ValueError unless the settings are the same in all processes."""
        given: list[Any] = [None] * self.world_size
        dist.all_gather_object(given, settings)
        if given != [settings] * self.world_size:
            raise ValueError(f"the processes were given different settings, by rank: {given}")

    def seed_dropout(self) -> None:
        """Seed dropout differently where rows differ; the first process goes on as if alone."""
        if self.rank and self.strategy != "tp":  # there all compute on the same rows
            torch.manual_seed(int(torch.randint(2**62, ())) + self.rank)


def full_tensor(tensor: Tensor) -> Tensor:
    """The whole of a tensor that may be divided among the processes; all must call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def shard_like(tensor: Tensor, pattern: Tensor) -> Tensor:
    """A tensor that all processes hold, divided among them as `pattern` is, if it is."""
    like: Any = pattern
    if not hasattr(like, "device_mesh"):
        return tensor
    from torch.distributed.tensor import distribute_tensor as distribute

    here = tensor.to(like.device)
    return distribute(here, like.device_mesh, like.placements, src_data_rank=None)


def own_part(tensor: Tensor) -> Tensor:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class ShardedMuon(Muon):
    """A `Muon` with the same steps, of which each process makes a part orthogonal."""

    def orthogonalize(self, directions: Tensor) -> Tensor:
        stack = full_tensor(directions)  # (n, rows, columns)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        done = torch.zeros_like(stack)
        if len(mine := stack[rank::world_size]):
            done[rank::world_size] = super().orthogonalize(mine)
        dist.all_reduce(done)  # all others' entries are 0 here
        return shard_like(done, directions)


def bytes_held(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> int:
    """Bytes of weights, gradients and optimizer states in the memory of this process."""
    tensors = [t for p in model.parameters() for t in (p, p.grad)]
    tensors += [t for o in optimizers for state in o.state.values() for t in state.values()]
    return sum(own_part(t).nbytes for t in tensors if isinstance(t, Tensor))


def first_process() -> bool:
    """Whether this process writes files and prints."""
    return not dist.is_initialized() or dist.get_rank() == 0


def clip_gradients(parameters: Iterable[nn.Parameter], length: float) -> None:
    """Clip the gradient to a norm of `length`, also where it is divided among processes."""
    # As `nn.utils.clip_grad_norm_`, which takes no mixture of divided and whole tensors.
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = torch.stack([full_tensor(g.norm()) for g in gradients]).norm()
    share = (length / (total + 1e-6)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(share)


def launch(script: str | Path, *arguments: str, processes: int = 2) -> str:
    """What a script prints when torchrun runs it in several processes, of which one should print.

    Each gets one thread and no GPU, so that the same is computed on every machine, and can import
    what can be imported here. RuntimeError if one fails; TimeoutExpired, with all of them ended, if
    they take longer than ten minutes. Explained in: beyond_one_machine.
    """
    # By address: the name of this machine may lead nowhere, and waiting for it takes minutes.
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr=127.0.0.1", f"--nproc-per-node={processes}", str(script), *arguments]
    path = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    here = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    environment = {**os.environ, **here, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace") as running:  # fmt: skip
        try:
            said, errors = running.communicate(timeout=MINUTES * 60)
        finally:
            running.terminate()  # torchrun then ends its processes; one that has ended stays so
    if running.returncode:
        raise RuntimeError(f"{processes} processes failed:\n{errors[-3000:]}")
    return said
