"""What a chapter costs: seconds to run all its cells, and memory at its peak.

    python tools/benchmarks/chapters.py [--runs 3] [CHAPTER ...]

Prints a Markdown table: the median over the runs, and the slowest. Each run is a process of its
own; the memory is that of the largest process that it has waited for, in practice the kernel.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import notebooks
path = Path(sys.argv[1])
notebooks.run(notebooks.read(path), path.parent)
"""


def run(chapter: Path) -> tuple[float, float]:
    """(seconds, MiB at the peak) of one run in a fresh process; raises when a cell fails."""
    arguments = [sys.executable, "-c", RUN, str(chapter), str(ROOT / "tools")]
    start = time.perf_counter()
    child = os.posix_spawn(sys.executable, arguments, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{chapter.name} failed")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes on Linux
    return seconds, usage.ru_maxrss * unit / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chapters", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    chapters = [path.resolve() for path in arguments.chapters]
    print("| chapter | median s | slowest s | peak MiB |\n|---|---|---|---|")
    for chapter in chapters or sorted((ROOT / "notebooks").glob("*.ipynb")):
        seconds, peaks = zip(*(run(chapter) for _ in range(arguments.runs)), strict=True)
        median, slowest = statistics.median(seconds), max(seconds)
        print(f"| {chapter.stem} | {median:.1f} | {slowest:.1f} | {max(peaks):.0f} |", flush=True)


if __name__ == "__main__":
    main()
