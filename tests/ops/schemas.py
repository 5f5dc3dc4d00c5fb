"""Holds the operator records against ONNX's own schemas.

Every operator of every domain that `onnx` knows has a record, with ONNX's versions, attributes and dtypes; and a node of
every older version, with every attribute that version had, imports (its upgrade rows know them). Differences that are
meant are listed in EXCEPTIONS with the reason.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
SELKIE = str(ROOT / "build/release/bin/selkie")
DTYPES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "string": "str", "complex64": "c64",
          "complex128": "c128", "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2",
          "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1", "bool": "bool",
          **{f"{p}int{b}": f"{p or 'i'}{b}" for p in ("", "u") for b in (2, 4, 8, 16, 32, 64)}}
CODES = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
         "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
         "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
         "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26}
# (operator, what) → why it differs from the newest schema on purpose.
EXCEPTIONS = {
    ("Split", "operand 'split' of version 1 lacks ['f16', 'f32', 'f64']"): "its upgrade row casts the sizes to i64",
    ("Attention", "attribute 'masked_score' is not ONNX's"): "Selkie's own, for masks that are no -inf",
    ("LabelEncoder", "attribute 'classes_strings' is not ONNX's"): "version 1's; its meaning depends on the operand's dtype",
    **{("Dropout", f"result 'mask' of version {v} lacks ['f16', 'f32', 'f64']"): "an upgrade row casts the mask" for v in (1, 6, 7)},
    ("Constant", "record"): "a literal, which the importer turns into a constant of the module",
}
# Operators whose attributes hold graphs: the corpus covers them.
WITH_GRAPHS = {"If", "Loop", "Scan", "SequenceMap", "FlexAttention"}


def tensor_dtypes(schema, type_str):
    """The tensor dtypes that a formal parameter allows, in our names; nothing if it may be more than a tensor."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == type_str:
            types = constraint.allowed_type_strs
            break
    else:
        types = [type_str]
    if not all(t.startswith("tensor(") for t in types):
        return None
    return {DTYPES[t[len("tensor("):-1]] for t in types}


def lacking_dtypes(schema, newest, record):
    """Dtypes that a version of the operator allows and the record does not. Records may allow more."""
    problems = []
    for what, theirs, formals, ours in (("operand", schema.inputs, newest.inputs, record["operands"]),
                                        ("result", schema.outputs, newest.outputs, record["results"])):
        for i, formal in enumerate(theirs):
            if not ours:
                problems.append(f"{what} '{formal.name}' is missing")
            elif i < len(formals) and formals[i].name == formal.name:
                mine = ours[min(i, len(ours) - 1)]
                lacks = (tensor_dtypes(schema, formal.type_str) or set()) - set(mine["dtypes"])
                if mine["container"] == "tensor" and lacks:
                    problems.append(f"{what} '{formal.name}' of version {schema.since_version} lacks {sorted(lacks)}")
    return problems


def compare(schema, record):
    problems = []
    attrs = {a["name"]: a for a in record["attrs"]}
    for name, attribute in schema.attributes.items():
        if attribute.type == defs.OpSchema.AttrType.GRAPH:
            if name not in record["regions"]:
                problems.append(f"graph attribute '{name}' is missing")
            continue
        if name not in attrs:
            problems.append(f"attribute '{name}' is missing")
        elif attribute.required != attrs[name]["required"]:
            problems.append(f"attribute '{name}': required is {attribute.required} in ONNX")
    for name in attrs:
        if name not in schema.attributes:
            problems.append(f"attribute '{name}' is not ONNX's")
    problems += lacking_dtypes(schema, schema, record)
    return problems


def plausible(attribute):
    """A value of the attribute's kind; its default where it has one."""
    kind, default = attribute.type, attribute.default_value
    if default.type != AttributeProto.UNDEFINED:
        return helper.get_attribute_value(default)
    T = defs.OpSchema.AttrType
    tensor = numpy_helper.from_array(np.ones([1], np.float32))
    return {T.INT: 1, T.FLOAT: 1.0, T.STRING: "FLOAT" if attribute.name == "to" else "x", T.INTS: [1], T.FLOATS: [1.0],
            T.STRINGS: ["x"], T.TENSOR: tensor}.get(kind)


def model_of(schema):
    """A model of one node at this version of the operator, with all its attributes."""
    inputs, names = [], []
    for formal in schema.inputs:
        types = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formal.type_str), [formal.type_str])
        kind = next((t for t in ("tensor(float)", "tensor(int64)", *sorted(types)) if t in types))
        if kind.startswith(("map(", "seq(map(")):
            return None
        element = kind.replace("seq(", "").replace("optional(", "").replace("tensor(", "").rstrip(")")
        proto = helper.make_tensor_type_proto(CODES[element], None)
        if kind.startswith("seq("):
            proto = helper.make_sequence_type_proto(proto)
        inputs.append(helper.make_value_info(formal.name, proto))
        names.append(formal.name)
    outputs = [f"out_{o.name}" for o in schema.outputs]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain)
    for name, attribute in schema.attributes.items():
        value = plausible(attribute)
        if value is not None:
            node.attribute.append(helper.make_attribute(name, value))
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs])
    opsets = [helper.make_opsetid(schema.domain, schema.since_version)]
    if schema.domain:
        opsets.append(helper.make_opsetid("", 18))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def main() -> int:
    records = {(r["domain"], r["onnx"]): r for r in json.loads(subprocess.run([SELKIE, "ops", "--json"], capture_output=True, text=True, check=True).stdout)}
    versions, newest, problems = {}, {}, []
    for schema in defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        versions.setdefault(key, []).append(schema.since_version)
        if key not in newest or schema.since_version > newest[key].since_version:
            newest[key] = schema
    for key, schema in sorted(newest.items()):
        if (schema.name, "record") in EXCEPTIONS:
            continue
        record = records.get(key)
        if record is None:
            problems.append(f"{key}: no record")
            continue
        if record["versions"] != sorted(versions[key]):
            problems.append(f"{key}: versions {record['versions']}, in ONNX {sorted(versions[key])}")
        if not schema.deprecated:
            problems += [f"{key}: {p}" for p in compare(schema, record) if (schema.name, p) not in EXCEPTIONS]
    for schema in defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        if key in records and schema.since_version != newest[key].since_version and not newest[key].deprecated:
            problems += [f"{key}: {p}" for p in lacking_dtypes(schema, newest[key], records[key]) if (schema.name, p) not in EXCEPTIONS]
    cases = [s for s in defs.get_all_schemas_with_history()
             if (s.domain, s.name) in records and s.name not in WITH_GRAPHS and not s.deprecated]
    with tempfile.TemporaryDirectory() as folder:
        def check(schema):
            model = model_of(schema)
            if model is None:
                return None
            path = pathlib.Path(folder) / f"{schema.domain}.{schema.name}.{schema.since_version}.onnx"
            path.write_bytes(model.SerializeToString())
            run = subprocess.run([SELKIE, "check", str(path)], capture_output=True, text=True)
            return "" if run.returncode == 0 else f"{schema.domain or 'ai.onnx'} {schema.name}-{schema.since_version} does not import: {run.stderr.splitlines()[0] if run.stderr else run.returncode}"
        with ThreadPoolExecutor(4) as pool:
            results = [r for r in pool.map(check, cases) if r is not None]
    problems += [r for r in results if r]
    for problem in problems:
        print(problem)
    print(f"schemas: {len(newest)} operators, {len(results)} versions imported, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
