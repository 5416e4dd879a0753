#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the recipes of integrations/*/README.md as they stand, each in a folder of its own with the model and the data that they name.

    pages.py [NAME...]      the folders; all of them if none is named
"""

import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests/support")]
import example_model  # noqa: E402
import run_page  # noqa: E402


def main(names):
    # As in an activated environment: Spark starts its workers by the name python3.
    os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    for page in sorted(ROOT.glob("integrations/*/README.md")):
        name = page.parent.name
        if names and name not in names:
            continue
        # kserve_manifests.py runs the manifests, triton_backend.py that page, and the step `collectives` of .ci/run the last one.
        if name in ("kserve", "triton", "collective"):
            continue
        if name == "spark" and shutil.which("java") is None:
            print("spark: SKIPPED: there is no Java, which Spark needs: third_party/install.sh engines", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["REWIRE_MODEL_CACHE"] = f"{folder}/cache"
            example_model.write(f"{folder}/model.onnx")
            example_model.write_features(f"{folder}/features.parquet")
            count = run_page.run(page, pathlib.Path(folder))
        if count == 0:
            raise SystemExit(f"{page}: there is no block to run")
        print(f"{name}: {count} blocks of its README ran as they stand", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
