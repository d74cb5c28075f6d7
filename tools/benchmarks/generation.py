"""How fast a GPT writes: our cached loop beside nanoGPT's, which reads the whole context again.

    python tools/benchmarks/generation.py --nanogpt CHECKOUT [--runs 3]

Both models get the same weights (6 layers, 6 heads, 384 wide, context 256: nanoGPT's "baby GPT")
and write greedily; the texts must be equal. Tokens a second, medians of the runs, taken in turns:
for the whole window, after one token, and for its last quarter, after 192 tokens. Then what the
model's matrices alone cost a token: one row times each of them.
nanoGPT is cloned from github.com/karpathy/nanoGPT. Set OMP_NUM_THREADS for the number of threads.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from helpers.formats.huggingface import gpt2
from helpers.gpt import GPT
from helpers.sampling import generate

SIZES = dict(vocab_size=65, block_size=256, n_layer=6, n_head=6, n_embd=384)
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


def twins(checkout: Path) -> tuple[nn.Module, GPT]:
    """nanoGPT's model with random weights, and ours with the same ones."""
    sys.path.insert(0, str(checkout))
    from model import GPT as Theirs  # type: ignore[import-not-found]
    from model import GPTConfig

    torch.manual_seed(0)
    theirs = Theirs(GPTConfig(**SIZES, dropout=0.0, bias=True)).eval()
    for p in theirs.parameters():  # fresh weights would write one letter again and again
        p.data += 0.05 * torch.randn_like(p)
    for block in theirs.transformer.h:  # the form of GPT-2 and of our model
        block.mlp.gelu.approximate = "tanh"
    weights = {
        name: p.T if name.endswith(TRANSPOSED) else p
        for name, p in theirs.state_dict().items()
        if name != "lm_head.weight"
    }
    return theirs, gpt2(weights, {"n_head": SIZES["n_head"]})


def seconds(work: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def side_by_side(theirs: nn.Module, ours: GPT, prompt: torch.Tensor, runs: int) -> None:
    """Print the rates at which both fill the window after the prompt, (1, T)."""
    n = SIZES["block_size"] - prompt.shape[1]
    rates = []
    for _ in range(runs):
        with torch.no_grad():
            their_time, their_text = seconds(lambda: theirs.generate(prompt, n, top_k=1))
        our_time, our_text = seconds(lambda: generate(ours, prompt, n, temperature=0))
        if not our_text.equal(their_text):
            raise RuntimeError("the two models wrote different texts")
        rates.append((n / their_time, n / our_time))
    other, mine = (statistics.median(column) for column in zip(*rates, strict=True))
    symbols = len(set(our_text[0, -n:].tolist()))
    print(
        f"after {prompt.shape[1]} tokens, {n} more ({symbols} symbols): "
        f"nanoGPT {other:.0f} tokens/s, ours {mine:.0f} tokens/s: {mine / other:.1f} times",
        flush=True,
    )


@torch.no_grad()
def matrices_alone(model: GPT) -> None:
    """Print the time that one new token spends in the model's linear maps."""
    maps = [m for m in model.modules() if isinstance(m, nn.Linear)]
    rows = [torch.randn(1, 1, m.in_features) for m in maps]

    def once() -> torch.Tensor:
        return [m(row) for m, row in zip(maps, rows, strict=True)][-1]

    spent = statistics.median(seconds(once)[0] for _ in range(50))
    print(f"one row times each of the {len(maps)} matrices: {1000 * spent:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nanogpt", type=Path, required=True, help="a checkout of nanoGPT")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    theirs, ours = twins(arguments.nanogpt)
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    for length in (1, 192):
        prompt = torch.randint(SIZES["vocab_size"], (1, length))
        side_by_side(theirs, ours, prompt, arguments.runs)
    matrices_alone(ours)


if __name__ == "__main__":
    main()
