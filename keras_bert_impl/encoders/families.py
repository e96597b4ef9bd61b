"""Which encoder belongs to which configuration."""

from keras_bert_impl import checkpoints
from keras_bert_impl.configurations.bert import BertConfig
from keras_bert_impl.configurations.distilbert import DistilBertConfig
from keras_bert_impl.encoders.bert import BertEncoder
from keras_bert_impl.encoders.distilbert import DistilBertEncoder

ENCODERS = {BertConfig: BertEncoder, DistilBertConfig: DistilBertEncoder}


def build_encoder(config, **arguments):
    """The encoder of a configuration of any family; `arguments` are those of its constructor."""
    return ENCODERS[type(config)](config, **arguments)


def encoder_from_pretrained(path, report=False, **arguments):
    """The encoder of a checkpoint of any family, according to its config.json; see `BertEncoder.from_pretrained`."""
    checkpoint = checkpoints.open_checkpoint(path)
    return ENCODERS[type(checkpoint.config)].from_pretrained(checkpoint, report=report, **arguments)
