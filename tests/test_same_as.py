"""What a chapter defines does the same as the helper of that name.

The tag `same-as:module.name` is on the cell that defines it. Its definitions, and what they need of
the cells above, are taken from the notebook and compared with the helper on random inputs.
"""

import ast
import math
from collections.abc import Callable
from importlib import import_module
from itertools import product

import figures
import pytest
import torch
from conftest import CHAPTERS, parsed
from nbformat import v4
from torch.testing import assert_close

from helpers import attention, evaluation, gpt, quantization, sampling
from helpers.text import BPETokenizer, CharTokenizer, NGramModel
from studies._seq2seq import pairs_to_ids
from tests.solutions import names, needed

randn, randint, rand = torch.randn, torch.randint, torch.rand


def calls(draw: Callable[[], list[tuple]], **near: float) -> Callable:
    """Compares what two functions give for each tuple of arguments."""

    def compare(mine, ours):
        for arguments in draw():
            found, wanted = mine(*arguments), ours(*arguments)
            if isinstance(wanted, torch.Tensor | tuple):
                assert_close(found, wanted, **near)
            elif isinstance(wanted, float):
                assert math.isclose(found, wanted)
            else:
                assert found == wanted

    return compare


def modules(draw: Callable[..., tuple], *sizes: tuple, near: float = 1e-5) -> Callable:
    """Compares two modules of the same sizes and the same weights on what `draw` gives."""

    @torch.no_grad()
    def compare(mine, ours):
        for size in sizes:
            one, other = same_parameters(mine(*size), ours(*size))
            x = draw(*size)
            assert_close(one(*x), other(*x), atol=near, rtol=near)

    return compare


def same_parameters(mine, ours):
    """Give both modules the same random parameters, under the same names in the same order."""
    with torch.no_grad():
        for p in mine.parameters():  # so that none is 0 or 1
            p.normal_(std=0.3)
    assert [*mine.state_dict()] == [*ours.state_dict()]
    ours.load_state_dict(mine.state_dict())
    return mine, ours


def vectors(C, *_):
    return (randn(2, 9, C),)


# --- attention and the model ---------------------------------------------------------------------


def same_head(Head, Ours):
    x = randn(2, 5, 50)
    for causal in (True, False):
        mine, ours = same_parameters(Head(50, 16, causal=causal), Ours(50, 16, causal=causal))
        assert_close(mine(x), ours(x))
        mask = attention.causal_mask(5) if causal else None
        _, weights = attention.attention(mine.query(x), mine.key(x), mine.value(x), mask)
        assert_close(ours.weights(x)[:, 0], weights)


def same_multi_head(MultiHeadAttention, Ours):
    x = randn(2, 5, 12)
    for n_head in (1, 3, 12):
        mine, ours = same_parameters(MultiHeadAttention(12, n_head), Ours(12, n_head))
        assert_close(mine(x), ours(x))
        assert_close(mine.weights(x), ours.weights(x))
        assert_close(mine.merge(mine.split(x)), x)


def same_cache(Cache, Ours):
    k, v = randn(2, 2, 3, 6, 4)
    mine, ours = Cache(), Ours(max_tokens=6)
    assert len(mine) == len(ours) == 0
    for start, end in ((0, 3), (3, 4), (4, 6)):
        new = k[:, :, start:end], v[:, :, start:end]
        for one, other in zip(mine.append(*new), ours.append(*new), strict=True):
            assert torch.equal(one, other)
        assert len(mine) == len(ours) == end
    assert torch.equal(mine.keys, ours.keys) and torch.equal(mine.values, ours.values)


def same_block(Block, Ours):
    def ours(C, H):
        return Ours(attention.MultiHeadAttention(C, H), gpt.FeedForward(C))

    modules(vectors, (6, 2), (48, 4), near=1e-4)(Block, ours)


def same_gpt(GPT, _, n_parameters):
    sizes = [(5, 4, 1, 2, 6), (69, 16, 2, 4, 32), (100, 7, 3, 2, 10)]

    def ours(*size):
        model = gpt.GPT(gpt.GPTConfig(*size))
        V, T, L, _, C = size
        assert model.n_parameters() == n_parameters(V, T, L, C)
        return model

    modules(lambda V, T, *_: (randint(V, (3, T)),), *sizes, near=1e-4)(GPT, ours)


def same_dropout(dropout, Dropout):
    x = randn(100_000) + 3
    for p in (0.1, 0.25, 0.5):
        ours = Dropout(p)
        for y in (dropout(x, p, training=True), ours(x)):
            assert_close((y == 0).float().mean().item(), p, atol=0.01, rtol=0)
            assert_close(y[y != 0], x[y != 0] / (1 - p), atol=1e-3, rtol=1e-4)
        assert dropout(x, p, training=False) is x
        assert torch.equal(ours.eval()(x), x)


@torch.no_grad()
def same_short_convolution(short_convolution, Ours):
    layer, x = Ours(6), randn(2, 9, 6)
    assert torch.equal(layer(x), x)  # its weights start at 0
    layer.weight.normal_()
    weights = layer.weight[:, 0, 0].T.flip(0)  # the chapter counts from this token backwards
    assert_close(short_convolution(x, weights), layer(x))
    changed = x.clone()
    changed[:, 4] += 1
    reached = (layer(changed) - layer(x)).abs().amax((0, 2)) > 1e-6
    assert reached.nonzero().flatten().tolist() == [4, 5, 6, 7]


def same_fast_gpt(mine, ours):
    for sizes in [(69, 16, 2, 4, 32), (10, 5, 1, 1, 8)]:
        models = []
        for make in (mine, ours):
            torch.manual_seed(0)
            models.append(make(*sizes))
        assert models[0].config == models[1].config
        assert_close([*models[0].parameters()], [*models[1].parameters()], rtol=0, atol=0)


def same_sinusoidal(mine, Ours):
    for T, C, base in [(5, 6, 100.0), (40, 64, 10_000.0), (300, 2, 10.0)]:
        x = randn(2, T, C)
        assert_close(x + mine(T, C, base), Ours(C, base)(x))


def same_rotary(rotate, Rotary):
    for T, hs, base in [(7, 8, 100.0), (10, 16, 10_000.0), (1, 2, 10.0)]:
        x = randn(2, 4, T, hs)
        for start in (0, 5):
            ours = Rotary(hs, base)(x, start=start)
            assert_close(rotate(x, base, start), ours, atol=1e-5, rtol=1e-4)


def same_seq2seq(mine, ours, *others):
    """The Transformer, or the recurrent model with attention and, beside it, with one vector."""
    source, decoder_input, _ = pairs_to_ids([("abc", "cba"), ("3 May 1979", "1979-05-03")])
    for sizes in ((32,), (6,)) if others else ((8, 2, 1), (32, 4, 2)):
        made = [(mine(*sizes), ours(*sizes, *["dot"] * len(others)))]
        made += [(other(*sizes), ours(*sizes, None)) for other in others]
        for one, other in made:
            other.load_state_dict(one.state_dict())
            assert_close(one(source, decoder_input), other(source, decoder_input))


# --- texts and training --------------------------------------------------------------------------


def same_tokenizer(decode, _, encode):
    tokenizer = CharTokenizer.from_text("abracadabra")  # the chapter's word
    for _ in range(20):
        ids = randint(5, (9,)).tolist()
        text = tokenizer.decode(ids)
        assert decode(ids) == text and encode(text) == ids


def same_ngrams(interpolated, _):
    symbols, held = "abcdr", "abracadabrabarda"
    tokenizer = CharTokenizer(symbols)
    model = NGramModel(torch.tensor(tokenizer.encode("abracadabra")), 5, max_context=3)
    nll = model.nll(torch.tensor(tokenizer.encode(held)))
    for (i, character), k in product(enumerate(held), range(4)):
        probs = interpolated("abracadabra", held[max(0, i - k) : i], symbols)
        mine = probs[symbols.index(character)]
        assert_close(-math.log(mine), nll[k, i].item(), rtol=1e-6, atol=1e-6)


ODD_TEXTS = [
    "The owls didn't sleep.\n\n  In 1969, she'd won 12 prizes.\t \r\n",
    "naïve café DON'T don’t 人人生而自由 🦉 \x00\xa0\u2028 ½ ∀",
    "".join(map(chr, range(0x300))),
    "",
]


def same_bpe(Tokenizer, Ours):
    learned_from = ["low lower lowest: the newer the slower. An owl 🦉 isn't low.\n" * 3]
    for text in [*learned_from, "ba dc", "dc ba", "aaaa aaaa" + " bc" * 5]:
        mine, ours = Tokenizer(text, 300), Ours.train(text, 300)
        assert list(mine.rank) == ours.merges
        assert mine.vocabulary == [ours.piece(i) for i in range(ours.vocab_size)]
        for odd in [*ODD_TEXTS, text]:
            ids = mine.encode(odd)
            assert ids == ours.encode(odd) and mine.decode(ids) == odd
        assert mine.decode(ids[:-1]) == ours.decode(ids[:-1])


def same_stream(mine, ours):
    documents = ["A cat sat.", "", "It spells <|endoftext|>, an end that is none."]
    tokenizer = BPETokenizer.train(documents, vocab_size=270, special=["<|endoftext|>"])
    assert mine(tokenizer, documents).tolist() == ours(tokenizer, documents)


def same_batches(get_batch, ours):
    ids = randint(69, (500,))
    for seed, (T, B) in enumerate([(6, 4), (1, 1), (64, 32), (499, 2)]):
        x, y = found = get_batch(ids, T, B, torch.Generator().manual_seed(seed))
        assert all(map(torch.equal, found, ours(ids, T, B, torch.Generator().manual_seed(seed))))
        assert torch.equal(x[:, 1:], y[:, :-1])
    _, y = get_batch(torch.arange(10), 4, 1000, torch.Generator().manual_seed(0))
    assert y.max() == 9  # the last token is a target, too


def same_training(mine, ours):
    ids, losses = randint(7, (300,)), []
    for function in (mine, ours):
        torch.manual_seed(0)
        model = torch.nn.Embedding(7, 7)
        found = function(
            model, ids, steps=20, block_size=8, batch_size=4,
            optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
            generator=torch.Generator().manual_seed(1),
        )  # fmt: skip
        losses.append([*found, model.weight.sum().item()])
    assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]))


def same_adamw(mine, ours):
    model = gpt.GPT(gpt.GPTConfig(5, 4, 1, 2, 6))
    same_groups([mine(model, 0.01, 0.5)], [ours(model, 0.01, 0.5)])
    assert mine(model, 0.01).defaults["lr"] == ours(model, 0.01).defaults["lr"]


def same_fast_optimizers(mine, ours):
    model = gpt.fast_gpt(69, 16, 2, 4, 32)
    same_groups(mine(model), ours(model))


def same_groups(mine, ours):
    """Optimizers of the same kinds, for the same parameters in the same way."""
    for one, other in zip(mine, ours, strict=True):
        assert type(one) is type(other)
        for a, b in zip(one.param_groups, other.param_groups, strict=True):
            assert {id(p) for p in a["params"]} == {id(p) for p in b["params"]}
            kept = {"lr", "momentum", "betas", "weight_decay", "eps"} & a.keys()
            assert {k: a[k] for k in kept} == {k: b[k] for k in kept}


def same_muon(muon_step, Muon):
    for shape in [(12, 12), (48, 12), (12, 48)]:
        p, average = randn(shape), torch.zeros(shape)
        parameter = torch.nn.Parameter(p.clone())
        optimizer = Muon([parameter])
        for size in (0, 1, 1, 0):  # a gradient of zeros, too
            parameter.grad = size * randn(shape)
            muon_step(p, parameter.grad, average)
            optimizer.step()
        assert_close(p, parameter.detach(), atol=0.01, rtol=0)


# --- generation, evaluation, few bits ------------------------------------------------------------

DECODING = (
    {"temperature": 0},
    {"temperature": 0.7, "top_k": 5},
    {"temperature": 1.5, "top_p": 0.9},
    {"top_k": 20, "top_p": 0.5},
    {"top_p": 1.0},
    {"temperature": 2.0, "min_p": 0.1},
    {"top_k": 20, "top_p": 0.9, "min_p": 0.05},
)


def same_probabilities(mine, ours):
    rows = 3 * randn(300, 50)
    for settings in DECODING:
        found = torch.stack([mine(row, **settings) for row in rows])
        assert_close(found, ours(rows, **settings), atol=1e-6, rtol=0)


def same_penalty(mine, ours):
    logits, ids = 3 * randn(300, 50), randint(50, (300, 7))
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    assert torch.equal(mine(logits, seen, 1.2), ours(logits, ids, 1.2))


def same_generate(mine, ours):
    model = gpt.GPT(gpt.GPTConfig(20, 32, 2, 2, 16)).eval()
    for seed, settings in enumerate(DECODING):
        ids, found = randint(20, (1, 4)), []
        for function in (mine, ours):
            torch.manual_seed(seed)
            found.append(function(model, ids, 20, **settings))
        assert torch.equal(*found)


def small_model():
    config = gpt.GPTConfig(vocab_size=2048, block_size=16, n_layer=1, n_head=2, n_embd=8)
    return gpt.GPT(config).eval()


def texts_of_all_lengths():
    model, ids = small_model(), randint(2048, (50,))
    return [(model, ids[:n]) for n in (2, 16, 17, 18, 33, 50)]


def same_bootstrap(mine, ours):
    values, generator = rand(10).tolist(), torch.Generator().manual_seed(0)
    assert_close(mine(values, 500), ours(torch.tensor(values), 500, generator))


def same_choice(mine, ours):
    model, tokenizer = small_model(), mine.__globals__["tokenizer"]

    def nll(ids):
        return evaluation.token_nll(model, torch.tensor(ids))

    options = [" is", " are", " was", " will be"]
    for before, after in [("The cities", ""), ("A river", " long and"), ("In", " the")]:
        found = mine(nll, before, options, after)
        assert found == ours(model, tokenizer, before, options, after)


def quantised_matrix():
    matrix = randn(48, 96)
    matrix[3, 32:64], matrix[4] = 0.7, 0  # groups of equal numbers
    return matrix


def same_quantize(mine, ours):
    matrix = quantised_matrix()
    for bits in (1, 2, 3, 4, 8):
        found, wanted = mine(matrix, bits), ours(matrix, bits)
        assert torch.equal(found.codes, wanted.codes)
        assert torch.equal(found.matrix(), wanted.matrix())


def same_quantised_tensor(mine, _):
    ours = quantization.quantize(quantised_matrix(), 4)
    assert torch.equal(mine(ours.codes, ours.scale, ours.minimum).matrix(), ours.matrix())


# --- fine-tuning and rewards ---------------------------------------------------------------------

TALKS = [
    [("user", "hot?")],
    [("system", "brief"), ("user", "hot?"), ("assistant", "cold"), ("user", "up<|im_end|>")],
    [("user", "hot?"), ("assistant", "cold"), ("user", "up?"), ("assistant", "down")],
]


def talks_with_a_tokenizer():
    text, special = "user assistant system hot cold", ["<|im_start|>", "<|im_end|>"]
    tokenizer = BPETokenizer.train(text, vocab_size=290, special=special)
    return [(tokenizer, talk) for talk in TALKS]


def masked_rows():
    model, masks = torch.nn.Embedding(20, 20), rand(5, 3, 7) < 0.5
    masks[:, :, 0], masks[:, 0, 3] = False, True
    return [(model, randint(20, (3, 7)), mask) for mask in masks]


def same_lora(LoRA, Ours):
    for n_in, n_out, rank in [(2, 3, 1), (8, 5, 4)]:
        linear, x = torch.nn.Linear(n_in, n_out), randn(4, n_in)
        mine, ours = LoRA(linear, rank, 3.0), Ours(linear, rank, 3.0)
        assert_close(mine(x), linear(x))
        torch.nn.init.normal_(mine.B)
        ours.load_state_dict(mine.state_dict())
        assert_close(mine(x), ours(x))
        beside = mine(x)
        assert_close(mine.merged()(x), beside)


def small_llama():
    torch.manual_seed(0)
    return gpt.GPT(gpt.GPTConfig(20, 8, 2, 2, 12, mlp="SwiGLU", position="Rotary"))


def same_add_lora(mine, ours):
    models = small_llama(), small_llama()
    found, wanted = ([p.shape for p in add(model, 3, 6)]
                     for add, model in zip((mine, ours), models, strict=True))  # fmt: skip
    assert found == wanted
    assert [*models[0].state_dict()] == [*models[1].state_dict()]
    for model in models:
        assert sum(p.requires_grad for p in model.parameters()) == len(found)


def same_merge_lora(mine, _):
    LoRA = mine.__globals__["LoRA"]  # the class that it looks for
    ids, model = randint(20, (2, 8)), small_llama()
    before = [*model.state_dict()]
    model.blocks[1].mlp.up = LoRA(model.blocks[1].mlp.up, 2, 1.0)
    torch.nn.init.normal_(model.blocks[1].mlp.up.B)
    beside = model(ids)
    assert [*mine(model).state_dict()] == before
    assert_close(model(ids), beside, atol=1e-4, rtol=1e-4)


def completions(end=3):
    """Prompts of 5 tokens with completions of 4, of a vocabulary of 6."""
    return torch.cat([randint(6, (20, 5)), randint(end + 1, (20, 4))], 1)


def completions_of_a_policy():
    model, ids = gpt.GPT(gpt.GPTConfig(6, 16, n_layer=1, n_head=2, n_embd=8)), completions()
    return [(model, ids, n) for n in (1, 4)]


# Tag → how to compare what its cell defines with the helper.
SAME_AS = {
    "text.CharTokenizer": same_tokenizer,
    "text.NGramModel": same_ngrams,
    "text.split_words": calls(lambda: [(text,) for text in ODD_TEXTS]),
    "text.BPETokenizer": same_bpe,
    "text.encode_documents": same_stream,
    "training.get_batch": same_batches,
    "training.language_model_loss": calls(
        lambda: [
            (torch.nn.Embedding(V, V), *randint(V, (2, B, T)))
            for V, B, T in [(5, 2, 3), (69, 4, 16)]
        ]
    ),
    "training.train": same_training,
    "training.cosine_schedule": calls(
        lambda: [
            (n, steps, *settings)
            for steps, *settings in [(250, 0, 0.1), (250, 40, 0.1), (90, 25, 0.0), (90, 25, 1.0)]
            for n in range(steps)
        ]
    ),
    "training.wsd_schedule": calls(
        lambda: [(n, 300) for n in range(300)] + [(n, 72, 1, 0.8) for n in range(72)]
    ),
    "optimizers.adamw": same_adamw,
    "optimizers.newton_schulz": calls(
        lambda: [
            (make(shape),)
            for shape in [(2, 2), (5, 30), (30, 5), (20, 20)]
            for make in (randn, torch.zeros)
        ],
        atol=0.04,
        rtol=0,
    ),
    "optimizers.Muon": same_muon,
    "optimizers.fast_optimizers": same_fast_optimizers,
    "attention.causal_mask": calls(lambda: [(1,), (4,), (50,)]),
    "attention.attention": calls(
        lambda: [
            (*randn(3, *shape), mask)
            for shape in [(5, 4), (3, 5, 4), (2, 3, 16, 8)]
            for mask in (None, attention.causal_mask(shape[-2]))
        ]
    ),
    "attention.Head": same_head,
    "attention.MultiHeadAttention": same_multi_head,
    "attention.KVCache": same_cache,
    "gpt.FeedForward": modules(vectors, (6,), (48,), near=1e-4),
    "gpt.SwiGLU": modules(vectors, (6, 16), (48, 128), near=1e-4),
    "gpt.Block": same_block,
    "gpt.GPT": same_gpt,
    "gpt.GPTConfig": same_gpt,
    "gpt.ShortConvolution": same_short_convolution,
    "gpt.fast_gpt": same_fast_gpt,
    "kernels.Dropout": same_dropout,
    "positions.LearnedPosition": modules(lambda T, C: (randn(2, 5, C),), (5, 4), (8, 6)),
    "positions.rotary_angles": calls(lambda: [(5, 6, 100.0), (40, 64, 1e4), (300, 2, 10.0)]),
    "positions.sinusoidal": calls(lambda: [(5, 6, 100.0), (40, 64, 1e4), (300, 2, 10.0)]),
    "positions.SinusoidalPosition": same_sinusoidal,
    "positions.Rotary": same_rotary,
    "positions.half_split": calls(
        lambda: [(randn(H * hs, C), H) for H, hs, C in [(1, 4, 3), (2, 8, 12), (3, 6, 5)]]
    ),
    "sampling.next_token_probabilities": same_probabilities,
    "sampling.apply_repetition_penalty": same_penalty,
    "sampling.generate": same_generate,
    "evaluation.token_nll": calls(texts_of_all_lengths),
    "evaluation.bits_per_character": calls(lambda: [(rand(5), "abc")]),
    "evaluation.bootstrap_means": same_bootstrap,
    "evaluation.most_likely": same_choice,
    "quantization.quantize": same_quantize,
    "quantization.QuantizedTensor": same_quantised_tensor,
    "finetuning.chat_text": calls(lambda: [(talk,) for talk in TALKS]),
    "finetuning.encode_chat": calls(talks_with_a_tokenizer),
    "finetuning.completion_loss": calls(masked_rows),
    "finetuning.LoRA": same_lora,
    "finetuning.add_lora": same_add_lora,
    "finetuning.merge_lora": same_merge_lora,
    "rewards.completion_mask": calls(  # an end of 5 never occurs
        lambda: [(completions()[:, -4:], end) for end in (0, 3, 5)]
    ),
    "rewards.completion_log_probs": calls(completions_of_a_policy),
    "rewards.chosen_log_probs": calls(lambda: [(randn(20, 4, 6).log_softmax(-1), completions())]),
    "rewards.group_advantages": calls(lambda: [(randn(12), group) for group in (1, 4, 12)]),
    "rewards.policy_gradient_loss": calls(lambda: [(randn(7, 4), rand(7, 4) > 0.3, randn(7))]),
    "rewards.kl_penalty": calls(
        lambda: [(*randn(2, 7, 4, 6).log_softmax(-1), rand(7, 4) > 0.3) for _ in range(3)]
    ),
    "rewards.dpo_loss": calls(lambda: [(*randn(2, 9), beta) for beta in (0.1, 3.0)]),
    "rewards.pass_at_k": calls(
        lambda: [(1, 0, 1), (8, 3, 2), (64, 1, 64), (64, 60, 16), (5, 5, 1)]
    ),
    "seq2seq.RNNSeq2Seq": same_seq2seq,
    "seq2seq.Transformer": same_seq2seq,
}

# What of the chapter is compared beside it.
BESIDE = {
    "text.CharTokenizer": ["encode"],
    "gpt.GPT": ["n_parameters"],
    "gpt.GPTConfig": ["n_parameters"],
    "seq2seq.RNNSeq2Seq": ["OneVector"],
}

# What has another name in its chapter: a function where the helper is a class, the model without
# its settings, and the class that stands beside the helper's.
OTHER_NAMES = {
    "text.CharTokenizer": "decode",
    "text.NGramModel": "interpolated",
    "text.BPETokenizer": "Tokenizer",
    "kernels.Dropout": "dropout",
    "gpt.GPTConfig": "GPT",
    "gpt.ShortConvolution": "short_convolution",
    "positions.SinusoidalPosition": "sinusoidal",
    "positions.Rotary": "rotate",
    "optimizers.Muon": "muon_step",
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
    module, _, helper = what.partition(".")
    ours = getattr(import_module(f"helpers.{module}"), helper)
    tagged = [(n, i) for n in map(parsed, CHAPTERS) for i, c in enumerate(n.cells)
              if figures.tagged(c, f"same-as:{what}")]  # fmt: skip
    assert tagged
    for notebook, at in tagged:
        *_, name = definitions(notebook.cells[at])  # the last one, which may use the others
        assert name == OTHER_NAMES.get(what, helper)
        places = {other: next(i for i, c in enumerate(notebook.cells) if other in definitions(c))
                  for other in BESIDE.get(what, [])}  # fmt: skip
        beside = [defined(notebook, i, other) for other, i in places.items()]
        torch.manual_seed(0)
        SAME_AS[what](defined(notebook, at, name), ours, *beside)


def of_chapter(topic, name):
    """What the chapter defines under this name."""
    (path,) = (path for path in CHAPTERS if path.stem.endswith(topic))
    (at,) = (i for i, cell in enumerate(parsed(path).cells) if name in definitions(cell))
    return defined(parsed(path), at, name)


@torch.no_grad()
def test_the_gpt_for_real_weights_is_the_gpt_with_its_switches():
    """The same names for the same weights, and the same logits."""
    switches = {"norm": "RMSNorm", "norm_eps": 1e-5, "mlp": "SwiGLU", "hidden": 24, "bias": False,
                "position": "Rotary", "rotary_base": 100.0, "n_kv_head": 2}  # fmt: skip
    ours = gpt.GPT(gpt.GPTConfig(50, 16, n_layer=2, n_head=4, n_embd=32, **switches))
    GPT = of_chapter("real_weights", "GPT")
    mine, ours = same_parameters(GPT(50, 16, 2, 4, 32, 2, 24, 100.0), ours)
    ids = randint(50, (3, 16))
    assert_close(mine(ids), ours(ids), atol=1e-4, rtol=1e-4)


def test_our_generation_uses_the_cache_of_a_chapters_gpt():
    torch.manual_seed(0)
    model, read, ids = of_chapter("kv_cache", "GPT")(9, 16, 2, 2, 8), [], randint(9, (2, 3))
    model.token.register_forward_hook(lambda _, inputs, out: read.append(inputs[0].numel()))
    with_cache = sampling.generate(model, ids, 7, temperature=0)
    assert read == [6] + 6 * [2]
    assert torch.equal(with_cache, sampling.generate(model, ids, 7, temperature=0, cached=False))
