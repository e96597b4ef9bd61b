"""Turns text into WordPiece ids and character offsets, without TensorFlow."""

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Encoding, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.json_files import read_json, read_json_if_there
from keras_bert_impl.text.tokenizers import google_characters
from keras_bert_impl.text.tokenizers.directory_checks import SETTINGS, added_tokens_in, check_directory
from keras_bert_impl.text.tokenizers.rows import BERT_ROWS, ROBERTA_ROWS
from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json import VocabularyFiles, agreed, check_step, read_wordpiece
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS, is_cased, read_vocabulary, write_vocabulary
from keras_bert_impl.text.tokenizers.word_cache import WordCache

# Between Chinese characters and added tokens there are the spaces that Google's cleaning puts around the former.
SPACED = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
MANY_TEXTS = 32  # fewer are faster without looking their words up


class WordPieceTokenizer(Tokenizer):
    """The tokenizer of BERT: splits texts into subwords (WordPiece), with the same IDs as google-research/bert.

    Call it to get the model's inputs, and use `encode` for the tokens and offsets of one text, `ids_batch` for the IDs
    of many texts, `decode` for the text of IDs. Text is cleaned and split at white space and punctuation, with
    `lowercase` also lower-cased and stripped of accents. Each word is then split from left to right into the longest
    subwords in the vocabulary (Devlin et al. 2019, section 3; Wu et al. 2016). A word that cannot be split this way, or
    has more than 200 characters, becomes [UNK].

    "[SEP]" and the like in a text are ordinary text; only `encode_with_masks` recognizes "[MASK]".

    Args:
        vocabulary (str, pathlib.Path or list of str): path of a vocab.txt, or the tokens in the order of their IDs.
        lowercase (bool, optional): True for uncased vocabularies; Google's `do_lower_case`. Default: True.
        added_tokens (dict, optional): tokens that are never split, each with the settings of an `AddedToken` of the
            `tokenizers` library, such as {"[E1]": {"special": True}}. New ones are appended to the vocabulary.
            Default: None.

    Raises: FileNotFoundError; ValueError if one of [PAD] [UNK] [CLS] [SEP] [MASK] is missing.

    Example:
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sleep", "##s"]
        >>> tokenizer = kbi.WordPieceTokenizer(words)
        >>> tokenizer.encode("The cat sleeps").tokens
        ['[CLS]', 'the', 'cat', 'sleep', '##s', '[SEP]']
        >>> inputs = tokenizer(["The cat sleeps"])
        >>> inputs["token_ids"][0, :8]
        array([2, 5, 6, 7, 8, 3, 0, 0], dtype=int32)
        >>> tokenizer.decode([2, 5, 6, 7, 8, 3])
        'the cat sleeps'
    """

    kind = "wordpiece"
    names = SPECIAL_TOKENS
    published_class = "BertTokenizer"
    similar_classes = (
        *("DistilBertTokenizer", "ElectraTokenizer", "ConvBertTokenizer", "LayoutLMTokenizer", "LxmertTokenizer"),
        *("MobileBertTokenizer", "SqueezeBertTokenizer", "RetriBertTokenizer", "DPRReaderTokenizer"),
        *("DPRQuestionEncoderTokenizer", "DPRContextEncoderTokenizer"),
        "ErnieTokenizer",  # PaddleNLP's name of BERT's, in files that were converted
    )
    files = ("vocab.txt", "tokenizer_config.json")
    template = BERT_ROWS
    mask_texts = ("[MASK]",)

    def __init__(
        self,
        vocabulary: str | Path | Sequence[str],
        lowercase: bool = True,
        added_tokens: Mapping[str, Mapping[str, bool]] | None = None,
    ):
        is_path = isinstance(vocabulary, str | Path)
        words = read_vocabulary(vocabulary) if is_path else list(vocabulary)
        self.added_tokens = {
            token: {name: getattr(AddedToken(token, **settings), name) for name in SETTINGS}
            for token, settings in (added_tokens or {}).items()
        }
        in_model, self._size = set(words), len(words)
        self.vocabulary = [*words, *(token for token in self.added_tokens if token not in in_model)]
        self.lowercase = lowercase
        ids = self._ids_of(self.names, str(vocabulary) if is_path else "vocabulary")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids
        words = dict(itertools.islice(self._ids.items(), self._size))
        self.model = models.WordPiece(
            words, unk_token="[UNK]", max_input_chars_per_word=google_characters.MAX_CHARACTERS_PER_WORD
        )
        # Equivalent on printable ASCII.
        lowered = normalizers.Lowercase() if self.lowercase else normalizers.Sequence([])
        plain = lowered, pre_tokenizers.BertPreTokenizer()
        exact = google_characters.exact_normalizer(self.lowercase), google_characters.exact_pre_tokenizer()
        # An added token may become ASCII when it is normalized, as "é" does.
        self._plain = self._pipeline(*(exact if self.added_tokens else plain))
        self._exact = self._pipeline(*exact)

    def pipeline(self, masks: bool = False) -> Pipeline:
        """Returns the equivalent tokenizer of the `tokenizers` library, which can be saved; with `masks`, it recognizes
        the mask token in a text."""
        normalizer = google_characters.portable_normalizer(self.lowercase)
        pipeline = self._pipeline(normalizer, google_characters.exact_pre_tokenizer())
        if masks:
            pipeline.add_special_tokens([AddedToken(self.mask_texts[0], special=True, normalized=False)])
        return pipeline

    def _pipeline(self, normalizer, pre_tokenizer) -> Pipeline:
        # The control tokens are not "added" to the pipeline: the library would find added tokens in the text.
        pipeline = Pipeline(self.model)
        pipeline.normalizer = normalizers.Sequence([normalizer, SPACED]) if self.added_tokens else normalizer
        pipeline.pre_tokenizer = pre_tokenizer
        pipeline.post_processor = self.row_processor
        pipeline.add_tokens([AddedToken(token, **settings) for token, settings in self.added_tokens.items()])
        return pipeline

    def get_config(self) -> dict:
        added = {"added_tokens": self.added_tokens} if self.added_tokens else {}
        return {"vocabulary": self.vocabulary[: self._size], "lowercase": self.lowercase, **added}

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> Encoding:
        """Encodes one text, or one pair of texts: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].

        Args:
            text (str): the text.
            pair (str, optional): the second text of a pair. Default: None.
            add_special_tokens (bool, optional): whether to add [CLS] and [SEP]. Default: True.

        Returns: an Encoding with `ids`, `tokens`, `type_ids` (segments), `sequence_ids` (None, 0 or 1) and `offsets`:
            start and end of each token in its text, in characters; (0, 0) for control tokens.
        """
        is_plain = google_characters.is_plain(text) and (pair is None or google_characters.is_plain(pair))
        pipeline = self._plain if is_plain else self._exact
        return pipeline.encode(text, pair, add_special_tokens=add_special_tokens)

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[Encoding]:
        """Encodes each text as `encode` does, on all CPU cores, without padding or truncation.

        Args:
            texts (list of str): the texts.
            add_special_tokens (bool, optional): whether to add [CLS] and [SEP]. Default: True.

        Returns: a list of `Encoding`.
        """
        return self._encoded(texts, Pipeline.encode_batch, add_special_tokens)

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the IDs of each text without [CLS] and [SEP]. It is faster than `encode_batch`, which also keeps
        offsets.

        Args:
            texts (list of str): the texts.

        Returns: a list of lists of int.
        """
        if self.added_tokens or len(texts) < MANY_TEXTS:
            return [encoding.ids for encoding in self._encoded(texts, Pipeline.encode_batch_fast, False)]
        ids, lengths = self.word_cache(texts)
        ids, ends = ids.tolist(), np.cumsum(lengths).tolist()
        return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    @functools.cached_property
    def word_cache(self) -> WordCache:
        """Gives the ids of many texts, and remembers their words."""
        return WordCache(self)

    def _encoded(self, texts, encode_batch, add_special_tokens) -> list[Encoding]:
        plain = [place for place, text in enumerate(texts) if google_characters.is_plain(text)]
        other = sorted(set(range(len(texts))) - set(plain))
        encodings: list = [None] * len(texts)
        for pipeline, places in ((self._plain, plain), (self._exact, other)):
            batch = [texts[place] for place in places]
            for place, encoding in zip(
                places, encode_batch(pipeline, batch, add_special_tokens=add_special_tokens), strict=True
            ):
                encodings[place] = encoding
        return encodings

    def _cut(self, text):
        found = self.encode(text, add_special_tokens=False)
        return found.ids, found.tokens, found.offsets

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Returns the text of IDs, without spaces before punctuation, as Hugging Face does. Removed case and accents
        stay removed.

        Args:
            ids (list of int): the IDs.
            skip_special_tokens (bool, optional): whether to leave out control tokens. Default: True.
        """
        return decoders.WordPiece(prefix="##", cleanup=True).decode(self._tokens(ids, skip_special_tokens))

    def word_numbers(self, text: str, encoding: Encoding) -> np.ndarray:
        """Returns the number of the word that each token belongs to; see `Tokenizer.word_numbers`."""
        return np.array(encoding.word_ids, int)

    @property
    def is_continuation(self) -> list[bool]:
        """For each token of the vocabulary, whether it continues the word before it."""
        return [token.startswith("##") and token not in self.added_tokens for token in self.vocabulary]

    def piece_text(self, index: int) -> str:
        """Returns a token as text, which is the entry of the vocabulary."""
        return self.id_to_token(index)

    def filled_text(self, text: str, tokens: Sequence[str]) -> str:
        """The text with a token in place of each [MASK]; "##s" is joined to the word before it."""
        filled, *others = re.split("|".join(map(re.escape, self.mask_texts)), text)
        for token, following in zip(tokens, others, strict=True):
            if token.startswith("##"):
                filled, token = filled.rstrip(), token.removeprefix("##")
            elif filled[-1:].isalnum():  # a word of its own, although the mask follows without a space
                filled += " "
            filled += token + (" " if following[:1].isalnum() else "") + following
        return filled

    @classmethod
    def from_pretrained(cls, directory: str | Path, lowercase: bool | None = None) -> "WordPieceTokenizer":
        """Opens the tokenizer of a checkpoint directory, Hugging Face's or Google's.

        Args:
            directory (str or pathlib.Path): holds vocab.txt, or the tokenizer.json that transformers 5 writes instead.
                One from Hugging Face also holds tokenizer_config.json.
            lowercase (bool, optional): whether text is lower-cased. Default: the setting in tokenizer.json, or else
                do_lower_case in tokenizer_config.json; if neither is given, as in Google's directories, False if the
                vocabulary holds words with upper-case letters.

        Raises: FileNotFoundError; ValueError as in the constructor, if vocab.txt, tokenizer.json and
            tokenizer_config.json disagree, or if the checkpoint keeps accents while lower-casing or removes them
            without it, does not split CJK characters, or has other steps or control tokens than Google's algorithm.
        """
        directory = Path(directory)
        config_path, steps_path = directory / "tokenizer_config.json", directory / "tokenizer.json"
        config = read_json_if_there(config_path)
        in_steps, normalizer = read_wordpiece(steps_path) if steps_path.is_file() else (None, None)
        path = directory / "vocab.txt"
        vocabulary = read_vocabulary(path) if path.is_file() or in_steps is None else in_steps
        if lowercase is None:
            lowercase = agreed(directory, "lowercase", config_path.name, normalizer, config.get("do_lower_case"))
        if lowercase is None:
            lowercase = not is_cased(vocabulary)
        of_google = {"strip_accents": lowercase, "tokenize_chinese_chars": True, "word_tokenizer_type": "basic"}
        given = {name: value for name, value in config.items() if value is not None}
        check_step(config_path, f"tokenizer with lowercase {lowercase}", given, of_google)
        added = added_tokens_in(directory, cls.names)
        if vocabulary is in_steps:
            in_model = read_json(steps_path)["model"]["vocab"]
            vocabulary = [token for token in vocabulary if token not in added or token in in_model]
        found = cls(vocabulary, lowercase, added)
        check_directory(found, directory)
        agreed(directory, "tokens", path.name, in_steps, found.vocabulary)
        return found

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer. MPNet's hold BERT's control tokens,
        too."""
        if "vocab.txt" in files:
            tokens = files.lines
        elif "tokenizer.json" in files and files.algorithm in ("WordPiece", None):
            tokens = files.tokens
        else:
            return False
        return tokens.issuperset(MPNetTokenizer.names) == (cls is MPNetTokenizer)

    def write_vocabulary_files(self, directory: Path) -> dict:
        """Writes vocab.txt, and returns the content of tokenizer_config.json, which
        Hugging Face's BertTokenizerFast opens."""
        write_vocabulary(directory / "vocab.txt", self.vocabulary[: self._size])
        added = {str(self._ids[token]): {"content": token, **settings} for token, settings in self.added_tokens.items()}
        return {
            **({"added_tokens_decoder": added} if added else {}),
            "tokenizer_class": self.published_class,
            "do_lower_case": self.lowercase,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            **self.control_tokens,
        }


class MPNetTokenizer(WordPieceTokenizer):
    """The tokenizer of MPNet (Song et al. 2020): BERT's subwords, with RoBERTa's control tokens and inputs.

    Arguments and errors are those of WordPieceTokenizer, with the control tokens <pad> [UNK] <s> </s> <mask>.
    `encode_with_masks` recognizes "<mask>", and "[MASK]", which means the same.
    """

    kind = "mpnet_wordpiece"
    names = ("<pad>", "[UNK]", "<s>", "</s>", "<mask>")
    published_class = "MPNetTokenizer"
    similar_classes = ()
    template = ROBERTA_ROWS
    mask_texts = ("<mask>", "[MASK]")
