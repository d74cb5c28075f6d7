"""The exercises on thinking longer: other right answers, and mistakes that no table names."""

from exercises import thinking_longer as check
from tests.answers import accepted, refused


def with_counts(model, digits):
    text, cases, changed = "".join(map(str, digits)) + "=", 0, 0
    said = model(text)
    for i, old in enumerate(said[1:-1], 1):
        for new in range(10):
            if str(new) != old:
                cases += 1
                changed += model(f"{text}{said[:i]}{new}")[-1:] != said[-1:]
    return changed / cases


test_other_right_answers_are_right = accepted(
    (check.paid_for, {"A": "D", "B": "C", "C": "A", "D": "E"}),
    (check.price, [0.115, 0.1, 0.15]),
    (check.price, (0.18, 0.15, 0.2)),
    (check.reliance, with_counts),
    (check.maximum, ["needs it", 0.99, 1.0]),
)


def one_digit_only(model, digits):
    text = "".join(map(str, digits)) + "="
    said = model(text)
    return sum(model(text + said[:i] + "0")[-1] != said[-1] for i in range(1, 5)) / 4


test_what_is_wrong_is_explained = refused(
    (check.paid_for, {"A": "d", "B": "b", "C": "a", "D": "e"}, "writes nines"),
    (check.paid_for, {"A": "d", "B": "c", "C": "e", "D": "a"}, "what was meant"),
    (check.paid_for, {"A": "c", "B": "d", "C": "a", "D": "e"}, "stopped writing"),
    (check.paid_for, {"A": "e", "B": "c", "C": "a", "D": "d"}, "Count their tokens"),
    (check.price, [0.08, 0.1, 0.15], "divide by 5"),
    (check.price, [0.02, 0.1, 0.15], "less than 0.19"),
    (check.price, [0.12, 0.2, 0.1], "The second price"),
    (check.price, [0.12, 0.01, 0.05], "pays for itself"),
    (check.price, [0.12, 0.21, 0.25], "5 times 0.2"),
    (check.reliance, one_digit_only, ""),
    (check.maximum, ["yes", 0.99, 1.0], "The bet"),
    (check.maximum, ["does without", 99, 100], "percentages"),
    (check.maximum, ["does without", 0.1, 1.0], "a *sum*"),
    (check.maximum, ["does without", 0.7, 1.0], "close to 1"),
)
