"""Exercise checks of chapter 12: windows, perplexity, what is scored, copies, batches by step."""

import math
from typing import Any

import torch

from exercises import mistakes12 as known
from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    expect_shape,
)
from exercises.exact import agree


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


def tuples(items: list[Any]) -> str:
    """A list of tuples, as the task asks for it; what is no list stays."""
    return repr([tuple(item) if isinstance(item, list) else item for item in items])


CUT: tuple[tuple[list[int], int, int], ...] = (
    ([1, 2, 3, 4, 5, 6], 2, 2),
    ([1, 2, 3, 4, 5, 6, 7], 3, 1),
    ([9, 8, 7, 6, 5, 4, 3, 2, 1], 4, 3),
    ([5, 6, 7, 8, 9], 2, 3),
    ([1, 2, 3], 3, 1),
    ([1, 2, 3, 4], 3, 5),
)


@checked
def windows_of(answer: Any) -> str:
    """windows_of(ids, T, stride): the pairs (x, y) of all whole windows."""
    whats, got = [], []
    for ids, T, stride in CUT:
        whats.append(f"windows_of({ids}, {T}, {stride})")
        got.append(listed(call(answer, list(ids), T, stride, name="windows_of"), whats[-1]))
    want = [known.windows_right(*given) for given in CUT]
    agree(whats, got, want, [known.windows_mistakes(*given) for given in CUT], tuples)
    return "every whole window, and none that is short."


MEASURED: tuple[tuple[list[float], list[int]], ...] = (
    ([math.log(4), math.log(2)], [2, 2]),
    ([2.0, 2.5, 4.0], [16, 16, 2]),
    ([3.25], [10]),
    ([1.0, 5.0, 3.0, 0.5], [1, 2, 3, 40]),
)
TOO_LONG = (
    "Right for short texts, but for 10 batches of 2,000 tokens at 5 nats a power or product leaves "
    "the range of a float. Add the losses first, divide, and take one exponential, at the end."
)


@checked
def perplexity(answer: Any) -> str:
    """perplexity(losses, counts): of a text whose batches have these mean losses and sizes."""
    mistakes = [known.perplexity_mistakes(*given) for given in MEASURED]
    got = []
    for losses, counts in MEASURED:
        what = f"perplexity({[round(x, 3) for x in losses]}, {counts})"
        found = call(answer, list(losses), list(counts), name="perplexity")
        got.append((what, expect_shape(found, (), what)))
    # One call can fit several mistakes; the one that fits all of them is meant.
    want = [known.perplexity_right(*given) for given in MEASURED]
    if any(
        not math.isclose(float(g), w, rel_tol=1e-4) for (_, g), w in zip(got, want, strict=True)
    ):
        for diagnosis in mistakes[0]:
            pairs = zip(got, mistakes, strict=True)
            if all(math.isclose(float(g), m[diagnosis], rel_tol=1e-4) for (_, g), m in pairs):
                raise NotYet(diagnosis)
    for (what, found), wanted in zip(got, want, strict=True):
        expect_close(found, wanted, what)
    what = "perplexity([5.0] * 10, [2000] * 10)"
    try:
        found = call(answer, [5.0] * 10, [2000] * 10, name="perplexity")
    except NotYet as error:  # shorter texts raise nothing
        raise NotYet(f"{TOO_LONG} ({error})") from None
    expect(0 < float(expect_shape(found, (), what)) < math.inf, TOO_LONG)
    expect_close(found, math.exp(5), what)
    return "each token counts the same, whatever batch it was in."


SCORED = ((8, 4, 2), (9, 4, 4), (12, 4, 3), (5, 8, 3), (10, 3, 1), (2, 4, 2), (17, 8, 4))


@checked
def scored(answer: Any) -> str:
    """scored(n, T, stride): (start, first, last) of each window of an overlapping evaluation."""
    whats, got = [], []
    for n, T, stride in SCORED:
        whats.append(f"scored({n}, {T}, {stride})")
        got.append(listed(call(answer, n, T, stride, name="scored"), whats[-1]))
    want = [known.scored_right(*given) for given in SCORED]
    agree(whats, got, want, [known.scored_mistakes(*given) for given in SCORED], tuples)
    return "every token but the first is scored, and none twice."


COPIED = (
    ("the cat sat on the mat", "a cat sat on a mat", 2),
    ("b c d", "a b c d e", 3),
    ("x y z", "p q r", 2),
    ("the end is near", "the endless end is there", 2),
    ("my car pet ran", "my carpet or carp et ran", 2),
    ("a car pet", "no carp et", 2),
    ("on on on", "on on the on", 2),
    ("a c", "a b a c d", 2),
    ("c b a d", "a b c d", 2),
    ("a b x a b y a", "z a b z", 2),
    ("x x b c", "b c x", 2),
    ("b c x", "a b c", 2),
    ("x b c", "a b c", 2),
    ("x y c", "a b c", 2),
    ("a b a", "b c", 1),
    ("one two three four five six", "five six one two seven three four five", 3),
)
SHORT = (("now", "now", 2), ("a b", "c a b", 3), ("a b c", "a b", 3), ("", "a b", 2), ("", "", 1))


@checked
def copied_share(answer: Any) -> str:
    """copied_share(some, text, n): the share of the words in runs of n that the text has, too."""
    whats, got, want, mistakes = [], [], [], []
    for a, b, n in COPIED:
        some, text = a.split(), b.split()
        whats.append(f"copied_share({some}, {text}, {n})")
        found = call(answer, list(some), list(text), n, name="copied_share")
        got.append(round(float(expect_shape(found, (), whats[-1])), 4))
        want.append(round(known.copied_right(some, text, n), 4))
        mistakes.append({k: round(v, 4) for k, v in known.copied_mistakes(some, text, n).items()})
    agree(whats, got, want, mistakes)
    for a, b, n in SHORT:
        what = f"copied_share({a.split()}, {b.split()}, {n})"
        rule = "A list shorter than n has the share 0.0" + (
            "." if a else ", the empty one, too: divide only if there are words."
        )
        try:
            found = call(answer, a.split(), b.split(), n, name=what)
        except NotYet as error:
            raise NotYet(f"{error}. {rule}") from None
        share = float(expect_shape(found, (), what))
        expect(abs(share) < 1e-6, f"{what} is {share:.4g}. {rule}")
    return "every word in a common run, each counted once."


BATCHES = [(step, 10, 3, 7) for step in (0, 1, 2, 3, 8)]
BATCHES += [(5, 12, 4, 0), (11, 12, 4, 1), (4, 5, 5, 3)]


@checked
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
    want = [known.batch_right(*given) for given in BATCHES]
    agree(whats, got, want, [known.batch_mistakes(*given) for given in BATCHES])
    return "the same batch whenever you ask, so that resuming needs the step alone."
