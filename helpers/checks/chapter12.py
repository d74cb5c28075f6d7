"""Exercise checks of chapter 12: windows, perplexity, what is scored, copies, batches by step."""

import math
from typing import Any

import torch

from helpers.checks.framework import (
    NotAttempted,
    NotYet,
    call,
    exercise,
    expect,
    expect_close,
    expect_shape,
)
from helpers.checks.mistakes12 import (
    batch_mistakes,
    batch_right,
    copied_mistakes,
    copied_right,
    perplexity_mistakes,
    perplexity_right,
    scored_mistakes,
    scored_right,
    windows_mistakes,
    windows_right,
)


def plain(value: Any) -> Any:
    """Tensors and arrays as Python's numbers and lists, tuples as lists, at every depth."""
    if value is ...:
        raise NotAttempted
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def listed(got: Any, what: str) -> list[Any]:
    """What should be a list as one."""
    found = plain(got)
    if not isinstance(found, list):
        raise NotYet(f"{what} should be a list, but is a {type(got).__name__}.")
    return found


def agree(whats: list[str], got: list[Any], want: list[Any], mistakes: list[Any]) -> None:
    """Name the mistake that explains all answers, or else the first answer that is wrong."""
    for diagnosis in mistakes[0] if got != want else ():
        if got == [each[diagnosis] for each in mistakes]:
            raise NotYet(diagnosis)
    for what, found, wanted in zip(whats, got, want, strict=True):
        expect(found == wanted, f"{what} should be {wanted}, but is {found!r:.120}.")


CUT: tuple[tuple[list[int], int, int], ...] = (
    ([1, 2, 3, 4, 5, 6], 2, 2),
    ([1, 2, 3, 4, 5, 6, 7], 3, 1),
    ([9, 8, 7, 6, 5, 4, 3, 2, 1], 4, 3),
    ([5, 6, 7, 8, 9], 2, 3),
    ([1, 2, 3], 3, 1),
    ([1, 2, 3, 4], 3, 5),
)


@exercise(
    hints=[
        "A window needs T + 1 ids. What is the last place where one can begin?",
        "`range(0, len(ids) - T, stride)` gives the starts: the end of a range does not belong to "
        "it, and at `len(ids) - T` one id would be missing.",
        "For each start i: `(ids[i : i + T], ids[i + 1 : i + T + 1])`.",
    ]
)
def windows_of(answer: Any) -> str:
    """windows_of(ids, T, stride): the pairs (x, y) of all whole windows."""
    whats, got = [], []
    for ids, T, stride in CUT:
        whats.append(f"windows_of({ids}, {T}, {stride})")
        got.append(listed(call(answer, list(ids), T, stride, name="windows_of"), whats[-1]))
    want = [windows_right(*given) for given in CUT]
    agree(whats, got, want, [windows_mistakes(*given) for given in CUT])
    return "every whole window, and none that is short."


MEASURED: tuple[tuple[list[float], list[int]], ...] = (
    ([math.log(4), math.log(2)], [2, 2]),
    ([2.0, 2.5, 4.0], [16, 16, 2]),
    ([3.25], [10]),
    ([1.0, 5.0, 3.0, 0.5], [1, 2, 3, 40]),
)


@exercise(
    hints=[
        "What is the surprise of the whole text? Each batch adds its mean times its tokens.",
        "Divide that by all tokens: the mean loss of the text, in nats.",
        "`math.exp` of it, once, at the very end.",
    ]
)
def perplexity(answer: Any) -> str:
    """perplexity(losses, counts): of a text whose batches have these mean losses and sizes."""
    mistakes = [perplexity_mistakes(*given) for given in MEASURED]
    got = []
    for losses, counts in MEASURED:
        what = f"perplexity({[round(x, 3) for x in losses]}, {counts})"
        found = call(answer, list(losses), list(counts), name="perplexity")
        got.append((what, expect_shape(found, (), what)))
    # One call can fit several mistakes; the one that fits all of them is meant.
    want = [perplexity_right(*given) for given in MEASURED]
    if any(
        not math.isclose(float(g), w, rel_tol=1e-4) for (_, g), w in zip(got, want, strict=True)
    ):
        for diagnosis in mistakes[0]:
            pairs = zip(got, mistakes, strict=True)
            if all(math.isclose(float(g), m[diagnosis], rel_tol=1e-4) for (_, g), m in pairs):
                raise NotYet(diagnosis)
    for (what, found), wanted in zip(got, want, strict=True):
        expect_close(found, wanted, what)
    return "each token counts the same, whatever batch it was in."


SCORED = ((8, 4, 2), (9, 4, 4), (12, 4, 3), (5, 8, 3), (10, 3, 1), (2, 4, 2), (17, 8, 4))


@exercise(
    hints=[
        "Keep in mind how far has been predicted: `done`, at first 0 (token 0 is never predicted).",
        "The window that begins at `start` predicts up to `min(start + T, n - 1)`. What of it is "
        "new?",
        "New are `done + 1` to there. Then `start` grows by `stride`; end when `done` is n − 1.",
    ]
)
def scored(answer: Any) -> str:
    """scored(n, T, stride): (start, first, last) of each window of an overlapping evaluation."""
    whats, got = [], []
    for n, T, stride in SCORED:
        whats.append(f"scored({n}, {T}, {stride})")
        got.append(listed(call(answer, n, T, stride, name="scored"), whats[-1]))
    want = [scored_right(*given) for given in SCORED]
    agree(whats, got, want, [scored_mistakes(*given) for given in SCORED])
    return "every token but the first is scored, and none twice."


COPIED = (
    ("the cat sat on the mat", "a cat sat on a mat"),
    ("b c d", "a b c d e"),
    ("x y z", "p q r"),
    ("the end", "the endless end of the ending"),
    ("a b a b c", "a b c a b a"),
    ("on on on", "on on the on"),
    ("c a b", "a b c"),
    ("one two three four five six", "five six one two seven three four five"),
    ("", "a b"),
    ("now", "now"),
)


@exercise(
    hints=[
        "A run is `some[i:j]`. Does it stand in `text`: is it equal to one of the slices of `text` "
        "of the same length?",
        "Try all starts i, and for each all lengths that would be longer than the best so far. "
        "Compare lists of words, not joined strings: *end* is inside *endless*.",
        "Or count: the run that ends at some[i] and text[j] is one longer than the one that ends "
        "at some[i − 1] and text[j − 1], if the two words are equal, else 0.",
    ]
)
def longest_copied(answer: Any) -> str:
    """longest_copied(some, text): the length of the longest run of words that is in the text."""
    whats, got, want, mistakes = [], [], [], []
    for a, b in COPIED:
        some, text = a.split(), b.split()
        whats.append(f"longest_copied({some}, {text})")
        found = call(answer, list(some), list(text), name="longest_copied")
        got.append(int(expect_shape(found, (), whats[-1])))
        want.append(copied_right(some, text))
        mistakes.append(copied_mistakes(some, text))
    agree(whats, got, want, mistakes)
    return "the longest run of neighbours, word by word."


BATCHES = [
    (0, 10, 3, 7),
    (1, 10, 3, 7),
    (2, 10, 3, 7),
    (3, 10, 3, 7),
    (8, 10, 3, 7),
    (5, 12, 4, 0),
    (11, 12, 4, 1),
    (4, 5, 5, 3),
]


@exercise(
    hints=[
        "n windows fill `n // B` batches: that many steps are an epoch. In which epoch is `step`, "
        "and which batch of it is it?",
        "`epoch, place = divmod(step, n // B)`, and the order of the epoch is `torch.randperm(n, "
        "generator=torch.Generator().manual_seed(seed + epoch))`.",
        "The batch is `order[place * B : (place + 1) * B].tolist()`.",
    ]
)
def batch_of(answer: Any) -> str:
    """batch_of(step, n, B, seed): the windows that a step reads, as a function of the step."""
    whats, got = [], []
    for step, n, B, seed in BATCHES:
        whats.append(f"batch_of({step}, {n}, {B}, {seed})")
        found = listed(call(answer, step, n, B, seed, name="batch_of"), whats[-1])
        got.append(found)
    again = [listed(call(answer, *given, name="batch_of"), "a batch") for given in BATCHES]
    expect(
        again == got,
        "The same step gave two different batches: the order must depend on the arguments alone. "
        "Make a generator of your own and seed it with `seed + epoch`.",
    )
    before = torch.get_rng_state()
    call(answer, 0, 10, 3, 7, name="batch_of")
    expect(
        torch.equal(before, torch.get_rng_state()),
        "torch's own generator has changed: whatever else draws from it (dropout) would notice. "
        "Seed a `torch.Generator()` of your own.",
    )
    want = [batch_right(*given) for given in BATCHES]
    agree(whats, got, want, [batch_mistakes(*given) for given in BATCHES])
    return "the same batch whenever you ask, so that resuming needs the step alone."
