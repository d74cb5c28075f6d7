"""Pictures: they show themselves, carry their words, and leave nothing behind."""

import struct
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest
import torch

from helpers import plots


def size(png):
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


def texts(fig):
    fig.png()
    return [t.get_text() for ax in fig.axes for t in ax.texts]


def test_a_picture_shows_itself_and_its_words():
    fig, ax = plots.picture("A parabola.", width=4, height=3)
    ax.plot([0, 1, 4])
    bundle = fig._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain"}
    assert size(bundle["image/png"]) == (440, 330)
    assert repr(fig) == bundle["text/plain"] == "[picture] A parabola."


def test_equal_pictures_are_equal_files():
    first, second = (plots.curves({"a": [1, 2]}, "Up.", xlabel="x", ylabel="y") for _ in "12")
    assert first.png() == second.png() == first.png()


def test_there_is_no_pyplot_and_no_changed_style(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = {key: mpl.rcParams[key] for key in plots._STYLE}
    plots.heatmap([[1.0]], "One.").png()
    assert {key: mpl.rcParams[key] for key in plots._STYLE} == before
    assert "matplotlib.pyplot" not in sys.modules


def test_what_is_drawn_later_has_the_look_too():
    _, ax = plots.picture("A line.")
    ax.plot([1, 2], label="a line")
    ax.set(title="Left and bold")
    assert not ax.legend().get_frame_on()
    assert ax.lines[0].get_linewidth() == 2
    assert ax.get_title(loc="left") == "Left and bold" and ax._left_title.get_weight() == "bold"


@pytest.mark.parametrize("alt", ["", "  "])
def test_a_picture_needs_words(alt):
    with pytest.raises(ValueError, match="alternative text"):
        plots.picture(alt)


def test_rows_and_columns_give_an_array_of_axes():
    _, axes = plots.picture("Six.", rows=2, columns=3, sharey=True)
    assert axes.shape == (2, 3)


def test_white_space_is_made_visible():
    assert plots.visible("a b\n\t") == "a␣b⏎⇥"


def image(fig):
    return fig.axes[0].images[0]


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_a_heat_map_takes_lists_arrays_and_tensors(kind):
    fig = plots.heatmap(kind([[0.5, 2.0], [1.0, 1.5]]), "Four.", values=".1f")
    assert texts(fig) == ["0.5", "2.0", "1.0", "1.5"]
    assert image(fig).get_clim() == (0.0, 2.0)
    assert image(fig).get_cmap().name == "viridis"


def test_a_signed_heat_map_is_centred_on_zero():
    fig = plots.heatmap([[-1.0, 3.0]], "Two.", signed=True)
    assert image(fig).get_clim() == (-3.0, 3.0)
    assert image(fig).get_cmap().name == "RdBu_r"


def test_limits_win():
    assert image(plots.heatmap([[1.0]], "One.", limits=(-2, 5))).get_clim() == (-2, 5)


def test_masked_scores_stay_white_and_are_written():
    inf = float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig = plots.heatmap(
            [[1.0, -inf], [-2.0, float("nan")]], "A mask.", values=".0f", signed=True
        )
        assert texts(fig) == ["1", "−∞", "−2", "nan"]
        plots.heatmap([[-inf]], "Nothing finite.", values=".0f").png()
    assert image(fig).get_clim() == (-2.0, 2.0)
    assert image(fig).get_array().mask.tolist() == [[False, True], [False, True]]
    assert [t.get_color() for t in fig.axes[0].texts][1] == "black"


def test_labels_show_white_space_and_dollars_as_they_are():
    fig = plots.heatmap([[1.0, 2.0]], "Two.", row_labels=["$$"], column_labels=[" ", "long token"])
    fig.png()
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == [r"\$\$"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["␣", "long␣token"]
    assert ax.get_xticklabels()[0].get_rotation() == 90


@pytest.mark.parametrize("matrix", [[1.0, 2.0], [[[1.0]]], 3.0])
def test_a_heat_map_of_something_else_is_refused(matrix):
    with pytest.raises(ValueError, match="a matrix with 2 dimensions, not shape"):
        plots.heatmap(matrix, "Wrong.")


def test_a_colour_bar_has_its_label():
    fig = plots.heatmap(
        [[1.0]], "One.", colour_bar="weight", title="T", xlabel="key", ylabel="query"
    )
    assert len(fig.axes) == 2 and fig.axes[1].get_ylabel() == "weight"
    ax = fig.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("key", "query", "T")


def test_curves_are_named_and_levels_too():
    fig = plots.curves(
        {"up": [1, 2, 3], "at x": ([5, 6], [1, 0])},
        "Two curves.",
        xlabel="steps",
        ylabel="loss",
        levels={"goal": 0.5, "limit": 2.5},
    )
    fig.png()
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["up", "at x", "goal", "limit"]
    assert list(ax.lines[1].get_xdata()) == [5, 6]
    assert ax.lines[2].get_linestyle() != ax.lines[3].get_linestyle()


def test_an_arrow_ends_at_its_vector_and_is_named():
    fig, ax = plots.picture("An arrow.")
    plots.draw_arrow(ax, torch.tensor([2.0, 1.0]), "a", plots.BLUE, start=(1, 1))
    assert texts(fig) == ["", "a"]
    assert tuple(ax.texts[1].xy) == (3.0, 2.0)
