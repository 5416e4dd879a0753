# SPDX-License-Identifier: Apache-2.0
"""A certificate for servers on this machine, which is its own authority."""
import subprocess


def make_certificate(folder):
    """The paths of a new certificate for localhost and of its key, in the folder; both are PEM."""
    certificate, key = folder / "server.pem", folder / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
               "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
