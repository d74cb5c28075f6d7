"""The exercises of chapter 12: other right answers, and mistakes that no table names."""

import math

import torch

from exercises import generation as check
from tests.answers import accepted, refused


def no_repeat_by_sets(logits, ids, n):
    pieces = {tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)}
    end = ids[len(ids) - n + 1 :] if len(ids) >= n else None
    bad = [end is not None and (*end, t) in pieces for t in range(len(logits))]
    return logits.masked_fill(torch.tensor(bad), -math.inf).numpy()


def typical_by_sorting(probs, p):
    """With a running sum, and a list as the result."""
    values = [x for x in probs.tolist() if x > 0]
    entropy = -sum(x * math.log(x) for x in values)
    order = sorted(
        (i for i, x in enumerate(probs.tolist()) if x > 0),
        key=lambda i: abs(-math.log(probs[i]) - entropy),
    )
    before = probs[order].cumsum(0) - probs[order]
    kept = [i for i, sum_before in zip(order, before, strict=True) if sum_before < p]
    mask = torch.zeros(len(probs)).scatter(0, torch.tensor(kept), 1.0)
    return (probs * mask / (probs * mask).sum()).tolist()


def beam_by_topk(log_probs, start, n, width):
    """In flattened indices."""
    V = len(log_probs)
    ids, scores = torch.tensor([[start]]), torch.zeros(1)
    for _ in range(n):
        longer = (scores[:, None] + log_probs[ids[:, -1]]).flatten()
        scores, best = longer.topk(min(width, len(longer)))
        ids = torch.cat((ids[best // V], (best % V)[:, None]), 1)
    return ids[0]


LOSSES = dict(zip(check.TAUS, check.RIGHT, strict=True))


test_other_right_answers_are_right = accepted(
    (check.capitals, [LOSSES, 3]),
    (check.capitals, ({t: torch.tensor(x + 0.004) for t, x in LOSSES.items()}, 3.0)),
    (check.no_repeat, no_repeat_by_sets),
    (check.typical, typical_by_sorting),
    (check.beam, beam_by_topk),
)


def beam_of_aliases(log_probs, start, n, width):
    """All continuations of a text are the same list."""
    texts = [(0.0, [start])]
    for _ in range(n):
        longer = []
        for score, ids in texts:
            for j, log_p in enumerate(log_probs[ids[-1]].tolist()):
                ids.append(j)
                longer.append((score + log_p, ids))
        texts = sorted(longer, reverse=True)[:width]
    return texts[0][1]


test_other_mistakes_are_told_by_what_differs = refused(
    (check.capitals, LOSSES, "to a pair"),
    (check.capitals, (dict.fromkeys(check.TAUS, 4.773), 3.0), "not the losses in capitals"),
    (check.capitals, (LOSSES, 3.277), "one of the five temperatures"),
    (check.capitals, (LOSSES, 1.0), "another temperature is better"),
    *(
        (check.capitals, (dict(zip(check.TAUS, wrong, strict=True)), 3.0), says)
        for says, wrong in {
            "on the plays as they are": (1.349, 1.363, 1.492, 1.857, 2.497),
            "that the model was trained on": (4.528, 3.543, 3.217, 3.146, 3.376),
            "These are the entropies": (1.298, 2.006, 2.625, 3.413, 3.940),
        }.items()
    ),
    (check.beam, beam_of_aliases, "beam("),
    (check.beam, lambda *given: check.beam.right(*given)[-1], "beam("),
)
