"""Run studies again, and say whether their numbers are the same: `python -m studies NAME …`."""

import argparse

from studies import FOLDER, Results, load, results, run_study


def numbers(found: Results) -> list[object]:
    return [(run["arm"], run["seed"], run["settings"], run["numbers"]) for run in found.runs]


def main() -> None:
    known = {path.stem: path for path in sorted(FOLDER.glob("[a-z]*.py"))}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known)
    parser.add_argument("--workers", type=int, help="processes at once (default: one a core)")
    given = parser.parse_args()
    for name in given.names:
        has_results = (FOLDER / "results" / f"{name}.json").is_file()
        before = results(name) if has_results else None
        after = run_study(known[name], given.workers)
        print(load(known[name]).__doc__)
        for measure in after.runs[0]["numbers"]:
            print(f"{after.table(measure)}\n")
        if before is not None:
            same = numbers(before) == numbers(after)
            print("The same numbers as before." if same else "Other numbers than before.")


if __name__ == "__main__":
    main()
