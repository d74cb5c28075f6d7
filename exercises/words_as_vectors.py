"""The exercises on words as vectors."""

import torch

from exercises.check import exercise, expect_no_loop, generator, normal


def unit(E, dim=-1):
    return E / E.norm(dim=dim, keepdim=True)


def rows(n, d, seed):
    """n rows of very different lengths."""
    return normal(n, d, seed=seed) * torch.arange(1.0, n + 1)[:, None]


def lengths(E):
    return E.norm(dim=1)


@exercise(
    # The third is square and the last two are nearly: there a forgotten keepdim or .T goes
    # unnoticed by the shapes.
    inputs=lambda draw: [
        (rows(n, d, seed), rows(m, d, seed + 1).flip(0))
        for seed, (n, m, d) in enumerate(
            [(4, 6, 3), (1, 7, 2), (4, 4, 4), (5, 5, 8), (2, 3, 1), (3, 4, 4), (4, 3, 4)], 20
        )
    ],
    on_success="All n × m cosines in one matrix product.",
    on_shape_error="The row lengths must be a column, (n, 1): use keepdim=True. The columns of "
    "B.T are the rows of B.",
)
def cosine_matrix(A, B):
    """cosine_matrix(A, B) of (n, d) and (m, d) is (n, m)."""
    return unit(A) @ unit(B).T


cosine_matrix.mistake(
    "These are raw dot products: no row has been divided by its length.", lambda A, B: A @ B.T
)
cosine_matrix.mistake(
    "You did not divide the rows of A, or those of B, by their lengths.",
    lambda A, B: A @ unit(B).T,
    lambda A, B: unit(A) @ B.T,
)
cosine_matrix.mistake(
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.",
    lambda A, B: unit(A, 0) @ unit(B, 0).T,
)
cosine_matrix.mistake(
    "You used one length for the whole matrix. Each row has its own: dim=1.",
    lambda A, B: A @ B.T / (A.norm() * B.norm()),
)
cosine_matrix.mistake(
    "The row lengths were broadcast along the columns. No error was raised where n = d. Keep the "
    "dimension with keepdim=True.",
    lambda A, B: (A / lengths(A)) @ (B / lengths(B)).T,
)
cosine_matrix.mistake(
    "B is not transposed: the cosines are `A @ B.T` of unit rows.", lambda A, B: unit(A) @ unit(B)
)
cosine_matrix.mistake(
    "Rows and columns are swapped: row i of the result belongs to row i of A.",
    lambda A, B: unit(B) @ unit(A).T,
)
cosine_matrix.mistake(
    "You compared row i of A only with row i of B. Compare each row of A with each row of B.",
    lambda A, B: (unit(A) * unit(B)).sum(1),
)
cosine_matrix.mistake(
    "Mind the brackets: P / la * lb divides by la and *multiplies* by lb.",
    lambda A, B: A @ B.T / lengths(A)[:, None] * lengths(B),
)


@cosine_matrix.also
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


def group(V, d, seed, *rows):
    return table(V, d, seed), list(rows)


def ten_of(seed):
    order = torch.randperm(40, generator=generator(seed))
    return group(40, 5, seed, *order[:10].tolist())


def cosines(E, rows):
    """All cosines of the rows with each other."""
    return unit(E[rows]) @ unit(E[rows]).T


@exercise(
    # Of ten rows it is seldom by chance that a mistake names the right one.
    inputs=lambda draw: [
        *(group(9, 4, 1, 2, 5, 7), group(12, 3, 2, 11, 0, 4, 6)),
        *(ten_of(seed) for seed in (239, 428, 1271, 550, 220, 368)),
    ],
    on_success="The odd one out, from one matrix product.",
)
def odd_one_out(E, rows):
    """odd_one_out(E, rows): of these rows the one whose mean cosine with the others is smallest."""
    return rows[cosines(E, rows).sum(1).argmin()]


odd_one_out.mistake(
    "You return its index in the list. Return the row number at that index: `rows[index]`.",
    lambda E, rows: cosines(E, rows).sum(1).argmin(),
)
odd_one_out.mistake(
    "That is the row that fits *best*. Return the one with the smallest mean cosine.",
    lambda E, rows: rows[cosines(E, rows).sum(1).argmax()],
)
odd_one_out.mistake(
    "You used raw dot products, so the lengths of the rows decide. Use the cosine.",
    lambda E, rows: rows[(E[rows] @ E[rows].T).sum(1).argmin()],
)
odd_one_out.mistake(
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.",
    lambda E, rows: rows[(unit(E[rows], 0) @ unit(E[rows], 0).T).sum(1).argmin()],
)
odd_one_out.mistake(
    "You compared with every row of the table. Compare only the rows in `rows`.",
    lambda E, rows: rows[(unit(E[rows]) @ unit(E).T).sum(1).argmin()],
)
odd_one_out.mistake(
    "You compared each row with only some of the others. Compare it with all of them.",
    lambda E, rows: rows[cosines(E, rows)[0].argmin()],
)
odd_one_out.mistake(
    "You took the single smallest cosine, which belongs to two rows. Take the mean of each row's "
    "cosines.",
    lambda E, rows: rows[cosines(E, rows).min(1).values.argmin()],
)
odd_one_out.mistake(
    "These are the mean cosines, or their sums. Return the number of the row with the smallest "
    "one.",
    lambda E, rows: cosines(E, rows).mean(1),
    lambda E, rows: cosines(E, rows).sum(1),
)


def along(E, u):
    """How far each row goes along u, as a column."""
    return (E @ u / u.norm())[:, None]


@exercise(
    # In the second V = d: there numbers laid along the columns go unnoticed by the shapes.
    inputs=lambda draw: [
        *((table(6, 3, 11), 2 * normal(3, seed=12)), (table(4, 4, 13), normal(4, seed=14) / 3)),
        *((table(1, 5, 15), normal(5, seed=16)), (table(7, 2, 17), torch.tensor([0.0, -3.0]))),
    ],
    example=(torch.tensor([[3.0, 4.0]]), torch.tensor([2.0, 0.0])),
    on_success="Nothing is left along u, and everything else is unchanged.",
    on_shape_error="The dot products must be a column, (V, 1): `[:, None]`.",
)
def without(E, u):
    """without(E, u): the rows of E (V, d), each minus its projection on u (d,)."""
    return E - along(E, u) * unit(u)


without.mistake(
    "You did not divide by u · u: that is right only if u is one unit long.",
    lambda E, u: E - (E @ u)[:, None] * u,
)
without.mistake(
    "You divided by the length of u once. It is a factor of the dot product and of u: divide by u "
    "· u.",
    lambda E, u: E - along(E, u) * u,
)
without.mistake(
    "These are the projections. Subtract them from E.", lambda E, u: along(E, u) * unit(u)
)
without.mistake(
    "These numbers say how far each row goes along u. Subtract that much of u from the row.",
    lambda E, u: E @ u / u.norm(),
    lambda E, u: E @ u / (u @ u),
)
without.mistake(
    "The dot products were broadcast along the columns. No error was raised where V = d. Make them "
    "a column: `[:, None]`.",
    lambda E, u: E - (E @ u) * u / (u @ u),
)
without.mistake(
    "You subtracted a number from all entries of a row. Subtract that number times the unit vector "
    "of u.",
    lambda E, u: E - along(E, u),
)
without.mistake("You added the projection. Subtract it.", lambda E, u: E + along(E, u) * unit(u))
without.mistake(
    "You projected u on the rows. Project the rows on u: divide by u · u.",
    lambda E, u: E - (E @ u / (E * E).sum(1))[:, None] * E,
)
without.mistake(
    "You multiplied entry by entry and did not add up: the dot product is one number per row.",
    lambda E, u: E - E * u * u / (u @ u),
)


def raw(E, row, rated):
    """The dot products of the pairs whose words are known."""
    return torch.stack([E[row[a]] @ E[row[b]] for a, b, _ in rated if a in row and b in row])


def pairs(E, row, rated):
    """The cosines and the ratings of the pairs whose words are known."""
    ratings = [rating for a, b, rating in rated if a in row and b in row]
    return raw(unit(E), row, rated), torch.tensor(ratings)


def signs(x, y):
    """The signs of all differences within x and within y, two tables."""
    return (x[:, None] - x).sign(), (y[:, None] - y).sign()


def agreement(x, y):
    """Of all comparisons with different y, the fraction in which x has the same order."""
    one, other = signs(x, y)
    return (one == other)[other != 0].double().mean()


def judged(E, said):
    """Words a, b, c … for the rows of E, and what people say of pairs, such as "ab7.2"."""
    row = {chr(97 + i): i for i in range(len(E))}
    return E, row, [(pair[0], pair[1], float(pair[2:])) for pair in said.split()]


@exercise(
    # In the first all words are known and all ratings differ, some by less than 1; then come equal
    # ratings, a pair of equal words, one that is rated twice, and words like z.
    inputs=lambda draw: [
        judged(table(7, 3, 21), "ab1.4 bc4 cd2.2 de8 ef5.5 fa7 ad3 cg1.1 bf4.3 eg8.4 ac5.1"),
        judged(table(6, 4, 22), "ab9 bc2 cd2.4 de6 ae6 bd2 ce6.3 af2.4 cf9 df3 be6 ee4 bc2"),
        judged(table(7, 3, 23), "ab3 az9 cd5 ef1 gz0 bg7 af8.1 yc4 ce6 df8 ag2.5 xz8 be0.7"),
        judged(table(8, 5, 24), "ah5 bg5 cf1 xd3 de9 ac1.3 eh6 bf2 gd7 ab4 ce6.4 fh1 dx8"),
    ],
    on_success="A judge in one number: 0.5 would be a coin toss.",
    tolerance=1e-3,
)
def order_agreement(E, row, rated):
    """order_agreement(E, row, rated): the fraction of comparisons with the same order."""
    return agreement(*pairs(E, row, rated))


def all_known(E, row, rated):
    assert [row[a] + row[b] for a, b, _ in rated]
    return order_agreement.right(E, row, rated)


def equal_ratings_wrong(E, row, rated):
    one, other = signs(*pairs(E, row, rated))
    return ((one == other) & (other != 0)).double().mean()


def equal_ratings_too(E, row, rated):
    one, other = signs(*pairs(E, row, rated))
    return (one == other).double().mean()


def by_distance(E, row, rated):
    known = [(row[a], row[b]) for a, b, _ in rated if a in row and b in row]
    distances = torch.stack([(E[i] - E[j]).norm() for i, j in known])
    return agreement(distances, pairs(E, row, rated)[1])


def agreements(E, row, rated):
    return order_agreement.right(E, row, rated) * (signs(*pairs(E, row, rated))[1] != 0).sum()


order_agreement.mistake(
    "Leave out pairs with a word that is not in `row`: check `word in row` for both words.",
    all_known,
)
order_agreement.mistake(
    "You count comparisons of equal ratings, too. They have no right answer: leave them out.",
    equal_ratings_wrong,
    equal_ratings_too,
)
order_agreement.mistake(
    "You used raw dot products, so long rows decide. Use the cosine.",
    lambda E, row, rated: agreement(raw(E, row, rated), pairs(E, row, rated)[1]),
)
order_agreement.mistake(
    "You compared distances. A *small* distance means similar: use the cosine.", by_distance
)
order_agreement.mistake(
    "That is the fraction of comparisons that *disagree*.",
    lambda E, row, rated: 1 - order_agreement.right(E, row, rated),
)
order_agreement.mistake(
    "That is the number of comparisons that agree. Return their fraction.",
    agreements,
    lambda E, row, rated: agreements(E, row, rated) / 2,
)
order_agreement.mistake(
    "You count each agreement once, but each comparison twice.",
    lambda E, row, rated: order_agreement.right(E, row, rated) / 2,
)
order_agreement.mistake(
    "This goes from −1 to 1: agreements minus disagreements. Return the fraction that agrees.",
    lambda E, row, rated: 2 * order_agreement.right(E, row, rated) - 1,
)
order_agreement.mistake(
    "That is a correlation, of the values or of their ranks. Compare any two pairs, and return the "
    "fraction that agrees.",
    lambda E, row, rated: torch.corrcoef(torch.stack(pairs(E, row, rated)))[0, 1],
)
