"""helpers.finetuning: dialogues as ids and masks, the loss on the answers, LoRA adapters."""

import copy

import pytest
import torch
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
    return torch.randint(50, (rows, T), generator=torch.Generator().manual_seed(1))


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


def test_a_prompt_has_no_completion_and_is_how_its_row_of_training_begins(tokenizer):
    prompt, mask = encode_chat(tokenizer, TALK[:4])
    row, _ = encode_chat(tokenizer, TALK)
    assert not any(mask[-len("assistant\n") :]) and row[: len(prompt)] == prompt
    assert sum(mask) == len(tokenizer.encode("cold")) + 1  # of the earlier answer


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
    trained(model, add_lora(model, rank))
    beside = model(ids())
    assert (beside - before).abs().max() > 0.01
    merged = merge_lora(model)
    assert merged is model and list(model.state_dict()) == names
    assert_close(model(ids()), beside, atol=1e-4, rtol=1e-4)
    fresh = GPT(model.config).eval()
    fresh.load_state_dict(model.state_dict())
    assert_close(fresh(ids()), beside, atol=1e-4, rtol=1e-4)


def test_only_adapters_get_gradients_and_change(model):
    weights = copy.deepcopy(model.state_dict())
    adapters = add_lora(model, 2)
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
