"""The depth explorer without a browser: what depth does, and what is refused."""

import numpy as np
import pytest

from explorers.depth import SCALES, DepthExplorer


def measured(**settings):
    now = DepthExplorer(**settings).measures()
    return now["size"][-1], now["gradient"][0], now["cosine"][-1]


def test_without_skips_only_one_scale_survives_and_the_tokens_do_not():
    for scale, power in zip(SCALES, np.log10(SCALES), strict=True):
        size, gradient, cosine = measured(skips=False, scale=scale)
        assert abs(size - 48 * power) < 1 and abs(gradient - 48 * power) < 1 and cosine > 0.99


def test_skips_and_norms_keep_the_size_and_the_gradient():
    for norm in ("pre", "post"):
        size, gradient, _ = measured(norm=norm)
        assert abs(size) < 1.1 and abs(gradient) < 1.1
    assert measured(norm="none")[0] > 6
    assert measured(norm="post", scale=2.0)[1] < 0 < measured(norm="pre", scale=2.0)[1]


def test_a_depth_that_was_not_measured_is_refused():
    with pytest.raises(ValueError, match=r"depth should be one of \(2, 4, 8, 16, 32, 48\), not 3"):
        DepthExplorer(depth=3)


def test_with_fewer_layers_the_last_one_is_looked_at():
    explorer = DepthExplorer(layer=30)
    explorer.depth_index = 0
    assert (explorer.depth, explorer.layer) == (2, 2)
