"""How an exercise answers back; the exercises themselves are beside this file, one file a chapter.

An exercise is declared once: the right answer, the inputs it is tried on, and the classic mistakes,
each as the code that makes it, under the words that name it::

    @exercise(inputs=[(normal(5, seed=1), normal(5, seed=2))], praise="n products, one sum.")
    def dot(a, b):
        "dot(a, b) of two vectors of n entries is one number."
        return a @ b

    dot.mistakes = {
        "You only added. Multiply in pairs first, then add.": lambda a, b: a.sum() + b.sum(),
    }

From this follow the check (`dot(answer)` runs the answer on all inputs, then names the mistake that
gives the same) and its tests: the right answer is right, and each mistake is told by its own words.
An `nn.Module` as the right answer works alike, see `ModuleExercise`; a right answer without
arguments and inputs=[()] is for an answer that is a value. What no single value can judge (what is
drawn at random, say) is a function of the answer under `@checked`, made of `call` and `expect`; one
that judges what an experiment of the learner's gave begins with `reported`.

Messages hold only numbers that do not depend on the machine, so that nbval can compare them.
"""

import html
import inspect
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exercises import cells, progress
from exercises.watch import TimeIsUp, calls_of, executed, modules_of, time_limit

SECONDS = 10.0  # what one call of a learner's function may take
Diagnosis = str
Answer = Callable[..., Any]
_SHAPES_CLASH = r"must match the size|cannot be multiplied|Expected size for first two dimensions"


class NotYet(Exception):
    """The answer is wrong; the message is the diagnosis that the learner reads."""


class TooLong(NotYet):
    """A call did not end in time: nothing more is asked of this answer."""


class NotAttempted(Exception):
    """The stub is untouched: it is, returns or raises the placeholder."""


# --- what is shown ----------------------------------------------------------------------------

_OUTCOMES = {
    "right": ("✔", "#009E73"),
    "not yet": ("✘", "#D55E00"),
    "not attempted": ("…", "#6b7280"),
}


@dataclass(frozen=True, repr=False)
class Report:
    """What a check found, as text for terminals and markup for browsers.

    outcome: "right", "not yet" or "not attempted"; message: what the learner reads; done: how much
    of the chapter is, where that is remembered.
    """

    outcome: str
    message: str
    done: str = ""

    def __repr__(self) -> str:
        done = f" ({self.done})" * bool(self.done)
        return f"{_OUTCOMES[self.outcome][0]} {self.outcome}: {self.message}{done}"

    def _repr_html_(self) -> str:
        sign, colour = _OUTCOMES[self.outcome]
        parts = html.escape(self.message).replace("\n", "<br>").split("`")
        body = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
        done = f"<br><small>{html.escape(self.done)}</small>" * bool(self.done)
        return (
            f'<div style="border-left:4px solid {colour};padding:.3em .8em;margin:.2em 0">'
            f'<b><span style="color:{colour}">{sign}</span> {self.outcome}</b> · {body}{done}</div>'
        )


class Exercise:
    """One exercise: call it with the learner's object to check it."""

    def __init__(self, check: Callable[[Any], str | None]):
        self.name, self.__doc__ = check.__name__, check.__doc__
        self.topic = check.__module__.rpartition(".")[2]
        self._check = check

    def __repr__(self) -> str:
        return f"<exercise {self.name}: call it with your answer>"

    def __call__(self, answer: Any) -> Report:
        """Check `answer`; returns a report that shows itself, and never raises."""
        if stale := cells.outdated():
            name, error = stale
            return Report(
                "not yet",
                f"the cell that should define `{name}` stopped with {error}, so `{name}` is still "
                "what it was before. Mend that cell and run it, then run this cell again.",
            )
        outcome, message = self._outcome(answer)
        done = self._done(right=outcome == "right")
        return Report(outcome, re.sub(r" at 0x[0-9a-fA-F]+", "", message), done)

    def _done(self, right: bool) -> str:
        """How much of the chapter is done, this answer counted, where that is remembered."""
        if f"{self.topic}.{self.name}" in progress.ALL_BUT:
            return ""
        try:
            if right:
                progress.remember(self.topic, self.name)
            done = progress.of(self.topic)
        except OSError as error:
            return f"what is done could not be remembered: {error}"
        return f"exercises done in this chapter: {done}" if done else ""

    def _outcome(self, answer: Any) -> tuple[str, str]:
        with _own_randomness():
            try:
                if answer is ...:
                    raise NotAttempted
                outcome, message = "right", self._check(answer) or "well done."
            except NotAttempted:
                outcome = "not attempted"
                message = "replace the ... in the cell above and run it, then run this cell again."
            except NotYet as diagnosis:
                outcome, message = "not yet", str(diagnosis)
            except Exception as error:  # an object so odd that comparing it fails
                outcome = "not yet"
                message = (
                    f"your answer, a {type(answer).__name__}, cannot be checked: "
                    f"{type(error).__name__}: {error}"
                )
        return outcome, message


@contextmanager
def _own_randomness() -> Iterator[None]:
    """What an answer draws is the same each time, and the notebook's own draws do not notice."""
    before = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        _begin_to_draw()
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])


def _begin_to_draw(seed: int = 0) -> None:
    torch.default_generator.manual_seed(seed)  # torch.manual_seed would touch the GPU's too
    random.seed(seed)
    np.random.seed(seed)


def checked(check: Callable[[Any], str | None]) -> Exercise:
    """An exercise whose check is written by hand: for answers that no single value can judge.

    check: raises `NotYet` with a diagnosis, or returns what is shown after ✔.
    """
    return Exercise(check)


# --- an exercise that is declared -------------------------------------------------------------


class Declared(Exercise):
    """An exercise made of its right answer, inputs and mistakes: see `exercise`."""

    def __init__(
        self,
        right: Any,
        inputs: Sequence[tuple],
        *,
        praise: str = "",
        why: Sequence[str] = (),
        clash: str = "",
        meaning: Mapping[str, str] | None = None,
        tolerance: float = 1e-4,
        backward: bool = False,
        draws: bool = False,
    ):
        self.right, self.inputs, self.praise = right, inputs, praise
        self.why, self.tolerance, self.backward = why, tolerance, backward
        self.meaning = ({_SHAPES_CLASH: clash} if clash else {}) | dict(meaning or {})
        self.draws = draws
        self.mistakes: Mapping[Diagnosis, Answer | tuple[Answer, ...]] = {}
        self._more: list[Callable[[Any], None]] = []
        super().__init__(self._judge)
        self.name, self.__doc__ = right.__name__, right.__doc__ or ""
        self.topic = right.__module__.rpartition(".")[2]
        self.called = (re.match(r"\w+", self.__doc__) or [self.name])[0]
        self.is_value = not inspect.isclass(right) and not inspect.signature(right).parameters

    def then(self, more: Callable[[Any], None]) -> Callable[[Any], None]:
        """Decorator: what else must hold once all values are right; raises NotYet."""
        self._more.append(more)
        return more

    def each_mistake(self) -> Iterator[tuple[Diagnosis, Answer]]:
        for says, wrong in self.mistakes.items():
            yield from ((says, one) for one in (wrong if isinstance(wrong, tuple) else (wrong,)))

    def mutants(self) -> Iterator[tuple[Diagnosis, Any]]:
        """(diagnosis, an answer that makes this mistake): for the tests."""
        for says, wrong in self.each_mistake():
            yield says, wrong() if self.is_value else wrong

    def _judge(self, answer: Any) -> str:
        self._expect_values(answer, [self._try(answer, given) for given in self.inputs])
        for given in self.inputs if self.backward else ():
            self.expect_backward(answer, given)
        for more in self._more:
            more(answer)
        return self.praise

    def _expect_values(self, answer: Any, tried: Sequence["Tried"]) -> None:
        """Raise NotYet unless all is right: the mistake that explains most, else what differs."""
        wrong = [t for t in tried if t.error or not same(t.got, t.want, self.tolerance)]
        if not wrong:
            return
        given = next((t for t in wrong if not t.error), wrong[0])
        explained = [
            (says, [t for t in tried if t.is_given_by(mistake, self.tolerance)])
            for says, mistake in self.each_mistake()
            if given.is_given_by(mistake, self.tolerance)
        ]
        # What only fails may fail for many reasons, and a True may be chance: all must fit then.
        # Elsewhere what explains less than half, of all or of what is wrong, is a coincidence, and
        # so is what would be wrong, where the answer is right, as often as it explains.
        least = len(tried) if given.error or isinstance(given.want, bool) else len(tried) / 2

        def by_chance(fits: Sequence["Tried"]) -> bool:
            told = sum(t in wrong for t in fits)
            belied = len(tried) - len(wrong) - (len(fits) - told)
            return len(fits) < least or 2 * told < len(wrong) or told <= belied

        explained = [(says, fits) for says, fits in explained if not by_chance(fits)]
        if explained:
            raise NotYet(max(explained, key=lambda found: len(found[1]))[0])
        first = wrong[0]
        if first.error:
            raise NotYet(str(first.error))
        if not self.draws:
            self._expect_the_same_again(answer, first)
        why = self.why[tried.index(first)] if self.why else ""
        problem = difference(first.got, first.want, self.what(first.given), self.tolerance)
        raise NotYet(f"{problem} {why}".strip())

    def _expect_the_same_again(self, answer: Any, first: "Tried") -> None:
        again = self._try(answer, first.given, seed=1)
        try:
            alike = not again.error and same(again.got, first.got, self.tolerance)
        except NotYet:  # it is no value at all: what differs will be said of that
            return
        expect(
            alike,
            f"{self.what(first.given)} gave two different results in two calls. Does it draw at "
            "random, or keep something between calls, such as a list as a default value?",
        )

    def what(self, given: tuple) -> str:
        """The call in words: small arguments as they are, large tensors by name and shape."""
        if self.is_value:
            return self.called
        names = list(inspect.signature(self.right).parameters)
        large: dict[tuple, list[str]] = {}  # shape → the names of what has it
        for name, x in zip(names, given, strict=False):
            if isinstance(x, Tensor) and x.numel() > 6:
                large.setdefault(tuple(x.shape), []).append(name)
        named = {name for has in large.values() for name in has}
        shown = [n if n in named else _shown(x) for n, x in zip(names, given, strict=False)]
        shapes = ", ".join(f"{', '.join(has)} of shape {shape}" for shape, has in large.items())
        return f"{self.called}({', '.join(shown)}){f' for {shapes}' * bool(shapes)}"

    def _try(self, answer: Any, given: tuple, seed: int = 0) -> "Tried":
        want = self.right(*fresh(given))
        _begin_to_draw(seed)  # as a mistake does that is compared with it
        try:
            got = answer if self.is_value else call(answer, *given, name=self.called)
            return Tried(given, want, plain(got))
        except TooLong:
            raise
        except NotYet as error:
            return Tried(given, want, error=self._explained(error))

    def _explained(self, error: NotYet) -> NotYet:
        """An error's own words say little: `clash` and `meaning` say what they often mean."""
        for pattern, meaning in self.meaning.items():
            if re.search(pattern, str(error)):
                said = str(error).rstrip(".")
                return NotYet(f"{said}{'' if said.endswith('?') else '.'} {meaning}")
        return error

    def expect_backward(self, answer: Any, given: tuple) -> None:
        """Raise NotYet unless gradients come back through the answer, and the right ones."""
        try:
            self._expect_gradients(answer, given)
        except NotYet:
            raise
        except Exception as error:
            raise NotYet(
                f"{self.what(given)} has the right values, but no gradient comes back "
                "through it. Compute with tensors only, and make new ones instead of "
                f"changing one in place (as `x += …` does). PyTorch says: {error}"
            ) from None

    def _expect_gradients(self, answer: Any, given: tuple) -> None:
        """Training must be able to go back through the answer as it does through the right one."""

        def gradients(function: Answer) -> list[Tensor | None]:
            args = fresh(given)
            leaves = [x.requires_grad_() for x in args if _is_float(x)]
            leaves += [p for m in args if isinstance(m, nn.Module) for p in m.parameters()]
            out = torch.as_tensor(function(*fresh(args)))
            if not out.requires_grad:
                return [None] * len(leaves)
            out = (out * normal(*out.shape, seed=0)).sum()
            return list(torch.autograd.grad(out, leaves, allow_unused=True))

        expect_gradients(gradients(answer), gradients(self.right), self.what(given))


class ModuleExercise(Declared):
    """The learner's class must have the parameters of the right one and, with the same numbers in
    them, give the same. inputs: (arguments of the class, x, ...); a mistake is a `forward`, given
    the right module and what follows it in the inputs."""

    def _expect_the_same_again(self, answer: Any, first: "Tried") -> None:
        """A module that is made anew draws other weights."""

    def mutants(self) -> Iterator[tuple[Diagnosis, Any]]:
        for says, wrong in self.each_mistake():
            yield says, type(self.name, (self.right,), {"forward": wrong})

    def what(self, given: tuple) -> str:
        made, *rest = given
        settings = getattr(made, "made_of", made)
        shapes = ", ".join(str(tuple(x.shape)) for x in rest if isinstance(x, Tensor))
        return f"{self.called}({', '.join(map(_shown, settings))}) given {shapes}"

    def _try(self, answer: Any, given: tuple, seed: int = 0) -> "Tried":
        settings, *rest = given
        module = call(answer, *settings, name=self.called)
        expect(isinstance(module, nn.Module), f"{self.called} should be made from nn.Module.")
        right = self.right(*settings)
        try:
            _expect_parameters(module, right)
        except NotYet:
            with suppress(NotYet):
                call(module, *rest)  # NotAttempted, if this is the stub, which has no parameters
            raise
        before = {name: id(p) for name, p in module.named_parameters()}
        right.load_state_dict(module.state_dict(), strict=False)
        with torch.no_grad():
            want = right(*fresh(rest))
        right.made_of = settings  # for `what`
        again = (right, *rest)
        try:
            got = call(module, *rest, name="its forward")
        except TooLong:
            raise
        except NotYet as error:
            return Tried(again, want, error=self._explained(error))
        expect(
            before == {name: id(p) for name, p in module.named_parameters()},
            "The parameters are made anew in each call of `forward`, so nothing could be learnt. "
            "Make them in `__init__`.",
        )
        return Tried(again, want, plain(got))

    def _expect_gradients(self, answer: Any, given: tuple) -> None:
        settings, *rest = given
        module, right = answer(*settings), self.right(*settings)
        right.load_state_dict(module.state_dict(), strict=False)
        names = [name for name, _ in right.named_parameters()]

        def gradients(of: nn.Module) -> list[Tensor | None]:
            out = of(*fresh(rest))
            if not out.requires_grad:
                return [None] * len(names)
            parameters = dict(of.named_parameters())
            out = (out * normal(*out.shape, seed=0)).sum()
            return list(torch.autograd.grad(out, [parameters[n] for n in names], allow_unused=True))

        expect_gradients(gradients(module), gradients(right), self.what(given))


def _expect_parameters(module: nn.Module, right: nn.Module) -> None:
    theirs, ours = (
        {name: tuple(p.shape) for name, p in m.named_parameters(remove_duplicate=False)}
        for m in (module, right)
    )
    for name, shape in ours.items():
        expect(name in theirs, f"The parameter {name} {shape} is missing: make it in `__init__`.")
        found = theirs[name]
        expect(found == shape, f"{name} should have shape {shape}, but has {found}.")
    extra = sorted(theirs.keys() - ours.keys())
    expect(not extra, f"There is a parameter too many: {', '.join(extra)}.")
    first: dict[int, str] = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        other = first.setdefault(id(p), name)
        expect(other == name, f"{other} and {name} are one and the same: each needs its own.")


def exercise(inputs: Sequence[tuple], **settings: Any) -> Callable[[Any], Declared]:
    """Turn the right answer, a function or an nn.Module, into an exercise.

    inputs: the arguments of each call; the answer gets copies. praise: shown after ✔; why: for each
    input, what to add when it is wrong and no mistake explains it; clash: what to add when shapes
    do not go together; meaning: what to add to other errors, by a pattern in their words;
    tolerance: absolute and relative; backward: must gradients pass, too? draws: is the answer to
    draw at random, so that two calls may differ?
    """
    return lambda right: (ModuleExercise if inspect.isclass(right) else Declared)(
        right, inputs, **settings
    )


@dataclass(eq=False)
class Tried:
    """One input, what is right, and what the answer gave: a value or an error."""

    given: tuple
    want: Any
    got: Any = None
    error: NotYet | None = None

    def is_given_by(self, mistake: Answer, tolerance: float) -> bool:
        """Does the mistake give the same here, or fail in the words in which the answer does?"""
        _begin_to_draw()
        try:
            with torch.no_grad():
                value = plain(mistake(*fresh(self.given)))
        except Exception as error:
            return f" raised {type(error).__name__}: {error}" in str(self.error)
        return self.error is None and same(self.got, value, tolerance)


# --- calling the learner's code ---------------------------------------------------------------


def normal(*shape: int, seed: int) -> Tensor:
    """Fresh standard-normal numbers of the given shape, the same on every machine."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def call(function: Any, *args: Any, name: str = "your function") -> Any:
    """Call the learner's function with copies of args; what can go wrong becomes a diagnosis.

    Raises NotAttempted for the untouched stub, NotYet for a non-function, an exception, a
    forgotten `return`, inputs that were modified, and a call that does not end in time.
    """
    if not callable(function):
        raise NotYet(
            f"the check wants the function itself, but got a {type(function).__name__}. "
            "Pass it without parentheses."
        )
    given = fresh(args)
    try:
        with time_limit(SECONDS):
            result = function(*given)
    except TimeIsUp:
        raise TooLong(
            f"{name} was stopped after {SECONDS:g} seconds: does a loop never end? Look at what "
            "ends it, and whether that can come."
        ) from None
    except (Exception, SystemExit) as error:
        # torch, too, raises NotImplementedError, but says for which operation and type.
        untouched = type(error) is NotImplementedError and not str(error)
        if untouched or (isinstance(error, TypeError) and "ellipsis" in str(error)):
            raise NotAttempted from None  # the placeholder itself was computed with
        raise NotYet(f"{name} raised {type(error).__name__}: {error}") from None
    if result is ... or (isinstance(result, (tuple, list)) and any(r is ... for r in result)):
        raise NotAttempted
    if result is None:
        raise NotYet(f"{name} returned None: did you forget `return`?")
    for before, after in zip(args, given, strict=True):
        if _state(before) != _state(after):
            kind = "tensor" if isinstance(before, Tensor) else type(before).__name__
            held = before.values() if isinstance(before, dict) else [before]
            inside = not isinstance(before, Tensor) and any(map(_holds_tensors, held))
            also = " and on new tensors" * inside
            raise NotYet(f"{name} changed its input in place: work on a new {kind}{also} instead.")
    return result


def fresh(value: Any) -> Any:
    """A copy of arguments; modules and functions among them stay what they are."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, (list, tuple, set)):
        copies = map(fresh, value)
        return type(value)(*copies) if hasattr(value, "_fields") else type(value)(copies)
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
    """Arrays as tensors, NumPy's single numbers and fractions as Python's: one kind of each."""
    if value is ...:
        raise NotAttempted
    if isinstance(value, np.ndarray) and value.dtype != object:
        return torch.from_numpy(np.ascontiguousarray(value))  # strides may be negative
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (Fraction, Decimal)):
        return float(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value.detach() if isinstance(value, Tensor) else value


def tensor(value: Any, what: str) -> Tensor:
    """`value` as a float64 tensor, so that numbers, lists, arrays and tensors can be compared."""
    value = plain(value)
    if isinstance(value, (str, bytes)) or value is None:
        raise NotYet(f"{what} should be numbers, but is {value!r:.60}")
    if isinstance(value, list) and any(isinstance(x, Tensor) and x.dim() for x in value):
        raise NotYet(f"{what} is a list of tensors: make one of them with `torch.stack(…)`.")
    try:
        numbers = torch.as_tensor(value).detach()
        if not isinstance(value, Tensor) and numbers.dtype == torch.float32:
            numbers = torch.as_tensor(value, dtype=torch.float64)  # Python's floats, all digits
    except (TypeError, ValueError, RuntimeError):
        raise NotYet(f"{what} should be numbers, but is a {type(value).__name__}") from None
    if numbers.is_complex():
        raise NotYet(f"{what} should be real numbers, but they are complex")
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
    wrong = f"{what} should be {_shown(want)}, but is {_shown(got)}."
    if isinstance(want, (Tensor, list)) and isinstance(got, tuple) and got:
        first = isinstance(got[0], (Tensor, list)) and same(got[0], want, tolerance)
        if first or isinstance(want, Tensor):
            alone = ": return the first alone" * first
            one = "tensor" if isinstance(want, Tensor) else "list"
            return f"{what} should be one {one}, but is a tuple of {len(got)}{alone}."
    if isinstance(want, bool):
        if isinstance(got, Tensor) and got.numel() == 1:
            got = got.item()
        return None if isinstance(got, (bool, int)) and got == want else wrong
    if isinstance(want, (str, bytes, set)) or want is None:
        return None if type(got) is type(want) and got == want else wrong
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return wrong
        for key in [*want, *got]:
            if key not in got:
                return f"{what} lacks {key!r}, which should be {_shown(want[key])}."
            if key not in want:
                return f"{what} should have no entry {key!r:.60}."
        found = (difference(got[k], want[k], f"{what}[{k!r}]", tolerance) for k in want)
        return next(filter(None, found), None)
    if isinstance(want, (list, tuple)):
        several = any(isinstance(w, Tensor) and w.dim() for w in want)
        if several:
            wrong = f"{what} should be {len(want)} tensors, but is {_shown(got)}."
            stacked = isinstance(got, Tensor) and got.dim() > max(w.dim() for w in want)
            got = list(got) if stacked else got
        else:
            got = _listed(got)
    if isinstance(want, (list, tuple)) and not _is_numbers(want):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return wrong
        pairs = enumerate(zip(got, want, strict=True))
        found = (difference(g, w, f"entry {i} of {what}", tolerance) for i, (g, w) in pairs)
        problem = next(filter(None, found), None)
        return problem if several or not problem else wrong
    target = tensor(want, what)
    if tolerance <= 1e-4 and _is_whole(_listed(want)) and _is_whole(_listed(got)):
        tolerance = 0.0
    try:
        problem = _numbers_differ(tensor(got, what), target, want, what, tolerance)
    except NotYet as not_numbers:
        problem = str(not_numbers)
    few = isinstance(want, (list, tuple)) and target.numel() <= 40
    return wrong if problem and few and _is_whole(want) else problem


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
            return f"{what} should be {wanted}, but is {found}."
    if value.shape != target.shape:
        return f"{what} should have shape {tuple(target.shape)}, but has {tuple(value.shape)}."
    if torch.isfinite(target).all() and not torch.isfinite(value).all():
        return f"{what} contains NaN or infinity."
    worst = int(torch.where(value == target, 0.0, (value - target).abs()).argmax())
    place = [int(i) for i in np.unravel_index(worst, value.shape)]
    pair = float(target.flatten()[worst]), float(value.flatten()[worst])
    told_apart = (d for d in (".3f", ".3e", ".6e") if f"{pair[0]:{d}}" != f"{pair[1]:{d}}")
    digits = next(told_apart, ".9e")
    where = f" at index {place}" if place else ""
    if pair[0].is_integer() and pair[1].is_integer():
        digits = ",.0f"
    elif max(map(abs, pair)) >= 1e7:
        digits = ".6g"
    written = (f"{x:{digits}}" for x in pair)
    return f"{what} should be {next(written)}{where}, but is {next(written)}."


def _is_numbers(value: Any) -> bool:
    """Numbers only, all the way down, in lists that a tensor could hold?"""
    if isinstance(value, (list, tuple)):
        return all(map(_is_numbers, value)) and len({np.shape(v) for v in value}) <= 1
    if isinstance(value, Tensor):
        return value.dim() == 0  # tensors of more than that are compared one by one
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """Whole numbers only, all the way down?"""
    return all(map(_is_whole, value)) if isinstance(value, (list, tuple)) else type(value) is int


def _listed(value: Any) -> Any:
    """Tensors as lists, at every depth."""
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value.tolist() if isinstance(value, Tensor) else value


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


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
    """Raise NotYet with the diagnosis unless the condition holds."""
    if not condition:
        raise NotYet(diagnosis)


def expect_shape(got: Any, shape: Sequence[int], what: str) -> Tensor:
    """Raise NotYet unless `got` has the shape; returns it as a tensor."""
    value = tensor(got, what)
    found = tuple(value.shape)
    expect(found == tuple(shape), f"{what} should have shape {tuple(shape)}, but has {found}.")
    return value


def expect_close(
    got: Any,
    want: Any,
    what: str,
    *,
    mistakes: Mapping[str, Any] | None = None,
    tolerance: float = 1e-4,
) -> None:
    """Raise NotYet unless `got` is what is wanted, as `difference` sees it.

    mistakes: diagnosis → the value that the mistake would give; the first that fits is shown.
    """
    problem = difference(got, want, what, tolerance)
    if problem is None:
        return
    for diagnosis, wrong in (mistakes or {}).items():
        expect(not same(got, wrong, tolerance), diagnosis)
    raise NotYet(problem)


def reported(answer: Any, example: Any, wanted: str) -> Any:
    """What a learner reports of an experiment, in the form of the example.

    example: a tuple of parts, a dict with the keys that are asked for, a list of any number of the
    same; at their ends a number, a text or a bool, for what belongs there. Numbers come back as
    floats, whatever kind they are of, texts in small letters; keys that were not asked for are left
    out. wanted: says the form, and is shown, with what does not fit, to whoever has chosen another.

    Raises NotYet, and NotAttempted where a ... is left.
    """
    if _has_dots(answer):
        raise NotAttempted
    return _part(answer, example, wanted)


def _has_dots(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_dots, value.values()))
    return value is ... or (isinstance(value, (list, tuple, set)) and any(map(_has_dots, value)))


def _unwrapped(value: Any) -> Any:
    value = plain(value)
    return value.tolist() if isinstance(value, Tensor) else value


def _part(value: Any, example: Any, wanted: str, place: str = "") -> Any:
    value = _unwrapped(value)

    def belongs(what: str, fits: bool) -> None:
        expect(fits, f"{wanted} (Where {what} belongs, yours has {_shown(value)}{place}.)")

    if isinstance(example, dict):
        belongs("a dictionary", isinstance(value, Mapping))
        value = {_unwrapped(key): item for key, item in value.items()}
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
    belongs("a number", isinstance(value, (int, float)))
    return float(value)


# --- how an answer works, where the task asks for more than its values --------------------------


def expect_gradients(
    got: Sequence[Tensor | None], want: Sequence[Tensor | None], what: str
) -> None:
    """Raise NotYet unless the gradients that come back through an answer are the right ones."""
    if any(w is not None for w in want) and all(g is None for g in got):
        raise NotYet(
            f"{what} has the right values, but no gradient comes back through it, so nothing "
            "before it could learn. `.detach()`, `.item()`, `.data`, `no_grad`, NumPy and "
            "`torch.tensor(...)` cut it: compute with tensors only."
        )
    for g, w in zip(got, want, strict=True):
        if w is None or not w.any():
            continue
        expect(
            g is not None and same(g, w, 1e-3),
            f"{what} has the right values, but a wrong gradient comes back through it: is a part "
            "cut off, by `.detach()`, `.item()`, `no_grad` or `torch.tensor(...)`?",
        )


def expect_no_loop(answer: Any, small: tuple, large: tuple, diagnosis: str) -> None:
    """Raise NotYet if the learner's own code works longer on `large` than on `small` arguments, or
    calls torch more often, as `map(torch.dot, a, b)` does without an instruction of theirs."""

    def work(given: tuple) -> tuple[int, int]:
        return executed(answer, *given), calls_of(answer, *given).number

    expect(work(small) == work(large), diagnosis)


def expect_without(answer: Any, given: tuple, names: Sequence[str], diagnosis: str) -> None:
    """Raise NotYet if the answer uses one of the named functions of torch, or gradients' engine."""
    expect(not calls_of(answer, *given).names & set(names), diagnosis)


def expect_no_helpers(answer: Any, given: tuple) -> None:
    """Raise NotYet if a function of the package `helpers` computes a part of it."""
    own = all(module.partition(".")[0] != "helpers" for module in modules_of(answer, *fresh(given)))
    expect(own, "The values are right, but `helpers` computes a part of them: use torch alone.")
