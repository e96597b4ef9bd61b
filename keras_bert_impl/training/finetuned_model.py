"""Opens the model that a fine-tuning run has saved."""

from keras_bert_impl import checkpoints
from keras_bert_impl.families import build_encoder
from keras_bert_impl.models import FeatureTagger


def finetuned_model(config, task, path):
    """The model that a run has saved, and the names of its classes, None for a task without classes."""
    if (path / "model.keras").is_file():
        model = FeatureTagger.from_pretrained(path)
        return model, model.class_names
    checkpoint = checkpoints.open_checkpoint(path)
    names, length = checkpoint.class_names, min(config.sequence_length, checkpoint.config.max_length)
    model = task.build(build_encoder(checkpoint.config), checkpoint.tokenizer, names, length)
    checkpoints.load(model, checkpoint)
    for name, value in checkpoint.arguments_of(type(model)).items():
        setattr(model, name, value)
    return model, names
