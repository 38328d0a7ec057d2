"""What a tier's files say of its weights: measured from their headers, never taken from a name."""

from __future__ import annotations

from pathlib import Path

from harness.quantize.record import RecordError, read_manifest
from harness.workbench.record import WeightsRow
from stacks.language_weights import in_tower, measure_language
from stacks.model_files import fake_quantised, model_digest
from stacks.weights import stored_tensors


def weights_row(place: Path) -> WeightsRow:
    """Measure a tier. Of a fake-quantised one the bits of the quantised weights stand in the manifest beside it.

    Raises `stacks.weights.WeightsError`, OSError.
    """
    measured = measure_language(place)
    types: dict[str, int] = {}
    for tensor in stored_tensors(place):
        if not in_tower(tensor.name, gguf=not place.is_dir()):
            types[tensor.type] = types.get(tensor.type, 0) + 1
    tensor_bits, file_bits, file_bytes = measured.bits_per_weight, measured.file_bits_per_weight, measured.file_bytes
    fake = fake_quantised(place)
    note = fake or ""
    try:
        manifest = read_manifest(place.parent)
    except RecordError:
        manifest = None
    made = next((one for one in manifest.made if one.place == place.name), None) if manifest else None
    if made is not None and (made.fake or "float32" in made.values):
        tensor_bits, file_bits = made.tensor_bits, made.file_bits
        note = f"{made.label}; {made.values}; bits as measured in {made.measured_as}"
        file_bytes = round(made.file_bits * made.weights / 8)
    if measured.tower_weights:
        note = f"language tower only, {measured.tower_weights} weights of other towers left out" + (
            note and f"; {note}"
        )
    return WeightsRow(
        tensor_bits=round(tensor_bits, 3),
        file_bits=round(8 * file_bytes / measured.weights if file_bits is None else file_bits, 3),
        file_bytes=file_bytes,
        weights=measured.weights,
        types=dict(sorted(types.items())),
        sha256=model_digest(place).removeprefix("sha256:"),
        note=note,
    )
