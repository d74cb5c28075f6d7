"""Train the model of chapters 09 and 10, `data/checkpoints/shakespeare-gpt.safetensors`.

    python tools/train_shakespeare.py [--steps 1700] [--folder runs/shakespeare]

An interrupted run is taken up again by the same command. The log (steps, seconds, tokens, losses,
the machine) is written beside the checkpoint. The shipped one was trained in 74 minutes of steps,
with one thread beside other work.
"""

import argparse
import json
import os
import platform
from functools import partial
from pathlib import Path

import torch

from helpers import data
from helpers.checkpoints import load_checkpoint, save_checkpoint
from helpers.recipes import fast_gpt, fast_optimisers, hold_then_fall
from helpers.text import CharTokenizer
from helpers.training import estimate_loss, train

ROOT = Path(__file__).resolve().parent.parent
CHECKPOINT = ROOT / "data" / "checkpoints" / "shakespeare-gpt.safetensors"
BLOCK, BATCH, LAYERS, HEADS, WIDTH = 256, 16, 5, 4, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "shakespeare")
    parser.add_argument("--output", type=Path, default=CHECKPOINT)
    arguments = parser.parse_args()

    tokenizer = CharTokenizer.from_text(data.shakespeare())
    ids = torch.tensor(tokenizer.encode(data.shakespeare("train")))
    validation = torch.tensor(tokenizer.encode(data.shakespeare("validation")))
    torch.manual_seed(0)
    model = fast_gpt(tokenizer.vocab_size, BLOCK, LAYERS, HEADS, WIDTH)
    run = train(
        model,
        ids,
        steps=arguments.steps,
        block_size=BLOCK,
        batch_size=BATCH,
        optimisers=fast_optimisers(model, other_rate=0.005),
        schedule=partial(hold_then_fall, warmup=20, fall=0.45),
        bf16=True,
        generator=torch.Generator().manual_seed(0),
        validation=validation,
        evaluate_every=100,
        validation_batches=8,
        folder=arguments.folder,
        resume=True,
        progress=True,
    )
    print(run)
    if run.stopped == "interrupted":
        return

    log = {
        "what": "fast_gpt on Shakespeare; losses in nats a character",
        "machine": f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"{platform.machine()}, torch {torch.__version__}",
        "parameters": model.n_parameters(),
        "batch": [BATCH, BLOCK],
        "steps": run.step,
        "seconds": round(run.seconds, 1),
        "tokens": run.step * BATCH * BLOCK,
        "training_losses": [round(loss, 4) for loss in run.losses],
        "evaluations": [[s, round(t, 1), round(loss, 4)] for s, t, loss in run.evaluations],
    }
    notes = {name: log[name] for name in ("what", "steps", "seconds", "tokens")}
    save_checkpoint(arguments.output, model, tokenizer, notes, dtype=torch.float16)
    saved = load_checkpoint(arguments.output).model  # as it will be used: rounded to 16 bits
    log["validation_loss"] = round(estimate_loss(saved, validation, block_size=BLOCK), 4)
    arguments.output.with_suffix(".json").write_text(json.dumps(log) + "\n", encoding="utf-8")
    print(f"validation loss {log['validation_loss']:.4f} on the whole validation text")


if __name__ == "__main__":
    main()
