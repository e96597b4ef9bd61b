"""What models and data preparation need of a tokenizer, whatever its algorithm."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from keras_bert_impl.text.tokenizers.rows import RowTemplate, rows_from_texts
from keras_bert_impl.text.tokenizers.words import word_numbers


class Encoding(NamedTuple):
    """The tokens of a text or of a pair, as `Tokenizer.encode` returns them.

    Fields:
        ids (list of int): the tokens' numbers in the vocabulary.
        tokens (list of str): the tokens.
        type_ids (list of int): their segments.
        sequence_ids (list of int): 0 for the first text, 1 for the second, None for control tokens.
        offsets (list of tuple): start and end of each token in its text, in characters; (0, 0) for control tokens.
    """

    ids: list[int]
    tokens: list[str]
    type_ids: list[int]  # segments
    sequence_ids: list[int | None]  # 0 or 1; None for control tokens
    offsets: list[tuple[int, int]]  # first character of each piece in its text, and that after its last; (0, 0)


class Tokenizer:
    """Base class of the tokenizers: turns texts into token IDs and character offsets, without TensorFlow.

    Call a tokenizer to get a model's inputs: `tokenizer(texts, pairs=None, sequence_length=512)` returns a dict of
    `token_ids`, `segment_ids` and `padding_mask`, int32 (batch, length). Control tokens in a text are ordinary text;
    only `encode_with_masks` recognizes the mask token.

    Attributes:
        vocabulary (list of str): the tokens in the order of their IDs.
        vocabulary_size (int): their number.
        pad_id, unk_id, cls_id, sep_id, mask_id (int): IDs of the control tokens, by their meaning.
        mask_texts (tuple of str): texts that mean a masked word; the first is the name of the mask token.
        lowercase (bool): whether text is lower-cased.
        added_tokens (list or dict): tokens that are never split; None if the algorithm has none.
        kind (str): name of the algorithm, as in `keras-bert prepare-data --tokenizer`.
        files (tuple of str): names of the files that `save_pretrained` writes.
        template, stripped: arrangement of control tokens and texts; white space before a mask that belongs to it.
        published_class, similar_classes, listed_tokens: for files, classes in transformers and further tokens.

    A subclass also has these methods:
        ids_batch(texts): the IDs of each text without control tokens.
        decode(ids, skip_special_tokens=True): the text of IDs.
        is_continuation: for each token of the vocabulary whether it continues the word before it; for masking.
        pipeline(masks=False): the equivalent tokenizer of the `tokenizers` library, which can be saved; with `masks`,
            it recognizes the name of the mask token in a text.
        piece_text(index): a token as readable text.
        _cut(text): the IDs, tokens and offsets of a text.
        get_config(): the arguments of `from_config` as values that JSON can hold.
        is_in(files): whether the `VocabularyFiles` of a checkpoint directory belong to such a tokenizer.
        from_pretrained(directory): opens the tokenizer of a checkpoint directory.
        write_vocabulary_files(directory): writes all of `files` except tokenizer_config.json, whose content it returns.
    """

    kind: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    published_class: ClassVar[str]
    similar_classes: ClassVar[tuple[str, ...]] = ()
    template: ClassVar[RowTemplate]
    mask_texts: ClassVar[tuple[str, ...]]

    added_tokens: Sequence[str] | None = None
    listed_tokens: ClassVar[tuple[str, ...]] = ()
    stripped: str = ""
    vocabulary: list[str]
    _ids: dict[str, int]

    def _ids_of(self, names: Sequence[str], source: str) -> list[int]:
        """The ids of control tokens. Raises: ValueError naming `source` if one is missing."""
        self._ids = {token: index for index, token in enumerate(self.vocabulary)}
        if len(self._ids) < len(self.vocabulary) or "" in self._ids:
            line, token = next((n, one) for n, one in enumerate(self.vocabulary) if not one or self._ids[one] != n)
            raise ValueError(
                f"{source} line {line + 1}: {token!r} is empty, or repeated in line {self._ids[token] + 1}. Each token "
                "needs one id, in transformers that of the later line: rename the earlier one, e.g. to [unused1]."
            )
        missing = [name for name in names if name not in self._ids]
        if missing:
            raise ValueError(f"{source} has no {missing[0]}; {type(self).__name__} needs {' '.join(names)}.")
        unknown = set(self.added_tokens or ()) - self._ids.keys()
        if unknown:
            raise ValueError(f"the added token {min(unknown)!r} is not in the vocabulary: give it an id.")
        return [self._ids[name] for name in names]

    def __reduce__(self):
        # Libraries' pipelines cannot always be pickled, so a tokenizer is built again from its arguments.
        return type(self).from_config, (self.get_config(),)

    @classmethod
    def from_config(cls, config: dict) -> "Tokenizer":
        """Returns the tokenizer that `get_config` describes."""
        return cls(**config)

    def save_pretrained(self, directory: str | Path, sequence_length: int | None = None) -> None:
        """Saves the tokenizer's `files`, which Hugging Face's tokenizers open.

        Args:
            directory (str or pathlib.Path): created if it does not exist.
            sequence_length (int, optional): number of tokens that the model truncates texts to, saved as Hugging Face's
                `model_max_length`. Default: None, not saved.
        """
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        config = self.write_vocabulary_files(directory)
        if sequence_length is not None:
            config["model_max_length"] = sequence_length
        (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self.get_config() == other.get_config()

    __hash__ = None

    @property
    def vocabulary_size(self) -> int:
        return len(self.vocabulary)

    @property
    def control_ids(self) -> tuple[int, int, int]:
        """The IDs of control tokens in inputs, which are never masked: [CLS], [SEP], [PAD]."""
        return self.cls_id, self.sep_id, self.pad_id

    @property
    def control_tokens(self) -> dict[str, str]:
        """The control tokens by their names in Hugging Face's files, such as "pad_token"."""
        names = ("pad", "unk", "cls", "sep", "mask")
        return {f"{name}_token": self.vocabulary[getattr(self, f"{name}_id")] for name in names}

    @property
    def _control_tokens_with_stripping_mask(self) -> dict:
        """`control_tokens`, of which that for masks takes the space before it along, as in published files."""
        flags = {"lstrip": True, "normalized": False, "rstrip": False, "single_word": False, "special": True}
        mask = {"__type": "AddedToken", "content": self.vocabulary[self.mask_id], **flags}
        return {**self.control_tokens, "mask_token": mask}

    @property
    def row_processor(self):
        """The step of a pipeline that puts texts between control tokens."""
        return self.template.processor(*((self.id_to_token(index), index) for index in (self.cls_id, self.sep_id)))

    @property
    def special_ids(self) -> set[int]:
        """The IDs of all control tokens, including the unknown and the mask token."""
        return {*self.control_ids, self.unk_id, self.mask_id}

    def __call__(
        self, texts: str | Sequence[str], pairs: str | Sequence[str] | None = None, sequence_length: int = 512
    ) -> dict:
        """Returns the model's inputs for texts, or for pairs of texts.

        Args:
            texts (str or list of str): texts. A single str gives a batch of one.
            pairs (str or list of str, optional): the second text of each pair. Default: None.
            sequence_length (int, optional): largest number of tokens; the longer text of a pair is truncated first, and
                a warning says how many were. Default: 512.

        Returns: dict of `token_ids`, `segment_ids`, `padding_mask`, int32 (batch, length), padded to the longest,
            rounded up to a multiple of 32.
        Raises: ValueError if sequence_length leaves no room for text.
        """
        first, second = ([text] if isinstance(text, str) else text for text in (texts, pairs))
        return rows_from_texts(self, first, second, sequence_length)

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> Encoding:
        """Encodes one text, or one pair of texts, with its control tokens.

        Args:
            text (str): the text.
            pair (str, optional): the second text of a pair. Default: None.
            add_special_tokens (bool, optional): whether to add control tokens. Default: True.

        Returns: an Encoding.
        """
        parts = [self._cut(one) for one in (text, pair) if one is not None]
        if not add_special_tokens:
            return _joined([self._of_text(part, number) for number, part in enumerate(parts)])
        before, between, after, second_segment, _ = self.template
        sequence = [*self._controls(before), self._of_text(parts[0], 0)]
        if pair is not None:
            sequence += [*self._controls(between), self._of_text(parts[1], 1)]
        return _joined([*sequence, *self._controls(after, 0 if pair is None else second_segment)])

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[Encoding]:
        """Encodes each text as `encode` does.

        Args:
            texts (list of str): the texts.
            add_special_tokens (bool, optional): whether to add control tokens. Default: True.

        Returns: a list of `Encoding`.
        """
        return [self.encode(text, add_special_tokens=add_special_tokens) for text in texts]

    def encode_with_masks(self, text: str) -> Encoding:
        """Encodes a text in which each of `mask_texts`, such as "[MASK]", is the mask token.

        White space before a mask belongs to the mask, and what follows it is encoded on its own, as in Hugging Face's
        tokenizers.

        Args:
            text (str): the text.

        Returns: an Encoding.
        """
        found, begin = self._controls(self.template.before), 0
        for mask in [*re.finditer("|".join(map(re.escape, self.mask_texts)), text), None]:
            part = text[begin:] if mask is None else text[begin : mask.start()].rstrip(self.stripped)
            ids, tokens, offsets = self._cut(part)
            found.append(self._of_text((ids, tokens, [(begin + first, begin + last) for first, last in offsets]), 0))
            if mask is not None:
                found.append(Encoding([self.mask_id], [self.vocabulary[self.mask_id]], [0], [0], [mask.span()]))
                begin = mask.end()
        return _joined([*found, *self._controls(self.template.after)])

    def word_numbers(self, text: str, encoding: Encoding) -> np.ndarray:
        """Returns the number of the word that each token belongs to, ascending from 0.

        Words end at white space, and before and after each punctuation mark.

        Args:
            text (str): the text.
            encoding (Encoding): its encoding without control tokens.

        Returns: an int array (tokens,).
        """
        return word_numbers(text, encoding.offsets)

    def in_running_text(self, sentences: Sequence[str]) -> Sequence[str]:
        """The sentences of a document, or the words of a sentence, as `ids_batch` has to get them so that all their
        ids together are those of running text."""
        return sentences

    def ids_of_words(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """For each sentence, a list of words, the ids of each word: those that it has in running text; none of an empty
        word. A word that is removed completely, like a lone U+200D, becomes the unknown token."""
        written = [[word for word in words if word] for words in sentences]
        ids = iter(self.ids_batch([word for words in written for word in self.in_running_text(words)]))
        return [[(next(ids) or [self.unk_id]) if word else [] for word in words] for words in sentences]

    def filled_text(self, text: str, tokens: Sequence[str]) -> str:
        """The text with vocabulary entries in place of its masks, which take the space before them along."""
        filled, *others = re.split("|".join(map(re.escape, self.mask_texts)), text)
        for token, following in zip(tokens, others, strict=True):
            piece, filled = self.piece_text(self._ids[token]), filled.rstrip()
            filled += (piece if filled else piece.removeprefix(" ")) + following
        return filled

    def _tokens(self, ids: Sequence[int], skip_special_tokens: bool) -> list[str]:
        special = self.special_ids if skip_special_tokens else ()
        return [self.vocabulary[index] for index in map(int, ids) if index not in special]

    def _controls(self, slot, segment=0):
        ids = {"cls": self.cls_id, "sep": self.sep_id}
        return [
            Encoding([ids[name]], [self.vocabulary[ids[name]]], [own], [None], [(0, 0)])
            for name, own in zip(slot, self.template.segments_of(slot, segment), strict=True)
        ]

    def _of_text(self, part, number):
        ids, tokens, offsets = part
        segment = self.template.second_segment if number else 0
        return Encoding(ids, tokens, [segment] * len(ids), [number] * len(ids), offsets)

    def _text_of_pieces(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        """The text of pieces in which "▁" is a space, of those in `bytes_of` from the bytes that they stand for; bytes
        that are no UTF-8, of a character that was cut, become U+FFFD."""
        special = self.special_ids if skip_special_tokens else ()
        indices = (index for index in map(int, ids) if index not in special)
        parts = [self.bytes_of.get(index) or self.vocabulary[index].encode() for index in indices]
        return b"".join(parts).decode(errors="replace").replace("▁", " ")

    def token_to_id(self, token: str) -> int | None:
        """Returns the ID of a token, or None if it is not in the vocabulary."""
        return self._ids.get(token)

    def id_to_token(self, index: int) -> str:
        """Returns the token of an ID."""
        return self.vocabulary[index]


def _joined(encodings):
    """Encodings one after another."""
    return Encoding(*([value for one in encodings for value in getattr(one, name)] for name in Encoding._fields))
