"""Which encoder belongs to which configuration."""

from keras_bert_impl import checkpoints
from keras_bert_impl.configurations.albert import AlbertConfig
from keras_bert_impl.configurations.bert import BertConfig
from keras_bert_impl.configurations.distilbert import DistilBertConfig
from keras_bert_impl.configurations.electra import ElectraConfig
from keras_bert_impl.configurations.ernie import ErnieConfig
from keras_bert_impl.configurations.roberta import RobertaConfig, XLMRobertaConfig
from keras_bert_impl.encoders.albert import AlbertEncoder
from keras_bert_impl.encoders.bert import BertEncoder
from keras_bert_impl.encoders.distilbert import DistilBertEncoder
from keras_bert_impl.encoders.electra import ElectraEncoder
from keras_bert_impl.encoders.ernie import ErnieEncoder
from keras_bert_impl.encoders.roberta import RobertaEncoder, XLMRobertaEncoder

ENCODERS = {
    BertConfig: BertEncoder,
    DistilBertConfig: DistilBertEncoder,
    ElectraConfig: ElectraEncoder,
    RobertaConfig: RobertaEncoder,
    XLMRobertaConfig: XLMRobertaEncoder,
    AlbertConfig: AlbertEncoder,
    ErnieConfig: ErnieEncoder,
}


def family_of_name(name):
    """The class of the configurations of a published size. Raises: ValueError naming the known sizes."""
    found = next((config_class for config_class in ENCODERS if name in config_class.named_sizes), None)
    if found is None:
        known = (", ".join(config_class.named_sizes) for config_class in ENCODERS)
        raise ValueError(f"There is no size {name!r}; known are {'; '.join(known)}.")
    return found


def config_from_name(name, **fields):
    """The configuration of a published size of any family; keyword arguments replace its fields.

    Raises: ValueError naming the known sizes.
    """
    return family_of_name(name).from_name(name, **fields)


def build_encoder(config, **arguments):
    """The encoder of a configuration of any family; `arguments` are those of its constructor."""
    return ENCODERS[type(config)](config, **arguments)


def encoder_from_pretrained(path, report=False, **arguments):
    """The encoder of a checkpoint of any family, according to its config.json; see `BertEncoder.from_pretrained`."""
    checkpoint = checkpoints.open_checkpoint(path)
    return ENCODERS[type(checkpoint.config)].from_pretrained(checkpoint, report=report, **arguments)
