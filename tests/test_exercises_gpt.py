"""The exercises of chapter 09: each known mistake gets its diagnosis, other right answers pass."""

import pytest
import torch
from torch import nn

from exercises import gpt as check

# --- right answers that mistakes start from ---


def fast_parameters(V, L, C):
    return 2 * V * C + L * (12 * C**2 + 2 * C) + C


def surprises(logits, ids):
    return -logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]


def clip(gradients, longest):
    length = sum(g.square().sum() for g in gradients).sqrt()
    return [g * min(1.0, longest / length) for g in gradients]


def decay_groups(model):
    named = list(model.named_parameters())
    return [n for n, p in named if p.dim() >= 2], [n for n, p in named if p.dim() < 2]


def test_other_right_answers_are_right():
    def cross_entropy(logits, ids):
        rows = nn.functional.cross_entropy(
            logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none"
        )
        return rows

    def clip_in_two_steps(gradients, longest):
        length = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))
        return tuple(g if length <= longest else g / length * longest for g in gradients)

    def by_eigenvectors(matrix):
        if matrix.shape[0] <= matrix.shape[1]:
            values, vectors = torch.linalg.eigh(matrix @ matrix.T)
            return vectors @ torch.diag(values.rsqrt()) @ vectors.T @ matrix
        return by_eigenvectors(matrix.T).T

    assert check.surprises(cross_entropy).outcome == "right"
    assert check.clip(clip_in_two_steps).outcome == "right"
    assert check.equalised(by_eigenvectors).outcome == "right"
    assert check.unfuse(lambda w: w.T.reshape(3, len(w), len(w))).outcome == "right"
    assert check.fast_parameters(lambda *a: torch.tensor(fast_parameters(*a))).outcome == "right"


@pytest.mark.parametrize("name", ["decay_groups", "clip", "unfuse"])
def test_a_placeholder_inside_is_not_attempted(name):
    given = {"decay_groups": lambda m: (..., ...), "clip": lambda g, _: [...] * len(g)}
    assert getattr(check, name)(given.get(name, lambda w: (..., ..., ...))).outcome == (
        "not attempted"
    )


# --- the known mistakes ---------------------------------------------------------------------------


def says(report, fragment):
    assert report.outcome == "not yet" and fragment in report.message, report


PARAMETERS = {
    "one table": lambda V, L, C: fast_parameters(V, L, C) - V * C,
    "norm before the head is missing": lambda V, L, C: fast_parameters(V, L, C) - C,
    "The gains of the norms are missing": lambda V, L, C: 2 * V * C + 12 * L * C**2,
    "The gains of the blocks' norms are missing": lambda V, L, C: 2 * V * C + 12 * L * C**2 + C,
    "one norm a block": lambda V, L, C: fast_parameters(V, L, C) - L * C,
    "the formula of GPT-2's blocks": lambda V, L, C: 2 * V * C + L * (12 * C**2 + 13 * C) + 2 * C,
    "gave the norms a bias": lambda V, L, C: 2 * V * C + L * (12 * C**2 + 4 * C) + 2 * C,
    "norms of the blocks a bias": lambda V, L, C: fast_parameters(V, L, C) + 2 * L * C,
    "output matrix of the attention": lambda V, L, C: fast_parameters(V, L, C) - L * C**2,
    "you counted one.": lambda V, L, C: fast_parameters(V, L, C) - 4 * L * C**2,
    "multiply by L": lambda V, L, C: fast_parameters(V, 1, C),
}


@pytest.mark.parametrize("fragment", PARAMETERS)
def test_mistakes_in_the_count(fragment):
    says(check.fast_parameters(PARAMETERS[fragment]), fragment)


def picked(table, ids):
    return table.gather(-1, ids[..., None])[..., 0]


SURPRISES = {
    "the first token has no row": lambda z, i: -picked(z.log_softmax(-1), i),
    "which the model has just read. Row t is about": lambda z, i: (
        -picked(z.log_softmax(-1)[:, :-1], i[:, :-1])
    ),
    "shift logits and ids": lambda z, i: -picked(z.log_softmax(-1)[:, 1:], i[:, 1:]),
    "the wrong way": lambda z, i: -picked(z.log_softmax(-1)[:, 1:], i[:, :-1]),
    "The sign is missing": lambda z, i: -surprises(z, i),
    "These are probabilities": lambda z, i: (-surprises(z, i)).exp(),
    "the logits themselves": lambda z, i: picked(z[:, :-1], i[:, 1:]),
    "the negative logits": lambda z, i: -picked(z[:, :-1], i[:, 1:]),
    "over the tokens, dim 1": lambda z, i: -picked(z.log_softmax(1)[:, :-1], i[:, 1:]),
    "You averaged. ": lambda z, i: surprises(z, i).mean(),
    "You averaged over each text": lambda z, i: surprises(z, i).mean(1),
    "all in a row": lambda z, i: surprises(z, i).flatten(),
    "bits": lambda z, i: surprises(z, i) / torch.tensor(2.0).log(),
}


@pytest.mark.parametrize("fragment", SURPRISES)
def test_mistakes_in_the_surprises(fragment):
    says(check.surprises(SURPRISES[fragment]), fragment)


def total(gradients):
    return torch.cat([g.flatten() for g in gradients]).norm().item()


def shorten_in_place(gradients, longest):
    for g in gradients:
        g *= min(1.0, longest / 2)
    return gradients


CLIP = {
    "cut each entry off": lambda gs, c: [g.clamp(-c, c) for g in gs],
    "each tensor by itself": lambda gs, c: [g * min(1.0, c / g.norm().item()) for g in gs],
    "You always bring": lambda gs, c: [g * c / total(gs) for g in gs],
    "forgot `longest`": lambda gs, c: [g / total(gs) for g in gs],
    "did not shorten": lambda gs, c: [g.clone() for g in gs],
    "square of the length": lambda gs, c: [g * min(1.0, c / total(gs) ** 2) for g in gs],
    "largest entry": lambda gs, c: [
        g * min(1.0, c / max(h.abs().max().item() for h in gs)) for g in gs
    ],
    "added the lengths": lambda gs, c: [g * min(1.0, c / sum(total([h]) for h in gs)) for g in gs],
    "absolute values": lambda gs, c: [
        g * min(1.0, c / sum(h.abs().sum().item() for h in gs)) for g in gs
    ],
    "in place": shorten_in_place,
    "a list of 3 tensors": lambda gs, c: clip(gs, c)[:2],
    "the shape of the one it got": lambda gs, c: [g.flatten() for g in clip(gs, c)],
}


@pytest.mark.parametrize("fragment", CLIP)
def test_mistakes_in_the_clipping(fragment):
    says(check.clip(CLIP[fragment]), fragment)


def spare(model, word):
    named = dict(model.named_parameters())
    return [n for n in named if word not in n], [n for n in named if word in n]


def with_the_head_twice(model):
    named = dict(model.named_parameters(remove_duplicate=False))
    return [n for n, p in named.items() if p.dim() > 1], [
        n for n, p in named.items() if p.dim() < 2
    ]


GROUPS = {
    "swapped": lambda m: decay_groups(m)[::-1],
    "twice, as token.weight": with_the_head_twice,
    "a gain of a norm, is among those that decay": lambda m: spare(m, "bias"),
    "a bias, is among those that decay": lambda m: spare(m, "norm"),
    "is a matrix or a table and should decay": lambda m: ([], [n for n, _ in m.named_parameters()]),
    "in neither group": lambda m: (decay_groups(m)[0], []),
    "names of the parameters, not": lambda m: (list(m.parameters()), []),
    "not in the model's order": lambda m: tuple(g[::-1] for g in decay_groups(m)),
    "a pair": lambda m: [n for n, _ in m.named_parameters()],
    "should be a list of names": lambda m: ("weight", "bias"),
    "is in your groups twice": lambda m: (decay_groups(m)[0] * 2, decay_groups(m)[1]),
}


@pytest.mark.parametrize("fragment", GROUPS)
def test_mistakes_in_the_groups(fragment):
    says(check.decay_groups(GROUPS[fragment]), fragment)


def svd(matrix):
    return torch.linalg.svd(matrix, full_matrices=False)


EQUALISED = {
    "the matrix itself": lambda m: svd(m)[0] @ torch.diag(svd(m)[1]) @ svd(m)[2],
    "divided by its length": lambda m: m / m.norm(),
    "its largest singular value": lambda m: m / svd(m)[1][0],
    "signs of the entries": lambda m: m.sign(),
    "the transposed matrix": lambda m: (svd(m)[0] @ svd(m)[2]).T,
    "each row to length 1": lambda m: m / m.norm(dim=1, keepdim=True),
    "each column to length 1": lambda m: m / m.norm(dim=0, keepdim=True),
    "inverse": lambda m: svd(m)[0] @ torch.diag(1 / svd(m)[1]) @ svd(m)[2],
    "gives Vᵀ already": lambda m: svd(m)[0] @ svd(m)[2].T,
}


@pytest.mark.parametrize("fragment", EQUALISED)
def test_mistakes_in_equalising(fragment):
    says(check.equalised(EQUALISED[fragment]), fragment)


UNFUSE = {
    "not turned": lambda w: w.chunk(3, dim=1),
    "every third column. Queries": lambda w: [w[:, i::3].T for i in range(3)],
    "every third column, and did not turn": lambda w: [w[:, i::3] for i in range(3)],
    "cuts rows to pieces. Take columns": lambda w: w.reshape(3, len(w), len(w)),
    "and turned the pieces": lambda w: w.reshape(3, len(w), len(w)).transpose(1, 2),
    "The order is wrong: queries": lambda w: [w.chunk(3, 1)[i].T for i in (1, 0, 2)],
    "values come last": lambda w: [w.chunk(3, 1)[i].T for i in (0, 2, 1)],
    "you begin with the values": lambda w: [w.chunk(3, 1)[i].T for i in (2, 1, 0)],
    "three matrices": lambda w: w.T,
    "the query matrix should be": lambda w: [w, w, w],
}


@pytest.mark.parametrize("fragment", UNFUSE)
def test_mistakes_in_unfusing(fragment):
    says(check.unfuse(UNFUSE[fragment]), fragment)


def changes(a, b, names, missing=...):
    return sum(a.get(n, missing) != b.get(n, missing) for n in names)


def steps_with(rungs, names, least=2, missing=..., first=False):
    def before(i):
        return rungs[0 if first else i - 1]

    return [
        i
        for i in range(1, len(rungs))
        if changes(before(i), rungs[i], names(before(i).keys(), rungs[i].keys()), missing) >= least
    ]


def union(a, b):
    return a | b


MIXED = {
    "at least one change": lambda r: steps_with(r, union, least=1),
    "the wrong way round": lambda r: sorted(set(range(1, len(r))) - set(steps_with(r, union))),
    "with the first one": lambda r: steps_with(r, union, first=True),
    "that both rungs have": lambda r: steps_with(r, lambda a, b: a & b),
    "no longer has": lambda r: steps_with(r, lambda a, b: b),
    "did not have": lambda r: steps_with(r, lambda a, b: a),
    "None can be a setting": lambda r: steps_with(r, union, missing=None),
    "before the mixed steps": lambda r: [i - 1 for i in steps_with(r, union)],
    "count from 1": lambda r: [i + 1 for i in steps_with(r, union)],
    "a list of whole numbers": lambda r: [r[i] for i in steps_with(r, union)],
    "it should be": lambda r: [],
}


@pytest.mark.parametrize("fragment", MIXED)
def test_mistakes_in_the_ladder(fragment):
    says(check.mixed_steps(MIXED[fragment]), fragment)
