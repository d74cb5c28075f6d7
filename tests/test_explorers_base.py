"""The base of the explorers: still picture, and nothing left behind."""

from types import SimpleNamespace

import pytest
import traitlets
from ipywidgets.widgets import widget

from explorers import base
from explorers.base import Explorer
from helpers import plots


class Toy(Explorer):
    _esm = "export default { render() {} }"
    size = traitlets.Int(1).tag(sync=True)
    _sizes = base.in_range("how many cells,", "size", low=1, high=9)

    def picture(self):
        return plots.heatmap([[1.0] * self.size], f"{self.size} cells")

    def describe(self):
        return f"size={self.size}"


@pytest.fixture(autouse=True)
def tidy(monkeypatch):
    monkeypatch.setattr(base, "_live", {})
    yield
    widget.Widget.close_all()


@pytest.fixture
def cell(monkeypatch):
    """cell("id", run): what is made now is made by that run of that cell."""

    def running(name, run):
        parent = {"metadata": {"cellId": name}} if name else {}
        shell = SimpleNamespace(parent_header=parent, execution_count=run)
        monkeypatch.setattr(base, "get_ipython", lambda: shell)

    return running


def is_open(explorer):
    return explorer.comm is not None


def test_what_a_validator_refuses_is_a_value_error_at_the_start_and_a_trait_error_later():
    says = "size is how many cells, from 1 to 9, not 10"
    with pytest.raises(ValueError, match=says):
        Toy(size=10)
    toy = Toy()
    with pytest.raises(traitlets.TraitError, match=says):
        toy.size = 10
    assert toy.size == 1


def test_the_picture_is_of_the_present_view():
    toy = Toy(size=1)
    before = toy._repr_mimebundle_()[0]["image/png"]
    toy.size = 4
    assert toy._repr_mimebundle_()[0]["image/png"] != before


def test_running_a_cell_again_closes_what_it_made_before(cell):
    cell("other", 1)
    other, before = Toy(), len(widget._instances)
    for run in range(2, 6):
        cell("a", run)
        pair = Toy(), Toy()
        assert all(map(is_open, pair))
    # anywidget gives each explorer a class of its own; a layout belongs to each.
    assert len(widget._instances) == before + 4
    cell("a", 6)
    Toy()
    assert not any(map(is_open, pair)) and is_open(other)


def test_a_front_end_that_does_not_name_its_cells_closes_nothing(cell):
    cell("", 1)
    first = Toy()
    cell("", 2)
    assert is_open(Toy()) and is_open(first)


def test_a_closed_explorer_still_has_its_name():
    toy = Toy(size=2)
    toy.close()
    toy.close()
    assert repr(toy) == "Toy(size=2)"
    # IPython then shows the name alone.
    assert toy._repr_mimebundle_ is None or toy._repr_mimebundle_() is None
