"""Texts of any length and number through one compiled model, also from several threads; then kept and loaded.

    python examples/python/classify.py examples/dynamic.onnx
"""
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import selkie


def texts(count: int, words: int) -> np.ndarray:
    return np.arange(count * words).reshape(count, words) ** 2 % 64


def main() -> None:
    model = selkie.compile(sys.argv[1], dims={"S": "1..128"}, trip_limit=1000)
    print(model)

    for shape in ((1, 1), (2, 8), (3, 9), (0, 4), (1, 200)):
        try:
            probabilities, changes = model(texts(*shape))
            print(shape, "classes", probabilities.argmax(axis=1).tolist(), "after", len(changes), "trips")
        except selkie.InputError as error:
            print(shape, "is refused:", error)

    # The interpreter's lock is released while a model runs.
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda words: model(texts(1, words))[0], range(1, 65)))
    print(len(answers), "texts in threads, all sums 1:", np.allclose([a.sum() for a in answers], 1, atol=1e-3))

    # Results in memory that is used again.
    out = (np.empty((2, 4), np.float32), np.empty(len(model(texts(2, 16))[1]), np.float32))
    print("in place:", model(texts(2, 16), out=out)[0] is out[0])

    with tempfile.NamedTemporaryFile(suffix=".selkie") as file:
        model.save(file.name)
        again = selkie.load(file.name)
        print("loaded, the same:", np.array_equal(again(texts(2, 16))[0], out[0]))


if __name__ == "__main__":
    main()
