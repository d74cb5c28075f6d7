"""RewardsExplorer on the Python side: its numbers, its verdict, and what is refused."""

import pytest

from explorers.rewards import RewardsExplorer
from studies import results
from studies.learned_judge import recorded

PROBLEMS = [("37+48=", "85."), ("21+12=", "33.")]
START = [["75.", "85.", "85."], ["33.", "33.", "33."]]
END = [["163", "163", "163"], ["33.", "", "99."]]


def run(beta=0.0, **changes):
    one = {
        "beta": beta,
        "carry": [0.25, 0.0],
        "no carry": [1.0, 0.5],
        "score": [-0.04, 6.25],
        "KL": [0.0, 36.0],
        "completions": [START, END],
    }
    return {**one, **changes}


def said(one, **choices):
    return RewardsExplorer(PROBLEMS, [0, 10], [one], **choices)._says()


def test_the_sentence_says_which_way_score_and_accuracy_went():
    assert said(run(), step=0).endswith("KL 0.0. ● This is the policy at the start.")
    assert "the judge's score has risen, but the mean accuracy has fallen" in said(run())
    together = run(carry=[0.25, 0.9], **{"no carry": [1.0, 0.99]})
    assert "score has risen, and the mean accuracy too." in said(together)
    fell = {**together, "score": [0.0, -0.26]}
    assert "score has fallen, but the mean accuracy has risen." in said(fell)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": []}, "1 to 6 problems, not 0"),
        ({"steps": [0, 10, 30]}, "rise by equal amounts"),
        ({"runs": [run(), run()]}, "another β"),
        ({"runs": [{"beta": 0.0, "carry": [0, 1]}]}, "'score' should have the shape"),
        ({"runs": [run(), run(1.0, carry=[0.1])]}, "'carry' should have the shape"),
        ({"runs": [run(KL=[0.0, float("nan")])]}, "finite"),
        ({"runs": [run(carry=[0, 27])]}, "from 0 to 1"),
        ({"runs": [run(completions=[START])]}, "'completions' should have the shape"),
        ({"beta": 0.5}, "beta should be one of 0, not 0.5"),
        ({"step": 5}, "step should be one of 0, 10, not 5"),
    ],
)
def test_what_does_not_fit_is_explained(changes, message):
    right = {"problems": PROBLEMS, "steps": [0, 10], "runs": [run()]}
    with pytest.raises(ValueError, match=message):
        RewardsExplorer(**right | changes)


def test_what_the_study_of_the_learned_judge_recorded_can_be_shown():
    widget = RewardsExplorer(**recorded())
    found = results("learned_judge")
    for beta in (0, 0.2, 1):
        widget.beta = beta
        for step in widget.steps:
            widget.step = step
            for name, value in widget.measures().items():
                measured = found.values(f"β {beta:g}", f"{name} {step}")[0]
                assert value == pytest.approx(measured, abs=1e-4)
