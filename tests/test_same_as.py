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
from tests.solutions import names, needed


def same_causal_mask(causal_mask):
    for T in (1, 4, 50):
        assert torch.equal(causal_mask(T), attention.causal_mask(T))


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


# Tag → how to compare what its cell defines, and the names of what else is compared.
SAME_AS = {
    "attention.causal_mask": (same_causal_mask, []),
    "attention.attention": (same_attention, []),
    "attention.Head": (same_head, []),
    "gpt.GPT": (same_gpt, ["n_parameters"]),
    "gpt.GPTConfig": (same_gpt, ["n_parameters"]),
}


def definitions(cell):
    """{name: code} of the functions and classes that a code cell defines."""
    if cell.cell_type != "code" or cell.source.startswith("%%"):
        return {}
    found = ast.parse(cell.source).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: ast.unparse(node) for node in found if isinstance(node, kinds)}


def defined(notebook, at, name):
    """The function or class `name` of a cell, made of its code and of what this reads: from the
    cells above, or, if it stands only beside or below it, from there."""
    cells, code = notebook.cells, definitions(notebook.cells[at])[name]
    above = {other for cell in cells[:at] for other in definitions(cell)}
    read = names(ast.parse(code))[1] - above - {name}
    below = [definitions(c)[other] for c in cells[at:] for other in definitions(c) if other in read]
    codes = [cell for cell in cells[:at] if not cell.source.startswith("%%")]
    codes += [v4.new_code_cell(source) for source in (*below, code)]
    namespace = {}
    exec(f"{needed(v4.new_notebook(cells=codes), len(codes) - 1)}\n{code}", namespace)
    return namespace[name]


@pytest.mark.parametrize("what", SAME_AS)
def test_what_a_chapter_defines_does_the_same_as_the_helper(what):
    read = [nbformat.read(path, as_version=4) for path in CHAPTERS]
    tagged = [(n, i) for n in read for i, c in enumerate(n.cells) if tagged_as(what, c)]
    if not figures.is_third_edition(tagged[0][0]):
        pytest.skip("a cell of the chapter compares them")
    compare, others = SAME_AS[what]
    for notebook, at in tagged:
        *_, name = definitions(notebook.cells[at])  # the last one, which may use the others
        places = [next(i for i, c in enumerate(notebook.cells) if n in definitions(c))
                  for n in others]  # fmt: skip
        beside = [defined(notebook, i, n) for i, n in zip(places, others, strict=True)]
        torch.manual_seed(0)
        compare(defined(notebook, at, name), *beside)


def tagged_as(what, cell):
    return figures.tagged(cell, f"same-as:{what}")
