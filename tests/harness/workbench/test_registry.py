"""The shipped registry: the seed's three entries and the models used here; what is asked for wrongly is said."""

from pathlib import Path

import pytest

from harness.workbench.registry import RegistryError, parse_registry, shipped_registry


def test_the_seeds_entries_and_our_models() -> None:
    names = {member.name for member in shipped_registry().members}
    assert {"qwen3-1.7b", "qwen3-8b", "gemma4-e2b", "smollm2-135m-instruct", "gemma-3-270m"} <= names
    assert [one.name for one in shipped_registry().find("QWEN3")] == ["qwen3-1.7b", "qwen3-8b"]
    for member in shipped_registry().members:
        assert member.source.count("/") == 1
        for chain in member.chains:
            assert chain.baseline in chain.tiers


def test_what_is_not_there_is_said_with_what_is(tmp_path: Path) -> None:
    registry = shipped_registry()
    with pytest.raises(RegistryError, match=r"qwen3-1\.7b, qwen3-8b"):
        registry.member("qwen3")
    member = registry.member("smollm2-135m-instruct")
    with pytest.raises(RegistryError, match="no chain 'onnx'"):
        member.chain("onnx")
    chain = member.chain("gguf")
    with pytest.raises(RegistryError, match="no tier 'Q9'"):
        chain.place(tmp_path, "Q9")
    with pytest.raises(RegistryError, match="holds no SmolLM2"):
        chain.place(tmp_path, "F16")


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"members": [{}]}', b"[" * 3000])
def test_a_broken_registry_is_refused(raw: bytes) -> None:
    with pytest.raises(RegistryError, match="no valid registry"):
        parse_registry(raw)
