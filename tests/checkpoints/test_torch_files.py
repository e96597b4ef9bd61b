import json
import pickle
import zipfile

import numpy as np
import pytest
from reference_models import random_model

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints.torch_pickle import open_torch_file

torch = pytest.importorskip("torch")


@pytest.fixture
def theirs(small_config, tmp_path):
    """A model of transformers, saved only as pytorch_model.bin."""
    model = random_model("BertForMaskedLM", small_config, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    return model


def test_a_torch_file_gives_its_tensors_to_a_model(theirs, tmp_path):
    source = open_torch_file(tmp_path / "pytorch_model.bin")
    for name, tensor in theirs.state_dict().items():
        if tensor.dtype.is_floating_point:
            np.testing.assert_array_equal(source.read(name), tensor.numpy())
    found = kbi.MaskedLM.from_pretrained(tmp_path).encoder.token_embedding.get_weights()[0]
    np.testing.assert_array_equal(found, theirs.bert.embeddings.word_embeddings.weight.detach().numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_views_and_other_floats_are_read_exactly(dtype, tmp_path):
    whole = torch.arange(24).to(getattr(torch, dtype)).reshape(4, 6)
    torch.save({"part": whole[1:3, ::2], "turned": whole.T, "row": whole[2]}, tmp_path / "file.bin")
    source = open_torch_file(tmp_path / "file.bin")
    assert source.shapes == {"part": (2, 3), "turned": (6, 4), "row": (6,)}
    for name, expected in (("part", whole[1:3, ::2]), ("turned", whole.T), ("row", whole[2])):
        np.testing.assert_array_equal(source.read(name).astype("float64"), expected.double().numpy())


class Malicious:
    def __reduce__(self):
        return (print, ("executed",))


def rewrite(path, description=None, compression=zipfile.ZIP_STORED):
    """The file with another description of its tensors, or compressed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, description if description and name.endswith("data.pkl") else content)


def test_what_a_pickle_wants_run_is_not_run(theirs, tmp_path, capsys):
    path = tmp_path / "pytorch_model.bin"
    rewrite(path, pickle.dumps({"weight": Malicious()}))
    with pytest.raises(ValueError, match="asks to run"):
        open_torch_file(path)
    assert "executed" not in capsys.readouterr().out


def test_a_tensor_outside_its_storage_is_refused(tmp_path):
    torch.save({"weight": torch.zeros(3)}, tmp_path / "file.bin")
    with zipfile.ZipFile(tmp_path / "file.bin") as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
        description = archive.read(name)
    # The shape (3,) is written as the one-byte integer 3.
    assert description.count(b"K\x03\x85") == 1
    rewrite(tmp_path / "file.bin", description.replace(b"K\x03\x85", b"K\xf0\x85"))
    with pytest.raises(ValueError, match="needs 240 numbers"):
        open_torch_file(tmp_path / "file.bin")


@pytest.mark.parametrize("content", [b"", b"\x80\x02}q\x00.", b"PK\x03\x04 and nothing more"])
def test_a_file_that_torch_did_not_write_is_refused_with_the_remedy(content, tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(ValueError, match="load it with transformers and save it again"):
        open_torch_file(tmp_path / "pytorch_model.bin")


def test_a_description_cannot_ask_for_memory(theirs, tmp_path):
    # An empty bytearray of 2 ** 60 bytes, in eleven bytes of pickle.
    rewrite(tmp_path / "pytorch_model.bin", b"\x80\x05\x96" + (2**60).to_bytes(8, "little") + b".")
    with pytest.raises(ValueError, match="can be read safely"):
        open_torch_file(tmp_path / "pytorch_model.bin")


def test_a_file_from_before_torch_1_6_gives_its_tensors(theirs, tmp_path):
    whole = torch.arange(24.0).reshape(4, 6)
    tensors = {**theirs.state_dict(), "part": whole[1:3, ::2], "whole": whole}
    torch.save(tensors, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    source = open_torch_file(tmp_path / "old.bin")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(source.read(name), tensor.numpy())


def test_a_truncated_old_file_and_a_compressed_zip_are_refused(tmp_path):
    path = tmp_path / "file.bin"
    torch.save({"weight": torch.zeros(30)}, path, _use_new_zipfile_serialization=False)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="it is truncated"):
        open_torch_file(path)
    torch.save({"weight": torch.zeros(3)}, path)
    rewrite(path, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        open_torch_file(path)


def test_shards_are_read_by_their_index(small_config, tmp_path):
    theirs = random_model("BertModel", small_config, tmp_path / "whole")
    theirs.save_pretrained(tmp_path / "shards", max_shard_size="4KB")
    assert len(list((tmp_path / "shards").glob("model-*.safetensors"))) > 2
    whole, shards = (kbi.BertEncoder.from_pretrained(tmp_path / name) for name in ("whole", "shards"))
    for one, other in zip(whole.get_weights(), shards.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["../secret.safetensors", "absent.safetensors"])
def test_an_index_does_not_lead_out_of_its_directory(name, small_config, tmp_path):
    kbi.BertEncoder(small_config).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path.parent / "secret.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(ValueError, match=r"which is not in the same folder"):
        kbi.BertEncoder.from_pretrained(tmp_path)
