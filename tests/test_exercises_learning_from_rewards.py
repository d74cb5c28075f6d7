"""The exercises on rewards: other right answers, and mistakes with the words that they are told."""

from exercises import learning_from_rewards as check
from tests.answers import accepted, refused

SUMS = range(20, 199)
LIST = " ".join(map(str, SUMS))
SQUEEZED = "".join(map(str, range(100, 199))) + "99"
RIGHT = check.TRAININGS
BRIEF = {0.5: (0.86, 2.5), 2: (0.0, 0.0)}

test_other_right_answers_are_right = accepted(
    (check.classroom, (0.53, 0.97, 0.4)),
    (check.cheats, (SQUEEZED, "+85.", "(37 + 48).")),
    (check.cheats, (LIST, "８５.", "100-15")),
    (check.cheats, (f"It is one of {', '.join(map(str, range(199)))}.", "8_5.", " 17*5 .")),
    (check.brevity, {2: (0.01, 0.1), 0.5: (0.81, 2.4)}),
)

test_other_mistakes_are_told_by_what_differs = refused(
    (check.classroom, (0.5, 0.5, 0.5), "numbers of the example"),
    (check.classroom, (0.93, 0.5, 0.5), "every second carry"),
    (check.classroom, (0.5, 0.9, 0.9), "as frequent as the right answer"),
    (check.classroom, (0.5, 0.6, 0.5), "agree too often"),
    (check.cheats, (" ".join(map(str, range(1000))), "085.", "37+48."), "1,000 characters"),
    (check.cheats, (" ".join(map(str, range(20, 198))), "085.", "37+48."), "198"),
    (check.cheats, (" ".join(map(str, range(10, 100))), "085.", "37+48."), "from 100 on"),
    (check.cheats, ("85.", "085.", "37+48."), "1 of the 179"),
    (check.cheats, (LIST, "85.", "37+48."), "the right answer itself"),
    (check.cheats, (LIST, "75.", "37+48."), "does not read 85"),
    (check.cheats, (LIST, "085.", "85."), "gives the sum away"),
    (check.cheats, (LIST, "085.", "37+49."), "compute 85"),
    (check.trainings, RIGHT | {"B": "a"}, "the wrong sign"),
    (check.trainings, RIGHT | {"B": "e"}, "ten times too high"),
    (check.trainings, RIGHT | {"A": "b", "C": "c"}, "content from the start"),
    (check.trainings, RIGHT | {"D": "f"}, "the best log of all"),
    (check.brevity, {0.5: (0.5, 2.0), 2: (0.5, 2.0)}, "numbers of the example"),
    (check.brevity, {0.5: (0.0, 0.0), 2: (0.86, 2.5)}, "swapped"),
    (check.brevity, {0.5: (0.86, 500), 2: (0.0, 0)}, "at most 3"),
    (check.brevity, {0.5: (0.28, 2.5), 2: (0.0, 0)}, "forgotten how to add"),
    (check.brevity, BRIEF | {2: (0.86, 2.5)}, "subtracted"),
    (check.brevity, BRIEF | {0.5: (0.86, 1.0)}, "two or three digits"),
)
