"""What the chapters share. A module imports only from those above it; import the one you need.

    files        files and folders written in one piece or not at all
    timing       how long a call takes
    plots        still pictures in one look, one call for each kind
    data         real data by name: word vectors, plays, articles, trained models
    text         tokenizers: characters, byte pairs; n-gram models
    fast         faster layers for a CPU
    positions    learned and sinusoidal vectors, rotary angles
    attention    mask, the formula, one head, many heads, the cache
    gpt          the parts of a block, and the whole model from a config
    distributed  several processes that train one model
    checkpoints  models in files, states of runs
    quantised    weights in blocks of few bits, and layers that compute from them
    gguf_file    what a GGUF file of llama.cpp holds
    published    weights of others as a GPT of ours: GPT-2's layout, Llama's, GGUF files
    export       a GPT of ours as a model for other programs, in the layout of GPT-2 or of Llama
    checks       arguments of training
    training     batches, loss, optimizers, schedules, the loop
    trainer      a run with evaluations, checkpoints and interrupts
    finetuning   dialogues with a mask, the loss on the answers, LoRA adapters
    encoder_decoder  from one text to another: recurrent, with attention, 2017's transformer
    sampling     generation: temperature, top-k, top-p, min-p, with a cache
    rewards      learning from rewards: advantages, policy gradient, KL, DPO, pass@k
    evaluation   negative log-likelihood, bits per character, bootstrap intervals
    recording    the attention maps of a model that hands out none, and a model without some heads

The exercises that answer back are in `exercises`, what moves is in `explorers`. Importing
``helpers`` alone loads nothing else, so that a cell that only reads data does not wait for torch.
"""
