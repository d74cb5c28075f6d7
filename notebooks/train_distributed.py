"""Train a small GPT on Shakespeare's plays in one or several processes.

    torchrun --standalone --nproc-per-node 2 train_distributed.py by_hand ddp fsdp count

Each of the named ways trains the same initial model on the same batches. Process 0 prints a line
per way: its name, how many bytes of parameters, gradients and optimizer states process 0 holds, and
the losses. The word count prints how often each process sends a tensor for one all_reduce, and the
seconds.
"""

import sys
import time
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from helpers import data
from helpers.gpt import GPT, GPTConfig
from helpers.runs.distributed import bytes_held
from helpers.text import CharTokenizer
from helpers.training import get_batch, language_model_loss


def shard(model):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)  # the parameters outside the blocks


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)  # now every process holds the sum
        p.grad /= dist.get_world_size()


def train(way, ids, steps=12):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same initial weights in every process
    model = GPT(GPTConfig(69, block_size=64, n_layer=2, n_head=4, n_embd=128))
    if way == "ddp":
        model = DistributedDataParallel(model)
    if way == "fsdp":
        shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0005)
    generator = torch.Generator().manual_seed(0)  # the same batches in every process
    losses = []
    for _ in range(steps):
        x, y = get_batch(ids, 64, 16, generator)
        x, y = x[rank::world_size], y[rank::world_size]  # this process's rows
        loss = language_model_loss(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        if way == "by_hand":
            average_gradients(model)
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(total.item() / world_size)
    if rank == 0:
        print(way, bytes_held(model, [optimizer]), *losses)


def main():
    dist.init_process_group("gloo")  # gloo connects CPUs; for GPUs it would be "nccl"
    for way in sys.argv[1:]:
        count() if way == "count" else train(way, plays())
    dist.destroy_process_group()


@cache
def plays():
    text = data.shakespeare("train")
    return torch.tensor(CharTokenizer.from_text(text).encode(text[:200_000]))


def loopback_bytes():
    """Bytes that the processes of this machine have sent each other, if Linux counts them."""
    counters = Path("/proc/net/dev")
    words = counters.read_text().split() if counters.exists() else []
    return float(words[words.index("lo:") + 9]) if "lo:" in words else float("nan")


def count():
    tensor = torch.ones(10_000_000)
    for _ in range(2):  # the first time, the processes have yet to connect
        dist.barrier()
        before, start = loopback_bytes(), time.perf_counter()
        dist.barrier()
        dist.all_reduce(tensor)
        seconds = time.perf_counter() - start
        dist.barrier()
    sent = (loopback_bytes() - before) / dist.get_world_size()  # by each process
    if dist.get_rank() == 0:
        print("count", sent / tensor.nbytes, seconds)


if __name__ == "__main__":
    main()
