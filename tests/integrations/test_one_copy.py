# SPDX-License-Identifier: Apache-2.0
"""Four worker processes of an engine have one copy of a model's weights in memory (/proc/PID/smaps_rollup)."""

import os
import pathlib
import shutil
import sys

import numpy
import pytest
import rewire

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench/engines"))
import measured_models  # noqa: E402
import side_by_side  # noqa: E402

WORKERS, ROWS, BATCH = 4, 1024, 16
MEGABYTES = 256
MEGABYTES_A_WORKER = 25  # the libraries of Rewire, its program and the arrays of a run


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The folder of a model of 256 MB, its rows, and what it gives for them in one process."""
    folder = tmp_path_factory.mktemp("job")
    measured_models.products(folder, ROWS, MEGABYTES)
    program = rewire.load(str(folder / "model.rwx"))
    return folder, program(numpy.load(folder / "x.npy"))["y"]


@pytest.mark.parametrize("engine", side_by_side.ENGINES)
def test_four_workers_have_one_copy_of_the_weights(job, engine):
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs: third_party/install.sh engines")
    folder, expected = job
    weights = os.path.getsize(folder / "model.rwx") / 1e6
    measured = side_by_side.run_jobs(engine, folder, BATCH, WORKERS, ("idle", "rewire"))
    assert [each.workers for each in measured.values()] == [WORKERS, WORKERS]
    grown = measured["rewire"].megabytes - measured["idle"].megabytes
    print(f"{engine}: {WORKERS} workers over {weights:.0f} MB have {grown:.0f} MB more than idle ones")
    assert grown <= weights + MEGABYTES_A_WORKER * WORKERS
    numpy.testing.assert_allclose(side_by_side.results_of(engine, folder, "rewire"), expected, rtol=1e-4, atol=1e-5)
