"""The exercises of chapter 01: each known mistake gets its diagnosis, other right answers pass."""

import pytest
import torch

from exercises import words_as_vectors as check


def unit(E):
    return E / E.norm(dim=-1, keepdim=True)


def cosine(a, b):
    return a @ b / (a.norm() * b.norm())


def top(scores, k, out, low=-torch.inf):
    scores = scores.clone()
    scores[out] = low
    return scores.topk(k).indices


def aim(E, a, b, c):
    return E[a] - E[b] + E[c]


def best(E, target, out):
    return top(E @ target / E.norm(dim=1), 1, out)[0]


def hot(ids, V):
    return (ids[..., None] == torch.arange(V)).float()


ALSO_RIGHT = [
    ("dot", lambda a, b: float(a @ b)),
    ("dot", lambda a, b: sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))),
    ("cosine", lambda a, b: torch.nn.functional.cosine_similarity(a, b, dim=0)),
    ("cosine", lambda a, b: torch.nan_to_num(a @ b / (a.norm() * b.norm()))),
    ("nearest", lambda E, i, k: top(unit(E) @ E[i], k, [i]).tolist()),
    ("analogy", lambda E, a, b, c: int(best(E, aim(E, a, b, c), [a, b, c]))),
    ("one_hot", lambda ids, V: torch.eye(V)[ids]),
    ("one_hot", lambda ids, V: torch.nn.functional.one_hot(ids, V).double()),
]


@pytest.mark.parametrize(("exercise", "answer"), ALSO_RIGHT)
def test_other_right_answers_are_right(exercise, answer):
    report = getattr(check, exercise)(answer)
    assert report.outcome == "right", report


MUTANTS = [
    ("dot", lambda a, b: a * b, "add them up"),
    ("dot", lambda a, b: a[:, None] * b, "all with all"),
    ("dot", lambda a, b: (a + b).sum(), "only added"),
    ("dot", lambda a, b: a.sum() * b.sum(), "sum × sum"),
    ("dot", lambda a, b: (a * b).mean(), "mean"),
    ("dot", lambda a, b: a[0] * b[0], "inside the loop"),
    ("dot", lambda a, b: a[-1] * b[-1], "total +="),
    ("dot", lambda a, b: (a * b)[:-1].sum(), "last entry is missing"),
    ("dot", lambda a, b: (a * b)[1:].sum(), "counts from 0"),
    ("dot", lambda a, b: (a * b)[:5].sum(), "should be"),  # right for the first input only
    ("dot", lambda a, b: a.mul_(b).sum(), "in place"),
    ("dot", lambda a, b: print(end=""), "forget `return`"),
    ("cosine", lambda a, b: a @ b, "raw dot product"),
    ("cosine", lambda a, b: a @ b / a.norm(), "length of a only"),
    ("cosine", lambda a, b: a @ b / b.norm(), "length of b only"),
    ("cosine", lambda a, b: a @ b / ((a @ a) * (b @ b)), "squared lengths"),
    ("cosine", lambda a, b: a @ b / (a.norm() + b.norm()), "added the lengths"),
    ("cosine", lambda a, b: a @ b / (a @ a), "a·a"),
    ("cosine", lambda a, b: 1 - a @ b / (a.norm() * b.norm()), "a distance"),
    ("cosine", lambda a, b: torch.acos(a @ b / (a.norm() * b.norm())), "the angle"),
    ("cosine", lambda a, b: (a @ b / (a.norm() * b.norm())).abs(), "sign is lost"),
    ("cosine", lambda a, b: a @ b / (a.norm() * b.norm()), "NaN"),
    ("cosine", lambda a, b: float(a @ b) / float(a.norm() * b.norm()), "ZeroDivisionError"),
    ("cosine", lambda a, b: 0.0 if 0 in a or 0 in b else cosine(a, b), "hold a 0"),
    ("cosine", lambda a, b: 0.0 if 0 in (a.sum(), b.sum()) else cosine(a, b), "hold a 0"),
    ("cosine", lambda a, b: 0.0 if a.norm() * b.norm() < 1 else cosine(a, b), "are short"),
    ("cosine_matrix", lambda A, B: A @ B.T, "raw dot products"),
    ("cosine_matrix", lambda A, B: unit(B) @ unit(A).T, "swapped"),
    ("cosine_matrix", lambda A, B: unit(A.T).T @ unit(B.T), "dim=0"),
    ("cosine_matrix", lambda A, B: A @ B.T / (A.norm() * B.norm()), "one length for all rows"),
    ("cosine_matrix", lambda A, B: unit(A) @ B.T, "rows of B still"),
    ("cosine_matrix", lambda A, B: A @ unit(B).T, "rows of A still"),
    ("cosine_matrix", lambda A, B: unit(A) @ unit(A).T, "shape (4, 6)"),
    ("cosine_matrix", lambda A, B: A @ B, "raised RuntimeError"),
    ("nearest", lambda E, i, k: (unit(E) @ E[i]).topk(k).indices, "itself"),
    ("nearest", lambda E, i, k: (unit(E) @ E[i]).argsort()[:k], "least alike"),
    ("nearest", lambda E, i, k: top(E @ E[i], k, [i]), "raw dot product"),
    ("nearest", lambda E, i, k: top(-(E - E[i]).norm(dim=1), k, [i]), "by distance"),
    ("nearest", lambda E, i, k: top(unit(E) @ E[i], k, [i]).flip(0), "in reverse"),
    ("nearest", lambda E, i, k: (unit(E) @ unit(E)[i]).topk(k + 1).values[1:], "row numbers"),
    ("nearest", lambda E, i, k: top(unit(E) @ E[i], k + 1, [i]), "shape (4,)"),
    ("nearest", lambda E, i, k: (unit(E) @ E[i]).topk(k), "two things"),
    ("nearest", lambda E, i, k: top(unit(E) @ E[i], k, [i], 0.0), "itself"),
    ("analogy", lambda E, a, b, c: best(E, aim(E, a, b, c), []), "leave out a, b and c"),
    ("analogy", lambda E, a, b, c: best(E, aim(E, a, b, c), [a]), "leave out a, b and c"),
    ("analogy", lambda E, a, b, c: best(E, aim(E, a, b, c), [a, c]), "leave out a, b and c"),
    ("analogy", lambda E, a, b, c: (unit(E) @ aim(E, a, b, c)).topk(2).indices[1], "leave out"),
    ("analogy", lambda E, a, b, c: best(E, aim(unit(E), a, b, c), [a, b, c]), "unit vectors"),
    ("analogy", lambda E, a, b, c: best(E, E[c], [a, b, c]), "c alone"),
    ("analogy", lambda E, a, b, c: best(E, E[a] + E[c], [a, b, c]), "the row number should be"),
    (
        "analogy",
        lambda E, a, b, c: top(-(E - aim(E, a, b, c)).norm(dim=1), 1, [a, b, c])[0],
        "by distance",
    ),
    ("analogy", lambda E, a, b, c: best(E, aim(E, b, a, c), [a, b, c]), "b − a + c"),
    ("analogy", lambda E, a, b, c: best(E, aim(E, a, c, b), [a, b, c]), "a + b − c"),
    ("analogy", lambda E, a, b, c: best(E, E[a] + E[b] + E[c], [a, b, c]), "b is to be taken"),
    ("analogy", lambda E, a, b, c: best(E, E[a], [a, b, c]), "a alone"),
    ("analogy", lambda E, a, b, c: top(E @ aim(E, a, b, c), 1, [a, b, c])[0], "raw dot product"),
    ("analogy", lambda E, a, b, c: top(unit(E) @ aim(E, a, b, c), 1, [a, b, c]), "shape ()"),
    ("one_hot", lambda ids, V: hot(ids, V).roll(1, -1), "too far right"),
    ("one_hot", lambda ids, V: hot(ids, V).roll(-1, -1), "too far left"),
    ("one_hot", lambda ids, V: hot(ids, V).mT, "swapped"),
    ("one_hot", lambda ids, V: hot(ids, V).reshape(-1, V), "flattened"),
    ("one_hot", lambda ids, V: hot(ids, V).reshape(-1, V).amax(0), "share one row"),
    ("one_hot", lambda ids, V: 1 - hot(ids, V), "zeros and ones"),
    ("one_hot", lambda ids, V: hot(ids, V) * ids[..., None], "put a 1 there"),
    ("one_hot", lambda ids, V: hot(ids, V).long(), ".float()"),
    ("one_hot", lambda ids, V: hot(ids, V).bool(), ".float()"),
    ("one_hot", lambda ids, V: hot(ids, V).tolist(), ".float()"),
    ("one_hot", lambda ids, V: ids, "shape (4, 6)"),
    ("one_hot", lambda ids, V: ids == torch.arange(V), "raised RuntimeError"),
]


@pytest.mark.parametrize(("exercise", "mutant", "diagnosis"), MUTANTS)
def test_each_mistake_gets_its_diagnosis(exercise, mutant, diagnosis):
    report = getattr(check, exercise)(mutant)
    assert report.outcome == "not yet", report
    assert diagnosis in report.message


def test_the_analogy_questions_tell_the_mistakes_apart():
    columns = []
    for size, width, seed in ((60, 6, 40), (35, 4, 41), (80, 10, 42)):
        asked = list(check._questions(size, width, seed))
        assert len(asked) == 4
        for E, rows, answers in asked:
            columns.append(answers)
            assert not set(answers) & set(rows)
            two = (E @ aim(E, *rows) / E.norm(dim=1)).index_fill(0, torch.tensor(rows), -99).topk(2)
            assert two.values[0] - two.values[1] > 1e-3  # no rounding decides it
    assert len(set(zip(*columns, strict=True))) == len(columns[0])
