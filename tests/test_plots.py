"""Pictures: they show themselves, carry their words, and leave nothing behind."""

import struct
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest
import torch

from helpers import plots
from helpers.evaluation import milliseconds


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
    assert metadata == {"image/png": {"alt": "A parabola."}}
    assert set(bundle) == {"image/png", "text/plain"}
    assert size(bundle["image/png"]) == (440, 330)
    assert repr(fig) == bundle["text/plain"] == "[picture] A parabola."


def test_what_is_drawn_later_has_the_look_too():
    _, ax = plots.picture("A line.")
    ax.plot([1, 2], label="a line")
    ax.set(title="Left and bold")
    assert not ax.legend().get_frame_on()
    assert ax.lines[0].get_linewidth() == 2
    assert ax.get_title(loc="left") == "Left and bold" and ax._left_title.get_weight() == "bold"


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


def test_a_map_below_zero_has_the_colours_for_itself():
    assert image(plots.heatmap([[-5.0, -1.0]], "Two.")).get_clim() == (-5.0, 0.0)


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


def test_a_colour_bar_has_its_label():
    fig = plots.heatmap([[1.0]], "One.", colorbar="weight", title="T", xlabel="key", ylabel="query")
    assert len(fig.axes) == 2 and fig.axes[1].get_ylabel() == "weight"
    ax = fig.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("key", "query", "T")


def test_curves_are_named_and_levels_too():
    fig = plots.curves(
        {"up": [1, 2, 3], "at x": ([5, 6], [1, 0])},
        "Two curves.",
        xlabel="steps",
        ylabel="loss",
        hlines={"goal": 0.5, "limit": 2.5},
    )
    fig.png()
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["up", "at x", "goal", "limit"]
    assert list(ax.lines[1].get_xdata()) == [5, 6]
    assert ax.lines[2].get_linestyle() != ax.lines[3].get_linestyle()


def test_an_arrow_ends_at_its_vector_and_is_named():
    fig, ax = plots.picture("An arrow.")
    plots.draw_arrow(ax, torch.tensor([2.0, 1.0]), "a", plots.BLUE)
    assert texts(fig) == ["", "a"]
    assert tuple(ax.texts[1].xy) == (2.0, 1.0)


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
    "histograms": lambda: plots.histograms({"a": [1, 2, 2]}, "E.", marks={"m": 2}),
    "trees": lambda: plots.trees(["ew", "s"], [("e", "w")], "G."),
    "diagram": lambda: plots.diagram({"a": (0, 0), "b": (0, 1)}, "F.", arrows=["ab"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_the_same_file_each_time_and_leaves_nothing_behind(kind, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = {key: mpl.rcParams[key] for key in plots._STYLE}
    assert KINDS[kind]().png() == KINDS[kind]().png()
    assert {key: mpl.rcParams[key] for key in plots._STYLE} == before
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize("kind", ["curves", "bars", "seeds", "histograms"])
def test_every_kind_needs_words_or_axes(kind):
    arguments = {"curves": LABELS, "bars": {"labels": "ab"}}.get(kind, {})
    with pytest.raises(ValueError, match="alternative text"):
        getattr(plots, kind)({"a": [1, 2]}, **arguments)
    fig, (left, right) = plots.picture("Two panels.", columns=2)
    assert getattr(plots, kind)({"a": [1, 2]}, ax=right, title="T", **arguments) is fig
    assert right.get_title(loc="left") == "T" and right.has_data() and not left.has_data()


def test_curves_have_styles_spans_and_marked_ticks_on_logarithmic_axes():
    fig = plots.curves(
        {"dashed": ([1, 2, 4], [1, 10, 100]), "dots": ([1, 2, 4], [2, 20, 200])},
        "Two lines.",
        **LABELS,
        styles={"dots": "o"},
        axvspan={"seen": (1, 2)},
        log="xy",
        xticks=[1, 2, 4],
        yticks={10: "ten"},
    )
    fig.png()
    (ax,) = fig.axes
    assert legend(ax) == ["dashed", "dots", "seen"]
    assert (ax.lines[1].get_marker(), ax.lines[1].get_linestyle()) == ("o", "None")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert tick_labels(ax.xaxis) == ["1", "2", "4"] and tick_labels(ax.yaxis) == ["ten"]


def test_a_legend_stands_where_there_is_something_to_tell_apart():
    assert legend(plots.curves({"a": [1, 2]}, "One.", **LABELS).axes[0]) == []
    two = {"a": [1, 2], "b": [2, 1]}
    assert legend(plots.curves(two, "Two.", **LABELS, legend="").axes[0]) == []
    above = plots.curves(two, "Two.", **LABELS, legend="above")
    assert not legend(above.axes[0])
    assert [t.get_text() for t in above.legends[0].get_texts()] == ["a", "b"]
    plots.curves({"a name wider than the picture " * 4: [1]} | two, "!", **LABELS, legend="below")


def test_a_smoothed_value_is_the_mean_of_its_neighbours_at_their_middle():
    steps, means = plots.smoothed(torch.tensor([1.0, 2.0, 6.0, 4.0]), 3)
    assert steps.tolist() == [1, 2] and means.tolist() == pytest.approx([3, 4])
    assert plots.smoothed([5, 7], 1)[1].tolist() == [5, 7]


def test_heat_maps_stand_side_by_side_with_options_for_all_or_for_one():
    fig = plots.heatmaps(
        {"one": [[1.0, 2.0]], "two": [[3.0, 4.0]]},
        "Two maps.",
        values={"one": ".1f", "two": [["c", "d"]]},
        limits=(0, 4),
        xlabel="key",
        ylabel="query",
    )
    assert texts(fig) == ["1.0", "2.0", "c", "d"]
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["one", "two"]
    assert [ax.get_xlabel() for ax in fig.axes] == ["key", "key"]
    assert [ax.get_ylabel() for ax in fig.axes] == ["query", ""]
    assert {ax.images[0].get_clim() for ax in fig.axes} == {(0, 4)}


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


def test_bars_of_several_names_stand_side_by_side():
    fig = plots.bars({"a": [1, 2], "b": [3, 4]}, "Four.", labels="xy", vertical=True)
    (ax,) = fig.axes
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 3, 4]
    centers = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    assert centers == pytest.approx([-0.2, 0.8, 0.2, 1.2]) and legend(ax) == ["a", "b"]


def test_seeds_are_dots_with_a_tick_at_their_mean():
    fig = plots.seeds({"pre": [1.0, 2.0], "post": torch.tensor([4.0, 6.0])}, "Two settings.")
    fig.png()
    (ax,) = fig.axes
    dots, means = ax.lines
    assert list(dots.get_xdata()) == [1, 2, 4, 6] and list(dots.get_ydata()) == [0, 0, 1, 1]
    assert list(means.get_xdata()) == [1.5, 5.0]
    assert tick_labels(ax.yaxis) == ["pre", "post"] and legend(ax) == ["one seed", "mean"]


def test_dots_of_one_seed_can_be_joined():
    (ax,) = plots.seeds({1: [1, 2], 8: [3, 5]}, "Pairs.", paired=True).axes
    assert [list(line.get_xdata()) for line in ax.lines[:2]] == [[1, 3], [2, 5]]


def test_histograms_share_their_bins_and_have_marks():
    fig = plots.histograms(
        {"a": torch.tensor([[0.0, 1.0]]), "b": [9.0, 10.0, 10.0]},
        "Two.",
        bins=10,
        marks={"here": 5.0},
    )
    (ax,) = fig.axes
    assert legend(ax) == ["a", "b", "here"] and set(ax.lines[0].get_xdata()) == {5.0}
    first, second = (patch.get_path().vertices for patch in ax.patches)
    assert set(first[:, 0]) == set(second[:, 0]) and max(second[:, 0]) == 10
    assert first[:, 1].max() == 1 and second[:, 1].max() == 3


def test_points_are_named():
    fig, ax = plots.picture("A point.")
    plots.draw_points(ax, {"p": torch.tensor([1.0, 2.0])})
    assert texts(fig) == ["p"] and tuple(ax.texts[0].xy) == (1.0, 2.0)
    assert list(ax.lines[0].get_xydata()[0]) == [1.0, 2.0]


def boxes(ax):
    return [p for p in ax.patches if isinstance(p, mpl.patches.FancyBboxPatch)]


def ways(ax):
    """The corner points of every arrow."""
    arrows = [p for p in ax.patches if isinstance(p, mpl.patches.FancyArrowPatch)]
    return [p._path_original.vertices for p in arrows]


def test_trees_stand_side_by_side_and_join_what_they_say():
    merges = [("e", "w"), ("l", "o"), ("lo", "w"), ("n", "ew")]
    fig = plots.trees(["new", " "], merges, "Two trees.")
    (ax,) = fig.axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["n", "e", "w", "␣"]
    assert [t.get_text() for t in ax.texts] == ["ew", "new"]
    inner, outer, border, alone = (line.get_xydata().tolist() for line in ax.lines)
    assert inner == [[1, 0], [1, 1], [2, 1], [2, 0]]
    assert outer == [[0, 0], [0, 4], [1.5, 4], [1.5, 1]]
    assert alone == [[3, 0]] and border[0][0] == 2.5


def test_arrows_go_straight_up_or_round_two_corners():
    places = {"x": (0, 0), "head 0": (0, 1), "head 1": (1, 1)}
    fig = plots.diagram(places, "Two.", arrows=[("x", "head 0"), ("x", "head 1")])
    straight, cornered = ways(fig.axes[0])
    assert len(boxes(fig.axes[0])) == 3 and (len(straight), len(cornered)) == (2, 4)
    assert straight[0][0] == straight[1][0] == cornered[1][0] < cornered[2][0] == cornered[3][0]
    assert straight[1][1] == cornered[3][1] > cornered[2][1] == cornered[1][1] > straight[0][1]


def test_an_arrow_of_a_stream_leaves_it_and_is_added_to_it():
    fig = plots.diagram(
        {"x": (0, 0), "norm#1": (1, 1), "norm#2": (1, 2), "out": (0, 3)},
        "A stream.",
        arrows=[("stream", "norm#1"), ("norm#1", "norm#2", "(B, T, C)"), ("norm#2", "stream")],
        streams={"stream": ("x", "out")},
        frames={"block": ["norm#1", "norm#2"]},
        colors={"norm#1": plots.ORANGE},
    )
    assert [t for t in texts(fig) if t] == ["block", "(B, T, C)", "+", "x", "norm", "norm", "out"]
    (ax,) = fig.axes
    stream, read, _, added = ways(ax)
    assert stream[0][0] == stream[-1][0] == read[0][0]
    assert read[0][1] == read[-1][1] and added[0][1] == added[-1][1] > read[0][1]
    frame = boxes(ax)[0].get_bbox()
    assert frame.x0 < stream[0][0] < frame.x1 and frame.y0 < read[0][1] < added[0][1] < frame.y1


def test_a_call_is_timed_by_its_shortest_run():
    calls = []
    assert milliseconds(calls.append, 1, repeats=3) >= 0 and calls == [1, 1, 1]


def test_signs_that_the_font_lacks_are_boxes_without_ado():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for label in ("ก", "猫", "🦉", "\x07"):
            drawn = plots.heatmap([[1, 2]], "x", column_labels=[label, "$a$"], title=label)
            assert drawn.png() != plots.heatmap([[1, 2]], "x", column_labels=["", "$a$"]).png()
