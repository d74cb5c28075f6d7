"""The exercises of "Causal averaging" beyond what their declaration says."""

import numpy as np
import torch

from exercises import causal_averaging as check
from tests.answers import accepted, refused


def probe(change=torch.randn_like, same=torch.allclose, tokens=range, outputs=lambda t: slice(t)):
    """A leaks_the_future; change: what becomes of a token; outputs: those that are compared."""

    def leaks_the_future(mix, x):
        before = mix(x)
        for t in tokens(len(x)):
            changed = x.clone()
            changed[t] = change(x[t])
            if not same(mix(changed)[outputs(t)], before[outputs(t)]):
                return True
        return False

    return leaks_the_future


def cut_off(mix, x):
    return any(not torch.allclose(mix(x[:t]), mix(x)[:t]) for t in range(1, len(x)))


def in_numpy(x, decay):
    out, total, count = [], 0, 0
    for token in x.numpy().astype(float):
        total, count = total * decay + token, count * decay + 1
        out.append(total / count)
    return np.array(out)


def with_matrix(x, decay):
    distance = torch.arange(len(x))[:, None] - torch.arange(len(x))
    weights = (decay**distance).tril()
    return weights / weights.sum(1, keepdim=True) @ x


def one_by_one(x, speaker):
    out = torch.zeros_like(x)
    for t in range(len(x)):
        own = [i for i in range(t + 1) if speaker[i] == speaker[t]]
        out[t] = x[own].mean(0)
    return out


test_there_is_more_than_one_right_answer = accepted(
    (check.mean_by_speaker, one_by_one),
    (check.fading_mean, in_numpy),
    (check.how_far_back, [{8: torch.tensor(2.42), 4: 2.38, 2: 2.32}, 2]),
    (check.leaks_the_future, cut_off),
    (check.leaks_the_future, probe(same=torch.equal)),
    (check.leaks_the_future, probe(lambda token: token + 0.1 * torch.randn_like(token))),
)


def in_one_copy(mix, x):
    changed = x.clone()
    for t in range(len(x)):
        changed[t] = torch.randn_like(x[t])
        if not torch.allclose(mix(changed)[:t], mix(x)[:t]):
            return True
    return False


def compare(measure):
    """A probe that compares no more than this of the outputs."""
    return probe(same=lambda a, b: not len(a) or torch.allclose(measure(a), measure(b), atol=1e-6))


HEARS = check.leaks_the_future


test_a_wrong_answer_is_told_what_is_wrong = refused(
    (check.mean_by_speaker, lambda x, speaker: one_by_one(x.detach(), speaker), "no gradient"),
    (check.fading_mean, with_matrix, "a (T, T) matrix"),
    (check.how_far_back, ({2: 2.32, 4: 2.38, 8: 2.42}, 8), "with the lowest loss"),
    (check.how_far_back, ({2: 4.174, 4: 4.174, 8: 4.174}, 2), "Two of your losses are equal"),
    (check.how_far_back, ({2: 2.3, 4: 2.4, 8: 2.4}, 2), "two decimals"),
    (check.how_far_back, ({2: 2.5, 4: 2.4, 8: 2.3}, 8), "not the losses of this experiment"),
    (check.how_far_back, ({2: 2.588, 4: 2.774, 8: 2.907}, 2), "of an `Averager`"),
    (check.how_far_back, ({2: 2.286, 4: 2.343, 8: 2.389}, 2), "on the training text"),
    (HEARS, lambda mix, x: True, "Does it always say True"),
    (HEARS, lambda mix, x: 7, "True or False"),
    (HEARS, lambda mix, x: probe()(mix, x.float()), "in float64 raised"),
    (HEARS, in_one_copy, "in a fresh copy"),
    (HEARS, probe(tokens=lambda T: [T - 1]), "output 0 depends on token 2"),
    (HEARS, probe(tokens=lambda T: range(2, T)), "output 0 depends on token 1"),
    (HEARS, probe(outputs=lambda t: slice(t + 1)), "compare only the outputs"),
    (HEARS, probe(lambda token: token + 1), "Adding the same"),
    (HEARS, probe(lambda token: token * 2), "Change it to random numbers"),
    (HEARS, probe(lambda token: -token), "a mix of squares"),
    (HEARS, probe(torch.zeros_like), "for an x of zeros"),
    (HEARS, probe(lambda token: token * torch.nan), "0 · ∞"),
    (HEARS, lambda mix, x: probe()(mix, 0 * x), "Change x itself"),
    (HEARS, compare(lambda out: out[:, 0]), "compare all of them"),
    (HEARS, compare(lambda out: out.sum(1)), "cancel in every sum"),
    (HEARS, compare(lambda out: out.norm(dim=1)), "keeps their lengths"),
    (HEARS, compare(lambda out: out.round(decimals=1)), "one part in a thousand"),
)
