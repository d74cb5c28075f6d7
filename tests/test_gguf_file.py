"""helpers.formats.gguf against the library `gguf`: files that it wrote, values that it reads."""

import math

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize

from helpers.formats.gguf import read_gguf


@pytest.fixture
def path(tmp_path):
    """A small file with values and tensors of many kinds."""
    draw = np.random.default_rng(0)
    file = GGUFWriter(tmp_path / "a.gguf", "llama")
    file.add_uint8("small", 200)
    file.add_int8("below", -7)
    file.add_int32("number", -70_000)
    file.add_uint64("large", 2**60)
    file.add_float32("share", 0.25)
    file.add_float64("exact", 0.1)
    file.add_bool("yes", True)
    file.add_string("words", "größer 日本 ")
    file.add_array("texts", ["a", "", "Ġthe"])
    file.add_array("numbers", [3, -1, 4])
    for kind in ("F32", "F16", "Q8_0", "Q4_1"):
        matrix = draw.standard_normal((3, 64), dtype=np.float32)
        kind = GGMLQuantizationType[kind]
        file.add_tensor(kind.name, quantize(matrix, kind), raw_dtype=kind)
    file.add_tensor("row", draw.standard_normal(5, dtype=np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return tmp_path / "a.gguf"


def test_values_and_bytes_are_those_that_the_library_reads(path):
    about, stored = read_gguf(path)
    assert stored["Q4_1"].sizes == (3, 64) and stored["row"].sizes == (5,)
    theirs = GGUFReader(path)
    want = {name: field.contents() for name, field in theirs.fields.items()}
    assert about == {name: value for name, value in want.items() if not name.startswith("GGUF.")}
    assert about["texts"] == ["a", "", "Ġthe"] and about["numbers"] == [3, -1, 4]
    assert [*stored] == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        ours = stored[tensor.name]
        assert ours.kind == tensor.tensor_type.name
        assert np.array_equal(ours.read(), np.asarray(tensor.data).view(np.uint8))


def test_no_file_that_ends_early_is_read(path):
    whole = path.read_bytes()
    end = max(one.offset + math.prod(one.shape) for one in read_gguf(path)[1].values())
    for length in [*range(0, end, 37), end - 1]:  # behind the last tensor is nothing but padding
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="not a whole GGUF file"):
            read_gguf(path)
