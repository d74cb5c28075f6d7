"""Run studies: `python -m studies NAME …`, or `python -m studies` for those whose code changed.

Changes in helpers are not followed: name the studies that use what was changed.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from studies import FOLDER, Results, carry_out, code_of, load, results


def outdated(path: Path) -> bool:
    """Are there no results, or results of other code?"""
    try:
        return results(path.stem).about["code"] != code_of(path)
    except ValueError:
        return True


def numbers(found: Results) -> list[object]:
    return [(run["arm"], run["seed"], run["settings"], run["numbers"]) for run in found.runs]


def main(say: Callable[[str], None] = print) -> None:
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
        after = carry_out(known[name], given.workers, say)
        say((load(known[name]).__doc__ or "").strip())
        for measure in after.runs[0]["numbers"]:
            say(f"\n{after.table(measure)}")
        if before is not None:
            same = numbers(before) == numbers(after)
            say("\nThe same numbers as before." if same else "\nOther numbers than before.")


if __name__ == "__main__":
    main()
