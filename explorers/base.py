"""What all explorers share: the still picture, a stable name, themes, keys, and tidying up."""

import warnings
from base64 import b64encode
from pathlib import Path
from textwrap import fill
from typing import Any, ClassVar, Self

import anywidget
import traitlets
from IPython.core.getipython import get_ipython

from explorers.packed import name_of
from helpers.plots import GREY, Picture

STILL = "Static preview. In JupyterLab, run the cells up to this one to interact."
_HERE = Path(__file__).parent
# cell → (its run, the explorers that this run made): see Explorer._replace_older.
_live: dict[str, tuple[int, list["Explorer"]]] = {}


def esm(*names: str) -> str:
    """The JavaScript of an explorer: the shared base.js, then the file of each name, in order.

    anywidget loads one module per widget and there is no build step, so they are joined here.
    """
    return "\n".join((_HERE / f"{n}.js").read_text(encoding="utf-8") for n in ("base", *names))


def read_only(*names: str) -> Any:
    """A validator for traits that the browser reads once: they cannot change later.

    names: of the traits. In a subclass: `_given = read_only("tokens", …)`. A later change raises
    TraitError, which says to make a new explorer.
    """

    def refuse(self: "Explorer", proposal: Any) -> Any:
        if self.comm is not None:  # it is made, and perhaps shown
            name, kind = proposal.trait.name, type(self).__name__
            raise traitlets.TraitError(f"{name} cannot change: make a new {kind}")
        return proposal.value

    return traitlets.validate(*names)(refuse)


def in_range(what: str, *names: str, low: float, high: Any) -> Any:
    """A validator for traits that lie in a range; a number outside it raises TraitError.

    what: what such a number is, for the message; names: of the traits; low: the smallest; high: the
    largest, a number or a function of the explorer. In a subclass:
    `_positions = in_range("a position", "p", "q", low=0, high=…)`.
    """

    def check(self: "Explorer", proposal: Any) -> Any:
        most = high(self) if callable(high) else high
        if not low <= proposal.value <= most:  # no number (NaN) neither
            raise traitlets.TraitError(
                f"{proposal.trait.name} is {what} from {low} to {most}, not {proposal.value}"
            )
        return proposal.value

    return traitlets.validate(*names)(check)


class Explorer(anywidget.AnyWidget):
    """Base class of the explorers.

    A subclass sets ``_esm = esm("its_name")``, declares its traits (``.tag(sync=True)``), and
    implements `picture()` (the still picture of the present view) and `describe()` (one line for
    the text output, with nothing in it that changes from run to run). If it cannot be made without
    arguments, it implements `example()`, too. A value that a validator refuses raises ValueError at
    the start and TraitError when the trait is set later.
    """

    _css: ClassVar[str] = (_HERE / "base.css").read_text(encoding="utf-8")

    def __init__(self, **traits: Any):
        if unknown := traits.keys() - self.keys:
            raise TypeError(f"{type(self).__name__} has no {sorted(unknown)}: see its docstring")
        try:
            super().__init__(**traits)
        except traitlets.TraitError as wrong:
            raise ValueError(str(wrong)) from None
        self._replace_older()

    @classmethod
    def example(cls) -> Self:
        """One that fills its screen, made without downloads: for tests and benchmarks."""
        return cls()

    def picture(self) -> Picture:
        """The present view as a still picture."""
        raise NotImplementedError

    def describe(self) -> str:
        """What is shown, in one line."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:  # closed: nothing to show
            return None
        data, metadata = bundle
        picture = self.picture()
        note = fill(STILL, int(13 * picture.get_figwidth()))  # 13 characters an inch
        picture.supxlabel(note, x=0.01, ha="left", fontsize=10, color=GREY)
        with warnings.catch_warnings():  # labels too large for the picture are cut, without ado
            warnings.filterwarnings("ignore", "constrained_layout not applied")
            data["image/png"] = b64encode(picture.png()).decode("ascii")
        data["text/plain"] = repr(self)
        about = {"alt": picture.alt, "width": round(100 * picture.get_figwidth())}
        return data, {**metadata, "image/png": about}

    def close(self) -> None:
        """Remove the explorer from the page and from the kernel, with the layout it owns."""
        if self.comm is not None:
            self.layout.close()
        super().close()

    def _replace_older(self) -> None:
        """Close what an earlier run of the same cell made: re-running a cell must leak nothing."""
        cell, run = _current_cell()
        if not cell:  # a front end that does not name its cells: close nothing by mistake
            return
        last_run, explorers = _live.get(cell, (run, []))
        if last_run != run:
            for old in explorers:
                old.close()
            explorers = []
        _live[cell] = (run, [*explorers, self])


class ModelExplorer(Explorer):
    """An explorer whose model runs in the browser, which asks once for its weights (`packed`)."""

    file = traitlets.Unicode().tag(sync=True)  # the name of the weights
    megabytes = traitlets.Float().tag(sync=True)

    def __init__(self, weights: bytes, **traits: Any):
        self._packed = weights
        size = round(len(weights) / 1e6, 1)
        super().__init__(file=name_of(weights), megabytes=size, **traits)
        self.on_msg(self._send_weights)

    def _send_weights(self, _: Any, content: Any, __: Any) -> None:
        if content == {"wanted": "weights"}:
            self.send({"sent": "weights"}, [self._packed])


def _current_cell() -> tuple[str, int]:
    """The id of the running cell ("" where the front end sends none) and the execution count."""
    shell = get_ipython()
    if shell is None:
        return "", 0
    parent = getattr(shell, "parent_header", None) or {}
    return str(parent.get("metadata", {}).get("cellId", "")), shell.execution_count
