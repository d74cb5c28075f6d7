"""The exercises on real weights: eight bits, the cache's bytes, a dear block, a Llama by hand."""

import math
import struct
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import NotAttempted, NotYet, checked, exercise, expect, normal, plain, same
from helpers.gpt import GPTConfig

# --- 15.1: eight bits -----------------------------------------------------------------------------


def packed(scale, seed):
    """The 34 bytes of a block."""
    draw = torch.Generator().manual_seed(seed)
    return (struct.pack("<e32b", scale, *torch.randint(-128, 128, (32,), generator=draw).tolist()),)


@exercise(
    inputs=[packed(scale, seed) for seed, scale in enumerate((0.3711, 1.287, 0.0921, 2.613, -0.57))],
    praise="34 bytes for 32 numbers are 8.5 bits each.",
    tolerance=1e-3,  # a product may be rounded to float16
)
def block8(raw):
    """block8(raw): the 32 numbers of a block of 34 bytes, a float16 scale and signed bytes."""
    scale, *numbers = struct.unpack("<e32b", raw)
    return [scale * n for n in numbers]


def block_in_words(given):
    scale, first, second, *_ = struct.unpack("<e32b", given[0])
    return f"block8(raw), for a scale of {scale:.4f} and the numbers {first}, {second}, …,"


block8.what = block_in_words  # type: ignore[method-assign]


def reading(scale=lambda raw: float16(raw[:2]), numbers=lambda raw: signed(raw[2:]), plus=None):
    """The block with another scale, other numbers, or something added."""
    return lambda raw: [scale(raw) * n + (plus(raw) if plus else 0) for n in numbers(raw)]


def float16(raw, order="<"):
    return struct.unpack(f"{order}e", raw)[0]


def signed(raw):
    return struct.unpack(f"{len(raw)}b", raw)


def halves(raw):
    return [b & 15 for b in raw] + [b >> 4 for b in raw]


def in_pairs(raw):
    return [half for b in raw for half in (b & 15, b >> 4)]


def minimum(raw):
    return float16(raw[2:4])


block8.mistakes = {
    "Your numbers are unsigned, 0 to 255. Signed bytes are −128 to 127: from 128 on, subtract 256 "
    "(`struct` reads them with b, not B).": reading(numbers=lambda raw: raw[2:]),
    "128 is taken from every byte. Of signed bytes 0 to 127 stay as they are; from 128 on, "
    "subtract 256.": reading(numbers=lambda raw: [b - 128 for b in raw[2:]]),
    "From bytes of 128 on you subtract 255 or 128. It is 256: 255 stands for −1.": (
        reading(numbers=lambda raw: [b - 255 * (b > 127) for b in raw[2:]]),
        reading(numbers=lambda raw: [b - 128 * (b > 127) for b in raw[2:]])),
    "The sign is lost: your numbers are sizes.":
        reading(numbers=lambda raw: [abs(n) for n in signed(raw[2:])]),
    "You cut bytes into halves of four bits. Here each byte is one number.": tuple(
        reading(numbers=lambda raw, cut=cut, end=end: cut(raw[2:end]))
        for cut in (halves, in_pairs) for end in (18, 34)),
    "These are halves of bytes and a minimum, as in the format of four bits. Here each byte after "
    "the scale is one number, and nothing is added.": tuple(
        reading(numbers=lambda raw, cut=cut, end=end: cut(raw[4:end]), plus=minimum)
        for cut in (halves, in_pairs) for end in (20, 34)),
    "A minimum is added, made of bytes 2 and 3. This format has none: they are the first two "
    "numbers.": (
        reading(plus=minimum), reading(plus=minimum, numbers=lambda raw: signed(raw[4:])),
        reading(plus=minimum, numbers=lambda raw: raw[4:])),
    "The first two numbers are missing: they begin at byte 2, right after the scale.":
        (reading(numbers=lambda raw: signed(raw[4:])), reading(numbers=lambda raw: raw[4:])),
    "Your scale is made of the last two bytes. It is the first two.": (
        reading(lambda raw: float16(raw[-2:])),
        reading(lambda raw: float16(raw[-2:]), lambda raw: signed(raw[:-2])),
        reading(lambda raw: float16(raw[-2:]), lambda raw: raw[:-2])),
    "The two bytes of the scale are in the wrong order: `<` in `struct`, little-endian.": (
        reading(lambda raw: float16(raw[:2], ">")),
        reading(lambda raw: float16(raw[:2], ">"), lambda raw: raw[2:])),
    "The scale is missing: these are the whole numbers. Multiply each by it.":
        (reading(lambda raw: 1), reading(lambda raw: 1, lambda raw: raw[2:])),
    "You divided by the scale. Multiply.": reading(lambda raw: 1 / float16(raw[:2])),
    "Your scale is a whole number of 16 bits. Its two bytes are a float16 (e in `struct`).":
        tuple(reading(lambda raw, kind=kind: struct.unpack(kind, raw[:2])[0])
              for kind in ("<h", "<H", ">h", ">H")),
    "Your scale is a bfloat16. Its two bytes are a float16.": reading(
        lambda raw: torch.tensor([*raw[:2]], dtype=torch.uint8).view(torch.bfloat16).item()),
    "Your scale is a float32, made of four bytes. It is a float16, of two.": (
        reading(lambda raw: struct.unpack("<f", raw[:4])[0]),
        reading(lambda raw: struct.unpack("<f", raw[:4])[0], lambda raw: signed(raw[4:]))),
    "Your numbers are cut to whole ones. Keep the fractions.":
        (lambda raw: [int(x) for x in block8.right(raw)],
         lambda raw: [round(x) for x in block8.right(raw)]),
    "The scale is still among your numbers: they begin at byte 2.":
        (reading(numbers=signed), reading(numbers=lambda raw: raw),
         reading(numbers=lambda raw: signed(raw[:32]))),
}  # fmt: skip


# --- 15.2: the bytes of a cache -------------------------------------------------------------------


def sized(layers, heads, width, shared=None, head_size=None):
    return GPTConfig(100, 4096, layers, heads, width, n_kv_head=shared, head_size=head_size)


@exercise(
    inputs=[(sized(30, 9, 576, 3), 8192, 4), (sized(12, 12, 768), 1024, 4), (sized(6, 4, 64, 1), 10, 2),
            (sized(28, 16, 1024, 8, 128), 1000, 2), (sized(3, 5, 40, None, 24), 7, 1),
            (sized(2, 6, 48, 2, 10), 9, 4)],
    praise="two numbers a feature, for the heads that there are.",
    tolerance=0,
)  # fmt: skip
def cache_bytes(config, tokens, size):
    """cache_bytes(config, tokens, size): what keys and values of so many tokens take."""
    return kept(config, tokens, size)


def config_in_words(given):
    c, tokens, size = given
    names = ("n_layer", "n_head", "n_embd", "n_kv_head", "head_size")
    about = ", ".join(f"{name} {getattr(c, name)}" for name in names)
    return f"cache_bytes(config, {tokens}, {size}) for {about}"


def in_words_of_none(error):
    if "NoneType" not in str(error):
        return error
    return NotYet(f"{error}. n_kv_head and head_size may be None: then there are n_head heads of "
                  "keys, and a head has n_embd / n_head numbers.")  # fmt: skip


cache_bytes.what = config_in_words  # type: ignore[method-assign]
cache_bytes._explained = in_words_of_none  # type: ignore[method-assign]


def shared_heads(c):
    return c.n_kv_head or c.n_head


def size_of_head(c):
    return c.head_size or c.n_embd // c.n_head


def kept(c, tokens, size, both=2, heads=shared_heads, hs=size_of_head, layers=True):
    return both * (c.n_layer if layers else 1) * tokens * heads(c) * hs(c) * size


def keeping(**changes):
    return partial(kept, **changes)


cache_bytes.mistakes = {
    "Half is missing: keys *and* values are kept.": keeping(both=1),
    "Half as much again: queries are not kept, only keys and values.": keeping(both=3),
    "All n_head heads are counted. Kept are the n_kv_head shared ones, if that is not None.":
        keeping(heads=lambda c: c.n_head),
    "Keys are counted for the shared heads, but values for all, or the other way round. Both are "
    "shared.": lambda c, *given: (kept(c, *given) + keeping(heads=lambda c: c.n_head)(c, *given)) / 2,
    "Counted are the n_head / n_kv_head heads that share one. Kept are n_kv_head.":
        keeping(heads=lambda c: c.n_head // shared_heads(c)),
    "With n_kv_head None you count one head. None means that each head has keys of its own.":
        keeping(heads=lambda c: c.n_kv_head or 1),
    "With n_kv_head None you count no head. None means that each head has keys of its own.":
        keeping(heads=lambda c: c.n_kv_head or 0),
    "You count n_embd numbers for a key. It is heads of keys · size of a head.":
        keeping(heads=lambda c: 1, hs=lambda c: c.n_embd),
    "A head has n_embd numbers with you. It has head_size, or else n_embd / n_head.":
        keeping(hs=lambda c: c.n_embd),
    "With head_size None a head has n_embd numbers with you. It has n_embd / n_head.":
        keeping(hs=lambda c: c.head_size or c.n_embd),
    "head_size is ignored where it is given: n_embd / n_head holds only for None.":
        keeping(hs=lambda c: c.n_embd // c.n_head),
    "With head_size None a head has n_embd / n_kv_head numbers with you. It has n_embd / n_head, "
    "shared or not.": keeping(hs=lambda c: c.head_size or c.n_embd // shared_heads(c)),
    "That is one layer. All n_layer keep keys and values.": keeping(layers=False),
    "That is one token. Each of `tokens` keeps its own.": lambda c, tokens, size: kept(c, 1, size),
    "tokens counts twice. Kept are keys and values, one each a token, not scores of pairs.":
        lambda c, tokens, size: kept(c, tokens**2, size),
    "That is how many numbers there are. Each takes `size` bytes.":
        lambda c, tokens, size: kept(c, tokens, 1),
    "These are bits. `size` is in bytes: no 8.": keeping(both=16),
    "Your result is divided by 8, but `size` is in bytes.": keeping(both=1 / 4),
    "These are thousands or millions of bytes. Return bytes.": tuple(
        keeping(both=2 / unit) for unit in (1000, 1024, 10**6, 2**20)),
}  # fmt: skip


# --- 15.3: the dearer block -----------------------------------------------------------------------

BITS = (1.001, 1.110, 1.327)  # a character: untouched, block 15 in 2 bits, block 29 in 2 bits
RIGHT = "last"
TOKENS = 140  # of 600 characters
OTHERS = {  # diagnosis → the second and third number that are otherwise
    "The second and third are what rounding *adds*. Give the bits themselves, all three.":
        (0.109, 0.326),
    "The second and the third are exchanged: first block 15, then block 29.": (1.327, 1.110),
    "In your third number both blocks are rounded: put block 15 back first.": (1.110, 1.427),
    "In your second number both blocks are rounded: put block 29 back first.": (1.427, 1.327),
    "In both of your numbers both blocks are rounded. Round one, measure, put it back.":
        (1.427, 1.427),
    "Only the four matrices of attention are rounded. The three of `mlp` belong to the block, too.":
        (1.051, 1.032),
    "Only the three matrices of `mlp` are rounded. The four of attention belong to the block, too.":
        (1.058, 1.319),
    "Blocks are counted from 0: these are 14 and 28.": (1.062, 1.041),
    "That is the first block, 0, not 15.": (1.131, 1.327),
    "That is rounding to 3 bits. Take 2.": (1.013, 1.070),
    "Rounding changes nothing here. In 4 bits they are already: take 2. Or were the rounded "
    "numbers not put into the model (`part.weight.data = …`)?": (1.001, 1.001),
    "That is rounding to 1 bit, two levels. 2 bits are four.": (5.163, 6.187),
}  # fmt: skip


@checked
def dearer(answer):
    """dearer: bits per character untouched, with block 15 and block 29 in 2 bits, and a word"""
    if isinstance(answer, (tuple, list)) and ... in tuple(answer):
        raise NotAttempted
    expect(
        isinstance(answer, (tuple, list)) and len(answer) == 4 and isinstance(answer[3], str),
        "Set dearer to four things: three numbers of bits, and your verdict.",
    )
    try:
        found = [float(plain(number)) for number in answer[:3]]
    except (TypeError, ValueError, RuntimeError):
        raise NotYet("The first three should be numbers: 1.5, 1.6, 1.7.") from None
    for unit, factor in {
        "nats a character. Divide by ln 2": math.log(2),
        "bits a token. Divide by the characters, 600": 600 / TOKENS,
        "nats a token. Divide by the characters, 600, and by ln 2": math.log(2) * 600 / TOKENS,
        "bits of the whole text. Divide by the characters, 600": 600,
        "nats of the whole text. Divide by the characters, 600, and by ln 2": 600 * math.log(2),
    }.items():
        as_bits = [number / factor for number in found]
        expect(not same(as_bits, BITS, 0.01), f"These are {unit}.")
    expect(
        abs(found[0] - BITS[0]) < 0.015,
        "The untouched model needs 1.00 bits a character here. Is yours as it was read from the "
        "file? If a block stayed rounded, read it again.",
    )
    if not same(found, BITS, 0.01):
        expect(
            min(found[1:]) < 4 or not same(*found[1:], 0.05) or found[1] > 4.7,
            "These are all 30 blocks in 2 bits. Round one and leave the others.",
        )
        for says, others in OTHERS.items():
            expect(not same(found[1:], others, 0.01), says)
        raise NotYet(
            "These are not the bits with blocks 15 and 29 in 2 bits, one at a time. (All seven "
            "matrices of `model.blocks[15]`, each by `to_blocks(matrix, 2).matrix()`.)"
        )
    expect(answer[3] in ("middle", "last"), "The verdict should be one of middle, last.")
    expect(answer[3] == RIGHT, "More bits are worse: which of the two adds more?")
    return "three times as dear, and nearly all of it in its feed-forward part."
