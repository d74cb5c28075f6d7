"""Long evidence: what training shows, over seeds, settings and lengths, for everyone to run again.

A study is a file `studies/NAME.py`. Its docstring says which sentence it tests; it defines

    def run(arm, seed, **settings): ...      one training run; returns {measure: number}
    study = Study(arms=[...], settings={...}, variations=[{...}, ...])

Every arm runs with the settings, and once more with each change in `variations`, at every seed.
What the seed decides (initial weights, batches) must be alike in all arms: then differences are
*paired*.

The results are in `studies/results/NAME.json`, with the commit that made them; a chapter shows
them with ``results("name").table(...)``. They stay as they are until somebody changes on purpose
what a study measures: `make study NAME=…` runs it again and says whether the numbers are the same.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from multiprocessing import get_context
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
    interruption if the file is still the same; the old results stay until the new are complete.
    """
    study: Study = load(path).study
    folder = path.parent / "results"
    part, whole = folder / f"{path.stem}.part.json", folder / f"{path.stem}.json"
    about: dict[str, Any] = {
        "study": path.stem,
        "commit": _commit(path.parent),
        "machine": f"{platform.machine()}, {platform.system()}",
        "versions": {"python": platform.python_version(), "torch": metadata.version("torch")},
        "arms": list(study.arms),
        "settings": dict(study.settings),
        "variations": [dict(change) for change in study.variations],
    }
    planned = list(study.runs())
    code = hashlib.sha256(path.read_bytes()).hexdigest()
    before: dict[str, Any] = {"code": code, "runs": []}
    if part.is_file():
        before = json_object(part.read_bytes())
    done = before["runs"] if before["code"] == code else []  # never runs of different code
    log(f"{path.stem}: {len(done)} of {len(planned)} runs were done before")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        known = [_key(run) for run in done]
        tasks = [pool.submit(_one, path, run) for run in planned if run not in known]
        try:
            for task in as_completed(tasks):
                done.append(run := task.result())
                write_whole(part, _text({"code": code}, done))
                log(f"{path.stem} {len(done)}/{len(planned)}: {run}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    done.sort(key=lambda run: planned.index(_key(run)))
    write_whole(whole, _text(about, done))
    part.unlink(missing_ok=True)
    return Results(path.stem, done, about)


def _key(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("arm", "seed", "settings")}


def _commit(folder: Path) -> str:
    """The commit that lies here, with a mark if something in it has changed since."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.strip() or "not in a repository"


def _text(about: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> bytes:
    """A run a line: what has changed can be seen in a diff."""
    head = json.dumps(about, ensure_ascii=False, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(run, ensure_ascii=False) for run in runs)
    return f'{head},\n "runs": [\n  {lines}\n ]\n}}\n'.encode()
