/* SPDX-License-Identifier: Apache-2.0 */
/* A library that exports the variable MARKER, by which the loader tells what it is. */
__attribute__((visibility("default"))) void* MARKER = 0;
