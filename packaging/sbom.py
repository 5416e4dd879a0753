#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the bill of materials of a release, in CycloneDX 1.5, from third_party/components.toml.

    sbom.py VERSION FILE...    prints JSON: Rewire, the files with their SHA-256, and each component that is redistributed

Equal files give equal JSON: it has no date, and its serial number is made from the content.
"""

import hashlib
import json
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import components  # noqa: E402


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def bill(version, files):
    rewire = {"type": "library", "bom-ref": "rewire", "name": "rewire", "version": version,
              "licenses": [{"expression": "Apache-2.0"}], "purl": f"pkg:generic/rewire@{version}"}
    parts, references = [], []
    for component in components.components():
        if not component.redistributed:
            continue
        purl = f"pkg:{component.source}@{component.version}"
        references.append(purl)
        properties = [{"name": "rewire:library", "value": name} for name in component.libraries]
        if component.compiled_in:
            properties.append({"name": "rewire:compiled-into", "value": component.linked_into})
        if component.wheel:
            properties.append({"name": "rewire:wheel", "value": component.wheel})
        parts.append({"type": "library", "bom-ref": purl, "name": component.name, "version": component.version,
                      "licenses": [{"expression": component.license}], "purl": purl, "properties": properties})
    for path in sorted(files):
        parts.append({"type": "file", "bom-ref": f"file:{pathlib.Path(path).name}", "name": pathlib.Path(path).name,
                      "hashes": [{"alg": "SHA-256", "content": digest(path)}]})
    text = json.dumps([rewire, parts], sort_keys=True)
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
            "metadata": {"component": rewire}, "components": parts,
            "dependencies": [{"ref": "rewire", "dependsOn": references}]}


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(2)
    print(json.dumps(bill(sys.argv[1], sys.argv[2:]), indent=2))
