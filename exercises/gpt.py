"""The exercises of chapter 09: the GPT and its training."""

import math
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from exercises.check import exercise, normal
from helpers.gpt import GPT, GPTConfig


@exercise(
    inputs=[(69, 4, 128), (11, 3, 6), (50, 1, 20), (7, 5, 16)],
    praise="two tables, twelve C² a block, the norms and the convolutions.",
    tolerance=1e-9,
)
def fast_parameters(V, L, C):
    """fast_parameters(V, L, C): how many numbers training can change in a fast_gpt."""
    return size(V, L, C)


def size(V, L, C, tables=2, matrices=12, norms=4, window=4, last=2):
    """Tables of V · C; matrices in C², norms and window in C, a block; `last` C before the head."""
    return tables * V * C + L * (matrices * C**2 + (norms + window) * C) + last * C


fast_parameters.mistakes = {
    "You counted one table. This model is untied: the head has its own.": partial(size, tables=1),
    "You counted one table (there are two), and the norm before the head is missing.":
        partial(size, tables=1, last=0),
    "There is no table of positions: two tables, not three.": partial(size, tables=3),
    "The tables are missing, for the tokens and for the head.": partial(size, tables=0),
    "The norm before the head is missing: C gains and C biases.": partial(size, last=0),
    "There is one norm before the head, not two.": partial(size, last=4),
    "The norms are missing: two in each block, and one before the head.":
        partial(size, norms=0, last=0),
    "The blocks' norms are missing: two in each.": partial(size, norms=0),
    "A LayerNorm has a gain and a bias, C numbers each: you counted one of the two.":
        (partial(size, norms=2, last=1), partial(size, norms=2), partial(size, last=1)),
    "The short convolutions are missing: four weights for each of the C features.":
        partial(size, window=0),
    "A short convolution has four weights for EACH feature: 4 C, not 4.":
        lambda V, L, C: size(V, L, C, window=0) + 4 * L,
    "A short convolution has four weights a feature, not one.": partial(size, window=1),
    "You gave each block two convolutions. There is one, before the feed-forward part.":
        partial(size, window=8),
    "You counted the biases of the matrices. There are none here.":
        (partial(size, norms=13), partial(size, norms=9)),
    "You counted a bias of the head. There is none.": lambda V, L, C: size(V, L, C) + V,
    "The output matrix of the attention is missing: it is the fourth.": partial(size, matrices=11),
    "You counted one matrix in the attention. There are four.": partial(size, matrices=9),
    "The feed-forward part is missing: (C, 4C) and (4C, C).": partial(size, matrices=4),
    "The feed-forward part has two matrices, (C, 4C) and (4C, C): you counted one. (Or did you "
    "leave out the attention's four, just as many numbers?)": partial(size, matrices=8),
    "Inside the feed-forward part is four times as wide: 8 C².": partial(size, matrices=6),
    "The feed-forward part has two matrices, not three.": partial(size, matrices=16),
    "You counted one block only: multiply by L.": lambda V, L, C: size(V, 1, C),
    "You multiplied all by L. The tables are there once.": lambda V, L, C: L * size(V, 1, C),
    "You multiplied the last norm by L.": lambda V, L, C: size(V, L, C, last=2 * L),
}  # fmt: skip


def logits_and_ids(B, T, V, scale, seed):
    ids = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
    return scale * normal(B, T, V, seed=seed), ids


@exercise(
    inputs=[logits_and_ids(*sizes, seed) for seed, sizes in enumerate(
        [(2, 5, 7, 2), (3, 4, 11, 2), (1, 8, 3, 2), (2, 6, 6, 2), (4, 2, 5, 2), (2, 3, 4, 0),
         (2, 4, 5, 900)])],  # the last: logits far apart
    clash="Row t is about token t + 1: the last row and the first token have no partner.",
    praise="each token is judged by the row before it.",
)  # fmt: skip
def surprises(logits, ids):
    """surprises(logits, ids): (B, T, V) and (B, T) to (B, T − 1), −ln p of each token."""
    return -picked(logits[:, :-1].log_softmax(-1), ids[:, 1:])


def picked(table, ids):
    return table.gather(-1, ids[..., None])[..., 0]


def own(z, ids):
    return -picked(z.log_softmax(-1), ids)


def with_p(to_p):
    """−ln of p, made of the logits by `to_p`."""
    return lambda z, ids: -picked(to_p(z[:, :-1]), ids[:, 1:]).log()


def with_log_p(to_log_p):
    return lambda z, ids: -picked(to_log_p(z[:, :-1]), ids[:, 1:])


def result(change):
    """The right surprises, changed."""
    return lambda z, ids: change(surprises.right(z, ids))


def reshaped(z, ids):
    return F.cross_entropy(z.reshape(len(z), z.shape[2], -1), ids, reduction="none")


CUT = (
    "reshape(B, V, T) cuts the rows to pieces. To bring the symbols to dim 1, as cross_entropy "
    "wants them, turn the table: `.transpose(1, 2)`."
)
surprises.mistakes = {
    "You compare row t with token t, which the model has just read. Row t is about token t + 1."
    " (And the first token has no row.)": own,
    "You compare row t with token t, which the model has just read. Row t is about token "
    "t + 1.": lambda z, ids: own(z, ids)[:, :-1],
    "You compare row t with token t: shift them by one.": lambda z, ids: own(z, ids)[:, 1:],
    "You shifted the wrong way: you compare row t + 1 with token t, which is behind it.":
        lambda z, ids: own(z[:, 1:], ids[:, :-1]),
    "The last row has no token. Leave it out.": lambda z, ids: own(z, ids.roll(-1, 1)),
    "The first token has no surprise: (B, T − 1).": result(lambda s: F.pad(s, (1, 0))),
    "The sign is missing: these are log-probabilities. A surprise is −ln p.": result(torch.neg),
    "These are probabilities. A surprise is −ln p.":
        (result(lambda s: (-s).exp()), result(lambda s: -(-s).exp())),
    "This is 1 − p. A surprise is −ln p.": result(lambda s: 1 - (-s).exp()),
    "This is 1 / p. A surprise is its logarithm, −ln p.": result(torch.exp),
    "These are the logits themselves, without a softmax.": with_log_p(torch.neg),
    "These are the negative logits, without a softmax.": with_log_p(torch.clone),
    "These are logarithms of logits: a softmax comes before.": with_p(torch.clone),
    "Your softmax runs over the tokens, dim 1. It runs over the symbols: dim=-1.": (
        with_log_p(lambda z: z.log_softmax(1)),
        lambda z, ids: -picked(z.log_softmax(1)[:, :-1], ids[:, 1:])),
    "Your softmax runs over dim 0, the texts: dim=-1.": with_log_p(lambda z: z.log_softmax(0)),
    "Your softmax runs over all numbers. Each row is a distribution of its own: dim=-1.":
        with_log_p(lambda z: z - z.logsumexp((0, 1, 2))),
    "One softmax too many: log_softmax and cross_entropy want the logits.":
        with_log_p(lambda z: z.softmax(-1).log_softmax(-1)),
    "Where logits are far apart a softmax is exactly 0, and its logarithm −∞. `log_softmax` does "
    "both at once.": (
        with_p(lambda z: z.softmax(-1)), with_p(lambda z: z.softmax(-1) + 1e-9),
        with_p(lambda z: z.softmax(-1).clamp(1e-9))),
    "exp of a large logit is infinite. `log_softmax` takes the largest away first.": (
        with_p(lambda z: z.exp() / z.exp().sum(-1, keepdim=True)),
        with_log_p(lambda z: z - z.exp().sum(-1, keepdim=True).log())),
    CUT: (
        lambda z, ids: reshaped(z[:, :-1], ids[:, 1:]), lambda z, ids: reshaped(z, ids)[:, 1:],
        with_log_p(lambda z: z.reshape(len(z), z.shape[2], -1).log_softmax(1).mT)),
    CUT + " And row t is about token t + 1.": reshaped,
    "You averaged. Keep a number for each token.": result(torch.mean),
    "You averaged over each text. Keep a number for each token.": result(lambda s: s.mean(1)),
    "You summed. Keep a number for each token.": (result(torch.sum), result(lambda s: s.sum(1))),
    "Right numbers, but all in a row (cross_entropy wants that). Give them the shape "
    "(B, T − 1) again.": result(torch.flatten),
    "Drop the last dimension, of size 1: `[..., 0]`.": result(lambda s: s[..., None]),
    "Right numbers, but (T − 1, B): texts come first.": result(torch.t),
    "These are the surprises at all symbols. Pick the one that came, with gather.":
        (lambda z, _: -z[:, :-1].log_softmax(-1), lambda z, _: -z.log_softmax(-1)),
    "These are surprises at the likeliest symbols. Take the tokens that came.":
        lambda z, _: -z[:, :-1].log_softmax(-1).amax(-1),
    "These are bits, log₂. A nat is −ln p.": result(lambda s: s / math.log(2)),
}  # fmt: skip


def gradients(size, seed, shapes=((3, 4), (5,), (2, 1, 3))):
    return [size * normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)]


@exercise(
    inputs=[
        ([torch.tensor([6.0]), torch.tensor([[8.0]])], 2.5),
        (gradients(3.0, seed=5), 0.5), (gradients(1.0, seed=1), 1.0),
        (gradients(1.0, seed=9), 10.0), (gradients(0.1, seed=13), 2.0),
        (gradients(2.0, seed=17, shapes=[(2, 3)] * 3), 3.0),
        (gradients(2.0, seed=21, shapes=[(4,)]), 0.25), (gradients(0.0, seed=0), 1.0),
    ],
    why=[""] * 7 + ["All of it is 0, so its length is 0, and it stays as it is."],
    praise="one length for all, and the direction stays.",
)  # fmt: skip
def clip(gradients, longest):
    """clip(gradients, longest): all tensors together shortened to at most that length."""
    return times(gradients, min(1.0, longest / length(gradients)))


def length(gs):
    return row(gs).norm()


def row(gs):
    return torch.cat([g.flatten() for g in gs])


def times(gs, factor):
    return [g * factor for g in gs]


def measured(by):
    """As if the length were what `by` makes of the tensors."""
    return lambda gs, c: times(gs, min(1.0, c / by(gs)))


def if_long(share):
    """A factor other than longest / length, where the length is above longest."""
    return lambda gs, c: times(gs, share(length(gs), c) if length(gs) > c else 1.0)


ROOT = "The length is the root of the sum of squares"
clip.mistakes = {
    "You cut each entry off. That bends the direction: shorten all by one factor.": (
        lambda gs, c: [g.clamp(-c, c) for g in gs], lambda gs, c: [g.clamp(max=c) for g in gs]),
    "You shorten each tensor by itself. They are one vector: one length for all of them.":
        lambda gs, c: [clip.right([g], c)[0] for g in gs],
    "You bring each tensor to `longest` by itself. They are one vector, shortened if too long.":
        lambda gs, c: [g * c / g.norm() for g in gs],
    "You always bring the length to `longest`. Gradients that are shorter stay as they are.": (
        lambda gs, c: times(gs, c / length(gs)), lambda gs, c: times(gs, c / (length(gs) + 1e-6))),
    "You divide by the length even when it is below `longest`, and forgot `longest`.":
        lambda gs, c: times(gs, 1 / length(gs)),
    "You divide by the length, and forgot to multiply by `longest`.": if_long(lambda n, c: 1 / n),
    "You divide by `longest`. The factor is longest / length.": if_long(lambda n, c: 1 / c),
    "You multiply by `longest`, and forgot to divide by the length.": if_long(lambda n, c: c),
    "Your factor stands on its head: it is longest / length.": if_long(lambda n, c: n / c),
    "You lengthen what is short and leave what is long: it is min, not max (or >, not <).":
        lambda gs, c: times(gs, max(1.0, c / length(gs)) if length(gs) else 1.0),
    "Where the length is 0 you divide 0 by 0, which is NaN. Shorten only what is too long.":
        lambda gs, c: [g / length(gs) * min(c, length(gs)) for g in gs],
    "You did not shorten anything.": lambda gs, c: list(gs),
    "You divide by the square of the length: take the root.": measured(lambda gs: length(gs) ** 2),
    "You compare the square of the length with `longest`: take the root first.":
        lambda gs, c: times(gs, c / length(gs) if length(gs) ** 2 > c else 1.0),
    f"You divide by a mean of squares. {ROOT}.": (
        measured(lambda gs: row(gs).square().mean()),
        measured(lambda gs: row(gs).square().mean().sqrt())),
    f"You measure by the largest entry. {ROOT}.": measured(lambda gs: row(gs).abs().max()),
    "You added the lengths of the tensors. Add their squares, and take the root at the end.":
        measured(lambda gs: sum(g.norm() for g in gs)),
    f"You measure by one tensor alone. {ROOT} of all.": (
        measured(lambda gs: max(g.norm() for g in gs)), measured(lambda gs: gs[0].norm()),
        measured(lambda gs: gs[-1].norm())),
    f"You added absolute values. {ROOT}.": measured(lambda gs: row(gs).abs().sum()),
    f"You added without squaring. {ROOT}.": measured(lambda gs: row(gs).sum().abs()),
    "All in one row: give a list, each tensor in its shape.": lambda gs, c: row(clip.right(gs, c)),
    "You flattened them: each keeps its shape.":
        lambda gs, c: [g.flatten() for g in clip.right(gs, c)],
    "This is the factor, or the length. Give the list of the shortened tensors.":
        (lambda gs, c: min(1.0, c / length(gs)), lambda gs, c: length(gs)),
}  # fmt: skip


def models():
    """Names alone tell nothing: norms are called 1 and 3, and a matrix is in "normal"."""
    with torch.random.fork_rng(devices=[]):  # an import leaves the notebook's draws alone
        return [
            nn.Linear(2, 3), nn.LayerNorm(3), nn.Embedding(4, 3), nn.Linear(3, 1),
            nn.Sequential(nn.Embedding(4, 3), nn.RMSNorm(3), nn.Linear(3, 4), nn.BatchNorm1d(4)),
            nn.MultiheadAttention(4, 2),
            nn.ModuleDict({"normal": nn.Linear(2, 3), "biased": nn.Linear(3, 2)}),
            GPT(GPTConfig(11, 5, 2, 2, 8)),
        ]  # fmt: skip


@exercise(
    inputs=[(model,) for model in models()],
    praise="matrices and tables decay; gains and biases keep what they have.",
)
def decay_groups(model):
    """decay_groups(model): the names that decay and the names that do not."""
    return divided(model.named_parameters(), lambda name, p: p.dim() >= 2)


def divided(named, decays):
    """(the names for which `decays` is true, the others)."""
    named = list(named)
    return [n for n, p in named if decays(n, p)], [n for n, p in named if not decays(n, p)]


def if_name(decays):
    return lambda m: divided(m.named_parameters(), decays)


def but_for(*kinds):
    """All decay but biases and the parameters of modules of these kinds."""

    def wrong(model):
        spared = {id(p) for m in model.modules() if isinstance(m, kinds) for p in m.parameters()}
        return if_name(lambda n, p: id(p) not in spared and not n.endswith("bias"))(model)

    return wrong


def only(*kinds):
    """The weights of modules of these kinds decay."""

    def wrong(model):
        kept = {id(m.weight) for m in model.modules() if isinstance(m, kinds)}
        return if_name(lambda n, p: id(p) in kept)(model)

    return wrong


def groups(change):
    """The right groups, changed."""
    return lambda m: change(m, *decay_groups.right(m))


decay_groups.mistakes = {
    "The groups are swapped: those that decay come first.": groups(lambda _, a, b: (b, a)),
    "The table of a tied model is in your groups twice, as token.weight and head.weight: "
    "it would decay twice. `model.named_parameters()` gives it once.": lambda m: divided(
        m.named_parameters(remove_duplicate=False), lambda n, p: p.dim() >= 2),
    "`state_dict()` also holds what is not trained (buffers), and the table of a tied model twice. "
    "Use `model.named_parameters()`.":
        lambda m: divided(m.state_dict().items(), lambda n, p: p.dim() >= 2),
    "The gains of the norms are among those that decay. Vectors do not, biases or gains.":
        (if_name(lambda n, p: "bias" not in n), if_name(lambda n, p: not n.endswith("bias"))),
    "The biases are among those that decay. Vectors do not, biases or gains.":
        (if_name(lambda n, p: p.dim() >= 2 or "bias" in n), if_name(lambda n, p: "norm" not in n)),
    "You go by the names, but a norm or a matrix may have any. `p.dim()` tells vectors.": (
        if_name(lambda n, p: "norm" not in n and "bias" not in n),
        if_name(lambda n, p: "norm" not in n and not n.endswith("bias")),
        if_name(lambda n, p: p.dim() >= 2 and "norm" not in n),
        if_name(lambda n, p: p.dim() >= 2 and "bias" not in n)),
    "You spare the gains of nn.LayerNorm only. There are other norms: `p.dim()` tells vectors.":
        but_for(nn.LayerNorm),
    "You know two classes of norms, and there are more, such as nn.BatchNorm1d: `p.dim()` tells "
    "vectors.": but_for(nn.LayerNorm, nn.RMSNorm),
    "You go by nn.Linear and nn.Embedding, but other modules have matrices, too: `p.dim()` tells.":
        only(nn.Linear, nn.Embedding),
    "Tables (nn.Embedding) should decay, too.": only(nn.Linear),
    "All decay here. Vectors (gains and biases) should not.": if_name(lambda n, p: True),
    "Nothing decays here. Each matrix and each table should.": if_name(lambda n, p: False),
    "Name those that do not decay, too.": groups(lambda _, a, b: (a, [])),
    "A parameter is in your groups twice.":
        (groups(lambda _, a, b: (a * 2, b)), groups(lambda _, a, b: (a + b, b))),
    "These are the parameters. Give their names.": (
        lambda m: (list(m.parameters()), []), groups(lambda m, a, b: tuple(
            [m.get_parameter(n) for n in names] for names in (a, b)))),
    "The right names, but not in the model's order.": (
        groups(lambda _, a, b: (a[::-1], b[::-1])), groups(lambda _, a, b: (sorted(a), sorted(b)))),
    "This is one list. Give a pair of lists: (names that decay, names that do not).":
        (lambda m: [n for n, _ in m.named_parameters()], groups(lambda _, a, b: a + b)),
}  # fmt: skip


@exercise(
    inputs=[(3 * normal(4, 4, seed=1),), (3 * normal(3, 6, seed=2),), (3 * normal(7, 2, seed=3),),
            (normal(1, 5, seed=4),), (torch.diag(torch.tensor([5.0, 0.1])),)],
    clash="Is `full_matrices=False` missing? Or did you turn Vt, which svd gives transposed?",
    praise="all singular values are 1, and the directions are kept.",
    tolerance=1e-3,
)  # fmt: skip
def equalised(matrix):
    """equalised(matrix): U Vᵀ of U Σ Vᵀ, for any shape."""
    U, _, Vt = svd(matrix)
    return U @ Vt


def svd(matrix):
    return torch.linalg.svd(matrix, full_matrices=False)


def of_parts(function):
    return lambda m: function(*svd(m))


def wide(function):
    """Turn what is taller than wide, before and after."""
    return lambda m: function(m) if m.shape[0] <= m.shape[1] else function(m.T).T


def quintic(x):
    """Muon's five multiplications (chapter 09, section 9)."""
    x = x / x.norm()
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


equalised.mistakes = {
    "This is the matrix itself: the singular values are still in it. Leave them out.": torch.clone,
    "This is the matrix divided by its length: all singular values shrink alike. Leave them "
    "out: U Vᵀ.": lambda m: m / m.norm(),
    "The matrix divided by its largest singular value: leave all of them out.":
        lambda m: m / svd(m)[1][0],
    "All singular values are alike, but not 1: U Vᵀ alone.":
        (of_parts(lambda U, S, Vt: U @ Vt * S.mean()), of_parts(lambda U, S, Vt: U @ Vt * S[0])),
    "You cut singular values off at 1: the small ones are small still. Leave them out: U Vᵀ.":
        of_parts(lambda U, S, Vt: U * S.clamp(max=1) @ Vt),
    "These are roots of the singular values.": of_parts(lambda U, S, Vt: U * S.sqrt() @ Vt),
    "These are the signs of the entries. Make the singular values 1, not the entries.": torch.sign,
    "This is the transposed matrix.": lambda m: equalised.right(m).T,
    "You scaled each row to length 1. The rows should also be perpendicular: U Vᵀ.":
        lambda m: m / m.norm(dim=1, keepdim=True),
    "You scaled each column to length 1. Columns should also be perpendicular: U Vᵀ.":
        lambda m: m / m.norm(dim=0, keepdim=True),
    "This is the inverse with the directions turned round: the singular values are 1/σ.":
        lambda m: torch.linalg.pinv(m).T,
    "This is the (pseudo-)inverse: its singular values are 1/σ, not 1.": torch.linalg.pinv,
    "QR gives perpendicular directions, too, but others, which depend on the order of the columns. "
    "Use torch.linalg.svd: U Vᵀ.": (
        lambda m: torch.linalg.qr(m).Q, wide(lambda m: torch.linalg.qr(m.T).Q.T),
        lambda m: (qr := torch.linalg.qr(m)).Q * qr.R.diagonal().sign()),
    "torch.linalg.svd gives Vᵀ already: you turned it.": of_parts(lambda U, S, Vt: U @ Vt.T),
    "You turned U round: U Vᵀ.": of_parts(lambda U, S, Vt: U.T @ Vt),
    "The order is wrong: U Vᵀ, not Vᵀ U.": of_parts(lambda U, S, Vt: Vt @ U),
    "This is U alone. Multiply by Vᵀ.": of_parts(lambda U, S, Vt: U),
    "This is Vᵀ alone. U @ Vt, please.": of_parts(lambda U, S, Vt: Vt),
    "These are the singular values, or all parts.": (svd, of_parts(lambda U, S, Vt: S)),
    "Muon's five multiplications only come near. Use torch.linalg.svd.": wide(quintic),
    "This is the identity. The directions U and Vᵀ should stay.": lambda m: torch.eye(*m.shape),
}  # fmt: skip

OLD = {"heads": 4, "T": 8}
TWO = {"a": 1, "b": 2}


@exercise(
    inputs=[([first, *rest],) for first, *rest in (
        ({"T": 8}, {"T": 8, "heads": 1}, {"T": 8, "heads": 4}, {"T": 16, "heads": 1}),
        ({"T": 8}, {"T": 9}, {"T": 7, "heads": 1}, {"T": 7, "heads": 2}, {"T": 8, "heads": 3}),
        (OLD, OLD | {"T": 16}, {"T": 16}, {"T": 8}, {"T": 8}, OLD),  # far away, one by one
        (OLD, OLD | TWO, OLD | {"b": 2}, OLD),
        (OLD | TWO, OLD, OLD | {"b": 2}),
        ({"T": 8, "a": 1}, {"T": 8, "b": 1}, {"T": 8, "b": 1, "a": 3}),  # one dropped, one added
        ({"T": 8, "a": 1}, {"T": 9}, {"T": 9, "b": 1}, {"T": 8, "b": 1, "a": 3}),
        ({"a": 1}, {"a": 2, "drop": None}, {"a": 2}, {"a": 1}, {"drop": None, "x": None}),
        ({"a": 1}, {"a": 2, "norm": False}, {"a": 2}, {"a": 2, "n": 0, "s": ""}),
        ({"T": 8, "heads": 1}, {"heads": 1, "T": 8}, {"b": 1, "heads": 1, "T": 8}),
        ({"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 3, "c": 1}, {"a": 2, "b": 1, "c": 3}),
        ({"betas": (0.9, 0.95), "steps": 5}, {"betas": (0.9, 0.95), "steps": 6}),
        ({"T": 8},),
    )],
    praise="now you know which steps of a ladder say what brought the gain.",
)  # fmt: skip
def mixed_steps(rungs):
    """mixed_steps(rungs): the numbers of the rungs that change more than one setting."""
    return [i + 1 for i, (a, b) in enumerate(pairwise(rungs)) if changes(a, b, a | b) > 1]


def changes(a, b, names, missing=...):
    return sum(a.get(n, missing) != b.get(n, missing) for n in names)


def counting(count, mixed=lambda n: n > 1):
    """`count` says how many settings change from a to b, `mixed` which numbers are too many."""
    return lambda r: [i + 1 for i, (a, b) in enumerate(pairwise(r)) if mixed(count(a, b))]


def if_changes(mixed):
    return counting(lambda a, b: changes(a, b, a | b), mixed)


def taking(missing):
    return counting(lambda a, b: changes(a, b, a | b, missing))


def unequal(xs, ys):
    return sum(x != y for x, y in zip(xs, ys, strict=False))


def since_the_last_mixed(rungs):
    found, before = [], rungs[0]
    for i, rung in enumerate(rungs[1:], 1):
        if changes(before, rung, before | rung) > 1:
            found.append(i)
            before = rung
    return found


mixed_steps.mistakes = {
    "You compare with the last mixed rung. Compare each with the one before it, mixed or not.":
        since_the_last_mixed,
    "At least one change is not enough: mixed steps have more.": if_changes(lambda n: n >= 1),
    "More than one means two or more: you ask for three.": if_changes(lambda n: n > 2),
    "These have exactly two changes. Three are mixed, too.": if_changes(lambda n: n == 2),
    "These are the steps that are clean, or change nothing: you have it the wrong way round.":
        (if_changes(lambda n: n <= 1), if_changes(lambda n: n == 1)),
    "You compare each rung with the first one. Compare it with the one before it.":
        lambda r: [i for i in range(1, len(r)) if changes(r[0], r[i], r[0] | r[i]) > 1],
    "You compare only the settings that both rungs have. One that was added or dropped is a "
    "change, too.": counting(lambda a, b: changes(a, b, a.keys() & b.keys())),
    "You leave out settings that the later rung no longer has. One that was dropped is a "
    "change, too.": counting(lambda a, b: changes(a, b, b)),
    "You leave out settings that the earlier rung did not have. One that was added is a "
    "change, too.": counting(lambda a, b: changes(a, b, a)),
    "You look only at which settings are there. One with another value is a change, too.":
        counting(lambda a, b: len(a.keys() ^ b.keys())),
    "You compare how many settings there are. One dropped and one added are two changes.": (
        counting(lambda a, b: abs(len(a) - len(b))),
        counting(lambda a, b: changes(a, b, a.keys() & b.keys()) + abs(len(a) - len(b)))),
    "You count a setting with another value twice, as dropped and as added. It is one change.":
        counting(lambda a, b: len(a.items() ^ b.items())),
    "You compare settings by their places. A dictionary's order means nothing: go by the names.": (
        counting(lambda a, b: unequal(a.items(), b.items()) + abs(len(a) - len(b))),
        counting(lambda a, b: unequal(a.values(), b.values()) + abs(len(a) - len(b))),
        counting(lambda a, b: unequal(a.values(), b.values()))),
    "You compare the values without their names. What is each setting before and after?":
        counting(lambda a, b: len(set(a.values()) ^ set(b.values()))),
    "Where a setting is missing you take None for it. But None can be a setting.": taking(None),
    "Where a setting is missing your code takes False, 0 or an empty text for it. But these can be "
    "settings.": (taking(False), taking(""), counting(lambda a, b: sum(
        (a.get(n) or 0) != (b.get(n) or 0) for n in a | b))),
    "You ask whether the values are one object (`is`). Ask whether they are equal: `!=`.":
        counting(lambda a, b: sum(a.get(n, ...) is not b.get(n, ...) for n in a | b)),
    "You find no mixed step at all: is the list filled, and returned at the end?": lambda r: [],
    "These are the numbers of the rungs before the mixed steps. Give those of the later rung.":
        lambda r: [i - 1 for i in mixed_steps.right(r)],
    "You count from 1. The first rung is number 0.":
        lambda r: [i + 1 for i in mixed_steps.right(r)],
    "These are rungs. Give their numbers.": lambda r: [r[i] for i in mixed_steps.right(r)],
    "This is how many there are. Give their numbers.": lambda r: len(mixed_steps.right(r)),
    "These are the numbers of changes. Give the numbers of the rungs with more than one.":
        lambda r: [changes(a, b, a | b) for a, b in pairwise(r)],
    "You stop at the first one: is `return` in the loop?": lambda r: mixed_steps.right(r)[:1],
    "You begin with rung 0, which has none before it: rungs[-1] is the last one.":
        lambda r: [i for i in range(len(r)) if changes(r[i - 1], r[i], r[i - 1] | r[i]) > 1],
    "You leave out the last rung: `range(1, len(rungs))`.": lambda r: mixed_steps.right(r[:-1]),
    "You leave out rung 1.": lambda r: [i for i in mixed_steps.right(r) if i > 1],
}  # fmt: skip


@exercise(
    inputs=[(normal(C, 3 * C, seed=seed),) for C, seed in ((4, 1), (6, 2), (3, 3))],
    praise="three matrices, each turned: GPT-2's weights fit.",
)
def unfuse(c_attn):
    """unfuse(c_attn): (C, 3C) to three (C, C), as nn.Linear wants them."""
    return turned(c_attn.chunk(3, dim=1))


def turned(matrices):
    return [matrix.T for matrix in matrices]


def parts(change):
    """The right matrices, changed."""
    return lambda w: change(*unfuse.right(w))


unfuse.mistakes = {
    "The matrices are not turned. They are square, so nothing complains, and the logits are "
    "wrong: F.linear(x, W) computes x @ W.T.": lambda w: w.chunk(3, 1),
    "Turn each of the three, not only some: F.linear(x, W) computes x @ W.T.":
        (parts(lambda q, k, v: (q, k.T, v.T)), parts(lambda q, k, v: (q, k, v.T))),
    "You took every third column. Queries, keys and values stand side by side, C columns each.":
        lambda w: turned(w[:, i::3] for i in range(3)),
    "You took every third column, and did not turn the matrices. Side by side means C columns "
    "each.": lambda w: [w[:, i::3] for i in range(3)],
    "A reshape to (3, C, C) cuts rows to pieces. Take columns.":
        lambda w: w.reshape(3, len(w), len(w)),
    "You reshaped (C, 3C) to (3, C, C) and turned the pieces: that cuts rows to pieces. Take "
    "columns.": lambda w: w.reshape(3, len(w), len(w)).mT,
    "The order is wrong: queries, keys, values.": parts(lambda q, k, v: (k, q, v)),
    "The order is wrong: values come last.": parts(lambda q, k, v: (q, v, k)),
    "The order is wrong: you begin with the values.":
        (parts(lambda q, k, v: (v, k, q)), parts(lambda q, k, v: (v, q, k))),
    "These are three times the same matrix.": parts(lambda q, k, v: (q, q, q)),
    "This is one matrix still. Cut it in three: query, key, value.": (
        lambda w: w, lambda w: w.T, parts(lambda q, k, v: torch.cat((q, k, v), 1))),
    "You cut the rows in three. Queries, keys and values stand side by side: dim=1.":
        (lambda w: w.tensor_split(3), lambda w: turned(w.tensor_split(3))),
    "You cut pieces of 3 columns. Cut 3 pieces of C columns: `chunk(3, dim=1)`.":
        (lambda w: w.split(3, 1), lambda w: turned(w.split(3, 1))),
}  # fmt: skip
