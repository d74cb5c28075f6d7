"""How fast byte pairs are learnt and applied: ours beside minbpe's and the Rust library's.

    python tools/benchmarks/byte_pairs.py [--minbpe CHECKOUT] [--runs 3]

All learn a vocabulary of 1,024 from the first megabyte of the course's Wikipedia articles, split
as GPT-2 splits, and then encode another megabyte; ours and the Rust library `tokenizers` must give
the same merges and the same ids. Seconds, medians of the runs, taken in turns.

minbpe (github.com/karpathy/minbpe, its RegexTokenizer) needs minutes, so it runs once, learns only
the first merges, and its time is scaled to all 768 by their number; a merge costs it nearly the
same from first to last. It is given our pattern; it breaks ties in another way, so that its merges
differ from ours after the first tie.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from helpers import data
from helpers.formats.tokenizer_json import to_file
from helpers.text import BPETokenizer
from helpers.text.bpe import WORDS

VOCAB_SIZE = 1024
MINBPE_MERGES = 30


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def megabytes() -> tuple[str, str]:
    """A megabyte to learn from, and another to encode."""
    text = "\n\n".join(text for _, text in data.wikipedia()).encode()
    first, second = text[:1_000_000], text[1_000_000:2_000_000]
    return first.decode(errors="ignore"), second.decode(errors="ignore")


def rust(text: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def agree(ours: BPETokenizer, other: Tokenizer) -> None:
    theirs = [tuple(merge) for merge in json.loads(other.to_str())["model"]["merges"]]
    if [(to_file(a), to_file(b)) for a, b in ours.merges] != theirs:
        raise RuntimeError("ours and tokenizers learnt other merges")


def minbpe(checkout: Path, text: str, held_out: str) -> tuple[float, float]:
    """(seconds to learn all merges, reckoned from the first ones; seconds to encode, with those)"""
    package = ModuleType("minbpe")  # its own __init__ imports tiktoken, which we do not need
    package.__path__ = [str(checkout / "minbpe")]
    sys.modules["minbpe"] = package
    from minbpe.regex import RegexTokenizer  # type: ignore[import-not-found]

    tokenizer = RegexTokenizer(WORDS.pattern)
    learning, _ = seconds(lambda: tokenizer.train(text, 256 + MINBPE_MERGES))
    full = BPETokenizer.train(text, VOCAB_SIZE)
    # Our merges, spelled with its ids (a byte's id is the byte), so that both encode with 768.
    ids = {bytes([b]): b for b in range(256)}
    merges = {}
    for i, (a, b) in enumerate(full.merges):
        merges[ids[a], ids[b]] = ids[a + b] = 256 + i
    tokenizer.merges = merges
    encoding, _ = seconds(lambda: tokenizer.encode_ordinary(held_out))
    return learning * (VOCAB_SIZE - 256) / MINBPE_MERGES, encoding


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minbpe", type=Path, help="a checkout of minbpe")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    text, held_out = megabytes()
    rows = []
    for _ in range(arguments.runs):
        learning, ours = seconds(lambda: BPETokenizer.train(text, VOCAB_SIZE))
        their_learning, theirs = seconds(lambda: rust(text))
        agree(ours, theirs)
        encoding, ids = seconds(lambda ours=ours: ours.encode(held_out))
        their_encoding, same = seconds(lambda theirs=theirs: theirs.encode(held_out).ids)
        if ids != same:
            raise RuntimeError("ours and tokenizers gave other ids")
        rows.append((learning, their_learning, encoding, their_encoding))
    learning, their_learning, encoding, their_encoding = (
        statistics.median(column) for column in zip(*rows, strict=True)
    )
    slow = minbpe(arguments.minbpe, text, held_out) if arguments.minbpe else (None, None)
    print("1 MB            ours      tokenizers            minbpe")
    for name, mine, fast, other in (
        ("learn 768", learning, their_learning, slow[0]),
        ("encode", encoding, their_encoding, slow[1]),
    ):
        third = "" if other is None else f"{other:8.2f} s ({other / mine:.0f}×)"
        print(f"{name:11} {mine:6.2f} s {fast:8.2f} s ({fast / mine:.2f}×) {third}")


if __name__ == "__main__":
    main()
