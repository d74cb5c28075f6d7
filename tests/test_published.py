"""helpers.formats.huggingface against `transformers`: random weights in, the same logits out."""

import json

import numpy as np
import pytest
import torch
from conftest import generator, visible
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize

from helpers.formats.gguf import gguf, read_gguf, to_gguf, write_gguf
from helpers.formats.huggingface import gpt2, llama
from helpers.gpt import GPT, GPTConfig
from helpers.quantization import QuantizedLinear
from helpers.sampling import generate
from helpers.text import BPETokenizer

SMALL = {"vocab_size": 37, "n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 4}


@pytest.fixture(scope="module")
def theirs(transformers):
    """Makes a GPT-2 of `transformers`."""

    def make(**changes):
        about = {**SMALL, "bos_token_id": 0, "eos_token_id": 0, **changes}
        config = transformers.GPT2Config(**about)
        return visible(lambda: transformers.GPT2LMHeadModel(config).eval())

    return make


def same(ours, theirs):
    size = theirs.config
    ids = torch.randint(size.vocab_size, (2, size.max_position_embeddings), generator=generator(1))
    with torch.no_grad():
        want = theirs(ids).logits
        assert want.std() > 0.05  # large enough to compare
        return torch.allclose(ours(ids), want, rtol=0, atol=1e-4)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"n_embd": 30, "n_head": 5, "vocab_size": 101},
        {"n_layer": 11, "n_embd": 6, "n_head": 2},  # two-digit layers keep their order
    ],
)
@pytest.mark.parametrize("tied", [True, False])
def test_the_logits_are_those_of_transformers(theirs, sizes, tied):
    model = theirs(**sizes, tie_word_embeddings=tied)
    ours = gpt2(weights(model), {"n_head": model.config.n_head})
    assert same(ours, model)
    assert ours.config.tied is tied and not ours.training
    assert ours.n_parameters() == model.num_parameters()


def test_names_without_a_prefix_and_masks_among_the_weights(theirs):
    """The layout of the published files: no head, no prefix, and the causal masks saved along."""
    model = theirs(n_layer=1)
    bare = weights(model.transformer)
    assert not any(name.startswith("transformer.") for name in bare)
    bare["h.0.attn.bias"] = torch.ones(1, 1, 12, 12).tril()
    bare["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    assert same(gpt2(bare, {"n_head": 4}), model)


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
        (lambda w: {"model.embed_tokens.weight": w["lm_head.weight"]}, "layout .*embed_tokens"),
        (lambda w: without(w, "transformer.h.1.ln_1.bias"), r"lacks 1 .*blocks.1.attention_norm"),
        (lambda w: {**w, "score.weight": torch.zeros(2, 24)}, "1 weights too many: .*score"),
        (
            lambda w: {**w, "transformer.h.0.mlp.c_fc.weight": torch.zeros(96, 24)},
            r"blocks.0.mlp.up.weight has shape \(24, 96\), not \(96, 24\)",
        ),
    ],
)
def test_another_layout_is_explained(good, change, message):
    with pytest.raises(ValueError, match=message):
        gpt2(change(good), {"n_head": 4})


def test_settings_that_our_model_does_not_compute_are_refused(theirs, tmp_path):
    theirs(activation_function="relu").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="activation_function 'relu' is not what this GPT"):
        gpt2(tmp_path)


def test_the_keys_of_the_published_gpt2_are_known(theirs, tmp_path):
    model = theirs(activation_function="gelu_pytorch_tanh", n_inner=48, layer_norm_epsilon=0.1)
    model.save_pretrained(tmp_path)
    published = {
        "architectures": ["GPT2LMHeadModel"],
        "n_ctx": 12,
        "n_special": 0,
        "output_past": True,
        "predict_special_tokens": True,
        "summary_type": "cls_index",
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
        "transformers_version": "4.26.0",
        "num_attention_heads": 4,  # the other name of n_head
    }
    config = json.loads((tmp_path / "config.json").read_text())
    del config["n_head"]
    (tmp_path / "config.json").write_text(json.dumps({**config, **published}))
    assert same(gpt2(tmp_path), model)


# --- Llama ----------------------------------------------------------------------------------------


LLAMA = {
    "vocab_size": 37,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 12,
}


@pytest.fixture(scope="module")
def their_llama(transformers):
    """Makes a Llama of `transformers`."""

    def make(**changes):
        config = transformers.LlamaConfig(**{**LLAMA, **changes})
        return visible(lambda: transformers.LlamaForCausalLM(config).eval())

    return make


def test_a_llama_from_a_folder_writes_the_same_with_its_cache(their_llama, tmp_path):
    model = their_llama(tie_word_embeddings=True)
    model.save_pretrained(tmp_path)
    ours = llama(tmp_path)
    assert ours.config.tied and same(ours, model)
    ids = torch.tensor([[5, 3, 8]])
    want = model.generate(ids, max_new_tokens=9, do_sample=False, pad_token_id=0, eos_token_id=[])
    assert torch.equal(generate(ours, ids, 9, temperature=0), want)


def test_a_model_does_not_share_memory_with_the_state_dict(their_llama):
    model = their_llama()
    ours = llama(model.state_dict(), model.config.to_dict())
    with torch.no_grad():
        ours.token.weight.zero_()
    assert model.model.embed_tokens.weight.abs().sum() > 0


def test_the_config_of_older_versions(their_llama):
    model = their_llama(rope_parameters={"rope_type": "default", "rope_theta": 77.0})
    old = {**model.config.to_dict(), "rope_theta": 77.0}
    del old["rope_parameters"]
    assert same(llama(weights(model), old), model)
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    assert same(llama({**weights(model), **buffer}, old), model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mistral"}, "model_type 'mistral' is not what this GPT computes"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_type 'llama3'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"num_key_value_heads": 4}, r"has shape \(12, 24\), not \(24, 24\)"),
    ],
)
def test_what_our_llama_would_not_compute_is_refused(their_llama, changes, message):
    model = their_llama()
    with pytest.raises(ValueError, match=message):
        llama(weights(model), {**model.config.to_dict(), **changes})


@pytest.mark.parametrize(
    "said",
    [
        {"rope_parameters": None, "rope_scaling": {}},
        {"use_sliding_window": False, "sliding_window": 4096, "from_next_year": None},
    ],
)
def test_settings_that_ask_for_nothing_are_accepted(their_llama, said):
    model = their_llama()
    assert same(llama(weights(model), {**model.config.to_dict(), **said}), model)


# --- GGUF (tokenizers: test_export.py; the file itself: test_gguf_file.py) ------------------------

TOKENS = BPETokenizer([(b"h", b"e"), (b" ", b"t"), (b" t", b"he")], ["<|endoftext|>"])
IDS = torch.tensor([[3, 200, 7, 7, 1, 90]])


@pytest.fixture
def write(tmp_path):
    """Writes a Llama whose widths are multiples of 32; changes: of what the file says."""

    def written(tied=True, **changes):
        parts = dict(norm="RMSNorm", mlp="SwiGLU", position="Rotary", bias=False, tied=tied)
        sizes = dict(n_kv_head=2, head_size=32, hidden=96, rotary_base=1e5)
        config = GPTConfig(TOKENS.vocab_size, 12, 2, 4, 64, **sizes, **parts)
        model, path = visible(lambda: GPT(config).eval()), tmp_path / "a.gguf"
        to_gguf(model, TOKENS, path)
        about, stored = read_gguf(path)
        tensors = {name: t.read().view(np.float32).reshape(t.sizes) for name, t in stored.items()}
        write_gguf(path, about | changes, tensors)
        return model, path

    return written


def in_numbers(path, matrices, table):
    """The file again as llama.cpp's library writes it, its matrices in other kinds of numbers."""
    reader, writer = GGUFReader(path), GGUFWriter(path.with_suffix(".new"), "llama")
    for name, field in reader.fields.items():
        if not name.startswith(("GGUF.", "general.architecture")):
            writer.add_key_value(name, field.contents(), field.types[0], *field.types[1:])
    for tensor in reader.tensors:
        kind = table if tensor.name in ("token_embd.weight", "output.weight") else matrices
        kind = GGMLQuantizationType["F32" if tensor.data.ndim == 1 else kind]
        writer.add_tensor(tensor.name, quantize(tensor.data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.with_suffix(".new")


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0"])
def test_a_gguf_file_is_the_model_that_was_written(write, tied, kind):
    model, path = write(tied)
    read = gguf(in_numbers(path, kind, "F32")).model
    assert read.config.tied is tied and read.config.rotary_base == 1e5
    assert (read(IDS) - model(IDS)).abs().max() < {"F16": 0.02, "BF16": 0.1, "Q8_0": 0.1}[kind]


@torch.no_grad()
@pytest.mark.parametrize("table", ["Q8_0", "Q4_1"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_model_in_four_bits_is_the_one_in_float32(write, tied, table):
    model, path = write(tied)
    path = in_numbers(path, "Q4_1", table)
    whole, small = gguf(path).model, gguf(path, int4=True).model
    assert sum(isinstance(part, QuantizedLinear) for part in small.modules()) >= 2 * 7
    want, got = whole(IDS), small(IDS)
    assert want.std() > 0.5 and (got - want).abs().max() < 0.1 * want.std()
    assert (want - model(IDS)).std() < 0.5 * want.std()  # what four bits cost


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer.ggml.pre", "llama-bpe"),
        ("llama.rope.dimension_count", 16),
        ("llama.rope.scaling.type", "yarn"),
    ],
)
def test_a_gguf_file_that_asks_for_more_is_refused(write, name, value):
    _, path = write(**{name: value})
    with pytest.raises(ValueError, match=f"{name} '?{value}'? is not what this GPT computes"):
        gguf(path)


def test_tokens_that_are_numbered_otherwise_are_refused(write):
    _, path = write()
    about, _ = read_gguf(path)
    _, path = write(**{"tokenizer.ggml.tokens": about["tokenizer.ggml.tokens"][::-1]})
    with pytest.raises(ValueError, match="not numbered as here"):
        gguf(path)


@torch.no_grad()
def test_what_asks_for_nothing_in_a_gguf_file_is_accepted(write):
    model, path = write(**{"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 1.0})
    before = torch.get_rng_state()
    assert torch.equal(gguf(path).model(IDS), model(IDS))
    assert torch.equal(torch.get_rng_state(), before)  # no first weights that nobody needs
