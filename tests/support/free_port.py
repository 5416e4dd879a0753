# SPDX-License-Identifier: Apache-2.0
"""A port for a server that must be told one."""

import socket


def free_port():
    """One at which nobody listens on 127.0.0.1."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]
