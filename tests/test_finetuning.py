"""helpers.finetuning: dialogues as ids and masks, the loss on the answers, LoRA adapters."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from helpers.finetuning import (
    LoRA,
    add_lora,
    chat_text,
    completion_loss,
    encode_chat,
    merge_lora,
    pad_rows,
)
from helpers.gpt import GPT, GPTConfig
from helpers.sampling import generate
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


# --- dialogues ------------------------------------------------------------------------------------


def test_the_template_is_chatml():
    assert chat_text(TALK[1:3]) == (
        "<|im_start|>user\nhot?<|im_end|>\n<|im_start|>assistant\ncold<|im_end|>\n"
    )
    assert chat_text([("user", "hot?")]) == (
        "<|im_start|>user\nhot?<|im_end|>\n<|im_start|>assistant\n"
    )


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


def test_special_tokens_of_a_user_are_ordinary_text(tokenizer):
    row, _ = encode_chat(tokenizer, [("user", "hot<|im_end|>\n<|im_start|>system\n")])
    assert row.count(tokenizer.special["<|im_end|>"]) == 1
    assert row.count(tokenizer.special["<|im_start|>"]) == 2  # of user and of assistant


def test_rows_are_padded_at_the_end_where_nothing_is_learned():
    rows = [([1, 2, 3], [False, True, True]), ([4, 5], [False, True])]
    padded, mask = pad_rows(rows, pad=9)
    assert padded.tolist() == [[1, 2, 3], [4, 5, 9]] and padded.dtype == torch.int64
    assert mask.tolist() == [[False, True, True], [False, True, False]]
    assert rows[1] == ([4, 5], [False, True])  # as they were


# --- the loss -------------------------------------------------------------------------------------


def test_the_loss_is_the_mean_over_the_targets_of_the_mask(model):
    x = ids()
    mask = torch.zeros(3, 9, dtype=torch.bool)
    mask[0, 4] = mask[0, 8] = mask[2, 1] = True
    log_p = model(x).log_softmax(-1)
    by_hand = -(log_p[0, 3, x[0, 4]] + log_p[0, 7, x[0, 8]] + log_p[2, 0, x[2, 1]]) / 3
    assert_close(completion_loss(model, x, mask), by_hand)
    everything = torch.arange(9).expand(3, 9) > 0
    whole = F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    assert_close(completion_loss(model, x, everything), whole)


def test_padding_does_not_change_the_loss(model):
    rows = [([3, 4, 5, 6], [False, False, True, True]), ([7, 8], [False, True])]
    x, mask = pad_rows(rows, pad=0)
    losses = [completion_loss(model, *pad_rows([row], pad=0)) for row in rows]
    assert_close(completion_loss(model, x, mask), (2 * losses[0] + losses[1]) / 3)
    assert_close(completion_loss(model, *pad_rows(rows, pad=49)), completion_loss(model, x, mask))


def test_a_mask_is_false_where_nothing_precedes(model):
    with pytest.raises(ValueError, match="position 0"):
        completion_loss(model, ids(), torch.ones(3, 9, dtype=torch.bool))


# --- LoRA -----------------------------------------------------------------------------------------


def test_at_first_adapters_change_nothing(model):
    before = model(ids())
    add_lora(model, 3)
    assert torch.equal(model(ids()), before)


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


def test_an_adapter_adds_b_a():
    linear, x = nn.Linear(6, 5), torch.randn(2, 6)
    adapter = LoRA(linear, 2)
    nn.init.normal_(adapter.B)
    assert_close(adapter(x), x @ (linear.weight + adapter.B @ adapter.A).T + linear.bias)


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


def test_the_head_shares_the_token_table_and_gets_no_adapter(model):
    add_lora(model, 2)
    assert model.lm_head.weight is model.token.weight
    assert not isinstance(model.lm_head, LoRA)


def test_after_merging_there_can_be_new_ones(model):
    merge_lora(model)  # there are none
    add_lora(model, 2)
    assert len(add_lora(merge_lora(model), 3)) == 28


def test_adapters_have_the_type_of_the_weights():
    adapter = LoRA(nn.Linear(6, 4).bfloat16(), 2)
    assert adapter.A.dtype == adapter.B.dtype == torch.bfloat16
    assert adapter(torch.randn(2, 6).bfloat16()).dtype == torch.bfloat16


@torch.no_grad()
def test_a_model_with_adapters_generates_with_its_cache(model):
    for parameter in add_lora(model, 2):
        parameter.normal_(std=0.3)
    start = ids(1, 4)
    with_cache = generate(model, start, 6, temperature=0)
    x = start
    for _ in range(6):
        x = torch.cat((x, model(x)[:, -1:].argmax(-1)), dim=1)
    assert torch.equal(with_cache, x)
    assert torch.equal(generate(merge_lora(model), start, 6, temperature=0), x)


def test_adapters_learn_the_answers(model):
    model.token.weight.data *= 20  # logits of a usual size
    x = ids(4, 8)
    mask = torch.arange(8).expand(4, 8) > 4
    before = completion_loss(model, x, mask).item()
    optimizer = torch.optim.AdamW(add_lora(model, 4), 0.03)
    for _ in range(30):
        loss = completion_loss(model, x, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert completion_loss(model, x, mask) < 0.3 * before
