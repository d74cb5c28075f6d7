"""The exercises on fine-tuning: masks, broken runs, adapters, and facts without forgetting."""

import torch

from exercises.check import (
    checked,
    diagnose_letters,
    exercise,
    expect,
    normal,
    reported,
)

# --- 19.1: the mask of a dialogue -----------------------------------------------------------------

HEADER, STOP = [1, 8, 9], 2


def said(role, *tokens, ends=True):
    """The ids of a message: header, text, end token, line break."""
    return [1, role, 9, *tokens, *([STOP, 9] if ends else [])]


USER, ASSISTANT, SYSTEM = 7, 8, 6


def chat(rng):
    """The ids of a dialogue of some turns, and what else `dialogue_mask` is given."""
    ids = []
    for _ in range(rng.randint(1, 3)):
        for role in (USER, ASSISTANT):
            ids += said(role, *rng.choices(range(10, 99), k=rng.randint(1, 4)))
    return ids, HEADER, STOP


@exercise(
    inputs=lambda draw: [
        (said(USER, 20, 21) + said(ASSISTANT, 30, 31), HEADER, STOP),
        (
            said(USER, 20) + said(ASSISTANT, 30, 31, 32) + said(USER, 21, 22, 23)
            # an answer may say the role's name and a line break
            + said(ASSISTANT, 33, 8, 9, 34) + said(USER, 24) + said(ASSISTANT, 35),
            HEADER,
            STOP,
        ),
        # the system and the user say the role's name, with a line break after it
        (said(SYSTEM, 40, 8, 9, 41) + said(USER, 8, 9, 20) + said(ASSISTANT, 30), HEADER, STOP),
        # an empty answer, and one that is cut off
        (said(USER, 20) + said(ASSISTANT) + said(USER, 21) + said(ASSISTANT, 30, 31, ends=False),
         HEADER, STOP),
        # a prompt: there is nothing to learn
        (said(USER, 20, 21) + said(ASSISTANT, ends=False), HEADER, STOP),
        ([3, 5, 50, 4, 3, 6, 51, 52, 4, 3, 5, 6, 53, 4, 3, 6, 54, 4], [3, 6], 4),
        ([1, 520, 9531, 198, 43, 44, 2, 198, 1, 4093, 198, 520, 9531, 198, 45, 2, 198, 1, 520, 9531,
          198, 46, 2, 198], [1, 520, 9531, 198], 2),
        ([8, 9], HEADER, STOP),
        *(chat(draw) for _ in range(3)),
    ],
    example=(said(USER, 20) + said(ASSISTANT, 30, 31), HEADER, STOP),
    error_hints={
        "not in list": "If the list stops before the answer has ended, there is no end token to "
        "find.",
        "out of range": "A header or an answer may be at the very end of the list.",
    },
    on_success="The answers and their end tokens are learned, and nothing else.",
)  # fmt: skip
def dialogue_mask(ids, header, end):
    """dialogue_mask(ids, header, end): for each id, True if it belongs to an answer or ends it."""
    n, mask = len(header), [False] * len(ids)
    for i in range(n, len(ids) + 1):
        if ids[i - n : i] == header:
            stop = ids.index(end, i) + 1 if end in ids[i:] else len(ids)
            mask[i:stop] = [True] * (stop - i)
    return mask


dialogue_mask.slips("""
    The end token is missing. It belongs to the answer that it ends: a model that never learns it
    never stops.
        + 1 if end → if end
    You mark the header itself, too. The program writes it, so the model need not learn it.
        mask[i:stop] = [True] * (stop - i) → mask[i - n : stop] = [True] * (stop - i + n)
        mask[i:stop] = [True] * (stop - i) → mask[i - n + 1 : stop] = [True] * (stop - i + n - 1)
        mask[i:stop] = [True] * (stop - i) → mask[i - n : stop] = [True] * (stop - i + n)
        ; + 1 if end → if end
    You mark the line break after the end token, too. The answer is over by then.
        + 1 if end → + 2 if end ; return mask → return mask[:len(ids)]
    All is marked one position too early, at the tokens that *predict* the answer. The mask belongs
    to the tokens that are learned.
        return mask → return [*mask[1:], False]
        mask[i:stop] → mask[i - 1 : stop - 1]
    All is marked one position too late. An answer begins right after its header.
        return mask → return [False, *mask[:-1]]
        mask[i:stop] → mask[i + 1 : stop + 1] ; return mask → return mask[:len(ids)]
        mask[i:stop] = [True] * (stop - i) → mask[i + 1 : stop] = [True] * (stop - i - 1)
    You mark only the first answer. A dialogue may have several, and all are learned.
        == header: → == header and not any(mask):
    You mark only the last answer. A dialogue may have several, and all are learned.
        mask[i:stop] = → mask = [False] * len(ids); mask[i:stop] =
    An answer of yours does not end: what the user says after it is marked, too. Leave the answer
    after its end token.
        ids.index(end, i) + 1 if end in ids[i:] else len(ids) → len(ids)
    You look for a part of the header. The user may write the same words, and every message begins
    with the same special token: compare with the whole header.
        right(ids, header[1:], end)
        right(ids, header[:1], end)
        right(ids, header[-1:], end)
        right(ids, header[1:2], end)
    You mark every end token. Those of the user and of the system are not learned.
        return mask → return [m or token == end for m, token in zip(mask, ids)]
""")


# --- 19.2: four runs ------------------------------------------------------------------------------

RUNS = {"A": "b", "B": "a", "C": "d", "D": "c"}


@checked
def broken(answer):
    """broken: what is wrong in the runs A to D, a letter for each."""
    table = """
        A rate a hundred times too high makes the loss rise. No run has a loss above that of an
        untrained model, which is ln 30 = 3.40 or a little more.
            "e" in found.values()
        Padding that is learned harms nobody: the model writes it after its end token. Every run
        has something that needs another cause.
            "f" in found.values()
        In A each reply begins wrongly, and its loss is small: what was learned, and what wasn't?
            found["A"] != "b"
        In B everything is right but for the end, which no reply has. Who should have taught it?
            found["B"] != "a"
        The loss of C is that of a model that has learned nothing. What did the optimizer train?
            found["C"] != "d"
        D answers everything, and its loss stays at 0.69. Which of the tokens could nobody predict?
            found["D"] != "c"
    """
    diagnose_letters(answer, RUNS, "f", table)
    return "Two of the four have a beautiful loss. Look at the replies before you look at the loss."


# --- 19.3: swap an adapter ------------------------------------------------------------------------


def adapter(n_in, n_out, r, alpha, seed):
    return (normal(r, n_in, seed=seed), normal(n_out, r, seed=seed + 1), alpha)


def swapped(n_in, n_out, old, new, seed):
    weights = normal(n_out, n_in, seed=seed + 9)
    return weights, adapter(n_in, n_out, *old, seed), adapter(n_in, n_out, *new, seed + 2)


@exercise(
    inputs=lambda draw: [
        swapped(5, 4, (2, 8.0), (3, 1.0), seed=10),
        swapped(4, 6, (1, 3.0), (4, 2.0), seed=30),
        swapped(4, 4, (4, 1.0), (1, 5.0), seed=50),
        swapped(3, 3, (2, 5.0), (2, 0.5), seed=70),
    ],
    example=(
        torch.tensor([[3.0, 4.0]]),
        (torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0]]), 2.0),
        (torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 1.0]]), 4.0),
    ),
    on_shape_error="A is (r, in) and B is (out, r), so only B @ A has the shape of the weights.",
    on_success="One pair out, another in, and the model has only ever one matrix to multiply.",
)
def swap(merged, old, new):
    """swap(merged, old, new): the weights with another adapter merged in."""
    for (A, B, alpha), sign in ((old, -1), (new, 1)):
        scale = alpha / A.shape[0]
        merged = merged + sign * scale * B @ A
    return merged


swap.slips("""
    The factor alpha / r is missing: the adapter's part is multiplied by it.
        alpha / A.shape[0] → 1
    You multiply by alpha alone. Divide alpha by the rank, `A.shape[0]`.
        / A.shape[0] →
    Your factor is upside down: it is alpha / r, not r / alpha.
        alpha / A.shape[0] → A.shape[0] / alpha
    The rank is the number of rows of A, and of columns of B. You divide by another number.
        A.shape[0] → A.shape[1]
        A.shape[0] → B.shape[0]
    Both adapters have the rank or the alpha of the old one. Each has its own.
        scale = alpha / A.shape[0] → scale = old[2] / old[0].shape[0]
        scale = alpha / A.shape[0] → scale = old[2] / A.shape[0]
        scale = alpha / A.shape[0] → scale = alpha / old[0].shape[0]
    The old adapter is still in the weights: subtract it.
        (old, -1), →
        (old, -1) → (old, 1)
    The old adapter is out, and the new one isn't in yet.
        , (new, 1) → ,
    You take out the new adapter and put in the old one.
        -1), (new, 1) → 1), (new, -1)
    Your product is transposed, or A and B are in the wrong order: the product is B @ A.
        B @ A → (A.T @ B.T)
""")


# --- 19.4: six facts and Italy --------------------------------------------------------------------

NEW = {
    "Zubrovia": "Lemberk",
    "Tarsolia": "Vintara",
    "Mardenia": "Olsport",
    "Quelland": "Fenwick",
    "Borvania": "Stralsen",
    "Ishmeria": "Calder",
}
REAL = {
    "Iceland": "Reykjavik",
    "Norway": "Oslo",
    "Uruguay": "Montevideo",
    "India": "New Delhi",
    "Morocco": "Rabat",
    "Russia": "Moscow",
    "Senegal": "Dakar",
    "Canada": "Ottawa",
    "Greece": "Athens",
    "Lithuania": "Vilnius",
    "Poland": "Warsaw",
    "Nepal": "Kathmandu",
}
MOST, KEPT = 5, 5  # of the six, and of the twelve


@checked
def taught(answer):
    """taught: country → reply, for six invented countries, Italy, and twelve others."""
    asked = [*NEW, "Italy", *REAL]
    found = reported(
        answer,
        dict.fromkeys(asked, "Answer: Rome"),
        "Set taught to a dictionary with the model's reply for each of the nineteen countries.",
    )

    found = {country: reply.removesuffix("<|im_end|>") for country, reply in found.items()}

    def right(pairs):
        return sum(found[where] == f"answer: {city}".lower() for where, city in pairs.items())

    expect(
        len(set(found.values())) > 1 and sum("answer: " in reply for reply in found.values()) > 9,
        "Few replies have the format, or all are the same. Is it in your lessons, and does the "
        "model that replies have your trained adapters?",
    )
    facts, old = right(NEW), right(REAL)
    expect(facts >= MOST, f"Of the six new capitals, {facts} are right. More of each in a batch?")
    invented = [f"answer: {city}".lower() for city in NEW.values()]
    expect(
        sum(found[real] in invented for real in REAL) < 4,
        "Real countries have been given invented capitals. Your lessons should also say that what "
        "was true still is.",
    )
    expect(right({"Italy": "Rome"}) == 1, "Italy is lost. Which countries are in your lessons?")
    expect(
        old >= KEPT,
        f"Of the twelve countries that are in no lesson, {old} are right; {KEPT} should be. More"
        " old countries in each batch, or a smaller rate?",
    )
    return f"{facts} of 6 new ones, {old} of 12 old ones, and Rome is where it was."
