"""A Llama-like GGUF file in Hugging Face form, for vLLM and SGLang: weights in float32, tokenizer, chat template."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.quantize.folder import write_folder
from harness.quantize.gguf_file import read_gguf


def hf_form(file: Path, folder: Path) -> Path:
    """Write the model into `folder` where it is not there yet. Raises FolderError, WeightsError; nothing half-made is
    left."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        whole = Path(making, "model")
        whole.mkdir()
        write_folder(read_gguf(file), whole)
        os.replace(whole, folder)
    return folder
