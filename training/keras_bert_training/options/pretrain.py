"""The options of `keras-bert pretrain`, in the groups that its help shows."""

import dataclasses
import typing

from keras_bert_impl.device_options import Distribution
from keras_bert_impl.features import MASKING_RATE


@dataclasses.dataclass(kw_only=True)
class ModelOptions:
    """The size of a model, and its initial weights.

    Args:
        size: bert_tiny, bert_mini, bert_small, bert_medium, bert_base or bert_large; electra_small, electra_base or
            electra_large, which learn which tokens were replaced; roberta_small, roberta_base or roberta_large, which
            learn masked words alone, also from pairs; albert_base, albert_large, albert_xlarge or albert_xxlarge, which
            also learn sentence order, from data made with --pairs sentence_order; ernie_small or ernie_base;
            bigbird_tiny, bigbird_base or bigbird_large; mpnet_base, xlnet_tiny to xlnet_large, longformer_tiny to
            longformer_large, modernbert_tiny to modernbert_large, ettin_17m to ettin_1b, mmbert_small, mmbert_base,
            eurobert_small to eurobert_2b, ultrabert_small, ultrabert_base, nomic_bert_small, nomic_bert_base, gte_small
            to gte_multilingual_base, deberta_base or deberta_v3_xsmall to deberta_v3_large, which learn masked words
            alone, or what their papers did by objective.
        objective: masked_lm; span_boundary, which adds SpanBERT's prediction of masked spans from the two tokens around
            them, for data without pairs and with masking_unit span; enhanced_masked_lm, with which DeBERTa's versions 1
            and 2 predicted masked words also from absolute positions; permuted_lm, words in a random order, as in
            XLNet, and with an MPNet also masked; or replaced_tokens, for DeBERTa version 3. An ELECTRA always learns
            replaced_tokens.
        num_layers, hidden_size, num_heads, intermediate_size: replace the values that belong to the size.
        generator_size: for ELECTRA, the generator's width and heads as a fraction of the discriminator's; default is
            0.25, the paper tries 0.25 to 0.5. For DeBERTa, the same for its layers; default is 0.5, as in the paper.
        initializer_range: standard deviation of the initial weights; 0.02 in the paper. A narrow model learns sooner
            with more.
        dropout_rate: dropout on hidden states and attention; 0.1 in the paper, 0 if training sees the data only a few
            times.
        init: checkpoint directory to start from, such as the encoder of a training on shorter sequences; default is
            random weights.
    """

    TITLE: typing.ClassVar = "the model"

    size: str = "bert_mini"
    objective: typing.Literal["masked_lm", "span_boundary", "enhanced_masked_lm", "permuted_lm", "replaced_tokens"] = (
        "masked_lm"
    )
    num_layers: int | None = None
    hidden_size: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    generator_size: float | None = None
    initializer_range: float | None = None
    dropout_rate: float = 0.1
    init: str | None = None


@dataclasses.dataclass(kw_only=True)
class ObjectiveOptions:
    """The tokens to mask and to predict.

    Args:
        masking_unit: unit that is masked: token as in the paper, whole_word, span as in SpanBERT, ngram as in ALBERT,
            context_span as in XLNet, or phrase as in ERNIE, for data prepared with --phrases; only for data that is
            masked while it is read.
        masking_rate: fraction of the tokens that are chosen to be predicted; 0.15 in the paper, 0.25 for the largest
            ELECTRA. A small model learns sooner with more.
        mask_token_rate: fraction of the chosen tokens that become [MASK]; default is 0.8 as in the paper, which tries
            others in table 8, and for ELECTRA 0.85 as in its authors' code.
        random_token_rate: fraction of them that become a random token; default is 0.1 as in the paper, and for ELECTRA
            0. The others stay unchanged.
        direction: both predicts masked tokens from the text on both sides, as in the paper; left_to_right and
            right_to_left train a language model that reads in one direction, like GPT: every token predicts the next,
            with no mask and no next sentences (section 5.1).
        next_sentence: whether to predict next sentences, or with an ALBERT their order; default is yes if the data are
            pairs, the direction is both, and the family learns from pairs.
    """

    TITLE: typing.ClassVar = "the objective"

    masking_unit: typing.Literal["token", "whole_word", "span", "ngram", "context_span", "phrase"] = "token"
    masking_rate: float = MASKING_RATE
    mask_token_rate: float | None = None
    random_token_rate: float | None = None
    direction: typing.Literal["both", "left_to_right", "right_to_left"] = "both"
    next_sentence: bool | None = None


@dataclasses.dataclass(kw_only=True)
class RowOptions:
    """The examples in a batch.

    Args:
        sequence_length: length of the examples to train on, one of the prepared lengths; default is the shorter one.
        batch_size: number of examples in a batch.
        validation_batches: number of validation batches after each round, with examples from all files of the split.
        streams: number of streams to divide the files into. A batch takes equally many examples from each stream, and
            each of several JAX processes reads only its own streams: for more than about 48 chips, where reading all
            files limits the speed. The batches are the same for any number of processes that divides the number of
            streams.
    """

    TITLE: typing.ClassVar = "the examples"

    sequence_length: int | None = None
    batch_size: int = 32
    validation_batches: int = 20
    streams: int = 1


@dataclasses.dataclass(kw_only=True)
class OptimizerOptions:
    """The optimizer and its learning rate.

    Args:
        learning_rate: peak learning rate, reached after the warm-up; then it decays to 0.
        schedule: linear, as in the paper: the learning rate falls from its peak to the end; or stable: it stays at its
            peak, and falls at the end by the square root, as in ModernBERT.
        decay_share: for schedule stable, the fraction of the steps in which the learning rate falls; 0.1 if not given.
        warmup_share: fraction of the steps in which the learning rate rises; 1 % in the paper.
        weight_decay: weight decay, not applied to biases and layer norms; 0.01 in the paper.
        beta_2: decay rate of AdamW's second moment; 0.999 in the paper, 0.98 for runs of a few thousand steps.
        optimizer: adamw as in the paper, lamb for batches of thousands of examples, or stable_adamw, ModernBERT's,
            which does not clip gradients.
        moments: float32, or bfloat16, which stores the two moments of adamw and stable_adamw in half the memory,
            rounded at random so that their means are kept.
        gradient_accumulation_steps: number of batches whose gradients are accumulated before the weights are updated.
        ema_momentum: keep an exponential moving average of the weights with this momentum, for example 0.999, and save
            the average.
    """

    TITLE: typing.ClassVar = "the optimizer"

    learning_rate: float = 1e-4
    schedule: typing.Literal["linear", "stable"] = "linear"
    decay_share: float | None = None
    warmup_share: float = 0.01
    weight_decay: float = 0.01
    beta_2: float = 0.999
    optimizer: typing.Literal["adamw", "lamb", "stable_adamw"] = "adamw"
    moments: typing.Literal["float32", "bfloat16"] = "float32"
    gradient_accumulation_steps: int | None = None
    ema_momentum: float | None = None


@dataclasses.dataclass(kw_only=True)
class LengthOptions:
    """The length of a training, and its saves.

    Args:
        steps: number of batches to train on; default is as many as fit into `max_minutes`.
        steps_per_round: steps in a round; after each round progress is printed, the model is validated and the state is
            saved. Default is a twentieth of all steps, at most 1,000.
        encoder_rounds: also save the model after every so many rounds, in encoders/STEP, to compare them later; default
            is only at the end.
        save_minutes: save the state also within a round, after so many minutes; default is only at its end.
        max_minutes: train for this many minutes, or for `steps` if that takes less time; default is no limit. How many
            steps fit into the time is measured at the start and again after each round, and the learning rate falls so
            that it is 0 when the time is up.
    """

    TITLE: typing.ClassVar = "how long"

    steps: int | None = None
    steps_per_round: int | None = None
    encoder_rounds: int | None = None
    save_minutes: float | None = None
    max_minutes: float | None = None


@dataclasses.dataclass(kw_only=True)
class SpeedOptions:
    """Speed and memory.

    Args:
        gradient_checkpointing: compute each block twice instead of keeping its activations: a third more compute, but
            much larger batches in the same memory.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: compile with XLA, or on torch with its own compiler: on, off, or auto, which means on for JAX, for
            torch on a GPU, and for TensorFlow whichever is measured to be faster.
        steps_per_execution: number of steps that Keras runs in one call: metrics, SIGTERM and a NaN or infinite loss
            are handled after the last of them. Default is 20 to 50 on an accelerator, which then seldom waits for
            Python, and 1 on a CPU; it must be 1 on torch. A resumed run keeps its number.
        profile_steps: record a profile of these steps, for example 100:110, in the folder profile of the output.
        compilation_cache: on JAX, where to keep compiled programs for the next start: a directory, off, or auto, which
            means JAX_COMPILATION_CACHE_DIR, or ~/.cache/keras_bert_impl/compiled on an accelerator and none on a CPU.
    """

    TITLE: typing.ClassVar = "speed and memory"

    gradient_checkpointing: bool = False
    precision: typing.Literal["float32", "mixed_bfloat16"] = "float32"
    jit_compile: typing.Literal["auto", "on", "off"] = "auto"
    steps_per_execution: int | None = None
    profile_steps: str | None = None
    compilation_cache: str = "auto"


@dataclasses.dataclass
class PretrainConfig(
    ModelOptions,
    ObjectiveOptions,
    RowOptions,
    OptimizerOptions,
    LengthOptions,
    SpeedOptions,
    Distribution,
):
    """Pre-trains BERT on masked words, and on next sentences if the data are pairs; other families on their own tasks.

    Args:
        data: directory that keras-bert prepare-data wrote; also a remote one that TensorFlow can read, such as
            gs://bucket/folder.
        output: run directory; the same command resumes an interrupted run. On JAX also gs://bucket/folder.
        seed: random seed for initial weights, order of the examples and masks.
    """

    data: str
    output: str
    seed: int = 0

    def part(self, kind):
        """The options of one of the groups, alone."""
        return kind(**{field.name: getattr(self, field.name) for field in dataclasses.fields(kind)})
