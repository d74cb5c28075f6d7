"""Pictures: they show themselves, carry their words, and leave nothing behind."""

import struct
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba

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
    bundle, metadata = fig._repr_mimebundle_()
    assert metadata == {"image/png": {"alt": "A parabola.", "width": 400}}
    assert set(bundle) == {"image/png", "text/plain"}
    assert size(bundle["image/png"]) == (640, 480)
    assert repr(fig) == bundle["text/plain"] == "[picture] A parabola."


def image(fig):
    return fig.axes[0].images[0]


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_a_heat_map_takes_lists_arrays_and_tensors(kind):
    fig = plots.heatmap(kind([[0.5, 2.0], [1.0, 1.5]]), "Four.", values=".1f")
    assert texts(fig) == ["0.5", "2.0", "1.0", "1.5"]
    assert image(fig).get_clim() == (0.0, 2.0)
    assert image(fig).get_cmap()(0.0) == to_rgba(plots.PAPER)  # 0 is paper


@pytest.mark.parametrize(
    ("numbers", "options", "limits"),
    [
        ([[-1.0, 3.0]], {"signed": True}, (-3, 3)),  # centred on zero
        ([[-5.0, -1.0]], {}, (-5, 0)),
        ([[1.0]], {"limits": (-2, 5)}, (-2, 5)),
    ],
)
def test_colours_span_what_they_should(numbers, options, limits):
    assert image(plots.heatmap(numbers, "A map.", **options)).get_clim() == limits


def test_masked_scores_are_grey_and_written():
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
    assert image(fig).cmap.get_bad().tolist() == list(to_rgba(plots.MASKED))
    assert [t.get_color() for t in fig.axes[0].texts][1] == plots.INK


def test_explorers_have_the_same_colours():
    sheet = (Path(plots.__file__).parents[2] / "explorers" / "base.css").read_text("utf-8")
    for name, color in {"blue": plots.BLUE, "green": plots.GREEN, "red": plots.RED}.items():
        assert f"--{name}: {color};" in sheet


def test_labels_show_white_space_and_dollars_as_they_are():
    fig = plots.heatmap([[1.0, 2.0]], "Two.", row_labels=["$$"], column_labels=[" ", "long token"])
    fig.png()
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == [r"\$\$"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["␣", "long␣token"]


def test_labels_of_columns_are_turned_only_where_they_do_not_fit():
    for columns, turned in ((3, 0), (30, 90)):
        fig = plots.heatmap([[1.0] * columns], "Tokens.", column_labels=["token"] * columns)
        assert fig.axes[0].get_xticklabels()[0].get_rotation() == turned


def test_lines_that_end_together_have_their_names_there_apart():
    lines = {"a": [0, 1.0], "b": [0, 1.01], "c": [0, 1.02]}
    options = {"xlabel": "x", "ylabel": "y", "hlines": {"level": 1.0}}
    (ax,) = plots.curves(lines, "Four.", **options).axes
    assert not legend(ax) and {t.get_text() for t in ax.texts} == {*lines, "level"}
    heights = sorted(t.xy[1] for t in ax.texts)
    assert min(np.diff(heights)) > 0.04
    (ax,) = plots.curves(lines | {"short": ([0, 0.5], [1, 1])}, "Five.", **options).axes
    assert legend(ax) and not ax.texts  # one ends elsewhere


def legend(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()] if ax.get_legend() else []


def tick_labels(axis):
    return [t.get_text() for t in axis.get_ticklabels()]


LABELS = {"xlabel": "x", "ylabel": "y"}
KINDS = {
    "curves": lambda: plots.curves({"a": [1, 2]}, "A.", **LABELS, log="y", legend="above"),
    "heatmap": lambda: plots.heatmap([[1.0]], "One."),
    "heatmaps": lambda: plots.heatmaps({"a": [[1.0]], "b": [[2.0]]}, "B."),
    "bars": lambda: plots.bars({"a": [1, 2]}, "C.", labels="ab"),
    "seeds": lambda: plots.seeds({"a": [1, 2], "b": [2, 3]}, "D.", paired=True),
    "histograms": lambda: plots.histograms({"a": [1, 2, 2]}, "E."),
    "diagram": lambda: plots.diagram({"a": (0, 0), "b": (0, 1)}, "F.", arrows=["ab"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_the_same_file_each_time_and_opens_no_window(kind, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    assert KINDS[kind]().png() == KINDS[kind]().png()
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize("kind", ["curves", "bars", "seeds", "histograms"])
def test_every_kind_needs_words_or_axes(kind):
    arguments = {"curves": LABELS, "bars": {"labels": "ab"}}.get(kind, {})
    with pytest.raises(ValueError, match="alternative text"):
        getattr(plots, kind)({"a": [1, 2]}, **arguments)
    fig, (left, right) = plots.picture("Two panels.", columns=2)
    assert getattr(plots, kind)({"a": [1, 2]}, ax=right, title="T", **arguments) is fig
    assert right.get_title(loc="left") == "T" and right.has_data() and not left.has_data()


def test_a_smoothed_value_is_the_mean_of_its_neighbours_at_their_middle():
    steps, means = plots.smoothed(torch.tensor([1.0, 2.0, 6.0, 4.0]), 3)
    assert steps.tolist() == [1, 2] and means.tolist() == pytest.approx([3, 4])
    assert plots.smoothed([5, 7], 1)[1].tolist() == [5, 7]


def test_bars_have_labels_values_and_a_highlight_the_first_on_top():
    fig = plots.bars(
        {"bits": torch.tensor([2.5, -1.0])},
        "Two bars.",
        labels=["worst", "$best"],
        values=".1f",
        highlight=["$best"],
        hlines={"goal": 1.0},
    )
    assert texts(fig) == ["2.5", "−1.0"]
    (ax,) = fig.axes
    assert tick_labels(ax.yaxis) == ["worst", r"\$best"] and legend(ax) == ["goal"]
    assert [bar.get_width() for bar in ax.patches] == [2.5, -1.0]
    assert ax.patches[0].get_facecolor() != ax.patches[1].get_facecolor()
    low, high = ax.get_ylim()
    assert low > high
    assert set(ax.lines[0].get_xdata()) == {1.0}


def test_seeds_are_dots_with_a_tick_at_their_mean():
    fig = plots.seeds({"pre": [1.0, 2.0], "post": torch.tensor([4.0, 6.0])}, "Two settings.")
    fig.png()
    (ax,) = fig.axes
    dots, means = ax.lines
    assert list(dots.get_xdata()) == [1, 2, 4, 6] and list(dots.get_ydata()) == [0, 0, 1, 1]
    assert list(means.get_xdata()) == [1.5, 5.0]
    assert tick_labels(ax.yaxis) == ["pre", "post"] and legend(ax) == ["one seed", "mean"]


def test_histograms_share_their_bins():
    fig = plots.histograms(
        {"a": torch.tensor([[0.0, 1.0]]), "b": [9.0, 10.0, 10.0]}, "Two.", bins=10
    )
    (ax,) = fig.axes
    assert legend(ax) == ["a", "b"]
    first, second = (patch.get_path().vertices for patch in ax.patches)
    assert set(first[:, 0]) == set(second[:, 0]) and max(second[:, 0]) == 10
    assert first[:, 1].max() == 1 and second[:, 1].max() == 3


def test_signs_that_the_font_lacks_are_boxes_without_ado():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for label in ("ก", "猫", "🦉", "\x07"):
            drawn = plots.heatmap([[1, 2]], "x", column_labels=[label, "$a$"], title=label)
            assert drawn.png() != plots.heatmap([[1, 2]], "x", column_labels=["", "$a$"]).png()
