"""SmolLM2-135M writing, the same file for all: ours in float32, bfloat16 and 4 bits, `transformers`
in float32 and bfloat16, and llama.cpp if `llama-cpp-python` is installed.

    python benchmarks/real_weights.py [--threads 2] [--tokens 64]

Each runs in a process of its own: seconds until the model stands ready, peak memory of the process,
tokens a second (greedy, after a prompt of a few tokens, best of three), and what share of the
machine's memory bandwidth that is: bytes of the weights times tokens a second.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PROMPT = "Photosynthesis is the process by which"


def ours(dtype: str) -> tuple[Callable[[int], Any], int]:
    import torch

    from helpers import data
    from helpers.formats.gguf import gguf
    from helpers.sampling import generate

    read = gguf(data.smollm2(), int4=dtype == "4 bits")
    model = read.model.bfloat16() if dtype == "bfloat16" else read.model
    ids = torch.tensor([read.tokenizer.encode(PROMPT)])
    tensors = {id(t): t for part in model.modules() for t in vars(part).values()
               if isinstance(t, torch.Tensor)}  # fmt: skip
    size = sum(t.nbytes for t in (*model.parameters(), *tensors.values()))
    return lambda n: generate(model, ids, n, temperature=0), size


def transformers(dtype: str) -> tuple[Callable[[int], Any], int]:
    import torch

    from studies.same_model import theirs

    model = theirs().to(getattr(torch, dtype))
    ids = torch.tensor([[47, 11, 8, 15, 7, 9, 3]])
    size = sum(p.nbytes for p in model.parameters())
    settings = {"do_sample": False, "pad_token_id": 0}
    return lambda n: model.generate(ids, max_new_tokens=n, min_new_tokens=n, **settings), size


def llama_cpp(_: str) -> tuple[Callable[[int], Any], int]:
    from llama_cpp import Llama

    from helpers import data

    model = Llama(str(data.smollm2()), n_threads=THREADS, verbose=False, logits_all=False)
    return lambda n: model(PROMPT, max_tokens=n, temperature=0, stop=[]), os.path.getsize(
        data.smollm2()
    )


CASES = {
    "ours, float32": (ours, "float32"),
    "ours, bfloat16": (ours, "bfloat16"),
    "ours, 4 bits": (ours, "4 bits"),
    "transformers, float32": (transformers, "float32"),
    "transformers, bfloat16": (transformers, "bfloat16"),
    "llama.cpp, 4 bits": (llama_cpp, ""),
}
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))


def measure(name: str, tokens: int) -> dict[str, float]:
    import torch

    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    make, dtype = CASES[name]
    write, size = make(dtype)
    ready = time.perf_counter() - start
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        write(tokens)
        taken.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"ready": ready, "peak": peak, "speed": tokens / min(taken), "bytes": size}


def bandwidth() -> float:
    import torch

    torch.set_num_threads(THREADS)
    large, taken = torch.ones(100_000_000), []
    for _ in range(5):
        start = time.perf_counter()
        large.sum()
        taken.append(time.perf_counter() - start)
    return large.nbytes / min(taken)


def in_a_process(case: str, tokens: int) -> Any:
    """What a case finds, alone: a child's peak counts from that of its parent, so this one, which
    starts them, stays small."""
    command = [sys.executable, __file__, "--case", case, "--tokens", str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--case", choices=[*CASES, "bandwidth"])
    given = parser.parse_args()
    if given.case:
        alone = bandwidth() if given.case == "bandwidth" else measure(given.case, given.tokens)
        print(json.dumps(alone))
        return
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    fast = in_a_process("bandwidth", given.tokens)
    print(f"{given.threads} threads; the memory gives {fast / 1e9:.0f} GB/s")
    print(f"{'':24}{'ready s':>8}{'peak MB':>9}{'MB a token':>12}{'tokens/s':>10}{'of memory':>11}")
    for name in CASES:
        try:
            found = in_a_process(name, given.tokens)
        except subprocess.CalledProcessError as error:
            print(f"{name:24}{error.stderr.strip().splitlines()[-1]}")
            continue
        share = found["bytes"] * found["speed"] / fast
        print(
            f"{name:24}{found['ready']:8.1f}{found['peak']:9.0f}{found['bytes'] / 1e6:12.0f}"
            f"{found['speed']:10.1f}{share:11.0%}"
        )


if __name__ == "__main__":
    main()
