"""How fast two CPU cores train a character GPT: ours beside nanoGPT's, in one run, on one text.

    python tools/benchmarks/training.py plain --nanogpt CHECKOUT --text tinyshakespeare.txt
    python tools/benchmarks/training.py fast --nanogpt CHECKOUT --text tinyshakespeare.txt
    python tools/benchmarks/training.py headline --text tinyshakespeare.txt
    python tools/benchmarks/training.py longest --text tinyshakespeare.txt
    python tools/benchmarks/training.py kernels

plain     the same model and optimizer, float32: milliseconds a step, in turns, medians.
fast      nanoGPT's 2,000 steps with its README's settings for a CPU, and the course's fast recipe
          of the same sizes: seconds of steps, and both losses, reckoned by the same code.
headline  4.8M parameters: seconds of steps to 1.4697, which nanoGPT reaches with 10.8M on an A100.
longest   the same model, trained three times as long with more decay.
kernels   how fast large matrix products are, and which fraction of that a training step reaches.

The text is tiny Shakespeare (data/tinyshakespeare/input.txt of github.com/karpathy/char-rnn,
1,115,394 characters, the last tenth for validation); nanoGPT is cloned from
github.com/karpathy/nanoGPT; it is copied, and its checkout stays as it is. Peers run with as many
threads as we do: set OMP_NUM_THREADS. Only seconds inside steps count: no start, no evaluation.
Rates, momentum and lengths were chosen by the loss on this same validation split, in eighty runs
of `fast` and a dozen of `headline`; the text has no third part to test on.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F

from helpers.gpt import GPT, GPTConfig, fast_gpt
from helpers.kernels import has_bf16, keep_freed_memory
from helpers.optimizers import adamw, fast_optimizers
from helpers.runs.trainer import EXECUTIONS, Trainer
from helpers.text import CharTokenizer
from helpers.training import (
    cosine_schedule,
    estimate_loss,
    language_model_loss,
    train,
    wsd_schedule,
)

SIZES = dict(block_size=64, n_layer=4, n_head=4, n_embd=128)
LARGE = dict(block_size=256, n_layer=6, n_head=4, n_embd=256)
NANOGPT = [
    *("--device=cpu", "--compile=False", "--eval_iters=20", "--log_interval=1", "--dropout=0.0"),
    *(f"--{name}={value}" for name, value in {**SIZES, "batch_size": 12}.items()),
]


class Text:
    """The text as ids, split 90/10 by position, as nanoGPT splits it."""

    def __init__(self, path: Path):
        self.path = path
        text = path.read_text(encoding="utf-8")
        self.tokenizer = CharTokenizer.from_text(text)
        ids = torch.tensor(self.tokenizer.encode(text))
        self.train, self.validation = ids[: int(0.9 * len(ids))], ids[int(0.9 * len(ids)) :]

    def loss(self, model: torch.nn.Module, block_size: int) -> float:
        return estimate_loss(model, self.validation, block_size=block_size)


def nanogpt(checkout: Path, text: Text, steps: int) -> tuple[float, float, float]:
    """(seconds of steps, median milliseconds a step, loss on the whole validation split)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "nanoGPT"
        shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns(".git", "out*"))
        shutil.copy(text.path, folder / "data" / "shakespeare_char" / "input.txt")
        run = partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
        run([sys.executable, "data/shakespeare_char/prepare.py"])
        flags = [*NANOGPT, f"--max_iters={steps}", f"--lr_decay_iters={steps}"]
        flags += [f"--eval_interval={steps}", "--always_save_checkpoint=True"]
        log = run([sys.executable, "train.py", "config/train_shakespeare_char.py", *flags]).stdout
        # The last line belongs to the evaluation at the end, and the first holds one, too.
        times = [float(ms) for ms in re.findall(r"loss [\d.]+, time ([\d.]+)ms", log)][1:-1]
        sys.path.insert(0, str(folder))
        from model import GPT as Theirs  # type: ignore[import-not-found]
        from model import GPTConfig as TheirConfig

        kept = torch.load(folder / "out-shakespeare-char" / "ckpt.pt", weights_only=True)
        model = Theirs(TheirConfig(**kept["model_args"]))
        model.load_state_dict(kept["model"])
        sys.path.remove(str(folder))

        class AllLogits(torch.nn.Module):  # without targets theirs gives the last position only
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                return model(ids, ids)[0]

        loss = text.loss(AllLogits(), SIZES["block_size"])
    return sum(times) / 1000, statistics.median(times), loss


def ours_plain(text: Text, steps: int) -> float:
    """Median milliseconds a step of the course's GPT with nanoGPT's parts, sizes and optimizer."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(text.tokenizer.vocab_size, **SIZES, bias=False))
    for block in model.blocks:
        block.mlp.activation = F.gelu  # nanoGPT's; the tanh form takes longer without AVX-512
    ends: list[float] = []

    def schedule(step: int, of: int) -> float:
        ends.append(time.perf_counter())
        return cosine_schedule(step, of, warmup=100)

    train(
        model, text.train, steps=steps, block_size=64, batch_size=12,
        optimizer=adamw(model, 1e-3, betas=(0.9, 0.99)), schedule=schedule, grad_clip=1.0,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    return 1000 * statistics.median(b - a for a, b in pairwise(ends[5:]))


STEPS, BATCH = 72, 24  # of the fast recipe, instead of nanoGPT's 2,000 of 12


def ours_fast(text: Text, seed: int) -> tuple[float, float]:
    """(seconds of steps, loss on the whole validation split) of the fast recipe."""
    torch.manual_seed(seed)
    model = fast_gpt(text.tokenizer.vocab_size, **SIZES)
    run = Trainer(
        model, text.train, steps=STEPS, block_size=64, batch_size=BATCH,
        optimizer=fast_optimizers(model, matrix_rate=0.05, momentum=0.75),
        schedule=partial(wsd_schedule, warmup=1, decay_frac=0.8), bf16=True,
        generator=torch.Generator().manual_seed(seed),
    ).fit()  # fmt: skip
    return run.seconds, text.loss(model, 64)


def plain(arguments: argparse.Namespace) -> None:
    text = Text(arguments.text)
    rows = []
    for _ in range(arguments.runs):
        rows.append((nanogpt(arguments.nanogpt, text, 200)[1], ours_plain(text, 200)))
        print("nanoGPT {:.1f} ms, ours {:.1f} ms a step".format(*rows[-1]), flush=True)
    theirs, mine = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"median: nanoGPT {theirs:.1f} ms, ours {mine:.1f} ms: {mine / theirs:.2f} of it")


def fast(arguments: argparse.Namespace) -> None:
    text = Text(arguments.text)
    ratios = []
    for seed in range(arguments.runs):
        theirs, _, their_loss = nanogpt(arguments.nanogpt, text, 2000)
        mine, loss = ours_fast(text, seed)
        ratios.append(mine / theirs)
        print(f"nanoGPT {their_loss:.4f} after {theirs:.1f} s, ours {loss:.4f} after {mine:.1f} s: "
              f"{ratios[-1]:.3f} of it", flush=True)  # fmt: skip
    print(f"median: {statistics.median(ratios):.3f}, that is 1/{1 / statistics.median(ratios):.1f}")


def large(text: Text, seed: int, steps: int, decay: float, execution: str) -> None:
    """Train a model of 4.8M parameters; decay: of the matrices, more of it for longer runs."""
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = fast_gpt(text.tokenizer.vocab_size, **LARGE).to(device)
    run = Trainer(
        model, text.train, steps=steps, block_size=256, batch_size=16,
        optimizer=fast_optimizers(
            model, matrix_rate=0.03, other_rate=0.005, momentum=0.9, weight_decay=decay
        ),
        schedule=partial(wsd_schedule, warmup=20), bf16=True, execution=execution,
        generator=torch.Generator().manual_seed(seed),
    ).fit()  # fmt: skip
    print(f"{model.n_parameters():,} parameters, {run.seconds:.1f} s of {run.step} steps: "
          f"{text.loss(model, 256):.4f} on the whole validation split", flush=True)  # fmt: skip


def headline(arguments: argparse.Namespace) -> None:
    text = Text(arguments.text)
    for seed in range(arguments.runs):
        large(text, seed, steps=480, decay=0.15, execution=arguments.execution)


def longest(arguments: argparse.Namespace) -> None:
    text = Text(arguments.text)
    for seed in range(arguments.runs):
        large(text, seed, steps=1500, decay=0.5, execution=arguments.execution)


def median_seconds(work: Callable[[], object]) -> float:
    work()
    spent = []
    for _ in range(7):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def multiplications(model: GPT, B: int, T: int) -> tuple[float, float]:
    """GFLOP of the matrix products of one step: (forward and backward, Muon)."""
    matrices = [p for p in model.parameters() if p.dim() == 2 and p is not model.token.weight]
    forward = 2 * B * T * sum(p.numel() for p in matrices)
    C, L = model.token.embedding_dim, len(model.blocks)
    forward += L * 4 * B * T * T * C  # q kᵀ and weights v, without skipping what is masked
    muon = 0
    for p in model.blocks.parameters():
        if p.dim() == 2:
            small, large = sorted(p.shape)
            muon += 5 * 2 * (2 * small * small * large + small**3)
    return 3 * forward / 1e9, muon / 1e9


def step(name: str, model: GPT, B: int, dtype: torch.dtype, peak: float) -> None:
    """Print how long a step takes, and its fraction of the peak of matrix products."""
    T = model.block_size
    x = torch.randint(model.token.num_embeddings, (B, T))
    optimizers = fast_optimizers(model)

    def once() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = language_model_loss(model, x, x)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    spent = median_seconds(once)
    rate = sum(multiplications(model, B, T)) / spent
    print(f"a step of {name}: {1000 * spent:.0f} ms, {B * T / spent:,.0f} tokens/s, "
          f"{rate:.0f} GFLOP/s, {rate / peak:.0%} of the peak")  # fmt: skip


def kernels(arguments: argparse.Namespace) -> None:
    n, dtypes = 2048, [torch.float32]
    if has_bf16(torch.device("cpu")):  # where it is imitated, a product takes minutes
        dtypes.append(torch.bfloat16)
    for dtype in dtypes:
        a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
        peak = 2 * n**3 / median_seconds(lambda a=a, b=b: a @ b) / 1e9
        print(f"matrix product of {n} × {n}, {dtype}: {peak:.0f} GFLOP/s")
    keep_freed_memory()
    step("fast", fast_gpt(65, **SIZES), BATCH, dtypes[-1], peak)
    step("headline", fast_gpt(65, **LARGE), 16, dtypes[-1], peak)
    step("GPTMini", fast_gpt(2048, **LARGE, dropout=0.2), 16, dtypes[-1], peak)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    work = {f.__name__: f for f in (plain, fast, headline, longest, kernels)}
    parser.add_argument("what", choices=list(work))
    parser.add_argument("--nanogpt", type=Path, help="a checkout of nanoGPT")
    parser.add_argument("--text", type=Path, help="tiny Shakespeare as one file")
    parser.add_argument("--runs", type=int, default=3, help="of all but kernels")
    parser.add_argument("--execution", choices=EXECUTIONS, default="graph", help="on a GPU")
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}\n")
    work[arguments.what](arguments)


if __name__ == "__main__":
    main()
