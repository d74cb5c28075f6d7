"""Exercise checks of chapter 11: byte-pair encoding."""

import math
from collections.abc import Mapping
from typing import Any

from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    expect_shape,
)
from exercises.exact import agree, diagnose
from exercises.mistakes11 import (
    bits_mistakes,
    count_mistakes,
    encode_mistakes,
    learn_mistakes,
    replace_mistakes,
)
from exercises.pairs11 import Ids, Pair, Words, learnt, pair_counts, replaced
from helpers.text.bpe import merge_word


def plain(value: Any) -> Any:
    """Numbers of NumPy or torch as Python's."""
    return value.item() if hasattr(value, "item") else value


def ids_of(got: Any, what: str) -> Ids:
    """What should be a list of ids as one; a tuple or a tensor will do."""
    if hasattr(got, "tolist"):
        got = got.tolist()
    if not isinstance(got, (list, tuple)):
        raise NotYet(f"{what} should be a list of ids, but is a {type(got).__name__}.")
    if any(item is ... for item in got):
        raise NotAttempted
    items = [plain(item) for item in got]
    for item in items:
        if type(item) is not int:
            raise NotYet(f"{what} should hold whole numbers, but holds {item!r:.40}.")
    return items


def pairs_of(got: Any, what: str) -> list[Pair]:
    """What should be a list of pairs of ids as one."""
    if not isinstance(got, (list, tuple)):
        raise NotYet(f"{what} should be a list of pairs, but is a {type(got).__name__}.")
    found = []
    for item in got:
        pair = ids_of(item, f"each entry of {what}")
        if len(pair) != 2:
            raise NotYet(f"{what} should hold pairs of ids, but holds {item!r:.40}.")
        found.append((pair[0], pair[1]))
    return found


COUNTED: tuple[Words, ...] = (
    {(1, 2, 1): 3, (2, 1): 4},
    {(7, 7, 7, 7): 2, (7, 8): 5, (8, 7, 7): 1},
    {(3, 4): 2, (4, 3): 3, (3,): 9, (): 1, (5, 3, 4, 3, 4): 1},
)


@checked
def count(answer: Any) -> str:
    """count(words): how often each pair of neighbouring ids occurs."""
    got = []
    for words in COUNTED:
        found = call(answer, dict(words), name="count")
        if not isinstance(found, Mapping):
            raise NotYet(f"count({words}) should be a dictionary, not a {type(found).__name__}.")
        if ... in found.values():
            raise NotAttempted
        got.append({key: plain(n) for key, n in found.items()})
    diagnose(got, [pair_counts(words) for words in COUNTED], [*map(count_mistakes, COUNTED)])
    for words, found in zip(COUNTED, got, strict=True):
        what, want = f"count({words})", pair_counts(words)
        for pair, n in found.items():
            expect(
                isinstance(pair, tuple) and len(pair) == 2,
                f"{what}: the keys should be pairs such as (1, 2), not {pair!r:.40}.",
            )
            expect(pair in want, f"{what} holds {pair!r:.40}, but no such pair occurs.")
            expect(
                n == want[pair],
                f"{what} should count {want[pair]} for the pair {pair}, not {n!r:.40}.",
            )
        for pair in sorted(set(want) - set(found)):
            raise NotYet(f"{what} lacks the pair {pair}, which occurs {want[pair]} times.")
    return "every pair, as often as its words occur."


REPLACED: tuple[tuple[Ids, Pair, int], ...] = (
    ([1, 2, 3, 1, 2], (1, 2), 9),
    ([4, 4, 4, 8, 4, 4], (4, 4), 9),
    ([5, 5, 5, 5, 5], (5, 5), 6),
    ([1, 2, 1, 3, 2, 1], (1, 2), 7),
    ([12, 3, 1, 23], (1, 2), 8),
    ([6, 1], (1, 6), 8),
    ([2], (2, 2), 5),
    ([], (1, 2), 5),
)


@checked
def replace(answer: Any) -> str:
    """replace(ids, pair, new): each occurrence of the pair becomes the id `new`."""
    whats, got = [], []
    for ids, pair, new in REPLACED:
        whats.append(f"replace({ids}, {pair}, {new})")
        got.append(ids_of(call(answer, list(ids), pair, new, name="replace"), whats[-1]))
    want = [replaced(*given) for given in REPLACED]
    agree(whats, got, want, [replace_mistakes(*given) for given in REPLACED])
    return "from left to right, and nothing replaced twice."


LEARNT: tuple[tuple[Words, int, int], ...] = (
    ({(1, 2, 3): 2, (1, 2): 1}, 2, 10),
    ({(1, 2, 3): 1, (4, 2, 3): 4, (1, 2): 3}, 3, 20),
    ({(9, 8): 2, (5, 7): 2, (5, 6): 2}, 2, 30),
    ({(7, 7, 7, 7): 2, (1, 2): 5}, 2, 70),
    ({(3, 3, 3, 3): 2, (3, 3, 4): 3, (4, 3, 3, 3): 1}, 3, 50),
    ({(1, 2): 3, (2, 5, 2): 1}, 9, 256),
    ({(1,): 4}, 3, 256),
    ({(1, 2, 3): 2}, 0, 256),
)


@checked
def learn_ids(answer: Any) -> str:
    """learn_ids(words, n_merges, first_id): the pairs that are merged, in order."""
    whats, got = [], []
    for words, n, first in LEARNT:
        whats.append(f"learn_ids({words}, {n}, {first})")
        got.append(pairs_of(call(answer, dict(words), n, first, name="learn_ids"), whats[-1]))
    want = [learnt(*given) for given in LEARNT]
    agree(whats, got, want, [learn_mistakes(*given) for given in LEARNT])
    return "the merges that `tokenizers` would learn, ties and all."


ENCODED: tuple[tuple[Ids, dict[Pair, int]], ...] = (
    ([1, 2, 3], {(2, 3): 10, (1, 2): 11, (11, 3): 12}),
    ([1, 2, 3], {(1, 2): 10, (2, 3): 11, (10, 3): 12}),
    ([4, 4, 4, 4, 4], {(4, 4): 20, (20, 4): 21}),
    ([1, 2, 1, 2, 3, 1], {(2, 1): 30, (1, 30): 31, (2, 3): 32, (31, 32): 33}),
    ([5, 6, 7, 8], {(7, 8): 41, (6, 41): 42, (5, 6): 40}),
    ([1, 2], {(2, 1): 9}),
    ([3], {(3, 3): 9}),
    ([], {(3, 3): 9}),
)


@checked
def encode_ids(answer: Any) -> str:
    """encode_ids(ids, merges): the ids of one word after all merges, in the order of learning."""
    whats, got = [], []
    for ids, merges in ENCODED:
        whats.append(f"encode_ids({ids}, {merges})")
        got.append(ids_of(call(answer, list(ids), dict(merges), name="encode_ids"), whats[-1]))
    want: list[Any] = [merge_word(list(ids), merges) for ids, merges in ENCODED]
    agree(whats, got, want, [encode_mistakes(*given) for given in ENCODED])
    return "what was learnt first goes first, wherever it stands."


MEASURED = ((math.log(2), 6, "abc"), (1.25, 5, "a tale of two"), (3.0, 9, "Löwe 🦉!"))


@checked
def bits(answer: Any) -> str:
    """bits(loss, n_tokens, text): bits per character from a mean loss in nats per token."""
    for loss, n, text in MEASURED:
        what = f"bits({loss:.3f}, {n}, {text!r})"
        got = expect_shape(call(answer, loss, n, text, name="bits"), (), what)
        want = loss / math.log(2) * n / len(text)
        expect_close(got, want, what, mistakes=bits_mistakes(loss, n, text))
    return "a measure that does not ask how the text was cut."
