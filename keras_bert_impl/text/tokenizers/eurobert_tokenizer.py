"""EuroBERT's tokenizer: Llama 3's byte pairs, with the control tokens and rows that its files say."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.json_files import read_json, read_json_if_there
from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import WHITE_SPACE
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import EUROBERT, LLAMA_WORDS, byte_tokens, read_tokenizer_file
from keras_bert_impl.text.tokenizers.directory_checks import check_directory, text_of
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import ModernBertTokenizer
from keras_bert_impl.text.tokenizers.rows import MODERNBERT_ROWS, RowTemplate
from keras_bert_impl.text.tokenizers.tokenizer_json import VocabularyFiles

ROLES = {"cls": ("cls_token", "bos_token"), "pad": ("pad_token",), "sep": ("sep_token", "eos_token")}
ROLES["mask"] = ("mask_token",)


class EuroBertTokenizer(ModernBertTokenizer):
    """The tokenizer of EuroBERT (Boizard et al. 2025): byte-level BPE, as in Llama 3.

    Differences from RoBERTa's: a word includes one character before it, unless this is a letter, a number or a line
    break; numbers are split into groups of three digits; line breaks stay together; contractions are found in any case;
    and a word in the vocabulary is one token, whatever the merges are. Nothing is normalized. No byte is unknown:
    `unk_id` is `pad_id`. Control tokens in a text are ordinary text; only `encode_with_masks` recognizes masks.

    Args:
        vocabulary (list of str): the tokens in the order of their IDs.
        merges (list): pairs of tokens, the most important first.
        control (tuple of str, optional): tokens for the beginning of a text, padding, the end of a text, and masks.
            Default: EuroBERT's.
        template (RowTemplate, optional): arrangement of control tokens and texts. Default: beginning, text, end; a pair
            is separated by an end.
        strips_mask (bool, optional): whether the space before a mask belongs to it. Default: False.
        added_tokens (list of str, optional): tokens of the vocabulary that are never split. Default: none.

    Raises: ValueError if a control token, an added token or one of the 256 bytes is missing, or the merges do not
        belong to the vocabulary.
    """

    kind = "llama_byte_pair"
    mask_texts = ("<|mask|>", "[MASK]")
    similar_classes = ("LlamaTokenizer",)
    has_prefix_option = False

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence,
        control: Sequence[str] = EUROBERT.control,
        template: Sequence = MODERNBERT_ROWS,
        strips_mask: bool = False,
        added_tokens: Sequence[str] = (),
    ):
        beginning, padding, end, mask = control
        self.control, self.strips_mask = list(control), bool(strips_mask)
        self.template = RowTemplate(*map(tuple, template[:3]), *template[3:])  # JSON has no tuples
        self.dialect = EUROBERT._replace(control=(beginning, padding, end, padding, mask))
        self.mask_texts = tuple(dict.fromkeys((mask, "[MASK]")))
        super().__init__(vocabulary, merges, added_tokens=added_tokens)
        missing = [token for token in byte_tokens() if token not in self._ids]
        if missing:
            raise ValueError(f"the vocabulary has no token for {len(missing)} of 256 bytes, such as {missing[0]!r}.")

    def pipeline(self, masks: bool = False) -> Pipeline:
        pipeline = Pipeline(models.BPE(self._ids, self.merges, ignore_merges=True))
        of_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        pipeline.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(LLAMA_WORDS), "isolated"), of_bytes]
        )
        pipeline.decoder = decoders.ByteLevel()
        pipeline.add_tokens([AddedToken(token, normalized=True) for token in self.added_tokens])
        trim = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
        pipeline.post_processor = processors.Sequence([trim, self.row_processor])
        return self._with_mask(pipeline) if masks else pipeline

    def _with_mask(self, pipeline):
        flags = {"special": True, "normalized": False, "lstrip": self.strips_mask}
        pipeline.add_special_tokens([AddedToken(self.id_to_token(self.mask_id), **flags)])
        return pipeline

    @property
    def stripped(self) -> str:
        """The white space that a mask takes along."""
        return WHITE_SPACE if self.strips_mask else ""

    @property
    def control_tokens(self) -> dict[str, str]:
        """The control tokens by their names in Hugging Face's files."""
        return {name: token for (_, names), token in zip(ROLES.items(), self.control, strict=True) for name in names}

    @property
    def _control_tokens_with_stripping_mask(self) -> dict:
        found = super()._control_tokens_with_stripping_mask
        return {**found, "mask_token": {**found["mask_token"], "lstrip": self.strips_mask}}

    def get_config(self) -> dict:
        rows = [list(part) if isinstance(part, tuple) else part for part in self.template]
        own = {"control": self.control, "template": rows, "strips_mask": self.strips_mask}
        return {**super().get_config(), **own}

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        return files.algorithm == "BPE" and "<|begin_of_text|>" in files.tokens

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> "EuroBertTokenizer":
        """Opens the tokenizer of a checkpoint directory of Hugging Face.

        Args:
            directory (str or pathlib.Path): holds a tokenizer.json, and a tokenizer_config.json or
                special_tokens_map.json with the names of the control tokens.

        Raises: FileNotFoundError; ValueError as in the constructor, if a control token has no name, or if a file has
            steps that give other IDs than Llama 3's.
        """
        path = Path(directory) / "tokenizer.json"
        content = read_json(path)
        files = [
            read_json_if_there(path.parent / f"{name}.json") for name in ("special_tokens_map", "tokenizer_config")
        ]
        named = {
            key: text_of(token) for file in files for key, token in file.items() if key.endswith("_token") and token
        }
        for role, names in ROLES.items():
            if not any(name in named for name in names):
                raise ValueError(f"{path.parent / 'tokenizer_config.json'} has no {names[-1]}: name its {role} token.")
        control = [next(named[name] for name in names if name in named) for names in ROLES.values()]
        special = {token["content"]: token for token in content.get("added_tokens") or [] if token.get("special")}
        found = read_tokenizer_file(path, EUROBERT._replace(control=tuple(control), unread=tuple(special)))
        tokenizer = cls(
            *(found["vocabulary"], found["merges"], control),
            template=_rows_in(content.get("post_processor"), control, path),
            strips_mask=special.get(control[3], {}).get("lstrip", False),
            added_tokens=found["added_tokens"],
        )
        tokenizer.listed_tokens = tuple(special)
        check_directory(tokenizer, directory)
        return tokenizer


def _rows_in(step, control, path):
    """The RowTemplate of a post_processor of a tokenizer.json. Raises ValueError if it has none."""
    steps = (step or {}).get("processors") or [step or {}]
    found = next((one for one in steps if one.get("type") == "TemplateProcessing"), None)
    if found is None:
        raise ValueError(f"{path} has no TemplateProcessing, which says where control tokens are added to texts.")
    names = {control[2]: "sep", control[0]: "cls"}
    slots = [[], [], []]
    place = 0
    for part in found["pair"]:
        if "Sequence" in part:
            place += 1
        else:
            slots[place].append(names.get(part["SpecialToken"]["id"], part["SpecialToken"]["id"]))
    return RowTemplate(*map(tuple, slots), second_segment=0)
