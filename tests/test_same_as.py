"""What a chapter of the third edition defines does the same as the helper of that name.

The tag `same-as:module.name` is on the cell that defines it. Its definitions, and what they need of
the cells above, are taken from the notebook and compared with the helper on random inputs.
"""

import ast
import math

import figures
import nbformat
import pytest
import torch
from conftest import CHAPTERS
from nbformat import v4
from torch.testing import assert_close

from helpers import attention, fast, gpt, positions, training
from helpers.text import CharTokenizer, NGramModel
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


def same_multi_head(ManyHeads):
    x = torch.randn(2, 5, 12)
    for n_head in (1, 3, 12):
        mine, ours = ManyHeads(12, n_head), attention.MultiHeadAttention(12, n_head)
        ours.load_state_dict(mine.state_dict())
        assert_close(mine(x), ours(x))
        assert_close(mine.weights(x), ours.weights(x))
        assert_close(mine.merge(mine.split(x)), x)
    for layer in (ManyHeads, attention.MultiHeadAttention):
        with pytest.raises(ValueError, match=r"30.* 4 heads"):
            layer(30, 4)


@torch.no_grad()
def same_gpt(GPT, n_parameters):
    for V, T, L, H, C in [(5, 4, 1, 2, 6), (69, 16, 2, 4, 32), (100, 7, 3, 2, 10)]:
        mine, ours = GPT(V, T, L, H, C), gpt.GPT(gpt.GPTConfig(V, T, L, H, C))
        for p, q in zip(mine.parameters(), ours.parameters(), strict=True):
            q.copy_(p.normal_(std=0.3))  # no parameter is 0 or 1 any more
        ids = torch.randint(V, (3, T))
        assert_close(mine(ids), ours(ids), atol=1e-4, rtol=1e-4)
        assert ours.n_parameters() == n_parameters(V, T, L, C)


@torch.no_grad()
def same_learned_position(PositionTable):
    for T, C in [(5, 4), (8, 6)]:
        mine, ours = PositionTable(8, C), positions.LearnedPosition(8, C)
        ours.table.weight.copy_(mine.vectors.weight)
        x = torch.randn(2, T, C)
        assert_close(ours(x), mine(x))


def same_rotary_angles(all_angles):
    for T, size, base in [(5, 6, 100.0), (40, 64, 10_000.0), (300, 2, 10.0)]:
        assert_close(all_angles(T, size, base), positions.rotary_angles(T, size, base))


def same_sinusoidal(sinusoidal):
    for T, C, base in [(5, 6, 100.0), (40, 64, 10_000.0), (300, 2, 10.0)]:
        assert_close(sinusoidal(T, C, base), positions.sinusoidal(T, C, base))
        x = torch.randn(2, T, C)
        assert_close(x + sinusoidal(T, C, base), positions.SinusoidalPosition(C, base)(x))


def same_rotary(rotate):
    for T, hs, base in [(7, 8, 100.0), (10, 16, 10_000.0), (1, 2, 10.0)]:
        x = torch.randn(2, 4, T, hs)
        for start in (0, 5):
            ours = positions.Rotary(hs, base)(x, start=start)
            assert_close(rotate(x, base, start), ours, atol=1e-5, rtol=1e-4)


def same_half_split(reorder):
    for H, hs, C in [(1, 4, 3), (2, 8, 12), (3, 6, 5)]:
        weight = torch.randn(H * hs, C)
        assert_close(reorder(weight, H), positions.half_split(weight, H))


def same_tokenizer(decode, encode):
    tokenizer = CharTokenizer.from_text("abracadabra")  # the chapter's word
    for _ in range(20):
        ids = torch.randint(5, (9,)).tolist()
        text = tokenizer.decode(ids)
        assert decode(ids) == text and encode(text) == ids


def same_batches(get_batch):
    ids = torch.randint(69, (500,))
    for seed, (T, B) in enumerate([(6, 4), (1, 1), (64, 32), (499, 2)]):
        mine = get_batch(ids, T, B, torch.Generator().manual_seed(seed))
        ours = training.get_batch(ids, T, B, torch.Generator().manual_seed(seed))
        assert all(map(torch.equal, mine, ours))
        assert torch.equal(mine[0][:, 1:], mine[1][:, :-1])
    _, y = get_batch(torch.arange(10), 4, 1000, torch.Generator().manual_seed(0))
    assert y.max() == 9  # the last token is a target, too


def same_loss(language_model_loss):
    for V, B, T in [(5, 2, 3), (69, 4, 16)]:
        model = torch.nn.Embedding(V, V)
        x, y = torch.randint(V, (2, B, T))
        assert_close(language_model_loss(model, x, y), training.language_model_loss(model, x, y))


def same_training(train):
    ids, losses = torch.randint(7, (300,)), []
    for function in (train, training.train):
        torch.manual_seed(0)
        model = torch.nn.Embedding(7, 7)
        found = function(
            model, ids, steps=20, block_size=8, batch_size=4,
            optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
            generator=torch.Generator().manual_seed(1),
        )  # fmt: skip
        losses.append([*found, model.weight.sum().item()])
    assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]))


def same_ngrams(interpolated):
    symbols, held = "abcdr", "abracadabrabarda"
    tokenizer = CharTokenizer(symbols)
    model = NGramModel(torch.tensor(tokenizer.encode("abracadabra")), 5, max_context=3)
    nll = model.nll(torch.tensor(tokenizer.encode(held)))
    for i, character in enumerate(held):
        for k in range(4):
            probs = interpolated("abracadabra", held[max(0, i - k) : i], symbols)
            mine = probs[symbols.index(character)]
            assert_close(-math.log(mine), nll[k, i].item(), rtol=1e-6, atol=1e-6)


def same_parameters(mine, ours):
    """Give both modules the same random parameters, in the order in which they were made."""
    with torch.no_grad():
        for p, q in zip(mine.parameters(), ours.parameters(), strict=True):
            q.copy_(p.normal_(std=0.3))
    return mine, ours


def same_feed_forward(FeedForward):
    for C in (6, 48):
        mine, ours = same_parameters(FeedForward(C), gpt.FeedForward(C))
        x = torch.randn(2, 9, C)
        assert_close(mine(x), ours(x), atol=1e-4, rtol=1e-4)


def same_swiglu(SwiGLU):
    for C in (6, 48):
        mine, ours = same_parameters(SwiGLU(C, 8 * C // 3), gpt.SwiGLU(C))
        x = torch.randn(2, 9, C)
        assert_close(mine(x), ours(x), atol=1e-4, rtol=1e-4)


def same_block(Block):
    for C, H in ((6, 2), (48, 4)):
        ours = gpt.Block(attention.MultiHeadAttention(C, H), gpt.FeedForward(C))
        mine, ours = same_parameters(Block(C, H), ours)
        x = torch.randn(2, 9, C)
        assert_close(mine(x), ours(x), atol=1e-4, rtol=1e-4)


def same_dropout(dropout):
    x = torch.randn(100_000) + 3
    for p in (0.1, 0.25, 0.5):
        ours = fast.FastDropout(p)
        for y in (dropout(x, p, training=True), ours(x)):
            assert_close((y == 0).float().mean().item(), p, atol=0.01, rtol=0)
            assert_close(y[y != 0], x[y != 0] / (1 - p), atol=1e-3, rtol=1e-4)
        assert dropout(x, p, training=False) is x
        assert torch.equal(ours.eval()(x), x)


# Tag → how to compare what its cell defines, and the names of what else is compared.
SAME_AS = {
    "text.CharTokenizer": (same_tokenizer, ["encode"]),
    "training.get_batch": (same_batches, []),
    "training.language_model_loss": (same_loss, []),
    "training.train": (same_training, []),
    "text.NGramModel": (same_ngrams, []),
    "attention.causal_mask": (same_causal_mask, []),
    "attention.attention": (same_attention, []),
    "attention.Head": (same_head, []),
    "attention.MultiHeadAttention": (same_multi_head, []),
    "gpt.FeedForward": (same_feed_forward, []),
    "gpt.SwiGLU": (same_swiglu, []),
    "gpt.Block": (same_block, []),
    "fast.FastDropout": (same_dropout, []),
    "gpt.GPT": (same_gpt, ["n_parameters"]),
    "gpt.GPTConfig": (same_gpt, ["n_parameters"]),
    "positions.LearnedPosition": (same_learned_position, []),
    "positions.rotary_angles": (same_rotary_angles, []),
    "positions.sinusoidal": (same_sinusoidal, []),
    "positions.SinusoidalPosition": (same_sinusoidal, []),
    "positions.Rotary": (same_rotary, []),
    "positions.half_split": (same_half_split, []),
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
