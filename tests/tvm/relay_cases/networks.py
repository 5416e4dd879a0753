# SPDX-License-Identifier: Apache-2.0
"""Small instances of the networks that TVM's own tests compile."""

from tvm.relay import testing
from tvm.relay.build_module import bind_params_by_name

from . import Call, Program, case, normal


def _bound(workload, inputs):
    module, params = workload
    module["main"] = bind_params_by_name(module["main"], params)
    return Program(module, [Call("main", inputs)])


@case("network")
def mlp():
    return _bound(testing.mlp.get_workload(1, image_shape=(1, 14, 14)), {"data": normal(1, 1, 14, 14)})


@case("network", "late_bound")
def resnet8():
    workload = testing.resnet.get_workload(1, 10, num_layers=8, image_shape=(3, 28, 28))
    return _bound(workload, {"data": normal(1, 3, 28, 28)})._replace(late_bound=1024)


@case("network")
def mobilenet():
    """MobileNet at a quarter of its width and without the repeated middle blocks, to compile in seconds."""
    net = testing.mobilenet.mobile_net(10, (1, 3, 32, 32), alpha=0.25, is_shallow=True)
    program = _bound(testing.create_workload(net), {"data": normal(1, 3, 32, 32)})
    return program._replace(opt_level=2)  # level 3 unrolls so much that compiling takes twice as long


@case("network", "repeated_names")
def lstm():
    """Weights are inputs here, and several parameters share a name."""
    module, params = testing.lstm.get_workload(iterations=4, num_hidden=16)
    inputs = []
    for parameter in module["main"].params:
        name, shape = parameter.name_hint, map(int, parameter.type_annotation.shape)
        inputs.append((name, params[name].numpy() if name in params else normal(*shape)))
    return Program(module, [Call("main", inputs)])
