"""Run studies: `python -m studies NAME …` runs them; `python -m studies` repeats a run per arm of
those whose code or helpers have changed, and runs those again whose numbers do not come out again.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from studies import FOLDER, Results, load, repeat, results, run_study, source_hash


def outdated(path: Path) -> bool:
    """Are there no results, or results of other code?"""
    try:
        about = results(path.stem).about
        hashes = source_hash(path), source_hash(path, "helpers")
        return (about["code"], about.get("helpers")) != hashes
    except ValueError:
        return True


def numbers(found: Results) -> list[object]:
    return [(run["arm"], run["seed"], run["settings"], run["numbers"]) for run in found.runs]


def main(log: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="studies/NAME.py; all that have changed if none")
    parser.add_argument("--workers", type=int, help="processes at once (default: one a core)")
    given = parser.parse_args()
    known = {path.stem: path for path in sorted(FOLDER.glob("[a-z]*.py"))}
    if unknown := set(given.names) - set(known):
        parser.error(f"no such study: {sorted(unknown)}; there are {list(known)}")
    for name in given.names or [name for name, path in known.items() if outdated(path)]:
        try:
            before = results(name)
        except ValueError:
            before = None
        if before is not None and not given.names and repeat(known[name], given.workers, log):
            continue
        after = run_study(known[name], given.workers, log)
        log((load(known[name]).__doc__ or "").strip())
        for measure in after.runs[0]["numbers"]:
            log(f"\n{after.table(measure)}")
        if before is not None:
            same = numbers(before) == numbers(after)
            log("\nThe same numbers as before." if same else "\nOther numbers than before.")


if __name__ == "__main__":
    main()
