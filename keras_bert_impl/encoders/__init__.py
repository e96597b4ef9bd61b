"""Encoders: what all share, and the families, one file each; `FAMILIES` is the one place where they are registered."""

from keras_bert_impl.configurations.known_families import (
    build_encoder,
    config_from_name,
    count_parameters,
    family_of,
    family_of_name,
    register,
    skeleton,
    weight_shapes,
)
from keras_bert_impl.encoders import (
    albert,
    bert,
    bigbird,
    deberta,
    deberta_v1,
    distilbert,
    electra,
    ernie,
    longformer,
    modernbert,
    mpnet,
    roberta,
    rotary,
    xlnet,
)

FAMILIES = (
    bert.FAMILY,
    distilbert.FAMILY,
    electra.FAMILY,
    deberta.FAMILY,
    deberta_v1.FAMILY,
    roberta.FAMILY,
    roberta.XLM_FAMILY,
    albert.FAMILY,
    ernie.FAMILY,
    mpnet.FAMILY,
    longformer.FAMILY,
    bigbird.FAMILY,
    modernbert.FAMILY,
    xlnet.FAMILY,
    *rotary.ROTARY_FAMILIES,
)
register(FAMILIES)
