"""Two processes against one, one thread each: tokens a second of GPTMini's training step.

    .venv/bin/python tools/benchmarks/distributed.py            three rounds, 8 steps each
    .venv/bin/python tools/benchmarks/distributed.py --rounds 5

The batch is the same, 16 windows of 256; two processes take 8 rows each. What each holds is counted
from its tensors. Rounds take turns, so that whatever else the machine does meets all alike.
"""

import argparse
import os
from statistics import median

import torch

from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.runs.distributed import STRATEGIES, Processes, bytes_held, launch
from helpers.runs.trainer import Trainer


def measure(strategy: str, steps: int) -> None:
    """In one of the processes: train, and print the seconds of a step, megabytes, and the loss."""
    torch.set_num_threads(1)
    ids = torch.randint(2048, (20_000,), generator=torch.Generator().manual_seed(0))
    with Processes.started() as started:
        processes = started.with_strategy(strategy)
        torch.manual_seed(0)
        model = fast_gpt(2048, 256, n_layer=6, n_head=4, n_embd=256, convolution=None)
        processes.parallelize(model)
        optimizers = fast_optimizers(model)
        seconds = []
        for _ in range(steps):
            generator = torch.Generator().manual_seed(0)
            run = Trainer(
                model, ids, steps=1, block_size=256, batch_size=16, optimizer=optimizers,
                generator=generator, processes=processes,
            ).fit()  # fmt: skip
            seconds.append(run.seconds)
        held = bytes_held(model, optimizers) / 1e6
        if processes.rank == 0:
            print(median(seconds), held, run.losses[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--strategy", choices=STRATEGIES, help="of the processes of this program")
    given = parser.parse_args()
    if "RANK" in os.environ:  # this is one of the processes that the benchmark has started
        measure(given.strategy, given.steps)
        return
    arms = [("ddp", 1), *((strategy, 2) for strategy in STRATEGIES)]
    seconds: dict[tuple[str, int], list[float]] = {arm: [] for arm in arms}
    for _ in range(given.rounds):
        for arm in arms:
            way, number = arm
            options = f"--strategy={way}", f"--steps={given.steps}"
            printed = launch(__file__, *options, processes=number)
            step, held, loss = map(float, printed.split())
            seconds[arm].append(step)
            print(f"{number} {way:8} {4096 / step:6.0f} tokens/s, {held:.1f} MB, loss {loss:.5f}")
    alone = seconds["ddp", 1]
    for (way, number), steps in seconds.items():
        print(f"{number} {way:8}: {median(alone) / median(steps):.2f} × one process")


if __name__ == "__main__":
    main()
