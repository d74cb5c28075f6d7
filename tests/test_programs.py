"""Every program that a page names is there, imports what there is, and says what it does."""

import re
import runpy
import sys

import pytest
from conftest import ROOT

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("d*/*.md"), ROOT / "Makefile"]
PROGRAM = re.compile(r"\b(?:(?:data|tools)/[\w/]+|train|sample)\.py\b")
NAMED = {path for page in PAGES for path in PROGRAM.findall(page.read_text("utf-8"))}


@pytest.mark.parametrize("program", sorted(NAMED))
def test_a_program_that_a_page_names_starts(program, monkeypatch, capsys):
    monkeypatch.syspath_prepend((ROOT / program).parent)
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    try:
        runpy.run_path(str(ROOT / program), run_name="__main__")
    except SystemExit as end:
        assert not end.code and "usage:" in capsys.readouterr().out
    else:
        assert "__main__" not in (ROOT / program).read_text("utf-8"), "it began to work"
