"""Pack the captures of real Ollama servers, whole, for the replay server of the tests.

Run: python -m tests.support.select_ollama (needs the corpus: a folder named by `STACKTAP_SHARED`, or `shared` beside
the repository).
"""

from __future__ import annotations

import json

import zstandard

from tests.support.captured import ROOT, shared_folder

PACKED = ROOT / "tests" / "data" / "captures" / "ollama.jsonl.zst"


def main() -> None:
    """Write every captures file of an Ollama server after a meta line that names it (`file`)."""
    folder = shared_folder()
    if folder is None:
        raise SystemExit("the corpus is not here; set STACKTAP_SHARED to its folder")
    lines = []
    for path in sorted((folder / "captures").glob("ollama-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("kind") == "meta":
                record = {"kind": "meta", "file": path.stem, "version": path.stem.split("-")[1], **record}
            lines.append(json.dumps(record, ensure_ascii=False))
    packed = zstandard.ZstdCompressor(level=22).compress("\n".join(lines).encode("utf-8", "surrogatepass"))
    PACKED.write_bytes(packed)
    print(f"{len(lines)} lines, {len(packed)} bytes")


if __name__ == "__main__":
    main()
