"""The exercises of chapter 06: each known mistake gets its diagnosis, other right answers pass."""

import math

import pytest
import torch

from exercises import multi_head as check
from helpers.attention import attention, causal_mask

# --- right answers that mistakes start from ---


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} features cannot be split evenly over {n_head} heads")
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(out):
    return out.transpose(1, 2).flatten(2)


def multi_head(x, W_q, W_k, W_v, W_o, n_head):
    q, k, v = (split_heads(x @ W, n_head) for W in (W_q, W_k, W_v))
    return merge_heads(attention(q, k, v, causal_mask(x.shape[1]))[0]) @ W_o


def cross_attention(x, source, W_q, W_k, W_v, W_o, n_head):
    q = split_heads(x @ W_q, n_head)
    k, v = split_heads(source @ W_k, n_head), split_heads(source @ W_v, n_head)
    return merge_heads(attention(q, k, v)[0]) @ W_o


def cost(T, C, n_head):
    return 4 * C**2, 4 * T * C**2 + 2 * T**2 * C


def head_distances(maps):
    apart = (maps[:, :, None] - maps[:, None]).abs().sum(-1) / 2
    return apart.mean((0, 3))


def test_other_right_answers_are_right():
    def chunks(x, n_head):
        if x.shape[-1] % n_head:
            raise ValueError("no")
        return torch.stack(x.chunk(n_head, dim=-1), dim=1)

    def cat(out):
        return torch.cat(out.unbind(1), dim=-1)

    def one_by_one(x, W_q, W_k, W_v, W_o, n_head):
        hs = x.shape[-1] // n_head
        outs = []
        for h in range(n_head):
            own = slice(h * hs, (h + 1) * hs)
            q, k, v = x @ W_q[:, own], x @ W_k[:, own], x @ W_v[:, own]
            outs.append(attention(q, k, v, causal_mask(x.shape[1]))[0] @ W_o[own])
        return sum(outs)

    assert check.split_heads(chunks).outcome == "right"
    assert check.merge_heads(cat).outcome == "right"
    assert check.multi_head(one_by_one).outcome == "right"
    assert check.cost(lambda *a: torch.tensor(cost(*a))).outcome == "right"


def a_half_done_split(x, n_head):
    return split_heads(x, n_head) if x.shape[-1] % n_head == 0 else ...


def test_a_placeholder_in_a_branch_is_not_attempted():
    assert check.split_heads(a_half_done_split).outcome == "not attempted"


# --- the known mistakes ---------------------------------------------------------------------------


def says(report, fragment):
    assert report.outcome == "not yet"
    assert fragment in report.message, report.message


def refusing(split):
    """The same split, but with the error that the exercise asks for."""

    def wrapped(x, n_head):
        if x.shape[-1] % n_head:
            raise ValueError("does not divide")
        return split(x, n_head)

    return wrapped


def sizes(x, H):
    return x.shape[0], H, x.shape[1], x.shape[2] // H


def dropped_features(x, n_head):
    hs = x.shape[-1] // n_head
    return x[..., : n_head * hs].unflatten(-1, (n_head, hs)).transpose(1, 2)


def silent(x, n_head):
    if x.shape[-1] % n_head:
        raise ValueError
    return split_heads(x, n_head)


SPLITS = [
    (refusing(lambda x, H: x.view(sizes(x, H))), "cut along the time"),
    (refusing(lambda x, H: x.unflatten(-1, (-1, H)).permute(0, 3, 1, 2)), "wrong order"),
    (refusing(lambda x, H: x.unflatten(-1, (H, -1))), "stand behind the tokens"),
    (refusing(lambda x, H: split_heads(x, H).mT), "(hs, T)"),
    (refusing(lambda x, H: x.view(len(x), H, -1, x.shape[-1])), "cut the time into n_head pieces"),
    (lambda x, H: x.unflatten(-1, (H, -1)).transpose(1, 2), "RuntimeError"),
    (lambda x, H: dropped_features(x, H) if x.shape[-1] != 6 else split_heads(x, H), "9 features"),
    (lambda x, H: split_heads(x, H) if x.shape[-1] >= H else x[:, None], "4 features"),
    (lambda x, H: ValueError("no") if x.shape[-1] % H else split_heads(x, H), "`raise` in place"),
    (dropped_features, "without a word"),
    (silent, "no text"),
]


@pytest.mark.parametrize(("mutant", "fragment"), SPLITS)
def test_mistakes_in_splitting(mutant, fragment):
    says(check.split_heads(mutant), fragment)


def scramble(out):
    B, H, T, hs = out.shape
    return out.reshape(B, T, H * hs)


MERGES = [
    (scramble, "scrambled"),
    (lambda out: out.permute(0, 2, 3, 1).flatten(2), "wrong order"),
    (lambda out: merge_heads(out.flip(1)), "last head comes first"),
    (lambda out: out.mean(1), "averaged"),
    (lambda out: out.sum(1), "added"),
    (lambda out: out.flatten(1, 2), "along the time"),
    (lambda out: out, "should have shape"),
]


@pytest.mark.parametrize(("mutant", "fragment"), MERGES)
def test_mistakes_in_merging(mutant, fragment):
    says(check.merge_heads(mutant), fragment)


def mutant(
    *,
    split=split_heads,
    merge=merge_heads,
    mask=True,
    scale=None,
    dim=-1,
    output=True,
    turn=(),
    turn_output=False,
    roles="xss",
    cross=False,
):
    """Multi-head attention with one mistake; `roles`: where q, k and v come from."""

    def wrong(*args):
        x, *rest = args
        source = rest.pop(0) if cross else x
        *W, W_o, n_head = rest
        given = {"x": x, "s": source}
        W = [w.T if i in turn else w for i, w in enumerate(W)]
        q, k, v = (split(given[r] @ w, n_head) for r, w in zip(roles, W, strict=True))
        scores = q @ k.mT / (x.shape[-1] ** 0.5 if scale == "C" else q.shape[-1] ** 0.5)
        scores = scores * q.shape[-1] ** 0.5 if scale == "none" else scores
        scores = scores / q.shape[-1] ** 0.5 if scale == "twice" else scores
        if mask:
            past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~past, -math.inf)
        out = merge(scores.softmax(dim) @ v)
        return out @ (W_o.T if turn_output else W_o) if output else out

    return wrong


def along_t(x, H):
    return x.reshape(sizes(x, H))


MULTI = [
    (mutant(output=False), "output projection is missing"),
    (mutant(merge=scramble), "scrambled"),
    (mutant(merge=scramble, output=False), "output projection is missing, and the tokens are"),
    (mutant(split=along_t), "cut along the time"),
    (mutant(split=along_t, merge=scramble), "cut along the time"),
    (mutant(split=lambda x, H: x.unflatten(-1, (-1, H)).permute(0, 3, 1, 2)), "wrong order"),
    (mutant(merge=lambda out: out.permute(0, 2, 3, 1).flatten(2)), "In the merge"),
    (mutant(scale="C"), "√C"),
    (mutant(scale="twice"), "scale twice"),
    (lambda x, Q, K, *rest: multi_head(x, K, Q, *rest), "Queries and keys are swapped"),
    (mutant(scale="none"), "scale is missing"),
    (mutant(dim=1), "over the heads"),
    (mutant(dim=1, mask=False), "over the heads"),
    (mutant(dim=-2), "dim -2"),
    (mutant(mask=False), "future is not hidden"),
    (mutant(split=lambda x, H: x[:, None], merge=lambda out: out[:, 0]), "one head of width C"),
    (mutant(turn=(0, 1, 2), turn_output=True), "transposed"),
    (mutant(turn_output=True), "W_o too"),
]


@pytest.mark.parametrize(("wrong", "fragment"), MULTI)
def test_mistakes_in_many_heads(wrong, fragment):
    says(check.multi_head(wrong), fragment)


def crossed(**mistake):
    return mutant(**({"cross": True, "mask": False} | mistake))


CROSS = [
    (crossed(mask=True), "causal mask"),
    (crossed(roles="sxx"), "roles are swapped"),
    (crossed(roles="sxx", mask=True), "roles are swapped"),
    (crossed(roles="xxx"), "never used"),
    (crossed(roles="xxx", mask=True), "never used"),
    (crossed(roles="sss"), "asks itself"),
    (crossed(roles="xxs"), "keys come from x"),
    (crossed(roles="xsx"), "values come from x"),
    (crossed(output=False), "output projection is missing"),
    (crossed(merge=scramble), "scrambled"),
    (crossed(scale="C"), "√C"),
    (crossed(dim=1), "over the heads"),
    (crossed(split=lambda x, H: x[:, None], merge=lambda out: out[:, 0]), "one head of width C"),
]


@pytest.mark.parametrize(("wrong", "fragment"), CROSS)
def test_mistakes_in_cross_attention(wrong, fragment):
    says(check.cross_attention(wrong), fragment)


def test_an_output_that_follows_the_keys_is_seen():
    def follows(x, source, W_q, W_k, W_v, W_o, n_head):
        if x.shape == source.shape:
            return cross_attention(x, source, W_q, W_k, W_v, W_o, n_head)
        return cross_attention(source, x, W_q, W_k, W_v, W_o, n_head)

    says(check.cross_attention(follows), "the output follows the queries")


COSTS = [
    (lambda T, C, H: (3 * C**2, 0), "The output projection is the fourth"),
    (lambda T, C, H: (4 * C**2 * H, 0), "multiplied by the number of heads"),
    (lambda T, C, H: (3 * C * C // H, 0), "those of one head"),
    (lambda T, C, H: (4 * C * C // H, 0), "one head for all"),
    (lambda T, C, H: (4 * C**2 + 4 * C, 0), "no biases"),
    (lambda T, C, H: (4 * C**2, 4 * T * C**2 + T * T * C), "not the weighted sums"),
    (lambda T, C, H: (4 * C**2, 2 * T * T * C), "left out the four projections"),
    (lambda T, C, H: (4 * C**2, 3 * T * C**2 + 2 * T * T * C), "output projection is missing"),
    (lambda T, C, H: (4 * C**2, 4 * T * C**2 + 2 * T * T * C * H), "multiplied by H"),
    (lambda T, C, H: (4 * C**2, 4 * T * C**2 + 2 * T * T * C // H), "a single head's"),
    (lambda T, C, H: (4 * C**2, 8 * T * C**2 + 4 * T * T * C), "twice too much"),
    (lambda T, C, H: (4 * C**2, 4 * C**2 + 2 * T * T * C), "each of the T tokens"),
    (lambda T, C, H: (4 * C**2, 4 * T * C**2 + 2 * T * T * H), "H where hs belongs"),
    (lambda T, C, H: 4 * C**2, "should have shape (2,)"),
    (lambda T, C, H: (4 * C**2, 5), "the multiply-adds of cost(10, 12, 3) should be"),
]


@pytest.mark.parametrize(("wrong", "fragment"), COSTS)
def test_mistakes_in_the_cost(wrong, fragment):
    says(check.cost(wrong), fragment)


def pairs(maps):
    return maps[:, :, None] - maps[:, None]


DISTANCES = [
    (lambda m: pairs(m).abs().sum(-1).mean((0, 3)), "half is missing"),
    (lambda m: pairs(m).sum(-1).mean((0, 3)) / 2, "cancel"),
    (lambda m: pairs(m).abs().mean((0, 3, 4)) / 2, "average over the keys"),
    (lambda m: pairs(m).abs().sum((-1, -2)).mean(0) / 2, "You sum over the rows"),
    (lambda m: pairs(m).abs().sum((0, -1, -2)) / 2, "over the texts and rows"),
    (lambda m: head_distances(m[:1]), "first text only"),
    (lambda m: head_distances(m.mean(0, keepdim=True)), "mean maps"),
    (lambda m: pairs(m).norm(dim=-1).mean((0, 3)), "Euclid"),
    (lambda m: head_distances(m)[0], "should have shape"),
]


@pytest.mark.parametrize(("wrong", "fragment"), DISTANCES)
def test_mistakes_in_the_distances(wrong, fragment):
    says(check.head_distances(wrong), fragment)
