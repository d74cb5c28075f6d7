"""Train a GPT on a text of your own, and watch it learn to write.

    python train.py input.txt             the model, its curve and its state, in runs/input
    python train.py input.txt             again: goes on where Ctrl-C has stopped it
    python sample.py runs/input           what it writes
    torchrun --standalone --nproc-per-node=2 train.py input.txt      two processes or GPUs

The last tenth of the text is held out, to judge the model. Settings follow from the text's length.
"""

import shlex
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from helpers import plots
from helpers.gpt import fast_gpt
from helpers.kernels import keep_freed_memory
from helpers.optimizers import fast_optimizers
from helpers.runs.distributed import Processes, first_process
from helpers.runs.trainer import EXECUTIONS, Trainer
from helpers.sampling import generate
from helpers.text import BPETokenizer, CharTokenizer
from helpers.training import wsd_schedule


def defaults(characters: int) -> dict:
    """Settings for a text that two CPU cores train in minutes."""
    if characters < 300_000:  # vocab_size 0: one token per character
        passes, sizes = 8, dict(block_size=64, n_layer=4, n_embd=128, vocab_size=0, dropout=0.2)
    elif characters < 5_000_000:
        passes, sizes = 2, dict(block_size=128, n_layer=4, n_embd=192, vocab_size=0, dropout=0.0)
    else:
        passes, sizes = 1, dict(block_size=256, n_layer=6, n_embd=256, vocab_size=2048, dropout=0.0)
    steps = min(2000, max(100, passes * characters // int(24 * sizes["block_size"])))
    return sizes | dict(n_head=4, batch_size=24, accumulation_steps=1, steps=steps, seed=0)


def read(path: Path, encoding: str) -> str:
    try:
        text = path.read_text(encoding)
    except (UnicodeError, LookupError):
        raise ValueError(f"{path} is no text in {encoding}: try --encoding cp1252") from None
    if "\0" in text:
        raise ValueError(f"{path} is no text: it holds bytes of zero")
    return text


class Shown(Trainer):
    """A `Trainer` that shows at each evaluation what it has learned."""

    def evaluate(self) -> None:
        super().evaluate()
        start, draws = self.data[None, -16:], torch.Generator().manual_seed(0)
        (ids,) = generate(self.model, start, 200, temperature=0.8, top_p=0.95, generator=draws,
                          context_after_crop=self.block_size // 2)  # fmt: skip
        if first_process():
            steps, seconds, losses = zip(*self.run.evaluations, strict=True)
            now = f"step {steps[-1]}, {seconds[-1]:.0f} s, validation loss {losses[-1]:.3f}"
            tqdm.write(f"\n--- {now} ---\n{self.tokenizer.decode(ids)}")
            picture = plots.curves({"training": self.run.losses, "validation": (steps, losses)},
                                   now, xlabel="step", ylabel="loss (nats)")  # fmt: skip
            Path(str(self.folder), "loss.png").write_bytes(picture.png())


def train(given: Namespace, processes: Processes) -> None:
    text = read(given.text, given.encoding)
    chosen = {name: value for name, value in vars(given).items() if value is not None}
    given = Namespace(**{**vars(given), **defaults(len(text)), **chosen})
    parts = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    tokenizer: BPETokenizer | CharTokenizer = CharTokenizer.from_text(text)
    if given.vocab_size:
        tokenizer = BPETokenizer.train([parts[0][:2_000_000]], given.vocab_size)
    training, validation = (torch.tensor(tokenizer.encode(part)) for part in parts)
    if len(validation) <= given.block_size:
        raise ValueError(f"{given.text} should have more than {10 * given.block_size} tokens")

    torch.manual_seed(given.seed)
    sizes = (given.block_size, given.n_layer, given.n_head, given.n_embd)
    model = fast_gpt(tokenizer.vocab_size, *sizes, dropout=given.dropout)
    processes.parallelize(model)
    keep_freed_memory()
    trainer = Shown(
        model, training, steps=given.steps, block_size=given.block_size, processes=processes,
        batch_size=given.batch_size, accumulation_steps=given.accumulation_steps, bf16=True,
        optimizer=fast_optimizers(model, matrix_rate=0.03, other_rate=0.005, momentum=0.9),
        schedule=partial(wsd_schedule, warmup=20), execution=given.execution, progress=True,
        generator=torch.Generator().manual_seed(given.seed), tokenizer=tokenizer,
        eval_data=validation, eval_interval=min(50, (given.steps + 9) // 10), eval_iters=4,
        folder=given.folder or Path("runs", given.text.stem),
    )  # fmt: skip
    run = trainer.fit(resume=True)
    if first_process():
        goes_on = "The same command goes on. " * (run.stopped == "interrupted")
        write = shlex.join([sys.executable, "sample.py", str(trainer.folder)])
        print(run, f"{goes_on}Let it write: {write}", sep="\n")


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    for name, value in defaults(0).items():
        parser.add_argument(f"--{name}", type=type(value), help=f"{value} for a short text")
    parser.add_argument("--encoding", default="utf-8-sig")
    parser.add_argument("--execution", choices=EXECUTIONS, default="graph")
    parser.add_argument("--folder", type=Path, help="of the run; runs/NAME if not given")
    given = parser.parse_args()
    try:
        with Processes.started() as processes:
            train(given, processes)
    except (OSError, ValueError) as error:
        sys.exit(f"train.py: {error}")


if __name__ == "__main__":
    main()
