"""helpers.formats.huggingface against `transformers`: random weights in, the same logits out."""

import json
import pickle
import random
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

from helpers.formats.gguf import gguf
from helpers.formats.huggingface import gpt2, llama
from helpers.formats.tokenizer_json import ALPHABET
from helpers.quantization import QuantizedLinear
from helpers.sampling import generate

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
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
    ours = gpt2(weights(model), {"n_head": model.config.n_head})
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
    assert same(gpt2(bare, {"n_head": 4}), model)


def test_a_file_and_a_folder(theirs, tmp_path):
    model = theirs(tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    assert same(gpt2(tmp_path), model)  # n_head from config.json
    assert same(gpt2(str(tmp_path / "model.safetensors"), {"n_head": 4}), model)
    assert not same(gpt2(tmp_path, {"n_head": 2}), model)  # what was asked for counts
    (tmp_path / "config.json").unlink()
    assert same(gpt2(tmp_path, {"n_head": 4}), model)


def test_a_folder_of_several_pieces(theirs, tmp_path):
    model = theirs()
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    pieces = sorted(tmp_path.glob("*.safetensors"))
    assert len(pieces) > 2 and same(gpt2(tmp_path), model)
    pieces[-1].unlink()
    with pytest.raises(ValueError, match=r"lacks \d+ weights"):
        gpt2(tmp_path)
    pieces[-1].write_bytes(pieces[0].read_bytes())
    with pytest.raises(ValueError, match="twice: are these pieces of two models"):
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
            lambda w: {
                **w,
                "transformer.ln_f.weight": torch.full((24,), 1e39, dtype=torch.float64),
            },
            r"norm.weight holds 1e\+39: too large for torch.float32",
        ),
        (
            lambda w: {**w, "transformer.h.0.mlp.c_fc.weight": torch.zeros(96, 24)},
            r"blocks.0.mlp.up.weight has shape \(24, 96\), not \(96, 24\)",
        ),
        (
            lambda w: {**w, "lm_head.weight": torch.zeros(5, 24)},
            r"lm_head.weight has shape \(5, 24\)",
        ),
    ],
)
def test_another_layout_is_explained(good, change, message):
    with pytest.raises(ValueError, match=message):
        gpt2(change(good), {"n_head": 4})


def test_a_linear_layout_is_not_taken_for_gpt2s(good):
    """nn.Linear's matrices stand the other way round than those of GPT-2."""
    turned = {n: t.T.contiguous() if ".c_" in n and t.dim() == 2 else t for n, t in good.items()}
    with pytest.raises(ValueError, match="has shape"):
        gpt2(turned, {"n_head": 4})


def test_an_odd_width_wants_the_number_of_heads(good):
    with pytest.raises(ValueError, match="24 wide, no multiple of 64: say n_head"):
        gpt2(good)
    with pytest.raises(ValueError, match="cannot be split evenly over 5 heads"):
        gpt2(good, {"n_head": 5})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation_function": "relu"}, "activation_function 'relu' is not what this GPT"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True"),
    ],
)
def test_settings_that_our_model_does_not_compute_are_refused(theirs, tmp_path, changes, message):
    theirs(**changes).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        gpt2(tmp_path)


def test_another_name_of_the_activation_another_width_of_the_mlp_and_epsilon(theirs, tmp_path):
    model = theirs(activation_function="gelu_pytorch_tanh", n_inner=48, layer_norm_epsilon=0.1)
    model.save_pretrained(tmp_path)
    assert same(gpt2(tmp_path), model)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"n_layer": 3}, "says 3 blocks, but holds weights of 2"),
        ({"n_embd": 32}, r"token.weight has shape \(37, 24\), not \(37, 32\)"),
        ({"tie_word_embeddings": False}, r"lacks 1 weights of the model: \['lm_head.weight"),
        ({"model_type": "imagegpt"}, "model_type 'imagegpt'"),
    ],
)
def test_a_config_that_does_not_describe_the_weights_is_refused(good, tmp_path, said, message):
    save_file(without(good, "lm_head.weight"), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"n_head": 4, **said}))
    with pytest.raises(ValueError, match=message):
        gpt2(tmp_path)


def test_the_keys_of_the_published_gpt2_are_known(theirs, tmp_path):
    model = theirs()
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


@pytest.mark.parametrize("read", [gpt2, llama])
def test_what_stands_in_place_of_the_files_is_explained(good, tmp_path, read):
    save_file(without(good, "lm_head.weight"), tmp_path / "model.safetensors")
    own = SMALL if read is gpt2 else LLAMA
    (tmp_path / "config.json").write_text(json.dumps(own))
    (tmp_path / "model.safetensors").write_bytes(LFS_POINTER)
    with pytest.raises(ValueError, match=r"Git LFS pointer.* `git lfs pull`"):
        read(tmp_path)


def test_whole_numbers_are_no_weights(good):
    whole = {name: tensor.to(torch.int8) for name, tensor in good.items()}
    with pytest.raises(ValueError, match=r"holds torch.int8, which is not read as torch.float32"):
        gpt2(whole, {"n_head": 4})


@pytest.mark.parametrize("text", ["[]", "{", '{"n_head": 0}'])
def test_a_damaged_config_is_explained(good, tmp_path, text):
    save_file(without(good, "lm_head.weight"), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json|does not describe a GPT"):
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
def their_llama():
    """Makes a Llama of `transformers` with random weights of a visible size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        from transformers import LlamaConfig, LlamaForCausalLM

    def make(seed=0, **changes):
        config = LlamaConfig(**{**LLAMA, **changes})
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = LlamaForCausalLM(config).eval()
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(0.1 * torch.randn(p.shape))
        return model

    return make


def agree(ours, theirs, seed=1):
    size = theirs.config
    generator = torch.Generator().manual_seed(seed)
    T = min(size.max_position_embeddings, 20)
    ids = torch.randint(size.vocab_size, (2, T), generator=generator)
    with torch.no_grad():
        want = theirs(ids).logits
        assert want.std() > 0.05  # large enough to compare
        return torch.allclose(ours(ids), want, rtol=0, atol=1e-4)


def odd_shape(seed):
    """A Llama of no usual size: tied or not, with shared keys or not, heads of any width."""
    draw = random.Random(seed)
    kv = draw.choice([1, 1, 2, 3])
    heads = kv * draw.choice([1, 2, 3, 5])
    free = draw.random() < 0.5
    size = 2 * draw.randint(1, 9)
    return {
        "vocab_size": draw.randint(2, 90),
        "hidden_size": heads * (draw.randint(1, 7) if free else size),
        "head_dim": size if free else None,
        "intermediate_size": draw.randint(1, 90),
        "num_hidden_layers": draw.choice([1, 2, 3, 11]),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "max_position_embeddings": draw.randint(3, 40),
        "rms_norm_eps": draw.choice([1e-6, 1e-5, 1e-3]),
        "rope_parameters": {"rope_type": "default", "rope_theta": draw.choice([50.0, 1e4, 1e5])},
        "attention_bias": (bias := draw.random() < 0.3),
        "mlp_bias": bias,
        "tie_word_embeddings": draw.random() < 0.5,
    }


@pytest.mark.parametrize("seed", range(5))
def test_a_llama_of_any_shape_is_that_of_transformers(their_llama, seed):
    model = their_llama(seed, **odd_shape(seed))
    ours = llama(weights(model), model.config.to_dict())
    assert agree(ours, model, seed)
    assert ours.n_parameters() == model.num_parameters() and not ours.training


def test_a_llama_from_a_folder_writes_the_same_with_its_cache(their_llama, tmp_path):
    model = their_llama(tie_word_embeddings=True)
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    ours = llama(tmp_path)
    assert ours.config.tied and agree(ours, model)
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
    assert agree(llama(weights(model), old), model)
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    assert agree(llama({**weights(model), **buffer}, old), model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mistral"}, "model_type 'mistral' is not what this GPT computes"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_type 'llama3'"),
        ({"rope_parameters": {"type": "linear", "factor": 4.0}}, "type 'linear'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"num_hidden_layers": 3}, "says 3 blocks, but holds weights of 2"),
        ({"intermediate_size": 41}, r"has shape \(40, 24\), not \(41, 24\)"),
        ({"num_key_value_heads": 4}, r"has shape \(12, 24\), not \(24, 24\)"),
        ({"num_attention_heads": 5}, "cannot be split"),
        ({"num_attention_heads": None}, "missing .* 'n_head'"),
        (
            {"head_dim": 3, "num_attention_heads": 8, "num_key_value_heads": 4},
            "does not describe a GPT: features are rotated in pairs: 3 is not an even number",
        ),
        ({"vocab_size": [37]}, "does not describe a GPT"),
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
        {"rope_parameters": None, "rope_scaling": {"type": "default"}},
        {"rope_parameters": {"type": "default", "rope_theta": 1e4}, "rope_scaling": None},
        {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28},
        {"embedding_multiplier": 1.0, "residual_multiplier": 1, "logits_scaling": 1.0},
        {"from_next_year": None, "no_such_norm": False, "no_such_scaling": {}, "no_such_list": []},
        {  # SmolLM2's
            "architectures": ["LlamaForCausalLM"],
            "bos_token_id": 1,
            "initializer_range": 0.041666666666666664,
            "is_llama_config": True,
            "rope_interleaved": False,
            "torch_dtype": "bfloat16",
            "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
            "transformers_version": "4.42.3",
        },
    ],
)
def test_settings_that_ask_for_nothing_are_accepted(their_llama, said):
    model = their_llama()
    assert agree(llama(weights(model), {**model.config.to_dict(), **said}), model)


def test_a_llama_from_one_file_needs_its_config(their_llama, tmp_path):
    model = their_llama()
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match=r"does not describe a GPT: .*n_head"):
        llama(file)
    assert agree(llama(file, model.config.to_dict()), model)


def test_a_llama_without_its_config_or_in_another_layout(their_llama, good, tmp_path):
    model = their_llama()
    with pytest.raises(ValueError, match=r"not in the layout of Llama: .*transformer"):
        llama({n: t for n, t in good.items() if "wte" not in n}, model.config.to_dict())
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        llama(tmp_path)


# --- GGUF -----------------------------------------------------------------------------------------


TOKENS = ["<|start|>", "<|end|>", *ALPHABET.values(), "he", "Ġt", "Ġthe"]
MERGES = ["h e", "Ġ t", "Ġt he"]


@pytest.fixture(scope="module")
def write_gguf():
    """Writes a Llama of transformers as llama.cpp's converter does; changes: of what it says."""
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
    from gguf.quants import quantize

    names = {
        "model.embed_tokens": "token_embd",
        "model.layers.": "blk.",
        "model.norm": "output_norm",
        "lm_head": "output",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }

    def interleaved(weight, heads):
        return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)

    def write(path, model, matrices="Q4_1", table="Q8_0", **changes):
        size, said = model.config, GGUFWriter(path, "llama")
        said.add_context_length(size.max_position_embeddings)
        said.add_block_count(size.num_hidden_layers)
        said.add_embedding_length(size.hidden_size)
        said.add_feed_forward_length(size.intermediate_size)
        said.add_head_count(size.num_attention_heads)
        said.add_head_count_kv(size.num_key_value_heads)
        said.add_key_length(size.head_dim)
        if changes.get("eps", True):
            said.add_layer_norm_rms_eps(size.rms_norm_eps)
        said.add_rope_freq_base(size.rope_parameters["rope_theta"])
        said.add_tokenizer_model(changes.get("cutting", "gpt2"))
        said.add_tokenizer_pre(changes.get("pre", "smollm"))
        if changes.get("tokens", TOKENS):
            said.add_token_list(changes.get("tokens", TOKENS))
        said.add_token_types([3, 3, *[1] * (len(TOKENS) - 2)])
        said.add_token_merges(MERGES)
        said.add_chat_template("{{ messages }}")
        if "turned" in changes:
            said.add_rope_dimension_count(changes["turned"])
        for name, value in changes.get("more", {}).items():
            kinds = {bool: "BOOL", int: "UINT64", float: "FLOAT32"}
            kind = GGUFValueType[kinds.get(type(value), "STRING")]
            said.kv_data[0].pop(name, None)
            said.add_key_value(name, value, kind)
        for name, tensor in model.state_dict().items():
            if name == "lm_head.weight" and size.tie_word_embeddings:
                continue
            if "q_proj" in name:
                tensor = interleaved(tensor, size.num_attention_heads)
            if "k_proj" in name:
                tensor = interleaved(tensor, size.num_key_value_heads)
            for theirs, short in names.items():
                name = name.replace(theirs, short)
            kind = table if name in ("token_embd.weight", "output.weight") else matrices
            kind = changes.get("norms", "F32") if tensor.dim() == 1 else kind
            kind = GGMLQuantizationType[kind]
            said.add_tensor(name, quantize(tensor.numpy(), kind), raw_dtype=kind)
        said.write_header_to_file()
        said.write_kv_data_to_file()
        said.write_tensors_to_file()
        said.close()
        return path

    return write


@pytest.fixture(scope="module")
def blocky(their_llama):
    """A Llama whose widths are multiples of 32, as blocks want it."""

    def make(tied=True, seed=0):
        return their_llama(
            seed,
            vocab_size=len(TOKENS),
            hidden_size=64,
            intermediate_size=96,
            head_dim=32,
            tie_word_embeddings=tied,
            rope_parameters={"rope_type": "default", "rope_theta": 1e5},
        )

    return make


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0"])
def test_a_gguf_file_is_the_model_that_was_written(blocky, write_gguf, tmp_path, tied, kind):
    model = blocky(tied)
    read = gguf(write_gguf(tmp_path / "a.gguf", model, matrices=kind, table="F32"))
    assert read.model.config.tied is tied and read.model.config.rotary_base == 1e5
    ids = torch.tensor([[3, 200, 7, 7, 1, 90]])
    with torch.no_grad():
        far = (read.model(ids) - model(ids).logits).abs().max()
    assert far < {"F32": 1e-4, "F16": 0.02, "BF16": 0.1, "Q8_0": 0.1}[kind]
    assert read.notes["tokenizer.chat_template"] == "{{ messages }}"


@pytest.mark.parametrize("tied", [True, False])
def test_the_model_in_four_bits_is_the_one_in_float32(blocky, write_gguf, tmp_path, tied):
    path = write_gguf(tmp_path / "a.gguf", blocky(tied))
    whole, small = gguf(path).model, gguf(path, int4=True).model
    layers = [part for part in small.modules() if isinstance(part, QuantizedLinear)]
    assert len(layers) == 2 * 7
    ids = torch.tensor([[3, 200, 7, 7, 1, 90]])
    with torch.no_grad():
        want, got = whole(ids), small(ids)
    assert want.std() > 0.5 and (got - want).abs().max() < 0.1 * want.std()


@pytest.mark.parametrize("tied", [True, False])
def test_a_table_in_four_bits_is_looked_up(blocky, write_gguf, tmp_path, tied):
    path = write_gguf(tmp_path / "a.gguf", blocky(tied), table="Q4_1")
    whole, small = gguf(path).model, gguf(path, int4=True).model
    ids = torch.tensor([[3, 200, 7, 7, 1, 90]])
    with torch.no_grad():
        want, got = whole(ids), small(ids)
    assert (got - want).abs().max() < 0.1 * want.std()


def test_a_gguf_tokenizer_cuts_as_its_file_says(blocky, write_gguf, tmp_path):
    single = gguf(write_gguf(tmp_path / "a.gguf", blocky())).tokenizer
    assert single.vocab_size == len(TOKENS) and single.special == {"<|start|>": 0, "<|end|>": 1}
    assert [single.piece(id) for id in single.encode(" the 12")] == [b" the", b" ", b"1", b"2"]
    assert single.encode("<|end|>", special=["<|end|>"]) == [1]
    gpt = gguf(write_gguf(tmp_path / "b.gguf", blocky(), pre="gpt-2")).tokenizer
    assert gpt.single_digits is False and gpt != single


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pre": "llama-bpe"}, "tokenizer.ggml.pre 'llama-bpe' is not what this GPT computes"),
        ({"cutting": "llama"}, "tokenizer.ggml.model 'llama'"),
        ({"turned": 16}, "llama.rope.dimension_count 16 is not what this GPT computes"),
        ({"tokens": []}, "lacks 'tokenizer.ggml.tokens'"),
        ({"more": {"llama.rope.scaling.type": "yarn"}}, "llama.rope.scaling.type 'yarn'"),
        ({"eps": False}, "lacks 'llama.attention.layer_norm_rms"),
        ({"more": {"llama.rope.freq_base": 0.0}}, "rotary_base should be above 0"),
        ({"more": {"llama.block_count": 3}}, "says 3 blocks, but holds weights of 2"),
        ({"more": {"llama.feed_forward_length": 64}}, r"has shape \(96, 64\), not \(64, 64\)"),
        ({"tokens": [*TOKENS[:2], *TOKENS[:1:-1]]}, "not numbered as here"),
    ],
)
def test_a_gguf_file_that_asks_for_more_is_refused(blocky, write_gguf, tmp_path, changes, message):
    path = write_gguf(tmp_path / "a.gguf", blocky(), **changes)
    with pytest.raises(ValueError, match=message):
        gguf(path)


@pytest.mark.parametrize(
    "more",
    [
        {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 1.0},
        {"llama.rope.scaling.finetuned": False, "llama.attention.sliding_window": 0},
        {"llama.expert_count": 0, "llama.expert_used_count": 0, "llama.attention.causal": True},
        {"llama.attention.value_length": 32, "llama.vocab_size": len(TOKENS)},
        {"general.author": "José".encode("latin-1")},
    ],
)
def test_what_asks_for_nothing_in_a_gguf_file_is_accepted(blocky, write_gguf, tmp_path, more):
    model = blocky()
    read = gguf(write_gguf(tmp_path / "a.gguf", model, matrices="F32", table="F32", more=more))
    ids = torch.tensor([[3, 200, 7, 7, 1, 90]])
    with torch.no_grad():
        assert torch.allclose(read.model(ids), model(ids).logits, rtol=0, atol=1e-4)
    if "general.author" in more:
        assert read.notes["general.author"] == "Jos�"


def test_a_norm_in_four_bits_is_read(blocky, write_gguf, tmp_path):
    model = blocky()
    path = write_gguf(tmp_path / "a.gguf", model, norms="Q4_1")
    whole, small = gguf(path).model, gguf(path, int4=True).model
    assert torch.equal(whole.norm.weight, small.norm.weight)


def test_judging_the_sizes_does_not_load_the_compiler():
    """Which the device "meta" does for some operations: chapter 17 would begin seconds later."""
    program = """
import sys
from helpers.formats.checkpoints import fitting_config
for position in ("LearnedPosition", "Rotary"):
    sizes = dict(vocab_size=9, block_size=9, n_layer=2, n_head=2, n_embd=8, position=position)
    try:
        fitting_config("an empty file", {"blocks.0.a": (1,), "blocks.1.a": (1,)}, sizes)
    except ValueError as error:
        print(error)
assert "sympy" not in sys.modules and "torch._inductor" not in sys.modules
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("an empty file lacks") == 2


def test_a_file_that_is_no_gguf(blocky, write_gguf, tmp_path):
    path = write_gguf(tmp_path / "a.gguf", blocky(), matrices="F16")
    whole = path.read_bytes()
    for length in (0, 3, 40, len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="not a whole GGUF file"):
            gguf(path)
    path.write_bytes(b"PK" + whole)
    with pytest.raises(ValueError, match="not a whole GGUF file"):
        gguf(path)
    with pytest.raises(FileNotFoundError):
        gguf(tmp_path / "none.gguf")


def test_reading_draws_nothing(blocky, write_gguf, tmp_path):
    """First weights that nobody needs would cost seconds, and the draws that follow their seed."""
    path = write_gguf(tmp_path / "a.gguf", blocky())
    before = torch.get_rng_state()
    gguf(path)
    assert torch.equal(torch.get_rng_state(), before)
