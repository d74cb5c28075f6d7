"""The exercises on encoders and decoders: other right answers, and mistakes that no table names."""

import torch
import torch.nn.functional as F

from exercises import encoders_decoders as check
from studies._seq2seq import pairs_to_ids
from tests.answers import accepted, refused

SOURCE, GIVEN, _ = pairs_to_ids([("abcd", "dcba"), ("wxyz", "zyxw")])


def moves(model, source=SOURCE, given=GIVEN, rows=slice(None), before=None):
    """How far the logits move, of these rows and of positions before this one."""
    return (model(source, given) - model(SOURCE, GIVEN)[rows])[:, :before].abs().max().item()


def by_size(model, slack=1e-4):
    later = GIVEN.clone()
    later[:, 3:] = 7
    if moves(model, given=later, before=3) > slack:
        return "sees the future"
    if moves(model, source=SOURCE.roll(1, 0)) <= slack:
        return "ignores the source"
    if moves(model, SOURCE[1:], GIVEN[1:], slice(1, 2)) > slack:
        return "mixes the texts"
    padded = F.pad(SOURCE, (0, 5))
    return "attends to padding" if moves(model, source=padded) > slack else "sound"


def one_by_one(model):  # what happens to a text in company stays unseen
    def alone(source, given):
        pairs = zip(source, given, strict=True)
        return torch.cat([model(s[None], g[None]) for s, g in pairs])

    return by_size(alone)


def all_positions(model):
    later = GIVEN.clone()
    later[:, -1] = 7
    return "sees the future" if moves(model, given=later) > 1e-4 else "sound"


test_other_right_answers_are_right = accepted(
    (check.diagnosis, by_size),
    (check.batches, [0.9, 0.97, 0.97, "pairs", "pairs"]),
    (check.batches, (0.83, 0.96, 0.97, "wrong answers", "Pairs")),
)

test_what_is_wrong_is_explained = refused(
    (check.diagnosis, lambda model: by_size(model, slack=0), "rounding"),
    (check.diagnosis, one_by_one, "of a batch"),
    (check.diagnosis, all_positions, "where nothing should change"),
    (check.diagnosis, lambda model: "sound", "sees the future"),
    (check.diagnosis, lambda model: "ill", "should return one of"),
    (check.culprits, {**check.RUNS, "A": "padding"}, "after `<`"),
    (check.culprits, {**check.RUNS, "B": "small"}, "as good an answer as any"),
    (check.culprits, {**check.RUNS, "C": "shift"}, "in training that it lacks now"),
    (check.culprits, {**check.RUNS, "D": "padding"}, "company"),
    (check.culprits, {**check.RUNS, "D": "a bug"}, "another name"),
    (check.batches, [90, 97, 97, "pairs", "pairs"], "percentages"),
    (check.batches, [0.97, 0.97, 0.9, "pairs", "pairs"], "The order is"),
    (check.batches, [0.6, 0.7, 0.8, "pairs", "pairs"], "copy.deepcopy"),
    (check.batches, [0.96, 0.97, 0.97, "pairs", "pairs"], "clearly below"),
    (check.batches, [0.9, 0.97, 0.97, "pairs", "wrong answers"], "nine times"),
    (check.batches, [0.9, 0.97, 0.97, "pairs", "both"], "The verdict"),
)


def letter_by_letter(h, states, W, U, v):
    rows = []
    for one in h:
        scores = torch.stack([v @ (W @ one + U @ s).tanh() for s in states])
        rows.append(sum(w * s for w, s in zip(scores.softmax(0), states, strict=True)))
    return torch.stack(rows)


def pair_by_pair(h, states, W, U, v):
    q, k = h @ W.T, states @ U.T
    scores = (q.unsqueeze(1).expand(-1, len(k), -1) + k.unsqueeze(0)).tanh().matmul(v)
    return torch.einsum("ts,sc->tc", scores.softmax(1), states)


test_other_scores_are_right = accepted((check.additive_attention, pair_by_pair))
test_a_loop_is_not = refused((check.additive_attention, letter_by_letter, "without a loop"))
