"""Fills in masks with a pre-trained model.

keras-bert fill-mask --model runs/pretrain/encoder --text "Returns a [MASK] of integers."
keras-bert fill-mask --model runs/pretrain/encoder
keras-bert fill-mask
"""

from keras_bert_impl.console import say
from keras_bert_training.commands.ask import converse, fill
from keras_bert_training.commands.export import choose_task, model_for
from keras_bert_training.commands.packaged_model import with_model
from keras_bert_training.options.fill_mask import FillMaskConfig as FillMaskConfig


def run(config):
    """Prints the guesses with their probabilities, and returns them; without texts, those for each line that is typed
    or piped."""
    config = with_model(config)
    task = choose_task(config.model, "fill_mask")  # a new head would guess at random
    model = model_for(task, config.model)
    if config.text is None:
        wanted = f"a sentence with {model.tokenizer.mask_texts[0]}"
        return converse(wanted, lambda line: fill(model, line, config.top_k, config.together))
    texts = [config.text] if isinstance(config.text, str) else config.text
    return [fill_and_print(model, text, config.top_k, config.together) for text in texts]


def fill_and_print(model, text, top_k, together=False):
    """Prints a text, and the likeliest words for each of its masks, or for all together, with their probabilities;
    returns these."""
    guesses = model.fill_mask(text, top_k, together)
    say(f"  {text}")
    for found in guesses:
        if together:
            say(f"    {found.probability:6.1%}  {found.text}")
        else:
            say("    " + "   ".join(f"{word.token} {word.probability:.1%}" for word in found))
    return guesses
