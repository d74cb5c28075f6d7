"""The exercises on real weights: eight bits, the size of a cache, two blocks in 2 bits, a Llama."""

import math
import struct

import torch
import torch.nn.functional as F

from exercises.check import (
    call,
    checked,
    diagnose,
    exercise,
    expect,
    expect_no_helpers,
    fresh,
    generator,
    normal,
    reported,
    same,
)
from exercises.watch import modules_of
from helpers.gpt import GPTConfig

# --- 17.1: eight bits -----------------------------------------------------------------------------


def packed(scale, seed, zeros=()):
    """The 34 bytes of a block; zeros: which of its numbers are 0."""
    numbers = torch.randint(-128, 128, (32,), generator=generator(seed))
    numbers[list(zeros)] = 0
    return (struct.pack("<e32b", scale, *numbers.tolist()),)


@exercise(
    inputs=lambda draw: [
        *(
            [packed(scale, seed) for seed, scale in enumerate((0.3711, 1.287, 2.613, -0.57))]
            + [packed(0.002537, 4, zeros=(7, 30, 31))]
        ),
        *[  # with the byte 128, which may be missing in the others
            (struct.pack("<e32b", draw.uniform(0.1, 3), *draw.sample(range(-127, 128), 31), -128),)
        ],
    ],  # as large as those of the file are
    on_success="34 bytes for 32 numbers are 8.5 bits each.",
    tolerance=1e-3,  # a product may be rounded to float16
    in_words=lambda given: f"block8({given[0][:4].hex(' ')} …)",
)
def block8(raw):
    """block8(raw): the 32 numbers of a block of 34 bytes, a float16 scale and signed bytes."""
    scale, *numbers = struct.unpack("<e32b", raw)
    return [scale * n for n in numbers]


@block8.also
def not_rounded(answer):
    (raw,) = packed(0.0001, 5)
    right = [1e4 * number for number in block8.right(raw)]
    got = [1e4 * float(number) for number in call(answer, raw, name="block8")]
    expect(same(got, right, 1e-3), "You round. A scale may be as small as 0.0001: keep all digits.")


block8.slips("""
    Your numbers are unsigned, 0 to 255. Signed bytes are −128 to 127: from 128 on, subtract 256
    (`struct` reads them with b, not B).
        32b → 32B
    From 128 on, 128 itself too, a signed byte is 256 less: 128 is −128, 255 is −1. Those below stay
    as they are. (`b` in `struct`.)
        in numbers → in (b - 256 * (b > 128) for b in raw[2:])
        in numbers → in (b - 128 for b in raw[2:])
    You cut each byte into two halves of four bits. Here each byte is one level.
        in numbers → in [b & 15 for b in raw[2:18]] + [b >> 4 for b in raw[2:18]]
    You read bytes 2 and 3 as a minimum. This format has none: they are the first two levels.
        32b → e30b ; scale * n for n in numbers → scale * n + numbers[0] for n in numbers[1:]
    The two bytes of the scale are in the wrong order: `<` in `struct`, little-endian.
        <e → >e
    These are the levels, which are whole numbers. Multiply each by the scale.
        scale * n → n
    The scale is still among your levels: they begin at byte 2.
        32b", raw → 34b", raw[:2] + raw
""")


# --- 17.2: the bytes of a cache -------------------------------------------------------------------


def config(layers, heads, width, kv_heads=None, head_size=None):
    return GPTConfig(100, 4096, layers, heads, width, n_kv_head=kv_heads, head_size=head_size)


def config_in_words(given):
    names = ("n_layer", "n_head", "n_embd", "n_kv_head", "head_size")
    about = ", ".join(f"{name} {getattr(given[0], name)}" for name in names)
    return f"cache_bytes(config, {given[1]}, {given[2]}) for {about}"


def another(rng, grouped, sized):
    """The arguments for a model that states its heads of keys, or the size of a head, or both."""
    layers, shared, kv_heads, size = (rng.randint(2, 9) for _ in range(4))
    heads = shared * kv_heads
    of_its_own = size + rng.randint(1, 9) if sized else None
    model = config(layers, heads, heads * size, kv_heads if grouped else None, of_its_own)
    return model, rng.randint(50, 5000), rng.choice((1, 2, 4))


@exercise(
    inputs=lambda draw: [
        (config(30, 9, 576, 3), 8192, 4),
        (config(9, 12, 768), 99, 8),
        (config(6, 4, 64, 1), 9, 2),
        (config(28, 16, 1024, 8, 128), 99, 2),
        (config(3, 5, 40, None, 24), 7, 1),
        (config(30, 12, 96, 2), 131_072, 4),
        *(another(draw, *each) for each in ((True, False), (False, True), (True, True))),
    ],
    on_success="A key and a value in each layer, for the heads that keep them.",
    error_hints={
        "NoneType": "n_kv_head and head_size may be None: then there are n_head heads of "
        "keys, and a head has n_embd / n_head numbers."
    },
    tolerance=0,
    in_words=config_in_words,
)
def cache_bytes(config, tokens, size):
    """cache_bytes(config, tokens, size): what keys and values of so many tokens take."""
    kv_heads = config.n_kv_head or config.n_head
    head_size = config.head_size or config.n_embd // config.n_head
    return 2 * config.n_layer * tokens * kv_heads * head_size * size


cache_bytes.slips("""
    That is half of it: the cache holds keys *and* values.
        2 * →
    A head has n_embd / n_head numbers, however many heads of keys there are.
        n_embd // config.n_head → n_embd // kv_heads
    You count all n_head heads. The cache holds only n_kv_head of them, unless that is None.
        config.n_kv_head or →
    You ignore head_size where it is given: n_embd / n_head is only for None.
        config.head_size or →
    You count n_embd numbers for a key. It should be (heads of keys) × (head size).
        kv_heads * head_size → config.n_embd
    You count n_embd numbers for a head. It has head_size, or n_embd / n_head if that is None.
        kv_heads * head_size → kv_heads * config.n_embd
        // config.n_head →
    That is one layer. All n_layer layers keep keys and values.
        config.n_layer * →
    These are megabytes. Return the number of bytes.
        right(config, tokens, size) / 1e6
        right(config, tokens, size) / 2**20
    That is the number of numbers. Each takes `size` bytes.
        right(config, tokens, 1)
""")


# --- 17.3: the block that costs more --------------------------------------------------------------

BITS = (1.0009, 1.1100, 1.3266)  # a character: untouched, block 15 in 2 bits, block 29 in 2 bits
RIGHT, TOKENS = "last", 140  # of 600 characters


@checked
def dearer(answer):
    """dearer: bits per character untouched, with block 15 and block 29 in 2 bits, and a word"""
    *found, verdict = reported(
        answer,
        (*BITS, RIGHT),
        "Set dearer to four things: three numbers of bits, and your verdict, "
        '(2.11, 2.22, 2.33, "middle").',
    )
    diagnose("""
        These are nats per character. Divide by ln 2.
            same([number / math.log(2) for number in found], BITS, 0.005)
        These are bits per token. Divide by the characters, 600.
            same([number / (600 / TOKENS) for number in found], BITS, 0.005)
        The untouched model needs 1.00 bits per character here. If a block stayed rounded, read the
        model from its file again.
            abs(found[0] - BITS[0]) >= 0.015
        Nearly: give two decimals.
            found == [round(bits, 1) for bits in BITS]
        The second and the third are swapped: first block 15, then block 29.
            same(found[1:], (1.3266, 1.1100), 0.003)
        In your third number both blocks are rounded: put block 15 back first.
            same(found[1:], (1.1100, 1.4268), 0.003)
        You rounded only the four matrices of attention. Round the three of `mlp`, too.
            same(found[1:], (1.0510, 1.0321), 0.003)
        You rounded only the three matrices of `mlp`. Round the four of attention, too.
            same(found[1:], (1.0583, 1.3191), 0.003)
        Rounding changes nothing here. They are in 4 bits already: take 2. Or were the rounded
        numbers not put into the model (`part.weight.data = …`)?
            same(found[1:], (1.0009, 1.0009), 0.003)
        These are not the bits with blocks 15 and 29 in 2 bits, one at a time. (All seven matrices
        of `model.blocks[15]`, each by `quantize(matrix, 2).matrix()`.)
            not same(found, BITS, 0.003)
        The verdict should be middle or last.
            verdict not in ("middle", "last")
        More bits are worse. Which of the two blocks adds more?
            verdict != RIGHT
    """)
    return "The last block costs three times as much, nearly all of it in its feed-forward network."


# --- 17.4: a Llama from its tensors ---------------------------------------------------------------


def random_llama(V, T, L, C, H, K, hidden, base, seed, small=1.0):
    """(w, ids, n_head, n_kv_head, base): random weights in the layout of transformers."""
    kv = C // H * K
    layer = {
        "input_layernorm": (C,),
        "post_attention_layernorm": (C,),
        "self_attn.q_proj": (C, C),
        "self_attn.k_proj": (kv, C),
        "self_attn.v_proj": (kv, C),
        "self_attn.o_proj": (C, C),
        "mlp.gate_proj": (hidden, C),
        "mlp.up_proj": (hidden, C),
        "mlp.down_proj": (C, hidden),
    }
    shapes = {"embed_tokens": (V, C), "norm": (C,)}
    shapes |= {f"layers.{i}.{name}": shape for i in range(L) for name, shape in layer.items()}
    w = {
        f"model.{name}.weight": 0.5 * normal(*shape, seed=seed + n)
        for n, (name, shape) in enumerate(shapes.items())
    }
    w["model.embed_tokens.weight"] *= small  # so small that the norm's 1e-5 tells
    w["model.norm.weight"] /= small
    return w, torch.randint(V, (T,), generator=generator(seed)), H, K, base


def n_layers(w):
    return sum(name.endswith("q_proj.weight") for name in w)


def model_in_words(given):
    layers = n_layers(given[0])
    numbers = f"{given[2]}, {given[3]}, {given[4]:g}"
    of = f"ids of shape ({len(given[1])},) and {layers} layer{'s' * (layers > 1)}"
    return f"llama(w, ids, {numbers}) for {of}"


@exercise(
    inputs=lambda draw: [
        random_llama(11, 7, 1, 24, 4, 2, 17, 100.0, seed=1),
        random_llama(7, 12, 2, 24, 6, 3, 31, 1e5, seed=20),
        random_llama(13, 5, 3, 16, 2, 2, 11, 20.0, seed=30),
        random_llama(9, 9, 2, 36, 6, 2, 25, 1e3, seed=40),
        random_llama(5, 6, 11, 16, 4, 2, 9, 500.0, seed=50),
        random_llama(9, 1, 2, 16, 4, 2, 9, 77.5, seed=70),
        random_llama(10, 8, 1, 16, 4, 2, 21, 50.0, seed=60, small=0.02),
    ],
    on_shape_error="Matrices are (out, in): x @ W.T or F.linear(x, W). Keys and values have "
    "n_kv_head heads; the mean in a norm needs keepdim=True.",
    on_success="That is a Llama, computed from its tensors alone.",
    tolerance=1e-3,
    in_words=model_in_words,
)
def llama(w, ids, n_head, n_kv_head, base):
    """llama(w, ids, n_head, n_kv_head, base): ids (T,) to logits (T, V), with Llama's tensors."""

    def linear(name, x):
        return x @ w[f"model.{name}.weight"].T

    def norm(name, x):
        x = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return x * w[f"model.{name}.weight"]

    def split(x, heads):
        return x.unflatten(-1, (heads, -1)).transpose(0, 1)

    x = w["model.embed_tokens.weight"][ids]
    future = torch.ones(len(ids), len(ids)).triu(1) > 0
    for i in range(n_layers(w)):
        at, mlp = f"layers.{i}.self_attn", f"layers.{i}.mlp"
        y = norm(f"layers.{i}.input_layernorm", x)
        q = split(linear(f"{at}.q_proj", y), n_head)
        k, v = (split(linear(f"{at}.{name}_proj", y), n_kv_head) for name in "kv")
        q, k = (rotary(x, base) for x in (q, k))
        k, v = (x.repeat_interleave(n_head // n_kv_head, 0) for x in (k, v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        out = scores.masked_fill(future, -torch.inf).softmax(-1) @ v
        out = out.transpose(0, 1).flatten(1)
        x = x + linear(f"{at}.o_proj", out)
        y = norm(f"layers.{i}.post_attention_layernorm", x)
        gate, up = (linear(f"{mlp}.{name}_proj", y) for name in ("gate", "up"))
        x = x + linear(f"{mlp}.down_proj", F.silu(gate) * up)
    return linear("embed_tokens", norm("norm", x))


def rotary(x, base):
    """Halves rotated: x (heads, T, hs)."""
    T, hs = x.shape[-2:]
    angles = torch.arange(T)[:, None] * base ** (-torch.arange(0, hs, 2) / hs)
    (a, b), cos, sin = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


llama.slips("""
    Nothing is rotated, so the positions of the tokens are missing. Rotate queries and keys.
        rotary(x, base) → x
    Queries and keys are rotated before the split, or along the wrong dimension. Rotate each head:
    `rotate` needs (heads, T, hs).
        rotary(x, base) → rotary(x.transpose(0, 1), base).transpose(0, 1)
    Keys and values are shared in the wrong order. Neighbours share: heads 0, 0, 1, 1, not 0, 1, 0,
    1 (`repeat_interleave`, not `repeat`).
        repeat_interleave(n_head // n_kv_head, 0) → repeat(n_head // n_kv_head, 1, 1)
    The mask is missing: every token attends to the future.
        .masked_fill(future, -torch.inf) →
    The scores are not divided by √hs.
        / math.sqrt(q.shape[-1]) →
    gate and up are swapped: silu(gate) · up.
        F.silu(gate) * up → F.silu(up) * gate
    The mean is subtracted, as LayerNorm does. RMSNorm only divides.
        x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() → F.layer_norm(x, x.shape[-1:])
    The last norm, model.norm, is missing.
        norm("norm", x) → x
    q_proj or o_proj is transposed. No error was raised because they are square: use x @ W.T.
        linear(f"{at}.q_proj", y) → y @ w[f"model.{at}.q_proj.weight"]
        ; linear(f"{at}.o_proj", out) → out @ w[f"model.{at}.o_proj.weight"]
    The heads are cut wrongly: (T, C) → (T, heads, hs) → (heads, T, hs), and back the same way.
        x.unflatten(-1, (heads, -1)).transpose(0, 1) → x.reshape(heads, len(x), -1)
        out.transpose(0, 1).flatten(1) → out.reshape(x.shape)
""")


@llama.also
def with_functions_alone(answer):
    expect_no_helpers(answer, llama.inputs[0])
    expect(
        "torch.nn.modules.module" not in modules_of(answer, *fresh(llama.inputs[0])),
        "The values are right, but an `nn.Module` computes a part of them: use functions alone.",
    )
