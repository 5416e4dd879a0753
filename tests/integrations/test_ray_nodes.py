# SPDX-License-Identifier: Apache-2.0
"""A machine of a Ray cluster is lost while it works: two nodes on this machine, of which one is killed."""

import sys
import threading
import time

import example_model
import numpy
import pytest
import ray
from ray import serve
from ray.cluster_utils import Cluster
from rewire_integrations.ray_data import Predictor
from rewire_integrations.ray_serve import application, call

SECONDS = 60  # within which work goes on
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers of the cluster cannot import this file


@pytest.fixture
def cluster():
    """A head node, to which this process belongs, and one more. Each has the resource `node`, of which a worker takes one."""
    made = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 2, "resources": {"node": 1}, "object_store_memory": 100_000_000, "include_dashboard": False,
        "_system_config": {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}})
    made.other = made.add_node(num_cpus=1, resources={"node": 1}, object_store_memory=100_000_000)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    serve.shutdown()
    ray.shutdown()
    made.shutdown()


@ray.remote(num_cpus=0)
class Seen:
    """The nodes on which batches were begun, and whether workers may go on."""

    def __init__(self):
        self.nodes, self.go = [], False

    def begin(self, node):
        self.nodes.append(node)
        return self.go

    def told(self):
        return self.nodes

    def release(self):
        self.go = True


class Held(Predictor):
    """A Predictor that tells where it runs. Until the test has killed a node, it goes on slowly."""

    def __init__(self, seen, **arguments):
        super().__init__(**arguments)
        self.seen = seen

    def __call__(self, batch):
        if not ray.get(self.seen.begin.remote(ray.get_runtime_context().get_node_id())):
            time.sleep(0.3)
        return super().__call__(batch)


def wait_for(what, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "the workers have not begun"
        time.sleep(0.2)


def test_a_job_of_ray_data_loses_no_row_and_doubles_none(cluster, classifier, features):
    ray.data.DataContext.get_current().enable_progress_bars = False
    seen = Seen.options(resources={"node": 0.001}, scheduling_strategy=on_head()).remote()
    data = ray.data.range(len(features), override_num_blocks=40).map_batches(
        lambda batch: {"id": batch["id"], "features": features[batch["id"]]}, num_cpus=0.1)
    scored = data.map_batches(Held, fn_constructor_kwargs={"seen": seen, "model": classifier}, batch_size=25, concurrency=2,
                              num_cpus=0.1, resources={"node": 0.9})
    rows = []
    job = threading.Thread(target=lambda: rows.extend(scored.take_all()))
    job.start()
    wait_for(lambda: len(set(ray.get(seen.told.remote()))) == 2)  # a worker on each node has begun
    cluster.remove_node(cluster.other, allow_graceful=False)
    lost = time.monotonic()
    ray.get(seen.release.remote())
    job.join(SECONDS)
    assert not job.is_alive(), f"the job has not ended within {SECONDS} s of the loss"
    print(f"the job ended {time.monotonic() - lost:.1f} s after the loss")
    assert sorted(row["id"] for row in rows) == list(range(len(features)))
    by_id = {row["id"]: row["scores"] for row in rows}
    numpy.testing.assert_allclose([by_id[place] for place in range(len(features))], example_model.expected(features), rtol=1e-5)


def on_head():
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def test_ray_serve_answers_every_request(cluster, classifier, features):
    handle = serve.run(application(classifier, deployment={
        "num_replicas": 2, "ray_actor_options": {"num_cpus": 0.1, "resources": {"node": 0.6}}, "health_check_period_s": 1}), route_prefix=None)
    expected = example_model.expected(features)
    answers, ends = {}, threading.Event()

    def client(first):
        for row in range(first, len(features), 4):
            if ends.is_set():
                return
            try:
                answers[row] = call(handle, {"features": features[row:row + 1]}, seconds=SECONDS)["scores"]
            except Exception as error:  # judged below, on the main thread
                answers[row] = error
            time.sleep(0.05)

    clients = [threading.Thread(target=client, args=(first,)) for first in range(4)]
    for each in clients:
        each.start()
    wait_for(lambda: len(answers) >= 20)
    before = len(answers)
    cluster.remove_node(cluster.other, allow_graceful=False)
    wait_for(lambda: len(answers) >= before + 60)  # more than were open when the node was lost
    ends.set()
    for each in clients:
        each.join(SECONDS)
    assert not any(each.is_alive() for each in clients)
    for row, answer in answers.items():
        assert not isinstance(answer, Exception), f"request {row}: {answer}"
        numpy.testing.assert_allclose(answer, expected[row:row + 1], rtol=1e-5)
