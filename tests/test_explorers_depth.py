"""The depth explorer without a browser: what it accepts, computes, shows still, and says."""

import numpy as np
import pytest
import torch
import traitlets

from explorers.depth import NORMS, SCALES, DepthExplorer, _norm, _Stack


def measured(**settings):
    now = DepthExplorer(**settings).measures()
    return now["size"][-1], now["gradient"][0], now["cosine"][-1]


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("norm", NORMS)
def test_the_way_back_is_the_gradient_of_torch(skips, norm):
    draw = np.random.default_rng(3)
    up, down = draw.normal(size=(4, 8, 16)) / 3, draw.normal(size=(4, 16, 8)) / 3
    x, end = draw.normal(size=(2, 5, 8))
    stack, stream, backs = _Stack(up, down, skips=skips, norm=norm), x, []
    for layer in range(4):
        stream, back = stack._layer(layer, stream)
        backs.append(back)
    gradient = end
    for back in reversed(backs):
        gradient = back(gradient)

    def normed(t):
        return torch.nn.functional.layer_norm(t, t.shape[-1:], eps=0)

    leaf = torch.tensor(x, requires_grad=True)
    out = leaf
    for layer in range(4):
        read = normed(out) if norm == "pre" else out
        wrote = torch.relu(read @ torch.tensor(up[layer])) @ torch.tensor(down[layer])
        out = out + wrote if skips else wrote
        out = normed(out) if norm == "post" else out
    (out * torch.tensor(end)).sum().backward()
    assert np.allclose(stream, out.detach()) and np.allclose(gradient, leaf.grad)


def test_the_norm_standardises_each_token():
    x = np.random.default_rng(4).normal(3, 2, (5, 8))
    normed, _ = _norm(x)
    assert np.allclose(normed.mean(-1), 0) and np.allclose(normed.std(-1), 1)


def test_without_skips_only_one_loudness_survives_and_the_tokens_do_not():
    for scale, power in zip(SCALES, np.log10(SCALES), strict=True):
        size, gradient, cosine = measured(skips=False, scale=scale)
        assert abs(size - 48 * power) < 1 and abs(gradient - 48 * power) < 1 and cosine > 0.99


def test_skips_and_norms_keep_the_size_and_the_gradient():
    for norm in ("pre", "post"):
        size, gradient, _ = measured(norm=norm)
        assert abs(size) < 1.1 and abs(gradient) < 1.1
    assert measured(norm="none")[0] > 6
    assert measured(norm="post", scale=2.0)[1] < 0 < measured(norm="pre", scale=2.0)[1]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"skips": False, "scale": 0.5},
            "48 layers, skips off, norm none, scale 0.5: size at the end 1.1·10⁻¹⁴, gradient at "
            "the start 7.8·10⁻¹⁵, cosine 1.00",
        ),
        (
            {"depth": 48, "norm": "pre", "layer": 48},
            "48 layers, skips on, norm pre, scale 1: size at the end 8.0, gradient at the start "
            "5.6, cosine 0.77",
        ),
    ],
)
def test_it_says_what_it_shows_and_shows_it_still(settings, text):
    explorer = DepthExplorer(**settings)
    assert repr(explorer) == f"DepthExplorer({text})"
    picture = explorer.picture()
    assert text in picture.alt and picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 3}, r"depth should be one of \(2, 4, 8, 16, 32, 48\), not 3"),
        ({"norm": "both"}, "norm should be one of .*'post'.*, not 'both'"),
        ({"scale": 3}, "scale should be one of .*, not 3"),
        ({"skips": "off"}, "skips should be one of .*, not 'off'"),
        ({"depth": 4, "layer": 5}, "layer is a place on the way up, from 0 to 4, not 5"),
    ],
)
def test_wrong_settings_are_explained(settings, message):
    with pytest.raises(ValueError, match=message):
        DepthExplorer(**settings)


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("depth_index", 6, r"depth_index is a place in \(2, 4, .*\), from 0 to 5, not 6"),
        ("scale_index", 5, r"scale_index is a place in \(0.1, .*\), from 0 to 4, not 5"),
        ("skips", "yes", r"skips should be one of \('on', 'off'\), not 'yes'"),
    ],
)
def test_a_trait_refuses_what_the_constructor_would(trait, value, message):
    explorer = DepthExplorer()
    before = repr(explorer)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(explorer, trait, value)
    assert repr(explorer) == before


def test_with_fewer_layers_the_last_one_is_looked_at():
    explorer = DepthExplorer(layer=30)
    explorer.depth_index = 0
    assert (explorer.depth, explorer.layer) == (2, 2)
    assert explorer.picture().png()
