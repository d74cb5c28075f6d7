"""The chapters as files: executed, portable, small, with their claims and exercises complete."""

import ast
import inspect
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import figures
import pytest
from conftest import CHAPTERS, NOTEBOOKS, ROOT, parsed, topic
from processes import run_alone
from test_same_as import SAME_AS, definitions

import helpers
from tests.solutions import solution

# From the map in helpers/__init__.py. A chapter teaches or explains the public names of the first.
FIRST, SECOND = (re.findall(r"^    (\w+) {2,}\S", floor, re.M)
                 for floor in helpers.__doc__.split("The second floor"))  # fmt: skip
CONCEPTS = [module for module in FIRST if module != "kernels"]
NO_OUTPUT_CHECK = "nbval-ignore-output"
TIMED = "perf_counter|process_time|milliseconds"


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell, prefix=""):
    return [tag for tag in cell.metadata.get("tags", []) if tag.startswith(prefix)]


@cache
def code_tree(source):
    return ast.parse(source)


def tree(cell):
    """The syntax tree of a code cell; that of one with a magic, such as %%writefile, is empty."""
    return code_tree("" if cell.source.startswith("%%") else cell.source)


def asserts(cell):
    """Does the cell check something: an assert, or a function that raises by name?"""
    return any(
        isinstance(node, ast.Assert)
        or (isinstance(node, ast.Attribute) and node.attr.startswith("assert_"))
        for node in ast.walk(tree(cell))
    )


def test_there_are_chapters():
    assert [path.stem[:2] for path in CHAPTERS] == [f"{i:02}" for i in range(len(CHAPTERS))]


def test_every_cell_was_run_in_order_and_without_errors(notebook):
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        allowed = "raises-exception" in tags(cell)
        assert allowed or not any(o.output_type == "error" for o in cell.outputs), cell.source
        assert not any(o.get("name") == "stderr" for o in cell.outputs), cell.source


def test_the_file_is_portable(chapter, notebook):
    text = chapter.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    assert "widgets" not in notebook.metadata
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert not re.search(r"/(home|root|work|tmp|Users)/|\b[A-Z]:\\\\", text)


def test_no_cell_deletes_what_another_cell_made(notebook):
    """It could not run a second time, nor could the cells before it."""
    for cell in code_cells(notebook):
        for node in ast.walk(tree(cell)):
            targets = node.targets if isinstance(node, ast.Delete) else []
            assert not any(isinstance(target, ast.Name) for target in targets), cell.source


def test_a_folded_picture_says_what_it_shows(notebook):
    """JupyterLab shows the first line of a folded cell: a comment, not a scrap of code."""
    for cell in code_cells(notebook):
        pictures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        if pictures and cell.metadata.get("jupyter", {}).get("source_hidden"):
            assert cell.source.startswith("# Picture: "), cell.source


def test_an_unchecked_output_is_followed_by_an_assert(chapter, notebook):
    """What nbval does not compare is asserted: in this cell, the next one, or in Evidence.

    Times are only printed: `make chapters` compares the chapters under a clock that jumps.
    """
    if chapter.stem.startswith("00"):  # it says what is installed, and how far the learner is
        return
    cells = code_cells(notebook)
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        free = re.search(f"^%%writefile|{TIMED}", cell.source)
        if NO_OUTPUT_CHECK in tags(cell) and not free:
            assert (
                asserts(cell)
                or (following and asserts(following))
                or results(cell, notebook) & proved(notebook)
            ), cell.source


def results(cell, notebook):
    """The values that a cell assigns, or shows by print or another call that stands by itself."""
    nodes = list(ast.walk(tree(cell)))
    named = [n for n in nodes if isinstance(n, ast.Name)]
    assigned = {n.id for n in named if isinstance(n.ctx, ast.Store)}
    shown = [n for s in nodes if isinstance(s, ast.Expr) for n in ast.walk(s)]
    called = {n.func.id for n in shown if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    everywhere = [n for c in code_cells(notebook) for n in ast.walk(tree(c))]
    imported = {n.asname or n.name for n in everywhere if isinstance(n, ast.alias)}
    return assigned | {n.id for n in shown if isinstance(n, ast.Name)} - called - imported


def proved(notebook):
    """The values from the cells above that cells of Evidence with an assert read."""
    found = set()
    for cell in code_cells(notebook):
        if "evidence" in tags(cell) and asserts(cell):
            named = [n for n in ast.walk(tree(cell)) if isinstance(n, ast.Name)]
            found |= {n.id for n in named if isinstance(n.ctx, ast.Load)} - {
                n.id for n in named if isinstance(n.ctx, ast.Store)
            }
    return found


def test_exercises_are_complete(chapter, notebook):
    """Task with folded hints and below them a solution, stub, check: at least three a chapter."""
    cells = notebook.cells
    starts = [i for i, cell in enumerate(cells) if "exercise" in tags(cell)]
    assert len(starts) >= (1 if chapter.stem in ("00_start_here", "look_it_up") else 3)
    for i in starts:
        task, stub, check = cells[i - 1 : i + 2]
        hints = re.findall(r"<summary>Hint (\d) of (\d)</summary>\n\n.+\n\n</details>", task.source)
        assert len(hints) >= 2
        assert hints == [(str(n), str(len(hints))) for n in range(1, len(hints) + 1)]
        assert task.source.rindex("<summary>Hint") < task.source.index("<summary>Solution")
        assert all(len(line) <= 88 for line in solution(task.source).splitlines())
        assert "..." in stub.source
        assert "not attempted" in check.outputs[0]["data"]["text/plain"]


def test_every_claim_is_asserted(notebook):
    cells = [cell for cell in code_cells(notebook) if tags(cell, "claim:")]
    assert all(asserts(cell) for cell in cells), [c.source for c in cells if not asserts(c)]


def test_a_claim_is_proved_in_one_chapter_and_the_errata_name_claims():
    claims = []
    for path in CHAPTERS:
        cells = code_cells(parsed(path))
        claims += {tag for cell in cells for tag in tags(cell, "claim:")}
    assert sorted(claims) == sorted(set(claims))
    errata = (ROOT / "docs" / "ERRATA.md").read_text("utf-8")
    assert set(re.findall(r"`(claim:\w+)`", errata)) <= set(claims)


# --- the test articles ---------------------------------------------------------------------------


def opens_test(source):
    """Can this code, which names `wikipedia`, read more than training and validation articles?"""
    nodes = ast.walk(ast.parse(source))
    return any(isinstance(n, ast.Constant) and n.value in ("test", "all") for n in nodes)


def test_the_test_articles_are_opened_once():
    """By the cell of chapter 16 that says so; by no other cell, study, tool or exercise."""
    opened = []
    for path in CHAPTERS:
        cells = code_cells(parsed(path))
        if any("wikipedia" in cell.source for cell in cells):
            opened += [path.stem[3:] for cell in cells if opens_test(cell.source)]
    assert opened == ["judging"]
    for package in ("studies", "exercises", "explorers", "tools"):
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            assert "wikipedia" not in source or not opens_test(source), path


# --- a chapter is an evening: docs/TEACHING.md --------------------------------------------------


@pytest.fixture(params=CHAPTERS[1:], ids=lambda path: path.stem)
def evening(request):
    """(path, notebook) of each chapter but 00, in turn."""
    return request.param, parsed(request.param)


def test_a_chapter_states_its_minutes():
    """`tools/notebooks.py check` compares them with what it counts."""
    for path in CHAPTERS:
        assert len(figures.stated_minutes(parsed(path))) == 2, path.stem


def test_an_evening_keeps_to_its_measures(evening):
    assert figures.too_much(evening[1]) == []


def test_visible_code_fits_into_a_page(evening):
    for cell in code_cells(evening[1]):
        wide = [line for line in cell.source.splitlines() if len(line) > 88]
        assert figures.is_folded(cell) or not wide


def the_program(notebook):
    """(name, text) of what a chapter has built: its cells in one file, or the file that it writes.

    Those tagged `built`; what one begins with `%%writefile NAME` is the whole.
    """
    parts = [cell.source for cell in notebook.cells if figures.tagged(cell, "built")]
    for part in parts:
        first, _, rest = part.partition("\n")
        if first.startswith("%%writefile"):
            return first.split()[-1], rest + "\n"
    return "program.py", "\n\n\n".join(parts) + "\n"


INPUT = "To be, or not to be: that is the question.\n" * 200


def test_what_was_built_runs_by_itself(evening, tmp_path):
    """Where there is no course. The GPT learns a text, here in fewer steps, and writes."""
    chapter, notebook = evening
    built = [cell.source for cell in notebook.cells if "built" in tags(cell)]
    if not built:
        pytest.skip("the chapter builds nothing")
    assert sum(len(source.splitlines()) for source in built) <= 160
    (tmp_path / "input.txt").write_text(INPUT, "utf-8")
    name, text = the_program(notebook)
    (tmp_path / name).write_text(text, "utf-8")
    said = run_alone(tmp_path, name, *(["--steps", "60"] if "--steps" in text else []))
    if chapter.stem.endswith("_gpt"):
        losses = re.findall(r"(\d+\.\d+) nats", said)
        assert float(losses[-1]) < 1 and "To be" in said


def test_proofs_are_folded_and_print_a_number(evening):
    for cell in code_cells(evening[1]):
        if cell.metadata.get("jupyter", {}).get("source_hidden") and tags(cell, "claim:"):
            text = "".join(o.get("text", "") for o in cell.outputs)
            assert re.search(r"\d", text), f"a folded proof prints what was tried: {cell.source}"


def test_deeper_sections_are_closed_and_come_last(evening):
    """Those tagged `deeper` and then Evidence, right before the exercises or behind them."""
    cells = evening[1].cells
    heads = [i for i, c in enumerate(cells) if c.metadata.get("jp-MarkdownHeadingCollapsed")]
    kinds = {i: kind for i, c in enumerate(cells) for kind in tags(c) if kind in CLOSED}
    assert all(i in kinds and cells[i].source.startswith("#") for i in heads)
    assert list(kinds.values()) == sorted(kinds.values())  # deeper before evidence
    for kind in set(kinds.values()):
        assert next(i for i in kinds if kinds[i] == kind) in heads
    if kinds:
        assert list(kinds) == list(range(min(kinds), max(kinds) + 1))
        assert re.match(r"## (.*Exercises|The next question)|← ", cells[max(kinds) + 1].source)


CLOSED = ("deeper", "evidence")


def test_a_claim_of_the_evidence_follows_its_paragraph(evening):
    """What is claimed, what was tried, what came out and how sure: then the cell."""
    cells = [cell for cell in evening[1].cells if "evidence" in tags(cell)]
    assert not cells or cells[0].source.startswith("## Evidence")
    has_paragraph = False
    for cell in cells:
        if cell.cell_type == "markdown":
            has_paragraph |= any(line and line[0] != "#" for line in cell.source.splitlines())
        elif tags(cell, "claim:"):
            assert has_paragraph, cell.source
            has_paragraph = False


def imported_concepts(cells):
    """(module, name) of everything that cells take from the concept modules."""
    for cell in cells:
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.Import):
                whole = [a.name for a in node.names if a.name.partition(".")[0] == "helpers"]
                assert not whole, f"import the names from {whole[0]}, not the module"
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            package, _, room = node.module.partition(".")
            module = room.partition(".")[0]
            if package == "helpers" and module in CONCEPTS:
                yield from ((module, alias.name) for alias in node.names)
            elif node.module == "helpers":
                whole = [alias.name for alias in node.names if alias.name in CONCEPTS]
                assert not whole, f"import the names from helpers.{whole[0]}, not the module"


NUMBERS = {path.stem[3:]: int(path.stem[:2]) for path in CHAPTERS}


def says(module, name):
    """("Taught" or "Explained", number of the chapter): a docstring names it by its topic."""
    doc = inspect.getdoc(getattr(__import__(f"helpers.{module}", fromlist=[name]), name)) or ""
    found = re.search(r"(Taught|Explained) in: (\w+)", doc)
    assert found, f"helpers.{module}.{name} does not say 'Taught in: TOPIC.' or 'Explained in: …'"
    return found[1], NUMBERS[found[2]]


def taught_in(module, name):
    return says(module, name)[1]


def test_nothing_is_used_before_it_is_taught(chapter, notebook):
    """But for a look ahead, whose heading says so."""
    cells = [
        cell for above, cell in pairwise(notebook.cells)
        if cell.cell_type == "code" and not above.source.startswith("### Ahead: ")
    ]  # fmt: skip
    for module, name in imported_concepts(cells):
        here = NUMBERS.get(chapter.stem[3:], 0)
        assert taught_in(module, name) <= here, f"helpers.{module}.{name}"


def public_concepts():
    """(module, name) of every class and function that the concept modules define."""
    for module in CONCEPTS:
        loaded = __import__(f"helpers.{module}", fromlist=["_"])
        for name, thing in vars(loaded).items():
            own = getattr(thing, "__module__", "").startswith(loaded.__name__)
            if (
                own
                and not name.startswith("_")
                and (inspect.isclass(thing) or inspect.isfunction(thing))
            ):
                yield module, name


BUILT = [(m, n) for m, n in public_concepts() if says(m, n)[0] == "Taught"]


@pytest.mark.parametrize(("module", "name"), BUILT)
def test_the_chapter_that_teaches_it_compares_its_own_with_the_helper(module, name):
    """A cell tagged same-as:module.name defines it, and test_same_as.py compares them."""
    (path,) = (ROOT / "notebooks").glob(f"{taught_in(module, name):02}_*.ipynb")
    notebook = parsed(path)
    proofs = [c for c in code_cells(notebook) if f"same-as:{module}.{name}" in tags(c)]
    assert proofs, f"{path.name} has no cell tagged same-as:{module}.{name}"
    assert all(definitions(cell) for cell in proofs) and f"{module}.{name}" in SAME_AS


PACKAGES = ("helpers", "exercises", "explorers", "studies")


def imports(path):
    """(package, module or None) of every import of the course's own code in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, rest = node.module.partition(".")
            names = [rest.split(".")[0]] if rest else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            package, names = node.names[0].name.split(".")[0], [None]
        else:
            continue
        if package in (*PACKAGES, "tests", "tools"):
            yield from ((package, name) for name in names)


@pytest.mark.parametrize("path", sorted((ROOT / "helpers").rglob("*.py")), ids=lambda p: p.stem)
def test_the_first_floor_of_helpers_stands_alone(path: Path):
    own = path.relative_to(ROOT / "helpers").parts[0].removesuffix(".py")
    for package, name in imports(path):
        assert package == "helpers", f"{path.name} imports {package}, which stands above helpers"
        assert own not in FIRST or name in FIRST, f"{path.name} imports helpers.{name}"


def test_the_first_floor_of_helpers_stays_small():
    room = ROOT / "helpers"
    files = [*(room / "text").glob("*.py"), *(room / f"{name}.py" for name in FIRST)]
    lines = [path.read_text("utf-8").splitlines() for path in files if path.exists()]
    assert 0 < sum(map(len, lines)) <= 2500


def test_the_whole_stays_small():
    """Python, JavaScript and CSS, tests included: who adds something takes something away."""
    named = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    files = [ROOT / name for name in named.split() if name.endswith((".py", ".js", ".css"))]
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in files if path.exists()}
    assert sum(lines.values()) <= 45_000
    assert sum(n for path, n in lines.items() if ROOT / "helpers" in path.parents) <= 5_000


@pytest.mark.parametrize("package", ["exercises", "explorers", "studies"])
def test_the_other_packages_stand_on_helpers_alone(package):
    for path in (ROOT / package).glob("*.py"):
        assert {found for found, _ in imports(path)} <= {"helpers", package}, path.name


def test_the_map_of_helpers_has_one_line_for_each_room():
    rooms = {p.stem for p in (ROOT / "helpers").iterdir() if not p.name.startswith("_")}
    assert sorted(FIRST + SECOND) == sorted(rooms)


def test_every_chapter_has_its_exercises_by_topic():
    topics = {topic(path) for path in NOTEBOOKS}
    rooms = {path.stem for path in (ROOT / "exercises").glob("*.py")}
    assert rooms - {"__init__", "cells", "check", "progress", "watch"} == topics
