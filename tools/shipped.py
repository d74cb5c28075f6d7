"""Train the models that are shipped in data/checkpoints/.

    python tools/shipped.py shakespeare-gpt      the plays, character by character
    python tools/shipped.py gptmini              articles of Wikipedia, in byte pairs

An interrupted run is taken up again by the same command. The log (steps, seconds, tokens, losses,
the machine) is written beside the checkpoint's folder. Several processes share the work under
torchrun and resume each other's runs, whatever their number:

    torchrun --standalone --nproc-per-node=2 tools/shipped.py gptmini
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from helpers import data
from helpers.data import sources
from helpers.formats.checkpoints import load_checkpoint, save_checkpoint
from helpers.formats.files import write_whole
from helpers.gpt import GPT, fast_gpt
from helpers.kernels import keep_freed_memory
from helpers.optimizers import fast_optimizers
from helpers.runs.distributed import STRATEGIES, Processes, first_process
from helpers.text import BPETokenizer, CharTokenizer, encode_documents
from helpers.text.bpe import END
from helpers.training import estimate_loss, wsd_schedule

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from train import Shown  # noqa: E402

BATCH = 16
# What is shipped does without short convolutions, because the chapter on the KV cache keeps what
# attention needs of the past and nothing else, and without LayerNorm, which explorers/gpt.js does
# not compute.
PARTS: dict[str, Any] = dict(norm="RMSNorm", convolution=None)


@dataclass
class Recipe:
    """Everything that decides a run: steps of BATCH rows, whose length is the model's window."""

    what: str
    tokenizer: CharTokenizer | BPETokenizer
    training: Tensor
    validation: Tensor
    model: GPT
    optimizers: Callable[[GPT], list[Optimizer]]
    steps: int
    decay_frac: float


def shakespeare_gpt() -> Recipe:
    tokenizer = CharTokenizer.from_text(data.shakespeare())
    training, validation = (
        torch.tensor(tokenizer.encode(data.shakespeare(split))) for split in ("train", "validation")
    )
    model = fast_gpt(tokenizer.vocab_size, 256, n_layer=5, n_head=4, n_embd=256, **PARTS)
    # Without weight decay: one of 0.3 ended at 1.418, not 1.386 (docs/MEASURED.md).
    optimizers = partial(fast_optimizers, matrix_rate=0.03, other_rate=0.005, momentum=0.9)
    what = "fast_gpt on Shakespeare; losses in nats a character"
    return Recipe(
        what, tokenizer, training, validation, model, optimizers, steps=3300, decay_frac=0.45
    )


def gptmini() -> Recipe:
    # What articles the model reads, and what it will be asked to continue: a title, then a text.
    documents = {
        split: [f"{title}\n\n{text}" for title, text in data.wikipedia(split)]
        for split in ("train", "validation")
    }
    tokenizer = BPETokenizer.train(documents["train"], vocab_size=2048, special=[END])
    training, validation = (
        torch.tensor(encode_documents(tokenizer, documents[split])) for split in documents
    )
    # The training text is short and read many times: hence dropout and weight decay.
    model = fast_gpt(
        tokenizer.vocab_size, 256, n_layer=6, n_head=4, n_embd=256, dropout=0.2, **PARTS
    )
    optimizers = partial(
        fast_optimizers, matrix_rate=0.03, other_rate=0.005, weight_decay=0.1, momentum=0.9
    )
    what = "GPTMini on 86 articles of Wikipedia; losses in nats a token"
    return Recipe(
        what, tokenizer, training, validation, model, optimizers, steps=2000, decay_frac=0.6
    )


RECIPES: dict[str, Callable[[], Recipe]] = {
    "shakespeare-gpt": shakespeare_gpt,
    "gptmini": gptmini,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--steps", type=int, help="fewer or more than the recipe's")
    parser.add_argument("--folder", type=Path, help="of the run; runs/NAME if not given")
    parser.add_argument("--output", type=Path, help="folder; data/checkpoints/NAME if not given")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="ddp",
        help="how several processes divide the work",
    )
    given = parser.parse_args()
    with Processes.started() as processes:
        make(given, processes.with_strategy(given.strategy))


def make(given: argparse.Namespace, processes: Processes) -> None:
    """Train, save, and judge what was saved."""
    output = given.output or ROOT / "data" / "checkpoints" / given.name
    torch.manual_seed(0)
    recipe = RECIPES[given.name]()
    model, block_size = recipe.model, recipe.model.block_size
    processes.parallelize(model)
    keep_freed_memory()
    trainer = Shown(
        model,
        recipe.training,
        steps=recipe.steps if given.steps is None else given.steps,
        block_size=block_size,
        batch_size=BATCH,
        optimizer=recipe.optimizers(model),
        schedule=partial(wsd_schedule, warmup=20, decay_frac=recipe.decay_frac),
        bf16=True,
        generator=torch.Generator().manual_seed(0),
        eval_data=recipe.validation,
        eval_interval=100,
        eval_iters=8,
        tokenizer=recipe.tokenizer,
        folder=given.folder or ROOT / "runs" / given.name,
        progress=True,
        processes=processes,
    )
    run = trainer.fit(resume=True)
    if first_process():
        print(run)
    if run.stopped == "interrupted":
        return

    log = {
        "what": recipe.what,
        "machine": f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"{platform.machine()}, torch {torch.__version__}",
        "processes": processes.world_size,
        "parameters": model.n_parameters(),
        "batch": [BATCH, block_size],
        "steps": run.step,
        "seconds": round(run.seconds, 1),
        "tokens": run.step * BATCH * block_size,
        "training_losses": [round(loss, 4) for loss in run.losses],
        "evaluations": [[s, round(t, 1), round(loss, 4)] for s, t, loss in run.evaluations],
    }
    notes = {name: log[name] for name in ("what", "steps", "seconds", "tokens")}
    save_checkpoint(output, model, recipe.tokenizer, notes, dtype=torch.float16)
    if not first_process():
        return
    saved = load_checkpoint(output).model  # as it will be used: rounded to 16 bits
    log["validation_loss"] = round(
        estimate_loss(saved, recipe.validation, block_size=block_size), 4
    )
    write_whole(output.with_suffix(".json"), f"{json.dumps(log)}\n".encode())
    if not given.output:  # what is shipped is verified at every use
        for file in (output.with_suffix(".json"), *output.iterdir()):
            name = file.relative_to(output.parent).as_posix()
            sources.note(f"checkpoints/{name}", file.read_bytes())
    print(f"validation loss {log['validation_loss']:.4f} on the whole validation text")


if __name__ == "__main__":
    main()
