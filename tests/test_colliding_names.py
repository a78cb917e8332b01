"""Texts that were made to collide in the scanner's table of texts cost no more than others."""

from time import process_time

import numpy as np
import pytest

from stepscope.ingest import compiled_reader

pytestmark = pytest.mark.skipif(not compiled_reader.IS_BUILT, reason="of the compiled scanner")

WORD = np.uint64
MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
"""The scanner's factors: without its secret, its hash can be computed backwards."""
WORDS = 2**64
COLLIDING_BITS = 24
COUNT = 30_000
SIZE_BYTES = 16
BEGIN = np.full(COUNT, SIZE_BYTES * 31 * MIX_1 % WORDS, dtype=WORD)


def _mixed(state: np.ndarray, word: np.ndarray) -> np.ndarray:
    state = (state ^ word) * WORD(MIX_1)
    return np.asarray(state ^ (state >> WORD(32)))


def _hashes(words: np.ndarray) -> np.ndarray:
    found = _mixed(_mixed(BEGIN, words[:, 0]), words[:, 1]) * WORD(MIX_2)
    return np.asarray(found ^ (found >> WORD(29)))


def _usual() -> np.ndarray:
    """Return texts of two words each."""
    return np.random.default_rng(1).integers(0, WORDS, size=(COUNT, 2), dtype=WORD)


def _colliding() -> np.ndarray:
    """Return texts whose hashes end alike."""
    back_1, back_2 = (WORD(pow(factor, -1, WORDS)) for factor in (MIX_1, MIX_2))
    texts = _usual()
    state = texts[:, 1] & WORD(WORDS - (1 << COLLIDING_BITS))
    state = (state ^ (state >> WORD(29)) ^ (state >> WORD(58))) * back_2
    state ^= state >> WORD(32)
    texts[:, 1] = _mixed(BEGIN, texts[:, 0]) ^ (state * back_1)
    assert not (_hashes(texts) & WORD((1 << COLLIDING_BITS) - 1)).any()
    return texts


def _coding_s(words: np.ndarray) -> float:
    """Return the processor's seconds to give these texts codes."""
    texts = [pair.tobytes() for pair in words]
    scanner = compiled_reader._scanner.Scanner()  # type: ignore[attr-defined] # noqa: SLF001
    began = process_time()
    codes = [scanner.string_code(text) for text in texts]
    took = process_time() - began
    assert codes == [scanner.string_code(text) for text in texts] == list(range(COUNT))
    return took


def test_texts_that_collide_get_codes_as_fast_as_others() -> None:
    usual_s = min(_coding_s(_usual()) for _ in range(3))
    assert min(_coding_s(_colliding()) for _ in range(3)) < 10 * usual_s
