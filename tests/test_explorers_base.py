"""The base of the explorers: still picture, stable name, and nothing left behind."""

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


class Other(Toy):
    pass


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
    before = len(widget._instances)
    made = []
    for run in range(1, 6):
        cell("a", run)
        made.append(Toy())
    assert [is_open(toy) for toy in made] == [False] * 4 + [True]
    # anywidget gives each explorer a class of its own; a layout belongs to each.
    assert len(widget._instances) == before + 2


def test_what_another_cell_made_stays(cell):
    cell("a", 1)
    first = Toy()
    cell("b", 2)
    second = Toy()
    cell("b", 3)
    third = Toy()
    assert is_open(first) and not is_open(second) and is_open(third)


def test_two_explorers_of_one_run_live_side_by_side_and_go_together(cell):
    cell("a", 1)
    pair = Toy(), Other()
    assert all(map(is_open, pair))
    cell("a", 2)
    Toy()
    assert not any(map(is_open, pair))


def test_a_front_end_that_does_not_name_its_cells_closes_nothing(cell):
    cell("", 1)
    first = Toy()
    cell("", 2)
    assert is_open(Toy()) and is_open(first)
    assert base._live == {}


def test_a_closed_explorer_still_has_its_name():
    toy = Toy(size=2)
    layout = toy.layout
    toy.close()
    toy.close()
    assert repr(toy) == "Toy(size=2)"
    assert layout.comm is None
    # IPython then shows the name alone.
    assert toy._repr_mimebundle_ is None or toy._repr_mimebundle_() is None
