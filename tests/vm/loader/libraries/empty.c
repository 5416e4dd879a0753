/* SPDX-License-Identifier: Apache-2.0 */
/* What TVM writes beside a model that calls no kernel: a library that exports nothing. */
typedef int nothing;
