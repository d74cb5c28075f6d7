"""The exercises of chapter 03: each known mistake gets its diagnosis, other right answers pass."""

import pytest
import torch

from exercises import causal_averaging as check
from helpers.attention import causal_mask


def rows(w):
    return w / w.sum(-1, keepdim=True)


def test_a_leak_can_also_be_found_by_cutting_the_future_off():
    def cut(mix, x):
        return any(not torch.allclose(mix(x[:t]), mix(x)[:t]) for t in range(1, len(x)))

    assert check.hears_the_future(cut).outcome == "right"


def counts(x, dim=-2):
    return torch.arange(1, x.shape[dim] + 1)


def lower(T):
    return torch.ones(T, T).tril()


def faded(T, decay):
    places = torch.arange(T)
    return decay ** (places[:, None] - places)


def late_mask(scores):
    return scores.softmax(-1) * causal_mask(scores.shape[-1])


def block(scores, value=-torch.inf):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), value)


def no_present(x):
    return torch.stack([x[: max(t, 1)].mean(0) if t else 0 * x[0] for t in range(len(x))])


def only_the_last(mix, x):
    other = x.clone()
    other[-1] += 1
    return not torch.allclose(mix(other)[:-1], mix(x)[:-1])


def only_the_first(mix, x):
    other = x.clone()
    other[0] += 1
    return not torch.allclose(mix(other)[:0], mix(x)[:0])


def counts_the_present(mix, x):
    other = x.clone()
    other[2] += 1
    return not torch.allclose(mix(other)[:3], mix(x)[:3])


def stops_early(mix, x):
    for t in range(len(x) - 1):
        other = x.clone()
        other[t] += 1
        if not torch.allclose(mix(other)[:t], mix(x)[:t]):
            return True
    return False


def changes(mix, x):
    """For each t the change of the outputs before t, when token t changes."""
    for t in range(1, len(x)):
        other = x.clone()
        other[t] += 1
        yield (mix(other) - mix(x))[:t]


def next_token_only(mix, x):
    return any(change[-1].abs().max() > 1e-6 for change in changes(mix, x))


def one_feature(mix, x):
    return any(change[:, 0].abs().max() > 1e-6 for change in changes(mix, x))


def compares_sums(mix, x):
    return any(change.sum().abs() > 1e-5 for change in changes(mix, x))


def spoils_its_input(mix, x):
    before = mix(x)
    x[3] += 1
    return not torch.allclose(mix(x)[:3], before[:3])


MISTAKES = [
    ("past_mean", lambda x: x.cumsum(0), "These are sums"),
    ("past_mean", lambda x: x.cumsum(0) / len(x), "You divide by T everywhere"),
    ("past_mean", no_present, "leave out the present token"),
    ("past_mean", lambda x: torch.stack([x[:t].mean(0) for t in range(len(x))]), "0 / 0"),
    ("past_mean", lambda x: x.cumsum(0) / torch.arange(len(x))[:, None], "You divide by t"),
    ("past_mean", lambda x: x.mean(0).expand_as(x), "hears the whole sequence"),
    ("past_mean", lambda x: (x.flip(0).cumsum(0) / counts(x)[:, None]).flip(0), "*future*"),
    ("past_mean", lambda x: x.cumsum(1) / counts(x, 1), "over features"),
    ("past_mean", lambda x: x.mean(0), "should have shape (5, 3)"),
    ("past_mean", lambda x: x, "should be"),
    ("mean_weights", lower, "row i sums to i + 1"),
    ("mean_weights", lambda T: lower(T) / lower(T).sum(0), "columns sum to 1"),
    ("mean_weights", lambda T: lower(T) / lower(T).sum(1), "Without keepdim"),
    ("mean_weights", lambda T: torch.ones(T, T) / T, "Every entry is 1/T"),
    ("mean_weights", lambda T: lower(T) / T, "Only your last row sums to 1"),
    ("mean_weights", lambda T: rows(torch.ones(T, T).triu()), "upper triangle"),
    ("mean_weights", lambda T: rows(lower(T)).T, "transpose"),
    ("mean_weights", lambda T: rows(lower(T).tril(-1)), "0 divided by 0"),
    ("mean_weights", lambda T: rows(lower(T).tril(-1)).nan_to_num(), "The diagonal is 0"),
    ("mean_weights", lambda T: rows(lower(4)), "should have shape (7, 7)"),
    ("masked_softmax", lambda s: s.softmax(-1), "no mask"),
    ("masked_softmax", lambda s: block(s, 0.0).softmax(-1), "e⁰ = 1"),
    ("masked_softmax", late_mask, "after the softmax"),
    ("masked_softmax", lambda s: block(s).softmax(-2), "dim −2"),
    ("masked_softmax", lambda s: block(s).softmax(-2 if s.dim() == 2 else 0), "dim −2"),
    ("masked_softmax", lambda s: block(s).softmax(-1 if s.dim() == 2 else 0), "the batch here"),
    ("masked_softmax", lambda s: s.masked_fill(s.new_ones(s.shape).tril(-1) > 0, -torch.inf)
     .softmax(-1), "kept the future"),
    ("masked_softmax", lambda s: block(s, 0.0), "not weights"),
    ("masked_softmax", block, "infinity"),
    ("masked_softmax", lambda s: block(s, -1.0).softmax(-1), "should be"),
    ("masked_softmax", lambda s: block(s, -20.0).softmax(-1), "not exactly 0"),
    ("running_mean", lambda x: x.cumsum(1), "These are running sums"),
    ("running_mean", lambda x: x.cumsum(1) / x.shape[1], "You divide by T everywhere"),
    ("running_mean", lambda x: x.cumsum(0) / counts(x)[:, None], "dim 0, the batch"),
    ("running_mean", lambda x: x.cumsum(2) / counts(x)[:, None], "over the features"),
    ("running_mean", lambda x: x.cumsum(1) / (counts(x)[:, None] - 1), "You divide by 0, 1"),
    ("running_mean", lambda x: x.cumsum(1) / counts(x), "shape (T, 1)"),
    ("running_mean", lambda x: x.mean(1), "should have shape (3, 4, 4)"),
    ("decay_weights", lambda T, d: faded(T, d).tril(), "do not sum to 1 yet"),
    ("decay_weights", lambda T, d: faded(T, d).tril() / faded(T, d).tril().sum(0), "columns sum"),
    ("decay_weights", lambda T, d: rows(d ** torch.arange(T) * lower(T)), "oldest"),
    ("decay_weights", lambda T, d: rows(faded(T, d)), "keep the lower triangle"),
    ("decay_weights", lambda T, d: rows(faded(T, d).tril() + faded(T, d).tril(-1).T), "both ways"),
    ("decay_weights", lambda T, d: rows(lower(T)), "plain mean"),
    ("decay_weights", lambda T, d: rows(faded(T, d).tril(-1)).nan_to_num(), "diagonal is 0"),
    ("decay_weights", lambda T, d: rows(faded(T, 0.5).tril()), "decay_weights(6, 0.8)"),
    ("hears_the_future", lambda mix, x: False, "says False for the mean of the whole"),
    ("hears_the_future", lambda mix, x: True, "says True for the causal mean"),
    ("hears_the_future", only_the_last, "only output 0 hears token 2"),
    ("hears_the_future", only_the_first, "says False for the mean of the whole"),
    ("hears_the_future", counts_the_present, "compare only the outputs before t"),
    ("hears_the_future", stops_early, "let t run to T − 1"),
    ("hears_the_future", next_token_only, "for every t"),
    ("hears_the_future", one_feature, "says False for a mix"),
    ("hears_the_future", compares_sums, "says False for a mix"),
    ("hears_the_future", spoils_its_input, "changed its input"),
    ("hears_the_future", lambda mix, x: 7, "True or False"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "mistake", "fragment"), MISTAKES)
def test_each_mistake_gets_its_own_diagnosis(name, mistake, fragment):
    report = getattr(check, name)(mistake)
    assert report.outcome == "not yet"
    assert fragment in report.message, report.message
