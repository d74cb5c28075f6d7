"""Long evidence: what training shows, over seeds, settings and lengths, for everyone to run again.

A study is a file `studies/NAME.py`. Its docstring says which sentence it tests; it defines

    def run(arm, seed, **settings): ...      one training run; returns {measure: number}
    study = Study(arms=[...], settings={...}, variations=[{...}, ...])

Every arm runs with the settings, and once more with each change in `variations`, at every seed.
What the seed decides (initial weights, batches) must be alike in all arms: then differences are
*paired*.

`make study NAME=…` runs one again and says whether the numbers are the same. `make studies` looks
at each study whose code, or whose helpers, have changed since it was run: it repeats one run per
arm, keeps the results if their numbers come out again, and otherwise runs the study again. The
results are in `studies/results/NAME.json`; a chapter shows them with
``results("name").table(...)``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import math
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from helpers.formats.files import json_object, write_whole

FOLDER = Path(__file__).resolve().parent
Settings = Mapping[str, Any]


@dataclass
class Study:
    """The runs of a study: each arm × (settings, and each change of them) × each seed."""

    arms: Sequence[str]
    settings: Settings
    variations: Sequence[Settings] = ()
    seeds: Sequence[int] = (0, 1, 2)

    def runs(self) -> Iterator[dict[str, Any]]:
        """What is run, in order: {arm, seed, settings}, one seed of everything first."""
        for seed in self.seeds:
            for change in ({}, *self.variations):
                for arm in self.arms:
                    yield {"arm": arm, "seed": seed, "settings": {**self.settings, **change}}


@dataclass
class Results:
    """What the runs of a study gave, as `studies/results/NAME.json` keeps it."""

    name: str
    runs: list[dict[str, Any]]
    about: dict[str, Any] = field(default_factory=dict)

    def values(self, arm: str, measure: str, **settings: Any) -> dict[int, float]:
        """Seed → number, of one arm, with the study's settings but for those that are named."""
        wanted = {**self.about["settings"], **settings}
        found = {
            run["seed"]: run["numbers"][measure]
            for run in self.runs
            if run["arm"] == arm and run["settings"] == wanted
        }
        if not found:
            raise KeyError(f"the study {self.name} has no runs of {arm!r} with {wanted}")
        return found

    def differences(self, arm: str, against: str, measure: str, **settings: Any) -> list[float]:
        """arm − against at each seed: the pairs share first weights and batches."""
        ours = self.values(arm, measure, **settings)
        theirs = self.values(against, measure, **settings)
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    def table(
        self,
        measure: str,
        against: str | None = None,
        digits: int = 3,
        changes: int | None = None,
        arms: Sequence[str] | None = None,
    ) -> Table:
        """For each arm (or those named) and each change of the settings (or the first `changes` of
        them): the mean over the seeds, the extremes, and the paired differences from the arm
        `against`: mean, extremes, how many are below 0."""
        first = self.about["settings"]
        lines: list[list[str]] = []
        seeds = len({run["seed"] for run in self.runs})
        for settings in ({}, *self.about["variations"][:changes]):
            if named := settings or first:
                lines.append([", ".join(_setting(*pair) for pair in named.items())])
            for arm in arms or self.about["arms"]:
                numbers = list(self.values(arm, measure, **settings).values())
                line = [f"  {arm}", _written(sum(numbers) / len(numbers), digits)]
                line.append(f"{_written(min(numbers), digits)} … {_written(max(numbers), digits)}")
                if against is not None and arm != against:
                    gaps = self.differences(arm, against, measure, **settings)
                    line.append(_written(sum(gaps) / len(gaps), digits, sign=True))
                    low, high = (_written(f(gaps), digits, sign=True) for f in (min, max))
                    line += [f"{low} … {high}", f"{sum(g < 0 for g in gaps)} of {len(gaps)}"]
                lines.append(line)
        head = [measure, "mean", f"{seeds} seeds"]
        if against is not None:
            head += [f"minus {against}", "lowest … highest", "below"]
        return Table([head, *lines])


class Table:
    """Rows of texts, shown as a table; a row with one text is a heading over those below it."""

    def __init__(self, rows: list[list[str]]):
        self.rows = rows

    def __repr__(self) -> str:
        columns = max(map(len, self.rows))
        whole = [row for row in self.rows if len(row) > 1]
        widths = [max(len(row[i]) for row in whole if i < len(row)) for i in range(columns)]
        lines = []
        for row in self.rows:
            cells = [row[0].ljust(widths[0])] if len(row) > 1 else [row[0]]
            cells += [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=False)]
            lines.append("   ".join(cells).rstrip())
        return "\n".join(lines)


def _setting(name: str, value: Any) -> str:
    """As a heading shows it; None is no limit: "all characters"."""
    if value is None:
        return f"all {name}"
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"


def _written(value: float, digits: int, sign: bool = False) -> str:
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def results(name: str) -> Results:
    """The results of a study, as they are committed. Raises ValueError for a name without any."""
    path = FOLDER / "results" / f"{name}.json"
    if not path.is_file():
        known = sorted(file.stem for file in path.parent.glob("*.json"))
        raise ValueError(f"there are no results of a study {name!r}; there are {known}")
    about = json_object(path.read_bytes())
    return Results(name, about.pop("runs"), about)


# --- running --------------------------------------------------------------------------------------


def source_hash(path: Path, package: str = "studies") -> str:
    """A hash of the code of a file and of the modules of a package that it imports, directly or
    not, without comments and docstrings."""
    sources, waiting = {}, [path.resolve()]
    while waiting:
        if (file := waiting.pop()) in sources:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
                node
            ):
                node.body = node.body[1:]
            if isinstance(node, ast.ImportFrom):
                waiting += _imported(node, package, FOLDER.parent)
        sources[file] = ast.dump(tree)
    texts = [sources[file] for file in sorted(sources)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _imported(node: ast.ImportFrom, package: str, root: Path) -> list[Path]:
    """The files of a package that `from module import names` reads."""
    module = node.module or ""
    if module.split(".")[0] not in (package, "studies"):
        return []
    names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
    paths = [root.joinpath(*name.split(".")) for name in names]
    files = [path.with_suffix(".py") for path in paths] + [path / "__init__.py" for path in paths]
    return [file for file in files if file.is_file() and file != FOLDER / "__init__.py"]


@cache
def load(path: Path) -> ModuleType:
    """The module in a file, which need not be on the path that Python searches."""
    spec = importlib.util.spec_from_file_location(f"study_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _one(path: Path, planned: dict[str, Any]) -> dict[str, Any]:
    """Do one run, in a process of its own with one thread, so that it can be repeated exactly."""
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    numbers = load(path).run(planned["arm"], planned["seed"], **planned["settings"])
    seconds = round(time.perf_counter() - start, 1)
    return {**planned, "numbers": {k: float(v) for k, v in numbers.items()}, "seconds": seconds}


def run_study(
    path: Path, workers: int | None = None, log: Callable[[str], None] = print
) -> Results:
    """Run a study side by side on the cores, and write its results.

    What was done is kept in `results/NAME.part.json` after each run, and taken up again after an
    interruption if the code is still the same; the old results stay until the new are complete.
    """
    study: Study = load(path).study
    folder = path.parent / "results"
    part, whole = folder / f"{path.stem}.part.json", folder / f"{path.stem}.json"
    about = {
        "study": path.stem,
        "code": source_hash(path),
        "helpers": source_hash(path, "helpers"),
        "machine": f"{platform.machine()}, {platform.system()}",
        "versions": _versions(),
        "arms": list(study.arms),
        "settings": dict(study.settings),
        "variations": [dict(change) for change in study.variations],
    }
    done: list[dict[str, Any]] = []
    if part.is_file():
        before = json_object(part.read_bytes())
        if before["code"] == about["code"] and before["versions"] == about["versions"]:
            done = before["runs"]
            log(f"{path.stem}: {len(done)} runs were done before")
        else:  # runs of different code are never mixed
            log(f"{path.stem}: {len(before['runs'])} runs of other code are left out")
    planned = list(study.runs())
    kept = list(done)
    known = [{key: run[key] for key in ("arm", "seed", "settings")} for run in done]
    left = [run for run in planned if run not in known]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context) as pool:
        tasks = [pool.submit(_one, path, run) for run in left]
        try:
            for task in as_completed(tasks):
                done.append(run := task.result())
                write_whole(part, _text(about, done))
                log(
                    f"{path.stem} {len(done)}/{len(planned)}: {run['arm']}, seed {run['seed']}, "
                    f"{run['settings']}: {run['numbers']} in {run['seconds']} s"
                )
        except BaseException:
            # Those that run come to their end, and are kept, too.
            pool.shutdown(cancel_futures=True)
            ended = [task for task in tasks if not task.cancelled() and task.exception() is None]
            kept += [task.result() for task in ended]
            if kept:
                write_whole(part, _text(about, kept))
            raise
    order = {json.dumps(run): i for i, run in enumerate(planned)}
    done.sort(key=lambda run: order[json.dumps({k: run[k] for k in ("arm", "seed", "settings")})])
    write_whole(whole, _text(about, done))
    part.unlink(missing_ok=True)
    return Results(path.stem, done, about)


SHORT = 30.0  # seconds that a run may take to be repeated, unless it is the shortest


def repeat(path: Path, workers: int | None = None, log: Callable[[str], None] = print) -> bool:
    """Repeat the shortest run of each arm; if all numbers come out again, up to rounding, the
    results are marked as those of the code that is here."""
    found = results(path.stem)
    chosen: dict[str, dict[str, Any]] = {}
    for run in sorted(found.runs, key=lambda run: run["seconds"]):
        if not chosen or run["seconds"] <= SHORT:
            chosen.setdefault(run["arm"], run)
    planned = list(load(path).study.runs())
    keys = [{k: run[k] for k in ("arm", "seed", "settings")} for run in chosen.values()]
    same = [{k: run[k] for k in ("arm", "seed", "settings")} for run in found.runs] == planned
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context) as pool:
        for before, again in zip(
            chosen.values(), pool.map(_one, [path] * len(keys), keys), strict=True
        ):
            old, new = before["numbers"], again["numbers"]
            if old.keys() != new.keys() or not all(_near(k, old[k], new[k]) for k in old):
                log(f"{path.stem}: {before['arm']}, seed {before['seed']}: {old}, now {new}")
                same = False
    if same:
        log(f"{path.stem}: {len(keys)} runs repeated, the same numbers")
        hashes = {"code": source_hash(path), "helpers": source_hash(path, "helpers")}
        about = {k: hashes.pop(k, v) for k, v in found.about.items()} | hashes
        write_whole(path.parent / "results" / f"{path.stem}.json", _text(about, found.runs))
    return same


def _near(measure: str, old: float, new: float) -> bool:
    """Times are never the same, and rounding may grow in training."""
    return "seconds" in measure or math.isclose(old, new, rel_tol=1e-2, abs_tol=1e-2)


def _versions() -> dict[str, str]:
    import torch

    return {"python": platform.python_version(), "torch": torch.__version__}


def _text(about: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> bytes:
    """A run a line: what has changed can be seen in a diff."""
    head = json.dumps(about, ensure_ascii=False, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(run, ensure_ascii=False) for run in runs)
    return f'{head},\n "runs": [\n  {lines}\n ]\n}}\n'.encode()
