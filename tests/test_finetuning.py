"""helpers.finetuning: dialogues as ids and masks, the loss on the answers, LoRA adapters."""

import copy

import pytest
import torch
from conftest import generator
from safetensors.torch import load, save
from torch.testing import assert_close

from helpers.finetuning import (
    add_lora,
    chat_text,
    completion_loss,
    encode_chat,
    merge_lora,
    pad_rows,
)
from helpers.gpt import GPT, GPTConfig
from helpers.quantization import QuantizedLinear, quantize
from helpers.text import BPETokenizer

NAMES = ["<|im_start|>", "<|im_end|>"]
TALK = [("system", "Be brief."), ("user", "hot?"), ("assistant", "cold")]
TALK += [("user", "up?"), ("assistant", "down")]


@pytest.fixture(scope="module")
def tokenizer():
    text = "user assistant system hot cold up down hot cold up down"
    return BPETokenizer.train([text], vocab_size=300, special=NAMES)


@pytest.fixture
def model():
    """A Llama of two blocks with grouped queries, whose head is tied."""
    torch.manual_seed(0)
    return GPT(
        GPTConfig(
            vocab_size=50, block_size=16, n_layer=2, n_head=4, n_embd=32, n_kv_head=2,
            norm="RMSNorm", mlp="SwiGLU", position="Rotary", bias=False,
        )
    ).eval()  # fmt: skip


def ids(rows=3, T=9):
    return torch.randint(50, (rows, T), generator=generator(1))


def trained(model, parameters, steps=3, rate=0.05):
    """Some steps that change the adapters."""
    mask = torch.arange(9).expand(3, 9) > 4
    optimizer = torch.optim.AdamW(parameters, rate)
    for _ in range(steps):
        optimizer.zero_grad()
        completion_loss(model, ids(), mask).backward()
        optimizer.step()


def test_ids_are_those_of_the_text_and_the_mask_those_of_all_answers(tokenizer):
    row, mask = encode_chat(tokenizer, TALK)
    assert tokenizer.decode(row) == chat_text(TALK) and len(row) == len(mask)
    learned = [i for i, learn in zip(row, mask, strict=True) if learn]
    assert tokenizer.decode(learned) == "cold<|im_end|>down<|im_end|>"
    assert not mask[0] and not mask[-1]  # nor the line break after the last message


def test_padding_does_not_change_the_loss(model):
    rows = [([3, 4, 5, 6], [False, False, True, True]), ([7, 8], [False, True])]
    x, mask = pad_rows(rows, pad=0)
    losses = [completion_loss(model, *pad_rows([row], pad=0)) for row in rows]
    assert_close(completion_loss(model, x, mask), (2 * losses[0] + losses[1]) / 3)
    assert_close(completion_loss(model, *pad_rows(rows, pad=49)), completion_loss(model, x, mask))


def test_a_mask_is_false_where_nothing_precedes(model):
    with pytest.raises(ValueError, match="position 0"):
        completion_loss(model, ids(), torch.ones(3, 9, dtype=torch.bool))


@pytest.mark.parametrize("rank", [1, 4, 40])
def test_merged_computes_what_beside_computed(model, rank):
    before, names = model(ids()), list(model.state_dict())
    trained(model, add_lora(model, rank, alpha=2))
    beside = model(ids())
    assert (beside - before).abs().max() > 0.01
    merged = merge_lora(model)
    assert merged is model and list(model.state_dict()) == names
    assert_close(model(ids()), beside, atol=1e-4, rtol=1e-4)
    fresh = GPT(model.config).eval()
    fresh.load_state_dict(model.state_dict())
    assert_close(fresh(ids()), beside, atol=1e-4, rtol=1e-4)


def test_adapters_are_trained_beside_4_bit_weights_and_found_in_a_file():
    matrix, x = torch.randn(32, 64), torch.randn(5, 64)
    models = [torch.nn.Sequential(QuantizedLinear(quantize(matrix, 4), False)) for _ in "ab"]
    before = models[0](x)
    for model in models:
        adapters = add_lora(model, 2, alpha=2)
    optimizer = torch.optim.AdamW(adapters, 0.1)
    for _ in range(2):
        models[1](x).square().sum().backward()
        optimizer.step()
    kept = save({name: p for name, p in models[1].named_parameters() if p.requires_grad})
    assert torch.equal(models[0](x), before) and not torch.equal(models[1](x), before)
    models[0].load_state_dict(load(kept))
    assert torch.equal(models[0](x), models[1](x))
    with pytest.raises(TypeError, match="4-bit"):
        merge_lora(models[0])


def test_only_adapters_get_gradients_and_change(model):
    weights = copy.deepcopy(model.state_dict())
    adapters = add_lora(model, 2, alpha=4)
    assert [p for p in model.parameters() if p.requires_grad] == adapters
    layers = 2 * (4 + 3)  # query, key, value, output; gate, up, output
    assert len(adapters) == 2 * layers
    trained(model, adapters)
    for name, tensor in model.state_dict().items():
        if name.endswith((".A", ".B")):
            continue
        assert torch.equal(tensor, weights[name.replace(".linear.", ".")]), name
    assert all(p.grad is not None for p in adapters)
    frozen = [p for p in model.parameters() if not p.requires_grad]
    assert frozen and all(p.grad is None for p in frozen)
