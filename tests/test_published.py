"""helpers.checkpoints.gpt2 against `transformers`: random weights in, the same logits out."""

import json
import pickle

import pytest
import torch
from safetensors.torch import save_file

from helpers.checkpoints import gpt2

SMALL = {"vocab_size": 37, "n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 4}


@pytest.fixture(scope="module")
def theirs():
    """Makes a GPT-2 of `transformers` with random weights of a visible size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        from transformers import GPT2Config, GPT2LMHeadModel  # slow, so only for these tests

    def make(seed=0, **changes):
        config = GPT2Config(**{**SMALL, "bos_token_id": 0, "eos_token_id": 0, **changes})
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = GPT2LMHeadModel(config).eval()
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(0.1 * torch.randn(p.shape))
        return model

    return make


def same(ours, theirs):
    size = theirs.config
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(size.vocab_size, (2, size.n_positions), generator=generator)
    with torch.no_grad():
        want = theirs(ids).logits
        assert want.std() > 0.1  # large enough to compare
        return torch.allclose(ours(ids), want, rtol=0, atol=1e-4)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"n_head": 1},
        {"n_embd": 30, "n_head": 5, "vocab_size": 101},
        {"n_layer": 1, "n_embd": 8, "n_head": 8, "n_positions": 3},
        {"n_layer": 11, "n_embd": 6, "n_head": 2},  # two-digit layers keep their order
    ],
)
@pytest.mark.parametrize("tied", [True, False])
def test_the_logits_are_those_of_transformers(theirs, sizes, tied):
    model = theirs(**sizes, tie_word_embeddings=tied)
    ours = gpt2(weights(model), n_head=model.config.n_head)
    assert same(ours, model)
    assert ours.config.tied is tied and not ours.training
    assert ours.n_parameters() == model.num_parameters()


def test_heads_are_64_wide_unless_told(theirs):
    model = theirs(n_embd=128, n_head=2, n_layer=1)
    ours = gpt2(weights(model))
    assert ours.config.n_head == 2 and same(ours, model)


def test_names_without_a_prefix_and_masks_among_the_weights(theirs):
    """The layout of the published files: no head, no prefix, and the causal masks saved along."""
    model = theirs()
    bare = weights(model.transformer)
    assert not any(name.startswith("transformer.") for name in bare)
    for layer in range(2):
        bare[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 12, 12).tril()
        bare[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    assert same(gpt2(bare, n_head=4), model)


def test_a_file_and_a_folder(theirs, tmp_path):
    model = theirs(tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    assert same(gpt2(tmp_path), model)  # n_head from config.json
    assert same(gpt2(str(tmp_path / "model.safetensors"), n_head=4), model)
    assert not same(gpt2(tmp_path, n_head=2), model)  # what was asked for counts
    (tmp_path / "config.json").unlink()
    assert same(gpt2(tmp_path, n_head=4), model)


def test_a_folder_of_several_pieces(theirs, tmp_path):
    model = theirs()
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    pieces = sorted(tmp_path.glob("*.safetensors"))
    assert len(pieces) > 2 and same(gpt2(tmp_path), model)
    pieces[-1].unlink()
    with pytest.raises(ValueError, match="pieces are missing"):
        gpt2(tmp_path)


def test_a_file_of_half_the_size(theirs, tmp_path):
    model = theirs()
    model.half().save_pretrained(tmp_path)
    ours = gpt2(tmp_path)
    assert {p.dtype for p in ours.parameters()} == {torch.float32}
    assert same(ours, model.float())


# --- errors ---------------------------------------------------------------------------------------


@pytest.fixture
def good(theirs):
    return weights(theirs())


def without(weights, name):
    return {n: t for n, t in weights.items() if n != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: {}, "not in the layout of GPT-2"),
        (lambda w: {"model.embed_tokens.weight": w["lm_head.weight"]}, "layout .*embed_tokens"),
        (lambda w: without(w, "transformer.wpe.weight"), "not in the layout"),
        (lambda w: without(w, "transformer.h.1.ln_1.bias"), r"lacks 1 .*blocks.1.attention_norm"),
        (lambda w: {**w, "score.weight": torch.zeros(2, 24)}, "1 weights too many: .*score"),
        (
            lambda w: {**w, "transformer.h.0.mlp.c_fc.weight": torch.zeros(96, 24)},
            r"blocks.0.mlp.up.weight has shape \(24, 96\), but the model's has \(96, 24\)",
        ),
        (lambda w: {**w, "lm_head.weight": torch.zeros(5, 24)}, r"head.weight has shape \(5, 24\)"),
        (
            lambda w: {**w, "transformer.h.0.attn.c_attn.weight": torch.zeros(24, 70)},
            r"queries, keys and values, three in one, but has shape \(24, 70\)",
        ),
        (
            lambda w: {n: t for n, t in w.items() if ".h." not in n},
            "n_layer should be at least 1, but is 0",
        ),
        (lambda w: {**w, "transformer.wte.weight": torch.zeros(37)}, r"wte.weight .*\(37,\)"),
    ],
)
def test_another_layout_is_explained(good, change, message):
    with pytest.raises(ValueError, match=message):
        gpt2(change(good), n_head=4)


def test_a_linear_layout_is_not_taken_for_gpt2s(good):
    """nn.Linear's matrices stand the other way round than those of GPT-2."""
    turned = {n: t.T.contiguous() if ".c_" in n and t.dim() == 2 else t for n, t in good.items()}
    with pytest.raises(ValueError, match="has shape"):
        gpt2(turned, n_head=4)


def test_an_odd_width_wants_the_number_of_heads(good):
    with pytest.raises(ValueError, match="24 wide, no multiple of 64: give n_head"):
        gpt2(good)
    with pytest.raises(ValueError, match="cannot be split evenly over 5 heads"):
        gpt2(good, n_head=5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation_function": "relu"}, "activation_function 'relu' is not what this GPT"),
        ({"activation_function": "gelu"}, "activation_function 'gelu'"),
        ({"layer_norm_epsilon": 1e-3}, "layer_norm_epsilon 0.001"),
        ({"scale_attn_weights": False}, "scale_attn_weights False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True"),
        ({"n_inner": 48}, "mlp.up.* has shape"),
    ],
)
def test_settings_that_our_model_does_not_compute_are_refused(theirs, tmp_path, changes, message):
    theirs(**changes).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        gpt2(tmp_path)


def test_the_bend_may_have_its_other_name(theirs, tmp_path):
    model = theirs(activation_function="gelu_pytorch_tanh")
    model.save_pretrained(tmp_path)
    assert same(gpt2(tmp_path), model)


@pytest.mark.parametrize("text", ["[]", "5", "{", '{"n_head": "many"}', '{"n_head": 0}'])
def test_a_damaged_config_is_explained(good, tmp_path, text):
    save_file(without(good, "lm_head.weight"), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json|n_head"):
        gpt2(tmp_path)


def test_a_config_without_heads_means_twelve_as_in_transformers(good, tmp_path):
    save_file(without(good, "lm_head.weight"), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    assert gpt2(tmp_path).config.n_head == 12


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        gpt2(tmp_path / "nothing.safetensors")
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        gpt2(tmp_path)


def test_a_pickle_is_not_opened(good, tmp_path):
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(pickle.dumps(good))
    with pytest.raises(ValueError, match="never opens"):
        gpt2(path)
