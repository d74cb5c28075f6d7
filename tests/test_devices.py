"""Data and ids go to the model's device, and a seed means the same there as on the CPU."""

import pytest
import torch
from conftest import generator
from second_device import There, second_device

from helpers.evaluation import bootstrap_means, most_likely, token_nll
from helpers.finetuning import add_lora, completion_loss
from helpers.gpt import GPT, GPTConfig
from helpers.hooks import attention_maps
from helpers.positions import Rotary
from helpers.rewards import completion_log_probs, policy_gradient_loss, sample_completions
from helpers.sampling import generate
from helpers.seq2seq import Transformer, greedy_decode
from helpers.text import CharTokenizer
from helpers.training import estimate_loss, train

V = 12
IDS = torch.randint(V, (2, 6), generator=generator(0))
STREAM = torch.arange(60) % V
SIZES = {"block_size": 8, "batch_size": 2}
ROTARY = {"position": "Rotary", "convolution": 3, "qk_norm": True, "n_kv_head": 1}


def gpt(**settings):
    torch.manual_seed(0)
    return GPT(GPTConfig(V, 10, 2, 2, 8, tied=False, **settings))


def trained(model):
    rate = torch.optim.SGD(model.parameters(), 0.1)
    return train(model, STREAM, **SIZES, steps=3, optimizer=rate, generator=generator())


TEXT = [IDS[0, :3], IDS[1, :2].tolist()]  # two prompts of different lengths
WORK = {
    "generate": lambda m: generate(m, IDS, 7, generator=generator()),
    "ragged": lambda m: torch.cat(generate(m, TEXT, 9, generator=generator())),
    "loss": lambda m: estimate_loss(m, STREAM, **SIZES),
    "batches": lambda m: estimate_loss(m, STREAM, **SIZES, batches=2, generator=generator()),
    "train": trained,
    "nll": lambda m: token_nll(m, STREAM, 5),
    "likely": lambda m: ord(most_likely(m, CharTokenizer("abcdefghijkl"), "ab", "cde", "f")),
    "bootstrap": lambda m: bootstrap_means(token_nll(m, STREAM), 5, generator()),
    "completions": lambda m: sample_completions(m, IDS, 4, 3, generator=generator())[0],
    "log probs": lambda m: completion_log_probs(m, IDS, 3).detach(),
    "policy gradient": lambda m: policy_gradient_loss(
        m.norm.weight.detach()[None], m.norm.weight[None] > 0, torch.ones(1)
    ),
    "completion loss": lambda m: completion_loss(
        m, IDS, (IDS > 3) & (torch.arange(6) > 0)
    ).detach(),
    "maps": lambda m: attention_maps(m, IDS[:1]),
    "adapters": lambda m: add_lora(m, 2, 2)[0].detach(),
}


@pytest.mark.parametrize(
    ("settings", "work"),
    [
        *((ROTARY, work) for work in WORK),
        *(({"position": "SinusoidalPosition"}, work) for work in ("ragged", "train")),
        *(({}, work) for work in ("ragged", "train")),
    ],
)
def test_a_model_on_another_device_does_what_it_does_on_the_cpu(settings, work):
    with second_device() as device:
        results = []
        for where in ("cpu", device):
            torch.manual_seed(2)
            results.append(WORK[work](gpt(**settings).to(where)))
        here, there = (r.cpu() if isinstance(r, torch.Tensor) else torch.tensor(r) for r in results)
    torch.testing.assert_close(there, here, rtol=1e-4, atol=1e-5)


def test_letters_are_read_where_the_encoder_is():
    torch.manual_seed(0)
    model = Transformer(8)
    with second_device() as device:
        assert greedy_decode(model, ["ab", "c"], 5) == greedy_decode(
            model.to(device), ["ab", "c"], 5
        )


def test_rotary_tables_lie_where_queries_do_and_are_not_copied_again():
    rotary, x = Rotary(4), torch.randn(1, 1, 6, 4)
    with second_device() as device:
        there = x.to(device)
        rotary(there)
        tables = rotary._cos, rotary._sin
        assert all(isinstance(table, There) for table in tables)
        assert torch.equal(rotary(there).cpu(), Rotary(4)(x))
        assert tables[0] is rotary._cos and tables[1] is rotary._sin
    assert torch.equal(rotary(x), Rotary(4)(x))  # and back


def test_the_imitation_refuses_what_a_gpu_refuses():
    with second_device() as device:
        with pytest.raises(RuntimeError, match="two devices"):
            gpt().to(device)(IDS)
        with pytest.raises(RuntimeError, match="two devices"):
            torch.randn(3)[torch.tensor([0], device=device)]
