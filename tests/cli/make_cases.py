"""Cases for `selkie verify`, made with nothing but the standard library: make_cases.py FOLDER."""
import pathlib
import struct
import sys


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def info(name, elem_type=1, dims=(2,)):
    shape = data(2, *(data(1, number(1, d)) for d in dims))
    return data(1, name) + data(2, data(1, number(1, elem_type), shape))


def node(op, inputs, outputs, *attributes):
    return b"".join([*(data(1, i) for i in inputs), *(data(2, o) for o in outputs), data(4, op), *(data(5, a) for a in attributes)])


def graph(nodes, inputs, outputs):
    return b"".join([*(data(1, n) for n in nodes), *(data(11, i) for i in inputs), *(data(12, o) for o in outputs)])


def model(body):
    return number(1, 8) + data(7, body) + data(8, number(2, 17))


def tensor(*values):
    return number(1, len(values)) + number(2, 1) + data(9, struct.pack(f"<{len(values)}f", *values))


NEG = model(graph([node("Neg", ["x"], ["y"])], [info("x")], [info("y")]))
BODY = graph([node("Identity", ["c"], ["d"]), node("Neg", ["a"], ["b"])],
             [info("i", 7, ()), info("c", 9, ()), info("a")], [info("d", 9, ()), info("b")])
FOREVER = model(graph([node("Loop", ["", "", "x"], ["y"], data(1, "body") + data(6, BODY) + number(20, 5))], [info("x")], [info("y")]))


def case(folder, content, expected):
    data_set = folder / "test_data_set_0"
    data_set.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(content)
    (data_set / "input_0.pb").write_bytes(tensor(1, 2))
    (data_set / "output_0.pb").write_bytes(tensor(*expected))


def main():
    root = pathlib.Path(sys.argv[1])
    case(root / "mixed/passes", NEG, (-1, -2))
    case(root / "mixed/differs", NEG, (-1, 2))
    case(root / "mixed/garbage", b"this is no model", (0, 0))
    case(root / "good/passes", NEG, (-1, -2))
    case(root / "hangs/endless", FOREVER, (0, 0))
    case(root / "hangs/passes", NEG, (-1, -2))


if __name__ == "__main__":
    main()
