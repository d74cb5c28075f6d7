"""Studies: complete, of the code that is here, shown in a chapter; and what runs them."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import CHAPTERS, ROOT

import studies
from studies import __main__ as command

STUDIES = {path.stem: path for path in sorted((ROOT / "studies").glob("[a-z]*.py"))}


@pytest.mark.parametrize("name", STUDIES)
def test_no_run_is_missing_and_none_was_left_out(name):
    study = studies.load(STUDIES[name]).study
    done = [{k: r[k] for k in ("arm", "seed", "settings")} for r in studies.results(name).runs]
    assert done == list(study.runs())
    assert len(study.seeds) >= 3


def test_chapters_show_every_study_and_no_other():
    shown, read = set(), set()
    for path in CHAPTERS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            tags = cell["metadata"].get("tags", [])
            shown |= {tag[6:] for tag in tags if tag.startswith("study:")}
            read |= set(re.findall(r"""\bresults\(["'](\w+)["']\)""", "".join(cell["source"])))
    results = {path.stem for path in (ROOT / "studies" / "results").glob("*.json")}
    assert shown == read == STUDIES.keys() == results


# --- the machine ----------------------------------------------------------------------------------

TOY = '''
"""Is b below a?"""
import os
from pathlib import Path
from studies import Study

def run(arm, seed, *, steps, rate):
    stop = Path(__file__).with_name("stop")
    if stop.exists() and seed == 2:
        raise RuntimeError("killed in the middle")
    return {"loss": {"a": 1.0, "b": 0.5}[arm] + seed / 10 + rate / steps, "pid": os.getpid() * 0}

study = Study(arms=["a", "b"], settings=dict(steps=10, rate=1.0), variations=[dict(steps=30)])
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    folder = tmp_path / "studies"
    (folder / "results").mkdir(parents=True)
    (folder / "toy.py").write_text(TOY)
    monkeypatch.setattr(studies, "FOLDER", folder)
    monkeypatch.setattr(command, "FOLDER", folder)
    studies.load.cache_clear()
    return folder / "toy.py"


@pytest.fixture
def here(monkeypatch):
    """Runs are done in this process: to start others takes seconds."""
    monkeypatch.setattr(
        studies, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers)
    )


def test_a_study_is_run_taken_up_and_shown(toy, here, monkeypatch, capsys):
    (toy.parent / "stop").touch()
    with pytest.raises(RuntimeError, match="killed"):
        studies.run_study(toy, 1)
    monkeypatch.undo()
    monkeypatch.setattr(studies, "FOLDER", toy.parent)
    part = toy.parent / "results" / "toy.part.json"
    assert not part.with_name("toy.json").exists()
    before = json.loads(part.read_text())["runs"]
    assert len(before) == 8 and {run["seed"] for run in before} == {0, 1}

    (toy.parent / "stop").unlink()
    found = studies.run_study(toy, 1)
    assert "8 of 12 runs were done before" in capsys.readouterr().out
    assert not part.exists() and len(found.runs) == 12
    assert [run for run in found.runs if run in before] == before  # not run again
    again = studies.results("toy")
    assert again.runs == found.runs and again.about == found.about
    assert again.values("a", "loss") == pytest.approx({0: 1.1, 1: 1.2, 2: 1.3})
    assert again.differences("b", "a", "loss", steps=30) == pytest.approx([-0.5] * 3)
    assert repr(again.table("loss", against="a", digits=2)).splitlines() == [
        "loss   mean       3 seeds   minus a   lowest … highest    below",
        "steps 10, rate 1.0",
        "  a    1.20   1.10 … 1.30",
        "  b    0.70   0.60 … 0.80     −0.50      −0.50 … −0.50   3 of 3",
        "steps 30",
        "  a    1.13   1.03 … 1.23",
        "  b    0.63   0.53 … 0.73     −0.50      −0.50 … −0.50   3 of 3",
    ]
    with pytest.raises(KeyError, match="no runs of 'c'"):
        again.values("c", "loss")


def test_runs_of_other_code_are_not_mixed(toy, here):
    (toy.parent / "stop").touch()
    with pytest.raises(RuntimeError):
        studies.run_study(toy, 1)
    (toy.parent / "stop").unlink()
    toy.write_text(TOY.replace("0.5}", "0.40}"))
    studies.load.cache_clear()
    found = studies.run_study(toy, 1)
    assert len(found.runs) == 12 and found.values("b", "loss")[0] == pytest.approx(0.5)


def test_the_command_says_whether_the_numbers_are_the_same(toy, here, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["studies", "toy", "--workers", "1"])
    command.main()
    assert "Is b below a?" in capsys.readouterr().out
    command.main()
    assert "The same numbers as before." in capsys.readouterr().out
    toy.write_text(TOY.replace("0.5}", "0.40}"))
    studies.load.cache_clear()
    command.main()
    assert "Other numbers than before." in capsys.readouterr().out
