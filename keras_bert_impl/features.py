"""The contract between data and models: name, shape, type and meaning of every array that passes between them.

`batch` is the number of examples, `length` that of tokens in an example (padding included), and `predictions` that of
masked positions in it. With packing, an example holds several sequences.

| array                  | shape                | type    | meaning                                                    |
| ---                    | ---                  | ---     | ---                                                        |
| `token_ids`            | (batch, length)      | int32   | ids of the vocabulary; padding holds the id of [PAD]       |
| `segment_ids`          | (batch, length)      | int32   | 0 for `[CLS] a [SEP]`, 1 for `b [SEP]`, 0 for padding      |
| `padding_mask`         | (batch, length)      | int32   | 1 for a token, 0 for padding                               |
| `position_ids`         | (batch, length)      | int32   | packed: position of a token within its own sequence        |
| `sequence_ids`         | (batch, length)      | int32   | packed: 1, 2, ... for the sequences, 0 for padding;        |
|                        |                      |         | tokens attend only to their own sequence                   |
| `mask_positions`       | (batch, predictions) | int32   | ascending positions to predict; padded with 0. For models  |
|                        |                      |         | that read in one direction, positions of the tokens from   |
|                        |                      |         | which the next ones are predicted                          |
| `mask_ids`             | (batch, predictions) | int32   | label: the original ID; padded with 0                      |
| `mask_weights`         | (batch, predictions) | float32 | 1 for a prediction, 0 for its padding                      |
| `next_sentence_labels` | (batch,)             | int32   | label: 0 if b follows a (IsNext), 1 if b is random; in     |
|                        |                      |         | data about the order of sentences, 1 if a follows b        |
| `example_index`        | (batch,)             | int64   | number of the example in its dataset; its masks depend on  |
|                        |                      |         | it                                                         |

With packing, `next_sentence_labels` is (batch, sequences), and there are two more arrays:

| `cls_positions`        | (batch, sequences)   | int32   | where each sequence begins; padded with 0                  |
| `next_sentence_weights`| (batch, sequences)   | float32 | 1 for a sequence, 0 for padding of `cls_positions`         |

Outputs of an encoder: `sequence_output` (batch, length, hidden_size) and, if the family has a pooler, `pooled_output`
(batch, hidden_size); on request `hidden_states` and `attention_probabilities`, see `encoders.bert.BertEncoder`.
"""

import math

# Which tokens a token attends to: all, itself and those before it, or itself and those after it.
DIRECTIONS = ("both", "left_to_right", "right_to_left")
ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask")
PACKED_INPUTS = ("position_ids", "sequence_ids")
PRETRAINING_INPUTS = (*ENCODER_INPUTS, "mask_positions")
PRETRAINING_LABELS = ("mask_ids", "mask_weights", "next_sentence_labels")
PACKED_PRETRAINING_INPUTS = (*PRETRAINING_INPUTS, *PACKED_INPUTS, "cls_positions")
PACKED_PRETRAINING_LABELS = (*PRETRAINING_LABELS, "next_sentence_weights")


MASKING_RATE = 0.15  # the paper's (Devlin et al. 2019, section 3.1)


def usual_predictions(length, masking_rate=MASKING_RATE):
    """Returns the usual number of predictions in an example, an int: 20 for 128 tokens, and 77 for 512.

    Args:
        length (int): number of tokens.
        masking_rate (float, optional): fraction of the tokens to predict. Default: 0.15, as in the paper.
    """
    return math.ceil(masking_rate * length)
