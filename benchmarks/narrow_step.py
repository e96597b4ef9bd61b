"""What Python takes of a training step on torch: 12 layers so narrow that arithmetic counts nothing, on one thread.

    python benchmarks/narrow_step.py --output DIR

Ours through `fit`, Hugging Face's in a loop, each with AdamW, weight decay, clipping and dropout 0.1.
"""

import pretraining_step
from in_turn import OURS, Case, Setting, Target, main, median_seconds

STEPS, VOCABULARY = 200, 1100


def measure(setting):
    """Steps per second: ours the median of three epochs, theirs of the steps."""
    import torch

    from keras_bert_impl import BertConfig

    torch.set_num_threads(1)
    config = BertConfig(
        VOCABULARY, hidden_size=8, num_layers=12, num_heads=2, intermediate_size=8, hidden_dropout_rate=0.1,
        attention_dropout_rate=0.1,
    )  # fmt: skip
    batch = pretraining_step.batch(8, 8, 2, VOCABULARY)
    if setting.side == OURS:
        from accelerator import timed_fit

        model = pretraining_step.our_model(config, setting.precision, setting.compiled)
        return 1 / timed_fit(model, batch, STEPS)[1]
    step = pretraining_step.transformers_training(config, *batch, setting.precision, setting.compiled)
    return 1 / median_seconds(step, warm=4, repeats=STEPS)


def case():
    settings = [
        Setting(side, "torch", "float32", compiled) for side in (OURS, "transformers") for compiled in (True, False)
    ]
    goals = (1 / 0.6, False), (1 / 0.8, True)
    targets = [Target("transformers", at_least, {"compiled": compiled}) for at_least, compiled in goals]
    return Case("A step of 12 layers of width 8 on torch, one thread", "steps", settings, targets, measure)


if __name__ == "__main__":
    main(case(), __file__)
