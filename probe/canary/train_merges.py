"""How ``data/merges.txt`` was made: ``python -m probe.canary.train_merges COUNT FILE... > merges.txt``.

The shipped list was trained on 2 MB of Python, English package descriptions, JSON schemas, YAML and shell. A merge of
two newlines was put in front: a prompt that ends in an empty line must not end in the token of a single newline. The
list is data, so that a build needs no training and gives the same bytes everywhere.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from probe.canary.vocabulary import byte_alphabet


def train_merges(texts: Iterable[str], count: int) -> list[str]:
    """The first ``count`` byte-pair merges of ``texts`` (fewer when they hold fewer), as lines ``left right``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = list(byte_alphabet())
    trainer = trainers.BpeTrainer(vocab_size=256 + count, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]


def main(arguments: list[str]) -> None:
    """Print the merges of the files named after the count."""
    texts = []
    for name in arguments[1:]:
        with open(name, encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    sys.stdout.write("\n".join(train_merges(texts, int(arguments[0]))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
