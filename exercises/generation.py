"""The exercises on generation: a strange text, repeated n-grams, faults, an experiment."""

import math

import torch

from exercises.check import checked, diagnose, exercise, generator, normal, reported, same

TAUS = (1.0, 1.5, 2.0, 3.0, 5.0)
RIGHT = (4.773, 3.734, 3.382, 3.277, 3.462)


@checked
def capitals(answer):
    """capitals: the losses at five temperatures on plays in capitals, and the one you would take"""
    losses, chosen = reported(
        answer,
        (dict.fromkeys(TAUS, 2.5), 1.0),
        "Set capitals to a pair: the losses, temperature → loss, and the temperature you take, "
        "({1.0: 2.5, …}, 1.0).",
    )

    def near(*those):
        return same([*losses.values()], those, 0.02)

    diagnose("""
        These are the losses on the plays as they are. Take them in capitals: `.upper()`.
            near(1.349, 1.363, 1.492, 1.857, 2.497)
        These are the losses on the plays that the model was trained on. Take "validation".
            near(4.528, 3.543, 3.217, 3.146, 3.376)
        These are the entropies. `entropy_and_loss` gives the loss second.
            near(1.298, 2.006, 2.625, 3.413, 3.940)
        These are not the losses in capitals: mean losses, as `entropy_and_loss` gives them, for
        what `predict_passages` makes of `data.shakespeare("validation").upper()`.
            not near(*RIGHT)
        The second of the pair should be one of the five temperatures.
            chosen not in TAUS
        By your own numbers another temperature is better.
            chosen != min(TAUS, key=losses.get)
    """)
    return "Sure and wrong: at τ = 1 it does worse here than a die with 69 faces (ln 69 = 4.23)."


def to_forbid(length, symbols, n, seed):
    g = generator(seed)
    text = torch.randint(symbols, (length,), generator=g).tolist()
    return normal(symbols, seed=seed), text, n


FORBIDDEN = [  # in other texts mistakes may look alike
    (normal(5, seed=1), [1, 2, 3, 1, 2], 3),
    (normal(4, seed=2), [0, 1, 2, 0, 3, 0], 2),
    to_forbid(40, 4, 3, seed=3),
    to_forbid(30, 4, 2, seed=4),
    to_forbid(60, 3, 4, seed=5),
    to_forbid(6, 8, 1, seed=6),
    to_forbid(3, 4, 5, seed=7),
    to_forbid(50, 5, 3, seed=8),
    (normal(4, seed=30), [2, 2, 2], 2),
    (normal(4, seed=31), [1, 1, 1, 1], 3),
    (normal(13, seed=32), [12, 3, 1, 2], 3),
    (normal(13, seed=33), [11, 2, 3, 1, 2], 3),
]


@exercise(
    inputs=lambda draw: [
        *FORBIDDEN,
        # The n-gram that would occur again ends where the text ends.
        (normal(6, seed=draw.randrange(10**6)), [*draw.choices(range(4), k=5), 4, 4], 2),
        *(
            (normal(5, seed=draw.randrange(10**6)), [4, *draw.choices(range(4), k=6), 4], 2)
            for _ in range(5)
        ),
    ],
    example=(normal(5, seed=1), [1, 2, 3, 1, 2], 3),
    on_success="No n-gram occurs twice.",
)
def no_repeat(logits, ids, n):
    """no_repeat(logits, ids, n): logits (V,) with −∞ where an n-gram would occur again."""
    out = logits.clone()
    start = len(ids) - n + 1
    again = [ids[i + n - 1] for i in range(start) if ids[i : i + n - 1] == ids[start:]]
    out[again] = -math.inf
    return out


no_repeat.slips("""
    You forbid every token that has occurred. Forbid only those that would complete an n-gram for a
    second time.
        out[again] → out[ids]
    For n = 1, every token that has occurred is forbidden. The last n − 1 tokens are none, and
    `ids[-0:]` is the whole list. Count from the front: `ids[len(ids) - (n - 1):]`.
        == ids[start:] → == ids[-(n - 1) :]
    Zero is a logit like any other. Set forbidden logits to −∞: `-math.inf`.
        -math.inf → 0.0
    A large negative number is not −∞: `-math.inf`.
        -math.inf → -1e9
        -math.inf → -1e4
    Your n-grams are one token too long. They have n − 1 tokens, and the one that follows.
        right(logits, ids, n + 1)
    You used only one earlier occurrence. The last n − 1 tokens may have occurred several times,
    each time followed by another token.
        out[again] → out[again[:1]]
        out[again] → out[again[-1:]]
    You missed the n-gram that ends where `ids` ends. It begins at len(ids) − n, and a range does
    not include its end.
        range(start) → range(start - 1)
    These are the forbidden tokens. Return the logits, with −∞ at those tokens.
        return out → return again
""")


DECODERS = {  # what each does at a temperature of 0.5 with top-k 2; one of them is right
    "A": (0.0, "each", "logits"),
    "B": (-math.inf, "each", "logits"),
    "C": (-math.inf, "same", "logits"),
    "D": (-math.inf, "each", "probabilities"),
}
FAULTS = {"A": "zero", "B": "none", "C": "seed", "D": "temperature"}


def draw(letter, logits, n, seed=0):
    """Draw n tokens with one of four decoders, set to a temperature of 0.5 and top-k 2."""
    forbidden, seeding, divided = DECODERS[letter]
    g = generator(seed)
    best, drawn = logits.argsort(descending=True)[:2], []
    for _ in range(n):
        if seeding == "same":
            g.manual_seed(seed)
        z = logits / 0.5 if divided == "logits" else (logits.softmax(-1) / 0.5).log()
        cut = torch.full_like(z, forbidden)
        cut[best] = z[best]
        drawn.append(torch.multinomial(cut.softmax(-1), 1, generator=g).item())
    return drawn


@checked
def faults(answer):
    """faults: the fault of each of the four decoders"""
    found = reported(
        answer,
        FAULTS,
        'Set faults to {"A": …, "B": …, "C": …, "D": …}, each one of "zero", "seed", '
        '"temperature" and "none".',
    )
    diagnose("""
        One word is none of the four: "zero", "seed", "temperature", "none".
            not set(found.values()) <= set(FAULTS.values())
        A draws words that top-k 2 forbids. Which logit must a forbidden word have had?
            found["A"] != "zero"
        C draws one word for ever. A correct draw does that at a temperature of 0, not at 0.5.
            found["C"] != "seed"
        Count more often: 1/2 and 1/4, squared, are as 4 to 1, so the first word should come in 80%
        of the draws. One of B and D is at 67%, as if the temperature were not there.
            found != FAULTS
    """)
    return f"{len(found)} loops, three faults, and none of them raised an error."


@checked
def speeches(answer):
    """speeches: a bet, and the mean length of speeches at two settings, with three seeds each"""
    bet, first, second = reported(
        answer,
        ("shorter", [40.0], [40.0]),
        "Set speeches to (bet, lengths at the first setting, lengths at the second), as in "
        '("shorter", [40, 42, 41], [60, 58, 63]).',
    )
    diagnose("""
        The bet is "shorter", "longer" or "same": the first setting against the second.
            bet not in ("shorter", "longer", "same")
        One run proves nothing: at least three seeds for each setting.
            min(len(first), len(second)) < 3
        Runs that agree to the last digit have the same seed.
            len(set(first)) == 1 or len(set(second)) == 1
        A speech has at least one character, and the loop has a maximum.
            min(first + second) < 1 or max(first + second) > 2000
    """)
    apart = "shorter" if max(first) < min(second) else "longer"
    result = apart if max(first) < min(second) or min(first) > max(second) else "same"
    if result == "same":
        return "The seeds overlap: these runs show no difference. " + (
            "You bet on that." if bet == result else "More speeches might, or there is none."
        )
    return f"All seeds agree: {result}. You {'won' if bet == result else 'lost'} the bet."
