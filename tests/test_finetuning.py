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


@pytest.mark.parametrize("messages", [[("robot", "hot?")], [("User", "hot?")]])
def test_an_unknown_role_is_refused(tokenizer, messages):
    with pytest.raises(ValueError, match=repr(messages[0][0])):
        encode_chat(tokenizer, messages)
    with pytest.raises(ValueError, match=repr(messages[0][0])):
        chat_text(messages)


def test_no_messages_and_a_tokenizer_without_the_template_are_refused(tokenizer):
    with pytest.raises(ValueError, match="no messages"):
        encode_chat(tokenizer, [])
    with pytest.raises(ValueError, match=r"im_start.*special"):
        encode_chat(BPETokenizer.train("hot cold", vocab_size=260), TALK)


def test_rows_are_padded_at_the_end_where_nothing_is_learned():
    rows = [([1, 2, 3], [False, True, True]), ([4, 5], [False, True])]
    padded, mask = pad_rows(rows, pad=9)
    assert padded.tolist() == [[1, 2, 3], [4, 5, 9]] and padded.dtype == torch.int64
    assert mask.tolist() == [[False, True, True], [False, True, False]]
    assert rows[1] == ([4, 5], [False, True])  # as they were
    with pytest.raises(ValueError, match="row 1 has 2 ids, but a mask of 3"):
        pad_rows([rows[0], ([4, 5], [True] * 3)], pad=0)
    with pytest.raises(ValueError, match="no rows"):
        pad_rows([], pad=0)


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


def test_masks_that_cannot_be_meant_are_refused(model):
    nothing = torch.zeros(3, 9, dtype=torch.bool)
    with pytest.raises(ValueError, match="True nowhere"):
        completion_loss(model, ids(), nothing)
    with pytest.raises(ValueError, match="position 0"):
        completion_loss(model, ids(), ~nothing)
    with pytest.raises(ValueError, match=r"\(3, 9\).*\(3, 8\)"):
        completion_loss(model, ids(), nothing[:, 1:])
    with pytest.raises(ValueError, match="int64"):
        completion_loss(model, ids(), nothing.long())


# --- LoRA -----------------------------------------------------------------------------------------


def test_at_first_adapters_change_nothing(model):
    before = model(ids())
    add_lora(model, 3)
    assert torch.equal(model(ids()), before)


@pytest.mark.parametrize(("rank", "alpha"), [(1, None), (4, None), (4, 8.0), (40, 1.0)])
def test_merged_computes_what_beside_computed(model, rank, alpha):
    before, names = model(ids()), list(model.state_dict())
    trained(model, add_lora(model, rank, alpha))
    beside = model(ids())
    assert (beside - before).abs().max() > 0.01
    merged = merge_lora(model)
    assert merged is model and list(model.state_dict()) == names
    assert_close(model(ids()), beside, atol=1e-4, rtol=1e-4)
    fresh = GPT(model.config).eval()
    fresh.load_state_dict(model.state_dict())
    assert_close(fresh(ids()), beside, atol=1e-4, rtol=1e-4)


def test_alpha_scales_what_the_adapter_adds():
    linear, x = nn.Linear(6, 5), torch.randn(2, 6)
    one, two = LoRA(linear, 2, alpha=2), LoRA(linear, 2, alpha=4)
    nn.init.normal_(one.B)
    two.load_state_dict(one.state_dict())
    assert_close(two(x) - linear(x), 2 * (one(x) - linear(x)))
    A, B = one.A, one.B
    assert_close(one(x), x @ (linear.weight + B @ A).T + linear.bias)


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


def test_named_layers_alone_get_adapters(model):
    adapters = add_lora(model, 2, names=["query", "value"])
    found = {name for name, part in model.named_modules() if isinstance(part, LoRA)}
    assert found == {f"blocks.{i}.attention.{n}" for i in (0, 1) for n in ("query", "value")}
    assert sum(p.numel() for p in adapters) == 2 * 2 * ((32 + 32) + (32 + 16))


def in_two_places(model):
    model.blocks[1].attention.query = model.blocks[0].attention.query


def weights_in_two_places(model):
    model.blocks[1].mlp.up.weight = model.blocks[0].mlp.gate.weight


def without_linear_layers(model):
    model.blocks = nn.ModuleList()  # as a model of 4-bit layers


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (None, {"names": ["query", "q_proj"]}, r"\['q_proj'\].*'query'"),
        (None, {"names": ["value", "lm_head"]}, "lm_head shares its weights .* tied=False"),
        (in_two_places, {}, "blocks.0.attention.query shares its weights"),
        (weights_in_two_places, {}, "blocks.0.mlp.gate shares its weights"),
        (without_linear_layers, {}, r"no nn.Linear is left .* \['lm_head'\]"),
        (None, {"names": []}, "no nn.Linear is left"),
        (None, {"alpha": float("nan")}, "alpha is a number above 0, or None, not nan"),
        (None, {"alpha": 0}, "alpha is a number above 0"),
        (None, {"rank": 0}, "rank is a whole number"),
    ],
)
def test_what_cannot_be_adapted_is_refused_and_nothing_is_changed(model, change, settings, message):
    if change is not None:
        change(model)
    before = list(model.state_dict())
    with pytest.raises(ValueError, match=message):
        add_lora(model, **{"rank": 2, **settings})
    assert list(model.state_dict()) == before
    assert all(p.requires_grad for p in model.parameters())


def test_adding_twice_and_merging_nothing_are_refused(model):
    with pytest.raises(ValueError, match="no adapters"):
        merge_lora(model)
    add_lora(model, 2)
    with pytest.raises(ValueError, match="already"):
        add_lora(model, 2)
    merge_lora(model)
    assert len(add_lora(model, 3)) == 28  # after merging, new ones


@pytest.mark.parametrize("rank", [0, -1, 2.0, True, None])
def test_a_rank_that_is_none_is_refused(rank):
    with pytest.raises(ValueError, match="rank"):
        LoRA(nn.Linear(3, 4), rank)


def test_another_layer_is_refused():
    with pytest.raises(TypeError, match="Embedding"):
        LoRA(nn.Embedding(3, 4), 1)


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
