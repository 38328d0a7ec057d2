"""`python -m tests.golden`: say what the parsers and the classifier read otherwise than the snapshots have it, and keep
today's reading. Look at every difference before committing it.
"""

from __future__ import annotations

from tests.golden.snapshots import FOLDER, KINDS, changes, keep, kept


def main() -> None:
    """Print the differences and write the snapshots anew."""
    for kind in KINDS:
        before = kept(kind) if (FOLDER / f"{kind}.jsonl.zst").exists() else {}
        different = changes(before, keep(kind))
        print(f"{kind}: {len(different)} differences")
        for line in different[:200]:
            print(f"  {line}")


if __name__ == "__main__":
    main()
