"""How an exercise answers back; the exercises themselves are beside this file, one file a chapter.

An exercise is declared once: the right answer, the inputs it is tried on, and the classic mistakes,
each as the code that makes it, under the words that name it::

    @exercise(lambda draw: [(normal(5, seed=1), normal(5, seed=2))], on_success="One number.")
    def dot(a, b):
        "dot(a, b) of two vectors of n entries is one number."
        return a @ b

    dot.slips('''
        You only added. Multiply in pairs first.
            a @ b → a.sum() + b.sum()
    ''')

From this follow the check (`dot(answer)` runs the answer on all inputs, then names the mistake that
gives the same) and its tests: the right answer is right, and each mistake is told by its own words.
An `nn.Module` as the right answer works alike, see `ModuleExercise`. What no single value can judge
(what is drawn at random, say) is a function of the answer under `@checked`, made of `call` and
`expect`; one that judges what an experiment of the learner's gave begins with `reported`.

Messages hold only numbers that do not depend on the machine, so that nbval can compare them.
"""

import hashlib
import html
import inspect
import io
import random
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, singledispatch
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exercises import cells, progress
from exercises.watch import TimeIsUp, calls_of, clock, executed, modules_of, spent, time_limit

SECONDS = 10.0  # what one call of a learner's function may take
ALLOWANCE = 1.2  # times SECONDS: what the judging of a result may take
MOST = 10**6  # entries of a result
# Whoever grades sets it: the answers are then tried on inputs that no learner has seen.
secret = ""
_judging: list[Callable[[], None]] = []  # lets the time of the check that runs begin anew
_LENGTH = 600  # characters of an exception's text or of what was printed
Diagnosis = str
Answer = Callable[..., Any]
Inputs = Sequence[tuple] | Callable[[random.Random], Iterable[tuple]]
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_SHAPE_ERROR = r"must match the size|cannot be multiplied|Expected size for first two dimensions"


class WrongAnswer(Exception):
    """The answer is wrong; the message is the diagnosis that the learner reads.

    detail: what is shown below it. failed: the function that raised an exception, and its
    arguments.
    """

    def __init__(self, message: str, detail: str = "", failed: tuple[Any, tuple] | None = None):
        super().__init__(message)
        self.detail, self.failed = detail, failed


class Unfit(WrongAnswer):
    """A call did not end in time, or changed its input: nothing more is asked of this answer."""


class NotAttempted(Exception):
    """The stub is untouched: it is, returns or raises the placeholder. A message says where one is
    left."""


# --- what is shown ----------------------------------------------------------------------------

_OUTCOMES = {
    "right": ("✔", "#009E73"),
    "not yet": ("✘", "#D55E00"),
    "not attempted": ("…", "#6b7280"),
}


@dataclass(frozen=True, repr=False)
class Report:
    """What a check found, as text for terminals and markup for browsers.

    outcome: "right", "not yet" or "not attempted"; message: what the learner reads, with `code` and
    *emphasis*; done: how much of the chapter is, where that is remembered; detail: how many inputs
    are right, how to repeat the failure, what the answer printed.
    """

    outcome: str
    message: str
    done: str = ""
    detail: str = ""

    def __repr__(self) -> str:
        done = f" ({self.done})" * bool(self.done)
        said = _marked(self.message, lambda code: f"`{code}`", r"\1")
        detail = f"\n{self.detail}" * bool(self.detail)
        return f"{_OUTCOMES[self.outcome][0]} {self.outcome}: {said}{done}{detail}"

    def _repr_html_(self) -> str:
        sign, colour = _OUTCOMES[self.outcome]
        said, detail = (
            _marked(html.escape(text), "<code>{}</code>".format, r"<em>\1</em>").replace(
                "\n", "<br>"
            )
            for text in (self.message, self.detail)
        )
        detail = f"<br>{detail}" * bool(detail)
        done = f"<br><small>{html.escape(self.done)}</small>" * bool(self.done)
        return (
            f'<div style="border-left:4px solid {colour};padding:.3em .8em;margin:.2em 0">'
            f'<b><span style="color:{colour}">{sign}</span> {self.outcome}</b> · '
            f"{said}{detail}{done}</div>"
        )


_EMPHASIS = re.compile(r"(?<![\w*])\*(\w(?:[^*\n]*\w)?)\*(?![\w*])")


def _marked(text: str, code: Callable[[str], str], emphasis: str) -> str:
    """The text with what stands in backticks put through `code`, and elsewhere *this* replaced."""
    parts = enumerate(text.split("`"))
    return "".join(code(part) if i % 2 else _EMPHASIS.sub(emphasis, part) for i, part in parts)


_NOTHING = object()


class Exercise:
    """One exercise: call it with the learner's object to check it."""

    # Is the answer a function or a class, whose inputs depend on the secret, and not a value, such
    # as the result of an experiment?
    judges_code = False

    def __init__(self, check: Callable[[Any], str | None]):
        self.name, self.__doc__ = check.__name__, check.__doc__
        self.topic = check.__module__.rpartition(".")[2]
        self.called = (re.match(r"\w+", self.__doc__ or "") or [self.name])[0]
        self._check = check
        self._failed: tuple = ()

    def __repr__(self) -> str:
        return f"<exercise {self.name}: call it with your answer>"

    def __call__(self, answer: Any = _NOTHING, *more: Any) -> Report:
        """Check `answer`; returns a report that shows itself, and never raises."""
        self._failed = ()
        if answer is _NOTHING or more:
            return Report(
                "not yet",
                f"`check.{self.name}` takes one answer, in its parentheses: "
                f"`check.{self.name}(your_answer)`.",
            )
        if stale := cells.outdated(self.name):
            return Report("not yet", cells.renamed(self.name, guess=True) or stale)
        with _own_surroundings() as printed:
            outcome, message, detail = self._outcome(answer)
        if outcome != "right" and (
            other := cells.renamed(self.name, guess=outcome == "not attempted")
        ):
            return Report("not yet", other)
        if printed.text.strip():
            detail = f"{detail}\nDuring the check your answer printed: {printed}".strip()
        done = self._done(right=outcome == "right")
        return Report(outcome, _clean(message), done, _clean(detail))

    @property
    def failed_input(self) -> tuple:
        """The arguments with which the last answer failed, anew each time; () if it did not."""
        return fresh(self._failed)

    def _done(self, right: bool) -> str:
        """How much of the chapter is done, this answer counted, where that is remembered."""
        try:
            if right:
                progress.remember(self.topic, self.name)
            done = progress.of(self.topic)
        except OSError as error:
            return f"What you have solved could not be remembered: {error}"
        return f"Exercises solved in this chapter: {done}" if done else ""

    def _outcome(self, answer: Any) -> tuple[str, str, str]:
        """The outcome, the message and its detail."""
        began = clock()
        try:
            with time_limit(ALLOWANCE * SECONDS) as begin_anew:
                _judging[:] = [begin_anew]
                return self._judged(answer)
        except TimeIsUp:
            message = (
                f"The check was stopped after {spent(began):.0f} seconds. Is your "
                "answer very slow, or does something in it, or in what it returns, never end?"
            )
            return "not yet", message, ""

    def _judged(self, answer: Any) -> tuple[str, str, str]:
        try:
            _expect_moderate(answer, "Your answer")
            if answer is ...:
                raise NotAttempted
            return "right", self._check(answer) or "Well done.", ""
        except NotAttempted as left:
            untouched = "replace the ... in the cell above and run it, then run this cell again."
            return "not attempted", str(left) or untouched, ""
        except WrongAnswer as diagnosis:
            detail = diagnosis.detail
            if diagnosis.failed and diagnosis.failed[0] is answer:
                self._failed = diagnosis.failed[1]
                detail = f"{detail} {self._try_it()}".strip()
            return "not yet", str(diagnosis), detail
        except (KeyboardInterrupt, TimeIsUp):
            raise
        except BaseException as error:  # an object so odd that comparing it fails
            message = f"Your answer, {_a_kind(answer)}, cannot be checked: {_told(error)}"
            return "not yet", message, ""

    def _try_it(self) -> str:
        """How to repeat the failure in a cell."""
        return f"Try it: `{self.called}(*check.{self.name}.failed_input)`"


@contextmanager
def _own_surroundings() -> Iterator["_Printed"]:
    """What an answer draws is the same each time, and the notebook does not notice: its random
    numbers, its default type and device and its output stay as they were."""
    before = random.getstate(), np.random.get_state()
    numbers = torch.get_default_dtype()
    printed = _Printed()
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.device("cpu"),
            redirect_stdout(printed),
        ):
            _begin_to_draw()
            yield printed
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_default_dtype(numbers)


class _Printed(io.TextIOBase):
    """The beginning of what an answer prints, which may be without end."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text[: _LENGTH + 1 - len(self.text)]
        return len(text)

    def __str__(self) -> str:
        return _cut(self.text.strip())


def _begin_to_draw(seed: int = 0) -> None:
    torch.default_generator.manual_seed(seed)  # torch.manual_seed would touch the GPU's too
    random.seed(seed)
    np.random.seed(seed)


def checked(check: Callable[[Any], str | None]) -> Exercise:
    """An exercise whose check is written by hand: for answers that no single value can judge.

    check: raises `WrongAnswer` with a diagnosis, or returns what is shown after ✔.
    """
    return Exercise(check)


# --- an exercise that is declared -------------------------------------------------------------


class Declared(Exercise):
    """An exercise made of its right answer, inputs and mistakes: see `exercise`."""

    judges_code = True

    # What a declaration may set, see `exercise`.
    on_success = on_shape_error = ""
    why: Sequence[str] = ()
    error_hints: Mapping[str, str] = {}
    example: tuple = ()
    tolerance = 1e-4
    backward = draws = False
    in_words: Callable[[tuple], str] | None = None

    def __init__(self, right: Any, inputs: Inputs, **settings: Any):
        super().__init__(right)
        if unknown := [name for name in settings if not hasattr(self, name)]:
            raise TypeError(f"an exercise has no {', '.join(unknown)}: see `exercise`")
        vars(self).update(settings)
        self.right, self.draw, self._check = right, inputs, self._judge
        self.mistakes: dict[Diagnosis, tuple[Answer, ...]] = {}
        self._more: list[Callable[[Any], None]] = []

    @property
    def inputs(self) -> Sequence[tuple]:
        """The arguments of each call, with a secret others than without."""
        return _inputs(self, secret)

    def also(self, more: Callable[[Any], None]) -> Callable[[Any], None]:
        """Decorator: what else must hold once all values are right; raises WrongAnswer."""
        self._more.append(more)
        return more

    def mistake(self, says: Diagnosis, *answers: Answer) -> None:
        """Add a classic mistake: its diagnosis, and code that makes it.

        The one that is named is the first that gives all wrong results of a learner's answer, and
        at least three quarters of all its results. If there is none, two may have been made at
        once: then it is the one that gives most of the wrong results, if more than half of all.
        """
        self.mistakes[says] = (*self.mistakes.get(says, ()), *answers)

    def slips(self, table: str) -> None:
        """Add mistakes as a table: each diagnosis and, further in, a line for each way to make it.

        A line is for `slip`. One that begins with ; goes on with the line above it.
        """
        for says, line in _table(table):
            self.mistake(says, self.slip(line))

    def slip(self, line: str) -> Answer:
        """The right answer with `old → new`: what stands once in its code, and what takes its place
        (several of them are parted by ` ; `). Or else an expression that is returned instead of it,
        made of the arguments and of `right`, the right answer as a function."""
        names = vars(sys.modules[self.right.__module__])
        if "→" not in line:
            arguments = ", ".join(inspect.signature(self.right).parameters)
            return eval(f"lambda right: lambda {arguments}: ({line})", names)(self.right)
        lines, first = inspect.getsourcelines(self.right)
        above, code = re.split(r"^(?=def |class )", "".join(lines), maxsplit=1, flags=re.MULTILINE)
        for pair in line.split(" ; "):
            old, new = (part.strip() for part in pair.split("→"))
            if code.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} is {code.count(old)} times in its code")
            code = code.replace(old, new)
        made: dict[str, Any] = {}
        code = (
            "\n" * (first - 1 + above.count("\n")) + code
        )  # so that its lines are those of the file
        exec(compile(code, inspect.getfile(self.right), "exec"), names, made)
        (answer,) = made.values()
        return getattr(answer, "forward", answer)  # of a class

    def each_mistake(self) -> Iterator[tuple[Diagnosis, Answer]]:
        for says, wrong in self.mistakes.items():
            yield from ((says, one) for one in wrong)

    def mutants(self) -> Iterator[tuple[Diagnosis, Any]]:
        """(diagnosis, an answer that makes this mistake): for the tests."""
        return self.each_mistake()

    def _judge(self, answer: Any) -> str:
        try:
            self._expect_values(answer, [self._try(answer, given) for given in self.inputs])
        except Unfit:
            raise
        except WrongAnswer as wrong:
            wrong.detail = f"{self._example(answer)} {wrong.detail}".strip()
            raise
        for given in self.inputs if self.backward else ():
            self.expect_backward(answer, given)
        for more in self._more:
            more(answer)
        return self.on_success

    def _expect_values(self, answer: Any, attempts: Sequence["Attempt"]) -> None:
        """Raise WrongAnswer unless all is right: the mistake that explains it, or what differs."""
        wrong = [t for t in attempts if t.error or not same(t.got, t.want, self.tolerance)]
        if not wrong:
            return
        given = next((t for t in wrong if not t.error), wrong[0])
        self._failed = self._arguments(given.given)
        # Where all calls fail, and where only True or False is returned, agreement may be chance.
        chance = given.error or isinstance(given.want, bool)
        least = len(attempts) * (1 if chance else 0.75)
        most, one_of_two = len(attempts) / 2, ""
        for says, mistake in self.each_mistake():
            fits = [t for t in attempts if t.is_given_by(mistake, self.tolerance)]
            explained = sum(t in fits for t in wrong)
            if len(fits) >= least and explained == len(wrong):
                raise WrongAnswer(says, self._try_it())
            if explained > most and not chance:
                most, one_of_two = explained, says
        if one_of_two:
            more = "More than one thing may be off. To begin with: "
            raise WrongAnswer(more + one_of_two, self._try_it())
        first = wrong[0]
        self._failed = self._arguments(first.given)
        right = len(attempts) - len(wrong)
        some = f"{right} of {len(attempts)} inputs are right." if right else ""
        if first.error:
            again = self._try_it() if first.error.failed else ""
            raise WrongAnswer(str(first.error), f"{some} {again}".strip())
        if not self.draws:
            self._expect_the_same_again(answer, first)
        why = "".join(self.why[attempts.index(first) :][:1])
        problem = difference(first.got, first.want, self.what(first.given), self.tolerance)
        raise WrongAnswer(f"{problem} {why}".strip(), f"{some} {self._try_it()}".strip())

    def _example(self, answer: Any) -> str:
        """Whether the example that the task gives comes out right."""
        if not self.example:
            return ""
        right = False
        with suppress(WrongAnswer, NotAttempted):
            tried = self._try(answer, self.example)
            right = not tried.error and same(tried.got, tried.want, self.tolerance)
        return f"The example of the task is {'' if right else 'not '}right."

    def _arguments(self, given: tuple) -> tuple:
        """The arguments of the learner's answer that an attempt's were made of."""
        return given

    def _expect_the_same_again(self, answer: Any, first: "Attempt") -> None:
        again = self._try(answer, first.given, seed=1)
        try:
            alike = not again.error and same(again.got, first.got, self.tolerance)
        except WrongAnswer:  # it is no value at all: what differs will be said of that
            return
        expect(
            alike,
            f"{self.what(first.given)} gave two different results in two calls. Does it draw at "
            "random, or keep something between calls, such as a list as a default value?",
        )

    def what(self, given: tuple) -> str:
        """The call in words: small arguments as they are, large tensors by name and shape."""
        if self.in_words:
            return self.in_words(given)
        names = list(inspect.signature(self.right).parameters)
        large: dict[tuple, list[str]] = {}  # shape → the names of what has it
        for name, x in zip(names, given, strict=False):
            if isinstance(x, Tensor) and x.numel() > 6:
                large.setdefault(tuple(x.shape), []).append(name)
        named = {name for has in large.values() for name in has}
        shown = [n if n in named else _shown(x) for n, x in zip(names, given, strict=False)]
        shapes = ", ".join(f"{', '.join(has)} of shape {shape}" for shape, has in large.items())
        return f"{self.called}({', '.join(shown)}){f' for {shapes}' * bool(shapes)}"

    def _try(self, answer: Any, given: tuple, seed: int = 0) -> "Attempt":
        want = self.right(*fresh(given))
        _begin_to_draw(seed)  # as a mistake does that is compared with it
        try:
            got = call(answer, *given, name=self.called)
            return Attempt(given, want, plain(got))
        except Unfit as error:
            error.detail = f"The call: {self.what(given)}"
            raise
        except WrongAnswer as error:
            return Attempt(given, want, error=self._explained(error))

    def _explained(self, error: WrongAnswer) -> WrongAnswer:
        """An error's own words say little: the hints say what they often mean."""
        for pattern, hint in {_SHAPE_ERROR: self.on_shape_error, **self.error_hints}.items():
            if hint and re.search(pattern, str(error)):
                said = re.sub(r"(?<![?.])$", ".", str(error))
                return WrongAnswer(f"{said} {hint}", failed=error.failed)
        return error

    @torch.enable_grad()  # an answer may have switched it off
    def expect_backward(self, answer: Any, given: tuple) -> None:
        """Raise WrongAnswer unless gradients come back through the answer, and the right ones."""
        try:
            self._expect_gradients(answer, given)
        except WrongAnswer:
            raise
        except Exception as error:
            raise WrongAnswer(
                f"{self.what(given)} has the right values, but no gradient comes back "
                "through it. Compute with tensors only, and make new ones instead of "
                f"changing one in place (as `x += …` does). PyTorch says: {_cut(str(error))}"
            ) from None

    def _expect_gradients(self, answer: Any, given: tuple) -> None:
        """Training must be able to go back through the answer as it does through the right one."""

        def gradients_of(function: Answer) -> list[Tensor | None]:
            args = fresh(given)
            numbers = (x for x in args if isinstance(x, Tensor) and x.is_floating_point())
            leaves = [x.requires_grad_() for x in numbers]
            leaves += [p for m in args if isinstance(m, nn.Module) for p in m.parameters()]
            return gradients(torch.as_tensor(function(*fresh(args))), leaves)

        want = gradients_of(self.right)
        expect_gradients(gradients_of(answer), want, self.what(given))


class ModuleExercise(Declared):
    """The learner's class must have the parameters of the right one and, with the same numbers in
    them, give the same. inputs: (arguments of the class, x, ...); a mistake is a `forward`, given
    the right module and what follows it in the inputs."""

    def _expect_the_same_again(self, answer: Any, first: "Attempt") -> None:
        """A module that is made anew draws other weights."""

    def mutants(self) -> Iterator[tuple[Diagnosis, Any]]:
        for says, wrong in self.each_mistake():
            yield says, type(self.called, (self.right,), {"forward": wrong})

    def _arguments(self, given: tuple) -> tuple:
        made, *rest = given
        return (made.made_of, *rest)

    def _try_it(self) -> str:
        if not self._failed or not isinstance(self._failed[0], tuple):  # made, but not called
            return super()._try_it()
        return (
            f"Try it: `made, *given = check.{self.name}.failed_input; torch.manual_seed(0); "
            f"{self.called}(*made)(*given)`"
        )

    def what(self, given: tuple) -> str:
        made, *rest = given
        settings = getattr(made, "made_of", made)
        shapes = ", ".join(str(tuple(x.shape)) for x in rest if isinstance(x, Tensor))
        return f"{self.called}({', '.join(map(_shown, settings))}) given {shapes}"

    def _try(self, answer: Any, given: tuple, seed: int = 0) -> "Attempt":
        settings, *rest = given
        _begin_to_draw(seed)
        module = call(answer, *settings, name=self.called)
        expect(isinstance(module, nn.Module), f"{self.called} should be made from nn.Module.")
        right = self.right(*settings)
        try:
            _expect_parameters(module, right)
        except WrongAnswer:
            with suppress(WrongAnswer):
                call(module, *rest)  # NotAttempted, if this is the stub, which has no parameters
            raise
        right.load_state_dict(module.state_dict(), strict=False)
        with torch.no_grad():
            want = right(*fresh(rest))
        right.made_of = settings  # for `what`
        again = (right, *rest)
        try:
            got = call(module, *rest, name="Its `forward`")
        except Unfit:
            raise
        except WrongAnswer as error:
            return Attempt(again, want, error=self._explained(error))
        return Attempt(again, want, plain(got))

    def _expect_gradients(self, answer: Any, given: tuple) -> None:
        settings, *rest = given
        module, right = answer(*settings), self.right(*settings)
        right.load_state_dict(module.state_dict(), strict=False)
        names = [name for name, _ in right.named_parameters()]

        def gradients_of(made: nn.Module) -> list[Tensor | None]:
            parameters = dict(made.named_parameters())
            return gradients(made(*fresh(rest)), [parameters[name] for name in names])

        want = gradients_of(right)
        expect_gradients(gradients_of(module), want, self.what(given))


def _expect_parameters(module: nn.Module, right: nn.Module) -> None:
    theirs, ours = ({n: tuple(p.shape) for n, p in m.named_parameters()} for m in (module, right))
    for name, shape in ours.items():
        found = f"has {theirs[name]}" if name in theirs else "is missing: make it in `__init__`"
        expect(theirs.get(name) == shape, f"`{name}` should have shape {shape}, but {found}.")
    extra = sorted(theirs.keys() - ours.keys())
    bias = " Pass `bias=False`." * any(name.endswith("bias") for name in extra)
    named = ", ".join(f"`{name}`" for name in extra)
    expect(not extra, f"Your class has parameters that it should not have: {named}.{bias}")


@cache
def _inputs(one: Declared, secret: str) -> Sequence[tuple]:
    if not callable(one.draw):
        return one.draw
    return list(one.draw(random.Random(f"{secret} {one.right.__module__}.{one.name}")))


def exercise(inputs: Inputs, **settings: Any) -> Callable[[Any], Declared]:
    """Turn the right answer, a function or an nn.Module, into an exercise.

    inputs: the arguments of each call, made of a `random.Random` that draws other numbers for each
        secret, as `normal` and `generator` do in it. The answer gets copies. What is made outside
        of it is the same for each secret: where a seed was searched for, say.
    example: the arguments of the example in the task's text.
    on_success: what is shown after ✔.
    why: for the first inputs, what to add when one is wrong and no mistake explains it.
    on_shape_error: what to add to an error about shapes.
    error_hints: what to add to other errors, by a pattern in their words.
    tolerance: absolute and relative.
    backward: if True, gradients must pass, too.
    draws: if True, the answer draws at random, so two calls may differ.
    in_words: the call, made of the arguments, where `what` would say too much or too little.
    """
    return lambda right: (ModuleExercise if inspect.isclass(right) else Declared)(
        right, inputs, **settings
    )


@dataclass(eq=False)
class Attempt:
    """One input, what is right, and what the answer gave: a value or an error."""

    given: tuple
    want: Any
    got: Any = None
    error: WrongAnswer | None = None

    def is_given_by(self, mistake: Answer, tolerance: float) -> bool:
        """Does the mistake give the same here, or fail in the words in which the answer does?"""
        _begin_to_draw()
        try:
            with torch.no_grad():
                value = plain(mistake(*fresh(self.given)))
        except Exception as error:
            return f" raised {_told(error)}" in str(self.error)
        return self.error is None and same(self.got, value, tolerance)


# --- calling the learner's code ---------------------------------------------------------------


def generator(seed: int) -> torch.Generator:
    """A new generator, which draws the same numbers on every machine, and others for each secret"""
    if secret:
        seed = int.from_bytes(hashlib.sha256(f"{secret} {seed}".encode()).digest()[:6])
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int) -> Tensor:
    """Fresh standard-normal numbers of the given shape, drawn from `generator(seed)`."""
    return torch.randn(shape, generator=generator(seed), dtype=torch.float32)


def call(function: Any, *args: Any, name: str = "Your function") -> Any:
    """Call the learner's function with copies of args; what can go wrong becomes a diagnosis.

    Raises NotAttempted for the untouched stub, WrongAnswer for a non-function, an exception, a
    forgotten `return`, inputs that were modified, and a call that does not end in time.
    """
    if not callable(function):
        raise WrongAnswer(
            f"The check wants the function itself, but got {_a_kind(function)}. "
            "Pass it without parentheses."
        )
    for begin_anew in _judging:  # a slow machine may need long for many calls
        begin_anew()
    given, began = fresh(args), clock()
    name = f"`{name}`" if name.isidentifier() else name
    try:
        with time_limit(SECONDS):
            result = function(*given)
    except TimeIsUp:
        raise Unfit(
            f"{name} was stopped after {spent(began):.0f} seconds. Is there an infinite loop? "
            "Check its exit condition and whether it can ever be met."
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = _told(error)
        # torch, too, raises NotImplementedError, but says for which operation and type.
        untouched = type(error) is NotImplementedError and not str(error)
        if untouched or (isinstance(error, TypeError) and "ellipsis" in said):
            raise NotAttempted from None  # the placeholder itself was computed with
        raise WrongAnswer(f"{name} raised {said}", failed=(function, args)) from None
    for value, what in ((result, "returned"), (given, "made of its input")):
        _expect_moderate(value, f"What {name} {what}")
    if result is ... or (isinstance(result, (tuple, list)) and any(r is ... for r in result)):
        raise NotAttempted
    if result is None:
        raise WrongAnswer(f"{name} returned None: did you forget `return`?")
    for before, after in zip(args, given, strict=True):
        if _state(before) != _state(after):
            kind = "tensor" if isinstance(before, Tensor) else type(before).__name__
            held = before.values() if isinstance(before, dict) else [before]
            inside = not isinstance(before, Tensor) and any(map(_holds_tensors, held))
            also = " and on new tensors" * inside
            raise Unfit(f"{name} changed its input in place: work on a new {kind}{also} instead.")
    return result


def _a_kind(value: Any) -> str:
    """ "an int", "a list"."""
    name = _cut(type(value).__name__)
    return f"{'an' if name[:1] in tuple('AEIOaeio') else 'a'} {name}"


def _clean(text: str) -> str:
    """Without what differs from run to run, and without halves of characters."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    return text.encode("utf-8", "backslashreplace").decode()


def _cut(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"


def _told(error: BaseException) -> str:
    """The exception's name and its text, which may be of any length."""
    said = _cut(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _expect_moderate(value: Any, what: str) -> None:
    """Raise WrongAnswer if a value has more than `MOST` entries, at all depths together: to compare
    or show it would take the memory, and cannot be stopped."""
    waiting, number = [value], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            number += one.numel()
        elif isinstance(one, np.ndarray):
            number += one.size
        elif isinstance(one, Sized):
            number += len(one)
            if number <= MOST and isinstance(one, (list, tuple, dict)):
                held = one.values() if isinstance(one, dict) else one
                waiting += islice(held, MOST)  # one of their own may have no end
        if number > MOST:
            raise WrongAnswer(
                f"{what} has more than {MOST:,} entries: that is too long to be checked."
            )


def fresh(value: Any) -> Any:
    """A copy of arguments; modules and functions among them stay what they are."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, (list, tuple, set)):
        return type(value)(map(fresh, value))
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return value


def _state(value: Any) -> Any:
    """What must be equal before and after a call: the very bytes, since NaN != NaN."""
    if isinstance(value, Tensor):
        content = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        return value.dtype, value.shape, content
    if isinstance(value, (list, tuple)):
        return [_state(item) for item in value]
    if isinstance(value, dict):
        return [(key, _state(item)) for key, item in value.items()]
    if isinstance(value, set):
        return set(value)
    return repr(value) if isinstance(value, (str, int, float)) else None


# --- comparing --------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Arrays as tensors, NumPy's single numbers and fractions as Python's: one kind of each, and a
    copy, since the answer may use its buffer again in the next call."""
    if value is ...:
        raise NotAttempted
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufc":  # texts, or anything
            return plain(value.tolist())
        return torch.from_numpy(np.array(value, order="C"))  # strides may be negative
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (Fraction, Decimal)):
        return float(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, Tensor):
        return value.detach().to_dense().clone().as_subclass(Tensor)
    return value


def tensor(value: Any, what: str) -> Tensor:
    """`value` as a float64 tensor, so that numbers, lists, arrays and tensors can be compared."""
    value = plain(value)
    if isinstance(value, (str, bytes)) or value is None:
        raise WrongAnswer(f"{what} should be numbers, but is {_shown(value):.60}")
    if isinstance(value, list) and any(isinstance(x, Tensor) and x.dim() for x in value):
        raise WrongAnswer(f"{what} is a list of tensors: make one of them with `torch.stack(…)`.")
    try:
        numbers = torch.as_tensor(value).detach()
        if not isinstance(value, Tensor) and numbers.dtype == torch.float32:
            numbers = torch.as_tensor(value, dtype=torch.float64)  # Python's floats, all digits
    except (TypeError, ValueError, RuntimeError):
        raise WrongAnswer(f"{what} should be numbers, but is {_a_kind(value)}") from None
    if numbers.is_complex():
        raise WrongAnswer(f"{what} should be real numbers, but they are complex")
    return numbers.to(torch.float64)


def same(got: Any, want: Any, tolerance: float = 1e-4) -> bool:
    """Is `got` what is wanted? See `difference`."""
    return difference(got, want, "", tolerance) is None


def difference(got: Any, want: Any, what: str, tolerance: float = 1e-4) -> str | None:
    """What is wrong with `got`, in a sentence about `what`; None if nothing is.

    Numbers and tensors are equal in shape and, within `tolerance` (absolute and relative), in
    value; texts, bools and whole numbers to the letter; lists, tuples and dicts entry by entry,
    dicts in any order. What is wanted decides how: a tensor or an array will do for a list of
    numbers, at every depth.
    """
    got, want = plain(got), plain(want)
    if isinstance(want, (Tensor, list)) and isinstance(got, tuple) and got:
        first = isinstance(got[0], (Tensor, list)) and same(got[0], want, tolerance)
        if first or isinstance(want, Tensor):
            alone = ": return the first alone" * first
            one = "tensor" if isinstance(want, Tensor) else "list"
            return f"{what} should be one {one}, but is a tuple of {len(got)}{alone}."
    return _differs(want, got, what, tolerance)


def _should_be(want: Any, got: Any, what: str) -> str:
    got = got.tolist() if isinstance(got, Tensor) else got
    where = ""
    if _shown(want) == _shown(got) and isinstance(want, Sequence):  # cut before they differ
        alike = [same(g, w) for g, w in zip(got, want, strict=False)]
        i = [*alike, False].index(False)
        where, want, got = f" from index {i} on", want[i:], got[i:]
    return f"{what} should be {_shown(want)}{where}, but is {_shown(got)}."


@singledispatch
def _differs(want: Any, got: Any, what: str, tolerance: float) -> str | None:
    """`difference` by the kind of what is wanted; here: a tensor, a number or a list of them."""
    target = tensor(want, what)
    if tolerance <= 1e-4 and _is_whole(want) and _is_whole(got):
        tolerance = 0.0
    try:
        return _numbers_differ(tensor(got, what), target, want, what, tolerance)
    except WrongAnswer as not_numbers:
        return str(not_numbers)


@_differs.register
def _(want: bool, got: Any, what: str, tolerance: float) -> str | None:
    if isinstance(got, Tensor) and got.numel() == 1:
        got = got.item()
    alike = isinstance(got, (bool, int)) and got == want
    return None if alike else _should_be(want, got, what)


@_differs.register(str)
@_differs.register(bytes)
@_differs.register(set)
@_differs.register(type(None))
def _(want: Any, got: Any, what: str, tolerance: float) -> str | None:
    alike = type(got) is type(want) and got == want
    return None if alike else _should_be(want, got, what)


@_differs.register
def _(want: dict, got: Any, what: str, tolerance: float) -> str | None:
    if not isinstance(got, dict):
        return _should_be(want, got, what)
    for key in [*want, *got]:
        if key not in got:
            return f"{what} lacks {key!r}, which should be {_shown(want[key])}."
        if key not in want:
            return f"{what} should have no entry {key!r:.60}."
    found = (difference(got[k], want[k], f"{what}[{k!r}]", tolerance) for k in want)
    return next(filter(None, found), None)


@_differs.register(list)
@_differs.register(tuple)
def _(want: Any, got: Any, what: str, tolerance: float) -> str | None:
    if any(isinstance(w, Tensor) and w.dim() for w in want):
        deepest = max(w.dim() for w in want if isinstance(w, Tensor))
        stacked = isinstance(got, Tensor) and got.dim() > deepest
        parts = list(got) if stacked else got
        if not isinstance(parts, (list, tuple)) or len(parts) != len(want):
            kind = "tensors" if all(isinstance(w, Tensor) for w in want) else "values"
            return f"{what} should be {len(want)} {kind}, but is {_shown(got)}."
        return next(_entries_differ(want, parts, what, tolerance), None)
    entries = _listed(got)
    if _is_numbers(want):
        problem = _differs.dispatch(object)(want, entries, what, tolerance)
        few = _is_whole(want) and tensor(want, what).numel() <= 40
        return _should_be(want, got, what) if problem and few else problem
    fits = isinstance(entries, (list, tuple)) and len(entries) == len(want)
    alike = fits and not any(_entries_differ(want, entries, what, tolerance))
    return None if alike else _should_be(want, got, what)


def _entries_differ(want: Any, got: Any, what: str, tolerance: float) -> Iterator[str]:
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if problem := difference(g, w, f"entry {i} of {what}", tolerance):
            yield problem


def _numbers_differ(
    value: Tensor, target: Tensor, want: Any, what: str, tolerance: float
) -> str | None:
    if value.shape == target.shape and torch.allclose(
        value, target, rtol=tolerance, atol=tolerance, equal_nan=True
    ):
        return None
    if isinstance(want, list) and value.dim() == target.dim() <= 1 and target.numel() <= 40:
        wanted, found = _shown(want), _shown(_whole(value.tolist()))
        if not wanted.endswith("…"):  # what is cut off may be what differs
            within = "" if _is_whole(want) else _within(tolerance)
            return f"{what} should be {wanted}, but is {found}{within}."
    if value.shape != target.shape:
        return f"{what} should have shape {tuple(target.shape)}, but has {tuple(value.shape)}."
    if torch.isfinite(target).all() and not torch.isfinite(value).all():
        return f"{what} contains NaN or infinity."
    return _worst_entry(value, target, what, tolerance)


def _worst_entry(value: Tensor, target: Tensor, what: str, tolerance: float) -> str:
    worst = int(torch.where(value == target, 0.0, (value - target).abs()).argmax())
    place = [int(i) for i in np.unravel_index(worst, value.shape)]
    pair = float(target.flatten()[worst]), float(value.flatten()[worst])
    visible = (d for d in (".3f", ".3e", ".6e") if f"{pair[0]:{d}}" != f"{pair[1]:{d}}")
    digits = next(visible, ".9e")
    where = f" at index {place}" if place else ""
    within = _within(tolerance) if np.isfinite(pair).all() else ""
    if pair[0].is_integer() and pair[1].is_integer():
        digits, within = ",.0f", ""
    elif max(map(abs, pair)) >= 1e7:
        digits = ".6g"
    wanted, found = (f"{x:{digits}}" for x in pair)
    return f"{what} should be {wanted}{where}, but is {found}{within}."


def _within(tolerance: float) -> str:
    return f" (to within {tolerance:g})" if tolerance else ""


def _is_numbers(value: Any) -> bool:
    """Numbers only, all the way down, in lists that a tensor could hold?"""
    if isinstance(value, (list, tuple)):
        return all(map(_is_numbers, value)) and len({np.shape(v) for v in value}) <= 1
    if isinstance(value, Tensor):
        return value.dim() == 0  # tensors of more than that are compared one by one
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """Whole numbers only, all the way down?"""
    if isinstance(value, Tensor):
        return value.dtype in WHOLE
    return all(map(_is_whole, value)) if isinstance(value, (list, tuple)) else type(value) is int


def _listed(value: Any) -> Any:
    """Tensors as lists, at every depth."""
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value.tolist() if isinstance(value, Tensor) else value


def _whole(value: Any) -> Any:
    """Floats without a fraction as whole numbers, at every depth: 3.0 is shown as 3."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 4)
    return value


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, Tensor) or (
        isinstance(value, (list, tuple)) and any(map(_holds_tensors, value))
    )


def _shown(value: Any, most: int = 6) -> str:
    """A value in a sentence; most: of how many numbers a tensor is shown by more than its shape."""
    if isinstance(value, Tensor):
        return str(_whole(value.tolist())) if value.numel() <= most else f"… {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and _holds_tensors(value):
        text = f"[{', '.join(_shown(item, most // len(value)) for item in value)}]"
        return text if len(text) <= 120 else text[:117] + "…"
    if isinstance(value, float):
        return f"{value:.6g}"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = repr(_whole(value) if isinstance(value, list) else value)
    return text if len(text) <= 120 else text[:117] + "…"


def expect(condition: bool, diagnosis: str) -> None:
    """Raise WrongAnswer with the diagnosis unless the condition holds."""
    if not condition:
        raise WrongAnswer(diagnosis)


def diagnose(table: str) -> None:
    """Raise WrongAnswer with the first diagnosis of the table for which one of the conditions holds
    that stand below it, further in, made of what the function that calls this can see."""
    caller = sys._getframe(1)
    for says, condition in _table(table):
        expect(not eval(condition, caller.f_globals | caller.f_locals), says)


def diagnose_letters(
    answer: Any,
    truth: Mapping[str, str],
    upto: str,
    table: str,
    hint: str = "Plant the fault that you suspect, and look.",
) -> None:
    """Judge a dictionary that has, for each key of `truth`, a letter from a to `upto`.

    table: as for `diagnose`; it calls the dictionary `found`. hint: ends what is said of a
    dictionary that is wrong in no way of the table's.
    """
    name = sys._getframe(1).f_code.co_name
    wanted = f'Set {name} to a dictionary with a letter for each, {{"A": "a", "B": "a", …}}.'
    found = reported(answer, dict.fromkeys(truth, "a"), wanted)
    known = {*map(chr, range(ord("a"), ord(upto) + 1)), *truth.values()}.issuperset(found.values())
    expect(known, f"Each of the {len(truth)} should be one of the letters a to {upto}.")
    diagnose(table)
    right = sum(found[key] == letter for key, letter in truth.items())
    expect(right == len(truth), f"{right} of {len(truth)} are right. {hint}")


def _table(text: str) -> Iterator[tuple[str, str]]:
    """(words, line) for each line that stands further in than the words above it."""
    words, ended = "", True
    for line in filter(str.strip, re.sub(r"\n +; ", " ; ", textwrap.dedent(text)).splitlines()):
        if line.startswith(" "):
            yield words, line.strip()
        else:
            words = line if ended else f"{words} {line}"
        ended = line.startswith(" ")


def expect_close(got: Any, want: Any, what: str, *, tolerance: float = 1e-4) -> None:
    """Raise WrongAnswer unless `got` is what is wanted, as `difference` sees it."""
    if problem := difference(got, want, what, tolerance):
        raise WrongAnswer(problem)


def reported(answer: Any, example: Any, wanted: str) -> Any:
    """What a learner reports of an experiment, in the form of the example.

    example: a tuple of parts, a dict with the keys that are asked for, a list of any number of the
    same; at their ends a number, a text or a bool, for what belongs there. Numbers come back as
    floats, whatever kind they are of, texts in small letters; keys that were not asked for are left
    out. wanted: says the form, and is shown, with what does not fit, to whoever has chosen another.

    Raises WrongAnswer, and NotAttempted where a ... is left.
    """
    left = [leaf is ... for leaf in _leaves(answer)]
    if any(left):
        some = (
            "Your answer still has a `...`. Replace it and run that cell, then run this one again."
        )
        raise NotAttempted("" if all(left) else some)
    return _part(answer, example, wanted)


def _leaves(value: Any) -> list[Any]:
    """What is in an answer, at every depth."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, (list, tuple, set)):
        return [value]
    return [leaf for item in value for leaf in _leaves(item)]


def _part(value: Any, example: Any, wanted: str, place: str = "") -> Any:
    value = _listed(plain(value))

    def belongs(what: str, fits: bool) -> None:
        expect(fits, f"{wanted} (Where {what} belongs, yours has {_shown(value)}{place}.)")

    if isinstance(example, dict):
        belongs("a dictionary", isinstance(value, Mapping))
        value = {_listed(plain(key)): item for key, item in value.items()}
        missing = [_shown(key) for key in example if key not in value]
        expect(not missing, f"{wanted} (Yours has nothing for {', '.join(missing)}.)")
        return {
            key: _part(value[key], one, wanted, f" for {_shown(key)}")
            for key, one in example.items()
        }
    if isinstance(example, tuple):
        fits = isinstance(value, (list, tuple)) and len(value) == len(example)
        belongs({2: "a pair", 3: "a triple"}.get(len(example), "a tuple"), fits)
        return tuple(_part(v, one, wanted, place) for v, one in zip(value, example, strict=True))
    if isinstance(example, list):
        belongs("a list", not isinstance(value, Mapping))
        several = value if isinstance(value, (list, tuple, set)) else [value]
        return [_part(item, example[0], wanted, place) for item in several]
    if isinstance(example, str):
        belongs("a text", isinstance(value, str))
        return value.strip().lower()
    if isinstance(example, bool):
        belongs("True or False", same(value, True) or same(value, False))
        return bool(value)
    belongs("a number", isinstance(value, (int, float)) and value == value)  # NaN is none
    return float(value)


# --- how an answer works, where the task asks for more than its values --------------------------


def gradients(out: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients of a weighted sum of `out` at the leaves; None where none comes back."""
    if not out.requires_grad:
        return [None] * len(leaves)
    total = (out * normal(*out.shape, seed=0)).sum()
    return list(torch.autograd.grad(total, leaves, allow_unused=True))


def expect_gradients(
    got: Sequence[Tensor | None], want: Sequence[Tensor | None], what: str
) -> None:
    """Raise WrongAnswer unless the gradients that come back through an answer are right."""
    if any(w is not None for w in want) and all(g is None for g in got):
        raise WrongAnswer(
            f"{what} has the right values, but no gradient comes back through it, so nothing "
            "before it could learn. `.detach()`, `.item()`, `.data`, `no_grad`, NumPy, "
            "`torch.tensor(...)` and `nn.Parameter(...)` cut it: compute with tensors only."
        )
    for g, w in zip(got, want, strict=True):
        if w is None or not w.any():
            continue
        expect(
            g is not None and same(g, w, 1e-3),
            f"{what} has the right values, but {'no' if g is None else 'a wrong'} gradient reaches "
            f"one of its tensors, of shape {tuple(w.shape)}: is it or a part of it cut off, by "
            "`.detach()`, `.item()`, `no_grad`, `torch.tensor(...)` or `nn.Parameter(...)`?",
        )


def expect_no_loop(answer: Any, small: tuple, large: tuple, diagnosis: str) -> None:
    """Raise WrongAnswer if the learner's own code works longer on `large` than on `small`
    arguments, or calls torch more often, as `map(torch.dot, a, b)` does without an instruction of
    theirs."""

    def work(given: tuple) -> tuple[int, int]:
        return executed(answer, *given), calls_of(answer, *given).number

    expect(work(small) == work(large), diagnosis)


def expect_without(answer: Any, given: tuple, names: Sequence[str], diagnosis: str) -> None:
    """Raise WrongAnswer if the answer uses a named function of torch or of gradients' engine."""
    expect(not calls_of(answer, *given).names & set(names), diagnosis)


def expect_no_helpers(answer: Any, given: tuple) -> None:
    """Raise WrongAnswer if a function of the package `helpers` computes a part of it."""
    own = all(module.partition(".")[0] != "helpers" for module in modules_of(answer, *fresh(given)))
    expect(own, "The values are right, but `helpers` computes a part of them: use torch alone.")
