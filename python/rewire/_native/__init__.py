# SPDX-License-Identifier: Apache-2.0
"""The extension module and the libraries that it loads."""
