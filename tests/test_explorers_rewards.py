"""RewardsExplorer on the Python side: what it sends, refuses, shows still, and says."""

import warnings

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


LEASHED = run(1.0, carry=[0.25, 0.625], completions=[START, START])


def explorer(**choices):
    return RewardsExplorer(PROBLEMS, [0, 10], [run(), LEASHED], **choices)


def test_it_shows_the_last_step_of_the_first_run_or_what_is_asked_for():
    widget = explorer()
    assert (widget.beta, widget.step) == (0.0, 10)
    assert widget.shown() == END
    assert widget.measures() == {"carry": 0.0, "no carry": 0.5, "score": 6.25, "KL": 36.0}
    assert repr(widget) == ("RewardsExplorer(recorded at β 0, 1, steps 0 to 10: β = 0, step 10)")
    widget = explorer(beta=1, step=0)
    assert widget.shown() == START and widget.measures()["carry"] == 0.25
    widget.step = 10
    assert widget.shown() == START and widget.measures()["carry"] == 0.625


def test_the_sentence_says_which_way_score_and_accuracy_went():
    def said(*runs, **choices):
        return RewardsExplorer(PROBLEMS, [0, 10], runs, **choices)._says()

    assert said(run(), step=0) == (
        "β = 0, step 0: accuracy 0.25 (carry), 1.00 (no carry); judge's score 0.0; KL 0.0. "
        "● This is the policy at the start."
    )
    apart = said(run())
    assert "accuracy 0.00 (carry), 0.50 (no carry); judge's score 6.3; KL 36.0." in apart
    assert "▲ Since step 0, the judge's score has risen, but the mean accuracy has fallen" in apart
    together = run(carry=[0.25, 0.9], **{"no carry": [1.0, 0.99]})
    assert said(together).endswith(
        "● Since step 0, the judge's score has risen, and the mean accuracy too."
    )
    fell = {**together, "score": [0.0, -0.26]}
    assert "judge's score −0.3" in said(fell)
    assert said(fell).endswith(
        "▲ Since step 0, the judge's score has fallen, but the mean accuracy has risen."
    )


@pytest.mark.parametrize("text", ["$x$ <b>", "\x00\r\t\u200b\u202e", "中文🦉\ud800"])
def test_every_text_has_a_still_picture(text):
    said = [[[text, "", "b"]], [["b", text, text]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = {"beta": 0.0, text: [0.0, 1.0], "score": [0, 0], "KL": [0, 0], "completions": said}
        widget = RewardsExplorer([(text, text)], [0, 1], [one])
        assert widget.picture().png()
    assert "\ud800" not in widget.prompts[0] + widget.groups[0] + widget.shown()[0][1]
    assert widget.shown()[0][1] == widget.answers[0]  # still the right one


@pytest.mark.parametrize(
    ("problems", "steps", "runs", "message"),
    [
        ([], [0, 10], [run()], "1 to 6 problems, not 0"),
        ([("1" * 13, "2")] * 2, [0, 10], [run()], "13 characters, more than 12"),
        (PROBLEMS, [0], [run()], "2 to 101 steps, not 1"),
        (PROBLEMS, [0, 10, 30], [run()], "rise by equal amounts"),
        (PROBLEMS, [10, 0], [run()], "rise by equal amounts"),
        (PROBLEMS, [0, 10], [], "1 to 6 runs, not 0"),
        (PROBLEMS, [0, 10], [run(), run()], "another β"),
        (PROBLEMS, [0, 10], [{"beta": 0.0, "score": [0, 1]}], "no 'completions'"),
        (PROBLEMS, [0, 10], [run(a=[0, 0], b=[0, 0])], "1 to 3 accuracies, not 4"),
        (PROBLEMS, [0, 10], [run(), {**run(1.0), "carry": [0.1]}], "1 numbers for 2 steps"),
        (PROBLEMS, [0, 10], [run(KL=[0.0, float("nan")])], "finite"),
        (PROBLEMS, [0, 10], [run(carry=[0, 27])], "from 0 to 1"),
        (PROBLEMS, [0, 10], [run(completions=[START])], "completions of 1 steps, not 2"),
        (PROBLEMS, [0, 10], [run(completions=[START, START[:1]])], "of 1 problems, not 2"),
        (
            PROBLEMS,
            [0, 10],
            [run(completions=[START, [["a"], ["b"]]])],
            "1 completions of a problem, elsewhere 3",
        ),
        (
            PROBLEMS,
            [0, 10],
            [run(completions=[START, [["a" * 9] * 3] * 2])],
            "9 characters, more than 8",
        ),
    ],
)
def test_what_does_not_fit_is_explained(problems, steps, runs, message):
    with pytest.raises(ValueError, match=message):
        RewardsExplorer(problems, steps, runs)


def test_a_run_without_an_accuracy_that_another_one_has_is_refused():
    other = run(1.0)
    del other["carry"]
    with pytest.raises(ValueError, match="'carry' of the run with β = 1"):
        RewardsExplorer(PROBLEMS, [0, 10], [run(), other])


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"beta": 0.5}, "beta should be one of 0, 1, not 0.5"),
        ({"step": 5}, "step should be one of 0, 10, not 5"),
    ],
)
def test_only_what_was_recorded_can_be_shown(choices, message):
    with pytest.raises(ValueError, match=message):
        explorer(**choices)


def test_what_the_study_of_the_learned_judge_recorded_can_be_shown():
    widget = RewardsExplorer(**recorded())
    assert widget.betas == [0, 0.2, 0.5, 1, 2] and widget.groups == ["carry", "no carry"]
    found = results("learned_judge")
    for beta in (0, 0.2, 1):
        widget.beta = beta
        for step in widget.steps:
            widget.step = step
            for name, value in widget.measures().items():
                measured = found.values(f"β {beta:g}", f"{name} {step}")[0]
                assert value == pytest.approx(measured, abs=1e-4)
