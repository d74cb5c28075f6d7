"""Studies: complete, of the code that is here, shown in a chapter; and what runs them."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from conftest import CHAPTERS, ROOT

import studies
from studies import __main__ as command

STUDIES = sorted((ROOT / "studies").glob("[a-z]*.py"))


@pytest.fixture(params=STUDIES, ids=lambda path: path.stem)
def study(request):
    """The path of each study in turn."""
    return request.param


def test_the_results_are_those_of_the_code(study):
    assert studies.results(study.stem).about["code"] == studies.source_hash(study), (
        f"run it again: make study NAME={study.stem}"
    )


def test_no_run_is_missing_and_none_was_left_out(study):
    planned = list(studies.load(study).study.runs())
    done = [
        {k: r[k] for k in ("arm", "seed", "settings")} for r in studies.results(study.stem).runs
    ]
    assert done == planned
    assert len(studies.load(study).study.seeds) >= 3


def test_a_chapter_shows_each_study_and_shows_no_other(study):
    shown, read = set(), set()
    for path in CHAPTERS:
        for cell in nbformat.read(path, as_version=4).cells:
            tagged = {t[6:] for t in cell.metadata.get("tags", []) if t.startswith("study:")}
            named = set(re.findall(r"""\bresults\(["'](\w+)["']\)""", cell.source))
            shown |= tagged
            read |= named
            assert named <= {path.stem for path in STUDIES}
    assert study.stem in shown & read
    assert shown <= {path.stem for path in STUDIES}


def test_there_are_no_results_without_a_study():
    names = {path.stem for path in (ROOT / "studies" / "results").glob("*.json")}
    assert {name for name in names if "." not in name} == {path.stem for path in STUDIES}


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
    assert "8 runs were done before" in capsys.readouterr().out
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


def test_runs_of_other_code_are_not_mixed(toy, here, capsys):
    (toy.parent / "stop").touch()
    with pytest.raises(RuntimeError):
        studies.run_study(toy, 1)
    (toy.parent / "stop").unlink()
    toy.write_text(TOY.replace("0.5}", "0.40}"))
    studies.load.cache_clear()
    found = studies.run_study(toy, 1)
    assert "of other code are left out" in capsys.readouterr().out
    assert len(found.runs) == 12 and found.values("b", "loss")[0] == pytest.approx(0.5)


def test_comments_and_docstrings_are_no_code(toy):
    before = studies.source_hash(toy)
    toy.write_text(TOY.replace("Is b below a?", "Is it?") + "# more\n")
    assert studies.source_hash(toy) == before
    toy.write_text(TOY.replace("steps=10", "steps=11"))
    assert studies.source_hash(toy) != before


def test_what_a_study_borrows_is_its_code_too(toy):
    other = toy.with_name("other.py")
    other.write_text("X = 1\n")
    toy.write_text("from studies.other import X\n" + TOY)
    before = studies.source_hash(toy)
    other.write_text("X = 2\n")
    assert studies.source_hash(toy) != before


def test_a_changed_helper_is_noticed_and_one_run_per_arm_repeated(toy, here, capsys, monkeypatch):
    helper = toy.parent.parent / "helpers" / "a.py"
    helper.parent.mkdir()
    helper.write_text('"""A."""\nfrom helpers.b import X\n')
    helper.with_name("b.py").write_text("X = 1\n")
    toy.write_text(TOY + "if stop_here := False:\n    from helpers.a import X\n")
    studies.run_study(toy, 1)
    helper.write_text('"""Other words."""\nfrom helpers.b import X\n')
    assert not command.outdated(toy)
    helper.with_name("b.py").write_text("X = 1.0\n")  # which the study uses through a.py
    assert command.outdated(toy)
    before = studies.results("toy").runs
    monkeypatch.setattr("sys.argv", ["studies", "--workers", "1"])
    command.main()
    assert "toy: 2 runs repeated, the same numbers" in capsys.readouterr().out
    assert studies.results("toy").runs == before and not command.outdated(toy)
    toy.write_text(toy.read_text().replace("0.5}", "0.40}"))
    studies.load.cache_clear()
    command.main()
    said = capsys.readouterr().out
    assert "toy: b, seed 0: {'loss': 0.6" in said and "Other numbers than before." in said


def test_the_command_says_whether_the_numbers_are_the_same(toy, here, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["studies", "toy", "--workers", "1"])
    command.main()
    assert "Is b below a?" in capsys.readouterr().out
    assert not command.outdated(toy)
    command.main()
    assert "The same numbers as before." in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["studies", "tox"])
    with pytest.raises(SystemExit):
        command.main()
    assert "there are ['toy']" in capsys.readouterr().err
