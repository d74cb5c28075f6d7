"""What a chapter asks of a reader, counted in its file.

The core path is everything before the heading "Exercises" that is tagged neither `deeper` nor
`evidence`. A quick reader takes a minute for 100 words, for 6 lines of visible code, and for a
picture; those who stop to think were timed at 1.6 times that. A formula counts as one word.
Every chapter but the first, which explains how the course works, keeps to MEASURES.
"""

import re

from nbformat import NotebookNode

MEASURES: dict[str, float] = {
    "minutes": 60,
    "longest": 20,  # lines in a visible cell
    "drawings": 6,  # folded cells that draw a picture
    "folded": 2,  # other folded cells
    "proofs": 14,  # code cells of Evidence: aim at 12
    "proof lines": 170,  # aim at 150
    "exercises": 45,  # minutes, as the exercises state them
}
COLUMNS = ["minutes", "words", "lines", "pictures", *list(MEASURES)[1:]]


def figures(notebook: NotebookNode) -> dict[str, float]:
    """The figures of a chapter: those of MEASURES, and its words, lines and pictures."""
    before = _before_exercises(notebook)
    core = [cell for cell in before if not tagged(cell, "deeper", "evidence")]
    text = [cell.source for cell in core if cell.cell_type == "markdown"]
    code = [cell for cell in core if cell.cell_type == "code"]
    shown = [cell for cell in code if not is_folded(cell)]
    others = [cell for cell in code if is_folded(cell) and not draws(cell)]
    proofs = [c for c in notebook.cells if tagged(c, "evidence") and c.cell_type == "code"]
    tasks = re.findall(r"[●○]{3} · (\d+) minutes", "\n".join(c.source for c in notebook.cells))
    found: dict[str, float] = {
        "words": sum(map(_words, text)),
        "lines": sum(map(_lines, shown)),
        "pictures": sum(map(draws, code)),
        "longest": max((_lines(c) for c in shown if not tagged(c, "built")), default=0),
        "drawings": len(code) - len(shown) - len(others),
        "folded": len(others),
        "proofs": len(proofs),
        "proof lines": sum(map(_lines, proofs)),
        "exercises": sum(map(int, tasks)),
    }
    found["minutes"] = round(found["words"] / 100 + found["lines"] / 6 + found["pictures"])
    return found


def too_much(notebook: NotebookNode) -> list[str]:
    """What is above MEASURES, in words."""
    found = figures(notebook)
    return [f"{name} {found[name]:g} > {most:g}" for name, most in MEASURES.items()
            if found[name] > most]  # fmt: skip


def minutes(notebook: NotebookNode) -> dict[str, str]:
    """What the head of a chapter should state: a range for reading, a sum for the exercises."""
    found = figures(notebook)
    quick, slow = (5 * round(times * found["minutes"] / 5) for times in (1, 1.6))
    return {"reading": f"{quick} to {slow}", "exercises": f"{found['exercises']:g}"}


def stated_minutes(notebook: NotebookNode) -> dict[str, str]:
    """The minutes of reading and of exercises that the head of a chapter states, if it does."""
    head = "\n".join(cell.source for cell in notebook.cells[:3])
    return dict(re.findall(r"\b(reading|exercises): (\d+(?: to \d+)?) minutes", head.lower()))


def _words(source: str) -> int:
    """Words of prose: without tags, bars of tables, and the insides of formulae."""
    source = re.sub(r"\$\$.+?\$\$|\$[^$\n]+\$", "formula", source, flags=re.S)
    return len(re.sub(r"<[^>]+>|\||\]\([^)]*\)", "", source).split())


def _before_exercises(notebook: NotebookNode) -> list[NotebookNode]:
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and re.search(r"(?m)^## .*Exercises", cell.source):
            return list(notebook.cells[:number])
    return list(notebook.cells)


def tagged(cell: NotebookNode, *names: str) -> bool:
    """Has the cell one of these tags?"""
    return any(name in cell.metadata.get("tags", []) for name in names)


def is_folded(cell: NotebookNode) -> bool:
    """Is the code of the cell hidden until a click?"""
    return bool(cell.metadata.get("jupyter", {}).get("source_hidden"))


def draws(cell: NotebookNode) -> bool:
    """Is there a picture among the outputs of the cell?"""
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


def _lines(cell: NotebookNode) -> int:
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def table(chapters: dict[str, NotebookNode]) -> str:
    """The figures of chapters as a table in plain text; `*` marks what is above MEASURES."""
    widths = {name: max(8, len(name) + 2) for name in COLUMNS}
    rows = {"": list(COLUMNS), "at most": [f"{MEASURES.get(name, '')}" for name in COLUMNS]}
    for stem, notebook in chapters.items():
        found = figures(notebook)
        above = {name for name, most in MEASURES.items() if found[name] > most}
        rows[stem] = [f"{found[name]:g}{'*' if name in above else ''}" for name in COLUMNS]
    return "\n".join(
        f"{stem:24}" + "".join(f"{cell:>{widths[n]}}" for n, cell in zip(COLUMNS, row, strict=True))
        for stem, row in rows.items()
    )
