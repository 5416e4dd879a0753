# SPDX-License-Identifier: Apache-2.0
"""What an ONNX model says about itself. The compiler keeps it in the executable."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ModelMetadata:
    """What the ONNX model of an executable says about itself. All of it is empty if there was none, and in a stripped one.

    `custom_metadata_map` has the entries of `metadata_props`.
    """

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)
    producer_version: str = ""
