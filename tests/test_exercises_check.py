"""How exercises answer: three outcomes, useful words, and never an exception."""

import random
import sys
import time
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import exercises
from exercises import check as f
from exercises import watch
from exercises.check import checked, exercise
from exercises.watch import TimeIsUp, executed, time_limit
from helpers.attention import causal_mask


@exercise(inputs=[(f.normal(3, 4, seed=1),), (f.normal(2, 2, seed=2),)], on_success="Every row.")
def row_sums(x):
    """row_sums(x): the sum of each row."""
    return x.sum(1)


row_sums.slips("""
    You summed <columns>.
        1) → 0)
    These are the means of the rows, or of
    the columns.
        right(x) / x.shape[1]
        .sum → .mean
        ; 1) → 0)
""")


@exercise(inputs=[([1.0, 2.0],), ([3.0, 4.0],)])
def halves(numbers):
    """halves(numbers): half of each."""
    return torch.tensor(numbers) / 2


def raises(error):
    def function(*_):
        raise error

    return function


def endless(*_):
    while True:
        pass


# --- what is shown ------------------------------------------------------------------------------


def test_right():
    report = row_sums(lambda x: x.sum(1))
    assert report.outcome == "right"
    assert repr(report) == "✔ right: Every row."
    assert "✔" in report._repr_html_()
    assert repr(checked(lambda answer: None)(1)) == "✔ right: Well done."


@pytest.mark.parametrize(
    "stub",
    [
        ...,
        lambda x: (..., ...),
        lambda x: x + ...,
        lambda x: torch.softmax(..., dim=-1),
        raises(NotImplementedError()),
    ],
)
def test_a_stub_is_not_attempted(stub):
    report = row_sums(stub)
    assert report.outcome == "not attempted"
    assert "replace the ..." in report.message


class Odd:
    def __eq__(self, other):
        raise RuntimeError("odd")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "The check wants the function itself, but got a NoneType"),
        (lambda: 1, "raised TypeError"),
        (lambda x: None, "did you forget `return`?"),
        (lambda x: "seven", "should be numbers, but is 'seven'"),
        (lambda x: (row.sum() for row in x), "should be numbers, but is a generator"),
        (lambda x: [[1.0], [1.0, 2.0]], "should be numbers, but is a list"),
        (lambda x: x.sum(1) / 0, "contains NaN or infinity"),
        (lambda x: x.sum(1) + 1j, "should be real numbers"),
        (lambda x: x, "should have shape (3,), but has (3, 4)"),
        (lambda x: (x.sum(1), x), "return the first alone"),
        (lambda x: x.sum(0), "You summed <columns>."),
        (lambda x: x.sum(1) + torch.arange(len(x)), "at index ["),
        (lambda x: x.zero_().sum(1), "changed its input in place"),
        (raises(ValueError("no <b>")), "raised ValueError: no <b>"),
        (raises(NotImplementedError("softmax for Long")), "softmax for Long"),
        (raises(SystemExit(3)), "raised SystemExit"),
    ],
)
def test_anything_else_is_not_yet_and_says_what_was_seen(answer, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = row_sums(answer)
    assert report.outcome == "not yet"
    assert words in report.message
    assert repr(report).startswith("✘ not yet: ")


def test_a_check_that_stumbles_over_an_odd_object_says_so():
    equal = checked(lambda answer: f.expect(answer == 3, "It is 3."))
    assert equal(4).message == "It is 3."
    assert "an Odd, cannot be checked: RuntimeError: odd" in equal(Odd()).message


def test_what_a_learner_wrote_is_never_read_as_markup():
    markup = row_sums(raises(ValueError("<script>alert(1)</script> & `x < y`\nz")))._repr_html_()
    assert "<script>" not in markup and "&lt;script&gt;" in markup and "&amp;" in markup
    assert "<code>x &lt; y</code><br>z" in markup
    assert "You summed &lt;columns&gt;." in row_sums(lambda x: x.sum(0))._repr_html_()


def test_emphasis_and_code_are_marked_and_nothing_else():
    told = checked(lambda answer: "Of *each column*, not 2 * a * b, `x*y*z` or f(*x, *y) <i>.")(1)
    assert repr(told) == "✔ right: Of each column, not 2 * a * b, `x*y*z` or f(*x, *y) <i>."
    assert (
        "Of <em>each column</em>, not 2 * a * b, <code>x*y*z</code> or f(*x, *y) &lt;i&gt;."
        in told._repr_html_()
    )


def test_what_an_answer_prints_is_shown_as_its_own(capsys):
    def prints(numbers):
        print("<b>", numbers)
        return torch.tensor(numbers) / 2

    report = halves(prints)
    assert report.outcome == "right" and capsys.readouterr().out == ""
    assert report.detail == ("During the check your answer printed: <b> [1.0, 2.0]\n<b> [3.0, 4.0]")
    assert "&lt;b&gt; [1.0, 2.0]<br>" in report._repr_html_()


# --- mistakes, the example, a failure that is repeated ------------------------------------------


def twice(n):
    """twice(n): 2 n."""
    return 2 * n


def test_a_mistake_that_explains_little_is_a_coincidence():
    declared = exercise(inputs=[(0,), (2,), (3,), (4,)])(twice)
    declared.mistake("Squared.", lambda n: n * n)
    assert declared(lambda n: n * n).message == "Squared."
    assert declared(lambda n: n * n if n < 4 else 8).message == "Squared."
    assert declared(lambda n: n * n if n < 4 else 9).message == "twice(3) should be 6, but is 9."
    assert declared(lambda n: 4).message == "twice(0) should be 0, but is 4."
    declared = exercise(inputs=[(n,) for n in range(8)])(twice)
    declared.mistake("Squared.", lambda n: n * n)
    assert declared(lambda n: n * n if n < 5 else 2 * n).message.startswith("twice(1)")


def test_of_two_mistakes_one_is_named():
    declared = exercise(inputs=[(0,), (1,), (3,), (4,), (-1,)])(lambda n: 3 * max(n, 0))
    declared.mistake("Below 0 it is 0.", lambda n: 3 * n)
    declared.mistake("Times 3, not 2.", lambda n: 2 * max(n, 0))
    report = declared(lambda n: 2 * n)
    assert report.message == ("More than one thing may be off. To begin with: Times 3, not 2.")
    assert "Try it" in report.detail and declared.failed_input == (1,)
    assert "should be 3, but is 2" in declared(lambda n: 2 * n if n < 3 else 7).message


def test_a_mistake_that_only_fails_or_only_says_true_is_named_if_it_fits_every_input():
    @exercise(inputs=[([1, 2],), ([1, 2, 3],), ([1, 1],)])
    def falls(numbers):
        "falls(numbers): do they fall?"
        return numbers[0] > numbers[-1]

    def two(numbers):
        a, b = numbers
        return a > b

    falls.mistake("You expect two.", two)
    falls.mistake("You say True to everything.", lambda numbers: True)
    assert falls(two).message == "You expect two."
    assert "raised ValueError: too many" in falls(lambda numbers: two([*numbers, 0])).message
    assert falls(lambda numbers: True).message == "You say True to everything."
    assert "should be False, but is True" in falls(lambda numbers: numbers[1] > 1).message


def test_the_example_of_the_task_is_tried():
    declared = exercise(inputs=[(0,), (4,)], example=(3,))(twice)
    assert declared(lambda n: 6).detail.startswith("The example of the task is right.")
    assert declared(lambda n: n + 1).detail.startswith("The example of the task is not right.")
    assert declared(lambda n: 1 // n).detail.startswith("The example of the task is not right.")
    changes = exercise(inputs=[([4],)], example=([3],))(lambda xs: xs[0])(lambda xs: xs.pop())
    assert changes.message.endswith("changed its input in place: work on a new list instead.")
    assert changes.detail == "The call: <lambda>([4])"  # and nothing of the example


def test_a_table_makes_mistakes_of_the_right_answer():
    means = "These are the means of the rows, or of the columns."
    assert {says: len(made) for says, made in row_sums.mistakes.items()} == {
        "You summed <columns>.": 1,
        means: 2,
    }
    for mean in (lambda x: x.mean(1), lambda x: x.mean(0)):
        assert row_sums(mean).message == means
    for line, times in (("x → y", 3), ("y → x", 0)):
        with pytest.raises(ValueError, match=f"is {times} times in its code"):
            row_sums.slip(line)
    with pytest.raises(ZeroDivisionError) as raised:
        row_sums.slip("x.sum(1) → 1 / 0")(torch.ones(1))
    assert "return x.sum(1)" in str(raised.traceback[-1])  # the place in the file


def test_the_first_diagnosis_that_holds_is_said():
    def check_it(n):
        f.diagnose("""
            It is small,
            or none.
                n < 2
                n == 5
            It is large.
                n > 4
        """)

    check_it(3)
    for n, says in (
        (1, "It is small, or none."),
        (5, "It is small, or none."),
        (6, "It is large."),
    ):
        with pytest.raises(f.WrongAnswer, match=says):
            check_it(n)


def test_an_answer_that_differs_from_call_to_call_is_told_so():
    def collected(xs, kept=[]):  # noqa: B006
        kept += xs
        return kept

    copied = exercise(inputs=[([1, 2],), ([3],)])(lambda xs: xs)
    assert "two different results in two calls" in copied(collected).message
    assert "two different results" in copied(lambda xs: torch.rand(1)).message
    assert copied(lambda xs: [0]).message.endswith("should be [1, 2], but is [0].")
    buffer = torch.zeros(2)
    assert halves(lambda xs: buffer.copy_(torch.tensor(xs) / 2)).outcome == "right"


class Line(nn.Module):
    "Line(n, m): a line."

    def __init__(self, n, m):
        super().__init__()
        self.line = nn.Linear(n, m)

    def forward(self, x):
        return self.line(x)


class TwiceTheLine(Line):
    def forward(self, x):
        return 2 * self.line(x)


line = exercise(inputs=[((2, 1), f.normal(1, 2, seed=1))])(Line)


def test_a_failure_can_be_repeated_in_a_cell():
    def half(numbers):
        return torch.tensor(numbers) / (2 if numbers[0] == 1 else 0)

    report = halves(half)
    assert report.message == "halves([3, 4]) contains NaN or infinity."
    says = "1 of 2 inputs are right. Try it: `halves(*check.halves.failed_input)`"
    assert report.detail == says and says in repr(report)
    assert torch.isinf(half(*halves.failed_input)).all()
    halves.failed_input[0].clear()
    assert halves.failed_input == ([3.0, 4.0],)
    assert "Try it" in halves(lambda numbers: numbers / 2).detail
    assert halves(halves.right).detail == "" and halves.failed_input == ()


def test_a_module_that_differs_is_told_by_its_settings_and_can_be_made_again():
    report = line(TwiceTheLine)
    assert "Line(2, 1) given (1, 2) should be" in report.message
    assert line(lambda *_: nn.Identity()).message == (
        "`line.weight` should have shape (1, 2), but is missing: make it in `__init__`."
    )
    line(TwiceTheLine)
    code = report.detail.split("`")[1].replace("check.Line", "line").split("; ")
    names = {"line": line, "torch": torch, "Line": TwiceTheLine}
    with torch.random.fork_rng():
        exec("; ".join(code[:-1]), names)
        got = eval(code[-1], names).item()
    assert f"but is {got:.3f}" in report.message


# --- calling the learner's code -----------------------------------------------------------------


def test_the_random_stream_is_untouched():
    torch.manual_seed(7)
    want = torch.randn(3)
    torch.manual_seed(7)
    row_sums(lambda x: torch.randn(3) + random.random() * 0)
    assert torch.equal(torch.randn(3), want)
    assert torch.equal(f.normal(2, 3, seed=4), f.normal(2, 3, seed=4))


def test_the_settings_of_the_notebook_decide_nothing_and_stay(monkeypatch):
    @exercise(inputs=[(f.normal(2, 3, seed=1),)], backward=True)
    def projected(x):
        "projected(x): x times ones."
        return x @ torch.ones(3, 2)

    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.no_grad():
            assert projected(lambda x: x @ torch.ones(3, 2)).outcome == "right"
            assert torch.get_default_dtype() == torch.float64 and not torch.is_grad_enabled()
        torch.set_default_device(None)
        cut = projected(lambda x: [torch.set_grad_enabled(False), x @ torch.ones(3, 2)][1])
        assert "no gradient comes back" in cut.message and torch.is_grad_enabled()
        assert f.normal(2, seed=1).dtype == torch.float32
        monkeypatch.delitem(sys.modules, "exercises.scaling", raising=False)
        monkeypatch.delattr(exercises, "scaling", raising=False)
        weights = exercises.scaling.head_weights  # made now
        assert weights(weights.right).outcome == "right"
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("change", "given"),
    [
        (lambda xs: xs[1].add_(1), [torch.ones(2), torch.ones(3)]),
        (lambda xs: xs[0].reverse(), [["a", "b"]]),
        (lambda d: d["x"].append(1), {"x": [1]}),
        (lambda s: s.add(1), set()),
    ],
)
def test_inputs_that_were_changed_are_found_wherever_they_are(change, given):
    with pytest.raises(f.WrongAnswer, match="changed its input"):
        f.call(lambda given: [change(given)] and 1, given)
    assert f.call(lambda *_: 1, given, torch.tensor([torch.nan, torch.inf]), float("nan")) == 1


def test_after_a_call_without_end_no_other_is_made(monkeypatch):
    monkeypatch.setattr(f, "SECONDS", 0.2)
    calls = []

    def answer(n):
        calls.append(n)
        endless()

    report = exercise(inputs=[(1,), (2,), (3,)])(twice)(answer)
    assert "Is there an infinite loop?" in report.message and calls == [1]


def test_many_calls_may_take_longer_than_one(monkeypatch):
    now = stopped_clock(monkeypatch)

    def slowly(n):
        now[:] = [now[0] + 0.9 * f.SECONDS] * 2
        time.sleep(0.05)
        return 2 * n

    assert exercise(inputs=[(n,) for n in range(5)])(twice)(slowly).outcome == "right"


def stopped_clock(monkeypatch):
    """[seconds, seconds of work] of a clock that stands still; it is looked at often."""
    now = [0.0, 0.0]
    monkeypatch.setattr(watch, "clock", lambda: tuple(now))
    monkeypatch.setattr(f, "SECONDS", 0.01)
    return now


def test_only_work_counts_as_time(monkeypatch):
    now = stopped_clock(monkeypatch)
    for passed, worked, spent in [(5, 3, 3), (5, 9, 5), (90, 1, 9)]:
        now[:] = passed, worked
        assert watch.spent((0.0, 0.0)) == spent


def test_an_import_is_not_interrupted(tmp_path, monkeypatch):
    source = "import time\nnow[:] = 99, 99\ntime.sleep(0.2)\nnow[:] = 0, 0\nwhole = 1\n"
    (tmp_path / "slowly_imported.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.now", stopped_clock(monkeypatch), raising=False)

    def answer():
        import slowly_imported

        return slowly_imported.whole

    assert f.call(answer) == 1


# --- comparing ----------------------------------------------------------------------------------

INF = float("inf")
TENSORS = torch.ones(2), torch.zeros(2)


@pytest.mark.parametrize(
    ("got", "want", "words"),
    [
        ([[0.0, -INF], [1.0, 2.0]], [[0.0, -INF], [1.0, 3.0]], "3 at index [1, 1], but is 2."),
        ([1.0, 1.0], [-INF, 1.0], "x should be [-inf, 1], but is [1, 1] (to within 0.0001)."),
        (0.0, 3e-4, "3.000e-04, but is 0.000e+00"),
        ([torch.tensor([1, 2]), [3, 4]], [(1, 2), (3, 4)], None),
        ([(1, 2)], [(1, 2), (3, 4)], "x should be [(1, 2), (3, 4)], but is [(1, 2)]."),
        (torch.tensor([[1, 2]]), [(1, 3)], "x should be [(1, 3)], but is [[1, 2]]."),
        ({"b": 2, "a": 1}, {"a": 1, "b": 2}, None),
        ({"a": 1}, {"a": 1, "b": 2}, "x lacks 'b', which should be 2."),
        ({"a": 1, "c": 0}, {"a": 1}, "x should have no entry 'c'."),
        ({"a": 3}, {"a": 1}, "x['a'] should be 1, but is 3."),
        (torch.tensor(True), True, None),
        (Fraction(1, 2), 0.5, None),
        ((2,), torch.tensor([2.0]), "x should be one tensor, but is a tuple of 1."),
        (1.0, True, "x should be True, but is 1."),
        (124_444_808, 124_439_808, "but is 124,444,808."),
        ([100_005, 3], [100_000, 3], "x should be [100000, 3], but is [100005, 3]."),
        ([True] * 30, [True] * 29 + [False], "should be [False] from index 29 on, but is [True]."),
        (torch.full((40,), 100.0), [100] * 39 + [2], "[2] from index 39 on, but is [100]."),
        ("a" * 200, "a" * 201, "x should be 'a' from index 200 on, but is ''."),
        (np.array(7.0), torch.tensor(7), None),
        (np.array(["a", "b"]), ["a", "b"], None),
        (torch.eye(2).to_sparse(), torch.eye(2), None),
        (torch.tensor(100_001.0), 100_000, None),  # reckoned in float32
        (torch.ones(2, requires_grad=True) * 2, [2.0, 2.0], None),
        ([torch.ones(2), torch.zeros(2)], TENSORS, None),
        (torch.stack(TENSORS), TENSORS, None),
        ((TENSORS[0], torch.ones(2)), TENSORS, "entry 1 of x should be 0 at index [0], but is 1."),
        (torch.ones(3), TENSORS, "x should be 2 tensors, but is [1, 1, 1]."),
        ((torch.ones(3),) * 3, TENSORS, "x should be 2 tensors, but is [… (3,), … (3,), … (3,)]."),
        ((torch.ones(7), 7), (torch.ones(7), torch.tensor(7).item()), None),
        (torch.ones(7), (torch.ones(7), 7), "x should be 2 values, but is … (7,)."),
    ],
)
def test_values_are_compared_by_their_kind(got, want, words):
    found = f.difference(got, want, "x")
    assert found is None if words is None else words in found


def itself():
    result = []
    result.append(result)
    return result


@pytest.mark.parametrize(
    "result",
    [
        lambda: type("Odd", (), {"__len__": endless, "__getitem__": endless})(),
        lambda: range(10**8),
        lambda: [0] * 10**7,
        lambda: "x" * 10**8,
        itself,
        lambda: torch.zeros(1).expand(10**12),
        lambda: "\ud800",
        raises(ValueError("x" * 10**7)),
        endless,
    ],
)
def test_an_odd_result_ends_in_a_short_report(monkeypatch, result):
    monkeypatch.setattr(f, "SECONDS", 0.5)
    report = halves(lambda _: result())
    assert report.outcome == "not yet"
    assert len(report._repr_html_().encode()) < 2_000


# --- what a learner reports ---------------------------------------------------------------------

EXAMPLE = {1: 2.5, 4: 2.5}, "a", [0.1], True, (1.0, 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        ({1: 2, 4: 3.0, 9: "more"}, " A ", (1, 2.0), False, [0, 5]),
        [{1.0: Fraction(2), torch.tensor(4): np.float32(3)}, "a", {1.0, 2.0}, 0, np.array([0, 5])],
    ],
)
def test_a_report_comes_back_in_the_form_of_the_example(answer):
    found = f.reported(answer, EXAMPLE, "Set x to five things.")
    assert found == ({1: 2.0, 4: 3.0}, "a", [1.0, 2.0], False, (0.0, 5.0))
    assert list(found[0]) == [1, 4] and type(found[0][1]) is float and type(found[3]) is bool


@pytest.mark.parametrize(
    ("answer", "example", "says"),
    [
        (3, (1.0, "a"), "Where a pair belongs, yours has 3."),
        ([1.0], {1: 2.5}, "Where a dictionary belongs, yours has [1]."),
        ({1: 2.0}, {1: 2.5, 4: 2.5, "x": 1.0}, "Yours has nothing for 4, 'x'."),
        ({1: "2.0"}, {1: 2.5}, "Where a number belongs, yours has '2.0' for 1."),
        (float("nan"), 2.5, "Where a number belongs, yours has nan."),
        (1, "a", "Where a text belongs, yours has 1."),
        ({0.1: True}, [0.1], "Where a list belongs, yours has {0.1: True}."),
        (2, True, "Where True or False belongs, yours has 2."),
    ],
)
def test_a_report_of_another_form_is_told_what_does_not_fit(answer, example, says):
    with pytest.raises(f.WrongAnswer) as told:
        f.reported(answer, example, "Set x to this.")
    assert str(told.value) == f"Set x to this. ({says})"


def test_a_report_that_is_half_filled_in_says_what_is_left():
    @checked
    def report(answer):
        f.reported(answer, ({"a": 1.0, "b": 1.0}, [2.0]), "Set it.")

    said = report(({"a": 1.0, "b": ...}, [...]))
    assert said.outcome == "not attempted"
    assert said.message.startswith("Your answer still has a `...`.")
    assert report(({"a": ..., "b": ...}, [...])).message.startswith("replace the ... in the cell")


def test_letters_are_judged_one_by_one_after_what_the_table_says_of_them():
    @checked
    def faults(answer):
        f.diagnose_letters(answer, {"A": "b", "B": "a"}, "c", """
            Not both.
                found["A"] == found["B"]
        """, "Look again.")  # fmt: skip

    told = {"bb": "Not both.", "bc": "1 of 2 are right. Look again.", "bA": "Well done.",
            "bd": "Each of the 2 should be one of the letters a to c."}  # fmt: skip
    assert all(faults(dict(zip("AB", two, strict=True))).message == told[two] for two in told)
    assert faults("ba").message.startswith("Set faults to a dictionary with a letter for each")


# --- how an answer works ------------------------------------------------------------------------


def test_helpers_that_run_inside_an_answer_are_noticed():
    f.expect_no_helpers(lambda x: x.softmax(-1), (f.normal(3, 3, seed=1),))
    with pytest.raises(f.WrongAnswer, match="`helpers` computes a part"):
        f.expect_no_helpers(lambda T: list(map(causal_mask, [T])), (3,))


def loops(x):
    return torch.stack([row for row in x])


class CalledLoop:
    def __call__(self, x):
        return loops(x)


class ModuleLoop(nn.Module):
    def forward(self, x):
        return loops(x)


@pytest.mark.parametrize(
    "answer", [loops, partial(torch.no_grad()(loops)), CalledLoop(), ModuleLoop()]
)
def test_nothing_hides_a_loop(answer):
    with pytest.raises(TimeIsUp), time_limit(0.05):  # is counted after a time limit, too
        endless()
    assert 0 < executed(answer, torch.ones(2, 3)) < executed(answer, torch.ones(9, 3))


def test_a_map_hides_no_loop():
    few, many = (torch.ones(2, 3),) * 2, (torch.ones(9, 3),) * 2
    f.expect_no_loop(lambda a, b: (a * b).sum(-1), few, many, "A loop.")
    f.expect_no_loop(lambda a, b: torch.einsum("nc,nc->n", a, b), few, many, "A loop.")
    with pytest.raises(f.WrongAnswer, match="A loop"):
        f.expect_no_loop(lambda a, b: torch.stack([*map(torch.dot, a, b)]), few, many, "A loop.")
