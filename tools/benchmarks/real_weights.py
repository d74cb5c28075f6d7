"""SmolLM2-135M writing, the same file for all: ours in float32, bfloat16 and 4 bits, `transformers`
in float32 and bfloat16, and llama.cpp if `llama-cpp-python` is installed.

    python tools/benchmarks/real_weights.py [--threads 2] [--tokens 64]

Each runs in a process of its own: seconds until the model stands ready, peak memory of the process,
tokens a second (greedy, after a prompt of a few tokens, best of three).
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


def ours(dtype: str) -> Callable[[int], Any]:
    import torch

    from helpers import data
    from helpers.formats.gguf import gguf
    from helpers.sampling import generate

    read = gguf(data.smollm2(), int4=dtype == "4 bits")
    model = read.model.bfloat16() if dtype == "bfloat16" else read.model
    ids = torch.tensor([read.tokenizer.encode(PROMPT)])
    return lambda n: generate(model, ids, n, temperature=0)


def transformers(dtype: str) -> Callable[[int], Any]:
    import torch

    from studies.same_model import theirs

    model = theirs().to(getattr(torch, dtype))
    ids = torch.tensor([[47, 11, 8, 15, 7, 9, 3]])
    settings = {"do_sample": False, "pad_token_id": 0}
    return lambda n: model.generate(ids, max_new_tokens=n, min_new_tokens=n, **settings)


def llama_cpp(_: str) -> Callable[[int], Any]:
    from llama_cpp import Llama

    from helpers import data

    model = Llama(str(data.smollm2()), n_threads=THREADS, verbose=False, logits_all=False)
    return lambda n: model(PROMPT, max_tokens=n, temperature=0, stop=[])


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
    write = make(dtype)
    ready = time.perf_counter() - start
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        write(tokens)
        taken.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"ready": ready, "peak": peak, "speed": tokens / min(taken)}


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
    parser.add_argument("--case", choices=CASES)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(given.case, given.tokens)))
        return
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    print(f"{'':24}{'ready s':>8}{'peak MB':>9}{'tokens/s':>10}")
    for name in CASES:
        try:
            found = in_a_process(name, given.tokens)
        except subprocess.CalledProcessError as error:
            print(f"{name:24}{error.stderr.strip().splitlines()[-1]}")
            continue
        print(f"{name:24}{found['ready']:8.1f}{found['peak']:9.0f}{found['speed']:10.1f}")


if __name__ == "__main__":
    main()
