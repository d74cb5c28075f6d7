"""What the chapters share, on two floors.

The first floor is what the chapters build; each file reads from top to bottom, and none imports
from the second:

    kernels       faster dropout and attention for a CPU
    positions     learned and sinusoidal vectors, rotary angles
    attention     mask, the formula, one head, many heads, the cache
    gpt           the parts of a block, and the whole model from a config
    text          tokenizers: characters, byte pairs; n-gram models
    training      batches, loss, schedules, the loop
    optimizers    AdamW, Muon, and the two together
    sampling      generation: temperature, top-k, top-p, min-p, with a cache
    evaluation    negative log-likelihood, bits per character, bootstrap intervals
    finetuning    dialogues with a mask, the loss on the answers, LoRA adapters
    rewards       learning from rewards: advantages, policy gradient, KL, DPO, pass@k
    quantization  weights in blocks of few bits, and layers that compute from them
    seq2seq       from one text to another: recurrent, with attention, 2017's transformer
    hooks         the attention maps of a model that hands out none, and a model without some heads

The second floor is what surrounds them:

    formats       models and tokenizers in files: ours, Hugging Face's, GGUF
    runs          a training run with evaluations, interrupts and several processes
    data          real data by name: word vectors, plays, articles, trained models
    plots         still pictures in one look, one call for each kind

The exercises that answer back are in `exercises`, what moves is in `explorers`. Importing
``helpers`` alone loads nothing else, so that a cell that only reads data does not wait for torch.
"""
