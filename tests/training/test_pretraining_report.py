import types

import numpy as np
import pytest

from keras_bert_training import pretraining, pretraining_report

PAD, CLS, SEP, MASK, CAT, DOG, RUN = range(7)
ROWS = [[CLS, CAT, RUN, SEP, PAD], [CLS, DOG, RUN, CAT, SEP], [CLS, CAT, CAT, RUN, SEP]]
# Neighbours (left, right): [CLS] occurs on the left too, [SEP] and [PAD] never on the right.
BIGRAMS = {(CLS, CAT): 2, (CAT, RUN): 2, (CLS, DOG): 1, (DOG, RUN): 1, (RUN, CAT): 1, (CAT, CAT): 1}


class Data:
    """Replaces PretrainingData: repeats these rows, and counts how many it returned."""

    tokenizer = types.SimpleNamespace(vocabulary_size=7, pad_id=PAD, cls_id=CLS, sep_id=SEP, mask_id=MASK)
    sequence_length, given = 5, 0

    def unmasked_rows(self, split, most_rows=None):
        assert split == "train"
        for _ in range(most_rows // len(ROWS)):
            self.given += len(ROWS)
            yield np.array(ROWS, "int32")

    def predicted_positions(self, inputs):
        return inputs["mask_positions"]

    def arrays(self, split):
        """[CLS] cat [MASK] [SEP], and [CLS] [MASK] [MASK] [SEP]."""
        token_ids = np.array([[CLS, CAT, MASK, SEP, PAD], [CLS, MASK, MASK, SEP, PAD]])
        inputs = {"token_ids": token_ids, "mask_positions": np.array([[2, 0], [1, 2]])}
        labels = {"mask_ids": np.array([[RUN, 0], [DOG, CAT]]), "mask_weights": np.array([[1.0, 0], [1, 1]])}
        labels["next_sentence_labels"] = np.array([0, 1])
        return iter([(inputs, labels)])


FIGURES = ("step", "tokens_per_second", "flops_utilization", "seconds_per_step_p50")
ROUNDS = [
    dict(zip(FIGURES, row, strict=True)) for row in ((3, 90.0, 0.2, 0.5), (6, 110.0, 0.4, 0.1), (9, 100.0, 0.3, 0.2))
]


def test_the_speed_of_a_run_is_the_median_of_its_rounds_and_the_most_memory(capsys):
    rounds = [{**row, "device_memory_gib": memory} for row, memory in zip(ROUNDS, (1.5, 3.5, 2.5), strict=True)]
    # 0.591 TFLOP for a token: the share is that of the ceiling as it is known at the end.
    found = pretraining_report.speed(rounds, 197e12, "published peak of TPU v5 lite", 0.591e12)
    assert found == {
        **{"tokens_per_second": 100.0, "flops_utilization": 0.3, "seconds_per_step_p50": 0.2},
        **{"device_memory_gib": 3.5, "device": "cpu", "ceiling_tflops": 197.0},
        "ceiling_source": "published peak of TPU v5 lite",
    }
    pretraining_report.print_speed(found)
    printed = capsys.readouterr().out
    assert "100 tokens/s, 30% of 197 TFLOP/s" in printed and "3.5 GiB of a device" in printed


@pytest.mark.parametrize("at_once", [1, 9, 10**6])
def test_pairs_are_counted_alike_in_any_number_of_parts(monkeypatch, at_once):
    monkeypatch.setattr(pretraining_report, "BASELINE_TOKENS", 4 * 15)
    monkeypatch.setattr(pretraining_report, "COUNTED_AT_ONCE", at_once)
    held, original = [], pretraining_report.counted
    monkeypatch.setattr(
        pretraining_report,
        "counted",
        lambda pairs, size: held.append(sum(map(np.size, pairs))) or original(pairs, size),
    )
    counts = pretraining_report.training_bigrams(Data())
    # Only the pairs that wait are held beside the distinct ones, however many were counted before.
    assert at_once > 9 or max(held) <= 2 * (at_once + 15)
    found = {pair: counts[pair] for pair in zip(*counts.nonzero(), strict=True)}
    assert found == {pair: 4 * count for pair, count in BIGRAMS.items()}


def test_the_baselines_read_no_more_of_the_training_split_than_they_need(monkeypatch):
    monkeypatch.setattr(pretraining_report, "BASELINE_TOKENS", 100 * 15)
    data = Data()
    report = pretraining_report.baselines(data)
    assert data.given == 300 and report["baseline_tokens"] == 100 * sum(BIGRAMS.values())


def test_baselines_by_hand(monkeypatch):
    """The words are 4 cats, 3 runs and 1 dog; with one added to the count of each of the 7 tokens, 15 in all."""
    monkeypatch.setattr(pretraining_report, "BASELINE_TOKENS", 15)
    report = pretraining_report.baselines(Data())
    # The most frequent word is cat; after cat comes run, after [CLS] cat, after [MASK], never seen, the most frequent.
    assert report["unigram_masked_lm_accuracy"] == pytest.approx(1 / 3)
    assert report["bigram_masked_lm_accuracy"] == pytest.approx(2 / 3)
    unigram = {RUN: 4 / 15, DOG: 2 / 15, CAT: 5 / 15}
    assert report["unigram_masked_lm_perplexity"] == pytest.approx(np.prod(list(unigram.values())) ** (-1 / 3))
    seen = [(2 + 10 * unigram[RUN]) / 13, (1 + 10 * unigram[DOG]) / 13, unigram[CAT]]
    assert report["bigram_masked_lm_perplexity"] == pytest.approx(np.prod(seen) ** (-1 / 3))
    assert report["next_sentence_majority"] == 0.5


def test_guesses_are_computed_for_the_rows_that_are_shown_only(prepared_data, tmp_path, monkeypatch):
    config = pretraining.PretrainConfig(str(prepared_data()), str(tmp_path), batch_size=16)
    computed = []

    def outputs_of_batch(model, inputs):
        computed.extend(len(array) for array in inputs.values())
        return {"masked_lm_logits": np.zeros((4, inputs["mask_positions"].shape[1], 5))}

    monkeypatch.setattr(pretraining_report.distribution, "outputs_of_batch", outputs_of_batch)
    rows = pretraining_report.filled_rows(None, pretraining.open_data(config))
    # For 4,096 rows of 128 tokens, all logits would be 10 GB on every device.
    assert len(computed) >= 3 and set(computed) == {4}
    assert len(rows) == 4 and any(piece["guess"] for piece in rows[0])
