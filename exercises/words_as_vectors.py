"""The exercises on words as vectors."""

import torch

from exercises.check import checked, diagnose, exercise, expect, expect_no_loop, normal, reported


def rows(n, d, seed):
    """n rows of very different lengths."""
    return normal(n, d, seed=seed) * torch.arange(1.0, n + 1)[:, None]


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
    lengths_A = A.norm(dim=1, keepdim=True)
    lengths_B = B.norm(dim=1, keepdim=True)
    return (A / lengths_A) @ (B / lengths_B).T


cosine_matrix.slips("""
    These are raw dot products: no row has been divided by its length.
        A @ B.T
    You did not divide the rows of A, or those of B, by their lengths.
        A / lengths_A → A
        B / lengths_B → B
    You divided by the lengths of the columns (dim=0). Vectors are rows: dim=1.
        A.norm(dim=1 → A.norm(dim=0 ; B.norm(dim=1 → B.norm(dim=0
    You used one length for the whole matrix. Each row has its own: dim=1.
        A @ B.T / (A.norm() * B.norm())
    The row lengths were broadcast along the columns. No error was raised where n = d. Keep the
    dimension with keepdim=True.
        A.norm(dim=1, keepdim=True) → A.norm(dim=1) ; B.norm(dim=1, keepdim=True) → B.norm(dim=1)
    B is not transposed: the cosines are `A @ B.T` of unit rows.
        .T →
    Rows and columns are swapped: row i of the result belongs to row i of A.
        right(B, A)
    You compared row i of A only with row i of B. Compare each row of A with each row of B.
        (A / lengths_A) @ (B / lengths_B).T → ((A / lengths_A) * (B / lengths_B)).sum(1)
    Mind the brackets: P / la * lb divides by la and *multiplies* by lb.
        A @ B.T / A.norm(dim=1, keepdim=True) * B.norm(dim=1)
""")


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


FAULTS = {"A": "c", "B": "d", "C": "b", "D": "e", "E": "a"}


@checked
def faults(answer):
    """faults: which slip made the lists A to E of neighbours, a letter for each."""
    found = reported(
        answer,
        dict.fromkeys("ABCDE", "a"),
        'Set faults to a dictionary with a letter for each list, {"A": "e", "B": "e", …}.',
    )
    diagnose("""
        Each of the five should be one of the letters a to e.
            not set(found.values()) <= set("abcde")
        One list is sound and each slip was made once, so each letter occurs once.
            len(set(found.values())) < 5
        B gives the same answer to every question. Which slip knows only one number of a word?
            found["B"] != "d"
        A answers sensibly, but not to the words in the table. Whose neighbours are these?
            found["A"] != "c"
        C and E favour words with long vectors, so they are no cosines. D does not.
            found["D"] != "e"
        In both C and E, lengths have a say. In one of them they count twice.
            found["C"] == "a"
    """)
    expect(found == FAULTS, "Plant the slip that you suspect, and look.")
    return "A wrong formula seldom raises an error. It answers, and you have to know its face."


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
    amounts = E @ u / (u @ u)
    return E - amounts[:, None] * u


without.slips("""
    You did not divide by u · u: that is right only if u is one unit long.
        / (u @ u) →
    You divided by the length of u once. It is a factor of the dot product and of u: divide by u
    · u.
        (u @ u) → u.norm()
    These are the projections. Subtract them from E.
        E - amounts → amounts
    These numbers say how far each row goes along u. Subtract that much of u from the row.
        E @ u / u.norm()
        E @ u / (u @ u)
    The dot products were broadcast along the columns. No error was raised where V = d. Make them
    a column: `[:, None]`.
        amounts[:, None] → amounts
    You subtracted a number from all entries of a row. Subtract that number times the unit vector
    of u.
        E - (E @ u / u.norm())[:, None]
    You added the projection. Subtract it.
        E - amounts → E + amounts
    You projected u on the rows. Project the rows on u: divide by u · u.
        E - (E @ u / (E * E).sum(1))[:, None] * E
    You multiplied entry by entry and did not add up: the dot product is one number per row.
        E - E * u * u / (u @ u)
""")


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
    cosines, ratings = [], []
    for a, b, rating in rated:
        if a in row and b in row:
            cosines.append(torch.cosine_similarity(E[row[a]], E[row[b]], dim=0))
            ratings.append(rating)
    x, y = torch.stack(cosines), torch.tensor(ratings)
    agree = (x[:, None] - x).sign() == (y[:, None] - y).sign()
    differ = y[:, None] != y
    return agree[differ].double().mean()


order_agreement.slips("""
    Leave out pairs with a word that is not in `row`: check `word in row` for both words.
        if a in row and b in row: → if True:
    You count comparisons of equal ratings, too. They have no right answer: leave them out.
        agree[differ] → (agree & differ)
        agree[differ] → agree
    You used raw dot products, so long rows decide. Use the cosine.
        torch.cosine_similarity(E[row[a]], E[row[b]], dim=0) → E[row[a]] @ E[row[b]]
    You compared distances. A *small* distance means similar: use the cosine.
        torch.cosine_similarity(E[row[a]], E[row[b]], dim=0) → (E[row[a]] - E[row[b]]).norm()
    That is the fraction of comparisons that *disagree*.
        1 - right(E, row, rated)
    That is the number of comparisons that agree. Return their fraction.
        agree[differ].double().mean() → agree[differ].sum()
        agree[differ].double().mean() → agree[differ].sum() / 2
    You count each agreement once, but each comparison twice.
        right(E, row, rated) / 2
    This goes from −1 to 1: agreements minus disagreements. Return the fraction that agrees.
        2 * right(E, row, rated) - 1
    That is a correlation, of the values or of their ranks. Compare any two pairs, and return the
    fraction that agrees.
        agree[differ].double().mean() → torch.corrcoef(torch.stack([x, y]))[0, 1]
""")
