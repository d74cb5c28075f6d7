"""The exercises on real weights: packed bytes, broken loaders, blocks in 2 bits, wordings."""

import math
import struct

import torch

from exercises.check import checked, diagnose, diagnose_letters, exercise, generator, reported, same
from helpers.gpt import GPT, GPTConfig
from helpers.positions import Rotary, half_split

# --- 17.1: a group of Q4_1 ------------------------------------------------------------------------


def weights(scale, minimum, seed):
    """Near the levels of a group. All is exact in float16 but what is added to them."""
    levels = torch.randint(16, (32,), generator=generator(seed)).tolist()
    levels[seed % 32], levels[(seed + 19) % 32] = 0, 15
    off = (0.3 * torch.rand(32, generator=generator(seed)) - 0.15).tolist()
    near = [level + by * (0 < level < 15) for level, by in zip(levels, off, strict=True)]
    return ([minimum + scale * one for one in near],)


@exercise(
    inputs=lambda draw: [
        *(weights(scale, low, n) for n, (scale, low) in enumerate(((0.0625, -0.5), (0.25, -2.0)))),
        *(weights(draw.randint(1, 60) / 64, draw.randint(-200, 9) / 64, n) for n in range(2, 6)),
        ([0.75] * 32,),
    ],
    on_success="20 bytes, as in the file.",
    error_hints={
        "ZeroDivision": "All weights of a group may be equal. Then the scale and all levels are 0.",
        "format requires": "A level is 0 to 15, and two of them make a byte of at most 255. From "
        "level 0 to level 15 there are 15 steps, and level 0 is the minimum.",
    },
    in_words=lambda given: f"pack([{given[0][0]:.3f}, {given[0][1]:.3f}, …])",
)
def pack(weights):
    """pack(weights): the 20 bytes of a group of 32 weights in the format Q4_1."""
    minimum, greatest = min(weights), max(weights)
    scale = (greatest - minimum) / 15
    levels = [round((w - minimum) / (scale or 1)) for w in weights]
    halves = zip(levels[:16], levels[16:], strict=True)
    return struct.pack("<2e16B", scale, minimum, *(low + 16 * high for low, high in halves))


pack.slips("""
    Round to the nearest level. `int` and `//` cut off.
        round( → int(
    The lower half of byte 0 is the level of weight 0, and its upper half that of weight 16.
        low + 16 * high → high + 16 * low
    You put neighbours into a byte. Weight 0 shares its byte with weight 16.
        levels[:16], levels[16:] → levels[::2], levels[1::2]
    The two float16 numbers have their bytes in the wrong order: `<`, little-endian.
        <2e → >2e
    First comes the scale, then the minimum.
        scale, minimum, → minimum, scale,
    The first two bytes are not the scale: the *distance* between two levels, a fifteenth of the
    way from the smallest weight to the largest.
        , scale, minimum, → , greatest, minimum,
        , scale, minimum, → , greatest - minimum, minimum,
    These are levels that nobody has packed. Put two of them into one byte.
        right(weights)[:4] + bytes(b >> half & 15 for half in (0, 4) for b in right(weights)[4:])
""")

# --- 17.2: four strangers -------------------------------------------------------------------------

FAULTS = {"A": "c", "B": "d", "C": "e", "D": "a"}


class FromOne(Rotary):
    def forward(self, x, start=0):
        return super().forward(x, start + 1)


@torch.no_grad()
def stranger(fault=""):
    parts = dict(norm="RMSNorm", mlp="SwiGLU", position="Rotary", bias=False, n_kv_head=2)
    with torch.random.fork_rng():
        model = GPT(GPTConfig(50, 32, 2, 4, 16, rotary_base=1000.0, **parts))
    draw = generator(3)
    for p in model.parameters():
        if p.dim() == 2:
            p.normal_(std=0.4, generator=draw)
    for block in model.blocks:
        attention, mlp = block.attention, block.mlp
        if fault == "a":
            for layer in (attention.query, attention.key):
                layer.weight.copy_(half_split(layer.weight, len(layer.weight) // 4))
        if fault == "c":
            attention.rotary = Rotary(4, 10_000.0)
        if fault == "d":
            mlp.gate, mlp.up = mlp.up, mlp.gate
        if fault == "e":
            attention.rotary = FromOne(4, 1000.0)
    return model.eval()


def suspects():
    """The sound model of exercise 17.2, the four others as functions, and a text (1, 12)."""
    others = {name: torch.no_grad()(stranger(fault).forward) for name, fault in FAULTS.items()}
    return stranger(), others, torch.randint(50, (1, 12), generator=generator(4))


@checked
def verdict(answer):
    """verdict: what is wrong with the models A to D, a letter for each."""
    table = """
        B is wrong at position 0 already. There, a token attends to itself alone, so nothing that
        makes scores can be the reason.
            found["B"] in "ace"
        Without a mask, position 0 would be right in a text of one token: call B with `ids[:, :1]`.
            found["B"] == "f"
        B is wrong at position 0 for one of two reasons. Exchange two matrices in a copy of the
        sound model, and compare.
            found["B"] == "b"
        A and D are right at position 0. A missing mask, wrong values or exchanged matrices would
        show there.
            {found["A"], found["D"]} & set("bdf")
        C computes what the sound model computes. One of the six changes nothing that a query and a
        key can notice: how far apart are they?
            found["C"] != "e"
        Positions that begin at 1 change no logit (chapter 07). A and D differ from the sound model.
            "e" in (found["A"], found["D"])
        One of A and D has another base, the other another order. Plant each of the two in a copy
        of the sound model: only the right one gives the same logits.
            found["A"] != "c" or found["D"] != "a"
    """
    diagnose_letters(answer, FAULTS, "f", table)
    return "A fault that is planted and gives the same logits is found, and not only suspected."


# --- 17.3: the block that costs more --------------------------------------------------------------

BITS = (1.0009, 1.1100, 1.3266)  # a character: untouched, block 15 in 2 bits, block 29 in 2 bits
RIGHT, TOKENS = "last", 140  # of 600 characters


@checked
def dearer(answer):
    """dearer: bits per character untouched, with block 15 and block 29 in 2 bits, and a word"""
    *found, word = reported(
        answer,
        (*BITS, RIGHT),
        "Set dearer to four things: three numbers of bits, and your verdict, "
        '(2.11, 2.22, 2.33, "middle").',
    )

    def near(*those, by=0.003):
        return same(found[-len(those) :], those, by)

    diagnose("""
        These are nats per character. Divide by ln 2.
            near(*(bits * math.log(2) for bits in BITS))
        These are bits per token. Divide by the characters, 600.
            near(*(bits * 600 / TOKENS for bits in BITS), by=0.02)
        The untouched model needs 1.00 bits per character here. Did a block stay rounded? Load the
        weights again: `gpt.load_state_dict(state | reordered)`.
            abs(found[0] - BITS[0]) >= 0.015
        The second and the third are swapped: first block 15, then block 29.
            near(1.3266, 1.1100)
        In your third number both blocks are rounded: put block 15 back first.
            near(1.1100, 1.4268)
        You rounded only the four matrices of attention. Round the three of `mlp`, too.
            near(1.0510, 1.0321)
        You rounded only the three matrices of `mlp`. Round the four of attention, too.
            near(1.0583, 1.3191)
        Rounding changes nothing here. They are in 4 bits already: take 2. Or were the rounded
        numbers not put into the model (`part.weight.data = …`)?
            near(1.0009, 1.0009)
        These are not the bits with blocks 15 and 29 in 2 bits, one at a time, to two decimals. (All
        seven matrices of `gpt.blocks[15]`, each by `quantize(matrix, 2).matrix()`.)
            not near(*BITS)
        The verdict should be middle or last.
            word not in ("middle", "last")
        More bits are worse. Which of the two blocks adds more?
            word != RIGHT
    """)
    return "The last block costs three times as much, nearly all of it in its feed-forward network."


# --- 17.4: two wordings ---------------------------------------------------------------------------


def by_luck(a, b):
    """How often a coin that is tossed a + b times favours one side as strongly."""
    n = a + b
    return 2 * sum(math.comb(n, k) for k in range(max(a, b), n + 1)) / 2**n


@checked
def wordings(answer):
    """wordings: which questions were answered rightly, by two wordings, and a verdict."""
    first, second, word = reported(
        answer,
        ([0, 1], [0, 1], "cannot tell"),
        "Set wordings to a triple: a list of zeros and ones for each wording, and your verdict, "
        '([1, 0, 1], [1, 1, 0], "cannot tell").',
    )
    changes = [a - b for a, b in zip(first, second, strict=False)]
    ahead, behind = map(changes.count, (1, -1))
    diagnose("""
        The verdict should be "first", "second" or "cannot tell".
            word not in ("first", "second", "cannot tell")
        Each question is asked in both wordings: two lists of the same length, in the same order.
            len(first) != len(second)
        That is not enough to tell a difference from luck. Ask eight questions or more.
            len(first) < 8
        A question is answered rightly or not: 1 or 0.
            not set(first + second) <= {0, 1}
        No answer is right, or all are. Take questions of which the model can answer some.
            len(set(first + second)) == 1
        The other wording got more questions right.
            word == ("second" if ahead > behind else "first") and ahead != behind
        Look at the questions on which the two wordings differ. A coin for each of them would favour
        one wording as strongly in more than one of twenty tries: you can't tell.
            word != "cannot tell" and by_luck(ahead, behind) > 0.05
        Nearly all questions on which the wordings differ favour the same one. That is hardly luck.
            word == "cannot tell" and by_luck(ahead, behind) <= 0.05
    """)
    return "A model's accuracy belongs to a wording. Papers print it without."
