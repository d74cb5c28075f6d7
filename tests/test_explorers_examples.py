"""What holds for every explorer, on its example: the output of its cell, and what cannot change."""

from base64 import b64decode

import pytest
import traitlets

import explorers

KINDS = sorted(set(explorers.__all__) - {"Explorer"})
OTHER = {list: [], tuple: (), dict: {}, bytes: b"?", str: "?", int: 7, float: 0.5}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[explorers.Explorer]:
    return getattr(explorers, request.param)


@pytest.mark.filterwarnings("error")
def test_the_output_is_the_same_in_every_run(kind):
    first, second = kind.example(), kind.example()
    assert repr(first) == repr(second) and repr(first).startswith(f"{kind.__name__}(")
    data, metadata = first._repr_mimebundle_()
    assert data["text/plain"] == repr(first)
    assert data["image/png"] == second._repr_mimebundle_()[0]["image/png"]
    assert b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_what_the_browser_reads_once_cannot_change(kind):
    made = kind.example()
    for name in kind._given.trait_names if hasattr(kind, "_given") else ():
        before = getattr(made, name)
        with pytest.raises(
            traitlets.TraitError, match=f"{name} cannot change: make a new {kind.__name__}"
        ):
            setattr(made, name, OTHER[type(before)])
        assert getattr(made, name) == before
