"""What is read from a compiled program's text."""

import keras
import pytest
from tiers import on

if keras.backend.backend() != "jax":
    pytest.skip("only JAX compiles for TPUs", allow_module_level=True)

from keras_bert_training.commands.compiled_program import moved_by_group

pytestmark = on("jax")

PROGRAM = """
%fused_computation (param_0: f32[100]) -> f32[100] {
  ROOT %ignored = f32[100]{0} negate(%param_0), metadata={op_name="jit(train_step)/jvp(block_0)/ignored"}
}

ENTRY %main (param.0: bf16[10,20]) -> f32[5] {
  %param.0 = bf16[10,20]{1,0:T(8,128)(2,1)} parameter(0)
  %seen.1 = bf16[200]{0} bitcast(%param.0)
  %start.1 = ((bf16[10,20]{1,0}), bf16[5,20]{1,0:T(8,128)S(1)}, s32[]{:S(2)}) slice-start(%param.0), slice={[0:5]}
  %done.1 = bf16[5,20]{1,0:T(8,128)S(1)} slice-done(%start.1)
  %a.1 = f32[5]{0} fusion(%seen.1, %done.1, /*index=5*/%seen.1), kind=kLoop, metadata={op_name="jit(train_step)/jvp(block_0)/attention/dot"}
  %a.2 = f32[7]{0} fusion(%a.1), kind=kLoop, metadata={op_name="jit(train_step)/transpose(jvp(block_11))/attention/dot"}
  ROOT %a.3 = f32[5]{0:S(1)} fusion(%a.1), kind=kLoop, metadata={op_name="jit(train_step)/transpose(jvp(block_3))/attention/dot"}
}
"""  # noqa: E501


def test_bytes_are_counted_by_part_of_the_model_where_they_reach_the_memory():
    assert moved_by_group(PROGRAM) == {
        "copied into or out of the chip": 200,  # the slice, once
        "block/attention/dot [fusion]": 420,  # 400 read, once, and 20 written; what came by the slice is in the chip
        "block/attention/dot [fusion] backward": 20 + 28 + 20,  # the last result stays in the chip
    }
