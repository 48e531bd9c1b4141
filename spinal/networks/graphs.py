"""A module as a graph of calls (torch.fx), and the split of this graph into two."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from torch import fx, nn
from torch.nn import functional

from spinal.networks.network import NetworkError

#: Functions with a ``training`` argument; replaced by modules, they follow `Module.train`.
_FUNCTIONAL_DROPOUTS: dict[object, type[nn.Module]] = {
    functional.dropout: nn.Dropout,
    functional.dropout1d: nn.Dropout1d,
    functional.dropout2d: nn.Dropout2d,
    functional.dropout3d: nn.Dropout3d,
}


def trace(module: nn.Module, whole: Collection[nn.Module] = ()) -> fx.GraphModule:
    """The calls that ``module`` makes, with its weights shared.

    Args:
        module: maps one tensor to one tensor.
        whole: modules to trace as a single call, even if they contain others.

    Raises:
        NetworkError: if the calls depend on values, or on whether the module is training.
    """
    training = module.training
    try:
        graphs = {mode: _traced(module.train(mode), whole) for mode in (True, False)}
    except Exception as error:  # whatever the user's code does with a symbolic tensor
        raise NetworkError(f"{type(module).__name__} cannot be traced ({error})") from error
    finally:
        module.train(training)
    if graphs[True].code != graphs[False].code:
        raise NetworkError(f"{type(module).__name__} takes another path in training")
    return graphs[False]


def _traced(module: nn.Module, whole: Collection[nn.Module]) -> fx.GraphModule:
    class Tracer(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return m in whole or super().is_leaf_module(m, module_qualified_name)

    traced = fx.GraphModule(module, Tracer().trace(module))
    for number, node in enumerate(traced.graph.nodes):
        if node.op == "call_function" and node.target in _FUNCTIONAL_DROPOUTS:
            rate = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
            name = f"dropout_call_{number}"
            traced.add_submodule(name, _FUNCTIONAL_DROPOUTS[node.target](rate))
            source = node.args[0] if node.args else node.kwargs["input"]
            node.op, node.target, node.args, node.kwargs = "call_module", name, (source,), {}
    traced.recompile()
    return traced


def cut(
    traced: fx.GraphModule, below: Collection[fx.Node]
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Split a module in two: one that computes the inputs of the calls ``below``, and the rest.

    Args:
        traced: a module with one input and one output.
        below: nodes, including all that depend on them, and the output.

    Returns:
        Two modules, ``above(x)``, a tuple of values, and ``rest(*values)``, which equals
        ``traced(x)``.
    """
    crossing = [
        node
        for node in traced.graph.nodes
        if node not in below and node.op != "get_attr" and _is_used(node, below)
    ]
    above, rest = fx.Graph(), fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in traced.graph.nodes:
        if node not in below and (node.op != "get_attr" or not set(node.users) <= set(below)):
            copies[node] = above.node_copy(node, copies.__getitem__)
    above.output(tuple(copies[node] for node in crossing))
    copies = {node: rest.placeholder(node.name) for node in crossing}
    for node in traced.graph.nodes:
        if node in below or (node.op == "get_attr" and _is_used(node, below)):
            copies[node] = rest.node_copy(node, copies.__getitem__)
    return fx.GraphModule(traced, above), fx.GraphModule(traced, rest)


def _is_used(node: fx.Node, below: Collection[fx.Node]) -> bool:
    return any(user in below for user in node.users)


def dependents(traced: fx.GraphModule, roots: Iterable[fx.Node]) -> set[fx.Node]:
    """The nodes in ``roots`` and all nodes that depend on them."""
    nodes = set(roots)
    for node in traced.graph.nodes:  # in the order of calls
        if any(source in nodes for source in node.all_input_nodes):
            nodes.add(node)
    return nodes
