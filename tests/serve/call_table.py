# SPDX-License-Identifier: Apache-2.0
"""The table of tritonclient's calls in docs/serving.md, and what came of each call that a test has made."""
import pathlib

# Of the client alone: no request goes to the server.
LOCAL = {"close", "plugin", "register_plugin", "unregister_plugin", "generate_request_body", "parse_response_body"}


def table(column):
    """From each call to whether it is answered, for the column 1 (HTTP) or 2 (gRPC); calls that the protocol lacks are left out."""
    page = pathlib.Path(__file__).parents[2] / "docs/serving.md"
    rows = page.read_text(encoding="utf-8").split("| call of tritonclient |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0].strip("`"): row[column] == "answered" for row in cells if row[column] != "-"}


class Recorded:
    """A client whose calls are recorded: which were answered, and which were refused as not supported."""

    def __init__(self, client, error):
        self._client, self._error, self.answered, self.unsupported = client, error, set(), set()

    def __getattr__(self, name):
        call = getattr(self._client, name)
        if not callable(call):
            return call

        def recorded(*arguments, **options):
            try:
                result = call(*arguments, **options)
            except self._error as error:
                if error.status() in ("501", "StatusCode.UNIMPLEMENTED"):
                    self.unsupported.add(name)
                raise
            self.answered.add(name)
            return result
        return recorded


def check(column, client, answered, unsupported):
    """Fails unless the table has each call of the client's class, and says of each what came of it."""
    rows = table(column)
    calls = {name for name in dir(client) if not name.startswith("_")} - LOCAL
    assert calls == set(rows), f"docs/serving.md and the client differ in {sorted(calls ^ set(rows))}"
    for name, is_answered in rows.items():
        assert name in (answered if is_answered else unsupported - answered), f"docs/serving.md says of {name} what did not come of it"
