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


LOSSES = dict(zip(check.TAUS, check.RIGHT, strict=True))


test_other_right_answers_are_right = accepted(
    (check.capitals, [LOSSES, 3]),
    (check.capitals, ({t: torch.tensor(x + 0.004) for t, x in LOSSES.items()}, 3.0)),
    (check.no_repeat, no_repeat_by_sets),
    (check.speeches, ("same", [40, 44, 50], (41, 45, 49))),
    (check.speeches, ("longer", [40, 44, 50], (61, 65, 69))),
)


test_other_mistakes_are_told_by_what_differs = refused(
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
    (check.faults, {**check.FAULTS, "A": "none"}, "A draws words"),
    (check.faults, {**check.FAULTS, "C": "none"}, "C draws one word"),
    (check.faults, {**check.FAULTS, "B": "temperature", "D": "none"}, "Count more often"),
    (check.speeches, ("wider", [40, 44, 50], [61, 65, 69]), "The bet is"),
    (check.speeches, ("longer", [40, 44], [61, 65, 69]), "at least three seeds"),
    (check.speeches, ("longer", [40, 40, 40], [61, 65, 69]), "the same seed"),
)


def test_one_decoder_is_right_and_each_fault_shows():
    logits = torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]).log()
    drawn = {letter: check.draw(letter, logits, 1000) for letter in check.FAULTS}
    assert abs(drawn["B"].count(0) - 800) < 50 and abs(drawn["D"].count(0) - 667) < 50
    assert max(drawn["A"]) > 1 and len(set(drawn["C"])) == 1
