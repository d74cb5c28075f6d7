"""Train a small GPT on Shakespeare's plays in one or several processes.

    torchrun --standalone --nproc-per-node 2 train_distributed.py by_hand ddp fsdp

Each of the named ways trains the same initial model on the same batches. Process 0 prints a line
per way: its name, how many bytes of parameters, gradients and optimizer states process 0 holds, and
the losses.
"""

import sys

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
    text = data.shakespeare("train")
    ids = torch.tensor(CharTokenizer.from_text(text).encode(text[:200_000]))
    for way in sys.argv[1:]:
        train(way, ids)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
