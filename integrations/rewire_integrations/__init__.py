# SPDX-License-Identifier: Apache-2.0
"""Batches through models, for engines that spread work over processes and machines.

    from rewire_integrations import BatchModel

    model = BatchModel("model.onnx")
    scores = model({"image": images})["scores"]     # numpy arrays with a row for each row of `images`

Each engine has a module beside this one: ray_data, ray_serve, beam, spark, dask. All of them run a BatchModel.
"""

from rewire_integrations.batch_model import BatchModel
from rewire_integrations.model_file import executable_of

__all__ = ["BatchModel", "executable_of"]
