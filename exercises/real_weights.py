"""The exercises on real weights: eight bits, the cache's bytes, a dear block, a Llama by hand."""

import math
import struct
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import (
    NotYet,
    call,
    checked,
    exercise,
    expect,
    expect_no_helpers,
    fresh,
    normal,
    reported,
    same,
)
from exercises.watch import modules_of
from helpers.gpt import GPTConfig

# --- 15.1: eight bits -----------------------------------------------------------------------------


def packed(scale, seed, zeros=()):
    """The 34 bytes of a block; zeros: which of its numbers are 0."""
    numbers = torch.randint(-128, 128, (32,), generator=torch.Generator().manual_seed(seed))
    numbers[list(zeros)] = 0
    return (struct.pack("<e32b", scale, *numbers.tolist()),)


@exercise(
    inputs=[packed(scale, seed) for seed, scale in enumerate((0.3711, 1.287, 2.613, -0.57))]
    + [packed(0.002537, 4, zeros=(7, 30, 31))],  # as large as those of the file are
    praise="34 bytes for 32 numbers are 8.5 bits each.",
    tolerance=1e-3,  # a product may be rounded to float16
)
def block8(raw):
    """block8(raw): the 32 numbers of a block of 34 bytes, a float16 scale and signed bytes."""
    scale, *numbers = struct.unpack("<e32b", raw)
    return [scale * n for n in numbers]


@block8.then
def not_rounded(answer):
    (raw,) = packed(0.0001, 5)
    right = [1e4 * number for number in block8.right(raw)]
    got = [1e4 * float(number) for number in call(answer, raw, name="block8")]
    expect(same(got, right, 1e-3), "You round. A scale may be as small as 0.0001: keep all digits.")


block8.what = lambda given: f"block8({given[0][:4].hex(' ')} …)"  # type: ignore[method-assign]


def float16(raw, order="<"):
    return struct.unpack(f"{order}e", raw)[0]


def signed(raw):
    return struct.unpack(f"{len(raw)}b", raw)


def halves(raw):
    return [b & 15 for b in raw] + [b >> 4 for b in raw]


def reading(scale=lambda raw: float16(raw[:2]), numbers=lambda raw: signed(raw[2:]), least=0):
    """The block with another scale, other numbers, or a minimum added."""
    return lambda raw: [scale(raw) * n + least * float16(raw[2:4]) for n in numbers(raw)]


block8.mistakes = {
    "Your numbers are unsigned, 0 to 255. Signed bytes are −128 to 127: from 128 on, subtract 256 "
    "(`struct` reads them with b, not B).": reading(numbers=lambda raw: raw[2:]),
    "From 128 on, 128 itself too, a signed byte is 256 less: 128 is −128, 255 is −1. Those below "
    "stay as they are. (`b` in `struct`.)": (
        reading(numbers=lambda raw: [b - 256 * (b > 128) for b in raw[2:]]),
        reading(numbers=lambda raw: [b - 128 for b in raw[2:]]),
        reading(numbers=lambda raw: [128 - b if b > 127 else b for b in raw[2:]])),
    "You cut bytes into halves of four bits. Here each byte is one number.":
        (reading(numbers=lambda b: halves(b[2:18])), reading(numbers=lambda b: halves(b[2:]))),
    "These are halves of bytes and a minimum, as in the format of four bits. Here each byte after "
    "the scale is one number, and nothing is added.":
        reading(numbers=lambda raw: halves(raw[4:20]), least=1),
    "A minimum is added, made of bytes 2 and 3. This format has none: they are the first two "
    "numbers.": (reading(least=1), reading(numbers=lambda raw: signed(raw[4:]), least=1)),
    "The first two numbers are missing: they begin at byte 2, right after the scale.":
        reading(numbers=lambda raw: signed(raw[4:])),
    "You read the scale from the last two bytes. It is in the first two.": (
        reading(lambda raw: float16(raw[-2:])),
        reading(lambda raw: float16(raw[-2:]), lambda raw: signed(raw[:-2]))),
    "You read the scale as another type of number. Its two bytes are a float16, `e` in `struct`.": (
        reading(lambda raw: int.from_bytes(raw[:2], "little")),
        reading(lambda raw: int.from_bytes(raw[:2], "little", signed=True)),
        reading(lambda raw: struct.unpack("<f", bytes(2) + raw[:2])[0])),  # bfloat16
    "The two bytes of the scale are in the wrong order: `<` in `struct`, little-endian.":
        reading(lambda raw: float16(raw[:2], ">")),
    "The scale is missing: these are whole numbers. Multiply each by the scale.":
        (reading(lambda raw: 1), reading(lambda raw: 1, lambda raw: raw[2:])),
    "The scale is still among your numbers: they begin at byte 2.": reading(numbers=signed),
}  # fmt: skip


# --- 15.2: the bytes of a cache -------------------------------------------------------------------


def sized(layers, heads, width, shared=None, head_size=None):
    return GPTConfig(100, 4096, layers, heads, width, n_kv_head=shared, head_size=head_size)


@exercise(
    inputs=[(sized(30, 9, 576, 3), 8192, 4), (sized(9, 12, 768), 99, 8), (sized(6, 4, 64, 1), 9, 2),
            (sized(28, 16, 1024, 8, 128), 99, 2), (sized(3, 5, 40, None, 24), 7, 1),
            (sized(30, 12, 96, 2), 131_072, 4)],
    praise="A key and a value in each layer, for the heads that keep them.",
    meaning={"NoneType": "n_kv_head and head_size may be None: then there are n_head heads of "
             "keys, and a head has n_embd / n_head numbers."},
    tolerance=0,
)  # fmt: skip
def cache_bytes(config, tokens, size):
    """cache_bytes(config, tokens, size): what keys and values of so many tokens take."""
    return kept(config, tokens, size)


def config_in_words(given):
    names = ("n_layer", "n_head", "n_embd", "n_kv_head", "head_size")
    about = ", ".join(f"{name} {getattr(given[0], name)}" for name in names)
    return f"cache_bytes(config, {given[1]}, {given[2]}) for {about}"


cache_bytes.what = config_in_words  # type: ignore[method-assign]


def kept(
    c, tokens, size, both=2, heads=lambda c: c.n_kv_head or c.n_head, layers=True,
    hs=lambda c: c.head_size or c.n_embd // c.n_head,
):  # fmt: skip
    return both * (c.n_layer if layers else 1) * tokens * heads(c) * hs(c) * size


cache_bytes.mistakes = {
    "Half is missing: the cache holds keys *and* values.": partial(kept, both=1),
    "You count queries, too. The cache holds only keys and values.": partial(kept, both=3),
    "You count all n_head heads. The cache holds only n_kv_head of them, unless that is None.":
        partial(kept, heads=lambda c: c.n_head),
    "Where n_kv_head is None, every head has keys of its own: n_head of them.":
        partial(kept, heads=lambda c: c.n_kv_head or 1),
    "A head has n_embd / n_head numbers, however many heads of keys there are.":
        partial(kept, hs=lambda c: c.head_size or c.n_embd // (c.n_kv_head or c.n_head)),
    "n_head / n_kv_head is how many heads share the same keys. The cache holds n_kv_head of them.":
        partial(kept, heads=lambda c: c.n_head // c.n_kv_head if c.n_kv_head else c.n_head),
    "You count keys or values for all n_head heads. The cache holds only n_kv_head of each.":
        lambda *given: (kept(*given) + partial(kept, heads=lambda c: c.n_head)(*given)) / 2,
    "You count n_embd numbers for a key. It should be (heads of keys) × (head size).":
        partial(kept, heads=lambda c: 1, hs=lambda c: c.n_embd),
    "You count n_embd numbers for a head. It has head_size, or n_embd / n_head if that is None.":
        (partial(kept, hs=lambda c: c.n_embd), partial(kept, hs=lambda c: c.head_size or c.n_embd)),
    "You ignore head_size where it is given: n_embd / n_head is only for None.":
        partial(kept, hs=lambda c: c.n_embd // c.n_head),
    "That is one layer. All n_layer layers keep keys and values.": partial(kept, layers=False),
    "That is one token. Each of `tokens` keeps its own.": lambda c, _, size: kept(c, 1, size),
    "That is how many numbers there are. Each takes `size` bytes.":
        lambda c, tokens, size: kept(c, tokens, 1),
    "You always take 2 or 4 bytes. A number takes `size` bytes.":
        tuple(lambda c, tokens, _, n=n: kept(c, tokens, n) for n in (2, 4)),
    "These are bits. `size` is in bytes: no 8.": partial(kept, both=16),
    "These are kilobytes, megabytes or gigabytes. Return bytes.": tuple(
        lambda *given, unit=unit: kept(*given) / unit for unit in (1e3, 1e6, 1e9, 2**20, 2**30)),
}  # fmt: skip


# --- 15.3: the dearer block -----------------------------------------------------------------------

BITS = (1.0009, 1.1100, 1.3266)  # a character: untouched, block 15 in 2 bits, block 29 in 2 bits
RIGHT, TOKENS = "last", 140  # of 600 characters
OTHERS = {  # diagnosis → the second and third number that are otherwise
    "The second and third are what rounding *adds*. Give the bits themselves, all three.":
        (0.1091, 0.3257),
    "The second and the third are swapped: first block 15, then block 29.": (1.3266, 1.1100),
    "In your third number both blocks are rounded: put block 15 back first.": (1.1100, 1.4268),
    "You rounded only the four matrices of attention. Round the three of `mlp`, too.":
        (1.0510, 1.0321),
    "You rounded only the three matrices of `mlp`. Round the four of attention, too.":
        (1.0583, 1.3191),
    "Blocks are counted from 0: these are 14 and 28.": (1.0619, 1.0413),
    "These are all 30 blocks in 2 bits. Round one and leave the others.": (4.4485, 4.4485),
    "That is rounding to 3 bits. Take 2.": (1.0126, 1.0701),
    "Rounding changes nothing here. They are in 4 bits already: take 2. Or were the rounded "
    "numbers not put into the model (`part.weight.data = …`)?": (1.0009, 1.0009),
}  # fmt: skip


@checked
def dearer(answer):
    """dearer: bits per character untouched, with block 15 and block 29 in 2 bits, and a word"""
    *found, verdict = reported(
        answer,
        (*BITS, RIGHT),
        "Set dearer to four things: three numbers of bits, and your verdict, "
        '(1.5, 1.6, 1.7, "middle").',
    )
    for unit, factor in {
        "nats per character. Divide by ln 2": math.log(2),
        "bits per token. Divide by the characters, 600": 600 / TOKENS,
        "nats per token. Divide by the characters, 600, and by ln 2": math.log(2) * 600 / TOKENS,
    }.items():
        as_bits = [number / factor for number in found]
        expect(not same(as_bits, BITS, 0.005), f"These are {unit}.")
    whole = "The untouched model needs 1.00 bits per character here. If a block stayed rounded, "
    "read "
    expect(abs(found[0] - BITS[0]) < 0.015, f"{whole}the model from its file again.")
    expect(found != [round(bits, 1) for bits in BITS], "Nearly: give two decimals.")
    if not same(found, BITS, 0.003):
        for says, others in OTHERS.items():
            expect(not same(found[1:], others, 0.003), says)
        raise NotYet(
            "These are not the bits with blocks 15 and 29 in 2 bits, one at a time. (All seven "
            "matrices of `model.blocks[15]`, each by `quantize(matrix, 2).matrix()`.)"
        )
    expect(verdict in ("middle", "last"), "The verdict should be middle or last.")
    expect(verdict == RIGHT, "More bits are worse: which of the two adds more?")
    return "Three times as dear, and nearly all of it in its feed-forward part."


# --- 15.4: a Llama from its tensors ---------------------------------------------------------------


def read(V, T, L, C, H, K, hidden, base, seed, small=1.0):
    """(w, ids, n_head, n_kv_head, base): random weights in the layout of transformers."""
    block = {
        "input_layernorm": (C,), "post_attention_layernorm": (C,), "self_attn.q_proj": (C, C),
        "self_attn.k_proj": (C // H * K, C), "self_attn.v_proj": (C // H * K, C),
        "self_attn.o_proj": (C, C), "mlp.gate_proj": (hidden, C), "mlp.up_proj": (hidden, C),
        "mlp.down_proj": (C, hidden),
    }  # fmt: skip
    shapes = {"embed_tokens": (V, C), "norm": (C,)}
    shapes |= {f"layers.{i}.{name}": shape for i in range(L) for name, shape in block.items()}
    w = {f"model.{name}.weight": 0.5 * normal(*shape, seed=seed + n)
         for n, (name, shape) in enumerate(shapes.items())}  # fmt: skip
    w["model.embed_tokens.weight"] *= small  # so small that the norm's 1e-5 tells
    w["model.norm.weight"] /= small
    return w, torch.randint(V, (T,), generator=torch.Generator().manual_seed(seed)), H, K, base


@exercise(
    inputs=[read(11, 7, 1, 24, 4, 2, 17, 100.0, seed=1), read(7, 12, 2, 24, 6, 3, 31, 1e5, seed=20),
            read(13, 5, 3, 16, 2, 2, 11, 20.0, seed=30), read(9, 9, 2, 36, 6, 2, 25, 1e3, seed=40),
            read(5, 6, 11, 16, 4, 2, 9, 500.0, seed=50), read(9, 1, 2, 16, 4, 2, 9, 77.5, seed=70),
            read(10, 8, 1, 16, 4, 2, 21, 50.0, seed=60, small=0.02)],
    clash="Matrices are (out, in): x @ W.T or F.linear(x, W). Keys and values have n_kv_head "
    "heads; a norm's mean wants keepdim=True.",
    praise="A Llama, from its tensors alone.",
    tolerance=1e-3,
)  # fmt: skip
def llama(w, ids, n_head, n_kv_head, base):
    """llama(w, ids, n_head, n_kv_head, base): ids (T,) to logits (T, V), with Llama's tensors."""
    return computed(w, ids, n_head, n_kv_head, base)


def model_in_words(given):
    layers = len(layers_of(given[0]))
    numbers = f"{given[2]}, {given[3]}, {given[4]:g}"
    of = f"ids of shape ({len(given[1])},) and {layers} layer{'s' * (layers > 1)}"
    return f"llama(w, ids, {numbers}) for {of}"


llama.what = model_in_words  # type: ignore[method-assign]


def normed(x, gain, eps=1e-5):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * gain


def turned(x, base, sign=1):
    """Halves turned: x (heads, T, hs)."""
    T, hs = x.shape[-2:]
    turn = sign * torch.arange(T)[:, None] * base ** (-torch.arange(0, hs, 2) / hs)
    (a, b), cos, sin = x.chunk(2, -1), turn.cos(), turn.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def neighbours_turned(x, base):
    halves = torch.cat((x[..., ::2], x[..., 1::2]), -1)
    return torch.stack(turned(halves, base).chunk(2, -1), -1).flatten(-2)


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)


def layers_of(w):
    return sorted({int(name.split(".")[2]) for name in w if "layers" in name})


def computed(
    w, ids, H, K, base, turn=turned, turns=(1, 1, 0), share=lambda x, n: x.repeat_interleave(n, 0),
    mask=1, forbidden=-torch.inf, by=lambda q, x: q.shape[-1] ** 0.5, last=1, norm=normed,
    gated=lambda gate, up: F.silu(gate) * up, norms=("input", "post_attention"), skip=(1, 1),
    order="qkv", split=split, merge=lambda x: x.transpose(0, 1).flatten(1), layers=layers_of,
    query=F.linear, out=F.linear, second=lambda norm, x, gain, first: norm(x, gain),
    after=lambda heard, gain: heard,
):  # fmt: skip
    x = w["model.embed_tokens.weight"][ids]
    for i in layers(w):
        start = f"model.layers.{i}."
        own = {name.removeprefix(start): part for name, part in w.items() if name.startswith(start)}
        given = norm(x, own[f"{norms[0]}_layernorm.weight"])
        parts = [split(linear(given, own[f"self_attn.{p}_proj.weight"]), h) for p, h, linear in
                 zip(order, (H, K, K), (query, F.linear, F.linear), strict=True)]  # fmt: skip
        q, k, v = (turn(p, base) if t else p for p, t in zip(parts, turns, strict=True))
        k, v = share(k, H // K), share(v, H // K)
        scores = q @ k.mT / by(q, x)
        scores[:, torch.ones(len(x), len(x)).triu(1) * mask > 0] = forbidden
        heard = out(merge(scores.softmax(-1) @ v), own["self_attn.o_proj.weight"])
        gain = own[f"{norms[1]}_layernorm.weight"]
        x = skip[0] * x + after(heard, gain)
        given = second(norm, x, gain, given)
        gate, up = (F.linear(given, own[f"mlp.{name}_proj.weight"]) for name in ("gate", "up"))
        x = skip[1] * x + F.linear(gated(gate, up), own["mlp.down_proj.weight"])
    return (norm(x, w["model.norm.weight"]) if last else x) @ w["model.embed_tokens.weight"].T


def but(**changes):
    return partial(computed, **changes)


llama.mistakes = {
    "Nothing is turned, so the positions of the tokens are missing. Turn queries and keys.":
        but(turns=(0, 0, 0)),
    "You turn the values, too. Turn only queries and keys.": but(turns=(1, 1, 1)),
    "You turn only the queries. Turn the keys, too.": but(turns=(1, 0, 0)),
    "You turn only the keys. Turn the queries, too.": but(turns=(0, 1, 0)),
    "You turn neighbours, features 0 and 1, 2 and 3. This layout pairs i with i + hs/2.":
        but(turn=neighbours_turned),
    "You turn backwards. (a, b) becomes (a cos − b sin, b cos + a sin).":
        but(turn=partial(turned, sign=-1)),
    "Your angles have base 10,000. Use `base`: each model has its own.":
        lambda w, ids, H, K, _: computed(w, ids, H, K, 1e4),
    "Keys and values are shared in the wrong order. Neighbours share: heads 0, 0, 1, 1, not 0, 1, "
    "0, 1 (`repeat_interleave`, not `repeat`).": but(share=lambda x, n: x.repeat(n, 1, 1)),
    "Queries and keys are turned before the split, or along the wrong dimension. Turn each head: "
    "`turned` wants (heads, T, hs).": (
        but(turn=lambda x, base: split(
            turned(x.transpose(0, 1).flatten(1)[None], base)[0], len(x))),
        but(turn=lambda x, base: turned(x.transpose(0, 1), base).transpose(0, 1))),
    "The mask is missing: every token attends to the future.": but(mask=0),
    "A score of 0 hides nothing, because e⁰ is 1. Set future scores to −∞.": but(forbidden=0),
    "The scores are not divided by √hs.": but(by=lambda q, x: 1),
    "The scores are divided by √C. A head has hs = C / n_head numbers: √hs.":
        but(by=lambda q, x: x.shape[-1] ** 0.5),
    "gate and up are swapped: silu(gate) · up.": but(gated=lambda gate, up: F.silu(up) * gate),
    "SiLU is missing: silu(gate) · up.": but(gated=torch.mul),
    "up is missing: silu(gate) · up.": but(gated=lambda gate, up: F.silu(gate)),
    "Your gate uses another activation function. SiLU is x · sigmoid(x), `F.silu`.": (
        but(gated=lambda gate, up: F.gelu(gate) * up),
        but(gated=lambda gate, up: F.relu(gate) * up),
        but(gated=lambda gate, up: gate.sigmoid() * up)),
    "What mlp reads is the new x, after attention is added, through post_attention_layernorm.": (
        but(second=lambda norm, x, gain, first: x),
        but(second=lambda norm, x, gain, first: x, after=normed),
        but(second=lambda norm, x, gain, first: first)),
    "The gains of the norms are missing.": but(norm=lambda x, gain: normed(x, 1)),
    "The mean is subtracted, as LayerNorm does. RMSNorm only divides.":
        but(norm=lambda x, gain: F.layer_norm(x, x.shape[-1:], gain)),
    "The norms divide by the whole length. Take the *mean* of the squares, not the sum.":
        but(norm=lambda x, gain: x / (x.square().sum(-1, keepdim=True) + 1e-5).sqrt() * gain),
    "Your norms do not add 1e-5 to the mean of the squares, inside the root.":
        tuple(but(norm=partial(normed, eps=eps)) for eps in (0, 1.1920929e-7, 1e-6)),
    "The last norm, model.norm, is missing.": but(last=False),
    "The norms of a layer are swapped: input_layernorm before attention, the other before mlp.":
        but(norms=("post_attention", "input")),
    "A part's result replaces the residual stream. Add it: x + part(norm(x)).":
        (but(skip=(0, 1)), but(skip=(1, 0)), but(skip=(0, 0))),
    "Keys and values are swapped.": but(order="qvk"),
    "q_proj or o_proj is transposed. No error was raised because they are square: use x @ W.T.":
        (but(out=torch.matmul), but(query=torch.matmul), but(out=torch.matmul, query=torch.matmul)),
    "o_proj is missing: the merged heads go through it before they are added.":
        but(out=lambda x, W: x),
    "The heads are cut wrongly: (T, C) → (T, heads, hs) → (heads, T, hs), and back the same way.": (
        but(split=lambda x, heads: x.reshape(heads, len(x), -1)),
        but(merge=lambda x: x.reshape(x.shape[1], -1))),
    "The layers are sorted as text: 0, 1, 10, 2 … Sort them as numbers.":
        but(layers=lambda w: sorted(layers_of(w), key=str)),
    "You use ten of eleven layers: is 10 read as 1?": but(layers=lambda w: layers_of(w)[:10]),
    "Not all layers are used.":
        (but(layers=lambda w: layers_of(w)[:-1]), but(layers=lambda w: [0])),
    "These are probabilities. Return the logits.":
        lambda *given: computed(*given).softmax(-1),
}  # fmt: skip


@llama.then
def with_functions_alone(answer):
    expect_no_helpers(answer, llama.inputs[0])
    expect(
        "torch.nn.modules.module" not in modules_of(answer, *fresh(llama.inputs[0])),
        "The values are right, but an `nn.Module` computes a part of them: use functions alone.",
    )
