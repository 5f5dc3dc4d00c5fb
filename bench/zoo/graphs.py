"""Walks of ONNX graphs with the graphs nested in them; needs no torch."""


def subgraphs(node):
    """The graphs in a node's attributes: the arms of an If, the body of a Loop or Scan."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.HasField("g") else attribute.graphs


def forget_shapes(graph, inputs=()):
    """Drops every stored shape but those of weights and of the graph's inputs not listed; element types stay."""
    del graph.value_info[:]
    for value in [*inputs, *graph.output]:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for inner in subgraphs(node):
            # ONNX Runtime insists on the shapes of a loop's counter and condition, which are scalars by definition.
            forget_shapes(inner, inner.input[2:] if node.op_type == "Loop" else inner.input)
