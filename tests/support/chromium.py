# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium: what the tests of pages share."""
import shutil
import subprocess


def run(*arguments):
    """What it prints, and the lines of the console. Raises OSError if it is not there."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise OSError("there is no headless Chromium")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
               "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def why_not():
    """Why pages cannot be opened here; empty if they can. Some containers do not let a browser start, which is no fault of a page."""
    try:
        dom, _ = run("--dump-dom", "data:text/html,<p id=here>drawn</p>")
    except (subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    return "" if "drawn</p>" in dom else f"headless Chromium does not run here: {dom.strip()[-200:] or 'it prints nothing'}"
