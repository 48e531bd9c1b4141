"""A sentence encoder and the classifier of its features as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spinal.encoders.sentences import OnnxSentences
from spinal.errors import first_line
from spinal.label.exports.onnx_file import ExportError, check_equal

if TYPE_CHECKING:
    from onnx import ModelProto

#: The mean of the vectors of a text's tokens, scaled to length 1, as in `OnnxSentences.embed`.
_MEAN = """
mean (float[N, T, D] hidden, int64[N, T] mask) => (float[N, D] features) {
    tokens = Constant<value_ints = [1]>()
    last = Constant<value_ints = [2]>()
    one = Constant<value_float = 1.0>()
    mask_N_T = Cast<to = 1>(mask)
    mask_N_T_1 = Unsqueeze(mask_N_T, last)
    masked_N_T_D = Mul(hidden, mask_N_T_1)
    sum_N_D = ReduceSum<keepdims = 0>(masked_N_T_D, tokens)
    n_N_1 = ReduceSum<keepdims = 0>(mask_N_T_1, tokens)
    least_N_1 = Max(n_N_1, one)
    mean_N_D = Div(sum_N_D, least_N_1)
    features = LpNormalization<axis = -1, p = 2>(mean_N_D)
}
"""
_TEXTS = ["a", "a longer text, of two clauses"]


def prepend_encoder(path: Path, encoder: OnnxSentences) -> None:
    """Replace the classifier of features in an ONNX file by one of tokens.

    Its inputs are those of the encoder (``input_ids``, often ``token_type_ids``) and
    ``attention_mask``, each int64 ``[N, T]``. The outputs are compared with those for the features.

    Args:
        path: of a file whose input is ``features``, float32 ``[N, D]``.
        encoder: computes the features.

    Raises:
        ExportError: if the encoder cannot be joined to the classifier, or the outputs differ.
    """
    import onnx
    import onnxruntime

    outputs = ["probabilities", "log_density"]
    features = encoder.embed(_TEXTS)
    expected = onnxruntime.InferenceSession(str(path)).run(outputs, {"features": features})
    try:
        joined = _join(onnx.load(encoder.model_file), onnx.load(path), outputs)
        path.write_bytes(joined.SerializeToString())
        session = onnxruntime.InferenceSession(str(path))
    except Exception as error:  # of onnx and onnxruntime, which have no common base
        raise ExportError(
            f"{encoder.name} cannot become part of the ONNX file ({first_line(error)})"
        ) from error
    tokens = encoder.tokenize(_TEXTS)
    used = {each.name: tokens[each.name] for each in session.get_inputs()}
    check_equal(session.run(outputs, used), expected, "the classifier of features")


def _join(body: ModelProto, head: ModelProto, outputs: list[str]) -> ModelProto:
    """One model of the encoder ``body``, the mean, and the classifier ``head``."""
    from onnx import TensorProto, compose, helper, parser, version_converter

    # The parts are joined by names: each must have its own, the same operators, and one format.
    opset = next(each.version for each in head.opset_import if each.domain in ("", "ai.onnx"))
    body = version_converter.convert_version(body, opset)
    mean = helper.make_model(
        parser.parse_graph(_MEAN), opset_imports=[helper.make_opsetid("", opset)]
    )
    for part in (body, mean):
        part.ir_version = head.ir_version
    hidden, graph = body.graph.output[0].name, body.graph
    mask, copy = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["N", "T"])
        for name in ("attention_mask", "mask")
    )
    if mask.name not in {each.name for each in graph.input}:
        graph.input.append(mask)
    graph.node.append(helper.make_node("Identity", [mask.name], [copy.name]))
    graph.output.append(copy)
    apart = {"rename_inputs": False, "rename_outputs": False}
    mean = compose.add_prefix(mean, "mean_", **apart)
    head = compose.add_prefix(head, "classifier_", **apart)
    encoder = compose.merge_models(
        body, mean, [(hidden, "hidden"), (copy.name, "mask")], outputs=["features"]
    )
    return compose.merge_models(encoder, head, [("features", "features")], outputs=outputs)
