# SPDX-License-Identifier: Apache-2.0
"""Models and pipelines of models as applications of Ray Serve."""

from __future__ import annotations

import json
import time
from typing import Any, AsyncIterator, Iterable, Mapping, Sequence

import numpy
import rewire
from ray import exceptions as _exceptions
from ray import serve
from ray.serve import exceptions as _serve_exceptions
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from rewire_integrations.batch_model import BatchModel
from rewire_integrations.columns import Array, rows_of

__all__ = ["application", "call", "pipeline"]

_Columns = Mapping[str, Any]

# What a caller gets when the process or the machine that ran its request is gone.
_LOST = (_exceptions.RayActorError, _exceptions.NodeDiedError, _exceptions.WorkerCrashedError, _exceptions.LocalRayletDiedError,
         _exceptions.ObjectLostError, _serve_exceptions.ReplicaUnavailableError)
_LONGEST_PAUSE = 2.0


def run_together(model: BatchModel, requests: Sequence[dict[str, Array]]) -> list[dict[str, Array] | Exception]:
    """The outputs of each request, or its error. Requests whose rows have the same shapes are one batch. A batch that fails is run
    request by request, so that only those that are wrong by themselves fail."""
    results: list[dict[str, Array] | Exception] = [rewire.InternalError("not run")] * len(requests)
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, request in enumerate(requests):
        alike.setdefault(tuple(array.shape[1:] for array in request.values()), []).append(place)
    for places in alike.values():
        try:
            _run_alike(model, requests, places, results)
        except rewire.Error:
            for place in places:
                try:
                    _run_alike(model, requests, [place], results)
                except rewire.Error as error:
                    results[place] = error
    return results


def _run_alike(model: BatchModel, requests: Sequence[dict[str, Array]], places: Sequence[int], results: list[Any]) -> None:
    first = requests[places[0]]
    joined = first if len(places) == 1 else {
        name: numpy.concatenate([requests[place][name] for place in places]) for name in first}
    made = model.run(joined)
    begin = 0
    for place in places:
        end = begin + len(next(iter(requests[place].values())))
        results[place] = {name: array[begin:end] for name, array in made.items()}
        begin = end


class _Replica:
    """One replica of a model. Requests that wait are run as one batch."""

    def __init__(self, model: str, max_batch_size: int, wait_seconds: float, feedback: Mapping[str, str],
                 streamed: Sequence[str] | None, options: Mapping[str, Any]) -> None:
        self._model = BatchModel(model, **options)
        outputs = [output.column for output in self._model.plan().outputs.values()]
        self._feedback = dict(feedback)
        self._streamed = outputs if streamed is None else list(streamed)
        for argument, names, known in (("feedback", self._feedback, outputs), ("streamed", self._streamed, outputs),
                                       ("feedback", self._feedback.values(), self._model.input_columns)):
            for name in names:
                if name not in known:
                    raise rewire.InvalidArgumentError(f"{argument}: the model has no column {name!r} there; it has {', '.join(known)}")
        self._run_together.set_max_batch_size(max_batch_size)
        self._run_together.set_batch_wait_timeout_s(wait_seconds)

    async def run(self, columns: _Columns) -> dict[str, Array]:
        """Runs arrays by column, each with a row for each row, and returns the outputs by column."""
        missing = [name for name in self._model.input_columns if name not in columns]
        if missing:
            raise rewire.InvalidArgumentError(
                f"the request has no column {missing[0]!r}; it has {', '.join(map(repr, columns)) or 'none'}")
        plan = self._model.plan()
        fitted = {name: plan.fitted(name, rows_of(name, columns[name])) for name in self._model.input_columns}
        plan.count({plan.inputs[name].name: array for name, array in fitted.items()})
        made = await self._run_together(fitted)
        if isinstance(made, Exception):
            raise made
        return dict(made)

    async def stream(self, columns: _Columns, steps: int) -> AsyncIterator[dict[str, Array]]:
        """Runs the model `steps` times. Outputs that `feedback` names are inputs of the next step. Gives the columns of each step."""
        if not self._feedback:
            raise rewire.InvalidArgumentError(
                "stream: the application has no `feedback`, which says what output of a step is what input of the next one")
        given = dict(columns)
        for _ in range(steps):
            made = await self.run(given)
            given.update({column: made[output] for output, column in self._feedback.items()})
            yield {name: made[name] for name in self._streamed}

    @serve.batch
    async def _run_together(self, requests: list[dict[str, Array]]) -> list[dict[str, Array] | Exception]:
        return run_together(self._model, requests)

    async def __call__(self, request: Request | _Columns) -> Any:
        """Answers HTTP with JSON, and handles with arrays."""
        if not isinstance(request, Request):
            return await self.run(request)
        steps = request.query_params.get("steps")
        if steps is None:
            return await _answer(request, self.run)
        return await _answer_steps(request, self.stream, steps)


def _json_of(columns: Mapping[str, Array]) -> dict[str, Any]:
    return {name: array.tolist() for name, array in columns.items()}


def _refusal(error: Exception) -> JSONResponse:
    """ValueErrors are those of JSON, and InvalidArgumentError."""
    return JSONResponse({"error": str(error)}, status_code=400 if isinstance(error, ValueError) else 500)


async def _columns_in(request: Request) -> _Columns:
    columns = await request.json()
    if not isinstance(columns, dict):
        raise rewire.InvalidArgumentError('the body: a JSON object of columns is expected, such as {"x": [[1, 2]]}')
    return columns


async def _answer(request: Request, run: Any) -> Response:
    """Answers a request whose body is a JSON object of columns, each a list with an element for each row."""
    try:
        return JSONResponse(_json_of(await run(await _columns_in(request))))
    except (ValueError, rewire.Error) as error:
        return _refusal(error)


async def _answer_steps(request: Request, stream: Any, steps: str) -> Response:
    """Answers with a line of JSON for each step, sent when it is made. An error of the first step is the whole answer."""
    try:
        if not (steps.isascii() and steps.isdigit() and int(steps)):
            raise rewire.InvalidArgumentError(f"steps: a number of at least 1 is expected, {steps!r} is given")
        made = stream(await _columns_in(request), int(steps))
        first = await anext(made)
    except (ValueError, rewire.Error) as error:
        return _refusal(error)

    async def lines() -> AsyncIterator[str]:
        yield json.dumps(_json_of(first)) + "\n"
        try:
            async for columns in made:
                yield json.dumps(_json_of(columns)) + "\n"
        except (ValueError, rewire.Error) as error:
            yield json.dumps({"error": str(error)}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


class _Pipeline:
    """Sends what a stage returns to the next one, by reference: it does not come here."""

    def __init__(self, *stages: Any) -> None:
        self._stages = stages

    async def run(self, columns: _Columns) -> dict[str, Array]:
        made: Any = columns
        for stage in self._stages:
            made = stage.run.remote(made)
        return dict(await made)

    async def __call__(self, request: Request | _Columns) -> Any:
        if not isinstance(request, Request):
            return await self.run(request)
        return await _answer(request, self.run)


def application(model: str, *, name: str = "model", max_batch_size: int = 32, wait_seconds: float = 0.0,
                feedback: Mapping[str, str] | None = None, streamed: Iterable[str] | None = None,
                deployment: Mapping[str, Any] | None = None, **options: Any) -> serve.Application:
    """Returns an application of one model, for `serve.run` or as a part of other applications.

        handle = serve.run(application("/models/model.onnx", max_batch_size=32, deployment={"num_replicas": 4}))
        scores = handle.remote({"features": array}).result()["scores"]

    A request has arrays by column, with any number of rows. Up to `max_batch_size` requests that wait in a replica are run as one
    batch; `wait_seconds` is how long a request may wait for others. Over HTTP a request is a JSON object of columns, and so is the
    answer; a wrong one gets status 400 and {"error": ...}.

    `feedback` is for models that run step by step, such as a decoder of tokens: {"next": "token", "present": "past"} makes outputs
    of a step the inputs of the next one. Each step gives the columns that `streamed` names, or all:

        steps = handle.options(stream=True, method_name="stream").remote({"token": tokens, "past": past}, 20)
        for step in steps: ...

    Over HTTP, `?steps=20` answers with a line of JSON for each step. Steps of several requests run as one batch, too, where their
    inputs have the same shapes. A caller that goes away ends its stream behind the step that runs.

    Replicas of a machine map one file, so that the weights are in memory once a machine. `deployment` are options of a deployment of
    Ray Serve, such as num_replicas, autoscaling_config and ray_actor_options. `options` are those of BatchModel.
    """
    settings = {"name": name, "max_ongoing_requests": 4 * max_batch_size, **(deployment or {})}
    names = None if streamed is None else list(streamed)
    bound: serve.Application = serve.deployment(_Replica).options(**settings).bind(
        model, max_batch_size, wait_seconds, dict(feedback or {}), names, options)
    return bound


def pipeline(*stages: serve.Application, name: str = "pipeline", deployment: Mapping[str, Any] | None = None) -> serve.Application:
    """Returns an application that runs a request through several others, each what `application` returns.

    The outputs of a stage are the columns of the next one; `columns` and `outputs` of its application give them their names. Results
    go from worker to worker: a stage's arrays are written to Ray's object store once, and the next stage's model reads them there.
    Results below 100 KB are part of Ray's message in place of that.
    """
    if not stages:
        raise rewire.InvalidArgumentError("pipeline: at least one stage is expected, none is given")
    bound: serve.Application = serve.deployment(_Pipeline).options(name=name, **(deployment or {})).bind(*stages)
    return bound


def _is_lost(error: Exception) -> bool:
    """Whether an error says that a replica is gone; one of a pipeline's stage has it as its cause."""
    return isinstance(error, _LOST) or (isinstance(error, _exceptions.RayTaskError) and isinstance(error.cause, _LOST))


def call(handle: Any, columns: _Columns, *, seconds: float = 60.0) -> dict[str, Array]:
    """Calls the handle of an application or a pipeline, and returns the outputs by column.

    If a replica or its machine is lost while the request is there, the request is made again: models have no effects but their
    results. `seconds` bounds all of it together. Raises what the last call has raised, and TimeoutError.
    """
    end = time.monotonic() + seconds
    pause = 0.1
    while True:
        try:
            made: dict[str, Array] = handle.remote(dict(columns)).result(timeout_s=max(end - time.monotonic(), 0.0))
            return made
        except Exception as error:  # Ray's errors have no common class with those of Ray Serve
            if not _is_lost(error) or time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
