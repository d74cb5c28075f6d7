"""The exercises on generation: a strange text, repeated n-grams, typical tokens, beam search."""

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


def rounded(probs):
    """Probabilities in 64ths, so that sums of them are exact."""
    return torch.tensor(probs) / 64


@exercise(
    inputs=lambda draw: [
        (torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]), 0.2),
        (torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]), 0.6),
        (rounded([40, 10, 6, 5, 3]), 0.3),
        (rounded([3, 20, 17, 13, 11]), 0.55),
        (rounded([2, 30, 0, 16, 9, 7]), 0.5),
        (rounded([0, 48, 12, 0, 4]), 0.4),
        (normal(12, seed=40).mul(2).softmax(-1), 0.5),
        (normal(30, seed=41).mul(1.5).softmax(-1), 0.7),
        (normal(7, seed=42).softmax(-1), 0.35),
        (rounded([50, 8, 4, 2]), 0.05),
        (rounded([61, 1, 1, 1]), 0.5),
        (rounded([26, 18, 10] + [1] * 10), 0.1),
        (torch.tensor([1 / 2, 1 / 4 - 2**-24, 1 / 4]), 1.0),  # as floats, they end below 1
    ],
    error_hints={
        "out of (range|bounds)": "A sum of floats may end a little below 1. With p = 1, all tokens "
        "are kept then.",
    },
    example=(torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]), 0.2),
    on_success="The most probable token is not always typical.",
)
def typical(probs, p):
    """typical(probs, p): the probabilities (V,) of locally typical sampling."""
    surprise = -probs.log()
    entropy = -torch.special.xlogy(probs, probs).sum()
    kept = torch.zeros_like(probs)
    for i in (surprise - entropy).abs().argsort():
        if kept.sum() >= p:
            break
        kept[i] = probs[i]
    return kept / kept.sum()


typical.slips("""
    This is top-p: the most probable tokens come first. Sort by the distance between −ln p and the
    entropy, which is the absolute value of their difference.
        (surprise - entropy).abs().argsort() → probs.argsort(descending=True)
        .abs() →
    You kept the least typical tokens: sort by the distance in rising order, the closest first.
        argsort() → argsort(descending=True)
    You left out the token that takes the sum past p. It is kept, too.
        kept.sum() >= p → kept.sum() >= p or kept.sum() + probs[i] > p
    The probabilities that you keep do not sum to 1: divide them by their sum.
        / kept.sum() →
    You compared the entropy with the probabilities. Compare it with −ln p.
        surprise - entropy → probs - entropy
    You mixed nats and bits: one of the logarithms has the base 2. Use `log` for both.
        surprise - entropy → surprise - entropy / math.log(2)
        -probs.log() → -probs.log2()
    Your entropy is NaN where a probability is 0, because 0 · log 0 is NaN. Such a token adds
    nothing to the entropy: leave it out, or use `torch.special.xlogy`.
        torch.special.xlogy(probs, probs) → (probs * probs.log())
    You kept one token, the most typical one. Go on until the sum is at least p.
        right(probs, 1e-9)
""")


def chain(V, seed, start, n, width):
    """A random table of log-probabilities, and the other arguments of `beam`."""
    return normal(V, V, seed=seed).mul(2).log_softmax(-1), start, n, width


TOY = torch.tensor([[0.0, 0.6, 0.4], [0.4, 0.3, 0.3], [0.1, 0.0, 0.9]]).log()


BEAMS = [  # the seeds were searched for: the texts that mistakes find differ
    (TOY, 0, 2, 2),
    (TOY, 0, 4, 2),
    chain(5, 103, 3, 4, 2),
    chain(6, 88, 4, 4, 2),
    chain(4, 7, 3, 5, 3),
    chain(4, 292, 0, 5, 3),
    chain(6, 80, 2, 4, 3),
    chain(3, 15, 0, 6, 2),
    chain(3, 245, 2, 6, 2),
    (TOY, 1, 1, 3),
    (TOY, 0, 2, 5),
]


@exercise(
    inputs=lambda draw: [
        *BEAMS,
        *(chain(V, draw.randrange(10**6), 0, 5, 2) for V in (4, 5, 6)),
    ],
    error_hints={
        "out of range": "The first step has only V texts, which may be fewer than `width`: then "
        "all are kept."
    },
    example=(TOY, 0, 2, 2),
    on_success="The beam finds texts that greedy decoding misses.",
)
def beam(log_probs, start, n, width):
    """beam(log_probs, start, n, width): the ids of the likeliest text that beam search finds."""
    texts = [(0.0, [start])]
    for _ in range(n):
        longer = []
        for score, ids in texts:
            new = log_probs[ids[-1]].tolist()
            longer += [(score + new[j], [*ids, j]) for j in range(len(new))]
        texts = sorted(longer, reverse=True)[:width]
    return texts[0][1]


beam.slips("""
    You return the text without its first token: it begins with `start`.
        texts[0][1] → texts[0][1][1:]
    This is greedy decoding: only one text was kept in each step. Keep `width` of them.
        right(log_probs, start, n, 1)
        for j in range(len(new))] → for j in [new.index(max(new))]]
    You kept the least probable texts. Sort from the largest log-probability: `reverse=True`.
        , reverse=True →
    You compared the texts by their last token alone. Add its log-probability to the text's.
        score + →
    You added probabilities. The probability of a text is a product, so add the logarithms.
        score + new[j] → score + math.exp(new[j])
    You multiplied the log-probabilities. The logarithm turns the product into a sum: add them.
        score + new[j] → (score or 1) * new[j]
    This is the most probable of all texts: nothing was cut. Keep only `width` texts after each
    step.
        [:width] →
""")
