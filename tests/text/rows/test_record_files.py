"""TFRecord files, read and written without TensorFlow."""

import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.text.rows.example_files import DamagedRecords, RecordReader, count_records, write_records

pytestmark = on("tensorflow")

RECORDS = [b"", b"a", b"\x00" * 300, bytes(range(256)) * 2000]


def test_tensorflow_writes_the_same_bytes_and_reads_ours(tmp_path):
    assert write_records(tmp_path / "ours", RECORDS) == 4
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in RECORDS:
            writer.write(record)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert [each.numpy() for each in tf.data.TFRecordDataset(str(tmp_path / "ours"))] == RECORDS


def test_records_are_read_and_passed_over_in_order(tmp_path):
    write_records(tmp_path / "file", RECORDS)
    reader = RecordReader(tmp_path / "file")
    assert reader.read(1) == RECORDS[:1] and reader.skip(2) == [None, None] and reader.read(9) == RECORDS[3:]
    assert reader.read(9) == [] and count_records(tmp_path / "file") == 4


@pytest.mark.parametrize("place", [3, 9, 17, 310])
def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path, place):
    """In a length, its checksum, a record and the checksum of a record."""
    write_records(tmp_path / "file", RECORDS[2:])
    content = bytearray((tmp_path / "file").read_bytes())
    content[place] ^= 1
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DamagedRecords, match=r"file is damaged in the record before byte \d+"):
        RecordReader(tmp_path / "file").read(2)


@pytest.mark.parametrize("length", [5, 100, 318])
def test_a_file_that_ends_within_a_record_is_noticed(tmp_path, length):
    write_records(tmp_path / "file", RECORDS[2:])
    (tmp_path / "file").write_bytes((tmp_path / "file").read_bytes()[:length])
    with pytest.raises(DamagedRecords):
        RecordReader(tmp_path / "file").read(2)
