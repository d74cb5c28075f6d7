"""What a chapter of the third edition defines does the same as the helper of that name.

The tag `same-as:module.name` is on the cell that defines it. Its definitions, and what they need of
the cells above, are taken from the notebook and compared with the helper on random inputs.
"""

import ast

import figures
import nbformat
import pytest
import torch
from conftest import CHAPTERS
from nbformat import v4
from torch.testing import assert_close

from helpers import attention, gpt
from tests.solutions import needed


def same_attention(attend):
    for shape in [(5, 4), (3, 5, 4), (2, 3, 16, 8)]:
        q, k, v = torch.randn(3, *shape)
        for mask in (None, attention.causal_mask(shape[-2])):
            assert_close(attend(q, k, v, mask), attention.attention(q, k, v, mask))


def same_head(SingleHead):
    x = torch.randn(2, 5, 50)
    for causal in (True, False):
        mine = SingleHead(50, 16, causal=causal)
        ours = attention.Head(50, 16, causal=causal)
        ours.load_state_dict(mine.state_dict())
        assert_close(mine(x), ours(x))
        mask = attention.causal_mask(5) if causal else None
        _, weights = attention.attention(mine.query(x), mine.key(x), mine.value(x), mask)
        assert_close(ours.weights(x)[:, 0], weights)


@torch.no_grad()
def same_gpt(GPT, n_parameters):
    for V, T, L, H, C in [(5, 4, 1, 2, 6), (69, 16, 2, 4, 32), (100, 7, 3, 2, 10)]:
        mine, ours = GPT(V, T, L, H, C), gpt.GPT(gpt.GPTConfig(V, T, L, H, C))
        for p, q in zip(mine.parameters(), ours.parameters(), strict=True):
            q.copy_(p.normal_(std=0.3))  # no parameter is 0 or 1 any more
        ids = torch.randint(V, (3, T))
        assert_close(mine(ids), ours(ids), atol=1e-4, rtol=1e-4)
        assert ours.n_parameters() == n_parameters(V, T, L, C)


# Tag → how to compare, and the names that the chapter gives to what is compared.
SAME_AS = {
    "attention.attention": (same_attention, ["attend"]),
    "attention.Head": (same_head, ["SingleHead"]),
    "gpt.GPT": (same_gpt, ["GPT", "n_parameters"]),
    "gpt.GPTConfig": (same_gpt, ["GPT", "n_parameters"]),
}


def definitions(cell):
    """{name: code} of the functions and classes that a code cell defines."""
    if cell.cell_type != "code" or cell.source.startswith("%%"):
        return {}
    found = ast.parse(cell.source).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: ast.unparse(node) for node in found if isinstance(node, kinds)}


def defined(notebook, name, tag):
    """What a chapter calls `name`: from the tagged cell, or else from the first that defines it."""
    cells = notebook.cells
    places = [i for i, cell in enumerate(cells) if name in definitions(cell)]
    assert places, f"no cell defines {name}"
    at = min(places, key=lambda i: (tag not in cells[i].metadata.get("tags", []), i))
    code = definitions(cells[at])[name]
    above = v4.new_notebook(cells=[*cells[:at], v4.new_code_cell(code)])
    namespace = {}
    exec(f"{needed(above, at)}\n{code}", namespace)
    return namespace[name]


@pytest.mark.parametrize("what", SAME_AS)
def test_what_a_chapter_defines_does_the_same_as_the_helper(what):
    tag = f"same-as:{what}"
    read = [nbformat.read(path, as_version=4) for path in CHAPTERS]
    (notebook,) = [n for n in read if any(figures.tagged(cell, tag) for cell in n.cells)]
    if not figures.is_third_edition(notebook):
        pytest.skip("a cell of the chapter compares them")
    compare, names = SAME_AS[what]
    for cell in notebook.cells:
        assert not figures.tagged(cell, tag) or set(names) & set(definitions(cell)), cell.source
    torch.manual_seed(0)
    compare(*(defined(notebook, name, tag) for name in names))
