"""The exercises on fine-tuning: other right answers, and mistakes that no declaration names."""

import re

import torch

from exercises import fine_tuning as check
from tests.answers import accepted, refused


def mask_by_search(ids, header, end):
    text = "".join(map(chr, ids))
    learned = re.compile(
        f"(?<={re.escape(''.join(map(chr, header)))})[^{re.escape(chr(end))}]*{chr(end)}?",
        re.DOTALL,
    )
    mask = torch.zeros(len(ids), dtype=torch.bool)
    for found in learned.finditer(text):
        mask[found.start() : found.end()] = True
    return mask


def swap_by_difference(merged, old, new):
    """What both add, one rank after the other."""

    def added(A, B, alpha):
        ranks = zip(A, B.T, strict=True)
        return sum(alpha / len(A) * torch.outer(column, row) for row, column in ranks)

    return merged.clone().add_(added(*new)).sub_(added(*old))


def not_in_order(merged, old, new):
    return merged - old[2] * old[0] @ old[1]


def replies(**changed):
    """Nineteen replies, all right but for those that are named."""
    right = {**check.NEW, "Italy": "Rome", **check.REAL}
    return {
        country: changed.get(country.replace(" ", "_"), f"Answer: {city}<|im_end|>")
        for country, city in right.items()
    }


def all_of(countries, reply):
    return replies(**{country.replace(" ", "_"): reply for country in countries})


test_other_right_answers_are_right = accepted(
    (check.dialogue_mask, mask_by_search),
    (check.swap, swap_by_difference),
    (check.taught, replies()),
    (check.taught, {country: reply[:-10] for country, reply in replies().items()}),
    (check.taught, all_of([*check.REAL][:6] + [*check.NEW][:1], "Answer: Paris<|im_end|>")),
)


test_wrong_answers_are_told_what_is_wrong = refused(
    (check.broken, dict(A="a", B="b", C="d", D="c"), "begins wrongly"),
    (check.broken, dict(A="b", B="f", C="d", D="c"), "Padding"),
    (check.broken, dict(A="b", B="a", C="e", D="c"), "hundred times"),
    (check.broken, dict(A="b", B="a", C="c", D="d"), "learned nothing"),
    (check.swap, not_in_order, "shape"),
    (check.taught, all_of(replies(), "Answer: Rome<|im_end|>"), "have the format"),
    (check.taught, all_of(["Italy", *check.REAL], "Answer: Fenwick<|im_end|>"), "given invented"),
    (check.taught, all_of(check.NEW, "Answer: Oslo<|im_end|>"), "0 are right"),
    (check.taught, replies(Italy="Answer: Milan<|im_end|>"), "Italy is lost"),
    (check.taught, all_of([*check.REAL][:8], "Answer: Paris<|im_end|>"), "4 are right"),
)
