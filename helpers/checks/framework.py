"""How an exercise check works; the checks themselves are in chapterNN.py beside this file.

A check is a function that receives the learner's object, tries it on fresh inputs and raises
`NotYet` with a diagnosis as soon as something is wrong::

    @exercise(hints=["Divide by both lengths.", "`a.norm()` is the length of a."])
    def cosine(answer):
        a, b = normal(5, seed=1), normal(5, seed=2)
        got = call(answer, a, b)
        expect_close(got, a @ b / (a.norm() * b.norm()), "cosine(a, b)", mistakes={
            "This is the raw dot product: you have not divided by the lengths.": a @ b,
        })

The order is always the same: callable, shape, values. Messages contain only numbers that do not
depend on the machine, so that they can be compared by nbval.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


class NotYet(Exception):
    """The answer is wrong; the message is the diagnosis that the learner reads."""


class NotAttempted(Exception):
    """The stub is untouched: it is, returns or raises the placeholder."""


@dataclass(frozen=True)
class Shown:
    """A message that shows itself in a notebook: `text` for terminals, `markup` for browsers."""

    text: str
    markup: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.markup


_OUTCOMES = {
    "right": ("✔", "right", "#009E73"),
    "not yet": ("✘", "not yet", "#D55E00"),
    "not attempted": ("…", "not attempted", "#6b7280"),
}


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What a check found: `outcome` is "right", "not yet" or "not attempted"."""

    outcome: str
    message: str


def _report(outcome: str, message: str) -> Report:
    sign, words, colour = _OUTCOMES[outcome]
    body = _markup(message).replace("\n", "<br>")
    markup = (
        f'<div style="border-left:4px solid {colour};padding:.3em .8em;margin:.2em 0">'
        f'<b><span style="color:{colour}">{sign}</span> {words}</b> · {body}</div>'
    )
    return Report(f"{sign} {words}: {message}", markup, outcome, message)


class Exercise:
    """One exercise: call it with the learner's object to check it, `.hint()` for help."""

    def __init__(self, check: Callable[[Any], str | None], hints: Sequence[str]):
        self.name = check.__name__
        self.hints = tuple(hints)
        self.__doc__ = check.__doc__
        self._check = check

    def __repr__(self) -> str:
        return f"<exercise {self.name}: call it with your answer; {len(self.hints)} hints>"

    def __call__(self, answer: Any) -> Report:
        """Check `answer`; returns a report that shows itself, and never raises."""
        # The learner's code may draw random numbers; the notebook's stream must not notice.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)  # torch.manual_seed would touch the GPU's too
            try:
                if answer is ...:
                    raise NotAttempted
                praise = self._check(answer)
            except NotAttempted:
                return _report(
                    "not attempted",
                    "replace the ... in the cell above and run it, then run this cell again.",
                )
            except NotYet as diagnosis:
                return _report("not yet", str(diagnosis))
            except Exception as error:  # an object so odd that comparing it fails
                return _report(
                    "not yet",
                    f"your answer, a {type(answer).__name__}, cannot be checked: "
                    f"{type(error).__name__}: {error}",
                )
        return _report("right", praise or "well done.")

    def hint(self, number: int | None = None) -> Shown:
        """Hint `number` (from 1), or all of them folded, one step at a time."""
        if number is None:
            steps = list(enumerate(self.hints, 1))
            markup = "".join(
                f"<details><summary>Hint {i} of {len(steps)}</summary>{_markup(hint)}</details>"
                for i, hint in steps
            )
            names = f"{self.name}.hint(1) to {self.name}.hint({len(steps)})"
            return Shown(f"{len(steps)} hints, one at a time: {names}", markup)
        if not 1 <= number <= len(self.hints):
            raise ValueError(f"{self.name} has hints 1 to {len(self.hints)}, not {number}")
        text = f"Hint {number} of {len(self.hints)}: {self.hints[number - 1]}"
        return Shown(text, _markup(text))


def _markup(text: str) -> str:
    """Escaped text in which `code` becomes <code>."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def exercise(*, hints: Sequence[str]) -> Callable[[Callable[[Any], str | None]], Exercise]:
    """Turn a check function into an `Exercise`; what it returns is shown after ✔."""
    if not hints:
        raise ValueError("an exercise needs at least one hint")
    return lambda check: Exercise(check, hints)


def normal(*shape: int, seed: int) -> torch.Tensor:
    """Fresh standard-normal numbers of the given shape, the same on every machine."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def call(function: Any, *args: Any, name: str = "your function") -> Any:
    """Call the learner's function and turn everything that can go wrong into a diagnosis.

    Raises NotAttempted for the untouched stub, NotYet for a non-function, an exception, a
    forgotten `return`, or inputs that were modified.
    """
    if not callable(function):
        raise NotYet(
            f"the check wants the function itself, but got a {type(function).__name__}. "
            "Pass it without parentheses."
        )
    before = _state(args)
    try:
        result = function(*args)
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
    if _state(args) != before:
        raise NotYet(f"{name} changed its input in place: work on a new tensor instead.")
    return result


def _state(value: Any) -> Any:
    """What must be equal before and after a call: the very bytes, since NaN != NaN."""
    if isinstance(value, torch.Tensor):
        content = value.detach().cpu().flatten().view(torch.uint8).numpy().tobytes()
        return value.dtype, value.shape, content
    if isinstance(value, (list, tuple)):
        return [_state(item) for item in value]
    if isinstance(value, dict):
        return [(key, _state(item)) for key, item in value.items()]
    if isinstance(value, set):
        return set(value)
    return repr(value) if isinstance(value, (str, int, float)) else None


def tensor(value: Any, what: str) -> torch.Tensor:
    """`value` as a float64 tensor, so that numbers, lists, arrays and tensors can be compared."""
    if value is ...:
        raise NotAttempted
    if isinstance(value, (str, bytes)) or value is None:
        raise NotYet(f"{what} should be numbers, but is {value!r:.60}")
    try:
        numbers = torch.as_tensor(value).detach()
    except (TypeError, ValueError, RuntimeError):
        raise NotYet(f"{what} should be numbers, but is a {type(value).__name__}") from None
    if numbers.is_complex():
        raise NotYet(f"{what} should be real numbers, but they are complex")
    return numbers.to(torch.float64)


def expect_shape(got: Any, shape: Sequence[int], what: str) -> torch.Tensor:
    """Raise NotYet unless `got` has the shape; returns it as a tensor."""
    value = tensor(got, what)
    if tuple(value.shape) != tuple(shape):
        raise NotYet(f"{what} should have shape {tuple(shape)}, but has {tuple(value.shape)}.")
    return value


def same(got: Any, want: Any, tolerance: float = 1e-4) -> bool:
    """Equal shapes and values within `tolerance` (absolute and relative)?"""
    a, b = tensor(got, "the value"), tensor(want, "the value")
    return a.shape == b.shape and torch.allclose(
        a, b, rtol=tolerance, atol=tolerance, equal_nan=True
    )


def expect_close(
    got: Any,
    want: Any,
    what: str,
    *,
    mistakes: Mapping[str, Any] | None = None,
    tolerance: float = 1e-4,
) -> None:
    """Raise NotYet unless `got` equals `want` in shape and, within `tolerance`, in value.

    mistakes: diagnosis → the value that the mistake would give; the first that fits is shown,
    before the shape is complained about, because a known mistake explains more.
    """
    value, target = tensor(got, what), tensor(want, what)
    if same(value, target, tolerance):
        return
    for diagnosis, wrong in (mistakes or {}).items():
        if same(value, wrong, tolerance):
            raise NotYet(diagnosis)
    expect_shape(value, target.shape, what)
    if (~torch.isfinite(value) & torch.isfinite(target)).any():
        raise NotYet(f"{what} contains NaN or infinity.")
    worst = int(torch.where(value == target, 0.0, (value - target).abs()).argmax())
    place = [int(i) for i in torch.unravel_index(torch.tensor(worst), value.shape)]
    wanted, found = float(target.flatten()[worst]), float(value.flatten()[worst])
    digits = ".3f" if f"{wanted:.3f}" != f"{found:.3f}" else ".3e"
    where = f" at index {place}" if place else ""
    raise NotYet(f"{what} should be {wanted:{digits}}{where}, but is {found:{digits}}.")


def expect(condition: bool, diagnosis: str) -> None:
    """Raise NotYet with the diagnosis unless the condition holds."""
    if not condition:
        raise NotYet(diagnosis)
