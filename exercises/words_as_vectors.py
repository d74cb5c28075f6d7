"""Exercise checks of chapter 01, words as vectors."""

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any

import torch

from exercises.check import call, checked, expect, expect_close, normal, same, tensor


@checked
def dot(answer: Any) -> str:
    """dot(a, b) of two vectors of n entries is one number."""
    for n, seed in ((5, 1), (2, 3), (60, 5), (1, 7)):
        a, b = normal(n, seed=seed), normal(n, seed=seed + 1)
        products = a * b
        mistakes = {
            f"You have the {n} products; now add them up: a dot product is one number.": products,
            "You multiplied all with all: pair entry i with entry i only.": a[:, None] * b,
            "You only added. Multiply in pairs first, then add.": a.sum() + b.sum(),
            "This is sum × sum: multiply pair by pair first, add afterwards.": a.sum() * b.sum(),
            "This is the mean of the products. The dot product is their sum.": products.mean(),
            "Only the first product is in it: does `return` stand inside the loop?": products[0],
            "Only the last product is in it: write `total +=`, not `total =`.": products[-1],
            "The last entry is missing: use `range(len(a))`.": products[:-1].sum(),
            "The first entry is missing: Python counts from 0.": products[1:].sum(),
        }
        expect_close(call(answer, a, b), a @ b, f"dot(a, b) of {n} entries", mistakes=mistakes)
    return "n products, one sum."


@checked
def cosine(answer: Any) -> str:
    """cosine(a, b) of two vectors; 0.0 if one of them is the zero vector."""
    for n, seed in ((6, 10), (3, 12), (40, 14)):
        a, b = 3 * normal(n, seed=seed), normal(n, seed=seed + 1) / 2
        if seed == 10:
            b = b - 2 * a / a.norm()  # an obtuse angle: the sign must survive
        dot_, la, lb = a @ b, a.norm(), b.norm()
        want = dot_ / (la * lb)
        expect_close(
            call(answer, a, b),
            want,
            f"cosine(a, b) of {n} entries",
            mistakes={
                "This is the raw dot product: you have not divided by the lengths.": dot_,
                "You divided by the length of a only: b's length is still in it.": dot_ / la,
                "You divided by the length of b only: a's length is still in it.": dot_ / lb,
                "You divided by the squared lengths: take the square root.": dot_ / (la * lb) ** 2,
                "You added the lengths: multiply them.": dot_ / (la + lb),
                "You divided by ‖a‖² (a·a): that is right only if b is as long as a.": dot_ / la**2,
                "This is 1 − cosine, a distance. Return the cosine itself.": 1 - want,
                "This is the angle. Return its cosine, without acos.": torch.acos(want),
                "The sign is lost: an obtuse angle has a negative cosine.": want.abs(),
            },
        )
    for a, b in ((torch.zeros(3), normal(3, seed=16)), (normal(3, seed=17), torch.zeros(3))):
        got = tensor(call(answer, a, b), "cosine with a zero vector")
        expect(
            bool(torch.isfinite(got).all()),
            "With a zero vector you get NaN, which is 0 / 0. It points nowhere: return 0.0 then.",
        )
        expect_close(got, 0.0, "cosine(a, b) with a zero vector")
    a, b = torch.tensor([0.0, 0.01, -0.01]), torch.tensor([0.0, 3.0, 1.0])
    what = "cosine of [0, 0.01, -0.01] and [0, 3, 1], which are short or hold a 0 but are not zero,"
    expect_close(call(answer, a, b), 0.2**0.5, what)
    return "length no longer counts, only direction, and a zero vector does no harm."


@checked
def cosine_matrix(answer: Any) -> str:
    """cosine_matrix(A, B) of (N, d) and (M, d) is (N, M)."""
    for n, m, d, seed in ((4, 6, 3, 20), (5, 5, 8, 22), (1, 7, 2, 24)):
        A = normal(n, d, seed=seed) * torch.arange(1.0, n + 1)[:, None]
        B = normal(m, d, seed=seed + 1) * torch.arange(m, 0.0, -1)[:, None]
        rows_a, rows_b = A / A.norm(dim=1, keepdim=True), B / B.norm(dim=1, keepdim=True)
        want, by_0 = rows_a @ rows_b.T, (A / A.norm(dim=0)) @ (B / B.norm(dim=0)).T
        expect_close(
            call(answer, A, B),
            want,
            f"cosine_matrix(A, B) for {n} and {m} rows",
            mistakes={
                "These are raw dot products: no row has been divided by its length.": A @ B.T,
                "Rows and columns are swapped: row i belongs to row i of A.": want.T,
                "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.": by_0,
                "You used one length for all rows, not dim=1.": A @ B.T / (A.norm() * B.norm()),
                "The rows of B still have their lengths.": rows_a @ B.T,
                "The rows of A still have their lengths.": A @ rows_b.T,
            },
        )
    return "all N × M cosines in one matrix product."


@checked
def nearest(answer: Any) -> str:
    """nearest(E, i, k): the numbers of the k rows most alike to row i, most alike first."""
    sizes = ((30, 5, 7, 4, 30), (50, 3, 0, 6, 31), (12, 8, 11, 1, 32), (6, 3, 2, 5, 34))
    for V, d, i, k, seed in sizes:  # the last one asks for all the others, so for negative cosines
        E = normal(V, d, seed=seed) * (0.2 + 3 * normal(V, 1, seed=seed + 9).abs())
        units = E / E.norm(dim=1, keepdim=True)
        cosines, dots, apart = units @ units[i], E @ E[i], (E - E[i]).norm(dim=1)
        others = torch.arange(V) != i

        def first(score: torch.Tensor, k: int = k, others: torch.Tensor = others) -> torch.Tensor:
            return score.masked_fill(~others, -torch.inf).topk(k).indices

        want = first(cosines)
        got = call(answer, E, i, k)
        expect(
            not (isinstance(got, tuple) and len(got) == 2 and k != 2),
            "You returned two things: topk gives values and indices. Return the indices only.",
        )
        got = tensor(got, "nearest(E, i, k)")
        mistakes = {
            "These are cosines. Return the row numbers: `.indices`.": cosines[want],
            "These rows are the least alike: you sorted from small to large.": first(-cosines),
            "You ranked by the raw dot product, so long rows win. Use the cosine.": first(dots),
            "You ranked by distance (the length of the difference). Use the cosine.": first(-apart),
        }
        if k > 1:
            mistakes["The right rows in reverse: the most alike comes first."] = want.flip(0)
        for diagnosis, wrong in mistakes.items():
            expect(not same(got, wrong), diagnosis)
        itself = f"Row {i} itself is in your answer. Every row is most like itself: leave it out."
        expect(not bool((got == i).any()), itself)
        expect_close(got, want, f"nearest(E, {i}, {k})")
    return "and it never answers with the question."


def _answers(E: torch.Tensor, rows: list[int]) -> tuple[bool, list[int]]:
    """Does a row of the question win? And the right answer, then the answer of each mistake."""
    units = E / E.norm(dim=1, keepdim=True)
    (a, b, c), (ua, ub, uc) = E[rows], units[rows]
    aims = torch.stack([a - b + c, b - a + c, a + b - c, a + b + c, a, c, ua - ub + uc])
    distance = (E - aims[0]).norm(dim=1)
    scores = torch.cat([aims @ units.T, aims[:1] @ E.T, -distance[None]])
    echo = int(scores[0].argmax()) in rows
    scores[:, rows] = -torch.inf
    return echo, scores.argmax(1).tolist()


def _questions(V: int, d: int, seed: int) -> Iterator[tuple[torch.Tensor, list[int], list[int]]]:
    """Four (table, [a, b, c], [right answer, answer of each mistake ...])."""
    E = normal(V, d, seed=seed) * (0.3 + 2 * normal(V, 1, seed=seed + 9).abs())
    tried = ((rows, *_answers(E, list(rows))) for rows in permutations(range(0, V, 3), 3))
    found = ((E, list(rows), want) for rows, echo, want in tried if echo and len(set(want)) > 5)
    yield from islice(found, 3)
    E = E.clone()
    E[[0, 6]] = 2 * E[3] + 0.3 * E[[9, 12]]  # a − b + c is nearly 3b: here b must be left out, too
    yield E, [0, 3, 6], _answers(E, [0, 3, 6])[1]


@checked
def analogy(answer: Any) -> str:
    """analogy(E, a, b, c): the row nearest to E[a] − E[b] + E[c], never a, b or c themselves."""
    mistakes = (
        "That is the row for b − a + c: the minus belongs to b, so a − b + c.",
        "That is the row for a + b − c: the minus belongs to b, so a − b + c.",
        "That is the row for a + b + c: b is to be taken away.",
        "That is the row nearest to a alone.",
        "That is the row nearest to c alone.",
        "You added unit vectors. The aim is made of the rows of E as they are.",
        "You ranked by the raw dot product, so long rows win. Use the cosine.",
        "You ranked by distance (the length of the difference). Use the cosine.",
    )
    asked = [q for size in ((60, 6, 40), (35, 4, 41), (80, 10, 42)) for q in _questions(*size)]
    got = [tensor(call(answer, E, *rows), "analogy(E, a, b, c)") for E, rows, _ in asked]
    for row, (_, rows, _) in zip(got, asked, strict=True):
        itself = "You answered with a row of the question itself: leave out a, b and c."
        expect(not any(same(row, one) for one in rows), itself)
    want, *wrong = zip(*(answers for _, _, answers in asked), strict=True)
    for diagnosis, other in zip(mistakes, wrong, strict=True):  # named if it explains all answers
        expect(not all(map(same, got, other)), diagnosis)
    for row, right in zip(got, want, strict=True):
        expect_close(row, right, "the row number")
    return "and you know what had to be left out for it to work."


@checked
def one_hot(answer: Any) -> str:
    """one_hot(ids, V): shape (…, V), a single 1 in each row, at the place of the id."""
    for ids, V in (
        (torch.tensor([2, 0, 4, 2]), 6),
        (torch.tensor([[1, 3, 0], [4, 4, 2]]), 5),
        (torch.tensor([0]), 3),
    ):
        want = (ids[..., None] == torch.arange(V)).float()
        got = call(answer, ids, V)
        what = f"one_hot(ids, {V}) for ids of shape {tuple(ids.shape)}"
        expect_close(
            got,
            want,
            what,
            mistakes={
                "Each 1 is one place too far right: the first id is 0, not 1.": want.roll(1, -1),
                "Each 1 is one place too far left: column 0 is for id 0.": want.roll(-1, -1),
                "Rows and columns are swapped: each id needs a row of its own.": want.mT,
                "The batch is flattened: keep the shape of ids, then add V.": want.reshape(-1, V),
                "All ids share one row: each needs its own.": want.reshape(-1, V).amax(0),
                "The zeros and ones are swapped.": 1 - want,
                "The id itself stands in the row; put a 1 there.": want * ids[..., None],
            },
        )
        expect(
            isinstance(got, torch.Tensor) and got.is_floating_point(),
            "The numbers are right, but they are not floats in a tensor, so `@` with a table of "
            "vectors fails: add .float().",
        )
        table = normal(V, 3, seed=50)
        expect_close(got.to(table.dtype) @ table, table[ids], "one_hot(ids, V) @ E")
    return "and one_hot(ids, V) @ E picks rows of E."
