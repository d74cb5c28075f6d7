"""The exercises of chapter 01, words as vectors."""

import torch

from exercises.check import exercise, expect_no_loop, normal


def unit(E, dim=-1):
    return E / E.norm(dim=dim, keepdim=True)


def rows(n, d, seed):
    """n rows of very different lengths."""
    return normal(n, d, seed=seed) * torch.arange(1.0, n + 1)[:, None]


def lengths(E):
    return E.norm(dim=1)


def spread(E):
    """The standard deviation of each row; of one number it is NaN, and no warning."""
    return lengths(E - E.mean(1, keepdim=True)) / (E.shape[1] - 1) ** 0.5


@exercise(
    # The third is square and the last two are nearly: there a forgotten keepdim or .T goes
    # unnoticed by the shapes.
    inputs=[
        (rows(n, d, seed), rows(m, d, seed + 1).flip(0))
        for seed, (n, m, d) in enumerate(
            [(4, 6, 3), (1, 7, 2), (4, 4, 4), (5, 5, 8), (2, 3, 1), (3, 4, 4), (4, 3, 4)], 20
        )
    ],
    praise="All n × m cosines in one matrix product.",
    clash="The row lengths must be a column, (n, 1): use keepdim=True. The columns of B.T are the "
    "rows of B.",
)
def cosine_matrix(A, B):
    """cosine_matrix(A, B) of (n, d) and (m, d) is (n, m)."""
    return unit(A) @ unit(B).T


cosine_matrix.mistakes = {
    "These are raw dot products: no row has been divided by its length.": lambda A, B: A @ B.T,
    "Rows and columns are swapped: row i of the result belongs to row i of A.":
        lambda A, B: unit(B) @ unit(A).T,
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.":
        lambda A, B: unit(A, 0) @ unit(B, 0).T,
    "You used one length for the whole matrix. Each row has its own: dim=1.":
        lambda A, B: A @ B.T / (A.norm() * B.norm()),
    "You did not divide the rows of B by their lengths.": lambda A, B: unit(A) @ B.T,
    "You did not divide the rows of A by their lengths.": lambda A, B: A @ unit(B).T,
    "The row lengths were broadcast along the columns. No error was raised where n = d. Keep the "
    "dimension with keepdim=True.": lambda A, B: (A / lengths(A)) @ (B / lengths(B)).T,
    "Divide entry (i, j) by the length of row i of A, a column (`[:, None]`), and by the length of "
    "row j of B, a row.":
        (lambda A, B: A @ B.T / (lengths(A) * lengths(B)),
         lambda A, B: A @ B.T / (lengths(A) * lengths(B))[:, None],
         lambda A, B: A @ B.T / (lengths(A) * lengths(B)[:, None])),
    "B is not transposed: the cosines are `A @ B.T` of unit rows.":
        (lambda A, B: unit(A) @ unit(B), lambda A, B: unit(A).T @ unit(B)),
    "You compared row i of A only with row i of B. Compare each row of A with each row of B.":
        lambda A, B: (unit(A) * unit(B)).sum(1),
    "You never used A, or you never used B.":
        (lambda A, B: unit(A) @ unit(A).T, lambda A, B: unit(B) @ unit(B).T),
    "You divided by the squared lengths: take the square root.":
        lambda A, B: A @ B.T / (lengths(A)[:, None] * lengths(B)) ** 2,
    "You added the lengths: multiply them.":
        lambda A, B: A @ B.T / (lengths(A)[:, None] + lengths(B)),
    "You multiplied by the lengths: divide by them.":
        lambda A, B: A @ B.T * lengths(A)[:, None] * lengths(B),
    "Mind the brackets: P / la * lb divides by la and *multiplies* by lb.":
        lambda A, B: A @ B.T / lengths(A)[:, None] * lengths(B),
    "The length of a row is the root of the sum of its squares, not its sum or its standard "
    "deviation.":
        (lambda A, B: (A / A.sum(1, keepdim=True)) @ (B / B.sum(1, keepdim=True)).T,
         lambda A, B: A @ B.T / (A.norm(1, dim=1)[:, None] * B.norm(1, dim=1)),
         lambda A, B: A @ B.T / (spread(A)[:, None] * spread(B))),
    "You subtracted a mean first. The cosine uses the vectors as they are.":
        (lambda A, B: unit(A - A.mean(1, keepdim=True)) @ unit(B - B.mean(1, keepdim=True)).T,
         lambda A, B: unit(A - A.mean(0)) @ unit(B - B.mean(0)).T),
    "These are the angles. Return their cosines.":
        lambda A, B: (unit(A) @ unit(B).T).clamp(-1, 1).acos(),
    "You divided by the row lengths of the product. Divide by the row lengths of A and of B.":
        lambda A, B: unit(A @ B.T),
    "This is 1 − cosine, a distance. Return the cosines themselves.":
        lambda A, B: 1 - unit(A) @ unit(B).T,
    "These are distances. The cosine is the dot product of unit rows.":
        (lambda A, B: torch.cdist(A, B), lambda A, B: torch.cdist(unit(A), unit(B))),
    "You dropped the sign. An obtuse angle has a negative cosine.":
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


def group(V, d, seed, *rows):
    return table(V, d, seed), list(rows)


def ten_of(seed):
    order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    return group(40, 5, seed, *order[:10].tolist())


def cosines(E, rows):
    """All cosines of the rows with each other."""
    return unit(E[rows]) @ unit(E[rows]).T


@exercise(
    # Of ten rows it is seldom by chance that a mistake names the right one.
    inputs=[
        *(group(9, 4, 1, 2, 5, 7), group(12, 3, 2, 11, 0, 4, 6)),
        *(ten_of(seed) for seed in (239, 428, 1271, 550, 220, 368)),
    ],
    praise="The odd one out, from one matrix product.",
)
def odd_one_out(E, rows):
    """odd_one_out(E, rows): of these rows the one whose mean cosine with the others is smallest."""
    return rows[cosines(E, rows).sum(1).argmin()]


odd_one_out.mistakes = {
    "You return its index in the list. Return the row number at that index: `rows[place]`.":
        lambda E, rows: cosines(E, rows).sum(1).argmin(),
    "That is the row that fits *best*. Return the one with the smallest mean cosine.":
        lambda E, rows: rows[cosines(E, rows).sum(1).argmax()],
    "You used raw dot products, so the lengths of the rows decide. Use the cosine.":
        (lambda E, rows: rows[(E[rows] @ E[rows].T).sum(1).argmin()],
         lambda E, rows: rows[(E[rows] @ E[rows].T).fill_diagonal_(0).sum(1).argmin()]),
    "You compared each unit row with the mean of the raw rows, in which long rows count more. Make "
    "all rows one unit long first.":
        lambda E, rows: rows[(unit(E[rows]) @ E[rows].sum(0)).argmin()],
    "You compared each row with only some of the others. Compare it with all of them.":
        (lambda E, rows: rows[cosines(E, rows)[0].argmin()],
         lambda E, rows: rows[cosines(E, rows)[-1].argmin()],
         lambda E, rows: rows[cosines(E, rows).triu(1).sum(1).argmin()],
         lambda E, rows: rows[cosines(E, rows).tril(-1).sum(1).argmin()],
         lambda E, rows: rows[(unit(E[rows]) * unit(E[rows]).roll(1, 0)).sum(1).argmin()]),
    "You compared with every row of the table. Compare only the rows in `rows`.":
        lambda E, rows: rows[(unit(E[rows]) @ unit(E).T).sum(1).argmin()],
    "You took the single smallest cosine, which belongs to two rows. Take the mean of each row's "
    "cosines.":
        (lambda E, rows: rows[cosines(E, rows).min(1).values.argmin()],
         lambda E, rows: rows[cosines(E, rows).argmin() // len(rows)],
         lambda E, rows: rows[cosines(E, rows).argmin() % len(rows)]),
    "You used only each row's nearest neighbour. Take the mean of its cosines with all others.":
        lambda E, rows: rows[cosines(E, rows).fill_diagonal_(-2).max(1).values.argmin()],
    "You dropped the sign of the cosines. An opposite row fits least of all.":
        lambda E, rows: rows[cosines(E, rows).abs().sum(1).argmin()],
    "You compared by distance (the length of the difference). Use the cosine.":
        (lambda E, rows: rows[torch.cdist(E[rows], E[rows]).sum(1).argmax()],
         lambda E, rows: rows[torch.cdist(unit(E[rows]), unit(E[rows])).sum(1).argmax()]),
    "You took the median of the cosines. Take their mean.":
        lambda E, rows: rows[cosines(E, rows).median(1).values.argmin()],
    "You divided by one length only: make all rows one unit long.":
        lambda E, rows: rows[(E[rows] @ unit(E[rows]).T).sum(1).argmin()],
    "You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.":
        lambda E, rows: rows[(unit(E[rows], 0) @ unit(E[rows], 0).T).sum(1).argmin()],
    "With −∞ on the diagonal every sum is −∞, and the first row wins. Leave the 1s in: they are "
    "the same for every row.": lambda E, rows: rows[0],
    "These are the mean cosines, or their sums. Return the number of the row with the smallest "
    "one.":
        (lambda E, rows: cosines(E, rows).mean(1), lambda E, rows: cosines(E, rows).sum(1),
         lambda E, rows: cosines(E, rows).mean(1).min(),
         lambda E, rows: cosines(E, rows).sum(1).min(),
         lambda E, rows: (cosines(E, rows).sum(1) - 1) / (len(rows) - 1)),
    "This is the row itself. Return its number.": lambda E, rows: E[odd_one_out.right(E, rows)],
    "You return a list with one number in it. Return the number.":
        lambda E, rows: [odd_one_out.right(E, rows)],
    "You return all rows but the odd one. Return the odd one.":
        lambda E, rows: [r for r in rows if r != odd_one_out.right(E, rows)],
}  # fmt: skip


def along(E, u):
    """How far each row goes along u."""
    return E @ u / u.norm()


@exercise(
    # In the second V = d: there numbers laid along the columns go unnoticed by the shapes.
    inputs=[
        *((table(6, 3, 11), 2 * normal(3, seed=12)), (table(4, 4, 13), normal(4, seed=14) / 3)),
        *((table(1, 5, 15), normal(5, seed=16)), (table(7, 2, 17), torch.tensor([0.0, -3.0]))),
    ],
    praise="Nothing is left along u, and everything else is unchanged.",
    clash="The dot products must be a column, (V, 1): `[:, None]`.",
)
def without(E, u):
    """without(E, u): the rows of E (V, d), each minus its projection on u (d,)."""
    return E - along(E, u)[:, None] * unit(u)


without.mistakes = {
    "You did not divide by u · u: that is right only if u is one unit long.":
        lambda E, u: E - (E @ u)[:, None] * u,
    "You divided by the length of u once. It is a factor of the dot product and of u: divide by u "
    "· u.":
        lambda E, u: E - along(E, u)[:, None] * u,
    "Divide by u · u, the squared length of u, not by the number of its entries.":
        lambda E, u: E - (E @ u)[:, None] * u / len(u),
    "You set a column to 0. That is right only if u lies along this axis.":
        (lambda E, u: E * (torch.arange(len(u)) != u.abs().argmax()),
         lambda E, u: E * (torch.arange(len(u)) != 0)),
    "You divided by the length of u four times: `u @ u` is the squared length already.":
        lambda E, u: E - (E @ u)[:, None] * u / (u @ u) ** 2,
    "These are the projections. Subtract them from E.":
        lambda E, u: along(E, u)[:, None] * unit(u),
    "These numbers say how far each row goes along u. Subtract that much of u from the row.":
        (along, lambda E, u: E @ u, lambda E, u: E @ u / (u @ u)),
    "You subtracted u from every row, whatever the row. Each row has its own projection on u.":
        (lambda E, u: E - u, lambda E, u: E - unit(u)),
    "You subtracted a number from all entries of a row. Subtract that number times the unit vector "
    "of u.": (lambda E, u: E - along(E, u)[:, None], lambda E, u: E - (E @ u / (u @ u))[:, None],
              lambda E, u: E - (E @ u)[:, None]),
    "You added the projection. Subtract it.": lambda E, u: E + along(E, u)[:, None] * unit(u),
    "You subtracted the projection twice: now the row points to the other side of u.":
        lambda E, u: E - 2 * along(E, u)[:, None] * unit(u),
    "You used the cosine with u: how far a row goes along u depends on the row's length, too.":
        (lambda E, u: E - along(unit(E), u)[:, None] * unit(u),
         lambda E, u: E - along(unit(E), u)[:, None] * u),
    "You made the rows one unit long. Leave their lengths as they are.":
        (lambda E, u: without.right(unit(E), u), lambda E, u: unit(without.right(E, u))),
    "You dropped the sign. A row can point against u, and then its projection must be subtracted, "
    "too.":
        (lambda E, u: E - along(E, u).abs()[:, None] * unit(u),
         lambda E, u: E - along(E, u).relu()[:, None] * unit(u)),
    "You projected u on the rows. Project the rows on u: divide by u · u.":
        (lambda E, u: E - (E @ u / (E * E).sum(1))[:, None] * E,
         lambda E, u: E - (E @ u / (E * E).sum(1))[:, None] * u),
    "The dot products were broadcast along the columns. No error was raised where V = d. Make them "
    "a column: `[:, None]`.":
        (lambda E, u: E - (E @ u) * u / (u @ u), lambda E, u: E - (E @ u) / (u @ u) * u),
    "You multiplied entry by entry and did not add up: the dot product is one number per row.":
        lambda E, u: E - E * u * u / (u @ u),
    "You subtracted the mean of all projections. Each row has its own.":
        lambda E, u: E - along(E, u).mean() * unit(u),
}  # fmt: skip


def pairs(E, row, rated):
    """The cosines and the ratings of the pairs whose words are known."""
    ratings = [rating for a, b, rating in rated if a in row and b in row]
    return raw(unit(E), row, rated), torch.tensor(ratings)


def agreement(x, y):
    """Of all comparisons with different y, the share where x is ordered alike."""
    one, other = (x[:, None] - x).sign(), (y[:, None] - y).sign()
    return (one == other)[other != 0].double().mean()


def judged(E, said):
    """Words a, b, c … for the rows of E, and what people say of pairs, such as "ab7.2"."""
    row = {chr(97 + i): i for i in range(len(E))}
    return E, row, [(pair[0], pair[1], float(pair[2:])) for pair in said.split()]


@exercise(
    # In the first all words are known and all ratings differ, some by less than 1; then come equal
    # ratings, a pair of equal words, one that is rated twice, and words like z.
    inputs=[
        judged(table(7, 3, 21), "ab1.4 bc4 cd2.2 de8 ef5.5 fa7 ad3 cg1.1 bf4.3 eg8.4 ac5.1"),
        judged(table(6, 4, 22), "ab9 bc2 cd2.4 de6 ae6 bd2 ce6.3 af2.4 cf9 df3 be6 ee4 bc2"),
        judged(table(7, 3, 23), "ab3 az9 cd5 ef1 gz0 bg7 af8.1 yc4 ce6 df8 ag2.5 xz8 be0.7"),
        judged(table(8, 5, 24), "ah5 bg5 cf1 xd3 de9 ac1.3 eh6 bf2 gd7 ab4 ce6.4 fh1 dx8"),
    ],
    praise="A judge in one number: 0.5 would be a coin toss.",
    tolerance=1e-3,
)
def order_agreement(E, row, rated):
    """order_agreement(E, row, rated): the share of comparisons that both decide alike."""
    return agreement(*pairs(E, row, rated))


def signs(E, row, rated):
    x, y = pairs(E, row, rated)
    return (x[:, None] - x).sign(), (y[:, None] - y).sign()


def alike(E, row, rated):
    one, other = signs(E, row, rated)
    return (one == other).double()


def above(x, y):
    """The share where both say alike whether the later is above the earlier, equal ones too."""
    later, earlier = torch.tril_indices(len(x), len(x), -1)
    return ((x[later] > x[earlier]) == (y[later] > y[earlier])).double().mean()


def raw(E, row, rated):
    """The dot products of the pairs whose words are known."""
    return torch.stack([E[row[a]] @ E[row[b]] for a, b, _ in rated if a in row and b in row])


def distances(E, row, rated):
    known = [(row[a], row[b]) for a, b, _ in rated if a in row and b in row]
    return torch.stack([(E[i] - E[j]).norm() for i, j in known])


order_agreement.mistakes = {
    "Leave out pairs with a word that is not in `row`: check `word in row` for both words.":
        (lambda E, row, rated: [row[a] + row[b] for a, b, _ in rated]
         and order_agreement.right(E, row, rated),
         lambda E, row, rated: [row[b] for a, b, _ in rated if a in row]
         and order_agreement.right(E, row, rated),
         lambda E, row, rated: [row[a] for a, b, _ in rated if b in row]
         and order_agreement.right(E, row, rated),
         lambda E, row, rated: agreement(raw(
             torch.cat([unit(E), torch.zeros(1, E.shape[1])]),
             {word: -1 for *pair, _ in rated for word in pair} | row, rated),
             torch.tensor([rating for *_, rating in rated]))),
    "You count comparisons of equal ratings, too. They have no right answer: leave them out.":
        (lambda E, row, rated: (alike(E, row, rated) * (signs(E, row, rated)[1] != 0)).mean(),
         lambda E, row, rated: torch.triu(
             alike(E, row, rated) * (signs(E, row, rated)[1] != 0), 1).sum()
             / (len(alike(E, row, rated)) * (len(alike(E, row, rated)) - 1) / 2),
         lambda E, row, rated: above(*pairs(E, row, rated)),
         lambda E, row, rated: above(*(-values for values in pairs(E, row, rated)))),
    "You compare each pair with itself, too, and count equal ratings: keep the comparisons whose "
    "ratings differ.": lambda E, row, rated: alike(E, row, rated).mean(),
    "You used raw dot products, so long rows decide. Use the cosine.":
        lambda E, row, rated: agreement(raw(E, row, rated), pairs(E, row, rated)[1]),
    "You compared distances. A *small* distance means similar: use the cosine.":
        (lambda E, row, rated: agreement(distances(E, row, rated), pairs(E, row, rated)[1]),
         lambda E, row, rated: agreement(-distances(E, row, rated), pairs(E, row, rated)[1])),
    "That is the fraction of comparisons that *disagree*.":
        (lambda E, row, rated: 1 - order_agreement.right(E, row, rated),
         lambda E, row, rated: agreement(-pairs(E, row, rated)[0], pairs(E, row, rated)[1])),
    "That is the number of comparisons that agree. Return their fraction.":
        (lambda E, row, rated: order_agreement.right(E, row, rated)
         * (signs(E, row, rated)[1] != 0).sum(),
         lambda E, row, rated: order_agreement.right(E, row, rated)
         * (signs(E, row, rated)[1] > 0).sum()),
    "You count each agreement once, but each comparison twice.":
        lambda E, row, rated: order_agreement.right(E, row, rated) / 2,
    "You return a percentage. Return a fraction between 0 and 1.":
        lambda E, row, rated: 100 * order_agreement.right(E, row, rated),
    "You compare each pair only with the next in the list. Compare any two pairs.":
        lambda E, row, rated: (
            lambda x, y: (x.diff().sign() == y.diff().sign())[y.diff() != 0].double().mean()
        )(*pairs(E, row, rated)),
    "You dropped the sign of the cosine. Opposite vectors are not similar.":
        lambda E, row, rated: agreement(pairs(E, row, rated)[0].abs(), pairs(E, row, rated)[1]),
    "This goes from −1 to 1: agreements minus disagreements. Return the fraction that agrees.":
        lambda E, row, rated: 2 * order_agreement.right(E, row, rated) - 1,
    "That is a correlation, of the values or of their ranks. Compare any two pairs, and return the "
    "fraction that agrees.":
        (lambda E, row, rated: torch.corrcoef(torch.stack(pairs(E, row, rated)))[0, 1],
         lambda E, row, rated: torch.corrcoef(torch.stack(
             [x.argsort().argsort().float() for x in pairs(E, row, rated)]))[0, 1]),
    "You return a fraction for each pair of words. Return one number for all comparisons.":
        lambda E, row, rated: alike(E, row, rated).mean(1),
}  # fmt: skip
