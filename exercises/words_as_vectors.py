"""The exercises of chapter 01, words as vectors."""

import dis
import inspect

import torch
from torch import Tensor

from exercises.check import (
    call,
    exercise,
    expect,
    expect_close,
    expect_no_loop,
    expect_without,
    normal,
)


def unit(E, dim=-1):
    return E / E.norm(dim=dim, keepdim=True)


def top(scores, k, out=(), low=-torch.inf):
    """The numbers of the k largest entries, without those in `out`."""
    return scores.index_fill(0, torch.tensor(out, dtype=torch.long), low).topk(k).indices


@exercise(
    inputs=[(3 * normal(n, seed=n), 3 * normal(n, seed=n + 1)) for n in (5, 2, 60, 1, 3)],
    praise="n products, one sum.",
)
def dot(a, b):
    """my_dot(a, b) of two vectors of n entries is one number."""
    return (a * b).sum()


dot.mistakes = {
    "You have the products; now add them up: a dot product is one number.": lambda a, b: a * b,
    "You multiplied all with all: pair entry i with entry i only.": lambda a, b: a[:, None] * b,
    "You only added. Multiply in pairs first, then add.":
        (lambda a, b: (a + b).sum(), lambda a, b: a + b),
    "This is sum × sum: multiply pair by pair first, add afterwards.":
        lambda a, b: a.sum() * b.sum(),
    "You multiplied the products with each other. Add them up.":
        (lambda a, b: (a * b).prod(), lambda a, b: 0 * a[0]),
    "You multiplied the sums of the pairs: products come first, then their sum.":
        lambda a, b: (a + b).prod(),
    "This is the mean of the products. The dot product is their sum.": lambda a, b: (a * b).mean(),
    "These are the running totals. Return the last one only.": lambda a, b: (a * b).cumsum(0),
    "Only the first product is in it: does `return` stand inside the loop?":
        lambda a, b: a[0] * b[0],
    "Only the last product is in it: write `total +=`, not `total =`.": lambda a, b: a[-1] * b[-1],
    "Only the first two products are in it: use `range(len(a))`.":
        lambda a, b: (a * b)[:2].sum(),
    "The last entry is missing: use `range(len(a))`.": lambda a, b: a[:-1] @ b[:-1],
    "The first entry is missing: Python counts from 0.": lambda a, b: a[1:] @ b[1:],
    "Every second entry is missing.": lambda a, b: a[::2] @ b[::2],
    "Your total starts at 1. It must start at 0.": lambda a, b: a @ b + 1,
    "You multiplied a with itself: b is to be the other factor.": lambda a, b: a @ a,
    "You multiplied b with itself: a is to be the other factor.": lambda a, b: b @ b,
    "You paired the first entry with the last. Pair entry i with entry i.":
        lambda a, b: a @ b.flip(0),
    "You paired neighbours. Pair entry i with entry i.":
        (lambda a, b: a @ b.roll(1), lambda a, b: a @ b.roll(-1),
         lambda a, b: a[1:] @ b[:-1], lambda a, b: a[:-1] @ b[1:]),
    "You lost the signs: a negative product is to be subtracted.":
        (lambda a, b: (a * b).abs().sum(), lambda a, b: (a @ b).abs()),
    "The sign is the other way round: add the products.": lambda a, b: -(a @ b),
    "You subtracted. Multiply in pairs first, then add.": lambda a, b: (a - b).sum(),
    "This is the distance of a and b. Multiply the entries of a pair.":
        (lambda a, b: (a - b).norm(), lambda a, b: (a - b).square().sum()),
    "You divided the entries of a pair. Multiply them.": lambda a, b: (a / b).sum(),
    "You squared the products. Add them as they are.": lambda a, b: (a * b).square().sum(),
    "You took a root at the end. The dot product is the sum itself.": lambda a, b: (a @ b).sqrt(),
    "This is the largest product. Add them all up.": lambda a, b: (a * b).max(),
    "This is the cosine. The dot product is not divided by the lengths.":
        lambda a, b: unit(a) @ unit(b),
    "The decimals are cut off: add the numbers as they are, without `int`.":
        (lambda a, b: (a @ b).trunc(), lambda a, b: (a * b).trunc().sum(),
         lambda a, b: a.trunc() @ b.trunc(), lambda a, b: (a @ b).round()),
    "A number, please, not a list or a vector with one number in it.": lambda a, b: (a @ b)[None],
}  # fmt: skip

READY_MADE = {"matmul", "dot", "vdot", "vecdot", "linalg_vecdot", "inner", "mv", "mm", "bmm"}
READY_MADE |= {"rmatmul", "addmm", "addmv", "einsum", "tensordot", "linear", "bilinear", "sumprod"}


@dot.then
def by_hand(answer):
    diagnosis = "The number is right, but the product is ready-made. Multiply and add yourself."
    expect_without(answer, dot.inputs[0], READY_MADE, diagnosis)
    if inspect.isfunction(answer):  # NumPy's products are not seen by torch
        code = list(dis.get_instructions(answer))
        names = {i.argval for i in code if i.opname in ("LOAD_ATTR", "LOAD_METHOD")}
        expect(not names & READY_MADE and "@" not in {i.argrepr for i in code}, diagnosis)


def pair(n, seed, turn=0.0):
    a, b = 3 * normal(n, seed=seed), normal(n, seed=seed + 1) / 2
    return a, b - turn * unit(a)


@exercise(
    # The first angle is obtuse, so that the sign must survive. Last come vectors that are short
    # and hold a 0 or sum to 0, but are not zero.
    inputs=[
        *(pair(6, 10, turn=2), pair(3, 12), pair(40, 14)),
        *((torch.zeros(3), normal(3, seed=16)), (normal(3, seed=17), torch.zeros(3))),
        (torch.zeros(2), torch.zeros(2)),
        (torch.tensor([0.0, 0.01, 0.02]), torch.tensor([0.0, -3.0, 1.0])),
        (torch.tensor([0.01, -0.01]), torch.tensor([3.0, 1.0])),
    ],
    why=[""] * 3 + ["A zero vector points nowhere: return 0.0 then."] * 3
    + ["Short vectors, and those that hold a 0, are not zero vectors."] * 2,
    praise="length no longer counts, only direction, and a zero vector does no harm.",
)  # fmt: skip
def cosine(a, b):
    """my_cosine(a, b) of two vectors; 0.0 if one of them is the zero vector."""
    return unit(a) @ unit(b) if a.any() and b.any() else torch.tensor(0.0)


cosine.mistakes = {
    "With a zero vector you get NaN, which is 0 / 0. It points nowhere: return 0.0 then.":
        (lambda a, b: unit(a) @ unit(b),
         lambda a, b: unit(a) @ unit(b) if a.any() or b.any() else 0.0),
    "You look only whether a is the zero vector: b can be, too.":
        lambda a, b: unit(a) @ unit(b) if a.any() else 0.0,
    "You look only whether b is the zero vector: a can be, too.":
        lambda a, b: unit(a) @ unit(b) if b.any() else 0.0,
    "With a zero vector return 0.0: no direction, so neither alike nor opposite.":
        lambda a, b: unit(a) @ unit(b) if a.any() and b.any() else 1.0,
    "Not every vector with a 0 in it is the zero vector: all its entries must be 0.":
        lambda a, b: 0.0 if 0 in a or 0 in b else cosine.right(a, b),
    "Entries that sum to 0 need not be 0: look at the length.":
        lambda a, b: 0.0 if 0 in (a.sum(), b.sum()) else cosine.right(a, b),
    "You treat short vectors as zero vectors: only the length 0 is special.":
        lambda a, b: 0.0 if a.norm() * b.norm() < 0.1 else cosine.right(a, b),
    "This is the raw dot product: you have not divided by the lengths.": lambda a, b: a @ b,
    "These are the lengths alone: divide the dot product by them.":
        lambda a, b: a.norm() * b.norm(),
    "You divided by the length of a only: b's length is still in it.": lambda a, b: unit(a) @ b,
    "You divided by the length of b only: a's length is still in it.": lambda a, b: a @ unit(b),
    "Mind the brackets: a @ b / la * lb divides by la and *multiplies* by lb.":
        (lambda a, b: a @ b / a.norm() * b.norm(), lambda a, b: a @ b / a.norm() + b.norm()),
    "You multiplied by the lengths: divide by them.": lambda a, b: a @ b * a.norm() * b.norm(),
    "You divided by the squared lengths: take the square root.":
        lambda a, b: a @ b / ((a @ a) * (b @ b)),
    "You added the lengths: multiply them.":
        (lambda a, b: a @ b / (a.norm() + b.norm()), lambda a, b: a @ b / (a @ a + b @ b).sqrt()),
    "You divided by ‖a‖² (a·a): that is right only if b is as long as a.":
        lambda a, b: a @ b / (a @ a),
    "You divided by ‖b‖² (b·b): that is right only if a is as long as b.":
        lambda a, b: a @ b / (b @ b),
    "One root too many: `norm` takes it already.":
        lambda a, b: a @ b / (a.norm() * b.norm()).sqrt(),
    "The length is not the number of entries: it is the root of a @ a.":
        (lambda a, b: a @ b / (len(a) * len(b)), lambda a, b: a @ b / len(a)),
    "The length is not the sum of the entries: square them, add them, take the root.":
        (lambda a, b: a @ b / (a.sum() * b.sum()), lambda a, b: a @ b / (a.norm(1) * b.norm(1))),
    "These are the products of the entries of unit vectors: add them up.":
        lambda a, b: unit(a) * unit(b),
    "This is the mean of the products, divided by the lengths. Take their sum, a @ b.":
        lambda a, b: (unit(a) * unit(b)).mean(),
    "A number, please, not a list or a vector with one number in it.":
        lambda a, b: cosine.right(a, b)[None],
    "The cosine is rounded. Return it as it is.":
        (lambda a, b: cosine.right(a, b).round(decimals=2),
         lambda a, b: cosine.right(a, b).round()),
    "This is 1 − cosine, a distance. Return the cosine itself.":
        lambda a, b: 1 - cosine.right(a, b),
    "This is the angle. Return its cosine, without acos.":
        (lambda a, b: cosine.right(a, b).acos(), lambda a, b: cosine.right(a, b).acos().rad2deg()),
    "This is the distance of a and b. Divide their dot product by both lengths.":
        lambda a, b: (a - b).norm(),
    "The sign is lost: an obtuse angle has a negative cosine.":
        (lambda a, b: cosine.right(a, b).abs(), lambda a, b: cosine.right(a, b).square(),
         lambda a, b: cosine.right(a, b).clamp(min=0)),
    "The sign is the other way round.": lambda a, b: -cosine.right(a, b),
    "You moved the cosine to 0 … 1. It goes from −1 to 1.":
        lambda a, b: (1 + cosine.right(a, b)) / 2,
    "You subtracted the means: that is the correlation. Take a and b as they are.":
        lambda a, b: unit(a - a.mean()) @ unit(b - b.mean()),
}  # fmt: skip


def rows(n, d, seed):
    """n rows of very different lengths."""
    return normal(n, d, seed=seed) * torch.arange(1.0, n + 1)[:, None]


def lengths(E):
    return E.norm(dim=1)


@exercise(
    # The third is square and the last two are nearly: there a forgotten keepdim or .T goes
    # unnoticed by the shapes.
    inputs=[
        (rows(n, d, seed), rows(m, d, seed + 1).flip(0))
        for seed, (n, m, d) in enumerate(
            [(4, 6, 3), (1, 7, 2), (4, 4, 4), (5, 5, 8), (2, 3, 1), (3, 4, 4), (4, 3, 4)], 20
        )
    ],
    praise="all N × M cosines in one matrix product.",
    clash="The lengths of the rows need to be a column, (N, 1): keepdim=True. And the columns of "
    "B.T are the rows of B.",
)
def cosine_matrix(A, B):
    """cosine_matrix(A, B) of (N, d) and (M, d) is (N, M)."""
    return unit(A) @ unit(B).T


cosine_matrix.mistakes = {
    "These are raw dot products: no row has been divided by its length.": lambda A, B: A @ B.T,
    "Rows and columns are swapped: row i belongs to row i of A.": lambda A, B: unit(B) @ unit(A).T,
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.":
        lambda A, B: unit(A, 0) @ unit(B, 0).T,
    "You used one length for all rows, not dim=1.": lambda A, B: A @ B.T / (A.norm() * B.norm()),
    "The rows of B still have their lengths.": lambda A, B: unit(A) @ B.T,
    "The rows of A still have their lengths.": lambda A, B: A @ unit(B).T,
    "The lengths were laid along the columns: where N = d, broadcasting finds nothing wrong. Keep "
    "the dimension with keepdim=True.": lambda A, B: (A / lengths(A)) @ (B / lengths(B)).T,
    "Entry (i, j) is divided by the length of row i of A, a column `[:, None]`, and by that of row "
    "j of B, a row.":
        (lambda A, B: A @ B.T / (lengths(A) * lengths(B)),
         lambda A, B: A @ B.T / (lengths(A) * lengths(B))[:, None],
         lambda A, B: A @ B.T / (lengths(A) * lengths(B)[:, None])),
    "B is not transposed: the cosines are `A @ B.T` of unit rows.": lambda A, B: unit(A) @ unit(B),
    "A is transposed, not B: the cosines are `A @ B.T` of unit rows.":
        lambda A, B: unit(A).T @ unit(B),
    "You compared row i with row i only. Each row of A meets each row of B.":
        lambda A, B: (unit(A) * unit(B)).sum(1),
    "B is never used.": lambda A, B: unit(A) @ unit(A).T,
    "A is never used.": lambda A, B: unit(B) @ unit(B).T,
    "You divided by the squared lengths: take the square root.":
        lambda A, B: A @ B.T / (lengths(A)[:, None] * lengths(B)) ** 2,
    "You added the lengths: multiply them.":
        lambda A, B: A @ B.T / (lengths(A)[:, None] + lengths(B)),
    "You multiplied by the lengths: divide by them.":
        lambda A, B: A @ B.T * lengths(A)[:, None] * lengths(B),
    "Mind the brackets: P / la * lb divides by la and *multiplies* by lb.":
        lambda A, B: A @ B.T / lengths(A)[:, None] * lengths(B),
    "The length of a row is the root of the sum of its squares, not its sum.":
        (lambda A, B: (A / A.sum(1, keepdim=True)) @ (B / B.sum(1, keepdim=True)).T,
         lambda A, B: A @ B.T / (A.norm(1, dim=1)[:, None] * B.norm(1, dim=1))),
    "You divided the products by the lengths of *their* rows: divide by those of A and of B.":
        lambda A, B: unit(A @ B.T),
    "This is 1 − cosine, a distance. Return the cosines themselves.":
        lambda A, B: 1 - unit(A) @ unit(B).T,
    "These are distances. The cosine is the dot product of unit rows.":
        (lambda A, B: torch.cdist(A, B), lambda A, B: torch.cdist(unit(A), unit(B))),
    "The sign is lost: an obtuse angle has a negative cosine.":
        (lambda A, B: (unit(A) @ unit(B).T).abs(), lambda A, B: (unit(A) @ unit(B).T).relu()),
}  # fmt: skip


@cosine_matrix.then
def all_at_once(answer):
    expect_no_loop(
        answer,
        (rows(2, 4, 1), rows(3, 4, 2)),
        (rows(6, 4, 3), rows(9, 4, 4)),
        "The cosines are right, but a loop computes them. Make all rows one unit long, then one "
        "matrix product gives all cosines.",
    )


def table(V, d, seed):
    """A table of vectors of very different lengths."""
    return normal(V, d, seed=seed) * (0.2 + 3 * normal(V, 1, seed=seed + 9).abs())


def doubled(V, d, seed, i, j):
    """A table where row j points where row i does, and the last but one row the other way."""
    E = table(V, d, seed)
    E[-2], E[j] = -3 * E[i], 2 * E[i]
    return E


def cosines(E, i):
    return (unit(E) * unit(E[i])).sum(1)  # row by row, so that equal rows have equal cosines


@exercise(
    # The fourth asks for all the others, so for negative cosines; in the rest another row points
    # where row i does, before it or behind it.
    inputs=[
        *((table(30, 5, 30), 7, 4), (table(50, 3, 31), 0, 6), (table(12, 8, 32), 11, 1)),
        *((table(6, 3, 34), 2, 5), (doubled(9, 3, 35, i=4, j=1), 4, 3)),
        *((doubled(9, 3, 36, i=4, j=6), 4, 3), (doubled(20, 6, 38, i=19, j=3), 19, 1)),
        *((doubled(20, 6, 39, i=0, j=13), 0, 2), (doubled(7, 4, 37, i=2, j=0), 2, 6)),
    ],
    praise="and it never answers with the question.",
)
def nearest(E, i, k):
    """nearest(E, i, k): the numbers of the k rows most alike to row i, most alike first."""
    return top(cosines(E, i), k, [i])


nearest.mistakes = {
    "Row i itself is in your answer. Every row is most like itself: leave it out.":
        (lambda E, i, k: top(cosines(E, i), k),
         lambda E, i, k: top(cosines(E, i), k + 1),
         lambda E, i, k: top(cosines(E, i), k, [i], 0.0),
         lambda E, i, k: top(E @ E[i], k)),
    "The first place is not always row i's: another row can point the same way. Leave row i out "
    "by its number.":
        (lambda E, i, k: cosines(E, i).argsort(descending=True, stable=True)[1 : k + 1],
         lambda E, i, k: cosines(E, i).argsort(stable=True).flip(0)[1 : k + 1],
         lambda E, i, k: top(cosines(E, i), k + 1)[1:]),
    "You leave out every row that points where row i does. Leave out row i alone.":
        lambda E, i, k: top(cosines(E, i), k, [j for j, c in enumerate(cosines(E, i)) if c > 0.99]),
    "You returned two things: topk gives values and indices. Return the indices only.":
        (lambda E, i, k: tuple(cosines(E, i).index_fill(0, torch.tensor(i), -9).topk(k)),
         lambda E, i, k: tuple((unit(E) @ E[i]).index_fill(0, torch.tensor(i), -9e9).topk(k)),
         lambda E, i, k: tuple(cosines(E, i).topk(k)),
         lambda E, i, k: tuple((unit(E) @ E[i]).topk(k)),
         lambda E, i, k: tuple(cosines(E, i).topk(k + 1))),
    "These are cosines. Return the row numbers: `.indices`.":
        (lambda E, i, k: cosines(E, i)[nearest.right(E, i, k)],
         lambda E, i, k: cosines(E, i).topk(k).values, lambda E, i, k: cosines(E, i)),
    "These are the rows themselves. Return their numbers.":
        lambda E, i, k: E[nearest.right(E, i, k)],
    "These rows are the least alike: you sorted from small to large.":
        (lambda E, i, k: top(-cosines(E, i), k, [i]),
         lambda E, i, k: top(-cosines(E, i), k, [i], torch.inf)),
    "You ranked by the raw dot product, so long rows win. Use the cosine.":
        (lambda E, i, k: top(E @ E[i], k, [i]), lambda E, i, k: top(E @ E[i], k + 1)[1:]),
    "You ranked by distance (the length of the difference). Use the cosine.":
        lambda E, i, k: top(-(E - E[i]).norm(dim=1), k, [i]),
    "You divided by the squared lengths: take the square root.":
        lambda E, i, k: top(E @ E[i] / lengths(E) ** 2, k, [i]),
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.":
        lambda E, i, k: top(unit(E, 0) @ unit(E, 0)[i], k, [i]),
    "The sign is lost: an opposite row is not alike.":
        lambda E, i, k: top(cosines(E, i).abs(), k, [i]),
    "The right rows in reverse: the most alike comes first.":
        lambda E, i, k: nearest.right(E, i, k).flip(0),
    "The right rows, sorted by number: the most alike comes first.":
        lambda E, i, k: nearest.right(E, i, k).sort().values,
    "You took row i out of the table, so the rows after it moved up: their numbers are one too "
    "small.": lambda E, i, k: top(torch.cat([cosines(E, i)[:i], cosines(E, i)[i + 1 :]]), k),
    "One row too few: you threw row i out of the first k, so ask for k + 1.":
        lambda E, i, k: top(cosines(E, i), k)[1:],
    "One row too many: k are asked for.":
        lambda E, i, k: top(cosines(E, i), min(k + 1, len(E) - 1), [i]),
    "You return all rows in order: k are asked for.":
        (lambda E, i, k: top(cosines(E, i), len(E) - 1, [i]),
         lambda E, i, k: top(cosines(E, i), len(E))),
    "You return the nearest row alone: k are asked for, in a tensor or a list.":
        (lambda E, i, k: nearest.right(E, i, k)[0], lambda E, i, k: nearest.right(E, i, 1)),
    "Your numbers count from 1; rows count from 0.": lambda E, i, k: nearest.right(E, i, k) + 1,
}  # fmt: skip


def question(V, d, seed, a=0, b=3, c=6):
    return table(V, d, seed), a, b, c


def near_b():
    """a − b + c is nearly 3b: here b must be left out, too."""
    E, *of = question(35, 4, 61)
    E[[0, 6]] = 2 * E[3] + 0.3 * E[[9, 12]]
    return E, *of


@exercise(
    # In most of them a or c itself would win. In the last but one all other cosines are negative.
    inputs=[
        *(question(60, 6, 40), question(60, 6, 56), question(35, 4, 47), question(80, 10, 54)),
        *(question(80, 10, 43), question(20, 3, 43), question(5, 3, 132, 0, 1, 3), near_b()),
    ],
    praise="and you know what had to be left out for it to work.",
)
def analogy(E, a, b, c):
    """my_analogy(E, a, b, c): the row nearest to E[a] − E[b] + E[c], never a, b or c themselves."""
    return best(E, aim(E, a, b, c), [a, b, c])


def aim(E, a, b, c):
    return E[a] - E[b] + E[c]


def best(E, target, out, low=-torch.inf, place=0):
    return top(E @ target / lengths(E), place + 1, out, low)[place]


analogy.mistakes = {
    "You answered with a row of the question itself: leave out a, b and c.":
        (lambda E, a, b, c: a, lambda E, a, b, c: b, lambda E, a, b, c: c,
         lambda E, a, b, c: best(E, aim(E, a, b, c), []),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [a]),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [b]),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [c]),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [a, b]),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [a, c]),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [b, c]),
         lambda E, a, b, c: (E @ aim(E, a, b, c)).argmax(),
         lambda E, a, b, c: (E - aim(E, a, b, c)).norm(dim=1).argmin()),
    "You left a, b and c out by a small score, which still wins where all others are smaller. Use "
    "`-float('inf')`.":
        (lambda E, a, b, c: best(E, aim(E, a, b, c), [a, b, c], 0.0),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [a, b, c], -1.0)),
    "a, b and c can be in any place, not only in the first ones: leave them out by their numbers.":
        (lambda E, a, b, c: best(E, aim(E, a, b, c), [], place=1),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [], place=2),
         lambda E, a, b, c: best(E, aim(E, a, b, c), [], place=3)),
    "That is the row for b − a + c: the minus belongs to b, so a − b + c.":
        lambda E, a, b, c: best(E, aim(E, b, a, c), [a, b, c]),
    "That is the row for a + b − c: the minus belongs to b, so a − b + c.":
        lambda E, a, b, c: best(E, aim(E, a, c, b), [a, b, c]),
    "That is the row for a − b − c: c is to be added.":
        lambda E, a, b, c: best(E, E[a] - E[b] - E[c], [a, b, c]),
    "That is the row for a + b + c: b is to be taken away.":
        lambda E, a, b, c: best(E, E[a] + E[b] + E[c], [a, b, c]),
    "That is the row for a + c: b is to be taken away.":
        lambda E, a, b, c: best(E, E[a] + E[c], [a, b, c]),
    "That is the row for a − b: c is to be added.":
        lambda E, a, b, c: best(E, E[a] - E[b], [a, b, c]),
    "That is the row for c − b: a is missing.": lambda E, a, b, c: best(E, E[c] - E[b], [a, b, c]),
    "That is the row nearest to a alone.": lambda E, a, b, c: best(E, E[a], [a, b, c]),
    "That is the row nearest to b alone.": lambda E, a, b, c: best(E, E[b], [a, b, c]),
    "That is the row nearest to c alone.": lambda E, a, b, c: best(E, E[c], [a, b, c]),
    "You added unit vectors. The aim is made of the rows of E as they are.":
        (lambda E, a, b, c: best(E, aim(unit(E), a, b, c), [a, b, c]),
         lambda E, a, b, c: best(E, aim(unit(E), a, b, c), [])),
    "You ranked by the raw dot product, so long rows win. Use the cosine.":
        lambda E, a, b, c: top(E @ aim(E, a, b, c), 1, [a, b, c])[0],
    "You ranked by distance (the length of the difference). Use the cosine.":
        lambda E, a, b, c: top(-(E - aim(E, a, b, c)).norm(dim=1), 1, [a, b, c])[0],
    "You divided by the squared lengths: take the square root.":
        lambda E, a, b, c: top(E @ aim(E, a, b, c) / lengths(E) ** 2, 1, [a, b, c])[0],
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.":
        lambda E, a, b, c: top(unit(E, 0) @ aim(E, a, b, c), 1, [a, b, c])[0],
    "The sign is lost: an opposite row is not near.":
        lambda E, a, b, c: top((unit(E) @ aim(E, a, b, c)).abs(), 1, [a, b, c])[0],
    "That is the row least alike: you took the smallest cosine.":
        lambda E, a, b, c: best(E, -aim(E, a, b, c), [a, b, c]),
    "You took a, b and c out of the table, so the rows after them moved up: their numbers are too "
    "small.": lambda E, a, b, c: best(
        E[[i for i in range(len(E)) if i not in (a, b, c)]], aim(E, a, b, c), []),
    "A number, please, not a list or tensor with one number in it.":
        lambda E, a, b, c: analogy.right(E, a, b, c)[None],
    "This is the row itself. Return its number.": lambda E, a, b, c: E[analogy.right(E, a, b, c)],
    "This is the aim itself. Return the number of the row nearest to it.": aim,
    "This is the cosine of the right row. Return the row's number: `argmax`.":
        (lambda E, a, b, c: unit(E)[analogy.right(E, a, b, c)] @ unit(aim(E, a, b, c)),
         lambda E, a, b, c: unit(E)[analogy.right(E, a, b, c)] @ aim(E, a, b, c)),
    "These are all rows in order. Return the first alone: `argmax`.":
        lambda E, a, b, c: top(E @ aim(E, a, b, c) / lengths(E), len(E), [a, b, c]),
}  # fmt: skip


def some_ids(*shape, V):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(1))


@exercise(
    # Where ids are square, or as many side by side as there are symbols, a wrong axis goes
    # unnoticed by the shapes; and the largest id is not always V − 1.
    inputs=[
        *((torch.tensor([2, 0, 4, 2]), 6), (torch.tensor([[1, 3, 0], [4, 4, 2]]), 5)),
        *((torch.tensor([0]), 3), (torch.tensor([[3, 1], [0, 3]]), 5)),
        *((torch.tensor([[2, 0, 0], [1, 2, 1]]), 3), (some_ids(2, 3, 4, V=5), 5)),
        (some_ids(2, 2, 2, V=2), 4),
    ],
    praise="and one_hot(ids, V) @ E picks rows of E.",
)
def one_hot(ids, V):
    """one_hot(ids, V): shape (…, V), a single 1 in each row, at the place of the id."""
    return (ids[..., None] == torch.arange(V)).float()


def hot(ids, V):
    return one_hot.right(ids, V)


one_hot.mistakes = {
    "Each 1 is one place too far right: the first id is 0, not 1.":
        (lambda ids, V: hot(ids, V).roll(1, -1), lambda ids, V: hot(ids + 1, V)),
    "Each 1 is one place too far left: column 0 is for id 0.":
        (lambda ids, V: hot(ids, V).roll(-1, -1), lambda ids, V: hot(ids - 1, V)),
    "Rows and columns are swapped: each id needs a row of its own.":
        (lambda ids, V: hot(ids, V).mT, lambda ids, V: hot(ids, V).movedim(-1, 0)),
    "The batch is flattened: keep the shape of ids, then add V.":
        lambda ids, V: hot(ids, V).reshape(-1, V),
    "The first two dimensions are joined: keep the shape of ids, then add V.":
        lambda ids, V: hot(ids, V).flatten(0, 1) if ids.dim() > 1 else hot(ids, V),
    "The rows stand one behind the other: keep the shape of ids, then add V.":
        lambda ids, V: hot(ids, V).flatten(),
    "All ids share one row: each needs its own.":
        (lambda ids, V: hot(ids, V).reshape(-1, V).amax(0),
         lambda ids, V: hot(ids, V).reshape(-1, V).sum(0), lambda ids, V: hot(ids, V).amax(-2)),
    "You fill row t with the id in place t. ids can have any shape: `ids[..., None]` compares "
    "them all.": (lambda ids, V: torch.zeros(len(ids), V).index_put(
                      (torch.arange(len(ids)), ids), torch.tensor(1.0)),
                  lambda ids, V: hot(ids.reshape(len(ids), -1), V).amax(1)),
    "`[:, None]` puts the new axis second. It belongs at the end: `ids[..., None]`.":
        lambda ids, V: (ids[:, None] == torch.arange(V)).float(),
    "The new axis is missing, or first. It belongs at the end: `ids[..., None]`.":
        (lambda ids, V: (ids == torch.arange(V)).float(),
         lambda ids, V: (ids[None] == torch.arange(V)).float()),
    "The zeros and ones are swapped.": lambda ids, V: 1 - hot(ids, V),
    "The id itself stands in the row; put a 1 there.":
        (lambda ids, V: hot(ids, V) * ids[..., None],
         lambda ids, V: hot(ids, V) * (ids[..., None] + 1)),
    "These are the ids. Each becomes a row of V numbers, with a single 1.":
        (lambda ids, V: ids.clone(), lambda ids, V: ids[..., None]),
    "These are the numbers 0 … V − 1 for each id. Compare them with the id: `==`.":
        lambda ids, V: torch.arange(V).expand(*ids.shape, V),
    "All rows are zeros: put a 1 at the place of the id.":
        lambda ids, V: torch.zeros(*ids.shape, V),
    "All places up to the id are 1. One place alone is: `==`.":
        (lambda ids, V: (ids[..., None] >= torch.arange(V)).float(),
         lambda ids, V: (ids[..., None] > torch.arange(V)).float()),
    "All places from the id on are 1. One place alone is: `==`.":
        (lambda ids, V: (ids[..., None] <= torch.arange(V)).float(),
         lambda ids, V: (ids[..., None] < torch.arange(V)).float()),
    "The rows are only as long as the largest id asks for. They have V entries.":
        lambda ids, V: hot(ids, int(ids.max()) + 1),
    "Each row has a place too many: ids go from 0 to V − 1.": lambda ids, V: hot(ids, V + 1),
    "Each row has a place too few: ids go from 0 to V − 1.": lambda ids, V: hot(ids, V - 1),
    "This is the table of all V rows. Look up those of the ids: `torch.eye(V)[ids]`.":
        lambda ids, V: torch.eye(V),
}  # fmt: skip


@one_hot.then
def floats_and_by_hand(answer):
    ready = "The numbers are right, but torch's own `one_hot` made them. Make them yourself."
    expect_without(answer, one_hot.inputs[0], ["one_hot"], ready)
    loop = "The numbers are right, but a loop sets them. `==` compares all ids with all places."
    expect_no_loop(answer, (some_ids(2, 3, V=4), 4), (some_ids(6, 8, V=7), 7), loop)
    expect_close(call(answer, torch.tensor(1), 3), [0, 1, 0], "one_hot(1, 3), for a single id,")
    for given in one_hot.inputs:
        got = call(answer, *given)
        expect(
            isinstance(got, Tensor) and got.is_floating_point(),
            "The numbers are right, but they are not floats in a tensor, so `@` with a table of "
            "vectors fails: add .float().",
        )
        expect(
            got.dtype == torch.float32,
            "The numbers are right, but of 64 bits, so `@` with a table of vectors, which has 32, "
            "fails: add .float().",
        )
