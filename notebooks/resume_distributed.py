"""Train with the course's Trainer in one or several processes, and resume saved runs.

    torchrun --standalone --nproc-per-node 2 resume_distributed.py FOLDER tp:12 fsdp:12

For each STRATEGY:STEPS, begin the run in FOLDER/STRATEGY, or resume it, and train until it has
taken STEPS steps. Process 0 prints a line per run: the strategy, how many bytes of parameters,
gradients and optimizer states process 0 holds, and the losses.
"""

import sys
from pathlib import Path

import torch

from helpers import data
from helpers.gpt import GPT, GPTConfig
from helpers.runs.distributed import Processes, bytes_held
from helpers.runs.trainer import Trainer
from helpers.text import CharTokenizer


def train(processes, strategy, ids, steps, folder):
    torch.manual_seed(0)
    model = GPT(GPTConfig(69, block_size=64, n_layer=2, n_head=4, n_embd=128))
    sharing = processes.with_strategy(strategy)  # "ddp", "fsdp" or "tp"
    sharing.parallelize(model)  # divides the weights
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0005)
    trainer = Trainer(
        model,
        ids,
        steps=steps,
        block_size=64,
        batch_size=16,
        optimizer=optimizer,
        generator=torch.Generator().manual_seed(0),
        folder=folder,
        processes=sharing,
    )
    run = trainer.fit(resume=True)
    return bytes_held(model, [optimizer]), run.losses


def main():
    folder, *jobs = sys.argv[1:]
    text = data.shakespeare("train")
    ids = torch.tensor(CharTokenizer.from_text(text).encode(text[:200_000]))
    with Processes.started() as processes:  # connects the processes that torchrun has started
        for job in jobs:
            strategy, steps = job.split(":")
            held, losses = train(processes, strategy, ids, int(steps), Path(folder, strategy))
            if processes.rank == 0:
                print(strategy, held, *losses)


if __name__ == "__main__":
    main()
