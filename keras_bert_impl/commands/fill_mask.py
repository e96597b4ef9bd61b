"""Fills in masks with a pre-trained model.

keras-bert fill-mask --model runs/pretrain/encoder --text "Returns a [MASK] of integers."
"""

from keras_bert_impl.commands.export import choose_task
from keras_bert_impl.console import say
from keras_bert_impl.models import MaskedLM
from keras_bert_impl.options.fill_mask import FillMaskConfig as FillMaskConfig


def run(config):
    """Prints the guesses with their probabilities, and returns them."""
    choose_task(config.model, "fill_mask")  # a new head would guess at random
    model = MaskedLM.from_pretrained(config.model)
    texts = [config.text] if isinstance(config.text, str) else config.text
    return [fill_and_print(model, text, config.k, config.together) for text in texts]


def fill_and_print(model, text, k, together=False):
    """Prints a text, and the k likeliest words for each of its masks, or for all together, with their probabilities;
    returns these."""
    guesses = model.fill_mask(text, k, together)
    say(f"  {text}")
    if together:
        for filled in guesses:
            say(f"    {filled.probability:6.1%}  {filled.text}")
        return guesses
    for words in guesses:
        say("    " + "   ".join(f"{word.token} {word.probability:.1%}" for word in words))
    return guesses
